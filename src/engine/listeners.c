/* Who wants to hear of every event of a run. */
#include "engine/listeners.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 };

struct listeners {
    struct listener *slots[SLOTS];
};

struct listeners *listeners_new(void)
{
    return calloc(1, sizeof(struct listeners));
}

void listeners_free(struct listeners *l)
{
    free(l);
}

static struct listener **slot_of(struct listeners *l, struct uuid id)
{
    return &l->slots[(id.bytes[14] | (size_t)id.bytes[15] << 8) % SLOTS];
}

void listeners_add(struct listeners *l, struct listener *listener)
{
    struct listener **slot = slot_of(l, listener->run_id);
    listener->prev = NULL;
    listener->next = *slot;
    if (*slot != NULL)
        (*slot)->prev = listener;
    *slot = listener;
}

void listeners_remove(struct listeners *l, struct listener *listener)
{
    struct listener **slot = slot_of(l, listener->run_id);
    *(listener->prev != NULL ? &listener->prev->next : slot) = listener->next;
    if (listener->next != NULL)
        listener->next->prev = listener->prev;
    listener->prev = listener->next = NULL;
}

void listeners_tell(struct listeners *l, struct uuid run_id)
{
    struct listener *next;
    for (struct listener *at = *slot_of(l, run_id); at != NULL; at = next) {
        next = at->next; /* told() may remove itself */
        if (memcmp(&at->run_id, &run_id, sizeof(run_id)) == 0)
            at->told(at);
    }
}
