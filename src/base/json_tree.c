/* From values to jansson's trees, and from these to text. */
#include "base/json_tree.h"

/* --- making trees --- */

static json_t *tree_of(const struct json *value);

static json_t *list_tree(const struct json *list)
{
    json_t *tree = json_array();
    for (size_t i = 0; tree != NULL && i < json_length(list); i++) {
        if (json_array_append_new(tree, tree_of(json_element(list, i))) != 0) {
            json_decref(tree);
            return NULL;
        }
    }
    return tree;
}

static json_t *object_tree(const struct json *object)
{
    json_t *tree = json_object();
    for (size_t i = 0; tree != NULL && i < json_members(object); i++) {
        json_t *member = tree_of(json_value_at(object, i));
        if (json_object_set_new_nocheck(tree, json_name_at(object, i).ptr, member) != 0) {
            json_decref(tree);
            return NULL;
        }
    }
    return tree;
}

/* NULL: no memory. jansson takes NULL for a member or an element, and fails. */
static json_t *tree_of(const struct json *value)
{
    switch ((enum json_kind)value->kind) {
    case JSON_KIND_NULL:
        return json_null();
    case JSON_KIND_FALSE:
        return json_false();
    case JSON_KIND_TRUE:
        return json_true();
    case JSON_KIND_INTEGER:
        return json_integer(value->integer);
    case JSON_KIND_REAL:
        return json_real(value->real);
    case JSON_KIND_TEXT:
        return json_stringn_nocheck(value->text, value->count);
    case JSON_KIND_LIST:
        return list_tree(value);
    case JSON_KIND_OBJECT:
        return object_tree(value);
    }
    assert(!"unknown kind");
    return NULL;
}

enum err json_tree(const struct json *value, json_t **ret)
{
    json_t *tree = tree_of(value);
    if (tree == NULL)
        return ERR_NO_MEMORY;
    *ret = tree;
    return ERR_OK;
}

enum err json_parse(struct str text, struct problem *p, json_t **ret)
{
    struct json *value = NULL;
    enum err e = json_read(text, p, &value);
    if (e != ERR_OK)
        return e;
    e = json_tree(value, ret);
    json_free(value);
    return e == ERR_OK ? e : problem_set(p, e, "no memory to read the body");
}

/* --- writing them --- */

static void put_members(struct buf *out, const json_t *object)
{
    /* jansson's iteration takes a mutable object but changes nothing. */
    json_t *o = (json_t *)(uintptr_t)object;
    bool first = true;
    for (void *it = json_object_iter(o); it != NULL; it = json_object_iter_next(o, it)) {
        if (!first)
            buf_put_char(out, ',');
        first = false;
        json_put_text(out, str_of(json_object_iter_key(it)));
        buf_put_char(out, ':');
        json_put_plain(out, json_object_iter_value(it));
    }
}

void json_put_plain(struct buf *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        buf_put_char(out, '{');
        put_members(out, value);
        buf_put_char(out, '}');
        return;
    case JSON_ARRAY:
        buf_put_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0)
                buf_put_char(out, ',');
            json_put_plain(out, json_array_get(value, i));
        }
        buf_put_char(out, ']');
        return;
    case JSON_STRING:
        json_put_text(out, json_str(value));
        return;
    case JSON_INTEGER:
        buf_put_i64(out, json_integer_value(value));
        return;
    case JSON_REAL: {
        struct json real = {.kind = JSON_KIND_REAL, .real = json_real_value(value)};
        json_write_plain(out, &real);
        return;
    }
    case JSON_TRUE:
        buf_put(out, STR("true"));
        return;
    case JSON_FALSE:
        buf_put(out, STR("false"));
        return;
    case JSON_NULL:
        buf_put(out, STR("null"));
        return;
    }
    assert(!"unknown JSON type");
}
