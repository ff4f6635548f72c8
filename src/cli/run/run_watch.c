/* pawl run watch: prints the timeline of a run until it ends. */
#include "cli/run/run_verbs.h"

enum { WATCH_POLL_MS_MIN = 50, WATCH_POLL_MS_MAX = 1000 };

static bool has_ended(const char *status)
{
    static const char *const ENDS[] = {"succeeded", "failed", "denied", "cancelled", "timed_out"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        if (strcmp(status, ENDS[i]) == 0)
            return true;
    return false;
}

static void print_event(const struct session *s, const json_t *event)
{
    static const char *const SHOWN[] = {"at", "type", "data"};
    if (s->json) {
        value_print(stdout, event);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++) {
            fputs(i > 0 ? "  " : "", stdout);
            value_print(stdout, json_object_get(event, SHOWN[i]));
        }
    }
    fputc('\n', stdout);
}

/* Prints the events after *seq and advances it; *ret_any: there were some. */
static enum cli_exit print_events(struct session *s, json_int_t *seq, bool *ret_any)
{
    bool json = s->json;
    *ret_any = false;
    for (bool more = true; more;) {
        char cursor[24];
        size_t i;
        json_t *event;
        (void)snprintf(cursor, sizeof(cursor), "%lld", (long long)*seq);
        session_path(s, RUN_PATH, s->args[0], "/events");
        session_query(s, "cursor", cursor);
        s->json = false; /* an event is a line, not a page */
        enum cli_exit rc = session_call(s, "GET", NULL);
        s->json = json;
        if (rc != CLI_DONE)
            return rc;
        json_t *items = json_object_get(s->answer, "items");
        more = json_array_size(items) > 0;
        *ret_any |= more;
        json_array_foreach (items, i, event) {
            *seq = json_integer_value(json_object_get(event, "seq"));
            print_event(s, event);
        }
        (void)fflush(stdout);
    }
    return CLI_DONE;
}

/* Reads the status before the events: a run that has ended by then gets no more events. */
enum cli_exit run_watch(struct session *s)
{
    json_int_t seq = 0;
    int64_t pause_ms = WATCH_POLL_MS_MIN;
    for (;;) {
        bool json = s->json, any;
        char status[32];
        session_path(s, RUN_PATH, s->args[0], "");
        s->json = false;
        enum cli_exit rc = session_call(s, "GET", NULL);
        s->json = json;
        if (rc != CLI_DONE)
            return rc;
        const char *now = json_string_value(json_object_get(s->answer, "status"));
        (void)snprintf(status, sizeof(status), "%s", now != NULL ? now : "");
        rc = print_events(s, &seq, &any);
        if (rc != CLI_DONE)
            return rc;
        if (has_ended(status))
            return strcmp(status, "succeeded") == 0 ? CLI_DONE : CLI_REFUSED;
        pause_ms = any ? WATCH_POLL_MS_MIN : MIN(2 * pause_ms, WATCH_POLL_MS_MAX);
        client_pause(pause_ms);
    }
}
