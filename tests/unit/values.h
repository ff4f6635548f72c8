/* Values for functions that take a struct json. */
#ifndef PAWL_TESTS_VALUES_H
#define PAWL_TESTS_VALUES_H

#include "testing.h"

#include "base/json_tree.h"
#include "base/limits.h"

/* The caller owns it (json_free). */
static inline struct json *json_value_of(struct str text)
{
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    if (json_read(text, &p, &value) != ERR_OK)
        fail_msg("%.*s: %s", STR_ARG(text), p.detail);
    problem_release(&p);
    assert_non_null(value);
    return value;
}

/* The same value as a tree, which may be larger than a request. */
static inline struct json *json_value_like(const json_t *tree)
{
    struct buf text;
    struct json *value = NULL;
    buf_init(&text, 16 * MIB);
    json_put_plain(&text, tree);
    assert_true(buf_ok(&text));
    assert_int_equal(json_read_kept(buf_str(&text), &value), ERR_OK);
    buf_release(&text);
    return value;
}

/* The same; takes over the tree, which may be NULL. */
static inline struct json *json_value_of_tree(json_t *tree)
{
    struct json *value = tree != NULL ? json_value_like(tree) : NULL;
    json_decref(tree);
    return value;
}

/* Of a value that must be one. */
static inline int64_t integer_of(const struct json *value)
{
    assert_true(json_is(value, JSON_KIND_INTEGER));
    return value->integer;
}

static inline double real_of(const struct json *value)
{
    assert_true(json_is(value, JSON_KIND_REAL));
    return value->real;
}

#endif
