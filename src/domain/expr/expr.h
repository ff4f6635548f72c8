/* clang-format off */
/* Expressions and ${…} templates of workflow definitions, in Lua 5.4 and cut off from the world.
 *
 * An expression is one Lua expression over the roots `input`, `state`, `steps`, `item` and `run`;
 * it may hold function literals. Its value depends on the roots alone: there is no clock, no
 * chance, no file, and nothing that one evaluation leaves behind for the next.
 *
 * Values. What is absent is nil, and a member of nil or of any scalar is nil, so that
 * `steps.a.output.amount` is nil when any part of it is absent; a null that is read is nil too. Lists are counted from 1. Objects
 * and lists of the roots are never copied and cannot be changed; == compares them by content, but
 * one never equals a table. `#v` counts elements, members, or the bytes of a text. Texts have the
 * functions of `string` as methods: `input.name:lower()`. The other way, nil becomes null, numbers
 * without a fraction are whole below 2^53, all must be finite, texts must be UTF-8 without NUL, and
 * an object or list of a root comes back as it is, its nulls included. A table with the keys 1…n becomes an array, one
 * with names an object with its members sorted, {} an empty object; what the functions below make
 * are arrays, [] when empty.
 *
 *   type(v)                  "nil", "boolean", "number", "string", "list", "object", "function"
 *   tostring(v)              numbers as JSON shows them; `..` is Lua's own: 14 digits, 5.0 for 10/2
 *   tonumber(v[, base])      nil for what is no number
 *   pairs(v) ipairs(v)       members in the order of the JSON, those of a table sorted; all elements
 *   select(n, …)             as in Lua
 *   list(…)                  a list of its arguments, nil among them
 *   count(v)                 how many elements or members
 *   map(l, f) filter(l, f)   f gets the element and its place
 *   reduce(l, f, first)      f gets what it returned last and the element
 *   sort(l[, before])        stable; numbers, or texts by their bytes, unless `before` decides
 *   contains(l, v)           does one of the elements equal v?
 *   keys(v) values(v)        as lists
 *   json.encode(v) json.decode(text)
 *   math.abs floor ceil min max tointeger, math.round(x[, digits])
 *   string.len(s) string.sub(s, from[, to])    count characters, not bytes
 *   string.lower upper trim                    know ASCII only
 *   string.contains starts_with ends_with      plain text, no patterns
 *   string.replace(s, what, by) string.split(s, at) string.join(l[, between])
 *
 * All that take a list take nil for an empty one. A name that a library lacks is a fault. The corner
 * cases are a table in docs/workflows.md, of which each row is a test.
 *
 * Templates. A text that is one ${…} from beginning to end becomes the value itself; otherwise the
 * values are put into the text: null as nothing, objects and lists as JSON. `$${` is a plain `${`.
 * Names of members are no templates.
 *
 * Limits hold for each call of a function below, over all expressions in it: EXPR_STEPS_MAX
 * instructions of Lua, to which the work of the functions is added by its size, and EXPR_MEMORY_MAX
 * bytes. After a failure the next call works as ever. */
/* clang-format on */
#ifndef PAWL_DOMAIN_EXPR_EXPR_H
#define PAWL_DOMAIN_EXPR_EXPR_H

#include "base/json.h"
#include "domain/fault_list.h"

/* A Lua state with what it has compiled. One for each thread; NULL when memory ran out. */
struct expr;

MUST_CHECK struct expr *expr_new(void);
void expr_free(struct expr *x);
/* Other bounds than EXPR_MEMORY_MAX, for the state and for a call: tests make every allocation
 * fail. */
MUST_CHECK struct expr *expr_new_within(size_t memory_max);
void expr_limit(struct expr *x, size_t memory_max);

/* All steps that calls have taken so far. */
uint64_t expr_steps_spent(const struct expr *x);

/* Where the roots come from. Asked at each use, so a root that is not used need not be there. */
struct expr_vars {
    void *ctx;
    /* The value of a root, or of the member `name` of `steps`: `steps` is only asked for by its
     * members, the others with no name. Borrowed until the call ends. Leaves *ret as it is (NULL)
     * when there is no such value; an error ends the call with that error: ERR_EXPRESSION when the
     * value is too large for an expression. Must not call back into
     * the same struct expr. */
    enum err (*get)(void *ctx, struct str root, struct str name, const struct json **ret);
};

/* --- for definitions: syntax only, a fault at the list's place for each expression at fault --- */

void expr_check(struct expr *x, struct str source, struct fault_list *faults);
/* Every ${…} in the texts of a JSON value, each at its own place. */
void expr_template_check(struct expr *x, const struct json *value, struct fault_list *faults);
/* Does it have a text that expr_fill would change? */
bool expr_has_template(const struct json *value);

/* --- for runs: ERR_EXPRESSION with the reason, ERR_NO_MEMORY, or what get() returned --- */

/* The caller owns *ret (json_free), which keeps nothing of the roots. It is no deeper than
 * JSON_DEPTH_MAX and fits JSON_TEXT_MAX if the roots do. */
MUST_CHECK enum err expr_value(struct expr *x, struct str source, const struct expr_vars *vars,
                               struct problem *p, struct json **ret);
/* nil and false are false; all else is true, 0 and "" too. */
MUST_CHECK enum err expr_truth(struct expr *x, struct str source, const struct expr_vars *vars,
                               struct problem *p, bool *ret);
/* `value` with its templates filled in; owned and bounded as above. */
MUST_CHECK enum err expr_fill(struct expr *x, const struct json *value,
                              const struct expr_vars *vars, struct problem *p, struct json **ret);

#endif
