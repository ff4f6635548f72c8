/* JSON in Lua and Lua in JSON: objects and lists are seen through small userdata that point into
 * the JSON, so that the size of an input does not matter to an expression that reads one member. */
#include "domain/expr/expr.h"
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    /* Of a list that is being made, at first. */
    NEW_LIST_CAP = 8,
    /* Finding the digits of a fraction takes a while. */
    STEPS_OF_REAL = 10,
    /* An empty slot of a table is skipped in no time, but a large one may have very many. */
    TABLE_IS_LARGE = 64 * KIB,
    STEPS_OF_LARGE = 16,
    /* Longer texts are copied into Lua once in a call, not at each use. */
    KEPT_TEXT_MIN = 256,
};

static int thing_index(lua_State *L);
static int thing_len(lua_State *L);
static int thing_eq(lua_State *L);
static int refuse_change(lua_State *L);
static void put_value(lua_State *L, int idx, struct json *place, size_t depth);

/* --- things --- */

/* Any member of values of this type is nil. Pops the value. */
static void have_no_members(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_newtable(L);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

void expr_values_open(lua_State *L)
{
    static const char *const NAMES[THING_COUNT] = {
        [THING_LIST] = "list",       [THING_OBJECT] = "object", [THING_STEPS] = "object",
        [THING_LIBRARY] = "library", [THING_WALK] = "function",
    };
    struct expr *x = expr_of(L);
    for (int kind = 0; kind < THING_COUNT; kind++) {
        lua_createtable(L, 0, 5);
        lua_pushstring(L, NAMES[kind]); /* in Lua's own messages */
        lua_setfield(L, -2, "__name");
        lua_pushcfunction(L, refuse_change);
        lua_setfield(L, -2, "__newindex");
        lua_pushcfunction(L, thing_index);
        lua_setfield(L, -2, "__index");
        lua_pushcfunction(L, thing_len);
        lua_setfield(L, -2, "__len");
        lua_pushcfunction(L, thing_eq);
        lua_setfield(L, -2, "__eq");
        x->ref_meta[kind] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_pushnil(L);
    have_no_members(L);
    lua_pushboolean(L, 0);
    have_no_members(L);
    lua_pushinteger(L, 0);
    have_no_members(L);
}

struct thing *expr_push_thing(lua_State *L, enum thing_kind kind, size_t size, int user_values)
{
    assert(size >= sizeof(struct thing));
    struct thing *thing = lua_newuserdatauv(L, size, user_values);
    memset(thing, 0, size);
    thing->kind = kind;
    lua_rawgeti(L, LUA_REGISTRYINDEX, expr_of(L)->ref_meta[kind]);
    lua_setmetatable(L, -2);
    return thing;
}

struct thing *expr_thing(lua_State *L, int idx)
{
    return lua_type(L, idx) == LUA_TUSERDATA ? lua_touserdata(L, idx) : NULL;
}

const char *expr_type(lua_State *L, int idx)
{
    const struct thing *thing = expr_thing(L, idx);
    if (thing != NULL) {
        switch (thing->kind) {
        case THING_LIST:
            return "list";
        case THING_OBJECT:
        case THING_STEPS:
        case THING_LIBRARY:
            return "object";
        case THING_WALK:
        case THING_COUNT:
            return "function";
        }
    }
    if (!lua_istable(L, idx))
        return lua_isnone(L, idx) ? "nil" : luaL_typename(L, idx);
    bool has_first = lua_rawgeti(L, idx, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return has_first ? "list" : "object";
}

/* Pushes the text from where it was put when it was first used in this call. */
static void push_kept_text(lua_State *L, const struct json *value)
{
    struct expr *x = expr_of(L);
    if (!x->has_kept_texts) {
        lua_newtable(L);
        lua_rawseti(L, LUA_REGISTRYINDEX, x->ref_kept_texts);
        x->has_kept_texts = true;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, x->ref_kept_texts);
    if (lua_rawgetp(L, -1, value) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushlstring(L, value->text, value->count);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, value);
    }
    lua_remove(L, -2);
}

void expr_push(lua_State *L, const struct json *value)
{
    if (value == NULL) {
        lua_pushnil(L);
        return;
    }
    switch ((enum json_kind)value->kind) {
    case JSON_KIND_OBJECT:
        expr_push_thing(L, THING_OBJECT, sizeof(struct thing), 0)->json = value;
        return;
    case JSON_KIND_LIST:
        expr_push_thing(L, THING_LIST, sizeof(struct thing), 0)->json = value;
        return;
    case JSON_KIND_TEXT:
        if (value->count >= KEPT_TEXT_MIN)
            push_kept_text(L, value);
        else
            lua_pushlstring(L, value->text, value->count);
        return;
    case JSON_KIND_INTEGER:
        lua_pushinteger(L, value->integer);
        return;
    case JSON_KIND_REAL:
        lua_pushnumber(L, value->real);
        return;
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
        lua_pushboolean(L, value->kind == JSON_KIND_TRUE);
        return;
    case JSON_KIND_NULL:
        lua_pushnil(L);
        return;
    }
    assert(false && "unknown JSON type");
}

static void push_step(lua_State *L, struct str name)
{
    struct expr *x = expr_of(L);
    const struct json *value = NULL;
    enum err e = x->vars->get(x->vars->ctx, STR("steps"), name, &value);
    if (e != ERR_OK) {
        x->failed = e;
        expr_throw(L, e == ERR_EXPRESSION ? "the outputs of the step's items are too large together"
                                          : "the step could not be read");
    }
    expr_push(L, value);
}

/* These are only called by Lua itself, which no expression can tell to use another first argument.
 */
static int thing_index(lua_State *L)
{
    const struct thing *thing = lua_touserdata(L, 1);
    struct str name = STR_NONE;
    if (lua_type(L, 2) == LUA_TSTRING)
        name.ptr = lua_tolstring(L, 2, &name.len);
    const struct json *value = NULL;
    if (thing->kind == THING_STEPS && name.ptr != NULL) {
        push_step(L, name);
        return 1;
    }
    if (thing->kind == THING_OBJECT && name.ptr != NULL) {
        value = json_member(thing->json, name);
    } else if (thing->kind == THING_LIST && lua_type(L, 2) == LUA_TNUMBER) {
        int is_whole;
        lua_Integer place = lua_tointegerx(L, 2, &is_whole);
        if (is_whole && place >= 1)
            value = json_element(thing->json, (size_t)place - 1);
    }
    expr_push(L, value);
    return 1;
}

static int thing_len(lua_State *L)
{
    const struct thing *thing = lua_touserdata(L, 1);
    if (thing->kind == THING_LIST)
        lua_pushinteger(L, (lua_Integer)json_length(thing->json));
    else if (thing->kind == THING_OBJECT)
        lua_pushinteger(L, (lua_Integer)json_members(thing->json));
    else
        expr_throw(L, "this has no length");
    return 1;
}

static int thing_eq(lua_State *L)
{
    const struct thing *a = expr_thing(L, 1);
    const struct thing *b = expr_thing(L, 2);
    lua_pushboolean(L, a != NULL && b != NULL && a->json != NULL && b->json != NULL &&
                           expr_same(L, a->json, b->json));
    return 1;
}

static int refuse_change(lua_State *L)
{
    const struct thing *thing = lua_touserdata(L, 1);
    if (thing->kind == THING_LIBRARY && lua_type(L, 2) == LUA_TSTRING)
        expr_throw(L, "'%s' cannot be set: only local variables can", lua_tostring(L, 2));
    expr_throw(L, "%s values cannot be changed", expr_type(L, 1));
}

/* --- from Lua to JSON --- */

bool expr_is_text(struct str text)
{
    return memchr(text.len > 0 ? text.ptr : "", '\0', text.len) == NULL && str_is_utf8(text);
}

/* The text at idx, if it may be part of JSON. */
static struct str text_at(lua_State *L, int idx)
{
    struct str text;
    text.ptr = lua_tolstring(L, idx, &text.len);
    expr_spend_text(L, text.len);
    if (!expr_is_text(text))
        expr_throw(L, "a text is not UTF-8, or has a NUL in it");
    return text;
}

static double finite_at(lua_State *L, int idx)
{
    double value = lua_tonumber(L, idx);
    if (!isfinite(value))
        expr_throw(L, "a number is not finite");
    return value;
}

_Noreturn static void throw_not_json(lua_State *L, int idx)
{
    const struct thing *thing = expr_thing(L, idx);
    if (thing != NULL && thing->kind == THING_STEPS)
        expr_throw(L, "steps is not a value: name one of its steps");
    expr_throw(L, "a %s cannot be converted to JSON",
               thing != NULL && thing->kind == THING_LIBRARY ? "library" : expr_type(L, idx));
}

/* A number without a fraction is a whole one: what comes of 10 / 2 is 5, and -0.0 is 0. Past 2^53
 * reals are not exact, and stay what they are. */
static struct json number_at(lua_State *L, int idx)
{
    if (lua_isinteger(L, idx))
        return (struct json){.kind = JSON_KIND_INTEGER, .integer = lua_tointeger(L, idx)};
    double value = finite_at(L, idx);
    if (value == floor(value) && fabs(value) < 0x1p53)
        return (struct json){.kind = JSON_KIND_INTEGER, .integer = (int64_t)value};
    return (struct json){.kind = JSON_KIND_REAL, .real = value};
}

/* Any value but a table. */
static struct json plain_at(lua_State *L, int idx)
{
    const struct thing *thing = expr_thing(L, idx);
    switch (lua_type(L, idx)) {
    case LUA_TNONE:
    case LUA_TNIL:
        return (struct json){.kind = JSON_KIND_NULL};
    case LUA_TBOOLEAN:
        return (struct json){.kind = lua_toboolean(L, idx) ? JSON_KIND_TRUE : JSON_KIND_FALSE};
    case LUA_TNUMBER:
        return number_at(L, idx);
    case LUA_TSTRING:
        return json_text_value(text_at(L, idx));
    default:
        if (thing != NULL && thing->json != NULL)
            return *thing->json;
        throw_not_json(L, idx);
    }
}

static void put_list(lua_State *L, int idx, size_t count, struct json *place, size_t depth)
{
    struct json *items = expr_new_nodes(L, count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i + 1);
        put_value(L, lua_gettop(L), &items[i], depth);
        lua_pop(L, 1);
    }
    *place = (struct json){.kind = JSON_KIND_LIST, .items = items, .count = (uint32_t)count};
}

static void put_object(lua_State *L, int idx, const struct key *keys, size_t count,
                       struct json *place, size_t depth)
{
    /* Behind the members stand their order and room to sort it. */
    struct json *items = expr_new_nodes(L, 2 * count, 2 * count * sizeof(uint32_t));
    uint32_t *order = (uint32_t *)(void *)(items + 2 * count);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, keys[i].text.ptr, keys[i].text.len);
        (void)text_at(L, -1);
        items[2 * i] = json_text_value(keys[i].text);
        lua_rawget(L, idx);
        put_value(L, lua_gettop(L), &items[2 * i + 1], depth);
        lua_pop(L, 1);
    }
    const struct json *twin = json_order_make(items, (uint32_t)count, order, order + count);
    assert(twin == NULL);
    *place = (struct json){.kind = JSON_KIND_OBJECT, .items = items, .count = (uint32_t)count};
}

