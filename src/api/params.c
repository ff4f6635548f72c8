/* From a request's path, query, headers and body into the use case's input, by the route's table of
 * parameters. */
#include "api/params.h"

#include "base/suggest.h"

static void *member_of(struct call *c, const struct param *p, void *input)
{
    return (char *)(p->in_call ? (void *)c : input) + p->offset;
}

static void *second_of(const struct param *p, void *input)
{
    return (char *)input + p->second;
}

/* --- faults --- */

static enum err fault_code(const struct param *p)
{
    bool cursor = p->kind == PARAM_CURSOR || p->kind == PARAM_POSITION;
    if (p->where == IN_BODY)
        return ERR_FIELD_INVALID;
    return cursor ? ERR_CURSOR_INVALID : ERR_BAD_REQUEST;
}

static enum err refuse(struct call *c, const struct param *p, const char *message)
{
    return problem_set(&c->op.problem, fault_code(p), "%s%s %s", p->name,
                       p->where == IN_BODY ? ":" : "", message);
}

static enum err refuse_size(struct call *c, const struct param *p, size_t max)
{
    char message[64];
    (void)snprintf(message, sizeof(message), "must have at most %zu bytes", max);
    return refuse(c, p, message);
}

/* There is nothing with such an id. */
static enum err refuse_id(struct call *c, const struct param *p, struct str text)
{
    if (p->where == IN_BODY)
        return refuse(c, p, "must be an id");
    return problem_set(&c->op.problem, p->missing, "\"%.*s\" is not an id",
                       (int)MIN(text.len, (size_t)64), text.ptr);
}

static enum err refuse_word(struct call *c, const struct param *p, struct str text)
{
    struct suggestion s = suggest_for(text);
    char list[160] = ". Allowed:";
    size_t used = strlen(list);
    for (unsigned i = 0; i < p->word_count; i++) {
        suggest_consider(&s, str_of(p->word(i)));
        int n = snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : " ", p->word(i));
        assert(n > 0 && used + (size_t)n + 1 < sizeof(list));
        used += (size_t)n;
    }
    char room[SUGGEST_TEXT_MAX];
    return problem_set(&c->op.problem, fault_code(p), "Unknown %s \"%.*s\"%s", p->name,
                       (int)MIN(text.len, (size_t)64), text.ptr,
                       s.best.len > 0 ? suggest_text(&s, room) : list);
}

/* --- one value --- */

static void put_word(void *to, const struct param *p, unsigned value)
{
    if (p->size == sizeof(bool))
        *(bool *)to = value != 0;
    else
        memcpy(to, &value, sizeof(value));
}

static int64_t scaled(const struct param *p, int64_t value)
{
    return p->scale > 0 ? value * p->scale : value;
}

/* What the input holds when the parameter is absent. */
static void put_initial(struct call *c, const struct param *p, void *input)
{
    void *to = member_of(c, p, input);
    switch (p->kind) {
    case PARAM_INT:
        *(int64_t *)to = scaled(p, p->initial);
        break;
    case PARAM_TIME:
    case PARAM_POSITION:
    case PARAM_VERSION:
        *(int64_t *)to = p->initial;
        break;
    case PARAM_BOOL:
        if (p->size > 0)
            *(bool *)to = p->initial != 0;
        break;
    case PARAM_ENUM:
        put_word(to, p, (unsigned)p->initial);
        break;
    case PARAM_ENUMS:
        *(unsigned *)to = 0;
        break;
    case PARAM_UUID: /* always there */
    case PARAM_KEY:
    case PARAM_ARRAY:
        break;
    case PARAM_TEXT:
    case PARAM_NAME:
    case PARAM_LABEL:
    case PARAM_CURSOR:
    case PARAM_TAGS:
    case PARAM_JSON:
    case PARAM_OBJECT:
        if (p->size > 0)
            *(struct str *)to = str_of(p->initial_text);
        break;
    }
}

static enum err put_text(struct call *c, const struct param *p, struct str text, struct str *to)
{
    if (p->max > 0 && text.len > (size_t)p->max)
        return refuse_size(c, p, (size_t)p->max);
    if (text.len < (size_t)p->min)
        return refuse(c, p, "must not be empty");
    if (p->valid != NULL && !p->valid(text))
        return refuse(c, p, p->must);
    if (p->size > 0)
        *to = text;
    return ERR_OK;
}

