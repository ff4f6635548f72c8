/* One command in progress. */
#include "cli/session.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/input.h"

#include <unistd.h>

enum { TIMEOUT_DEFAULT_S = 30, TIMEOUT_MAX_S = 24 * 3600 };

#define DEFAULT_URL "http://127.0.0.1:7295"

const struct option SESSION_COMMON_OPTIONS[] = {
    {.name = "url",
     .value = "URL",
     .help = "The server (default " DEFAULT_URL ")",
     .variable = "PAWL_URL"},
    {.name = "context",
     .value = "NAME",
     .help = "The server of this context, instead of the current one of `pawl context`",
     .variable = "PAWL_CONTEXT"},
    {.name = "api-key",
     .value = "KEY",
     .help = "Your API key; prefer the variable, because other users can see command lines",
     .variable = "PAWL_API_KEY"},
    {.name = "tenant", .value = "ID", .help = "The tenant to act for", .variable = "PAWL_TENANT"},
    {.name = "actor",
     .value = "NAME",
     .help = "Your name, for a server in development mode",
     .variable = "PAWL_ACTOR"},
    {.name = "ca-file",
     .value = "FILE",
     .help = "PEM certificates to trust for HTTPS",
     .variable = "PAWL_CA_FILE"},
    {.name = "idempotency-key",
     .value = "KEY",
     .help = "Makes the command safe to repeat: pawl carries out each key once (default: random)"},
    {.name = "timeout-s",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = TIMEOUT_MAX_S,
     .unit = "seconds",
     .help = "Time limit of each of up to four attempts, in seconds (default 30; 600 for long "
             "checks and backups)"},
    {.name = "json",
     .kind = OPTION_SWITCH,
     .help = "Print the server's JSON answer on one line, for programs"},
    {.name = NULL},
};

const struct option SESSION_STORE_OPTIONS[] = {
    {.name = "store",
     .value = "sqlite:PATH|postgres://…",
     .help = "Work on this store; the variable counts only when no URL is set",
     .variable = "PAWL_STORE"},
    {.name = NULL},
};

static enum cli_exit find_server(struct session *s);
static void print_raw(struct str json);
static bool take_answer(struct session *s);

static bool parse(struct session *s, int argc, char **argv, int from)
{
    struct problem problem;
    problem_init(&problem);
    enum err e = options_parse(&s->opt, argc, argv, from, &problem);
    if (e != ERR_OK)
        fprintf(stderr, "pawl: %s\n", problem.detail);
    problem_release(&problem);
    return e == ERR_OK;
}

/* The value of a common option, though the verb may have an option of the same name. */
static const char *common_text(const struct session *s, const char *name)
{
    const struct option *option = SESSION_COMMON_OPTIONS;
    while (strcmp(option->name, name) != 0)
        option++;
    return options_value(&s->opt, option);
}

static bool is_given_common(const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->opt.value_count; i++)
        if (s->opt.values[i].is_given && s->opt.values[i].option >= SESSION_COMMON_OPTIONS &&
            s->opt.values[i].option < SESSION_COMMON_OPTIONS + ARRAY_LEN(SESSION_COMMON_OPTIONS) &&
            strcmp(s->opt.values[i].option->name, name) == 0)
            return true;
    return false;
}

enum cli_exit session_open(struct session *s, const struct verb *verb, int argc, char **argv,
                           int from)
{
    *s = (struct session){.verb = verb};
    s->opt.lists[0] = verb->options;
    s->opt.lists[1] = verb->store ? SESSION_STORE_OPTIONS : NULL;
    s->opt.lists[2] = verb->local ? NULL : SESSION_COMMON_OPTIONS;
    s->opt.arguments = verb->arguments;
    s->opt.command = verb->command;
    buf_init(&s->path, HTTP_HEAD_MAX);
    buf_init(&s->body, HTTP_BODY_MAX + 64 * KIB);
    s->out = json_out_to(&s->body);
    reply_init(&s->reply);
    buf_init(&s->key, 64 * KIB);
    if (!parse(s, argc, argv, from))
        return CLI_USAGE;
    if (s->opt.help)
        return CLI_DONE;
    s->args = s->opt.args;
    if (verb->local)
        return CLI_DONE;
    s->json = options_has(&s->opt, "json");
    s->tenant = common_text(s, "tenant");
    s->idempotency_key = options_text(&s->opt, "idempotency-key");
    enum cli_exit rc = find_server(s);
    if (rc != CLI_DONE)
        return rc;
    if (client_open(&s->client, &s->setup))
        return CLI_DONE;
    client_print_error(&s->client, "");
    return CLI_USAGE;
}

