/* Requests for any route, made from its table of parameters. */
#include "route_request.h"

#include "samples.h"

enum { RAW_MAX = 200, NESTED_MAX = 3 };

/* A request that is being written. */
struct draft {
    struct taker *t;
    struct buf out;
    bool leased;  /* the request names a job and its lease */
    size_t lease; /* which */
};

const struct route *route_at(size_t number)
{
    static size_t count;
    if (count == 0) {
        for (const struct route *r = route_next(NULL); r != NULL; r = route_next(r))
            count++;
    }
    const struct route *route = route_next(NULL);
    for (size_t i = number % count; i > 0; i--)
        route = route_next(route);
    return route;
}

/* --- values as text --- */

/* One that an answer has named, or one of the samples. */
static struct str good_text(struct str name, size_t number)
{
    struct str known = known_text(fuzz_server_known(), name, number / 4);
    struct str sample = sample_text(name, number / 4);
    if (known.ptr == NULL && sample.ptr == NULL)
        known = known_text(fuzz_server_known(), STR("id"), number / 4);
    if (str_is(name, "cursor"))
        known = known_text(fuzz_server_known(), STR("next_cursor"), number / 4);
    if (str_is(name, "expected_hash"))
        known = known_text(fuzz_server_known(), STR("content_hash"), number / 4);
    bool wants_known = number % 4 == 3 || sample.ptr == NULL;
    return known.ptr != NULL && wants_known ? known : sample;
}

static void put_number(struct draft *d, const struct param *p)
{
    static const int64_t ODD[] = {0, 1, -1, INT64_MAX, INT64_MIN};
    switch (take_below(d->t, 8)) {
    case 0:
        buf_put_i64(&d->out, p->min);
        return;
    case 1:
        buf_put_i64(&d->out, p->max);
        return;
    case 2:
        buf_put_i64(&d->out, ODD[take_below(d->t, ARRAY_LEN(ODD))]);
        return;
    case 3:
        buf_put_i64(&d->out, take_number(d->t));
        return;
    default:
        buf_put_i64(&d->out, MIN(p->min + (int64_t)take_byte(d->t), p->max));
    }
}

static void put_time(struct draft *d)
{
    static const char *const TIMES[] = {"2026-01-01T00:00:00Z", "2026-01-01T00:10:00+02:00",
                                        "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
                                        "2026-02-29T00:00:00Z", "2026-01-01T00:01:30.5Z"};
    buf_put(&d->out, str_of(TIMES[take_below(d->t, ARRAY_LEN(TIMES))]));
}

/* A job and its lease, mostly together. */
static struct str good_or_leased(struct draft *d, struct str name)
{
    size_t number = take_byte(d->t);
    if (!d->leased || number % 8 == 7)
        return good_text(name, number);
    if (str_is(name, "job_id"))
        return known_text(fuzz_server_known(), STR("leased_job"), d->lease = number);
    if (str_is(name, "lease_token"))
        return known_text(fuzz_server_known(), name, d->lease);
    return good_text(name, number);
}

static void put_text(struct draft *d, const struct param *p)
{
    if (take_one_in(d->t, 8)) {
        buf_put(&d->out, take_text(d->t, RAW_MAX));
        return;
    }
    switch (p->kind) {
    case PARAM_INT:
    case PARAM_POSITION:
        put_number(d, p);
        return;
    case PARAM_ENUM:
        buf_put(&d->out, str_of(p->word((unsigned)take_below(d->t, p->word_count))));
        return;
    case PARAM_TIME:
        put_time(d);
        return;
    default:
        buf_put(&d->out, good_or_leased(d, str_of(p->name)));
    }
}

/* --- values as JSON --- */

static void put_json_text(struct draft *d, const struct param *p)
{
    struct buf whole = d->out;
    buf_init(&d->out, 4 * KIB);
    put_text(d, p);
    struct buf text = d->out;
    d->out = whole;
    if (text.len > 0)
        str_repair_utf8(text.ptr, text.len);
    json_t *json = json_stringn(text.len > 0 ? text.ptr : "", text.len);
    if (json != NULL)
        json_put_plain(&d->out, json);
    else
        buf_put(&d->out, STR("\"\""));
    json_decref(json);
    buf_release(&text);
}

