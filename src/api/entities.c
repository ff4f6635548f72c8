/* Routes of entities and their types. */
#include "api/call.h"

/* --- what the path says --- */

static enum err read_id(struct call *c, struct str *ret_type, struct str *ret_id)
{
    enum err e = call_name(c, NAME_MAX_LEN, ret_type);
    if (e != ERR_OK)
        return e;
    if (!entity_id_ok(c->params[1]))
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "an entity's id is text of 1 to %d bytes without control characters",
                           ENTITY_ID_MAX);
    *ret_id = c->params[1];
    return ERR_OK;
}

/* --- types --- */

enum err prepare_put_entity_type(struct call *c)
{
    struct put_entity_type_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = call_name(c, NAME_MAX_LEN, &in->type);
    if (e == ERR_OK)
        e = entity_rules_parse(c->body, &c->defaults, &c->op.problem, &in->rules, &in->version);
    return e;
}

enum err prepare_entity_type(struct call *c)
{
    struct entity_type_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_name(c, NAME_MAX_LEN, &in->type);
}

/* --- signals and updates --- */

static enum err read_signal(struct call *c, bool needs_key)
{
    struct signal_entity_input *in = call_alloc(c, sizeof(*in));
    struct signal_fields said;
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = read_id(c, &in->type, &in->id);
    if (e == ERR_OK)
        e = call_signal(c, needs_key, &said);
    if (e != ERR_OK)
        return e;
    in->name = said.name;
    in->payload = said.payload;
    in->dedup_key = said.dedup_key;
    in->request = said.request;
    return ERR_OK;
}

enum err prepare_signal_entity(struct call *c)
{
    return read_signal(c, false);
}

/* Whoever waits for an answer must be able to ask for it again: an update has a key. */
enum err prepare_update_entity(struct call *c)
{
    return read_signal(c, true);
}

enum err prepare_get_update(struct call *c)
{
    struct get_update_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = read_id(c, &in->type, &in->id);
    if (e != ERR_OK)
        return e;
    if (!str_to_i64(c->params[2], &in->seq) || in->seq < 1)
        return problem_set(&c->op.problem, ERR_UPDATE_NOT_FOUND,
                           "\"%.*s\" is not the number of an update",
                           (int)MIN(c->params[2].len, (size_t)64), c->params[2].ptr);
    return ERR_OK;
}

/* --- one entity --- */

enum err prepare_entity(struct call *c)
{
    struct entity_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return read_id(c, &in->type, &in->id);
}

enum err prepare_migrate_entity(struct call *c)
{
    struct migrate_entity_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->version = -1;
    enum err e = read_id(c, &in->type, &in->id);
    struct fields f;
    call_fields(c, &f, c->body);
    fields_int(&f, "version", 1, INT32_MAX, &in->version);
    return e == ERR_OK ? fields_end(&f) : e;
}

/* --- lists --- */

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The cursor of a list of entities is an id in hexadecimal: ids are any text, and cursors stand in
 * URLs. */
static enum err read_id_cursor(struct call *c, struct str *cursor)
{
    size_t len = cursor->len / 2;
    char *id = call_alloc(c, len + 1);
    bool fits = cursor->len % 2 == 0 && len <= ENTITY_ID_MAX;
    if (id == NULL)
        return c->op.problem.err;
    for (size_t i = 0; i < len && fits; i++) {
        int high = hex_value(cursor->ptr[2 * i]);
        int low = hex_value(cursor->ptr[2 * i + 1]);
        fits = high >= 0 && low >= 0;
        id[i] = (char)(high * 16 + low);
    }
    *cursor = (struct str){id, len};
    return fits && entity_id_ok(*cursor)
               ? ERR_OK
               : problem_set(&c->op.problem, ERR_CURSOR_INVALID, "cursor is not from this list");
}

enum err prepare_list_of_entity(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_of_entity_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = read_id(c, &in->type, &in->id);
    if (e == ERR_OK)
        e = http_query_only(c->req, KNOWN, &c->op.problem);
    return e == ERR_OK ? call_page(c, &in->limit, &in->cursor) : e;
}

enum err prepare_list_entities(struct call *c)
{
    static const char *const KNOWN[] = {"version", "limit", "cursor", NULL};
    struct list_entities_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->type_version = -1;
    enum err e = call_name(c, NAME_MAX_LEN, &in->type);
    if (e == ERR_OK)
        e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_query_int(c, "version", 1, INT32_MAX, &in->type_version);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &in->cursor);
    return e == ERR_OK && in->cursor.ptr != NULL ? read_id_cursor(c, &in->cursor) : e;
}