enum cli_exit session_close(struct session *s, enum cli_exit rc)
{
    client_close(&s->client);
    enum cli_exit stopped = private_server_stop(&s->private_server);
    reply_release(&s->reply);
    buf_release(&s->path);
    buf_release(&s->body);
    json_decref(s->answer);
    json_decref(s->contexts);
    buf_release(&s->key);
    s->answer = s->contexts = NULL;
    return rc != CLI_DONE ? rc : stopped;
}

/* The value of an option, or else of the context. */
static void fill(const char **value, const json_t *context, const char *member)
{
    if (*value == NULL)
        *value = json_string_value(json_object_get(context, member));
}

/* A context says everything about a server that options and variables leave open. It does not count
 * when they name the server themselves: a key must not go to another server than it is for. */
static enum cli_exit use_context(struct session *s)
{
    const json_t *context = NULL;
    const char *name = common_text(s, "context"), *key_file = NULL;
    bool is_given = options_is_given(&s->opt, "context");
    if (is_given && is_given_common(s, "url")) {
        fprintf(stderr, "pawl: Use either --url or --context, not both\n");
        return CLI_USAGE;
    }
    if (common_text(s, "url") != NULL && !is_given)
        return CLI_DONE;
    enum cli_exit rc = contexts_load(&s->contexts);
    if (rc == CLI_DONE)
        rc = contexts_find(s->contexts, name, &context);
    if (rc != CLI_DONE || context == NULL)
        return rc;
    s->setup.url = json_string_value(json_object_get(context, "url"));
    if (s->setup.url == NULL)
        s->setup.url = DEFAULT_URL;
    fill(&s->tenant, context, "tenant");
    fill(&s->setup.actor, context, "actor");
    fill(&s->setup.ca_file, context, "ca_file");
    fill(&key_file, context, "key_file");
    if (s->setup.api_key == NULL && key_file != NULL) {
        rc = contexts_read_key(key_file, &s->key);
        s->setup.api_key = s->key.ptr;
    }
    if (!s->verb->tenant_in_body)
        s->setup.tenant = s->tenant;
    return rc;
}

/* The command line wins over the environment; in either, the URL of a server wins over a file. */
static enum cli_exit find_server(struct session *s)
{
    int64_t timeout_s = s->verb->timeout_s > 0 ? s->verb->timeout_s : TIMEOUT_DEFAULT_S;
    const char *url = common_text(s, "url");
    s->setup = (struct client_setup){
        .url = url != NULL ? url : DEFAULT_URL,
        .api_key = common_text(s, "api-key"),
        .tenant = s->verb->tenant_in_body ? NULL : s->tenant,
        .actor = common_text(s, "actor"),
        .ca_file = common_text(s, "ca-file"),
        .timeout_ms = options_number(&s->opt, "timeout-s", timeout_s) * 1000,
    };
    bool has_store = s->verb->store && options_has(&s->opt, "store");
    enum cli_exit found = has_store ? CLI_DONE : use_context(s);
    if (found != CLI_DONE || !s->verb->store)
        return found;
    bool store_given = options_is_given(&s->opt, "store");
    if (store_given && options_is_given(&s->opt, "url")) {
        fprintf(stderr, "pawl: Use either --url or --store, not both\n");
        return CLI_USAGE;
    }
    const char *store = options_text(&s->opt, "store");
    if (store == NULL || (url != NULL && !store_given))
        return CLI_DONE;
    enum cli_exit rc = private_server_start(&s->private_server, store);
    s->setup.url = s->private_server.url;
    s->setup.api_key = s->private_server.key;
    return rc;
}

/* --- building the request --- */

void session_path(struct session *s, const char *prefix, const char *id, const char *suffix)
{
    buf_clear(&s->path);
    buf_put(&s->path, str_of(prefix));
    session_path_on(s, id, suffix);
}