static enum err put_name(struct call *c, const struct param *p, struct str text, struct str *to)
{
    if (text.len <= (size_t)p->max && str_is_name(text)) {
        *to = text;
        return ERR_OK;
    }
    char message[80];
    (void)snprintf(message, sizeof(message),
                   "must be 1 to %lld letters, digits or any of _ - . :", (long long)p->max);
    return refuse(c, p, message);
}

static enum err put_int(struct call *c, const struct param *p, struct str text, int64_t *to)
{
    int64_t value;
    if (str_to_i64(text, &value) && value >= p->min && value <= p->max) {
        *to = scaled(p, value);
        return ERR_OK;
    }
    if (p->missing != ERR_OK)
        return refuse_id(c, p, text);
    char message[96];
    (void)snprintf(message, sizeof(message), "must be a whole number from %lld to %lld",
                   (long long)p->min, (long long)p->max);
    return refuse(c, p, message);
}

static enum err put_enum(struct call *c, const struct param *p, struct str text, void *to)
{
    for (unsigned i = 0; i < p->word_count; i++) {
        if (str_is(text, p->word(i))) {
            put_word(to, p, i);
            return ERR_OK;
        }
    }
    return refuse_word(c, p, text);
}

static enum err put_enums(struct call *c, const struct param *p, struct str text, unsigned *to)
{
    unsigned bits = 0;
    bool more = true;
    while (more) {
        struct str word;
        unsigned i = 0;
        more = str_cut(text, ',', &word, &text);
        while (i < p->word_count && !str_is(word, p->word(i)))
            i++;
        if (i == p->word_count)
            return refuse_word(c, p, word);
        bits |= 1u << i;
    }
    *to = bits;
    return ERR_OK;
}

static enum err put_time(struct call *c, const struct param *p, struct str text, int64_t *to)
{
    int64_t at;
    if (!time_parse(text, &at) || at < 0)
        return refuse(c, p, "must be a time such as 2026-01-31T12:00:00Z");
    *to = at;
    return ERR_OK;
}

static enum err put_label(struct call *c, const struct param *p, struct str text, void *input)
{
    struct str name;
    struct str value;
    if (!str_cut(text, ':', &name, &value) || name.len == 0)
        return refuse(c, p, "must be NAME:VALUE");
    *(struct str *)member_of(c, p, input) = name;
    *(struct str *)second_of(p, input) = value;
    return ERR_OK;
}

static enum err put_position(struct call *c, const struct param *p, struct str text, int64_t *to)
{
    int64_t value;
    if (!str_to_i64(text, &value) || value < 0)
        return refuse(c, p, "does not belong to this list");
    *to = value;
    return ERR_OK;
}

/* "7", or * for any. */
static enum err put_version(struct call *c, const struct param *p, struct str text, int64_t *to)
{
    int64_t value;
    if (str_is(text, "*"))
        return ERR_OK;
    if (text.len <= 2 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"' ||
        !str_to_i64((struct str){text.ptr + 1, text.len - 2}, &value) || value < 0)
        return refuse(c, p, "must be a run's version in quotes, such as \"7\"");
    *to = value;
    return ERR_OK;
}

/* A value that came as text. */
static enum err put_value(struct call *c, const struct param *p, struct str text, void *input)
{
    void *to = member_of(c, p, input);
    switch (p->kind) {
    case PARAM_TEXT:
        return put_text(c, p, text, to);
    case PARAM_NAME:
        return put_name(c, p, text, to);
    case PARAM_INT:
        return put_int(c, p, text, to);
    case PARAM_ENUM:
        return put_enum(c, p, text, to);
    case PARAM_ENUMS:
        return put_enums(c, p, text, to);
    case PARAM_TIME:
        return put_time(c, p, text, to);
    case PARAM_UUID:
        return uuid_parse(text, to) ? ERR_OK : refuse_id(c, p, text);
    case PARAM_LABEL:
        return put_label(c, p, text, input);
    case PARAM_CURSOR:
        *(struct str *)to = text;
        return text.len > 0 && text.len < CURSOR_MAX ? ERR_OK
                                                     : refuse(c, p, "does not belong to this list");
    case PARAM_POSITION:
        return put_position(c, p, text, to);
    case PARAM_VERSION:
        return put_version(c, p, text, to);
    case PARAM_TAGS:
        *(struct str *)to = text;
        return ERR_OK;
    case PARAM_KEY:
        return ERR_OK;
    case PARAM_BOOL:
    case PARAM_JSON:
    case PARAM_OBJECT:
    case PARAM_ARRAY:
        break;
    }
    assert(!"values of this kind are in bodies only");
    return ERR_INTERNAL;
}

