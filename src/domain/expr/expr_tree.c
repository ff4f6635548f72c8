/* Walks over JSON values: whether two are the same, and how much one weighs. */
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    /* Looking at a node takes a part of a step. */
    NODES_PER_STEP = 4,
};

/* --- equality --- */

static bool same_number(const struct json *a, const struct json *b)
{
    bool a_is_whole = a->kind == JSON_KIND_INTEGER;
    if (a->kind == b->kind)
        return a_is_whole ? a->integer == b->integer : a->real == b->real;
    int64_t whole = a_is_whole ? a->integer : b->integer;
    double real = a_is_whole ? b->real : a->real;
    /* The largest integer is not a double, the number above it is. */
    static const double END = -(double)INT64_MIN;
    return real >= -END && real < END && floor(real) == real && (int64_t)real == whole;
}

static bool same_object(lua_State *L, const struct json *a, const struct json *b)
{
    if (json_members(a) != json_members(b))
        return false;
    for (size_t i = 0; i < json_members(a); i++) {
        const struct json *other = json_member(b, json_name_at(a, i));
        if (other == NULL || !expr_same(L, json_value_at(a, i), other))
            return false;
    }
    return true;
}

/* One list or object, seen in two places. */
static bool is_shared(const struct json *a, const struct json *b)
{
    return (a->kind == JSON_KIND_LIST || a->kind == JSON_KIND_OBJECT) && a->items == b->items &&
           a->count == b->count;
}

/* Recursion: no deeper than the values, which are JSON_DEPTH_MAX deep. */
bool expr_same(lua_State *L, const struct json *a, const struct json *b)
{
    assert(a != NULL && b != NULL);
    expr_spend(L, 1);
    if (json_is_numeric(a) && json_is_numeric(b))
        return same_number(a, b);
    if (a->kind != b->kind)
        return false;
    if (a == b || is_shared(a, b))
        return true;
    switch ((enum json_kind)a->kind) {
    case JSON_KIND_OBJECT:
        return same_object(L, a, b);
    case JSON_KIND_LIST:
        if (json_length(a) != json_length(b))
            return false;
        for (size_t i = 0; i < json_length(a); i++) {
            if (!expr_same(L, json_element(a, i), json_element(b, i)))
                return false;
        }
        return true;
    case JSON_KIND_TEXT:
        expr_spend_text(L, MIN(a->count, b->count));
        return str_eq(json_text_of(a), json_text_of(b));
    case JSON_KIND_INTEGER:
    case JSON_KIND_REAL:
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
    case JSON_KIND_NULL:
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

static size_t integer_weight(int64_t value)
{
    size_t bytes = value < 0 ? 2 : 1;
    while (value /= 10)
        bytes++;
    return bytes;
}

static bool weigh(const struct json *value, size_t levels, struct weight *w);

static bool weigh_object(const struct json *value, size_t levels, struct weight *w)
{
    for (size_t i = 0; i < json_members(value); i++) {
        /* The colon, and a comma or the last brace. */
        w->bytes += text_weight(json_name_at(value, i)) + 2;
        if (!weigh(json_value_at(value, i), levels, w))
            return false;
    }
    return true;
}

/* False: too deep or too large, and as soon as that is known. A value may be in it many times over,
 * so only the limit bounds the work. */
static bool weigh(const struct json *value, size_t levels, struct weight *w)
{
    w->nodes++;
    switch ((enum json_kind)value->kind) {
    case JSON_KIND_OBJECT:
    case JSON_KIND_LIST:
        if (levels == 0) {
            w->too_deep = true;
            return false;
        }
        w->bytes++;
        if (value->kind == JSON_KIND_OBJECT) {
            w->bytes += json_members(value) == 0;
            if (!weigh_object(value, levels - 1, w))
                return false;
            break;
        }
        w->bytes += MAX(json_length(value), 1);
        for (size_t i = 0; i < json_length(value); i++) {
            if (!weigh(json_element(value, i), levels - 1, w))
                return false;
        }
        break;
    case JSON_KIND_TEXT:
        w->bytes += text_weight(json_text_of(value));
        break;
    case JSON_KIND_INTEGER:
        w->bytes += integer_weight(value->integer);
        break;
    case JSON_KIND_REAL:
        w->bytes += 3;
        w->reals++;
        break;
    case JSON_KIND_TRUE:
    case JSON_KIND_NULL:
        w->bytes += 4;
        break;
    case JSON_KIND_FALSE:
        w->bytes += 5;
        break;
    }
    return w->bytes <= JSON_TEXT_MAX;
}

struct weight expr_weigh(lua_State *L, const struct json *value, size_t depth)
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

static enum err check_fits(const struct json *value, struct problem *p)
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

enum err expr_result(const struct json *value, struct problem *p, struct json **ret)
{
    enum err e = check_fits(value, p);
    if (e == ERR_OK && json_copy_of(value, ret) != ERR_OK)
        e = problem_set(p, ERR_NO_MEMORY, "no memory for the value of an expression");
    return e;
}