void session_path_on(struct session *s, const char *id, const char *suffix)
{
    buf_put_escaped(&s->path, str_of(id));
    buf_put(&s->path, str_of(suffix));
}

void session_query(struct session *s, const char *name, const char *value)
{
    if (value == NULL)
        return;
    bool first = s->path.len > 0 && memchr(s->path.ptr, '?', s->path.len) == NULL;
    buf_printf(&s->path, "%c%s=", first ? '?' : '&', name);
    buf_put_escaped(&s->path, str_of(value));
}

void session_add_text(struct session *s, const char *member, const char *option)
{
    const char *value = options_text(&s->opt, option);
    if (value != NULL)
        json_add_text(&s->out, member, str_of(value));
}

void session_add_number(struct session *s, const char *member, const char *option)
{
    const char *word = options_find(&s->opt, option)->word;
    const char *value = options_text(&s->opt, option);
    if (value == NULL)
        return;
    if (word != NULL && strcmp(value, word) == 0)
        json_add_null(&s->out, member);
    else
        json_add_int(&s->out, member, options_number(&s->opt, option, 0));
}

void session_add_worker(const struct session *s, struct json_out *out)
{
    char host[64] = "", made[96];
    const char *given = options_text(&s->opt, "worker-id");
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(made, sizeof(made), "%s-%ld", host, (long)getpid());
    json_add_text(out, "worker_id", str_of(given != NULL ? given : made));
}

void session_add_queues(const struct session *s, struct json_out *out)
{
    size_t at = 0;
    const char *queue;
    if (!options_has(&s->opt, "queue"))
        return;
    json_open(out, "queues", '[');
    while ((queue = options_next(&s->opt, "queue", &at)) != NULL)
        json_add_text(out, NULL, str_of(queue));
    json_close(out, ']');
}

enum cli_exit session_add_json(struct session *s, const char *member, const char *option)
{
    char source[64];
    (void)snprintf(source, sizeof(source), "--%s", option);
    return session_add_json_arg(s, member, source, options_text(&s->opt, option));
}

enum cli_exit session_add_json_arg(struct session *s, const char *member, const char *source,
                                   const char *value)
{
    if (value == NULL)
        return CLI_DONE;
    struct buf text;
    buf_init(&text, JSON_TEXT_MAX);
    enum cli_exit rc = input_json(source, value, &text);
    if (rc == CLI_DONE)
        json_add_raw(&s->out, member, buf_str(&text));
    buf_release(&text);
    return rc;
}

/* --- calling --- */

enum cli_exit session_call(struct session *s, const char *method,
                           void (*show)(struct session *s, json_t *answer))
{
    char made[UUID_TEXT_LEN + 1] = "";
    struct request req = {.method = method,
                          .path = buf_str(&s->path),
                          .body = buf_str(&s->body),
                          .if_match = s->if_match,
                          .wait_ms = s->wait_ms};
    if (!buf_ok(&s->path) || !buf_ok(&s->body)) {
        fprintf(stderr, "pawl: The request is too large\n");
        return CLI_USAGE;
    }
    if (strcmp(method, "GET") != 0) {
        struct buf id;
        buf_init(&id, UUID_TEXT_LEN);
        buf_put_uuid(&id, env_new_id(&ENV_SYSTEM));
        (void)snprintf(made, sizeof(made), "%.*s", STR_ARG(buf_str(&id)));
        buf_release(&id);
        req.idempotency_key = s->idempotency_key != NULL ? s->idempotency_key : made;
    }
    enum cli_exit rc = client_send(&s->client, &req, &s->reply);
    if (rc != CLI_DONE) {
        session_unreachable(s);
        return rc;
    }
    if (s->reply.status >= 300) {
        session_refused(s);
        return CLI_REFUSED;
    }
    if (!take_answer(s)) {
        fprintf(stderr, "pawl: %.*s did not answer with JSON. Is it a pawl server?\n",
                STR_ARG(buf_str(&s->client.url)));
        return CLI_REFUSED;
    }
    if (s->json)
        print_raw(buf_str(&s->reply.body));
    else if (show != NULL)
        show(s, s->answer);
    /* Flush now, before anything else can fail: a new key is printed nowhere else. */
    (void)fflush(stdout);
    return CLI_DONE;
}

