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

/* The same value; takes over the tree, which may be NULL. */
static inline struct json *json_value_of_tree(json_t *tree)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    if (tree == NULL)
        return NULL;
    json_put_plain(&text, tree);
    assert_true(buf_ok(&text));
    struct json *value = json_value_of(buf_str(&text));
    buf_release(&text);
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
