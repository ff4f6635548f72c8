/* One op inside a transaction, with idempotency around its use case. */
#include "core/usecase/execute.h"

#include "core/run/follow_up.h"

bool answer_from_record(struct op *op, const struct idem_record *record)
{
    switch (idem_compare(&op->idem, record->raw_hash, &record->fingerprint)) {
    case IDEM_UNSURE:
        return false;
    case IDEM_MISMATCH:
        op_clear_result(op);
        op->err = problem_set(&op->problem, ERR_IDEM_KEY_REUSED,
                              "The key \"%.*s\" belongs to another request (%.*s). Use a new key.",
                              STR_ARG(record->key), STR_ARG(record->route));
        op->known_num = record->num;
        return true;
    case IDEM_REPLAY:
        op_clear_result(op);
        op->answer.status = record->status;
        op->answer.has_run = record->has_run;
        op->answer.run_id = record->run_id;
        op->answer.replayed = true;
        answer_begin(&op->answer, record->says_created ? CREATED_NO : CREATED_UNSAID);
        buf_put(&op->answer.body, record->body);
        if (!buf_ok(&op->answer.body))
            op->err = problem_set(&op->problem, ERR_NO_MEMORY, "Out of memory");
        op->known_num = record->num;
        return true;
    }
    assert(!"unknown verdict");
    return false;
}

void count_known(const struct op *op, struct replay_stats *stats, int64_t now_ms)
{
    if (op->known_num > 0)
        replay_stats_add(stats, op->known_num, op->err == ERR_IDEM_KEY_REUSED, now_ms);
}

struct known {
    struct op *op;
    struct tx *tx;
    bool answered;
    bool expired; /* the key has an expired record, which must be deleted first */
    int64_t old;  /* its number */
};

static void consider(void *ctx, const struct idem_record *record)
{
    struct known *k = ctx;
    if (record->expires_at >= 0 && record->expires_at <= k->tx->now_ms) {
        k->expired = true;
        k->old = record->num;
        return;
    }
    k->answered = answer_from_record(k->op, record);
    assert(k->answered || !k->op->idem.has_fingerprint);
}

static enum err remember(struct op *op, struct tx *tx, struct tenant *tenant, const struct known *k)
{
    enum err e = tx_tenant_ensure(tx, tenant);
    if (e == ERR_OK && k->expired)
        e = idempotency_delete(tx->db, k->old);
    if (e != ERR_OK)
        return e;
    struct idem_record record = {
        .tenant = tenant->num,
        .key = op->idem.key,
        .route = op->idem.route,
        .fingerprint = op->idem.fingerprint,
        .raw_hash = op->idem.raw_hash,
        .has_run = op->answer.has_run,
        .run_id = op->answer.run_id,
        .status = op->answer.status,
        .says_created = op->answer.created != CREATED_UNSAID,
        .body = answer_to_keep(&op->answer),
        .created_at = tx->now_ms,
        .expires_at = idem_expires_ms(tx->now_ms, tenant->idempotency_retention_ms),
    };
    return idempotency_insert(tx->db, tx->keys, &record);
}

/* Runs the use case. A refusal after a change returns an error, so that all is rolled back. */
static enum err run_use_case(struct op *op, struct tx *tx)
{
    int64_t before = tx_changes(tx);
    op->err = op->use_case->write(op, tx);
    if (op->err == ERR_OK)
        op->err = follow_up(tx, &op->problem);
    read_tx_drop_json(&tx->read);
    if (op->err == ERR_OK && !buf_ok(&op->answer.body))
        op->err = op->answer.body.refused
                      ? problem_set(&op->problem, ERR_TOO_LARGE, "The answer is too large")
                      : problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the answer");
    op->err = tx_own_error(tx, op->err);
    if (err_rolls_back(op->err))
        return op->err;
    bool half_done = op->err != ERR_OK && !op->answer.refusal_wrote && tx_changes(tx) != before;
    return half_done ? ERR_INTERNAL : ERR_OK;
}

enum err execute_op(struct op *op, struct tx *tx)
{
    op_clear_result(op);
    if (op->idem.key.len == 0)
        return run_use_case(op, tx);
    assert(op->idem.has_fingerprint);
    struct tenant *tenant;
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK) {
        op->err = e;
        return err_rolls_back(e) ? e : ERR_OK;
    }
    struct known k = {.op = op, .tx = tx};
    if (tenant->num > 0) /* a new one has no keys */
        e = idempotency_find(tx->db, tx->keys, tenant->num, op->idem.key, consider, &k);
    if (e != ERR_OK || k.answered)
        return e;
    e = run_use_case(op, tx);
    if (e != ERR_OK || op->err != ERR_OK || op->answer.changed_nothing)
        return e;
    return remember(op, tx, tenant, &k);
}
