/* What a client has learned from answers. */
#include "known.h"

#include <stdio.h>

static struct known_name *find(struct known *k, struct str name)
{
    for (size_t i = 0; i < k->count; i++) {
        if (str_is(name, k->names[i].name))
            return &k->names[i];
    }
    if (k->count == KNOWN_NAMES || name.len >= sizeof(k->names[0].name))
        return NULL;
    struct known_name *n = &k->names[k->count++];
    memcpy(n->name, name.ptr, name.len);
    return n;
}

static bool has(const struct known_name *n, const char *text)
{
    for (size_t i = 0; i < MIN(n->count, (size_t)KNOWN_VALUES); i++) {
        if (strcmp(n->values[i], text) == 0)
            return true;
    }
    return false;
}

static void learn_member(struct known *k, const char *name, const json_t *value)
{
    char text[KNOWN_TEXT_MAX];
    int len = -1;
    if (json_is_string(value))
        len = snprintf(text, sizeof(text), "%s", json_string_value(value));
    else if (json_is_integer(value))
        len = snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
    if (len <= 0 || len >= KNOWN_TEXT_MAX)
        return;
    struct known_name *n = find(k, str_of(name));
    bool paired = strcmp(name, "lease_token") == 0 || strcmp(name, "leased_job") == 0;
    if (n != NULL && (paired || !has(n, text)))
        memcpy(n->values[n->count++ % KNOWN_VALUES], text, (size_t)len + 1);
}

void known_learn(struct known *k, const json_t *value, const char *id_is)
{
    json_t *v = (json_t *)(uintptr_t)value;
    for (size_t i = 0; i < json_array_size(v); i++)
        known_learn(k, json_array_get(v, i), id_is);
    for (void *it = json_object_iter(v); it != NULL; it = json_object_iter_next(v, it)) {
        learn_member(k, json_object_iter_key(it), json_object_iter_value(it));
        known_learn(k, json_object_iter_value(it), id_is);
    }
    if (id_is != NULL)
        learn_member(k, id_is, json_object_get(v, "id"));
    if (json_is_string(json_object_get(v, "lease_token")))
        learn_member(k, "leased_job", json_object_get(v, "job_id"));
}

struct str known_text(const struct known *k, struct str name, size_t ago)
{
    for (size_t i = 0; i < k->count; i++) {
        const struct known_name *n = &k->names[i];
        if (str_is(name, n->name)) {
            size_t have = MIN(n->count, (size_t)KNOWN_VALUES);
            return str_of(n->values[(n->count - 1 - ago % have) % KNOWN_VALUES]);
        }
    }
    return STR_NONE;
}
