/* One op inside a transaction, with idempotency around its use case. */
#include "core/usecase/execute.h"

#include "core/run/follow_up.h"
#include "core/run/run_birth.h"

/* The first answer again, from where it is kept. */
static enum err replay(struct op *op, struct read_tx *tx, const struct idem_record *record)
{
    struct answer *a = &op->answer;
    op_clear_result(op);
    a->status = record->status;
    a->has_run = record->has_run;
    a->run_id = record->run_id;
    a->replayed = true;
    answer_begin(a, record->says_created ? CREATED_NO : CREATED_UNSAID);
    enum err e = ERR_OK;
    if (record->born.ptr == NULL)
        buf_put(&a->body, record->body);
    else
        e = run_birth_show(tx, record->tenant, record->run_id, record->born, a, &op->problem);
    if (e == ERR_OK && !buf_ok(&a->body))
        op->err = problem_set(&op->problem, ERR_NO_MEMORY, "Out of memory");
    return e;
}

enum err answer_from_record(struct op *op, struct read_tx *tx, const struct idem_record *record,
                            bool *ret_answered)
{
    enum err e = ERR_OK;
    *ret_answered = true;
    switch (idem_compare(&op->idem, record->raw_hash, &record->fingerprint)) {
    case IDEM_UNSURE:
        *ret_answered = false;
        return ERR_OK;
    case IDEM_MISMATCH:
        op_clear_result(op);
        op->err = problem_set(&op->problem, ERR_IDEM_KEY_REUSED,
                              "The key \"%.*s\" belongs to another request (%.*s). Use a new key.",
                              STR_ARG(record->key), STR_ARG(record->route));
        break;
    case IDEM_REPLAY:
        e = replay(op, tx, record);
        break;
    }
    op->known_num = record->num;
    return e;
}

void count_answer(const struct op *op, struct replay_stats *stats, struct minute_stats *minutes,
                  int64_t now_ms)
{
    bool mismatch = op->err == ERR_IDEM_KEY_REUSED;
    if (op->known_num != 0)
        replay_stats_add(stats, op->known_num, mismatch, now_ms);
    if (op->use_case->admits == NULL)
        return;
    if (op->answer.replayed)
        minute_stats_count(minutes, op->tenant_num, MINUTE_REPLAYS, now_ms);
    else if (mismatch)
        minute_stats_count(minutes, op->tenant_num, MINUTE_MISMATCHES, now_ms);
    else if (op->err != ERR_OK && err_http_status(op->err) == 429)
        minute_stats_count(minutes, op->tenant_num, MINUTE_REFUSED, now_ms);
}

struct known {
    bool answered;
    bool expired; /* the key has an expired record, which must be deleted first */
    int64_t old;  /* its number */
};

/* Looks the key up, and answers the op if it can. */
static enum err consider(struct op *op, struct tx *tx, int64_t tenant, struct known *k)
{
    struct idem_record record = {0};
    bool found = false;
    enum err e =
        idempotency_find(tx->db, tx->keys, tenant, op->idem.key, &tx->arena, &found, &record);
    if (e != ERR_OK || !found)
        return e;
    k->expired = record.expires_at >= 0 && record.expires_at <= tx->now_ms;
    k->old = record.num;
    if (k->expired)
        return ERR_OK;
    e = answer_from_record(op, &tx->read, &record, &k->answered);
    assert(k->answered || !op->idem.has_fingerprint);
    return e;
}

static enum err remember(struct op *op, struct tx *tx, struct tenant *tenant, const struct known *k)
{
    enum err e = tx_tenant_ensure(tx, tenant);
    if (e == ERR_OK && k->expired)
        e = idempotency_delete(tx->db, k->old);
    if (e != ERR_OK)
        return e;
    if (op->answer.key_in_run)
        return idem_keys_add(tx->keys, tenant->num, op->idem.key, -uuid_time(op->answer.run_id),
                             tenant->run_retention_ms >= 0);
    struct str born = op->answer.born;
    struct idem_record record = {
        .num = op->answer.key_num,
        .tenant = tenant->num,
        .key = op->idem.key,
        .route = op->idem.route,
        .fingerprint = op->idem.fingerprint,
        .raw_hash = op->idem.raw_hash,
        .has_run = op->answer.has_run,
        .run_id = op->answer.run_id,
        .status = op->answer.status,
        .says_created = op->answer.created != CREATED_UNSAID,
        .body = born.ptr != NULL ? STR("") : answer_to_keep(&op->answer),
        .born = born,
        .created_at = tx->now_ms,
        .expires_at = idem_expires_ms(tx->now_ms, tenant->idempotency_retention_ms),
        .last_replayed_at = -1,
    };
    return idempotency_insert(tx->db, tx->keys, &record);
}

/* The next op may load what this one has changed. */
static enum err write_events(struct op *op, struct tx *tx)
{
    enum err e = tx_write_events(tx);
    return e == ERR_OK ? op->err : problem_set(&op->problem, e, "Cannot write a timeline");
}

/* Runs the use case. A refusal after a change returns an error, so that all is rolled back. */
static enum err run_use_case(struct op *op, struct tx *tx)
{
    int64_t before = tx_changes(tx);
    op->err = op->use_case->write(op, tx);
    if (op->err == ERR_OK)
        op->err = follow_up(tx, &op->problem);
    if (op->err == ERR_OK || op->answer.refusal_wrote)
        op->err = write_events(op, tx);
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
    struct known k = {0};
    if (tenant->num > 0) /* a new one has no keys */
        e = consider(op, tx, tenant->num, &k);
    if (e != ERR_OK || k.answered)
        return e;
    e = run_use_case(op, tx);
    if (e != ERR_OK || op->err != ERR_OK || op->answer.changed_nothing)
        return e;
    return remember(op, tx, tenant, &k);
}
