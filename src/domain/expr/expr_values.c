/* JSON in Lua and Lua in JSON: objects and lists are seen through small userdata that point into
 * the JSON, so that the size of an input does not matter to an expression that reads one member. */
#include "domain/expr/expr.h"
#include "domain/expr/expr_state.h"

#include <math.h>

enum {
    /* About what jansson takes from the heap. */
    BYTES_OF_SCALAR = 32,
    BYTES_OF_ARRAY = 128,
    BYTES_OF_OBJECT = 320,
    BYTES_OF_MEMBER = 80,
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
static void attach_value(lua_State *L, int idx, json_t *parent, const struct str *name,
                         size_t depth);

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
static void push_kept_text(lua_State *L, const json_t *value)
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
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, value);
    }
    lua_remove(L, -2);
}

void expr_push(lua_State *L, const json_t *value)
{
    if (value == NULL) {
        lua_pushnil(L);
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        expr_push_thing(L, THING_OBJECT, sizeof(struct thing), 0)->json = value;
        return;
    case JSON_ARRAY:
        expr_push_thing(L, THING_LIST, sizeof(struct thing), 0)->json = value;
        return;
    case JSON_STRING:
        if (json_string_length(value) >= KEPT_TEXT_MIN)
            push_kept_text(L, value);
        else
            lua_pushlstring(L, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        lua_pushinteger(L, json_integer_value(value));
        return;
    case JSON_REAL:
        lua_pushnumber(L, json_real_value(value));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(value));
        return;
    case JSON_NULL:
        lua_pushnil(L);
        return;
    }
    assert(false && "unknown JSON type");
}

static void push_step(lua_State *L, struct str name)
{
    struct expr *x = expr_of(L);
    const json_t *value = NULL;
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
    const json_t *value = NULL;
    if (thing->kind == THING_STEPS && name.ptr != NULL) {
        push_step(L, name);
        return 1;
    }
    if (thing->kind == THING_OBJECT && name.ptr != NULL) {
        value = json_object_getn(thing->json, name.ptr, name.len);
    } else if (thing->kind == THING_LIST && lua_type(L, 2) == LUA_TNUMBER) {
        int is_whole;
        lua_Integer place = lua_tointegerx(L, 2, &is_whole);
        if (is_whole && place >= 1)
            value = json_array_get(thing->json, (size_t)place - 1);
    }
    expr_push(L, value);
    return 1;
}

static int thing_len(lua_State *L)
{
    const struct thing *thing = lua_touserdata(L, 1);
    if (thing->kind == THING_LIST)
        lua_pushinteger(L, (lua_Integer)json_array_size(thing->json));
    else if (thing->kind == THING_OBJECT)
        lua_pushinteger(L, (lua_Integer)json_object_size(thing->json));
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
 * reals are not exact, and stay what they are. NULL: no memory. */
static json_t *json_of_number(lua_State *L, int idx)
{
    if (lua_isinteger(L, idx))
        return json_integer(lua_tointeger(L, idx));
    double value = finite_at(L, idx);
    if (value == floor(value) && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    return json_real(value);
}

/* A new reference to any value but a table. NULL: no memory. */
static json_t *plain_json(lua_State *L, int idx)
{
    switch (lua_type(L, idx)) {
    case LUA_TNONE:
    case LUA_TNIL:
        return json_null();
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(L, idx));
    case LUA_TNUMBER:
        expr_charge(L, BYTES_OF_SCALAR);
        return json_of_number(L, idx);
    case LUA_TSTRING: {
        struct str text = text_at(L, idx);
        expr_charge(L, 2 * BYTES_OF_SCALAR + text.len);
        return json_stringn_nocheck(text.ptr, text.len);
    }
    case LUA_TUSERDATA: {
        const struct thing *thing = lua_touserdata(L, idx);
        if (thing->json != NULL)
            return json_incref(expr_unconst(thing->json));
        break;
    }
    default:
        break;
    }
    throw_not_json(L, idx);
}

/* Takes a new value, NULL when there was no memory for it, into a list or, by name, an object. */
static json_t *attach(lua_State *L, json_t *parent, const struct str *name, json_t *value)
{
    int failed = value == NULL;
    if (!failed && name != NULL)
        failed = json_object_setn_new_nocheck(parent, name->ptr, name->len, value);
    else if (!failed)
        failed = json_array_append_new(parent, value);
    if (failed)
        expr_throw_no_memory(L);
    return value;
}

static void attach_list(lua_State *L, int idx, size_t count, json_t *list, size_t depth)
{
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i);
        attach_value(L, lua_gettop(L), list, NULL, depth);
        lua_pop(L, 1);
    }
}

static void attach_members(lua_State *L, int idx, const struct key *keys, size_t count,
                           json_t *object, size_t depth)
{
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, keys[i].text.ptr, keys[i].text.len);
        struct str name = text_at(L, -1);
        expr_charge(L, BYTES_OF_MEMBER + name.len);
        lua_pushvalue(L, -1);
        lua_rawget(L, idx);
        attach_value(L, lua_gettop(L), object, &name, depth);
        lua_pop(L, 2);
    }
}

/* The new container is part of its parent before it is filled, so that it has an owner. */
static void attach_table(lua_State *L, int idx, json_t *parent, const struct str *name,
                         size_t depth)
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
    if (is_list) {
        expr_charge(L, BYTES_OF_ARRAY + count * sizeof(json_t *));
        attach_list(L, idx, count, attach(L, parent, name, json_array()), depth + 1);
    } else {
        expr_charge(L, BYTES_OF_OBJECT);
        attach_members(L, idx, keys, count, attach(L, parent, name, json_object()), depth + 1);
    }
    lua_pop(L, 1);
}

/* Recursion: as deep as the result may be. `idx` is absolute; depth counts the containers around.
 */
static void attach_value(lua_State *L, int idx, json_t *parent, const struct str *name,
                         size_t depth)
{
    expr_spend(L, 1);
    if (lua_istable(L, idx)) {
        attach_table(L, idx, parent, name, depth);
        return;
    }
    const struct thing *thing = expr_thing(L, idx);
    if (thing != NULL && thing->json != NULL)
        (void)expr_weigh(L, thing->json, depth);
    (void)attach(L, parent, name, plain_json(L, idx));
}

void expr_append(lua_State *L, int idx, json_t *list)
{
    expr_charge(L, sizeof(json_t *));
    attach_value(L, lua_absindex(L, idx), list, NULL, 1);
}

json_t *expr_to_json(lua_State *L, int idx)
{
    if (lua_istable(L, idx)) {
        json_t *holder = expr_keep(L, json_array());
        attach_value(L, lua_absindex(L, idx), holder, NULL, 0);
        return json_incref(json_array_get(holder, 0));
    }
    json_t *value = plain_json(L, idx);
    if (value == NULL)
        expr_throw_no_memory(L);
    return value;
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
    const struct thing *thing = expr_thing(L, idx);
    const json_t *value = thing != NULL ? thing->json : NULL;
    if (value == NULL)
        value = expr_keep(L, expr_to_json(L, idx));
    struct weight w = expr_weigh(L, value, 0);
    expr_spend(L, w.reals * STEPS_OF_REAL + w.bytes / EXPR_TEXT_PER_STEP);
    expr_charge(L, w.bytes);
    json_put_plain(out, value);
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
