/* JSON as jansson's trees, for the command line and for tests, which build and change values. The
 * server has no trees (ADR 031). json_tree() is the one way from a value to a tree; nothing but
 * base/json reads text. */
#ifndef PAWL_BASE_JSON_TREE_H
#define PAWL_BASE_JSON_TREE_H

#include "base/json.h"

#include <jansson.h>

/* The same value as a tree. The caller owns *ret (json_decref). ERR_NO_MEMORY. */
MUST_CHECK enum err json_tree(const struct json *value, json_t **ret);

/* json_read() with a tree as the result. The caller owns *ret. */
MUST_CHECK enum err json_parse(struct str text, struct problem *p, json_t **ret);

/* As json_write_plain(). */
void json_put_plain(struct buf *out, const json_t *value);

static inline struct str json_str(const json_t *text)
{
    return (struct str){json_string_value(text), json_string_length(text)};
}

#endif
