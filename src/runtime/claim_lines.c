/* Claims that wait for a job. */
#include "runtime/claim_lines.h"

#include "core/usecase/use_cases.h"

#include <stdlib.h>

enum {
    ALL_TENANTS = -1,
    UNKNOWN_TENANT = 0, /* not stored when the claim came: it may be by now */
};

/* Claims for one queue and one tenant, from the longest wait to the shortest. */
struct line {
    struct hash_entry entry;
    int64_t tenant; /* its number, or one of those above */
    struct place *first, *last;
    size_t queue_len;
    char queue[];
};

/* A claim's place in one line. */
struct place {
    struct place *older, *newer;
    struct line *line; /* NULL: in none yet */
    struct waiting *claim;
};

struct waiting {
    struct hash_entry entry;
    struct op *op;
    int64_t arrived;
    size_t count;
    struct place places[];
};

static struct line *line_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct line, entry);
}

static struct waiting *waiting_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct waiting, entry);
}

void claim_lines_release(struct claim_lines *l)
{
    assert(l->claims.count == 0 && l->lines.count == 0);
    hash_map_release(&l->claims);
    hash_map_release(&l->lines);
}

size_t claim_lines_count(const struct claim_lines *l)
{
    return l->claims.count;
}

/* --- lines --- */

static uint64_t line_hash(const struct claim_lines *l, int64_t tenant, struct str queue)
{
    return hash_with(hash_text(&l->lines, queue), (uint64_t)tenant);
}

static struct line *find_line(const struct claim_lines *l, int64_t tenant, struct str queue)
{
    struct hash_entry *e = hash_map_find(&l->lines, line_hash(l, tenant, queue));
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct line *line = line_of(e);
        if (line->tenant == tenant && str_eq((struct str){line->queue, line->queue_len}, queue))
            return line;
    }
    return NULL;
}

static struct line *make_line(struct claim_lines *l, int64_t tenant, struct str queue)
{
    struct line *line = malloc(sizeof(*line) + queue.len);
    if (line == NULL)
        return NULL;
    line->tenant = tenant;
    line->first = line->last = NULL;
    line->queue_len = queue.len;
    memcpy(line->queue, queue.ptr, queue.len);
    hash_map_add(&l->lines, &line->entry, line_hash(l, tenant, queue));
    return line;
}

static void enter(struct line *line, struct place *p)
{
    p->line = line;
    p->older = line->last;
    p->newer = NULL;
    if (line->last != NULL)
        line->last->newer = p;
    else
        line->first = p;
    line->last = p;
}

static void leave(struct claim_lines *l, struct place *p)
{
    struct line *line = p->line;
    if (line == NULL)
        return;
    if (p->older != NULL)
        p->older->newer = p->newer;
    else
        line->first = p->newer;
    if (p->newer != NULL)
        p->newer->older = p->older;
    else
        line->last = p->older;
    if (line->first != NULL)
        return;
    hash_map_remove(&l->lines, &line->entry);
    free(line);
}

/* --- claims --- */

static struct op *take_out(struct claim_lines *l, struct waiting *w)
{
    struct op *op = w->op;
    for (size_t i = 0; i < w->count; i++)
        leave(l, &w->places[i]);
    hash_map_remove(&l->claims, &w->entry);
    free(w);
    return op;
}

static uint64_t op_hash(const struct claim_lines *l, const struct op *op)
{
    return hash_number(&l->claims, (int64_t)(uintptr_t)op);
}

static int64_t tenant_of(const struct op *op)
{
    return str_is(op->caller.tenant, "*") ? ALL_TENANTS : op->tenant_num;
}

/* Its own line of the queue; one for each, however often the claim names it. */
static bool stand_in_line(struct claim_lines *l, struct waiting *w, struct place *p,
                          struct str queue)
{
    int64_t tenant = tenant_of(w->op);
    struct line *line = find_line(l, tenant, queue);
    if (line == NULL)
        line = make_line(l, tenant, queue);
    if (line == NULL)
        return false;
    p->claim = w;
    enter(line, p);
    return true;
}

bool claim_lines_add(struct claim_lines *l, struct op *op)
{
    const struct claim_input *in = op->input;
    struct waiting *w = calloc(1, sizeof(*w) + in->queue_count * sizeof(w->places[0]));
    if (w == NULL)
        return false;
    w->op = op;
    w->arrived = l->arrivals++;
    w->count = in->queue_count;
    hash_map_add(&l->claims, &w->entry, op_hash(l, op));
    bool ok = true;
    for (size_t i = 0; i < in->queue_count && ok; i++)
        ok = stand_in_line(l, w, &w->places[i], in->queues[i]);
    if (!ok)
        (void)take_out(l, w);
    return ok;
}

static struct waiting *first_in(const struct claim_lines *l, int64_t tenant, struct str queue)
{
    const struct line *line = find_line(l, tenant, queue);
    return line != NULL ? line->first->claim : NULL;
}

static struct waiting *first_for(const struct claim_lines *l, int64_t tenant, struct str queue)
{
    struct waiting *own = first_in(l, tenant, queue);
    struct waiting *any = first_in(l, ALL_TENANTS, queue);
    return own == NULL || (any != NULL && any->arrived < own->arrived) ? any : own;
}

struct op *claim_lines_first(const struct claim_lines *l, int64_t tenant, struct str queue)
{
    const struct waiting *w = first_for(l, tenant, queue);
    return w != NULL ? w->op : NULL;
}

struct op *claim_lines_take(struct claim_lines *l, int64_t tenant, struct str queue)
{
    struct waiting *w = first_for(l, tenant, queue);
    return w != NULL ? take_out(l, w) : NULL;
}

struct op *claim_lines_take_unknown(struct claim_lines *l, struct str queue)
{
    struct waiting *w = first_in(l, UNKNOWN_TENANT, queue);
    return w != NULL ? take_out(l, w) : NULL;
}

struct op *claim_lines_remove(struct claim_lines *l, const struct op *op)
{
    struct hash_entry *e = hash_map_find(&l->claims, op_hash(l, op));
    while (e != NULL && waiting_of(e)->op != op)
        e = hash_map_find_next(e);
    return e != NULL ? take_out(l, waiting_of(e)) : NULL;
}

void claim_lines_sift(struct claim_lines *l, claim_ends *ends, claim_over *over, void *ctx)
{
    HASH_MAP_WALK (&l->claims, e) {
        if (ends(ctx, waiting_of(e)->op))
            over(ctx, take_out(l, waiting_of(e)));
    }
}
