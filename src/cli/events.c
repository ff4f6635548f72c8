/* pawl events: follows the event stream of a tenant. */
#include "cli/commands.h"

#include "base/limits.h"

enum {
    LINE_MAX_BYTES = 8 * MIB, /* one event */
    PAUSE_MS_MIN = 100,
    PAUSE_MS_MAX = 5 * 1000,
};

static const struct option OPTIONS[] = {
    {.name = "type",
     .value = "TYPE",
     .help = "Only events of this type, or of types that match a pattern such as run.*",
     .many = true},
    {.name = "after",
     .value = "ID",
     .help = "Start after this event; 0-0 starts with the oldest (default: new events only)"},
    {.name = "count",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Stop after this many events"},
    {.name = NULL},
};

static enum cli_exit events(struct session *s);

static const struct verb VERBS[] = {
    {.about = "Print the events of a tenant as they happen",
     .notes =
         "When the connection breaks, it reconnects and continues where it was.\n\nWith --json, "
         "each event is a line: the CloudEvents object and its position as \"pawlplace\".\n",
     .options = OPTIONS,
     .run = events},
};

const struct command COMMAND_EVENTS = {"events", "Follow the events of a tenant", VERBS,
                                       ARRAY_LEN(VERBS)};

/* The stream so far. */
struct tail {
    struct session *s;
    struct buf line;
    char id[64];   /* of the event being read */
    char last[64]; /* of the last one printed; "": none */
    json_t *data;
    int64_t left;   /* events to print; -1: no limit */
    bool answered;  /* the server has answered at least once */
    bool too_large; /* an event is larger than LINE_MAX_BYTES */
};

static void print_event(struct tail *t)
{
    static const char *const SHOWN[] = {"time", "type", "subject"};
    if (t->s->json) {
        (void)json_object_set_new(t->data, "pawlplace", json_string(t->id));
        (void)json_dumpf(t->data, stdout, JSON_COMPACT);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++) {
            value_print(stdout, json_object_get(t->data, SHOWN[i]));
            fputs("  ", stdout);
        }
        value_print(stdout, json_object_get(t->data, "data"));
    }
    putchar('\n');
    (void)fflush(stdout);
}

/* An empty line ends an event. */
static void end_event(struct tail *t)
{
    if (t->data == NULL)
        return;
    if (json_object_get(t->data, "specversion") != NULL) {
        print_event(t);
        t->left -= t->left > 0;
    } else {
        fputs("pawl: Some events are missing here: the server has already deleted them\n", stderr);
    }
    memcpy(t->last, t->id, sizeof(t->last));
    json_decref(t->data);
    t->data = NULL;
}

static void end_line(struct tail *t)
{
    struct str line = buf_str(&t->line);
    if (line.len == 0) {
        end_event(t);
    } else if (str_starts_with(line, STR("id: "))) {
        (void)snprintf(t->id, sizeof(t->id), "%.*s", (int)(line.len - 4), line.ptr + 4);
    } else if (str_starts_with(line, STR("data: "))) {
        json_decref(t->data);
        t->data = json_loadb(line.ptr + 6, line.len - 6, 0, NULL);
    }
    buf_clear(&t->line);
}

/* False closes the connection. */
static bool take(void *ctx, struct str bytes)
{
    struct tail *t = ctx;
    for (size_t i = 0; i < bytes.len && t->left != 0; i++) {
        if (bytes.ptr[i] == '\n')
            end_line(t);
        else
            buf_put_char(&t->line, bytes.ptr[i]);
    }
    t->too_large = !buf_ok(&t->line);
    return !t->too_large && t->left != 0 && !ferror(stdout);
}

static void make_request(struct session *s, const char *after)
{
    struct buf types;
    size_t at = 0;
    buf_init(&types, HTTP_HEAD_MAX);
    for (const char *type; (type = options_next(&s->opt, "type", &at)) != NULL;) {
        if (types.len > 0)
            buf_put_char(&types, ',');
        buf_put(&types, str_of(type));
    }
    session_path(s, "/api/v1/events", "", "");
    session_query(s, "types", types.len > 0 && buf_ok(&types) ? types.ptr : NULL);
    session_query(s, "after", after);
    buf_release(&types);
}

/* Reads until the connection closes. *ret_again: reconnect. */
static enum cli_exit follow_once(struct session *s, struct tail *t, bool *ret_again)
{
    make_request(s, t->last[0] != '\0' ? t->last : options_text(&s->opt, "after"));
    struct request req = {.method = "GET", .path = buf_str(&s->path), .take = take, .take_ctx = t};
    buf_clear(&t->line);
    json_decref(t->data);
    t->data = NULL;
    enum cli_exit rc = client_send(&s->client, &req, &s->reply);
    struct curl_header *begin = NULL; /* where the stream starts, if we did not say */
    if (t->last[0] == '\0' &&
        curl_easy_header(s->client.curl, "Last-Event-ID", 0, CURLH_HEADER, -1, &begin) == CURLHE_OK)
        (void)snprintf(t->last, sizeof(t->last), "%s", begin->value);
    long status = 0;
    curl_easy_getinfo(s->client.curl, CURLINFO_RESPONSE_CODE, &status);
    t->answered |= status == 200;
    bool refused = rc == CLI_DONE && s->reply.status >= 300 && s->reply.status != 503;
    if (refused)
        session_refused(s);
    else if (t->too_large)
        fprintf(stderr, "pawl: An event is larger than %d MiB\n", LINE_MAX_BYTES / MIB);
    *ret_again = !refused && !t->too_large && t->left != 0 && !ferror(stdout);
    return refused || t->too_large ? CLI_REFUSED : rc;
}

static enum cli_exit events(struct session *s)
{
    struct tail t = {.s = s, .left = options_number(&s->opt, "count", -1)};
    int64_t pause_ms = PAUSE_MS_MIN;
    bool again = true;
    bool away = false;
    enum cli_exit rc = CLI_DONE;
    buf_init(&t.line, LINE_MAX_BYTES);
    while (again) {
        rc = follow_once(s, &t, &again);
        bool lost = again && rc != CLI_DONE;
        if (lost && !away)
            session_unreachable(s); /* print it once, until the server answers again */
        if (lost && !t.answered)
            break;
        pause_ms = lost && away ? MIN(2 * pause_ms, PAUSE_MS_MAX) : PAUSE_MS_MIN;
        away = lost;
        if (again)
            client_pause(pause_ms);
    }
    json_decref(t.data);
    buf_release(&t.line);
    return t.left == 0 ? CLI_DONE : rc;
}