static void put_members(struct draft *d, const struct param *params, size_t count, int depth);

static void put_array(struct draft *d, const struct param *p, int depth)
{
    buf_put_char(&d->out, '[');
    for (size_t n = 1 + take_below(d->t, 3); n > 0; n--) {
        put_members(d, p->members, p->member_count, depth);
        buf_put(&d->out, n > 1 ? STR(",") : STR(""));
    }
    buf_put_char(&d->out, ']');
}

static void put_json(struct draft *d, const struct param *p, int depth)
{
    unsigned how = take_byte(d->t);
    if (how >= 250) {
        buf_put(&d->out, take_text(d->t, RAW_MAX)); /* JSON, perhaps */
    } else if (how >= 240) {
        buf_put(&d->out, sample_json(STR(""), how));
    } else if (p->members != NULL && depth < NESTED_MAX && p->kind == PARAM_ARRAY) {
        put_array(d, p, depth + 1);
    } else if (p->members != NULL && depth < NESTED_MAX) {
        put_members(d, p->members, p->member_count, depth + 1);
    } else if (p->kind == PARAM_INT || p->kind == PARAM_POSITION) {
        put_number(d, p);
    } else if (p->kind == PARAM_BOOL) {
        buf_put(&d->out, how % 2 == 0 ? STR("false") : STR("true"));
    } else if (p->kind == PARAM_JSON || p->kind == PARAM_OBJECT || p->kind == PARAM_ARRAY) {
        buf_put(&d->out, sample_json(str_of(p->name), how));
    } else {
        put_json_text(d, p);
    }
}

static void put_members(struct draft *d, const struct param *params, size_t count, int depth)
{
    bool first = true;
    buf_put_char(&d->out, '{');
    for (size_t i = 0; i < count; i++) {
        const struct param *p = &params[i];
        bool wanted = p->required ? !take_one_in(d->t, 32) : take_one_in(d->t, 3);
        if (p->where != IN_BODY || !wanted)
            continue;
        buf_printf(&d->out, "%s\"%s\":", first ? "" : ",", p->name);
        put_json(d, p, depth);
        first = false;
    }
    buf_put_char(&d->out, '}');
}

/* --- the parts of a request --- */

static bool is_leased(const struct route *route)
{
    for (size_t i = 0; i < route->param_count; i++) {
        if (strcmp(route->params[i].name, "lease_token") == 0)
            return true;
    }
    return false;
}

static bool has_body(const struct route *route)
{
    return strcmp(route->method, "GET") != 0 && strcmp(route->method, "DELETE") != 0;
}

/* With one byte of it changed, now and then. */
static void put_document(struct draft *d, struct str text)
{
    size_t from = d->out.len;
    buf_put(&d->out, text);
    if (text.len > 0 && take_one_in(d->t, 4))
        d->out.ptr[from + take_below(d->t, text.len)] = (char)take_byte(d->t);
}

static void put_body(struct draft *d, const struct route *route)
{
    struct str document = sample_document(str_of(route->pattern), take_byte(d->t));
    unsigned how = take_byte(d->t);
    if (how >= 248)
        buf_put(&d->out, take_text(d->t, 255));
    else if (how >= 244 || !has_body(route))
        return;
    else if ((route->flags & ROUTE_DOCUMENT) != 0 && document.ptr != NULL)
        put_document(d, document);
    else
        put_members(d, route->params, route->param_count, 0);
}

/* As it may stand in a request line: no space, no control character. */
static void put_in_target(struct draft *d, struct str text, bool whole)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || (!whole && (c == '?' || c == '/' || c == '&' || c == '=' || c == '#')))
            buf_printf(&d->out, "%%%02X", c);
        else
            buf_put_char(&d->out, (char)c);
    }
}

static struct str text_of(struct draft *d, struct arena *arena, const struct param *p)
{
    struct buf whole = d->out;
    buf_init(&d->out, 4 * KIB);
    put_text(d, p);
    struct str text = arena_take(arena, &d->out);
    d->out = whole;
    assert(text.ptr != NULL);
    return text;
}

