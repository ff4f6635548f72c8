/* What the fuzz programs share. Each is one function over one input; a property that does not hold
 * is an assert that fails, and libFuzzer keeps the input. */
#ifndef PAWL_FUZZ_H
#define PAWL_FUZZ_H

#include "base/json_tree.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct str fuzz_text(const uint8_t *data, size_t size)
{
    return (struct str){(const char *)data, size};
}

/* A value that the caller frees, or NULL for text that is refused; then there is a reason in
 * readable text. */
static inline struct json *fuzz_read(struct str text)
{
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    enum err e = json_read(text, &p, &value);
    assert((e == ERR_OK) == (value != NULL));
    assert(e == ERR_OK || e == ERR_JSON_INVALID);
    assert(e == ERR_OK || (p.detail[0] != '\0' && str_is_utf8(str_of(p.detail))));
    problem_release(&p);
    return value;
}

/* The same as a tree: a new reference. */
static inline json_t *fuzz_parse(struct str text)
{
    struct json *value = fuzz_read(text);
    json_t *tree = NULL;
    if (value != NULL && json_tree(value, &tree) != ERR_OK)
        abort();
    json_free(value);
    return tree;
}

/* A value like the tree, which it takes over. The caller frees it. */
static inline struct json *fuzz_value_of(json_t *tree)
{
    struct buf text;
    struct json *value = NULL;
    buf_init(&text, 2 * JSON_WRITTEN_MAX);
    json_put_plain(&text, tree);
    if (!buf_ok(&text) || json_read_kept(buf_str(&text), &value) != ERR_OK)
        abort();
    buf_release(&text);
    json_decref(tree);
    return value;
}

/* The same value with the members of every object the other way round. A new reference. */
static inline json_t *fuzz_reversed(const json_t *value)
{
    json_t *v = (json_t *)(uintptr_t)value;
    if (json_is_array(v)) {
        json_t *copy = json_array();
        for (size_t i = 0; i < json_array_size(v); i++)
            (void)json_array_append_new(copy, fuzz_reversed(json_array_get(v, i)));
        return copy;
    }
    if (!json_is_object(v))
        return json_incref(v);
    size_t left = json_object_size(v);
    const char **names = calloc(left + 1, sizeof(*names));
    assert(names != NULL);
    for (void *it = json_object_iter(v); it != NULL; it = json_object_iter_next(v, it))
        names[--left] = json_object_iter_key(it);
    json_t *copy = json_object();
    for (size_t i = 0; i < json_object_size(v); i++)
        (void)json_object_set_new(copy, names[i], fuzz_reversed(json_object_get(v, names[i])));
    free(names);
    return copy;
}

/* A JSON array of {path, message} with readable text. Returns how many. */
static inline size_t fuzz_check_faults(struct str faults)
{
    json_t *list = fuzz_parse(faults);
    assert(json_is_array(list) && json_array_size(list) <= DEFINITION_FAULTS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *fault = json_array_get(list, i);
        struct str path = json_str(json_object_get(fault, "path"));
        assert(json_object_size(fault) == 2 && path.ptr != NULL);
        assert(path.len == 0 || path.ptr[0] == '/');
        assert(json_str(json_object_get(fault, "message")).len > 0);
    }
    size_t count = json_array_size(list);
    json_decref(list);
    return count;
}

#endif
