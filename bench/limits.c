/* Two physical limits of this machine, to compare a start with.
 *
 *     limits sync FILE SECONDS      one page of 4 KiB appended and fdatasync'ed; FILE must not
 * exist, it is removed limits copy BYTES SECONDS     a payload of so many bytes copied in memory,
 * from a place that is not in the cache
 *
 * Prints one line of JSON.
 */
#include "latency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define SECONDS_MAX 600.0            /* a benchmark that runs longer was mistyped */
#define COPY_BYTES_MAX (1 << 20)     /* the largest body that pawl takes */
#define COPY_ROOM ((size_t)64 << 20) /* more than the caches hold */

static void print(const struct latency *lat, uint64_t begun)
{
    printf("{\"per_s\":%.1f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f}\n",
           (double)lat->count * 1e9 / (double)(now_ns() - begun), latency_percentile_us(lat, 50),
           latency_percentile_us(lat, 99), (double)lat->max_ns / 1000);
}

static bool sync_pages(int fd, uint64_t begun, double seconds, struct latency *lat)
{
    static const char page[PAGE_BYTES];
    uint64_t end = begun + (uint64_t)(seconds * 1e9);
    for (uint64_t before = begun; before < end;) {
        if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd) != 0)
            return false;
        uint64_t after = now_ns();
        latency_add(lat, after - before);
        before = after;
    }
    return true;
}

static int measure_sync(const char *path, double seconds)
{
    static struct latency lat;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint64_t begun = now_ns();
    bool ok = fd >= 0 && sync_pages(fd, begun, seconds, &lat);
    if (ok)
        print(&lat, begun);
    else
        fprintf(stderr, "limits: %s: %s\n", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    return ok ? 0 : 1;
}

static int measure_copy(size_t bytes, double seconds)
{
    static struct latency lat;
    char *from = malloc(COPY_ROOM), *to = malloc(bytes);
    if (from == NULL || to == NULL) {
        fprintf(stderr, "limits: out of memory\n");
        free(from);
        free(to);
        return 1;
    }
    memset(from, 'x', COPY_ROOM);
    size_t at = 0;
    uint64_t begun = now_ns(), end = begun + (uint64_t)(seconds * 1e9);
    for (uint64_t before = begun; before < end;) {
        memcpy(to, from + at, bytes);
        __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is used */
        at = at + 2 * bytes <= COPY_ROOM ? at + bytes : 0;
        uint64_t after = now_ns();
        latency_add(&lat, after - before);
        before = after;
    }
    print(&lat, begun);
    free(from);
    free(to);
    return 0;
}

static double number_of(const char *text, double max)
{
    char *end = NULL;
    double number = strtod(text, &end);
    return *end == '\0' && number > 0 && number <= max ? number : 0;
}

int main(int argc, char **argv)
{
    double seconds = argc == 4 ? number_of(argv[3], SECONDS_MAX) : 0;
    double bytes = argc == 4 ? number_of(argv[2], COPY_BYTES_MAX) : 0;
    if (seconds > 0 && strcmp(argv[1], "sync") == 0)
        return measure_sync(argv[2], seconds);
    if (seconds > 0 && strcmp(argv[1], "copy") == 0 && bytes >= 1)
        return measure_copy((size_t)bytes, seconds);
    fprintf(stderr, "usage: limits sync FILE SECONDS | limits copy BYTES SECONDS\n");
    return 1;
}
