/* A whole pawl in one thread. */
#include "fuzz_server.h"

#include "api/api.h"
#include "base/chance.h"
#include "base/log.h"
#include "http/parse.h"
#include "inline_threads.h"
#include "kept_store.h"
#include "memory_http.h"
#include "runtime/engine.h"
#include "store/db.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_TURNS_MAX = 100 };

static struct {
    struct known template_known, known;

    int64_t now_us, mono_ns;
    struct chance chance;
    struct env env;
    struct metrics *metrics;
    struct engine *engine;
    struct api *keys, *dev;
    struct memory_request *stream; /* one that is left open; NULL: none */
    bool damage;
} s;

/* --- the world --- */

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return s.now_us;
}

static int64_t mono_ns(void *ctx)
{
    (void)ctx;
    return s.mono_ns;
}

static void take_chance(void *ctx, void *out, size_t len)
{
    (void)ctx;
    chance_take(&s.chance, out, len);
}

static void begin_world(uint64_t seed)
{
    struct chance_seed from = {{0}};
    memcpy(from.bytes, &seed, sizeof(seed));
    chance_init(&s.chance, &from);
    s.now_us = INT64_C(1767225600000000) + (seed > 0 ? INT64_C(60000000) : 0); /* 2026 */
    s.mono_ns = INT64_C(1000000000000);
    s.env = (struct env){now_us, mono_ns, take_chance, NULL};
}

/* --- life --- */

bool fuzz_server_try_open(uint64_t seed)
{
    begin_world(seed);
    s.known = s.template_known;
    s.metrics = metrics_new();
    struct engine_config config = {.store_url = str_of(kept_store_url()),
                                   .root_key = STR(FUZZ_ROOT_KEY),
                                   .env = &s.env,
                                   .metrics = s.metrics,
                                   .reach = REACH_ALL};
    struct problem p;
    problem_init(&p);
    enum err e = engine_open(&config, &p, &s.engine);
    assert(e == ERR_OK || s.damage);
    problem_release(&p);
    if (e != ERR_OK) {
        metrics_free(s.metrics);
        return false;
    }
    struct api_config keys = {.engine = s.engine, .metrics = s.metrics, .env = &s.env};
    struct api_config dev = keys;
    dev.dev_listen = "127.0.0.1:7295";
    s.keys = api_new(&keys);
    s.dev = api_new(&dev);
    return true;
}

void fuzz_server_open(uint64_t seed)
{
    kept_store_reset();
    bool open = fuzz_server_try_open(seed);
    assert(open);
}

static void turn(void)
{
    engine_poll(s.engine, true);
    api_tick(s.keys, s.mono_ns / 1000000);
    api_tick(s.dev, s.mono_ns / 1000000);
    engine_round_end(s.engine);
}

static void end_stream(void)
{
    if (s.stream != NULL)
        memory_request_over(s.stream);
    s.stream = NULL;
}

void fuzz_server_close(void)
{
    end_stream();
    engine_drain(s.engine);
    api_drain(s.keys);
    api_drain(s.dev);
    for (int i = 0; !engine_idle(s.engine); i++) {
        assert(i < WAIT_TURNS_MAX);
        s.mono_ns += INT64_C(1000000000);
        turn();
    }
    engine_close(s.engine);
    api_free(s.keys);
    api_free(s.dev);
    metrics_free(s.metrics);
}

void fuzz_server_expect_damage(bool damage)
{
    s.damage = damage;
}

const struct known *fuzz_server_known(void)
{
    return &s.known;
}

/* --- answers --- */

static enum err err_of_code(struct str code)
{
    for (enum err e = ERR_OK + 1; e < ERR_COUNT; e++) {
        if (str_is(code, err_code(e)))
            return e;
    }
    assert(!"a code that is in no table");
    return ERR_INTERNAL;
}

