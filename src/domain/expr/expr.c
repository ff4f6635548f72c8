/* The state in which expressions run: its memory, its budget, what it has compiled, and the calls
 * from outside. */
#include "domain/expr/expr.h"

#include "domain/expr/expr_state.h"

#include <stdarg.h>

enum {
    /* Lua reports after so many instructions. */
    HOOK_EVERY = 100,
    /* Instructions that compare texts take longer when the texts do: each costs one step more for
     * this much of the longest. */
    TEXT_PER_INSTRUCTION = 16 * KIB,
    /* Entering an expression costs about as much as so many instructions. */
    STEPS_OF_EVALUATION = 10,
    /* Garbage is collected between calls, and only when there is this much: a collection looks at
     * all that is compiled. An expression leaves some hundred bytes. */
    GARBAGE_MAX = 256 * KIB,
    SCRATCH_KEPT_MAX = 64 * KIB,
    MADE_KEPT_MAX = 64 * KIB,
    READ_KEPT_MAX = 1024,
    /* A chunk has its place in one of these many, by its hash. */
    CHUNK_WAYS = 4,
    CHUNK_SETS = EXPR_CACHE_MAX / CHUNK_WAYS,
    /* Of an expression, in messages. */
    SOURCE_SHOWN_MAX = 80,
    REASON_MAX = 256,
};

static_assert(CHUNK_SETS * CHUNK_WAYS == EXPR_CACHE_MAX, "every place is in a set");

static int open_state(lua_State *L);
static int check_source(lua_State *L);
static int evaluate(lua_State *L);
static void chunks_clear(struct expr *x);

/* --- memory --- */

/* Lua's allocator. What shrinks must not fail. What grows may be refused, and is from then on
 * always refused: Lua answers with a collection and asks again, which would take longer each time,
 * and a call in which something was collected must not go on. */
static void *allocate(void *ctx, void *old, size_t old_size, size_t size)
{
    struct expr *x = ctx;
    size_t before = old != NULL ? old_size : 0;
    /* Of new memory it says the type in the place of the size. */
    size_t *largest = old == NULL && old_size == LUA_TSTRING ? &x->longest_text : &x->largest_block;
    *largest = MAX(*largest, size);
    if (size > before) {
        x->over_memory = x->over_memory || size - before > x->room;
        if (x->over_memory || x->failed == ERR_NO_MEMORY)
            return NULL;
    }
    void *memory = NULL;
    if (size == 0) {
        free(old);
    } else {
        memory = realloc(old, size);
        if (memory == NULL && size > before) {
            x->failed = ERR_NO_MEMORY;
            return NULL;
        }
        if (memory == NULL)
            memory = old;
    }
    x->used = x->used - before + size;
    x->room = x->room + before - size;
    return memory;
}

struct expr *expr_new(void)
{
    return expr_new_within(EXPR_MEMORY_MAX);
}

struct expr *expr_new_within(size_t memory_max)
{
    struct expr *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return NULL;
    x->memory_max = EXPR_MEMORY_MAX;
    x->room = memory_max;
    buf_init(&x->scratch, EXPR_WRITTEN_MAX);
    arena_init(&x->made, SIZE_MAX); /* its bound is what a call may take */
    x->lua = lua_newstate(allocate, x);
    if (x->lua == NULL) {
        free(x);
        return NULL;
    }
    memcpy(lua_getextraspace(x->lua), &x, sizeof(struct expr *));
    (void)lua_gc(x->lua, LUA_GCSTOP);
    lua_pushcfunction(x->lua, open_state);
    if (lua_pcall(x->lua, 0, 0, 0) != LUA_OK) {
        expr_free(x);
        return NULL;
    }
    (void)lua_gc(x->lua, LUA_GCCOLLECT);
    x->used_settled = x->used;
    return x;
}

void expr_limit(struct expr *x, size_t memory_max)
{
    assert(!x->busy);
    x->memory_max = memory_max;
}

void expr_free(struct expr *x)
{
    if (x == NULL)
        return;
    assert(!x->busy && x->read_count == 0);
    lua_close(x->lua);
    assert(x->used == 0);
    for (size_t i = 0; i < EXPR_CACHE_MAX; i++)
        free(x->chunks[i].source);
    buf_release(&x->scratch);
    arena_release(&x->made);
    free(x->read);
    free(x);
}

