/* Open calls of entities follow their version to another queue. */
#include "core/entity/entity_requeue.h"

#include "core/entity/entity_txn.h"

enum { ENTITIES_PER_TURN = 200 };

struct moving {
    struct tx *tx;
    int64_t version;
    struct {
        int64_t num, open_job;
        bool migrates_to_it; /* otherwise it is of it */
    } open[ENTITIES_PER_TURN];
    size_t count;
    size_t looked;
    struct str last;
    bool full;
};

static bool collect(void *ctx, const struct entity *x)
{
    struct moving *m = ctx;
    if ((x->type_version == m->version || x->migrate_to == m->version) && x->open_job >= 0) {
        m->open[m->count].migrates_to_it = x->migrate_to == m->version;
        m->open[m->count].num = x->num;
        m->open[m->count++].open_job = x->open_job;
    }
    m->looked++;
    m->last = x->name; /* borrowed: of the last one of the slice it is kept */
    m->full = m->looked == ENTITIES_PER_TURN && !arena_keep(&m->tx->arena, &m->last);
    return m->looked < ENTITIES_PER_TURN;
}

/* A migration is called by the rules of the version that it leads to, everything else by those of
 * the version that the entity is of. */
static enum err move_call(struct tx *tx, int64_t entity, int64_t ordinal, bool migrates,
                          struct str queue)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(tx->db, entity, ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK || !found || (job.item == CALL_MIGRATE) != migrates || str_eq(job.queue, queue))
        return e;
    e = jobs_set_queue(tx->db, entity, ordinal, queue);
    return e == ERR_OK && job.state == JOB_PENDING ? tx_wake_queue(tx, &job, queue) : e;
}

enum err entity_requeue_slice(struct tx *tx, bool *ret_more)
{
    int64_t type = 0;
    int64_t version = 0;
    struct str through = STR_NONE;
    struct entity_version rules = {0};
    bool found = false;
    *ret_more = false;
    enum err e = entity_versions_requeueing(tx->db, &tx->arena, &found, &type, &version, &through);
    if (e != ERR_OK || !found)
        return e;
    e = entity_versions_find(tx->db, type, version, &tx->arena, &found, &rules);
    struct moving *m = arena_alloc(&tx->arena, sizeof(*m));
    if (e != ERR_OK || m == NULL)
        return e != ERR_OK ? e : ERR_NO_MEMORY;
    m->tx = tx;
    m->version = version;
    e = entities_list(tx->db, type, -1, through, ENTITIES_PER_TURN, collect, m);
    if (e == ERR_OK && m->full)
        e = ERR_NO_MEMORY;
    for (size_t i = 0; i < m->count && e == ERR_OK; i++)
        e = move_call(tx, m->open[i].num, m->open[i].open_job, m->open[i].migrates_to_it,
                      rules.rules.queue);
    bool done = m->looked < ENTITIES_PER_TURN;
    if (e == ERR_OK)
        e = entity_versions_requeued(tx->db, type, version, done ? STR_NONE : m->last);
    *ret_more = true; /* another version may be waiting */
    return e;
}
