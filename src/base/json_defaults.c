/* The members of a request that make no difference: a set. */
#include "base/json.h"

#include <stdlib.h>

/* Not a base/hash_map: pairs of pointers by value, in one piece of memory for one request. */
static struct json_default *slot_of(const struct json_defaults *d, const json_t *object,
                                    const char *name)
{
    size_t i = (size_t)(((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 32) & (d->slot_count - 1);
    while (d->slots[i].object != NULL &&
           (d->slots[i].object != object || strcmp(d->slots[i].name, name) != 0))
        i = (i + 1) & (d->slot_count - 1);
    return &d->slots[i];
}

static bool grow(struct json_defaults *d)
{
    enum { FIRST = 16 };
    struct json_defaults larger = {.slot_count = d->slot_count > 0 ? 2 * d->slot_count : FIRST,
                                   .count = d->count};
    larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < d->slot_count; i++) {
        if (d->slots[i].object != NULL)
            *slot_of(&larger, d->slots[i].object, d->slots[i].name) = d->slots[i];
    }
    free(d->slots);
    *d = larger;
    return true;
}

bool json_defaults_add(struct json_defaults *d, const json_t *object, const char *name)
{
    if (2 * (d->count + 1) > d->slot_count && !grow(d))
        return false;
    struct json_default *slot = slot_of(d, object, name);
    d->count += slot->object == NULL;
    *slot = (struct json_default){object, name};
    return true;
}

bool json_defaults_has(const struct json_defaults *d, const json_t *object, const char *name)
{
    return d != NULL && d->count > 0 && slot_of(d, object, name)->object != NULL;
}

void json_defaults_release(struct json_defaults *d)
{
    free(d->slots);
    *d = (struct json_defaults){0};
}
