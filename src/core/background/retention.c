/* Finished runs past their tenant's retention go. */
#include "core/background/retention.h"

#include "base/limits.h"
#include "core/run/run_birth.h"
#include "core/txn/feed_hold.h"
#include "store/run/retention.h"
#include "store/run/runs.h"

/* The key of a run outlives it, and its answer is made from the run: it is kept from now on. */
static enum err keep_answer(struct tx *tx, int64_t run)
{
    struct idem_record record = {0};
    bool found = false;
    enum err e = idempotency_of_run(tx->db, run, &tx->arena, &found, &record);
    if (e != ERR_OK || !found || record.born.ptr == NULL)
        return e;
    struct op op;
    op_init(&op, NULL);
    e = run_birth_show(&tx->read, record.tenant, record.run_id, record.born, &op.answer,
                       &op.problem);
    if (e == ERR_OK)
        e = buf_ok(&op.answer.body)
                ? idempotency_keep_body(tx->db, tx->keys, &record, buf_str(&op.answer.body))
                : ERR_NO_MEMORY;
    op_release(&op);
    return e;
}

static enum err remove_run(struct retention *r, struct tx *tx, int64_t run, int64_t rows,
                           int64_t *ret_removed, bool *ret_gone)
{
    struct arena_mark mark = arena_mark(&tx->arena);
    enum err e = keep_answer(tx, run);
    arena_back_to(&tx->arena, mark);
    return e == ERR_OK ? retention_remove(tx->db, r->tenant, run, rows, ret_removed, ret_gone) : e;
}

/* On to the next tenant; false, and back to the beginning, after the last. */
static enum err next_tenant(struct retention *r, struct tx *tx, bool *ret_found)
{
    enum err e = retention_next_tenant(tx->db, r->tenant, ret_found, &r->tenant, &r->tenant_ms);
    r->run = 0;
    if (e == ERR_OK && !*ret_found)
        *r = (struct retention){0};
    return e;
}

enum err retention_slice(struct retention *r, struct tx *tx, bool *ret_more)
{
    int64_t rows = RETENTION_ROWS_PER_TURN_MAX;
    struct held_runs held;
    *ret_more = false;
    enum err held_err = feed_hold_runs(tx, &held);
    if (held_err != ERR_OK || held.all)
        return held_err;
    for (int64_t looked = 0; looked < RETENTION_RUNS_PER_TURN_MAX && rows > 0; looked++) {
        if (looked > 0 && tx_turn_is_over(tx))
            break;
        bool found = true;
        enum err e = ERR_OK;
        if (r->tenant == 0)
            e = next_tenant(r, tx, &found);
        if (e != ERR_OK || !found)
            return e;
        int64_t run = 0;
        int64_t finished_at = -1;
        e = retention_next_run(tx->db, r->tenant, r->run, &found, &run, &finished_at);
        /* Younger ones follow: the rest of this tenant's has time. */
        bool young = found && runs_num_ms(run) > tx->now_ms - r->tenant_ms;
        if (e == ERR_OK && (!found || young)) {
            e = next_tenant(r, tx, &found);
            if (e != ERR_OK || !found)
                return e;
            continue;
        }
        if (e != ERR_OK)
            return e;
        bool gone = true;
        r->trying = run;
        int64_t removed = 0;
        if (finished_at >= 0 && finished_at <= tx->now_ms - r->tenant_ms &&
            !feed_holds_run(&held, run))
            e = remove_run(r, tx, run, rows, &removed, &gone);
        if (e != ERR_OK)
            return e;
        rows -= removed;
        if (gone)
            r->run = run;
    }
    *ret_more = true;
    return ERR_OK;
}

void retention_skip(struct retention *r)
{
    r->run = MAX(r->run, r->trying);
}
