/* The functions that expressions may call: pure, and each pays for its work by the size of what it
 * works on. Lua's own libraries are left out as a whole: their patterns take exponential time, and
 * the rest of them is files, clocks and ways around the limits. */
#include "domain/expr/expr.h"
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    /* Text longer than this is no number. */
    NUMBER_TEXT_MAX = 200,
};

/* --- arguments --- */

struct str expr_text_arg(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TSTRING)
        luaL_typeerror(L, arg, "string");
    struct str text;
    text.ptr = lua_tolstring(L, arg, &text.len);
    expr_spend_text(L, text.len);
    return text;
}

double expr_number_arg(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TNUMBER)
        luaL_typeerror(L, arg, "number");
    return lua_tonumber(L, arg);
}

lua_Integer expr_whole_arg(lua_State *L, int arg)
{
    (void)expr_number_arg(L, arg);
    int is_whole;
    lua_Integer value = lua_tointegerx(L, arg, &is_whole);
    if (!is_whole)
        luaL_argerror(L, arg, "must be a whole number");
    return value;
}

static void function_arg(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TFUNCTION)
        luaL_typeerror(L, arg, "function");
}

struct expr_list expr_list_arg(lua_State *L, int arg)
{
    const struct thing *thing = expr_thing(L, arg);
    if (thing != NULL && thing->kind == THING_LIST)
        return (struct expr_list){thing->json, arg, json_length(thing->json)};
    if (lua_istable(L, arg))
        return (struct expr_list){NULL, arg, (size_t)lua_rawlen(L, arg)};
    if (!lua_isnil(L, arg))
        luaL_typeerror(L, arg, "list");
    return (struct expr_list){NULL, arg, 0};
}

void expr_list_push(lua_State *L, const struct expr_list *list, size_t i)
{
    if (list->json != NULL)
        expr_push(L, json_element(list->json, i));
    else
        lua_rawgeti(L, list->arg, (lua_Integer)i + 1);
}

/* Pushes what a function put into the scratch buffer. */
void expr_push_scratch(lua_State *L)
{
    const struct buf *scratch = &expr_of(L)->scratch;
    assert(buf_ok(scratch));
    expr_spend_text(L, scratch->len);
    lua_pushlstring(L, scratch->len > 0 ? scratch->ptr : "", scratch->len);
}

struct buf *expr_empty_scratch(lua_State *L)
{
    struct buf *scratch = &expr_of(L)->scratch;
    buf_clear(scratch);
    return scratch;
}

/* --- values --- */

static int lib_type(lua_State *L)
{
    lua_pushstring(L, expr_type(L, 1));
    return 1;
}

static int lib_tostring(lua_State *L)
{
    switch (lua_type(L, 1)) {
    case LUA_TNONE:
    case LUA_TNIL:
        lua_pushliteral(L, "nil");
        return 1;
    case LUA_TSTRING:
        lua_settop(L, 1);
        return 1;
    case LUA_TNUMBER:
        if (!isfinite(lua_tonumber(L, 1))) {
            lua_settop(L, 1);
            (void)lua_tostring(L, 1); /* inf or nan */
            return 1;
        }
        break;
    case LUA_TFUNCTION:
        lua_pushliteral(L, "function"); /* and not its address */
        return 1;
    default:
        break;
    }
    expr_put_text(L, 1, expr_empty_scratch(L));
    expr_push_scratch(L);
    return 1;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : INT32_MAX;
}

/* A whole number in this base, with nothing but a sign before it. False also when it needs more
 * than 64 bits. */
static bool parse_in_base(struct str text, int base, lua_Integer *ret)
{
    bool negative = text.len > 0 && text.ptr[0] == '-';
    lua_Integer value = 0;
    size_t i = negative ? 1 : 0;
    bool ok = text.len > i;
    for (; ok && i < text.len; i++) {
        int digit = digit_value(text.ptr[i]);
        ok = digit < base && !__builtin_mul_overflow(value, base, &value) &&
             !__builtin_add_overflow(value, negative ? -digit : digit, &value);
    }
    *ret = value;
    return ok;
}

static int tonumber_in_base(lua_State *L)
{
    struct str text = str_trim(expr_text_arg(L, 1));
    lua_Integer base = expr_whole_arg(L, 2);
    luaL_argcheck(L, base >= 2 && base <= 36, 2, "base must be from 2 to 36");
    lua_Integer value;
    if (text.len <= NUMBER_TEXT_MAX && parse_in_base(text, (int)base, &value))
        lua_pushinteger(L, value);
    else
        lua_pushnil(L);
    return 1;
}

