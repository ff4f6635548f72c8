/* The whole server while each fallible call below a request fails: allocations, files, statements.
 *
 * The script (script.h) has a request for each route. Before a request is made, child processes are
 * forked, each with the server as it is: in one of them the first allocation below the request
 * fails, in another the second, and so on, once and for good. Then the fault is over, the client
 * sends the request again with the same key, and everything must be as if nothing had happened. */
#define _GNU_SOURCE
#include "fault.h"
#include "fault_kind.h"
#include "subject.h"

#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum {
    RETRIES_MAX = 20,
    RETRY_MS = 3000,
    QUIET_MS = 60 * 1000, /* what is done later, as counts, is done by then */
    CHILD_S_MAX = 60,
    ROWS_MAX = 4000,
    FAILURES_SHOWN_MAX = 40,
#ifdef __SANITIZE_ADDRESS__
    LINES_STEP = 11, /* a process costs fifty times as much: only some requests */
#else
    LINES_STEP = 1,
#endif
};

static struct subject subject;

/* What a child tells: in memory that it shares with its parent. */
static struct report {
    bool fired;
    bool done;
    char why[1000]; /* "": nothing is wrong */
    char rows[ROWS_MAX];
} * report;

static _Noreturn void blame(const char *fmt, ...) PRINTF_LIKE(1, 2);

static _Noreturn void blame(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(report->why, sizeof(report->why), fmt, args);
    va_end(args);
    _exit(1);
}

/* --- answers --- */

static bool is_done(const struct script_line *line, const struct sim_exchange *x)
{
    if (!x->answered)
        return false;
    return line->status != 0 ? x->status == line->status : x->status >= 200 && x->status < 400;
}

/* Either it was done, or the client can tell that it should try again. */
static void check_answer(const struct script_line *line, const struct sim_exchange *x)
{
    if (is_done(line, x))
        return;
    if (!x->answered) {
        if (!x->cut && !sim_server_failed(&subject.server) && !crash_disk_is_down(subject.disk))
            blame("there was no answer");
        return;
    }
    json_t *json = json_loadb(x->body.ptr, x->body.len, 0, NULL);
    const char *code = json_string_value(json_object_get(json, "code"));
    if (code == NULL || json_integer_value(json_object_get(json, "status")) != x->status)
        blame("the answer is no clean problem: %d %.*s", x->status, STR_ARG(buf_str(&x->body)));
    if (!json_is_true(json_object_get(json, "retryable")))
        blame("the client was told not to try again: %d %.*s", x->status,
              STR_ARG(buf_str(&x->body)));
    json_decref(json);
}

/* As a client that means to get its answer. */
static void ask_until_done(const struct script_line *line, const char *key)
{
    for (int tries = 0;; tries++) {
        struct sim_exchange *x = subject_ask(&subject, line, key);
        bool done = is_done(line, x);
        if (!done && tries == RETRIES_MAX)
            blame("it is not answered any more: %d %.*s", x->status, STR_ARG(buf_str(&x->body)));
        sim_http_close(x);
        (void)subject_revive(&subject);
        if (done)
            return;
        subject_pass_ms(&subject, RETRY_MS);
    }
}

static void check_doctor(void)
{
    static const struct script_line DOCTOR = {.method = "GET", .target = "/api/v1/doctor"};
    struct sim_exchange *x = subject_ask(&subject, &DOCTOR, NULL);
    json_t *json = json_loadb(x->body.ptr, x->body.len, 0, NULL);
    if (!is_done(&DOCTOR, x) || !json_is_true(json_object_get(json, "ok")))
        blame("the doctor finds: %.*s", STR_ARG(buf_str(&x->body)));
    json_decref(json);
    sim_http_close(x);
}

static void check_leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
    if (__lsan_do_recoverable_leak_check() != 0)
        blame("memory was lost");
#endif
}

/* --- one fault, in a process of its own --- */

static const char *key_of(const struct script_line *line)
{
    static char key[32];
    (void)snprintf(key, sizeof(key), "key-%d", (int)(line - SCRIPT));
    return key;
}

static _Noreturn void suffer(const struct script_line *line, const struct fault_kind *kind, long n,
                             bool lasting)
{
    (void)alarm(CHILD_S_MAX);
    fault_kind_arm(kind, subject.disk, n, lasting);
    struct sim_exchange *x = subject_ask(&subject, line, key_of(line));
    report->fired = fault_kind_disarm(kind, subject.disk);
    check_answer(line, x);
    sim_http_close(x);
    (void)subject_revive(&subject);
    subject_pass_ms(&subject, RETRY_MS);
    ask_until_done(line, key_of(line));
    subject_pass_ms(&subject, QUIET_MS);
    check_doctor();
    struct buf rows;
    buf_init(&rows, sizeof(report->rows) - 1);
    subject_count_rows(&subject, &rows);
    (void)snprintf(report->rows, sizeof(report->rows), "%s", rows.ptr);
    buf_release(&rows);
    subject_stop(&subject);
    if (subject.why[0] != '\0')
        blame("%s", subject.why);
    check_leaks();
    report->done = true;
    _exit(0);
}