static void put_table(lua_State *L, int idx, struct json *place, size_t depth)
{
    if (depth >= JSON_DEPTH_MAX)
        expr_throw(L, "the value is nested deeper than %d levels", JSON_DEPTH_MAX);
    luaL_checkstack(L, 8, "values");
    size_t count;
    const struct key *keys = expr_table_keys(L, idx, &count);
    bool is_list = count > 0 && !keys[0].is_text;
    if (is_list && (keys[0].number != 1 || keys[count - 1].is_text ||
                    keys[count - 1].number != (lua_Integer)count))
        expr_throw(L, "a table must have either the keys 1 to n or only names");
    if (is_list)
        put_list(L, idx, count, place, depth + 1);
    else
        put_object(L, idx, keys, count, place, depth + 1);
    lua_pop(L, 1);
}

/* Puts the value at idx, which is absolute, into its place; depth counts the containers around.
 * Recursion: as deep as the result may be. */
static void put_value(lua_State *L, int idx, struct json *place, size_t depth)
{
    expr_spend(L, 1);
    if (lua_istable(L, idx)) {
        put_table(L, idx, place, depth);
        return;
    }
    const struct thing *thing = expr_thing(L, idx);
    if (thing != NULL && thing->json != NULL)
        (void)expr_weigh(L, thing->json, depth);
    *place = plain_at(L, idx);
}

