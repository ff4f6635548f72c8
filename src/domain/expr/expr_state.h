/* The Lua state in which expressions run, its budget, and values on Lua's stack: shared by the
 * files of this folder, while expr.h is for callers.
 *
 * Functions that take a lua_State run inside a protected call and may leave by longjmp. So whatever
 * they hold belongs to Lua or to the struct expr. JSON that they make lives until the call ends:
 * its lists and objects in memory of the struct expr, its texts in Lua, where nothing is collected
 * during a call. */
#ifndef PAWL_DOMAIN_EXPR_EXPR_STATE_H
#define PAWL_DOMAIN_EXPR_EXPR_STATE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"

#include <lauxlib.h>
#include <lua.h>

/* How an error message names the expression: `expr:1: …`, which is taken off again. */
#define EXPR_CHUNK_NAME "expr"

enum {
    /* Texts that pass through a library function are read about this fast. */
    EXPR_TEXT_PER_STEP = 256,
    /* Written values may be longer than they weigh: a number that weighs 3 bytes may take 24. */
    EXPR_WRITTEN_MAX = 8 * JSON_TEXT_MAX,
};

/* What a userdata is, if an expression can get hold of it. */
enum thing_kind {
    THING_LIST,    /* a JSON array */
    THING_OBJECT,  /* a JSON object */
    THING_STEPS,   /* the root `steps` */
    THING_LIBRARY, /* `string` and the like, and the globals */
    THING_WALK,    /* a pairs() or ipairs() on its way */
    THING_COUNT,
};

struct thing {
    enum thing_kind kind;
    const struct json *json; /* of a list or an object, and only of these: it outlives the call */
};

struct expr_vars;

struct chunk {
    char *source; /* NULL: the place is free */
    size_t len;
    uint64_t hash;
    uint64_t used_at;
    int ref; /* its place in Lua's registry, kept when the chunk changes */
};

struct expr {
    lua_State *lua;
    size_t memory_max;   /* of a call */
    size_t used;         /* bytes that Lua has */
    size_t used_settled; /* of these after the last collection */

    /* --- one call --- */
    bool busy;
    const struct expr_vars *vars;
    size_t steps_left;
    uint64_t steps_spent; /* by all calls that are over */
    size_t room;          /* bytes left */
    size_t longest_text;  /* made so far: comparing it is one instruction */
    size_t largest_block; /* of other memory: no table has more slots than fit in it */
    bool over_steps;
    bool over_memory;
    enum err failed; /* a failure that is not the expression's fault */
    bool has_kept_texts;
    /* JSON that was made or read on the way; released at the end of the call. */
    struct arena made;
    struct json **read;
    size_t read_count;
    size_t read_cap;
    struct buf scratch; /* for one library function at a time */

    /* --- as long as the state --- */
    int ref_meta[THING_COUNT];
    int ref_globals;
    int ref_kept_texts;
    uint64_t uses;
    struct chunk chunks[EXPR_CACHE_MAX];
};

static inline struct expr *expr_of(lua_State *L)
{
    struct expr *x;
    memcpy(&x, lua_getextraspace(L), sizeof(struct expr *));
    return x;
}

/* --- budget (expr.c) --- */

_Noreturn void expr_throw(lua_State *L, const char *fmt, ...) PRINTF_LIKE(2, 3);
_Noreturn void expr_throw_no_memory(lua_State *L);
void expr_spend(lua_State *L, size_t steps);
/* Memory that Lua does not see. */
void expr_charge(lua_State *L, size_t bytes);
/* Takes over a document and keeps it until the end of the call. */
void expr_keep(lua_State *L, struct json *document);
/* Memory for so many nodes, and `more` bytes behind them, until the end of the call. */
struct json *expr_new_nodes(lua_State *L, size_t count, size_t more);

static inline void expr_spend_text(lua_State *L, size_t len)
{
    expr_spend(L, 1 + len / EXPR_TEXT_PER_STEP);
}

/* --- evaluation (expr.c) --- */

enum expr_want { WANT_VALUE, WANT_TRUTH, WANT_TEXT };