static enum err check_problem(const struct memory_request *r, const json_t *json)
{
    enum err e = err_of_code(json_str(json_object_get(json, "code")));
    assert(err_http_status(e) == r->reply.status);
    assert(json_integer_value(json_object_get(json, "status")) == r->reply.status);
    assert(str_is(json_str(json_object_get(json, "title")), err_title(e)));
    assert(json_is_string(json_object_get(json, "detail")));
    assert(str_starts_with(json_str(json_object_get(json, "type")), STR("urn:pawl:problem:")));
    assert(json_is_boolean(json_object_get(json, "retryable")));
    assert(json_string_length(json_object_get(json, "trace_id")) == 32);
    assert(json_object_get(json, "errors") == NULL ||
           json_is_array(json_object_get(json, "errors")));
    if (!s.damage && (e == ERR_INTERNAL || e == ERR_DAMAGED || e == ERR_STORE_FAILED)) {
        (void)fprintf(stderr, "%.*s %.*s: %.*s\n", STR_ARG(r->pub.method), STR_ARG(r->pub.path),
                      STR_ARG(r->reply.body));
        assert(!"a sound store and an answer that blames it");
    }
    return e;
}

/* What the ids in the answer of this path are called elsewhere. */
static const char *id_of(struct str path)
{
    if (str_ends_with(path, STR("/deliveries")))
        return "delivery_id";
    if (str_starts_with(path, STR("/api/v1/webhooks")))
        return "webhook_id";
    if (str_starts_with(path, STR("/api/v1/keys")))
        return "key_id";
    return str_starts_with(path, STR("/api/v1/runs")) ? "run_id" : NULL;
}

static struct fuzz_answer answer_of(const struct memory_request *r)
{
    const struct http_reply *reply = &r->reply;
    struct fuzz_answer a = {.status = reply->status};
    bool problem = str_is(reply->content_type, "application/problem+json");
    assert(problem == (reply->status >= 400) && reply->status >= 200);
    assert(problem || reply->status <= 202 || reply->status == 304 || reply->status == 308);
    if (problem || str_is(reply->content_type, "application/json")) {
        struct problem p;
        problem_init(&p);
        enum err e = json_parse(reply->body, &p, &a.json);
        /* Stored JSON is copied into answers as it is, so damage may show there. */
        bool may_be_damaged = s.damage && !problem;
        if (e != ERR_OK && !may_be_damaged)
            (void)fprintf(stderr, "%s: %.*s\n", p.detail, STR_ARG(reply->body));
        assert(e == ERR_OK || may_be_damaged);
        problem_release(&p);
    }
    if (problem)
        a.err = check_problem(r, a.json);
    else
        known_learn(&s.known, a.json, id_of(r->pub.path));
    return a;
}

/* What is there of a stream by now. One that has more to come stays open until the next one. */
static void read_stream(struct memory_request *r)
{
    enum http_piece got = HTTP_PIECE;
    for (int i = 0; i < 64 && got == HTTP_PIECE; i++) {
        struct str piece;
        got = r->source->next(r->pub.user, &piece);
        assert(got != HTTP_PIECE || (piece.len > 0 && (s.damage || str_is_utf8(piece))));
    }
    end_stream();
    s.stream = r;
}

/* --- requests --- */

void fuzz_add_header(struct fuzz_request *r, const char *name, struct str value)
{
    if (r->header_count < ARRAY_LEN(r->headers))
        r->headers[r->header_count++] = (struct http_param){str_of(name), value};
}

struct fuzz_request fuzz_request(const char *method, struct str target, struct str body,
                                 struct str tenant)
{
    struct fuzz_request r = {.method = str_of(method), .target = target, .body = body};
    fuzz_add_header(&r, "Host", STR("127.0.0.1:7295"));
    fuzz_add_header(&r, "X-API-Key", STR(FUZZ_ROOT_KEY));
    if (tenant.ptr != NULL)
        fuzz_add_header(&r, "X-Tenant-ID", tenant);
    if (body.len > 0)
        fuzz_add_header(&r, "Content-Type", STR("application/json"));
    return r;
}

/* What the parser says of such a head. */
static enum parse_fault head_fault(const struct fuzz_request *from)
{
    struct head h;
    struct buf text;
    buf_init(&text, MIB);
    buf_put(&text, from->method);
    buf_put_char(&text, ' ');
    buf_put(&text, from->target);
    buf_put(&text, STR(" HTTP/1.1\r\n"));
    for (size_t i = 0; i < from->header_count; i++) {
        buf_put(&text, from->headers[i].name);
        buf_put(&text, STR(": "));
        buf_put(&text, from->headers[i].value);
        buf_put(&text, STR("\r\n"));
    }
    buf_put(&text, STR("\r\n"));
    assert(buf_ok(&text));
    head_begin(&h);
    enum parse_status got = head_parse(&h, text.ptr, text.len);
    bool whole = got == PARSE_DONE && h.size == text.len; /* a value may hold a line's end */
    enum parse_fault fault = whole ? PARSE_FINE : PARSE_REQUEST_LINE;
    buf_release(&text);
    return got == PARSE_REFUSED ? h.fault : fault;
}

