/* Walks over JSON values: whether two are the same, and how much one weighs. */
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    /* Looking at a node takes a part of a step. */
    NODES_PER_STEP = 4,
};

/* --- equality --- */

static bool same_number(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer_value(a) == json_integer_value(b);
    if (json_is_real(a) && json_is_real(b))
        return json_real_value(a) == json_real_value(b);
    json_int_t whole = json_integer_value(json_is_integer(a) ? a : b);
    double real = json_real_value(json_is_integer(a) ? b : a);
    /* The largest integer is not a double, the number above it is. */
    static const double END = -(double)INT64_MIN;
    return real >= -END && real < END && floor(real) == real && (json_int_t)real == whole;
}

static bool same_object(lua_State *L, const json_t *a, const json_t *b)
{
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_t *walked = expr_unconst(a);
    for (void *it = json_object_iter(walked); it != NULL; it = json_object_iter_next(walked, it)) {
        const json_t *other =
            json_object_getn(b, json_object_iter_key(it), json_object_iter_key_len(it));
        if (other == NULL || !expr_same(L, json_object_iter_value(it), other))
            return false;
    }
    return true;
}

/* Recursion: no deeper than the values, which are JSON_DEPTH_MAX deep. */
bool expr_same(lua_State *L, const json_t *a, const json_t *b)
{
    expr_spend(L, 1);
    if (a == b)
        return true;
    if (json_is_number(a) && json_is_number(b))
        return same_number(a, b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    switch (json_typeof(a)) {
    case JSON_OBJECT:
        return same_object(L, a, b);
    case JSON_ARRAY:
        if (json_array_size(a) != json_array_size(b))
            return false;
        for (size_t i = 0; i < json_array_size(a); i++) {
            if (!expr_same(L, json_array_get(a, i), json_array_get(b, i)))
                return false;
        }
        return true;
    case JSON_STRING:
        expr_spend_text(L, MIN(json_string_length(a), json_string_length(b)));
        return str_eq(json_str(a), json_str(b));
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return true; /* the numbers were compared above; these are equal by their type */
    }
    return false;
}

/* --- weight --- */

static size_t text_weight(struct str text)
{
    size_t bytes = 2 + text.len;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c == '"' || c == '\\')
            bytes++;
    }
    return bytes;
}

static size_t integer_weight(json_int_t value)
{
    size_t bytes = value < 0 ? 2 : 1;
    while (value /= 10)
        bytes++;
    return bytes;
}

static bool weigh(const json_t *value, size_t levels, struct weight *w);

static bool weigh_object(const json_t *value, size_t levels, struct weight *w)
{
    json_t *walked = expr_unconst(value);
    for (void *it = json_object_iter(walked); it != NULL; it = json_object_iter_next(walked, it)) {
        struct str name = {json_object_iter_key(it), json_object_iter_key_len(it)};
        w->bytes += text_weight(name) + 2; /* the colon, and a comma or the last brace */
        if (!weigh(json_object_iter_value(it), levels, w))
            return false;
    }
    return true;
}

/* False: too deep or too large, and as soon as that is known. A value may be in it many times over,
 * so only the limit bounds the work. */
static bool weigh(const json_t *value, size_t levels, struct weight *w)
{
    w->nodes++;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        if (levels == 0) {
            w->too_deep = true;
            return false;
        }
        w->bytes++;
        if (json_is_object(value)) {
            w->bytes += json_object_size(value) == 0;
            if (!weigh_object(value, levels - 1, w))
                return false;
            break;
        }
        w->bytes += MAX(json_array_size(value), 1);
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (!weigh(json_array_get(value, i), levels - 1, w))
                return false;
        }
        break;
    case JSON_STRING:
        w->bytes += text_weight(json_str(value));
        break;
    case JSON_INTEGER:
        w->bytes += integer_weight(json_integer_value(value));
        break;
    case JSON_REAL:
        w->bytes += 3;
        w->reals++;
        break;
    case JSON_TRUE:
    case JSON_NULL:
        w->bytes += 4;
        break;
    case JSON_FALSE:
        w->bytes += 5;
        break;
    }
    return w->bytes <= JSON_TEXT_MAX;
}

struct weight expr_weigh(lua_State *L, const json_t *value, size_t depth)
{
    struct weight w = {0};
    bool fits = weigh(value, JSON_DEPTH_MAX - depth, &w);
    expr_spend(L, w.nodes / NODES_PER_STEP);
    if (!fits && w.too_deep)
        expr_throw(L, "the value is nested deeper than %d levels", JSON_DEPTH_MAX);
    if (!fits)
        expr_throw(L, "the value has more than %d bytes as JSON", JSON_TEXT_MAX);
    return w;
}

enum err expr_fits(const json_t *value, struct problem *p)
{
    struct weight w = {0};
    if (weigh(value, JSON_DEPTH_MAX, &w))
        return ERR_OK;
    if (w.too_deep)
        return problem_set(p, ERR_EXPRESSION, "the value is nested deeper than %d levels",
                           JSON_DEPTH_MAX);
    return problem_set(p, ERR_EXPRESSION, "the value has more than %d bytes as JSON",
                       JSON_TEXT_MAX);
}
