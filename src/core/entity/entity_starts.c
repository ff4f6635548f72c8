/* Noting runs that an entity's answers start. */
#include "core/entity/entity_starts.h"

#include "base/limits.h"
#include "store/entity/entity_starts.h"

enum err entity_starts_arm(struct tx *tx, const struct entity *entity, int64_t due_at)
{
    struct timer timer = {due_at, entity->num, TIMER_ENTITY_START, 0, entity->tenant};
    tx_note_due(tx, due_at);
    return timers_insert(tx->db, &timer);
}

static struct str json_text(struct tx *tx, const struct json *value, const char *when_absent)
{
    struct buf text;
    buf_init(&text, JSON_KEPT_MAX);
    if (value != NULL)
        json_write_plain(&text, value);
    else
        buf_put(&text, str_of(when_absent));
    return arena_take(&tx->arena, &text);
}

static struct str key_of(struct tx *tx, const struct job *job, size_t index)
{
    struct buf key;
    buf_init(&key, IDEM_KEY_MAX);
    buf_put(&key, STR("entity:"));
    buf_put_uuid(&key, job->id);
    buf_put_char(&key, ':');
    buf_put_i64(&key, (int64_t)index);
    return arena_take(&tx->arena, &key);
}

enum err entity_starts_note(struct entity_txn *m, const struct job *job,
                            const struct entity_answer *a)
{
    bool armed = false; /* with those that wait already */
    enum err e = entity_starts_any(m->tx->db, m->entity.num, &armed);
    for (size_t i = 0; i < a->start_count && e == ERR_OK; i++) {
        const struct answer_start *start = &a->starts[i];
        struct entity_start row = {
            .entity = m->entity.num,
            .workflow_id = start->workflow_id,
            .input = json_text(m->tx, start->input, "null"),
            .labels = json_text(m->tx, start->labels, "{}"),
            .key =
                start->idempotency_key.ptr != NULL ? start->idempotency_key : key_of(m->tx, job, i),
        };
        bool ok = row.input.ptr != NULL && row.labels.ptr != NULL && row.key.ptr != NULL;
        e = ok ? entity_starts_insert(m->tx->db, &row) : ERR_NO_MEMORY;
    }
    return e == ERR_OK && !armed ? entity_starts_arm(m->tx, &m->entity, m->tx->now_ms) : e;
}
