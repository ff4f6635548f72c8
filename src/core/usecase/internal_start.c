/* Starting a run that nobody has sent a request for. */
#include "core/usecase/internal_start.h"

#include "core/usecase/execute.h"
#include "core/usecase/use_cases.h"

/* The same request every time, so that a key is never thought to be another's. */
static void set_key(struct op *op, const struct internal_start *s)
{
    op->idem.key = s->key;
    op->idem.route = s->route;
    op->idem.raw_hash = 0; /* there are no bytes */
    op->idem.fingerprint = sha256_of_parts((struct str[]){s->route, s->key}, 2);
    op->idem.has_fingerprint = true;
}

/* Every try counts; only a run that came of it has waited. */
static enum err count(struct tx *tx, const struct internal_start *s, const struct tenant *t,
                      const struct op *op)
{
    if (s->endpoint == NULL)
        return ERR_OK;
    int64_t wait_ms = op->err == ERR_OK ? MAX(tx->now_ms - s->due_at, (int64_t)0) : -1;
    return tx_count_admission(tx, t, s->endpoint, op_admission_outcome(op), wait_ms);
}

enum err internal_start(struct tx *tx, const struct internal_start *s, struct problem *p,
                        struct internal_start_made *ret)
{
    struct tenant *tenant;
    enum err e = read_tx_tenant_num(&tx->read, s->tenant, &tenant);
    if (e != ERR_OK)
        return e;
    struct json *input = NULL;
    e = json_read_kept(s->input, &input);
    if (e != ERR_OK)
        return e;
    struct start_run_input in = {
        .workflow_id = s->workflow_id,
        .input = input,
        .input_text = s->input,
        .labels = s->labels,
        .at_limit = s->at_limit,
        .start_at = -1,
    };
    struct op op;
    op_init(&op, &UC_START_RUN);
    op.input = &in;
    op.caller = (struct caller){
        .tenant = tenant->id, .actor = s->actor, .peer = s->peer, .role = ROLE_OPERATOR};
    if (s->key.ptr != NULL)
        set_key(&op, s);
    e = execute_op(&op, tx);
    if (e == ERR_OK)
        e = count(tx, s, tenant, &op);
    *ret = (struct internal_start_made){op.err, op.answer.run_id, op.answer.outcome};
    if (e == ERR_OK && op.err != ERR_OK)
        (void)problem_set(p, op.err, "%s", op.problem.detail);
    json_free(input);
    op_release(&op);
    return e;
}