/* True when the nth call failed. */
static bool try(const struct script_line *line, const struct fault_kind *kind, long n, bool lasting)
{
    memset(report, 0, sizeof(*report));
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        suffer(line, kind, n, lasting);
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (!report->done && report->why[0] == '\0')
        (void)snprintf(report->why, sizeof(report->why), "the process died: %s %d",
                       WIFSIGNALED(status) ? "signal" : "exit",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return report->fired || (!report->done && n > 0);
}

/* --- all of them --- */

static struct {
    long tried;
    long failed;
} totals;

static void show_failure(const struct script_line *line, const struct fault_kind *kind, long n,
                         bool lasting)
{
    if (++totals.failed <= FAILURES_SHOWN_MAX)
        (void)printf("FAIL line %d, %s %s: %s %ld%s: %s\n", (int)(line - SCRIPT), line->method,
                     line->target, kind->name, n, lasting ? " and all after it" : "", report->why);
}

/* Names the first table that differs. */
static void blame_rows(const char *wanted)
{
    size_t i = 0;
    while (wanted[i] == report->rows[i])
        i++;
    while (i > 0 && wanted[i - 1] != ' ')
        i--;
    (void)snprintf(report->why, sizeof(report->why), "rows: %.*s, should be %.*s",
                   (int)strcspn(report->rows + i, " "), report->rows + i,
                   (int)strcspn(wanted + i, " "), wanted + i);
}

/* Each request starts at another call, so that together they meet calls of every number. `rows`: as
 * they are without a fault. */
static void torture_line(const struct script_line *line, const struct fault_kind *kind,
                         const char *rows)
{
    long step = fault_kind_step(kind);
    long first = 1 + (line - SCRIPT) * 37 % step;
    long end = LONG_MAX; /* there are fewer calls than that */
    for (int lasting = 0; lasting <= 1; lasting++) {
        for (long n = first; n < end; n += step) {
            if (!try(line, kind, n, lasting)) {
                end = n;
                break;
            }
            totals.tried++;
            bool call_is_lost = line->calls_out && kind->commit_happened;
            if (report->why[0] == '\0' && !call_is_lost && strcmp(rows, report->rows) != 0)
                blame_rows(rows);
            if (report->why[0] != '\0')
                show_failure(line, kind, n, lasting);
        }
    }
}

/* The request without any fault, for the lines after it. */
static void go_on(const struct script_line *line)
{
    struct sim_exchange *x = subject_ask(&subject, line, key_of(line));
    if (!is_done(line, x)) {
        (void)fprintf(stderr, "torture: %s %s: %d %.*s\n", line->method, line->target, x->status,
                      STR_ARG(buf_str(&x->body)));
        exit(1);
    }
    script_keep(line, buf_str(&x->body));
    if (strcmp(line->method, "GET") != 0)
        script_keep_value("key", key_of(line));
    sim_http_close(x);
}

/* --- which --- */

/* From the command line, to look at one failure: a line, a kind of fault, a call. */
static struct {
    const char *line; /* NULL: all */
    const char *kind;
    long n;
    bool lasting;
} only;

static bool is_line_chosen(const struct script_line *line)
{
    return only.line != NULL ? strtol(only.line, NULL, 10) == line - SCRIPT
                             : (line - SCRIPT) % LINES_STEP == LINES_STEP / 2;
}

static void torture_by_all(const struct script_line *line, const struct fault_kind *kinds)
{
    char rows[ROWS_MAX];
    if (!is_line_chosen(line))
        return;
    (void)try(line, kinds, 0, false);
    if (report->why[0] != '\0')
        show_failure(line, kinds, 0, false);
    (void)snprintf(rows, sizeof(rows), "%s", report->rows);
    for (const struct fault_kind *kind = kinds; kind->name != NULL; kind++) {
        if (only.kind != NULL && strcmp(only.kind, kind->name) != 0)
            continue;
        if (only.n == 0) {
            torture_line(line, kind, rows);
        } else {
            (void)try(line, kind, only.n, only.lasting);
            (void)printf("%s\n", report->why);
        }
    }
}

static void torture_all(const char *scheme, const char *folder)
{
    subject_start(&subject, scheme, folder);
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        subject_pass_ms(&subject, SCRIPT[i].wait_ms);
        torture_by_all(&SCRIPT[i], fault_kinds(scheme));
        go_on(&SCRIPT[i]);
    }
    subject_stop(&subject);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

/* torture_server [STORE [LINE [KIND [N [lasting]]]]]; STORE is sqlite or failing (fault_kind.h). */
int main(int argc, char **argv)
{
    char base[] = "/tmp/pawl-torture-XXXXXX";
    char folder[sizeof(base) + 8];
    const char *lacks = script_lacks();
    if (lacks != NULL) {
        (void)fprintf(stderr, "torture: the script has no request for %s\n", lacks);
        return 1;
    }
    only.line = argc > 2 ? argv[2] : NULL;
    only.kind = argc > 3 ? argv[3] : NULL;
    only.n = argc > 4 ? strtol(argv[4], NULL, 10) : 0;
    only.lasting = argc > 5;
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED || mkdtemp(base) == NULL)
        return 1;
    (void)snprintf(folder, sizeof(folder), "%s/store", base);
    crash_vfs_register();
    torture_all(argc > 1 ? argv[1] : "sqlite", folder);
    (void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)printf("%ld faults in %zu requests, %ld failures\n", totals.tried, SCRIPT_COUNT,
                 totals.failed);
    (void)printf("[  %s  ] %zu test(s).\n", totals.failed == 0 ? "PASSED" : "FAILED", SCRIPT_COUNT);
    return totals.failed == 0 ? 0 : 1;
}
