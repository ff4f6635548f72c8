/* An evaluator with values to read, for the tests of expressions and templates.
 * JSON is written with ' for " to keep it readable; expressions are not. */
#ifndef PAWL_TESTS_EXPR_SUPPORT_H
#define PAWL_TESTS_EXPR_SUPPORT_H

#include "base/support.h"

#include "base/limits.h"
#include "domain/expr/expr.h"

static const char WORLD[] =
    "{'input':{'amount':150,'rate':0.5,'one':1.0,'name':'Ada Lovelace','city':'Zürich','no':null,"
    "'yes':true,'tags':['b','a','c'],'mixed':[1,null,'x'],'empty':[],'nothing':{},"
    "'order':{'id':'o-1','z':1,'a':2,'m':3},'same':{'a':2,'m':3.0,'id':'o-1','z':1},"
    "'items':[{'sku':'x','price':3},{'sku':'y','price':5},{'sku':'z','price':1.5}]},"
    "'state':{'count':2},'item':7,'run':{'id':'r-1'},"
    "'steps':{'lookup':{'output':{'amount':150,'list':[1,2]}},'odd-name':{'output':'text'},"
    "'five':{'output':5}}}";

struct world {
    struct expr *x;
    struct json *roots;
    struct problem problem;
    size_t asked;
    enum err refuses; /* what get() returns for state */
};

static inline struct json *json_of(const char *quoted_singly)
{
    size_t len = strlen(quoted_singly);
    char *text = malloc(len + 1);
    assert_non_null(text);
    for (size_t i = 0; i <= len; i++)
        text[i] = quoted_singly[i] == '\'' ? '"' : quoted_singly[i];
    struct json *value = json_value_of(str_of(text));
    free(text);
    return value;
}

static inline enum err get(void *ctx, struct str root, struct str name, const struct json **ret)
{
    struct world *w = ctx;
    w->asked++;
    if (str_is(root, "state") && w->refuses != ERR_OK)
        return w->refuses;
    const struct json *value = json_member(w->roots, root);
    assert_true(str_is(root, "steps") == (name.ptr != NULL));
    if (name.ptr != NULL)
        value = json_member(value, name);
    if (value != NULL)
        *ret = value;
    return ERR_OK;
}

static inline struct expr_vars vars_of(struct world *w)
{
    return (struct expr_vars){w, get};
}

/* From now on `input` is this text, and there is no other root. */
static inline void see_input(struct world *w, struct str json)
{
    struct buf text;
    buf_init(&text, 4 * MIB);
    buf_put(&text, STR("{\"input\":"));
    buf_put(&text, json);
    buf_put_char(&text, '}');
    json_free(w->roots);
    assert_int_equal(json_read_kept(buf_str(&text), &w->roots), ERR_OK);
    buf_release(&text);
}

static inline int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->x = expr_new();
    assert_non_null(w->x);
    w->roots = json_of(WORLD);
    problem_init(&w->problem);
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = *state;
    expr_free(w->x);
    json_free(w->roots);
    problem_release(&w->problem);
    free(w);
    return 0;
}

/* --- what an expression gives --- */

/* The value as JSON, or `CODE: detail`. The caller frees it. */
static inline char *outcome_of(enum err e, const struct problem *p, struct json *value)
{
    struct buf text;
    buf_init(&text, 16 * MIB);
    if (e == ERR_OK)
        json_write_plain(&text, value);
    else
        buf_printf(&text, "%s: %s", err_code(e), p->detail);
    assert_true(buf_ok(&text));
    assert_true(str_is_utf8(buf_str(&text)));
    json_free(value);
    return text.ptr;
}

static inline char *value_of_str(struct world *w, struct str source)
{
    struct json *value = NULL;
    struct expr_vars vars = vars_of(w);
    enum err e = expr_value(w->x, source, &vars, &w->problem, &value);
    assert_true((e == ERR_OK) == (value != NULL));
    return outcome_of(e, &w->problem, value);
}

static inline char *value_of(struct world *w, const char *source)
{
    return value_of_str(w, str_of(source));
}

static inline void assert_outcome(const char *source, char *got, const char *wanted)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "%s", wanted);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '`' ? '"' : *c;
    bool is_failure = text[0] == '!';
    bool good = is_failure
                    ? strncmp(got, "EXPRESSION_FAILED: ", 19) == 0 && strstr(got, text + 1) != NULL
                    : strcmp(got, text) == 0;
    if (!good)
        fail_msg("%.400s\n   got: %.400s\nwanted: %s", source, got, text);
    free(got);
}

/* An expression, and the JSON with ` for ", or ! and a part of the reason. */
struct row {
    const char *source;
    const char *wanted;
};

static inline void assert_values(void **state, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_outcome(rows[i].source, value_of(*state, rows[i].source), rows[i].wanted);
}

#define ASSERT_VALUES(state, ...)                        \
    do {                                                 \
        static const struct row rows_[] = {__VA_ARGS__}; \
        assert_values((state), rows_, ARRAY_LEN(rows_)); \
    } while (0)

/* --- syntax --- */

static inline char *repeated(const char *before, const char *again, size_t times, const char *after)
{
    struct buf text;
    buf_init(&text, 4 * MIB);
    buf_put(&text, str_of(before));
    for (size_t i = 0; i < times; i++)
        buf_put(&text, str_of(again));
    buf_put(&text, str_of(after));
    assert_true(buf_ok(&text));
    return text.ptr;
}

#endif