/* --- path and headers --- */

enum err params_read_path(struct call *c)
{
    void *input = call_input(c);
    if (input == NULL && c->route->input_size > 0)
        return c->op.problem.err;
    enum err e = ERR_OK;
    size_t n = 0;
    for (size_t i = 0; i < c->route->param_count && e == ERR_OK; i++) {
        const struct param *p = &c->route->params[i];
        if (p->where != IN_PATH)
            break;
        e = put_value(c, p, c->params[n++], input);
    }
    return e;
}

static enum err read_header(struct call *c, const struct param *p, void *input)
{
    struct str text;
    size_t count;
    put_initial(c, p, input);
    /* Two lines of tags name nothing for sure: the whole answer is right as well. */
    if (p->kind == PARAM_TAGS && (http_header(c->req, p->name, &count).ptr == NULL || count != 1))
        return ERR_OK;
    enum err e = call_header(c, p->name, &text);
    return e == ERR_OK && text.ptr != NULL ? put_value(c, p, text, input) : e;
}

enum err params_read_headers(struct call *c)
{
    void *input = call_input(c);
    if (input == NULL && c->route->input_size > 0)
        return c->op.problem.err;
    enum err e = ERR_OK;
    for (size_t i = 0; i < c->route->param_count && e == ERR_OK; i++) {
        const struct param *p = &c->route->params[i];
        if (p->where == IN_HEADER)
            e = read_header(c, p, input);
    }
    return e;
}

/* --- query --- */

static enum err unknown_query(struct call *c, struct str name)
{
    struct suggestion s = suggest_for(name);
    for (size_t i = 0; i < c->route->param_count; i++) {
        if (c->route->params[i].where == IN_QUERY)
            suggest_consider(&s, str_of(c->route->params[i].name));
    }
    char room[SUGGEST_TEXT_MAX];
    return problem_set(&c->op.problem, ERR_BAD_REQUEST, "Unknown query parameter \"%.*s\"%s",
                       (int)MIN(name.len, (size_t)64), name.ptr, suggest_text(&s, room));
}

static enum err read_query_param(struct call *c, const struct http_param *given, uint32_t *seen)
{
    const struct param *params = c->route->params;
    size_t i = 0;
    while (i < c->route->param_count &&
           (params[i].where != IN_QUERY || !str_is(given->name, params[i].name)))
        i++;
    if (i == c->route->param_count && (c->route->flags & ROUTE_OPEN) != 0)
        return ERR_OK;
    if (i == c->route->param_count)
        return unknown_query(c, given->name);
    if ((*seen & 1u << i) != 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "The query parameter \"%s\" is given twice", params[i].name);
    *seen |= 1u << i;
    struct str text;
    if (!http_decode(c->req, given->value.ptr != NULL ? given->value : STR(""), &text))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "The query parameter \"%s\" is badly encoded", params[i].name);
    return put_value(c, &params[i], text, c->input);
}

/* False: the problem is set. */
static bool put_query_initials(struct call *c)
{
    for (size_t i = 0; i < c->route->param_count; i++) {
        const struct param *p = &c->route->params[i];
        if (p->where != IN_QUERY)
            continue;
        if (!p->in_call && call_input(c) == NULL)
            return false;
        put_initial(c, p, c->input);
    }
    return true;
}

enum err params_read_query(struct call *c)
{
    if ((c->route->flags & ROUTE_OPEN) != 0 && c->route->param_count == 0)
        return ERR_OK;
    if (!put_query_initials(c))
        return c->op.problem.err;
    struct str rest = c->req->query;
    struct http_param given;
    uint32_t seen = 0;
    size_t count = 0;
    enum err e = ERR_OK;
    while (e == ERR_OK && http_query_next(&rest, &given)) {
        if (++count > HTTP_QUERY_PARAMS_MAX)
            return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                               "The query has more than %d parameters", HTTP_QUERY_PARAMS_MAX);
        e = read_query_param(c, &given, &seen);
    }
    return e;
}