enum cli_exit session_call_silently(struct session *s, const char *method)
{
    bool json = s->json;
    s->json = false;
    enum cli_exit rc = session_call(s, method, NULL);
    s->json = json;
    return rc;
}

enum cli_exit session_list(struct session *s, const struct column *columns, size_t column_count,
                           const char *cursor, bool all)
{
    enum cli_exit rc;
    struct table table;
    size_t path_len = s->path.len;
    json_t *next = NULL;
    bool more = true;
    table_init(&table, columns, column_count);
    do {
        s->path.len = path_len;
        session_query(s, "cursor", next != NULL ? json_string_value(next) : cursor);
        rc = session_call(s, "GET", NULL);
        if (rc != CLI_DONE)
            break;
        if (!s->json)
            table_add(&table, json_object_get(s->answer, "items"));
        json_t *last = next;
        next = json_incref(json_object_get(s->answer, "next_cursor"));
        /* A cursor that repeats itself would never end. */
        more = json_is_string(next) && !json_equal(next, last);
        json_decref(last);
    } while (more && all);
    if (rc == CLI_DONE && !s->json && !table_print(&table, stdout)) {
        fprintf(stderr, "pawl: Too many rows for a table; use --json\n");
        rc = CLI_REFUSED;
    }
    if (rc == CLI_DONE && more && !s->json) {
        (void)fflush(stdout);
        fprintf(stderr, "More results: use --all or --cursor ");
        value_print(stderr, next);
        fputc('\n', stderr);
    }
    json_decref(next);
    table_release(&table);
    return rc;
}

enum cli_exit session_pages(struct session *s, const struct column *columns, size_t column_count)
{
    session_query(s, "limit", options_text(&s->opt, "limit"));
    return session_list(s, columns, column_count, options_text(&s->opt, "cursor"),
                        options_has(&s->opt, "all"));
}

void session_show_object(struct session *s, json_t *answer)
{
    (void)s;
    object_print(stdout, answer);
}

/* --- what came back --- */

/* False when there is a body and it is not JSON. */
static bool take_answer(struct session *s)
{
    json_decref(s->answer);
    s->answer = NULL;
    if (s->reply.body.len == 0)
        return true;
    s->answer = json_loadb(s->reply.body.ptr, s->reply.body.len, JSON_DECODE_ANY, NULL);
    return s->answer != NULL;
}

/* A line break in JSON is always between tokens, so a blank can replace it. */
static void print_raw(struct str json)
{
    while (json.len > 0 && strchr(" \t\r\n", json.ptr[json.len - 1]) != NULL)
        json.len--;
    for (size_t i = 0; i < json.len; i++)
        putchar(json.ptr[i] == '\n' || json.ptr[i] == '\r' ? ' ' : json.ptr[i]);
    if (json.len > 0)
        putchar('\n');
}

void session_refused(const struct session *s)
{
    refusal_print(&s->reply);
    if (s->json)
        print_raw(buf_str(&s->reply.body));
}

void refusal_print(const struct reply *r)
{
    assert(r->status >= 300);
    json_t *problem = NULL;
    if (r->body.len > 0)
        problem = json_loadb(r->body.ptr, r->body.len, 0, NULL);
    json_t *code = json_object_get(problem, "code");
    json_t *detail = json_object_get(problem, "detail");
    json_t *trace = json_object_get(problem, "trace_id");
    if (json_is_string(code)) {
        fputs("pawl: ", stderr);
        value_print(stderr, code);
        fputs(": ", stderr);
        value_print(stderr, json_is_string(detail) ? detail : json_object_get(problem, "title"));
        fputs(" (trace ", stderr);
        value_print(stderr, trace);
        fputs(")\n", stderr);
        faults_print(stderr, "  ", json_object_get(problem, "errors"));
    } else {
        fprintf(stderr, "pawl: HTTP_%ld: not an answer from a pawl server\n", r->status);
    }
    json_decref(problem);
}

void session_unreachable(const struct session *s)
{
    bool nobody = s->client.code == CURLE_COULDNT_CONNECT;
    client_print_error(&s->client,
                       nobody ? ". Start one with `pawl dev`, or set --url / PAWL_URL." : "");
}