static int lib_tonumber(lua_State *L)
{
    if (!lua_isnoneornil(L, 2))
        return tonumber_in_base(L);
    if (lua_type(L, 1) == LUA_TSTRING) {
        struct str text = expr_text_arg(L, 1);
        if (text.len > NUMBER_TEXT_MAX || lua_stringtonumber(L, text.ptr) != text.len + 1)
            lua_pushnil(L);
        return 1;
    }
    lua_settop(L, 1);
    if (lua_type(L, 1) != LUA_TNUMBER)
        lua_pushnil(L);
    return 1;
}

static int lib_select(lua_State *L)
{
    int count = lua_gettop(L);
    if (lua_type(L, 1) == LUA_TSTRING && str_is(expr_text_arg(L, 1), "#")) {
        lua_pushinteger(L, count - 1);
        return 1;
    }
    lua_Integer from = expr_whole_arg(L, 1);
    if (from < 0)
        from = count + from;
    luaL_argcheck(L, from >= 1, 1, "index out of range");
    return from < count ? count - (int)from : 0;
}

/* --- walks --- */

struct walk {
    struct thing thing;
    const struct json *json; /* NULL: a table, the first user value */
    const struct key *keys;  /* of a table in pairs(); the second user value owns them */
    bool by_place;
    size_t next;
    size_t count;
};

/* Each pushes the next key and its value; the walk is at 1. */
static void push_element(lua_State *L, const struct walk *w, size_t i)
{
    lua_pushinteger(L, (lua_Integer)i + 1);
    if (w->json != NULL) {
        expr_push(L, json_element(w->json, i));
        return;
    }
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    lua_remove(L, -2);
}

static void push_member(lua_State *L, const struct walk *w, size_t i)
{
    struct str name = json_name_at(w->json, i);
    lua_pushlstring(L, name.ptr, name.len);
    expr_push(L, json_value_at(w->json, i));
}

static void push_field(lua_State *L, const struct key *key)
{
    lua_getiuservalue(L, 1, 1);
    if (key->is_text)
        lua_pushlstring(L, key->text.ptr, key->text.len);
    else
        lua_pushinteger(L, key->number);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    lua_remove(L, -3);
}

/* With the walk itself as its state: an expression that calls it by hand only gets the next. */
static int walk_next(lua_State *L)
{
    struct walk *w = (struct walk *)(void *)expr_thing(L, 1);
    if (w == NULL || w->thing.kind != THING_WALK)
        return luaL_typeerror(L, 1, "walk");
    if (w->next >= w->count) {
        lua_pushnil(L);
        return 1;
    }
    expr_spend(L, 1);
    size_t i = w->next++;
    if (w->by_place)
        push_element(L, w, i);
    else if (w->json != NULL)
        push_member(L, w, i);
    else
        push_field(L, &w->keys[i]);
    return 2;
}

/* Leaves walk_next, the walk and nil. */
static struct walk *push_walk(lua_State *L)
{
    lua_pushcfunction(L, walk_next);
    struct walk *w = (struct walk *)(void *)expr_push_thing(L, THING_WALK, sizeof(struct walk), 2);
    lua_pushnil(L);
    return w;
}

static void walk_places(lua_State *L, const struct expr_list *list)
{
    struct walk *w = push_walk(L);
    w->by_place = true;
    w->json = list->json;
    w->count = list->count;
    lua_pushvalue(L, list->arg);
    lua_setiuservalue(L, -3, 1);
}

static int lib_ipairs(lua_State *L)
{
    lua_settop(L, 1);
    struct expr_list list = expr_list_arg(L, 1);
    walk_places(L, &list);
    return 3;
}

static int lib_pairs(lua_State *L)
{
    lua_settop(L, 1);
    const struct thing *thing = expr_thing(L, 1);
    if (thing != NULL && thing->kind == THING_OBJECT) {
        struct walk *w = push_walk(L);
        w->json = thing->json;
        w->count = json_members(thing->json);
        return 3;
    }
    if (!lua_istable(L, 1)) {
        if (!lua_isnil(L, 1) && (thing == NULL || thing->kind != THING_LIST))
            luaL_typeerror(L, 1, "list or object");
        return lib_ipairs(L);
    }
    size_t count;
    const struct key *keys = expr_table_keys(L, 1, &count); /* at 2 */
    struct walk *w = push_walk(L);
    w->keys = keys;
    w->count = count;
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -3, 1);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -3, 2);
    return 3;
}

/* --- lists --- */

static int lib_list(lua_State *L)
{
    int count = lua_gettop(L);
    struct new_list list = expr_push_new_list(L);
    for (int i = 1; i <= count; i++)
        expr_append(L, i, &list);
    return 1;
}

