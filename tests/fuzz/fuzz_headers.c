/* Any bytes as headers, at the three doors of the server: lines of NAME: VALUE, where a digit or a
 * letter alone stands for a name that the server knows. Nothing changes: what could be started does
 * not exist. */
#include "server/begin.h"

#include "server/route_request.h"

static const char *const NAMES[] = {
    "Host",          "Idempotency-Key", "X-Idempotency-Key", "X-Tenant-ID",    "X-Actor",
    "X-API-Key",     "Authorization",   "traceparent",       "If-Match",       "If-None-Match",
    "Last-Event-ID", "Accept",          "Content-Type",      "Content-Length", "Transfer-Encoding",
    "Origin",        "Sec-Fetch-Site",  "Sec-Fetch-Mode",    "Expect",
};

struct shape {
    const char *method;
    const char *target;
    const char *body;
};

/* $ stands for a run of the template. */
static const struct shape SHAPES[] = {
    {"POST", "/api/v1/workflows/none/runs", "{\"input\":1}"},
    {"GET", "/api/v1/runs/$", NULL},
    {"GET", "/api/v1/runs/$/events", NULL},
    {"GET", "/api/v1/events", NULL},
    {"POST", "/api/v1/runs/$/rerun", "{\"from_step\":\"none\"}"},
    {"GET", "/api/v1/entities/cart/c1/events", NULL},
    {"GET", "/", NULL},
    {"HEAD", "/healthz", NULL},
    {"GET", "/metrics", NULL},
    {"OPTIONS", "/api/v1/runs", NULL},
};

/* A parser gives neither NULs nor ends of lines. */
static struct str clean(struct arena *arena, struct str text)
{
    struct str copy = arena_str(arena, str_trim(text));
    assert(copy.ptr != NULL);
    size_t nul = strlen(copy.ptr);
    return (struct str){copy.ptr, MIN(nul, copy.len)};
}

static struct str name_of(struct str text)
{
    if (text.len != 1)
        return text;
    return str_of(NAMES[(unsigned char)text.ptr[0] % ARRAY_LEN(NAMES)]);
}

static void add_lines(struct fuzz_request *r, struct arena *arena, struct str lines)
{
    while (lines.len > 0) {
        struct str line, name, value;
        (void)str_cut(lines, '\n', &line, &lines);
        if (!str_cut(line, ':', &name, &value))
            value = STR_NONE;
        fuzz_add_header(r, name_of(clean(arena, name)).ptr, clean(arena, value));
    }
}

static struct str target_of(const struct shape *shape, struct arena *arena)
{
    struct buf text;
    buf_init(&text, KIB);
    for (const char *at = shape->target; *at != '\0'; at++) {
        if (*at == '$')
            buf_put(&text, known_text(fuzz_server_known(), STR("run_id"), 0));
        else
            buf_put_char(&text, *at);
    }
    return arena_take(arena, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_for_all_inputs();
    struct taker t = {data, size};
    struct arena arena;
    arena_init(&arena, MIB);
    const struct shape *shape = &SHAPES[take_below(&t, ARRAY_LEN(SHAPES))];
    unsigned how = take_byte(&t);
    struct fuzz_request r = {.door = how % DOOR_COUNT,
                             .method = str_of(shape->method),
                             .target = target_of(shape, &arena),
                             .body = str_of(shape->body)};
    if (how >= 64) /* or else the input has to know them */
        fuzz_add_header(&r, "Host", STR("127.0.0.1:7295"));
    if (how >= 64)
        fuzz_add_header(&r, "X-API-Key", STR(FUZZ_ROOT_KEY));
    if (how >= 128)
        fuzz_add_header(&r, "X-Tenant-ID", STR("acme"));
    add_lines(&r, &arena, (struct str){(const char *)t.at, t.left});
    struct fuzz_answer a = fuzz_ask(&r);
    assert(shape->body == NULL || a.status >= 400);
    json_decref(a.json);
    fuzz_server_pass_ms(1000); /* failed logins are forgotten */
    arena_release(&arena);
    return 0;
}
