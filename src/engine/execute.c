/* One op inside a transaction, with idempotency around its use case. */
#include "engine/execute.h"

bool is_store_failure(enum err e)
{
    return e == ERR_STORE_BUSY || e == ERR_STORE_FULL || e == ERR_STORE_FAILED ||
           e == ERR_NO_MEMORY || e == ERR_INTERNAL;
}

bool answer_from_record(struct op *op, const struct idem_record *record, struct replay_stats *stats,
                        int64_t now_ms)
{
    switch (idem_compare(&op->idem, &record->raw_hash, &record->fingerprint)) {
    case IDEM_UNSURE:
        return false;
    case IDEM_MISMATCH:
        op_clear_result(op);
        op->err = problem_set(&op->problem, ERR_IDEM_KEY_REUSED,
                              "the key \"%.*s\" belongs to another request (%.*s): use a new key",
                              STR_ARG(record->key), STR_ARG(record->route));
        replay_stats_add(stats, record->num, true, now_ms);
        return true;
    case IDEM_REPLAY:
        op_clear_result(op);
        op->answer.status = record->status;
        op->answer.created = record->says_created ? CREATED_NO : CREATED_UNSAID;
        op->answer.has_run = record->has_run;
        op->answer.run_id = record->run_id;
        op->answer.replayed = true;
        buf_put(&op->answer.body, record->body);
        if (!buf_ok(&op->answer.body))
            op->err = problem_set(&op->problem, ERR_NO_MEMORY, "no memory for the answer");
        replay_stats_add(stats, record->num, false, now_ms);
        return true;
    }
    assert(!"unknown verdict");
    return false;
}

struct known {
    struct op *op;
    struct tx *tx;
    const struct tenant *tenant;
    struct replay_stats *stats;
    bool answered;
    int64_t expired_num; /* 0: there is no expired record in the way */
};

static void consider(void *ctx, const struct idem_record *record)
{
    struct known *k = ctx;
    int64_t end = idem_expires_ms(record->created_at, k->tenant->idempotency_retention_ms);
    if (end >= 0 && end <= k->tx->now_ms) {
        k->expired_num = record->num;
        return;
    }
    k->answered = answer_from_record(k->op, record, k->stats, k->tx->now_ms);
    assert(k->answered || !k->op->idem.has_fingerprint);
}

static enum err remember(struct op *op, struct tx *tx, struct tenant *tenant, int64_t expired_num)
{
    const struct buf *body =
        op->answer.kept_body.len > 0 ? &op->answer.kept_body : &op->answer.body;
    enum err e = tx_tenant_ensure(tx, tenant);
    if (e == ERR_OK && expired_num != 0)
        e = idempotency_delete(tx->db, expired_num);
    if (e != ERR_OK)
        return e;
    struct idem_record record = {
        .num = tenant_next_row(tenant),
        .tenant = tenant->num,
        .key = op->idem.key,
        .route = op->idem.route,
        .fingerprint = op->idem.fingerprint,
        .raw_hash = op->idem.raw_hash,
        .has_run = op->answer.has_run,
        .run_id = op->answer.run_id,
        .status = op->answer.status,
        .says_created = op->answer.created != CREATED_UNSAID,
        .body = buf_str(body),
        .created_at = tx->now_ms,
    };
    tx_tenant_touch(tx, tenant);
    return idempotency_insert(tx->db, &record);
}

/* Runs the use case; a rejection must have left no row changed. */
static enum err run_use_case(struct op *op, struct tx *tx)
{
    int64_t before = db_changes(tx->db);
    op->err = op->use_case->run(op, tx);
    if (op->err == ERR_OK && !buf_ok(&op->answer.body))
        op->err = problem_set(&op->problem, ERR_NO_MEMORY, "the answer is too large");
    if (is_store_failure(op->err))
        return op->err;
    assert(op->err == ERR_OK || db_changes(tx->db) == before);
    return ERR_OK;
}

enum err execute_op(struct op *op, struct tx *tx, struct replay_stats *stats)
{
    op_clear_result(op);
    if (op->idem.key.len == 0)
        return run_use_case(op, tx);
    assert(op->idem.has_fingerprint);
    struct tenant *tenant;
    enum err e = tx_tenant(tx, op, &tenant);
    if (e != ERR_OK) {
        op->err = e;
        return is_store_failure(e) ? e : ERR_OK;
    }
    struct known k = {.op = op, .tx = tx, .tenant = tenant, .stats = stats};
    e = idempotency_find(tx->db, tenant->num, op->idem.key, consider, &k);
    if (e != ERR_OK || k.answered)
        return e;
    e = run_use_case(op, tx);
    if (e != ERR_OK || op->err != ERR_OK || op->answer.changed_nothing)
        return e;
    return remember(op, tx, tenant, k.expired_num);
}