static int lib_count(lua_State *L)
{
    lua_settop(L, 1);
    const struct thing *thing = expr_thing(L, 1);
    size_t count = 0;
    if (thing != NULL && thing->kind == THING_OBJECT)
        count = json_members(thing->json);
    else if (lua_istable(L, 1))
        (void)expr_table_keys(L, 1, &count);
    else
        count = expr_list_arg(L, 1).count;
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* Calls the function at 2 with an element and its place; leaves the element and the result. */
static void call_with(lua_State *L, const struct expr_list *list, size_t i)
{
    expr_spend(L, 1);
    expr_list_push(L, list, i);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_pushinteger(L, (lua_Integer)i + 1);
    lua_call(L, 2, 1);
}

static int lib_map(lua_State *L)
{
    lua_settop(L, 2);
    struct expr_list from = expr_list_arg(L, 1);
    function_arg(L, 2);
    struct new_list list = expr_push_new_list(L);
    for (size_t i = 0; i < from.count; i++) {
        call_with(L, &from, i);
        expr_append(L, -1, &list);
        lua_pop(L, 2);
    }
    return 1;
}

static int lib_filter(lua_State *L)
{
    lua_settop(L, 2);
    struct expr_list from = expr_list_arg(L, 1);
    function_arg(L, 2);
    struct new_list list = expr_push_new_list(L);
    for (size_t i = 0; i < from.count; i++) {
        call_with(L, &from, i);
        if (lua_toboolean(L, -1))
            expr_append(L, -2, &list);
        lua_pop(L, 2);
    }
    return 1;
}

static int lib_reduce(lua_State *L)
{
    lua_settop(L, 3);
    struct expr_list from = expr_list_arg(L, 1);
    function_arg(L, 2);
    for (size_t i = 0; i < from.count; i++) {
        expr_spend(L, 1);
        lua_pushvalue(L, 2);
        lua_insert(L, 3);
        expr_list_push(L, &from, i);
        lua_call(L, 2, 1);
    }
    return 1;
}

/* Does the value at idx equal a JSON value? */
static bool equals(lua_State *L, int idx, const struct json *value)
{
    const struct thing *thing = expr_thing(L, idx);
    if (thing != NULL)
        return thing->json != NULL && expr_same(L, thing->json, value);
    if (value->kind == JSON_KIND_OBJECT || value->kind == JSON_KIND_LIST)
        return false;
    expr_push(L, value);
    if (value->kind == JSON_KIND_TEXT)
        expr_spend_text(L, value->count);
    bool equal = lua_rawequal(L, idx, -1);
    lua_pop(L, 1);
    return equal;
}

static int lib_contains(lua_State *L)
{
    lua_settop(L, 2);
    struct expr_list list = expr_list_arg(L, 1);
    bool found = false;
    for (size_t i = 0; i < list.count && !found; i++) {
        expr_spend(L, 1);
        if (list.json != NULL) {
            found = equals(L, 2, json_element(list.json, i));
        } else {
            lua_rawgeti(L, 1, (lua_Integer)i + 1);
            found = lua_compare(L, 2, -1, LUA_OPEQ);
            lua_pop(L, 1);
        }
    }
    lua_pushboolean(L, found);
    return 1;
}

/* Members of an object or a table, or elements: names or values of them. */
static int names_or_values(lua_State *L, bool names)
{
    lua_settop(L, 1);
    (void)lib_pairs(L); /* at 2, 3 and 4; checks the argument */
    int walk = lua_gettop(L) - 1;
    struct new_list list = expr_push_new_list(L);
    for (;;) {
        lua_pushcfunction(L, walk_next);
        lua_pushvalue(L, walk);
        lua_call(L, 1, 2);
        if (lua_isnil(L, -2))
            break;
        expr_append(L, names ? -2 : -1, &list);
        lua_pop(L, 2);
    }
    lua_pop(L, 2);
    return 1;
}

static int lib_keys(lua_State *L)
{
    return names_or_values(L, true);
}

static int lib_values(lua_State *L)
{
    return names_or_values(L, false);
}

/* Is b to stand before a? The function at 2 decides, or Lua's <. */
static bool is_before(lua_State *L, const struct json *b, const struct json *a)
{
    expr_spend(L, 1);
    bool before;
    if (lua_isnil(L, 2)) {
        expr_push(L, b);
        expr_push(L, a);
        if (a->kind == JSON_KIND_TEXT && b->kind == JSON_KIND_TEXT)
            expr_spend_text(L, MIN(a->count, b->count));
        before = lua_compare(L, -2, -1, LUA_OPLT);
        lua_pop(L, 2);
    } else {
        lua_pushvalue(L, 2);
        expr_push(L, b);
        expr_push(L, a);
        lua_call(L, 2, 1);
        before = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    return before;
}

/* Merges the sorted runs [from, middle) and [middle, to). */
static void merge(lua_State *L, const struct json **in, const struct json **out, size_t from,
                  size_t middle, size_t to)
{
    size_t left = from;
    size_t right = middle;
    for (size_t i = from; i < to; i++) {
        if (left < middle && (right >= to || !is_before(L, in[right], in[left])))
            out[i] = in[left++];
        else
            out[i] = in[right++];
    }
}

/* By merging: an answer of `before` that makes no sense gives some order, and nothing worse. */
static int lib_sort(lua_State *L)
{
    lua_settop(L, 2);
    struct expr_list from = expr_list_arg(L, 1);
    if (!lua_isnil(L, 2))
        function_arg(L, 2);
    struct new_list given = expr_push_new_list(L);
    for (size_t i = 0; i < from.count; i++) {
        expr_list_push(L, &from, i);
        expr_append(L, -1, &given);
        lua_pop(L, 1);
    }
    size_t count = from.count;
    const struct json **in = lua_newuserdatauv(L, (2 * count + 1) * sizeof(struct json *), 0);
    const struct json **out = in + count;
    for (size_t i = 0; i < count; i++)
        in[i] = json_element(given.json, i);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width)
            merge(L, in, out, i, MIN(i + width, count), MIN(i + 2 * width, count));
        const struct json **swap = in;
        in = out;
        out = swap;
    }
    struct json *sorted = expr_new_nodes(L, count, 0);
    for (size_t i = 0; i < count; i++)
        sorted[i] = *in[i];
    struct new_list list = expr_push_new_list(L);
    list.json->items = sorted;
    list.json->count = (uint32_t)count;
    return 1;
}