static void refuse_head(struct memory_request *r, enum parse_fault fault)
{
    struct problem p;
    problem_init(&p);
    (void)problem_set(&p, parse_fault_err(fault), "%s", parse_fault_detail(fault));
    http_send_problem(&r->pub, &p, STR_NONE, NULL);
    problem_release(&p);
}

static void handle(struct memory_request *r, const struct fuzz_request *from)
{
    enum parse_fault fault = head_fault(from);
    if (fault != PARSE_FINE)
        refuse_head(r, fault);
    else if (from->door == DOOR_ASIDE)
        api_handle_aside(s.keys, &r->pub);
    else
        api_handle(from->door == DOOR_DEV ? s.dev : s.keys, &r->pub);
}

/* Some refusals are noted in the timeline of a job, on purpose; and before a key is shown, waiting
 * counts of replays are written. */
static bool may_note(const struct memory_request *r)
{
    return str_starts_with(r->pub.path, STR("/api/v1/idempotency-keys/")) ||
           str_starts_with(r->pub.path, STR("/api/v1/jobs")) ||
           str_starts_with(r->pub.path, STR("/api/v1/approvals"));
}

static void until_answered(struct memory_request *r)
{
    for (int i = 0; !r->answered; i++) {
        assert(i < WAIT_TURNS_MAX && "a request that is never answered");
        turn();
        if (!r->answered && i > 2)
            fuzz_server_pass_ms(1000);
    }
}

/* The answer was sent, or could not be sent whole. */
static void deliver(struct memory_request *r, bool hangs_up)
{
    if (hangs_up && r->pub.unsent != NULL)
        r->pub.unsent(r->pub.user);
    if (r->source != NULL && !hangs_up)
        read_stream(r);
    else
        memory_request_over(r);
}

struct fuzz_answer fuzz_ask(const struct fuzz_request *from)
{
    struct memory_request *r = memory_request_new(&s.env, from->method, from->target, from->body,
                                                  from->headers, from->header_count);
    int64_t before = db_changes(inline_writer_db());
    handle(r, from);
    bool refused = r->answered && r->reply.status >= 400 && r->reply.status < 500;
    if (refused && !may_note(r))
        assert(db_changes(inline_writer_db()) == before && "a refusal that has changed something");
    until_answered(r);
    struct fuzz_answer a = {.status = 0};
    if (!r->hung_up)
        a = answer_of(r);
    deliver(r, from->hangs_up);
    turn();
    if (inline_writer_wait_ms() == 0)
        inline_writer_background();
    turn();
    return a;
}

int fuzz_do(const char *method, const char *target, const char *body, const char *tenant)
{
    struct fuzz_request r = fuzz_request(method, str_of(target), str_of(body), str_of(tenant));
    struct fuzz_answer a = fuzz_ask(&r);
    json_decref(a.json);
    return a.status;
}

int64_t fuzz_server_now_ms(void)
{
    return s.now_us / 1000;
}

void fuzz_server_pass_ms(int64_t ms)
{
    s.now_us += ms * 1000;
    s.mono_ns += ms * 1000000;
    for (int i = 0; i < 16 && inline_writer_wait_ms() == 0; i++) {
        inline_writer_background();
        turn();
    }
    turn();
}

void fuzz_server_check_doctor(void)
{
    struct fuzz_request r = fuzz_request("GET", STR("/api/v1/doctor"), STR_NONE, STR_NONE);
    struct fuzz_answer a = fuzz_ask(&r);
    assert(a.status == 200);
    if (!json_is_true(json_object_get(a.json, "ok")))
        (void)json_dumpf(a.json, stderr, JSON_INDENT(1));
    assert(json_is_true(json_object_get(a.json, "ok")));
    json_decref(a.json);
}

/* --- the template --- */

void fuzz_server_setup(void)
{
    log_setup(LOG_TEXT, (enum log_level)(LOG_ERROR + 1), &ENV_SYSTEM);
    bool open = fuzz_server_try_open(0);
    assert(open);
    template_fill();
    s.template_known = s.known;
    fuzz_server_check_doctor();
    fuzz_server_close();
    kept_store_keep();
}