static int open_state(lua_State *L)
{
    struct expr *x = expr_of(L);
    expr_values_open(L);
    expr_library_open(L);
    x->ref_globals = luaL_ref(L, LUA_REGISTRYINDEX);
    /* Places that exist already are filled without an allocation. */
    lua_pushboolean(L, false);
    x->ref_kept_texts = luaL_ref(L, LUA_REGISTRYINDEX);
    for (size_t i = 0; i < EXPR_CACHE_MAX; i++) {
        lua_pushboolean(L, false);
        x->chunks[i].ref = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    return 0;
}

/* --- budget --- */

void expr_throw(lua_State *L, const char *fmt, ...)
{
    luaL_where(L, 1);
    va_list args;
    va_start(args, fmt);
    (void)lua_pushvfstring(L, fmt, args);
    va_end(args);
    lua_concat(L, 2);
    (void)lua_error(L);
    abort();
}

void expr_throw_no_memory(lua_State *L)
{
    expr_of(L)->failed = ERR_NO_MEMORY;
    expr_throw(L, "no memory");
}

void expr_spend(lua_State *L, size_t steps)
{
    struct expr *x = expr_of(L);
    if (steps <= x->steps_left) {
        x->steps_left -= steps;
        return;
    }
    x->over_steps = true;
    expr_throw(L, "too many steps");
}

void expr_charge(lua_State *L, size_t bytes)
{
    struct expr *x = expr_of(L);
    if (bytes <= x->room) {
        x->room -= bytes;
        return;
    }
    x->over_memory = true;
    expr_throw(L, "too much memory");
}

void expr_keep(lua_State *L, struct json *document)
{
    struct expr *x = expr_of(L);
    if (x->read_count == x->read_cap) {
        size_t cap = x->read_cap > 0 ? 2 * x->read_cap : 16;
        struct json **grown = realloc(x->read, cap * sizeof(struct json *));
        if (grown == NULL) {
            json_free(document);
            expr_throw_no_memory(L);
        }
        x->read = grown;
        x->read_cap = cap;
    }
    x->read[x->read_count++] = document;
}

struct json *expr_new_nodes(lua_State *L, size_t count, size_t more)
{
    assert(count <= EXPR_MEMORY_MAX); /* they are in Lua's memory already, or were paid for */
    size_t size = count * sizeof(struct json) + more;
    expr_charge(L, size);
    struct json *nodes = arena_alloc(&expr_of(L)->made, size);
    if (nodes == NULL)
        expr_throw_no_memory(L);
    return nodes;
}

static void count_instructions(lua_State *L, lua_Debug *ar UNUSED)
{
    expr_spend(L, HOOK_EVERY * (1 + expr_of(L)->longest_text / TEXT_PER_INSTRUCTION));
}

/* --- one call from outside --- */

uint64_t expr_steps_spent(const struct expr *x)
{
    return x->steps_spent;
}

void expr_call_begin(struct expr *x, const struct expr_vars *vars)
{
    assert(!x->busy && x->read_count == 0 && lua_gettop(x->lua) == 0);
    x->busy = true;
    x->vars = vars;
    x->steps_left = EXPR_STEPS_MAX;
    x->room = x->memory_max;
    x->longest_text = x->largest_block = 0;
    x->over_steps = x->over_memory = x->has_kept_texts = false;
    x->failed = ERR_OK;
    lua_sethook(x->lua, count_instructions, LUA_MASKCOUNT, HOOK_EVERY);
}

void expr_call_end(struct expr *x)
{
    assert(x->busy);
    x->steps_spent += x->over_steps ? EXPR_STEPS_MAX : EXPR_STEPS_MAX - x->steps_left;
    lua_settop(x->lua, 0);
    if (x->has_kept_texts) {
        lua_pushboolean(x->lua, false);
        lua_rawseti(x->lua, LUA_REGISTRYINDEX, x->ref_kept_texts);
    }
    if (x->used > x->used_settled + GARBAGE_MAX) {
        (void)lua_gc(x->lua, LUA_GCCOLLECT);
        if (x->used > EXPR_CACHE_BYTES_MAX) {
            chunks_clear(x);
            (void)lua_gc(x->lua, LUA_GCCOLLECT);
        }
        x->used_settled = x->used;
    }
    while (x->read_count > 0)
        json_free(x->read[--x->read_count]);
    if (x->read_cap > READ_KEPT_MAX) {
        free(x->read);
        x->read = NULL;
        x->read_cap = 0;
    }
    if (x->made.used > MADE_KEPT_MAX)
        arena_release(&x->made);
    else
        arena_clear(&x->made);
    if (x->scratch.cap > SCRATCH_KEPT_MAX)
        buf_release(&x->scratch);
    x->vars = NULL;
    x->busy = false;
}

/* Calls fn, protected, with one pointer. False: the message is on the stack. */
static bool call(struct expr *x, lua_CFunction fn, void *arg)
{
    lua_pushcfunction(x->lua, fn);
    lua_pushlightuserdata(x->lua, arg);
    int status = lua_pcall(x->lua, 1, 0, 0);
    assert(status != LUA_ERRMEM || x->over_memory || x->failed != ERR_OK);
    return status == LUA_OK;
}

/* What went wrong, from the message on the stack, without our chunk's name and the number of the
 * first or only line: Lua counts one more at the end of an expression. */
static void reason(struct expr *x, struct str source, char ret[static REASON_MAX])
{
    const char *message = lua_tostring(x->lua, -1);
    char *rest = NULL;
    unsigned long line = 0;
    if (message == NULL)
        message = "failed";
    size_t name_len = sizeof(EXPR_CHUNK_NAME ":") - 1;
    if (strncmp(message, EXPR_CHUNK_NAME ":", name_len) == 0) {
        line = strtoul(message + name_len, &rest, 10);
        if (rest[0] == ':' && rest[1] == ' ')
            message = rest + 2;
    }
    if (x->over_memory)
        (void)snprintf(ret, REASON_MAX, "takes more than %d MiB of memory", EXPR_MEMORY_MAX / MIB);
    else if (x->over_steps)
        (void)snprintf(ret, REASON_MAX, "takes more than %d steps", EXPR_STEPS_MAX);
    else if (line > 1 && memchr(source.ptr, '\n', source.len) != NULL)
        (void)snprintf(ret, REASON_MAX, "line %lu: %s", line, message);
    else
        (void)snprintf(ret, REASON_MAX, "%s", message);
    str_repair_utf8(ret, strlen(ret));
    lua_settop(x->lua, 0);
}

static struct str shown(struct str source)
{
    if (source.len <= SOURCE_SHOWN_MAX)
        return source;
    size_t len = SOURCE_SHOWN_MAX;
    while (len > 0 && ((unsigned char)source.ptr[len] & 0xC0) == 0x80)
        len--;
    return (struct str){source.ptr, len};
}

enum err expr_evaluate(struct expr *x, struct evaluation *e, struct problem *p)
{
    assert(x->busy);
    if (call(x, evaluate, e))
        return ERR_OK;
    char why[REASON_MAX];
    reason(x, e->source, why);
    if (x->failed == ERR_NO_MEMORY)
        return problem_set(p, ERR_NO_MEMORY, "no memory to evaluate an expression");
    struct str source = shown(e->source);
    return problem_set(p, x->failed != ERR_OK ? x->failed : ERR_EXPRESSION, "in \"%.*s%s\": %s",
                       STR_ARG(source), source.len < e->source.len ? "…" : "", why);
}

enum err expr_value(struct expr *x, struct str source, const struct expr_vars *vars,
                    struct problem *p, struct json **ret)
{
    expr_call_begin(x, vars);
    struct evaluation e = {.source = source, .want = WANT_VALUE};
    enum err err = expr_evaluate(x, &e, p);
    if (err == ERR_OK)
        err = expr_result(&e.value, p, ret);
    expr_call_end(x);
    return err;
}

enum err expr_truth(struct expr *x, struct str source, const struct expr_vars *vars,
                    struct problem *p, bool *ret)
{
    expr_call_begin(x, vars);
    struct evaluation e = {.source = source, .want = WANT_TRUTH};
    enum err err = expr_evaluate(x, &e, p);
    if (err == ERR_OK)
        *ret = e.truth;
    expr_call_end(x);
    return err;
}

void expr_check(struct expr *x, struct str source, struct fault_list *faults)
{
    expr_call_begin(x, NULL);
    if (!call(x, check_source, &source)) {
        char why[REASON_MAX];
        reason(x, source, why);
        if (x->failed == ERR_OK)
            fault_list_add(faults, "is not a valid expression: %s", why);
        else
            faults->out->failed = true;
    }
    expr_call_end(x);
}

/* --- compiling --- */

static void check_words(lua_State *L, struct str source)
{
    size_t words = 0;
    for (size_t at = 0; at < source.len;) {
        size_t end = expr_lexeme(source, at);
        struct str lexeme = {source.ptr + at, end - at};
        if (lexeme.len > 1 || expr_is_word(lexeme.ptr[0]))
            words++;
        if (str_is(lexeme, "_ENV"))
            expr_throw(L, "_ENV cannot be used in expressions");
        at = end;
    }
    if (words > EXPR_WORDS_MAX)
        expr_throw(L, "it has more than %d names, numbers and strings", EXPR_WORDS_MAX);
}

/* Pushes the compiled text, or what Lua says about it. */
static int load_text(lua_State *L, const char *before, struct str source, const char *after)
{
    struct buf *text = &expr_of(L)->scratch;
    buf_clear(text);
    buf_put(text, str_of(before));
    buf_put(text, source);
    buf_put(text, str_of(after));
    if (!buf_ok(text))
        expr_throw_no_memory(L);
    return luaL_loadbufferx(L, text->ptr, text->len, "=" EXPR_CHUNK_NAME, "t");
}

/* Pushes the function. The expression must stand by itself, which keeps out `1) + (2`, and between
 * parentheses, which keeps out nothing at all, `1, 2` and `1;`. */
static void compile(lua_State *L, struct str source)
{
    if (source.len > EXPR_SOURCE_MAX)
        expr_throw(L, "it has more than %d bytes", EXPR_SOURCE_MAX);
    if (!expr_is_text(source))
        expr_throw(L, "it is not UTF-8, or has a NUL in it");
    check_words(L, source);
    if (load_text(L, "return ", source, "") != LUA_OK)
        (void)lua_error(L);
    lua_pop(L, 1);
    int status = load_text(L, "return (", source, "\n)");
    if (status == LUA_ERRSYNTAX)
        expr_throw(L, "it must be one expression");
    if (status != LUA_OK)
        (void)lua_error(L);
}

static int check_source(lua_State *L)
{
    compile(L, *(const struct str *)lua_touserdata(L, 1));
    return 0;
}

/* Pushes the function, compiled now or earlier. */
static void push_chunk(lua_State *L, struct str source)
{
    struct expr *x = expr_of(L);
    uint64_t hash = str_hash(source);
    struct chunk *set = &x->chunks[hash % CHUNK_SETS * CHUNK_WAYS];
    struct chunk *place = set;
    for (struct chunk *c = set; c < set + CHUNK_WAYS; c++) {
        if (c->source != NULL && c->hash == hash &&
            str_eq((struct str){c->source, c->len}, source)) {
            c->used_at = ++x->uses;
            lua_rawgeti(L, LUA_REGISTRYINDEX, c->ref);
            return;
        }
        if (place->source != NULL && (c->source == NULL || c->used_at < place->used_at))
            place = c;
    }
    compile(L, source);
    char *copy = malloc(source.len + 1);
    if (copy == NULL)
        expr_throw_no_memory(L);
    memcpy(copy, source.ptr, source.len);
    free(place->source);
    place->source = copy;
    place->len = source.len;
    place->hash = hash;
    place->used_at = ++x->uses;
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, place->ref);
}

static void chunks_clear(struct expr *x)
{
    for (struct chunk *c = x->chunks; c < x->chunks + EXPR_CACHE_MAX; c++) {
        free(c->source);
        c->source = NULL;
        lua_pushboolean(x->lua, false);
        lua_rawseti(x->lua, LUA_REGISTRYINDEX, c->ref);
    }
}

static int evaluate(lua_State *L)
{
    struct evaluation *e = lua_touserdata(L, 1);
    assert(expr_of(L)->vars != NULL);
    expr_spend(L, STEPS_OF_EVALUATION);
    push_chunk(L, e->source);
    lua_rawgeti(L, LUA_REGISTRYINDEX, expr_of(L)->ref_globals);
    /* At each use: a function that Lua keeps must not keep what was done to its globals. */
    const char *upvalue = lua_setupvalue(L, -2, 1);
    assert(upvalue != NULL);
    lua_call(L, 0, 1);
    switch (e->want) {
    case WANT_VALUE:
        e->value = expr_to_json(L, -1);
        break;
    case WANT_TRUTH:
        e->truth = lua_toboolean(L, -1);
        break;
    case WANT_TEXT:
        expr_put_text(L, -1, e->text);
        break;
    }
    return 0;
}
