/* The server under torture. */
#define _GNU_SOURCE
#include "subject.h"

#include "api/api.h"
#include "base/log.h"
#include "fault.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* 2027-01-15 */
#define BEGIN_NS (INT64_C(1800000000) * 1000000000)
#define MS INT64_C(1000000)

enum {
    ANSWER_MS_MAX = 5 * 60 * 1000,
    STOPS_MAX = 10, /* while time passes; then it wakes late */
};

static struct subject *subject;

/* --- only the server's own calls fail, not the simulator's --- */

void __real_api_handle(void *ctx, struct http_request *req);
void __wrap_api_handle(void *ctx, struct http_request *req);
void __real_http_send(struct http_request *req, const struct http_reply *reply);
void __wrap_http_send(struct http_request *req, const struct http_reply *reply);
void __real_http_send_stream(struct http_request *req, const struct http_reply *reply,
                             const struct http_source *source);
void __wrap_http_send_stream(struct http_request *req, const struct http_reply *reply,
                             const struct http_source *source);
void __real_http_stream_wake(struct http_request *req);
void __wrap_http_stream_wake(struct http_request *req);

void __wrap_api_handle(void *ctx, struct http_request *req)
{
    fault_spare_thread(false);
    __real_api_handle(ctx, req);
    fault_spare_thread(true);
}

void __wrap_http_send(struct http_request *req, const struct http_reply *reply)
{
    fault_spare_thread(true);
    __real_http_send(req, reply);
    fault_spare_thread(false);
}

void __wrap_http_send_stream(struct http_request *req, const struct http_reply *reply,
                             const struct http_source *source)
{
    fault_spare_thread(true);
    __real_http_send_stream(req, reply, source);
    fault_spare_thread(false);
}

void __wrap_http_stream_wake(struct http_request *req)
{
    fault_spare_thread(true);
    __real_http_stream_wake(req);
    fault_spare_thread(false);
}

/* --- its world --- */

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, ...);

/* A backup is opened without SQLite: the crash disk has no file system for that. */
int __wrap_open(const char *path, int flags, ...)
{
    size_t len = 0;
    const char *folder = subject->server.folder;
    const char *bytes = NULL;
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_CREAT) == 0 && strncmp(path, folder, strlen(folder)) == 0)
        bytes = crash_disk_read_file(subject->disk, path + strlen(folder) + 1, &len);
    if (bytes == NULL)
        return __real_open(path, flags, mode);
    int fd = memfd_create("backup", MFD_CLOEXEC);
    ssize_t written = write(fd, bytes, len);
    assert(written == (ssize_t)len);
    (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

void __wrap_log_line(enum log_level level, const char *message, const struct log_field *fields,
                     size_t count);

/* A bug that the server reports about itself is a failure. */
void __wrap_log_line(enum log_level level, const char *message, const struct log_field *fields,
                     size_t count)
{
    (void)level;
    if (getenv("PAWL_TORTURE_LOG") != NULL) {
        (void)fprintf(stderr, "  log: %s", message);
        for (size_t i = 1; i < count; i++)
            (void)fprintf(stderr, " %s=%.*s", fields[i].name, STR_ARG(fields[i].text));
        (void)fprintf(stderr, "\n");
    }
    if (strncmp(message, "a bug", 5) == 0 && subject->why[0] == '\0')
        (void)snprintf(subject->why, sizeof(subject->why), "the server reports %s (%s: %.*s)",
                       message, count > 1 ? fields[1].name : "",
                       count > 1 ? (int)fields[1].text.len : 0,
                       count > 1 ? fields[1].text.ptr : "");
}

static uint64_t draw(void *ctx, uint64_t below)
{
    static uint64_t state = 1;
    (void)ctx;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 16) % below;
}

static int64_t receive(void *ctx, struct http_call *call)
{
    (void)ctx;
    call->end = CALL_ANSWERED;
    call->status = 500;
    return 10;
}

static bool bus_connect(struct bus *bus)
{
    (void)bus;
    return true;
}

static void bus_publish(struct bus *bus, struct bus_message *messages, size_t count)
{
    (void)bus;
    for (size_t i = 0; i < count; i++) {
        bool refused = memmem(messages[i].body.ptr, messages[i].body.len, "too.large", 9) != NULL;
        messages[i].result = refused ? BUS_REFUSED : BUS_STORED;
        messages[i].why[0] = '\0';
    }
}

static void bus_state(struct bus *bus, struct bus_state *ret)
{
    (void)bus;
    *ret = (struct bus_state){.ok = true};
}

static void bus_nothing(struct bus *bus)
{
    (void)bus;
}

static struct bus a_bus = {"a bus", bus_connect, bus_publish, bus_state, bus_nothing, bus_nothing};

static int64_t sqlite_clock(void *ctx)
{
    (void)ctx;
    return fibers_now_ns() / MS;
}

/* --- life --- */

static void start_server(struct subject *s)
{
    struct problem p;
    problem_init(&p);
    if (!sim_server_start(&s->server, &p)) {
        (void)fprintf(stderr, "torture: the server does not start: %s\n", p.detail);
        abort();
    }
    problem_release(&p);
    sim_server_settle(&s->server);
}

