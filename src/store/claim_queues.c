/* The claimable jobs of queues, as the only writer of a store remembers them. */
#include "store/claim_queues.h"

#include "base/hash_map.h"
#include "base/limits.h"

#include <stdlib.h>

enum { PLACES_FIRST = 16 }; /* doubled up to CLAIM_QUEUE_JOBS_MAX */

struct claim_queue {
    struct hash_entry entry; /* by name */
    struct str name;         /* behind the struct */
    bool known;
    size_t claims; /* since it was found to have too many jobs */
    struct claim_place *places;
    size_t count;
    size_t room;
};

struct claim_queues {
    struct hash_map map;
};

static struct claim_queue *of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct claim_queue, entry);
}

struct claim_queues *claim_queues_new(void)
{
    return calloc(1, sizeof(struct claim_queues));
}

static void drop(struct claim_queues *c, struct claim_queue *q)
{
    hash_map_remove(&c->map, &q->entry);
    free(q->places);
    free(q);
}

void claim_queues_clear(struct claim_queues *c)
{
    if (c == NULL)
        return;
    HASH_MAP_WALK (&c->map, e)
        drop(c, of(e));
}

void claim_queues_free(struct claim_queues *c)
{
    claim_queues_clear(c);
    if (c != NULL)
        hash_map_release(&c->map);
    free(c);
}

static struct claim_queue *find(const struct claim_queues *c, struct str name)
{
    if (c == NULL || c->map.count == 0)
        return NULL;
    struct hash_entry *e = hash_map_find(&c->map, hash_text(&c->map, name));
    while (e != NULL && !str_eq(of(e)->name, name))
        e = hash_map_find_next(e);
    return e != NULL ? of(e) : NULL;
}

static struct claim_queue *find_known(const struct claim_queues *c, struct str name)
{
    struct claim_queue *q = find(c, name);
    return q != NULL && q->known ? q : NULL;
}

static struct claim_queue *add_queue(struct claim_queues *c, struct str name)
{
    while (c->map.count >= CLAIM_QUEUES_KNOWN_MAX)
        drop(c, of(c->map.oldest));
    struct claim_queue *q = calloc(1, sizeof(*q) + name.len + 1);
    if (q == NULL)
        return NULL;
    char *text = (char *)(q + 1);
    memcpy(text, name.ptr, name.len);
    q->name = (struct str){text, name.len};
    hash_map_add(&c->map, &q->entry, hash_text(&c->map, name));
    return q;
}

/* --- knowing --- */

bool claim_queues_know(const struct claim_queues *c, struct str queue)
{
    return find_known(c, queue) != NULL;
}

bool claim_queues_want(struct claim_queues *c, struct str queue)
{
    struct claim_queue *q = find(c, queue);
    if (q == NULL)
        return c != NULL;
    return !q->known && ++q->claims > CLAIM_QUEUE_JOBS_MAX;
}

void claim_queues_learn(struct claim_queues *c, struct str queue)
{
    struct claim_queue *q = find(c, queue);
    if (q == NULL)
        q = add_queue(c, queue);
    if (q == NULL)
        return;
    q->known = true;
    q->count = q->claims = 0;
}

void claim_queues_forget(struct claim_queues *c, struct str queue)
{
    struct claim_queue *q = find(c, queue);
    if (q != NULL)
        drop(c, q);
}

/* --- jobs --- */

/* In the order of the members: none is padding. */
static int compare(const struct claim_place *a, const struct claim_place *b)
{
    const int64_t as[] = {a->tenant, a->urgency, a->age, a->owner, a->ordinal};
    const int64_t bs[] = {b->tenant, b->urgency, b->age, b->owner, b->ordinal};
    for (size_t i = 0; i < ARRAY_LEN(as); i++) {
        if (as[i] != bs[i])
            return as[i] < bs[i] ? -1 : 1;
    }
    return 0;
}

/* The number of places before this one. */
static size_t places_before(const struct claim_queue *q, const struct claim_place *place)
{
    size_t from = 0;
    size_t to = q->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare(&q->places[middle], place) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool make_room(struct claim_queue *q)
{
    if (q->count < q->room)
        return true;
    size_t room = MAX((size_t)PLACES_FIRST, 2 * q->room);
    if (room > CLAIM_QUEUE_JOBS_MAX)
        return false;
    struct claim_place *places = realloc(q->places, room * sizeof(*places));
    if (places == NULL)
        return false;
    q->places = places;
    q->room = room;
    return true;
}

void claim_queues_add(struct claim_queues *c, struct str queue, const struct claim_place *place)
{
    struct claim_queue *q = find_known(c, queue);
    if (q == NULL)
        return;
    size_t at = places_before(q, place);
    if (at < q->count && compare(&q->places[at], place) == 0)
        return;
    if (!make_room(q)) { /* too many: the rows know them all */
        q->known = false;
        q->count = 0;
        return;
    }
    memmove(&q->places[at + 1], &q->places[at], (q->count - at) * sizeof(*place));
    q->places[at] = *place;
    q->count++;
}

static void remove_at(struct claim_queue *q, size_t at)
{
    q->count--;
    memmove(&q->places[at], &q->places[at + 1], (q->count - at) * sizeof(*q->places));
}

void claim_queues_remove(struct claim_queues *c, struct str queue, const struct claim_place *place)
{
    struct claim_queue *q = find_known(c, queue);
    size_t at = q != NULL ? places_before(q, place) : 0;
    if (q != NULL && at < q->count && compare(&q->places[at], place) == 0)
        remove_at(q, at);
}

void claim_queues_remove_job(struct claim_queues *c, int64_t owner, int64_t ordinal)
{
    if (c == NULL)
        return;
    HASH_MAP_WALK (&c->map, e) {
        struct claim_queue *q = of(e);
        for (size_t i = q->count; i-- > 0;) {
            if (q->places[i].owner == owner && q->places[i].ordinal == ordinal)
                remove_at(q, i);
        }
    }
}

bool claim_queues_job(const struct claim_queues *c, struct str queue, int64_t tenant, size_t passed,
                      struct claim_place *ret)
{
    const struct claim_queue *q = find_known(c, queue);
    const struct claim_place first = {tenant, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
    assert(q != NULL);
    size_t at = places_before(q, &first) + passed;
    if (at >= q->count || q->places[at].tenant != tenant)
        return false;
    *ret = q->places[at];
    return true;
}

bool claim_queues_tenant(const struct claim_queues *c, struct str queue, int64_t after,
                         int64_t *ret_tenant)
{
    const struct claim_queue *q = find_known(c, queue);
    const struct claim_place last = {after, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    assert(q != NULL);
    size_t at = places_before(q, &last);
    if (at >= q->count)
        return false;
    *ret_tenant = q->places[at].tenant;
    return true;
}