/* --- body --- */

static void read_text(struct call *c, struct fields *f, const struct param *p, void *input)
{
    struct str text = str_of(p->initial_text);
    if (p->kind == PARAM_ENUM && p->initial < p->word_count)
        text = str_of(p->word((unsigned)p->initial));
    fields_text(f, p->name, p->max > 0 ? (size_t)p->max : NAME_MAX_LEN, &text);
    if (f->err == ERR_OK && text.ptr != NULL)
        f->err = put_value(c, p, text, input);
}

static void read_int(struct call *c, struct fields *f, const struct param *p, void *input)
{
    int64_t value = p->initial;
    fields_int(f, p->name, p->min, p->max, &value);
    *(int64_t *)member_of(c, p, input) = scaled(p, value);
}

/* NULL when it is absent, or null and that is the same. */
static const struct json *find_json(struct fields *f, const struct param *p)
{
    const struct json *value;
    if (p->kind == PARAM_OBJECT) {
        fields_object(f, p->name, &value);
        return value;
    }
    if (p->kind == PARAM_ARRAY) {
        fields_array(f, p->name, (size_t)p->max, &value);
        return value;
    }
    fields_any(f, p->name, &value);
    if (json_is(value, JSON_KIND_NULL) && !p->null_counts) {
        fields_default(f, p->name);
        return NULL;
    }
    if (p->kind == PARAM_BOOL && value != NULL && !json_is_bool(value))
        fields_fault(f, p->name, "must be true or false");
    return value;
}

static enum err put_json(struct call *c, const struct param *p, const struct json *value,
                         void *input)
{
    struct str *to = member_of(c, p, input);
    enum err e = call_json_text(c, value, to);
    if (e == ERR_OK && p->max > 0 && to->len > (size_t)p->max)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE, "%s: must have at most %lld bytes",
                           p->name, (long long)p->max);
    return e;
}

static void read_json(struct call *c, struct fields *f, const struct param *p, void *input)
{
    const struct json *value = find_json(f, p);
    if (f->err == ERR_OK && p->take != NULL)
        p->take(c, f, value, input);
    if (f->err != ERR_OK || value == NULL)
        return;
    if (p->second > 0)
        *(const struct json **)second_of(p, input) = value;
    if (p->members != NULL && p->take == NULL)
        params_read_members(c, f, value, p->members, p->member_count, input);
    if (f->err == ERR_OK && p->size > 0)
        f->err = put_json(c, p, value, input);
}

static void read_member(struct call *c, struct fields *f, const struct param *p, void *input)
{
    put_initial(c, p, input);
    switch (p->kind) {
    case PARAM_INT:
        read_int(c, f, p, input);
        break;
    case PARAM_BOOL:
        if (p->take == NULL)
            fields_bool(f, p->name, member_of(c, p, input));
        else
            read_json(c, f, p, input);
        break;
    case PARAM_JSON:
    case PARAM_OBJECT:
    case PARAM_ARRAY:
        read_json(c, f, p, input);
        break;
    default:
        read_text(c, f, p, input);
    }
    if (p->required)
        fields_require(f, p->name);
}

static void read_members(struct call *c, struct fields *f, const struct param *params, size_t count,
                         void *input)
{
    f->defaults = &c->defaults;
    for (size_t i = 0; i < count && f->err == ERR_OK; i++) {
        if (params[i].where == IN_BODY)
            read_member(c, f, &params[i], input);
    }
}

void params_read_members(struct call *c, struct fields *f, const struct json *object,
                         const struct param *params, size_t count, void *input)
{
    struct fields inner;
    fields_begin(&inner, object, f->problem);
    read_members(c, &inner, params, count, input);
    f->err = fields_end(&inner);
}

enum err params_read_body(struct call *c)
{
    void *input = call_input(c);
    if (input == NULL && c->route->input_size > 0)
        return c->op.problem.err;
    struct fields f;
    fields_begin(&f, c->body, &c->op.problem);
    read_members(c, &f, c->route->params, c->route->param_count, input);
    return fields_end(&f);
}

void params_is_default(struct call *c, const char *name)
{
    c->defaults += json_mark_default(c->body, str_of(name));
}
