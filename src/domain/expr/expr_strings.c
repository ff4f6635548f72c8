/* The functions of `string`, `math` and `json`. */
#define _GNU_SOURCE /* memmem */
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    ROUND_DIGITS_MAX = 15,
    /* Searching a text takes longer than reading it. */
    SEARCHED_PER_STEP = 128,
    /* Reading JSON makes many values of few bytes. */
    DECODED_PER_STEP = 4,
    DECODED_MEMORY = 2,
};

/* --- json --- */

static int json_lib_encode(lua_State *L)
{
    lua_settop(L, 1);
    expr_put_json(L, 1, expr_empty_scratch(L));
    expr_push_scratch(L);
    return 1;
}

static int json_lib_decode(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    expr_spend(L, text.len / DECODED_PER_STEP);
    expr_charge(L, text.len * DECODED_MEMORY);
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    enum err e = json_read(text, &p, &value);
    assert(p.faults.ptr == NULL); /* so there is nothing to release */
    if (e == ERR_NO_MEMORY)
        expr_throw_no_memory(L);
    if (e != ERR_OK)
        expr_throw(L, "json.decode: %s", p.detail);
    expr_keep(L, value);
    expr_push(L, value);
    return 1;
}

/* --- math --- */

/* A whole number if it is one. */
static void push_rounded(lua_State *L, double value)
{
    lua_Integer whole;
    if (lua_numbertointeger(value, &whole))
        lua_pushinteger(L, whole);
    else
        lua_pushnumber(L, value);
}

static int math_floor(lua_State *L)
{
    double value = expr_number_arg(L, 1);
    lua_settop(L, 1);
    if (!lua_isinteger(L, 1))
        push_rounded(L, floor(value));
    return 1;
}

static int math_ceil(lua_State *L)
{
    double value = expr_number_arg(L, 1);
    lua_settop(L, 1);
    if (!lua_isinteger(L, 1))
        push_rounded(L, ceil(value));
    return 1;
}

/* Halves away from zero. */
static int math_round(lua_State *L)
{
    double value = expr_number_arg(L, 1);
    lua_Integer digits = lua_isnoneornil(L, 2) ? 0 : expr_whole_arg(L, 2);
    luaL_argcheck(L, digits >= 0 && digits <= ROUND_DIGITS_MAX, 2, "must be from 0 to 15");
    lua_settop(L, 1);
    if (lua_isinteger(L, 1))
        return 1;
    if (digits == 0) {
        push_rounded(L, round(value));
        return 1;
    }
    double scale = pow(10, (double)digits);
    double scaled = value * scale;
    /* Past 2^52 there are no fractions to round. */
    lua_pushnumber(L, fabs(scaled) < 0x1p52 ? round(scaled) / scale : value);
    return 1;
}

static int math_abs(lua_State *L)
{
    double value = expr_number_arg(L, 1);
    if (lua_isinteger(L, 1)) {
        lua_Integer whole = lua_tointeger(L, 1);
        /* The smallest has no opposite and stays, as in Lua. */
        lua_pushinteger(L, whole < 0 ? (lua_Integer)(0u - (lua_Unsigned)whole) : whole);
    } else {
        lua_pushnumber(L, fabs(value));
    }
    return 1;
}

static int extreme(lua_State *L, bool largest)
{
    int count = lua_gettop(L);
    int best = 1;
    (void)expr_number_arg(L, 1);
    for (int i = 2; i <= count; i++) {
        (void)expr_number_arg(L, i);
        if (lua_compare(L, largest ? best : i, largest ? i : best, LUA_OPLT))
            best = i;
    }
    lua_pushvalue(L, best);
    return 1;
}

static int math_min(lua_State *L)
{
    return extreme(L, false);
}

static int math_max(lua_State *L)
{
    return extreme(L, true);
}

static int math_tointeger(lua_State *L)
{
    int is_whole = 0;
    lua_Integer whole = 0;
    if (lua_type(L, 1) == LUA_TNUMBER)
        whole = lua_tointegerx(L, 1, &is_whole);
    if (is_whole)
        lua_pushinteger(L, whole);
    else
        lua_pushnil(L);
    return 1;
}

/* --- string --- */

static void append_text(lua_State *L, struct new_list *list, struct str text)
{
    expr_spend(L, 1);
    lua_pushlstring(L, text.ptr, text.len);
    expr_append(L, -1, list);
    lua_pop(L, 1);
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80; /* not the first byte of a character */
}

static size_t count_characters(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += !is_inside(text.ptr[i]);
    return count;
}

static int string_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)count_characters(expr_text_arg(L, 1)));
    return 1;
}

/* The byte at which the character with this number begins; the end when there is none. */
static size_t byte_of(struct str text, lua_Integer character)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_inside(text.ptr[i]) && character-- == 0)
            return i;
    }
    return text.len;
}