static void put_path(struct draft *d, const struct route *route, struct arena *arena)
{
    size_t n = 0;
    for (const char *at = route->pattern; *at != '\0'; at++) {
        if (at[0] != '{') {
            buf_put_char(&d->out, *at);
            continue;
        }
        if (at[1] == '*') { /* any path, which is no parameter */
            at += 2;
            continue;
        }
        struct str text = text_of(d, arena, &route->params[n++]);
        put_in_target(d, text.len > 0 ? text : STR("-"), false);
        at++;
    }
}

static void put_query(struct draft *d, const struct route *route, struct arena *arena)
{
    char mark = '?';
    for (size_t i = 0; i < route->param_count; i++) {
        const struct param *p = &route->params[i];
        if (p->where != IN_QUERY || !take_one_in(d->t, 3))
            continue;
        buf_put_char(&d->out, mark);
        buf_put(&d->out, str_of(p->name));
        buf_put_char(&d->out, '=');
        put_in_target(d, text_of(d, arena, p), false);
        mark = '&';
    }
}

static void add_headers(struct draft *d, const struct route *route, struct route_request *r)
{
    static const char *const KEYS[] = {"k1", "k2", "k3", "\"k4\""};
    unsigned how = take_byte(d->t);
    if (how >= 192)
        fuzz_add_header(&r->request, "Idempotency-Key", str_of(KEYS[how % ARRAY_LEN(KEYS)]));
    if (route->stream != NULL && how % 2 == 1)
        fuzz_add_header(&r->request, "Accept", STR("text/event-stream"));
    for (size_t i = 0; i < route->param_count; i++) {
        const struct param *p = &route->params[i];
        if (p->where == IN_HEADER && take_one_in(d->t, 4))
            fuzz_add_header(&r->request, p->name, text_of(d, &r->arena, p));
    }
}

static struct str tenant_of(struct taker *t)
{
    switch (take_below(t, 32)) {
    case 31:
        return STR_NONE;
    case 30:
        return STR("*");
    case 29:
    case 28:
        return STR("other");
    case 27:
        return STR("new");
    default:
        return STR("acme");
    }
}

void route_request_make(struct route_request *r, const struct route *route, struct taker *t)
{
    struct draft d = {.t = t, .leased = is_leased(route)};
    arena_init(&r->arena, MIB);
    buf_init(&d.out, 16 * KIB);
    struct str tenant = tenant_of(t);
    put_path(&d, route, &r->arena);
    put_query(&d, route, &r->arena);
    struct str target = arena_take(&r->arena, &d.out);
    buf_init(&d.out, 64 * KIB);
    put_body(&d, route);
    struct str body = arena_take(&r->arena, &d.out);
    assert(target.ptr != NULL && body.ptr != NULL);
    r->request = fuzz_request(route->method, target, body, tenant);
    add_headers(&d, route, r);
    unsigned how = take_byte(t);
    r->request.door = how >= 250 ? DOOR_ASIDE : how >= 240 ? DOOR_DEV : DOOR_KEYS;
    r->request.hangs_up = how >= 230 && how < 240;
}

void route_request_plain(struct route_request *r, const struct route *route, size_t number)
{
    struct draft d = {.t = NULL};
    arena_init(&r->arena, MIB);
    buf_init(&d.out, 16 * KIB);
    size_t n = 0;
    for (const char *at = route->pattern; *at != '\0'; at++) {
        if (at[0] == '{' && at[1] == '*') {
            at += 2;
        } else if (at[0] == '{') {
            put_in_target(&d, good_text(str_of(route->params[n++].name), number), false);
            at++;
        } else {
            buf_put_char(&d.out, *at);
        }
    }
    struct str target = arena_take(&r->arena, &d.out);
    assert(target.ptr != NULL);
    r->request = fuzz_request(route->method, target, STR_NONE, STR("acme"));
}

void route_request_release(struct route_request *r)
{
    arena_release(&r->arena);
}
