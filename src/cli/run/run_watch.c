/* pawl run watch: a live tree on a terminal, elsewhere a line for each event. */
#include "cli/run/run_verbs.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/run/run_tree.h"
#include "cli/run/timeline.h"

enum {
    WATCH_POLL_MS_MIN = 50,
    WATCH_POLL_MS_MAX = 1000,
    FRAME_MS = 100, /* between two pictures of a live tree */
    PICTURE_MAX = 4 * MIB,
};

struct watch {
    struct session *s;
    struct term term;
    bool is_live;
    json_int_t seq;   /* of the last event */
    bool any;         /* the last look found events */
    json_t *run;      /* as it was at the last look */
    json_t *failures; /* for the tree */
    size_t drawn;     /* lines on the screen that the next picture replaces */
    unsigned frame;
};

static enum cli_exit look(struct watch *w);
static enum cli_exit take_events(struct watch *w);
static void take_event(struct watch *w, const json_t *event);
static void draw(struct watch *w);

bool run_status_is_end(const char *status)
{
    static const char *const ENDS[] = {"succeeded", "failed", "denied", "cancelled", "timed_out"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        if (strcmp(status, ENDS[i]) == 0)
            return true;
    return false;
}

/* Waits so long; a live tree goes on moving meanwhile. */
static void pause_between_looks(struct watch *w, int64_t ms)
{
    for (; w->is_live && ms > FRAME_MS; ms -= FRAME_MS) {
        client_pause(FRAME_MS);
        draw(w);
    }
    client_pause(ms);
}

enum cli_exit run_watch(struct session *s)
{
    struct watch w = {.s = s, .term = term_of(stdout), .failures = json_object()};
    int64_t pause_ms = WATCH_POLL_MS_MIN;
    const char *status = "";
    w.is_live = w.term.is_terminal && !s->json;
    enum cli_exit rc = look(&w);
    while (rc == CLI_DONE) {
        status = json_string_value(json_object_get(w.run, "status"));
        if (status == NULL || run_status_is_end(status))
            break;
        pause_ms = w.any ? WATCH_POLL_MS_MIN : MIN(2 * pause_ms, WATCH_POLL_MS_MAX);
        pause_between_looks(&w, pause_ms);
        rc = look(&w);
    }
    if (rc == CLI_DONE && (status == NULL || strcmp(status, "succeeded") != 0))
        rc = CLI_REFUSED;
    json_decref(w.run);
    json_decref(w.failures);
    return rc;
}

/* Reads the run before the events: a run that has ended by then gets no more events. */
static enum cli_exit look(struct watch *w)
{
    session_path(w->s, RUN_PATH, w->s->args[0], "");
    enum cli_exit rc = session_call_silently(w->s, "GET");
    if (rc != CLI_DONE)
        return rc;
    json_decref(w->run);
    w->run = json_incref(w->s->answer);
    rc = take_events(w);
    if (rc == CLI_DONE && w->is_live)
        draw(w);
    return rc;
}

static enum cli_exit take_events(struct watch *w)
{
    w->any = false;
    for (bool more = true; more;) {
        char cursor[24];
        size_t i;
        json_t *event;
        (void)snprintf(cursor, sizeof(cursor), "%lld", (long long)w->seq);
        session_path(w->s, RUN_PATH, w->s->args[0], "/events");
        session_query(w->s, "cursor", cursor);
        enum cli_exit rc = session_call_silently(w->s, "GET");
        if (rc != CLI_DONE)
            return rc;
        json_t *items = json_object_get(w->s->answer, "items");
        more = json_array_size(items) > 0;
        w->any |= more;
        json_array_foreach (items, i, event)
            take_event(w, event);
        (void)fflush(stdout);
    }
    return CLI_DONE;
}

static void take_event(struct watch *w, const json_t *event)
{
    w->seq = json_integer_value(json_object_get(event, "seq"));
    if (w->s->json) {
        value_print(stdout, event);
        putchar('\n');
        return;
    }
    if (w->is_live) {
        run_tree_note(w->failures, event);
        return;
    }
    struct buf line;
    buf_init(&line, PICTURE_MAX);
    timeline_put(&line, &w->term, event);
    printf("%.*s", STR_ARG(buf_str(&line)));
    buf_release(&line);
}

/* The cursor is below the picture before; ESC [ J clears from there to the end of the screen. */
static void draw(struct watch *w)
{
    struct buf picture;
    w->term = term_of(stdout);
    struct run_tree tree = {.run = w->run,
                            .failures = w->failures,
                            .term = &w->term,
                            .now_ms = env_now_ms(&ENV_SYSTEM),
                            .frame = w->frame++};
    buf_init(&picture, PICTURE_MAX);
    if (w->drawn > 0)
        buf_printf(&picture, "\r\x1b[%zuA\x1b[J", w->drawn);
    size_t from = picture.len;
    run_tree_put_head(&picture, &tree);
    run_tree_put(&picture, &tree, w->term.rows - 1);
    w->drawn = 0;
    for (size_t i = from; i < picture.len; i++)
        w->drawn += picture.ptr[i] == '\n';
    fwrite(picture.ptr, 1, picture.len, stdout);
    (void)fflush(stdout);
    buf_release(&picture);
}