/* --- the tables --- */

static const luaL_Reg GLOBAL_FUNCTIONS[] = {
    {"type", lib_type},     {"tostring", lib_tostring}, {"tonumber", lib_tonumber},
    {"pairs", lib_pairs},   {"ipairs", lib_ipairs},     {"select", lib_select},
    {"list", lib_list},     {"count", lib_count},       {"map", lib_map},
    {"filter", lib_filter}, {"reduce", lib_reduce},     {"sort", lib_sort},
    {"keys", lib_keys},     {"values", lib_values},     {"contains", lib_contains},
    {NULL, NULL},
};

/* A global that is no function: one of the roots, or a slip. */
static int root_index(lua_State *L)
{
    static const char *const ROOTS[] = {"input", "state", "item", "run"};
    struct expr *x = expr_of(L);
    struct str name = STR("?");
    if (lua_type(L, 2) == LUA_TSTRING)
        name.ptr = lua_tolstring(L, 2, &name.len);
    for (size_t i = 0; i < ARRAY_LEN(ROOTS); i++) {
        if (!str_is(name, ROOTS[i]))
            continue;
        const struct json *value = NULL;
        enum err e = x->vars->get(x->vars->ctx, name, STR_NONE, &value);
        if (e != ERR_OK) {
            x->failed = e;
            expr_throw(L, "'%s' could not be read", ROOTS[i]);
        }
        expr_push(L, value);
        return 1;
    }
    expr_throw(L, "there is no '%s': expressions see input, state, steps, item and run", name.ptr);
}

/* Replaces the table on the stack by a thing that shows it and cannot be changed. */
static void seal(lua_State *L)
{
    int table = lua_gettop(L);
    (void)expr_push_thing(L, THING_LIBRARY, sizeof(struct thing), 0);
    lua_getmetatable(L, -1);
    lua_createtable(L, 0, 3);
    static const char *const SAME[] = {"__name", "__newindex"};
    for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
        lua_getfield(L, -2, SAME[i]);
        lua_setfield(L, -2, SAME[i]);
    }
    lua_pushvalue(L, table);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -3);
    lua_pop(L, 1);
    lua_replace(L, table);
}

/* A name that a library does not have is a slip, not nil. */
static int library_lacks(lua_State *L)
{
    const char *library = lua_tostring(L, lua_upvalueindex(1));
    if (lua_type(L, 2) == LUA_TSTRING)
        expr_throw(L, "there is no '%s.%s'", library, lua_tostring(L, 2));
    expr_throw(L, "'%s' contains only functions; name one of them", library);
}

/* Puts a library into the table of globals on top of the stack. */
static void add_library(lua_State *L, const char *name, const luaL_Reg *functions)
{
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, name);
    lua_pushcclosure(L, library_lacks, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    seal(L);
    lua_setfield(L, -2, name);
}

void expr_library_open(lua_State *L)
{
    /* Texts have these as methods. */
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 1);
    lua_newtable(L);
    luaL_setfuncs(L, EXPR_STRING_FUNCTIONS, 0);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);

    lua_newtable(L);
    luaL_setfuncs(L, GLOBAL_FUNCTIONS, 0);
    add_library(L, "string", EXPR_STRING_FUNCTIONS);
    add_library(L, "math", EXPR_MATH_FUNCTIONS);
    add_library(L, "json", EXPR_JSON_FUNCTIONS);
    (void)expr_push_thing(L, THING_STEPS, sizeof(struct thing), 0);
    lua_setfield(L, -2, "steps");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, root_index);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    seal(L);
}