void subject_start(struct subject *s, const char *scheme, const char *folder)
{
    char mount[64];
    subject = s;
    *s = (struct subject){.receiver = {receive, NULL}};
    (void)snprintf(mount, sizeof(mount), "%s/", folder);
    s->disk = crash_disk_new();
    crash_disk_mount(s->disk, mount);
    fibers_begin(BEGIN_NS, 0, draw, NULL);
    crash_vfs_set_clock(sqlite_clock, NULL);
    struct sim_server_config config = {.draw = draw,
                                       .receiver = &s->receiver,
                                       .bus = &a_bus,
                                       .keys = true,
                                       .skew_us = &s->skew_us};
    sim_server_init(&s->server, &config, s->disk, folder);
    (void)snprintf(s->server.url, sizeof(s->server.url), "%s:%s/p.db", scheme, folder);
    start_server(s);
}

bool subject_revive(struct subject *s)
{
    if (!sim_server_failed(&s->server) && !crash_disk_is_down(s->disk))
        return false;
    sim_server_bury(&s->server);
    if (crash_disk_counts(s->disk)->touched_after_failed_sync > 0 && s->why[0] == '\0')
        (void)snprintf(s->why, sizeof(s->why), "the files were touched after a failed sync");
    if (!crash_disk_is_down(s->disk))
        crash_disk_kill(s->disk);
    crash_disk_restart(s->disk);
    start_server(s);
    return true;
}

void subject_stop(struct subject *s)
{
    sim_server_stop(&s->server);
    crash_disk_free(s->disk);
}

static void settle(struct subject *s)
{
    fault_spare_thread(false);
    sim_server_settle(&s->server);
    fault_spare_thread(true);
}

void subject_pass_ms(struct subject *s, int64_t ms)
{
    int64_t until = fibers_now_ns() + ms * MS;
    for (int stops = 0; fibers_now_ns() < until; stops++) {
        int64_t now = fibers_now_ns();
        int64_t next = MAX(sim_server_next_ns(&s->server), now + MS);
        fibers_pass_ns((stops < STOPS_MAX ? MIN(next, until) : until) - now);
        settle(s);
    }
}

/* --- requests --- */

static struct sim_exchange *send(struct subject *s, const struct script_line *line,
                                 const char *target, struct str body, const char *key)
{
    struct sim_header headers[8];
    size_t count = 0;
    headers[count++] = (struct sim_header){"Host", "127.0.0.1:7295"};
    headers[count++] = (struct sim_header){"X-API-Key", SIM_ROOT_KEY};
    if (line->tenant != NULL)
        headers[count++] = (struct sim_header){"X-Tenant-ID", line->tenant};
    if (strcmp(line->method, "GET") != 0)
        headers[count++] = (struct sim_header){"Idempotency-Key", key};
    if (line->body != NULL)
        headers[count++] = (struct sim_header){"Content-Type", "application/json"};
    struct sim_request request = {.method = line->method,
                                  .target = target,
                                  .headers = headers,
                                  .header_count = count,
                                  .body = body};
    return sim_http_send(s->server.http, &request);
}

struct sim_exchange *subject_ask(struct subject *s, const struct script_line *line, const char *key)
{
    struct buf target;
    struct buf body;
    fault_spare_thread(true);
    script_fill(line->target, &target);
    script_fill(line->body != NULL ? line->body : "", &body);
    struct sim_exchange *x = send(s, line, target.ptr, (struct str){body.ptr, body.len - 1}, key);
    settle(s);
    int64_t until = fibers_now_ns() + ANSWER_MS_MAX * MS;
    while (!x->answered && !x->cut && fibers_now_ns() < until && !sim_server_failed(&s->server) &&
           !crash_disk_is_down(s->disk))
        subject_pass_ms(s, 1000);
    buf_release(&target);
    buf_release(&body);
    return x;
}

/* --- the store --- */

static void query(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    if (sqlite3_prepare_v2(db, sql, -1, ret, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "torture: %s: %s\n", sql, sqlite3_errmsg(db));
        abort();
    }
}

void subject_count_rows(struct subject *s, struct buf *ret)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL;
    char path[96];
    (void)snprintf(path, sizeof(path), "%s/p.db", s->server.folder);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    assert(rc == SQLITE_OK);
    /* How many runs a block has, and how many rows a pack, depends on when it was filled: they are
     * counted one by one. */
    query(db,
          "SELECT CASE name WHEN 'run_blocks' THEN 'runs_index' WHEN 'feed_packs' THEN 'feed'"
          " ELSE name END FROM sqlite_master"
          " WHERE type = 'table' AND name NOT IN ('dedup_stats', 'dedup_totals', 'minutes')"
          " ORDER BY name",
          &tables);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(tables, 0);
        sqlite3_stmt *count = NULL;
        char sql[200];
        (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM \"%s\"", name);
        query(db, sql, &count);
        rc = sqlite3_step(count);
        assert(rc == SQLITE_ROW);
        buf_printf(ret, "%s=%d ", name, sqlite3_column_int(count, 0));
        sqlite3_finalize(count);
    }
    sqlite3_finalize(tables);
    sqlite3_close(db);
}