struct evaluation {
    struct str source;
    enum expr_want want;
    struct json value; /* lives until the call ends, or as long as the roots */
    bool truth;
    struct buf *text; /* is appended to */
};

void expr_call_begin(struct expr *x, const struct expr_vars *vars);
void expr_call_end(struct expr *x);
/* Between the two, any number of times. */
MUST_CHECK enum err expr_evaluate(struct expr *x, struct evaluation *e, struct problem *p);

/* --- values (expr_values.c) --- */

/* Makes the metatables of things and of nil. */
void expr_values_open(lua_State *L);
/* Pushes a thing of `size` bytes, zeroed but for its kind. */
struct thing *expr_push_thing(lua_State *L, enum thing_kind kind, size_t size, int user_values);
/* NULL: nil. */
void expr_push(lua_State *L, const struct json *value);
/* The thing at idx, or NULL for any other value. */
struct thing *expr_thing(lua_State *L, int idx);
/* What people call the type of the value at idx. */
const char *expr_type(lua_State *L, int idx);
/* The value at idx. It lives until the call ends, or as long as the roots. */
struct json expr_to_json(lua_State *L, int idx);

/* A list that is being made. */
struct new_list {
    struct json *json; /* what Lua sees of it */
    struct json *items;
    size_t cap;
};

/* Pushes a new list, which is filled afterwards. */
struct new_list expr_push_new_list(lua_State *L);
/* Puts the value at idx at its end. */
void expr_append(lua_State *L, int idx, struct new_list *list);
/* The value at idx as it stands in a template's text. */
void expr_put_text(lua_State *L, int idx, struct buf *out);
void expr_put_json(lua_State *L, int idx, struct buf *out);
bool expr_is_text(struct str text);

/* A key of a Lua table. */
struct key {
    bool is_text;
    lua_Integer number;
    struct str text; /* lives as long as the call, in which nothing is collected */
};

/* The keys of the table at idx in their one order: whole numbers, then texts. Pushes what owns
 * them. */
const struct key *expr_table_keys(lua_State *L, int idx, size_t *ret_count);

/* Appends, unless the text gets too long. */
void expr_put(lua_State *L, struct buf *out, struct str text);

/* --- JSON as a tree (expr_tree.c) --- */

struct weight {
    size_t bytes; /* of the shortest text that would be read as the value */
    size_t nodes;
    size_t reals;
    bool too_deep;
};

/* Throws when the value may not be part of a result with `depth` containers around it. */
struct weight expr_weigh(lua_State *L, const struct json *value, size_t depth);
/* A copy that outlives the call, if the value is within what json_read() would have read. */
MUST_CHECK enum err expr_result(const struct json *value, struct problem *p, struct json **ret);
bool expr_same(lua_State *L, const struct json *a, const struct json *b);

/* --- arguments and results of functions (expr_library.c) --- */

/* A list of any kind, as an argument: a JSON array, a table, or nil for an empty one. */
struct expr_list {
    const struct json *json; /* NULL: a table */
    int arg;
    size_t count;
};

struct str expr_text_arg(lua_State *L, int arg);
double expr_number_arg(lua_State *L, int arg);
lua_Integer expr_whole_arg(lua_State *L, int arg);
struct expr_list expr_list_arg(lua_State *L, int arg);
/* Pushes an element, counted from 0. */
void expr_list_push(lua_State *L, const struct expr_list *list, size_t i);
struct buf *expr_empty_scratch(lua_State *L);
/* Pushes what a function put into the scratch buffer. */
void expr_push_scratch(lua_State *L);

/* --- functions (expr_strings.c) --- */

extern const luaL_Reg EXPR_STRING_FUNCTIONS[];
extern const luaL_Reg EXPR_MATH_FUNCTIONS[];
extern const luaL_Reg EXPR_JSON_FUNCTIONS[];

/* --- the rest --- */

/* Pushes the table of global functions (expr_library.c). */
void expr_library_open(lua_State *L);
/* Part of a name or a number. */
static inline bool expr_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
/* The end of the word, text, comment or single character of Lua at `at` (expr_template.c). */
size_t expr_lexeme(struct str source, size_t at);

#endif