struct json expr_to_json(lua_State *L, int idx)
{
    struct json value = {.kind = JSON_KIND_NULL};
    if (lua_istable(L, idx))
        put_value(L, lua_absindex(L, idx), &value, 0);
    else
        value = plain_at(L, idx);
    return value;
}

struct new_list expr_push_new_list(lua_State *L)
{
    struct new_list list = {.json = expr_new_nodes(L, 1, 0)};
    list.json->kind = JSON_KIND_LIST;
    expr_push(L, list.json);
    return list;
}

void expr_append(lua_State *L, int idx, struct new_list *list)
{
    size_t count = list->json->count;
    if (count == list->cap) {
        size_t cap = MAX(2 * list->cap, (size_t)NEW_LIST_CAP);
        struct json *grown = expr_new_nodes(L, cap, 0);
        if (count > 0)
            memcpy(grown, list->items, count * sizeof(*grown));
        list->cap = cap;
        list->json->items = list->items = grown;
    }
    put_value(L, lua_absindex(L, idx), &list->items[count], 1);
    list->json->count++;
}

/* --- from Lua to text --- */

_Noreturn static void throw_too_long(lua_State *L)
{
    expr_throw(L, "the text has more than %d bytes", JSON_TEXT_MAX);
}

void expr_put(lua_State *L, struct buf *out, struct str text)
{
    if (out->len > JSON_TEXT_MAX || text.len > JSON_TEXT_MAX - out->len)
        throw_too_long(L);
    buf_put(out, text);
    if (!buf_ok(out))
        expr_throw_no_memory(L);
}

