/* pawl backup: a copy of the data that the server makes while it runs. */
#define _GNU_SOURCE /* renameat2 */
#include "base/limits.h"
#include "cli/commands.h"
#include "cli/term/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKUP_TIMEOUT_S = 600 }; /* without a single byte */

static const char MAGIC[16] = "SQLite format 3";

static const struct option OPTIONS[] = {
    {.name = "to", .value = "FILE", .help = "The file to write", .required = true},
    {.name = "force", .kind = OPTION_SWITCH, .help = "Replace FILE if it exists"},
    {.name = NULL},
};

static enum cli_exit backup(struct session *s);

static const struct verb VERBS[] = {
    {.about = "Copy the data into an SQLite file, while the server runs",
     .options = OPTIONS,
     .run = backup,
     .store = true,
     .timeout_s = BACKUP_TIMEOUT_S},
};

const struct command COMMAND_BACKUP = {"backup", "Copy the data into a file", VERBS,
                                       ARRAY_LEN(VERBS)};

/* Opens the partial file and locks it against a second backup. The comparison of inodes detects a
 * backup that finished between open and flock. The file of an interrupted backup is reused. Returns
 * -1 and sets errno on failure. */
static int open_partial(const char *partial)
{
    struct stat mine, named;
    int fd = open(partial, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &mine) == 0 && stat(partial, &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
        return fd;
    close(fd);
    errno = EBUSY;
    return -1;
}

static void show_progress(void *ctx, int64_t done, int64_t total)
{
    struct progress *progress = ctx;
    progress->total = total;
    progress_update(progress, done);
}

static enum cli_exit receive(struct session *s, int fd)
{
    session_path(s, "/api/v1/backup", "", "");
    struct progress progress = progress_begin("bytes", 0);
    struct request req = {.method = "GET",
                          .path = buf_str(&s->path),
                          .to_file = true,
                          .file_fd = fd,
                          .progress = show_progress,
                          .progress_ctx = &progress};
    enum cli_exit rc = client_send(&s->client, &req, &s->reply);
    progress_end(&progress);
    if (rc != CLI_DONE) {
        session_unreachable(s);
        return rc;
    }
    if (s->reply.status != 200) {
        session_refused(s);
        return CLI_REFUSED;
    }
    char head[sizeof(MAGIC)];
    if (pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, MAGIC, sizeof(head)) == 0)
        return CLI_DONE;
    fprintf(stderr, "pawl: The server did not send an SQLite file\n");
    return CLI_REFUSED;
}

/* The file's name is durable once its directory is. */
static bool sync_directory_of(const char *file)
{
    char name[PATH_MAX];
    (void)snprintf(name, sizeof(name), "%s", file);
    int fd = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

static bool put_in_place(int fd, const char *partial, const char *file, bool force)
{
    if (fsync(fd) != 0)
        return false;
    int moved = renameat2(AT_FDCWD, partial, AT_FDCWD, file, force ? 0 : RENAME_NOREPLACE);
    /* Some file systems have only the plain rename; backup() checked that the name is free. */
    if (moved != 0 && errno == EINVAL)
        moved = rename(partial, file);
    return moved == 0 && sync_directory_of(file);
}

static void show_written(const struct session *s, const char *file, int64_t size)
{
    if (!s->json) {
        printf("%s  %lld bytes\n", file, (long long)size);
        return;
    }
    struct buf line;
    buf_init(&line, 2 * PATH_MAX);
    struct json_out out = json_out_to(&line);
    json_open(&out, NULL, '{');
    json_add_text(&out, "file", str_of(file));
    json_add_int(&out, "bytes", size);
    json_close(&out, '}');
    printf("%.*s\n", STR_ARG(buf_str(&line)));
    buf_release(&line);
}

static enum cli_exit backup(struct session *s)
{
    const char *file = options_text(&s->opt, "to");
    bool force = options_has(&s->opt, "force");
    char partial[PATH_MAX];
    struct stat info;
    if ((size_t)snprintf(partial, sizeof(partial), "%s.partial", file) >= sizeof(partial)) {
        fprintf(stderr, "pawl: The name of the file is too long\n");
        return CLI_USAGE;
    }
    if (!force && access(file, F_OK) == 0) {
        fprintf(stderr, "pawl: %s exists. To replace it, add --force\n", file);
        return CLI_REFUSED;
    }
    int fd = open_partial(partial);
    if (fd < 0) {
        fprintf(stderr, "pawl: %s: %s\n", partial,
                errno == EBUSY ? "another backup is writing it" : strerror(errno));
        return CLI_REFUSED;
    }
    enum cli_exit rc = receive(s, fd);
    if (rc != CLI_DONE) {
        (void)unlink(partial);
    } else if (fstat(fd, &info) != 0 || !put_in_place(fd, partial, file, force)) {
        fprintf(stderr, "pawl: %s: %s\n", file, strerror(errno));
        (void)unlink(partial);
        rc = CLI_REFUSED;
    } else {
        show_written(s, file, info.st_size);
    }
    close(fd);
    return rc;
}