static int string_sub(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    lua_Integer count = (lua_Integer)count_characters(text);
    lua_Integer from = expr_whole_arg(L, 2);
    lua_Integer to = lua_isnoneornil(L, 3) ? -1 : expr_whole_arg(L, 3);
    if (from < 0)
        from = MAX(count + from + 1, 1);
    if (to < 0)
        to = count + to + 1;
    from = MAX(from, 1);
    to = MIN(to, count);
    if (from > to) {
        lua_pushliteral(L, "");
        return 1;
    }
    size_t begin = byte_of(text, from - 1);
    lua_pushlstring(L, text.ptr + begin, byte_of(text, to) - begin);
    return 1;
}

static int change_case(lua_State *L, char first, char last)
{
    struct str text = expr_text_arg(L, 1);
    struct buf *out = expr_empty_scratch(L);
    expr_put(L, out, text);
    for (size_t i = 0; i < text.len; i++) {
        if (out->ptr[i] >= first && out->ptr[i] <= last)
            out->ptr[i] ^= 'a' ^ 'A';
    }
    expr_push_scratch(L);
    return 1;
}

static int string_lower(lua_State *L)
{
    return change_case(L, 'A', 'Z');
}

static int string_upper(lua_State *L)
{
    return change_case(L, 'a', 'z');
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int string_trim(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    while (text.len > 0 && is_space(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    lua_pushlstring(L, text.ptr, text.len);
    return 1;
}

/* Where `what`, which is not empty, is next, or NULL. */
static const char *find(struct str text, struct str what)
{
    return memmem(text.ptr, text.len, what.ptr, what.len);
}

/* The first argument, to be searched once from its beginning to its end. */
static struct str searched_arg(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    expr_spend(L, text.len / SEARCHED_PER_STEP);
    return text;
}

static int string_contains(lua_State *L)
{
    struct str text = searched_arg(L);
    struct str what = expr_text_arg(L, 2);
    lua_pushboolean(L, what.len == 0 || find(text, what) != NULL);
    return 1;
}

static int string_starts_with(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    lua_pushboolean(L, str_starts_with(text, expr_text_arg(L, 2)));
    return 1;
}

static int string_ends_with(lua_State *L)
{
    struct str text = expr_text_arg(L, 1);
    lua_pushboolean(L, str_ends_with(text, expr_text_arg(L, 2)));
    return 1;
}

/* Cuts text at the next `at`: true with the part before it, or false with all that is left. */
static bool cut(struct str *text, struct str at, struct str *part)
{
    const char *found = find(*text, at);
    *part = *text;
    if (found == NULL)
        return false;
    part->len = (size_t)(found - text->ptr);
    text->ptr = found + at.len;
    text->len -= part->len + at.len;
    return true;
}

static struct str not_empty_arg(lua_State *L, int arg)
{
    struct str text = expr_text_arg(L, arg);
    luaL_argcheck(L, text.len > 0, arg, "must not be empty");
    return text;
}

static int string_split(lua_State *L)
{
    struct str text = searched_arg(L);
    struct str at = not_empty_arg(L, 2);
    struct new_list list = expr_push_new_list(L);
    struct str part;
    while (cut(&text, at, &part))
        append_text(L, &list, part);
    append_text(L, &list, part);
    return 1;
}

static int string_replace(lua_State *L)
{
    struct str text = searched_arg(L);
    struct str what = not_empty_arg(L, 2);
    struct str by = expr_text_arg(L, 3);
    struct buf *out = expr_empty_scratch(L);
    struct str part;
    while (cut(&text, what, &part)) {
        expr_spend_text(L, by.len);
        expr_put(L, out, part);
        expr_put(L, out, by);
    }
    expr_put(L, out, part);
    expr_push_scratch(L);
    return 1;
}

static int string_join(lua_State *L)
{
    lua_settop(L, 2);
    struct expr_list list = expr_list_arg(L, 1);
    struct str between = lua_isnil(L, 2) ? STR("") : expr_text_arg(L, 2);
    struct buf *out = expr_empty_scratch(L);
    for (size_t i = 0; i < list.count; i++) {
        expr_spend_text(L, between.len);
        if (i > 0)
            expr_put(L, out, between);
        expr_list_push(L, &list, i);
        expr_put_text(L, -1, out);
        lua_pop(L, 1);
    }
    expr_push_scratch(L);
    return 1;
}

/* --- the tables --- */

const luaL_Reg EXPR_STRING_FUNCTIONS[] = {
    {"len", string_len},     {"lower", string_lower},         {"upper", string_upper},
    {"sub", string_sub},     {"contains", string_contains},   {"starts_with", string_starts_with},
    {"split", string_split}, {"ends_with", string_ends_with}, {"join", string_join},
    {"trim", string_trim},   {"replace", string_replace},     {NULL, NULL},
};

const luaL_Reg EXPR_MATH_FUNCTIONS[] = {
    {"abs", math_abs}, {"floor", math_floor}, {"ceil", math_ceil},           {"min", math_min},
    {"max", math_max}, {"round", math_round}, {"tointeger", math_tointeger}, {NULL, NULL},
};

const luaL_Reg EXPR_JSON_FUNCTIONS[] = {
    {"encode", json_lib_encode},
    {"decode", json_lib_decode},
    {NULL, NULL},
};