void expr_put_json(lua_State *L, int idx, struct buf *out)
{
    const struct json value = expr_to_json(L, idx);
    struct weight w = expr_weigh(L, &value, 0);
    expr_spend(L, w.reals * STEPS_OF_REAL + w.bytes / EXPR_TEXT_PER_STEP);
    expr_charge(L, w.bytes);
    json_write_plain(out, &value);
    if (out->len > JSON_TEXT_MAX)
        throw_too_long(L);
    if (!buf_ok(out))
        expr_throw_no_memory(L);
}

void expr_put_text(lua_State *L, int idx, struct buf *out)
{
    if (lua_isnoneornil(L, idx))
        return;
    if (lua_type(L, idx) == LUA_TNUMBER && !lua_isinteger(L, idx)) {
        expr_spend(L, STEPS_OF_REAL);
        json_put_double(out, finite_at(L, idx));
        expr_put(L, out, STR(""));
        return;
    }
    if (lua_type(L, idx) != LUA_TSTRING) {
        expr_put_json(L, idx, out);
        return;
    }
    struct str text = text_at(L, idx);
    expr_charge(L, text.len);
    expr_put(L, out, text);
}

/* --- the keys of a table --- */

static int key_order(const void *a, const void *b)
{
    const struct key *x = a;
    const struct key *y = b;
    if (x->is_text != y->is_text)
        return x->is_text ? 1 : -1;
    if (!x->is_text)
        return (x->number > y->number) - (x->number < y->number);
    int order = memcmp(x->text.ptr, y->text.ptr, MIN(x->text.len, y->text.len));
    return order != 0 ? order : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

static struct key key_at(lua_State *L, int idx)
{
    struct key key = {0};
    if (lua_type(L, idx) == LUA_TSTRING) {
        key.is_text = true;
        key.text.ptr = lua_tolstring(L, idx, &key.text.len);
    } else if (lua_isinteger(L, idx)) {
        key.number = lua_tointeger(L, idx);
    } else {
        expr_throw(L, "the keys of a table must be whole numbers or texts");
    }
    return key;
}

const struct key *expr_table_keys(lua_State *L, int idx, size_t *ret_count)
{
    idx = lua_absindex(L, idx);
    expr_spend(L, 1 + expr_of(L)->largest_block / TABLE_IS_LARGE * STEPS_OF_LARGE);
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1))
        count++;
    expr_spend(L, 2 * count);
    struct key *keys = lua_newuserdatauv(L, (count + 1) * sizeof(*keys), 0);
    size_t n = 0;
    for (lua_pushnil(L); lua_next(L, idx) != 0; lua_pop(L, 1)) {
        assert(n < count);
        keys[n] = key_at(L, -2);
        expr_spend(L, keys[n++].text.len / EXPR_TEXT_PER_STEP);
    }
    /* Lua's own order of names depends on a seed that differs from start to start. */
    qsort(keys, count, sizeof(*keys), key_order);
    *ret_count = count;
    return keys;
}
