/* Handing jobs to workers and taking their results. */
#include "core/run/follow_up.h"
#include "core/txn/worker_polls.h"
#include "core/usecase/execute.h"
#include "core/usecase/job_owners.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

/* --- claim --- */

/* Large inputs end a claim early: what is left of the answer's room holds one more job of any size.
 */
static bool takes_more(const struct op *op, const struct claim_input *in, int64_t count)
{
    return count < in->max && op->answer.body.len <= PAGE_BYTES_MAX;
}

/* Up to in->max jobs of one tenant and queue. */
static enum err claim_from(struct op *op, const struct claim_input *in, struct tx *tx,
                           int64_t tenant, struct str queue, int64_t most, int64_t *count,
                           struct json_out *o)
{
    enum err e = ERR_OK;
    while (takes_more(op, in, *count) && most-- > 0) {
        struct job job;
        bool found = false;
        e = jobs_next(tx->db, tenant, queue, &tx->arena, &found, &job);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot search for jobs");
        if (!found)
            break;
        e = job_owner_of(&job)->claim(op, tx, in, &job, o);
        if (e != ERR_OK)
            return e;
        ++*count;
    }
    return ERR_OK;
}

/* The turn goes to the next tenant with something to claim, for as many jobs as its weight.
 * *ret_alone: no other one has. */
static enum err pass_turn(struct op *op, struct tx *tx, struct str queue, struct claim_turn *turn,
                          bool *ret_found, bool *ret_alone)
{
    bool found = false;
    int64_t next = 0;
    struct tenant *tenant = NULL;
    enum err e = jobs_next_tenant(tx->db, queue, turn->tenant, &found, &next);
    bool wraps = !found && turn->tenant > 0;
    if (e == ERR_OK && wraps)
        e = jobs_next_tenant(tx->db, queue, 0, &found, &next);
    *ret_alone = wraps && found && next == turn->tenant;
    if (e == ERR_OK && found)
        e = read_tx_tenant_num(&tx->read, next, &tenant);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot search for jobs");
    if (found) {
        turn->tenant = next;
        turn->left = tenant->weight;
    }
    *ret_found = found;
    return ERR_OK;
}

/* The queue's own turn. One that takes over another's place goes on from the tenant there, so that
 * nobody is favoured by queues that crowd each other out. */
static struct claim_turn *turn_of(struct tx *tx, struct str queue)
{
    enum { PROBES = 8 };
    uint64_t hash = str_hash(queue) | 1; /* 0 is a free place */
    for (size_t i = 0; i < PROBES; i++) {
        struct claim_turn *turn = &tx->claim_turns[(hash + i) % CLAIM_TURNS];
        if (turn->queue == 0)
            turn->queue = hash;
        if (turn->queue == hash)
            return turn;
    }
    struct claim_turn *taken = &tx->claim_turns[hash % CLAIM_TURNS];
    taken->queue = hash;
    taken->left = 0;
    return taken;
}

/* Tenants take turns, each with as many jobs as its weight, so that nobody's backlog starves the
 * others. The turn goes on where the last claim stopped; losing it at a restart does no harm. */
static enum err claim_all_tenants(struct op *op, const struct claim_input *in, struct tx *tx,
                                  struct str queue, int64_t *count, struct json_out *o)
{
    struct claim_turn *turn = turn_of(tx, queue);
    bool more = true;
    bool alone = false;
    while (more && !alone && takes_more(op, in, *count)) {
        enum err e = ERR_OK;
        int64_t before = *count;
        if (turn->left > 0)
            e = claim_from(op, in, tx, turn->tenant, queue, 1, count, o);
        turn->left--;
        if (e == ERR_OK && (*count == before || turn->left <= 0))
            e = pass_turn(op, tx, queue, turn, &more, &alone);
        if (e != ERR_OK)
            return e;
    }
    if (!alone || !takes_more(op, in, *count))
        return ERR_OK;
    turn->left = 0; /* the next claim looks for others first */
    return claim_from(op, in, tx, turn->tenant, queue, in->max, count, o);
}

/* The member `jobs`. */
static enum err claim(struct op *op, const struct claim_input *in, struct tx *tx,
                      struct json_out *o, int64_t *ret_count)
{
    bool all = str_is(op->caller.tenant, "*");
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    *ret_count = 0;
    if (!all)
        e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK)
        return e;
    json_open(o, "jobs", '[');
    for (size_t i = 0; i < in->queue_count && e == ERR_OK; i++) {
        worker_polls_note(tx->polls, op->caller.tenant, in->worker_id, in->queues[i], tx->now_ms);
        if (all)
            e = claim_all_tenants(op, in, tx, in->queues[i], ret_count, o);
        else
            e = claim_from(op, in, tx, tenant->num, in->queues[i], in->max, ret_count, o);
    }
    json_close(o, ']');
    return e;
}

static enum err claim_jobs(struct op *op, struct tx *tx)
{
    int64_t count = 0;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    enum err e = claim(op, op->input, tx, &o, &count);
    json_close(&o, '}');
    op->answer.changed_nothing = count == 0;
    op->answer.keep_waiting = count == 0;
    return e;
}

const struct use_case UC_CLAIM_JOBS = {.name = "claim_jobs", .write = claim_jobs};

/* --- complete and fail --- */

static enum err find_job(struct op *op, struct read_tx *tx, struct uuid id, struct job *ret_job)
{
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    if (!str_is(op->caller.tenant, "*"))
        e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    if (tenant == NULL || tenant->num != 0)
        e = jobs_find(tx->db, tenant != NULL ? tenant->num : 0, id, &tx->arena, &found, ret_job);
    if (e == ERR_OK && found)
        return ERR_OK;
    bool missing = e == ERR_OK;
    if (missing)
        e = ERR_JOB_NOT_FOUND;
    (void)problem_set(&op->problem, e, missing ? "This job does not exist" : "Cannot read the job");
    return e;
}

static enum err claim_job(struct op *op, struct tx *tx)
{
    const struct claim_job_input *in = op->input;
    struct job job;
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e != ERR_OK)
        return e;
    if (job.state != JOB_PENDING || str_starts_with(job.queue, STR(OWN_QUEUES)))
        return problem_set(&op->problem, ERR_JOB_NOT_CLAIMABLE, "The job is %s",
                           job_state_name(job.state));
    struct json_out o = json_out_to(&op->answer.body);
    worker_polls_note(tx->polls, op->caller.tenant, in->claim.worker_id, job.queue, tx->now_ms);
    return job_owner_of(&job)->claim(op, tx, &in->claim, &job, &o);
}

const struct use_case UC_CLAIM_JOB = {.name = "claim_job", .write = claim_job};

static enum err finish_one(struct op *op, struct tx *tx, const struct finish_job_input *in,
                           struct json_out *o, bool *ret_changed)
{
    struct job job = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    return e == ERR_OK ? job_owner_of(&job)->finish(op, tx, in, &job, o, ret_changed) : e;
}

static enum err finish_job(struct op *op, struct tx *tx)
{
    struct json_out o = json_out_to(&op->answer.body);
    bool changed = true;
    enum err e = finish_one(op, tx, op->input, &o, &changed);
    op->answer.changed_nothing = !changed;
    return e;
}

const struct use_case UC_FINISH_JOB = {.name = "finish_job", .write = finish_job};

/* --- many results at once --- */

/* A rejected item gets its own result; the others still count. */
static void answer_refused(struct json_out *o, const struct finish_job_input *in, enum err e,
                           const char *detail)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", in->job_id);
    json_add_text(o, "status", STR("refused"));
    json_add_text(o, "code", str_of(err_code(e)));
    json_add_text(o, "detail", str_of(detail));
    json_add_bool(o, "retryable", err_retryable(e));
    json_close(o, '}');
}

/* All of the item or nothing; *ret_changed says which. An error takes the transaction with it. */
static enum err finish_item(struct op *op, struct tx *tx, size_t index, struct json_out *o,
                            bool *ret_changed)
{
    const struct finish_jobs_input *in = op->input;
    const struct finish_job_input *item = &in->items[index];
    const struct failed_item *failed_items = op_failed_item(op, (int64_t)index);
    *ret_changed = failed_items == NULL;
    if (failed_items != NULL) {
        answer_refused(o, item, failed_items->err, failed_items->detail);
        return ERR_OK;
    }
    int64_t before = tx_changes(tx);
    enum err e = tx_own_error(tx, finish_one(op, tx, item, o, ret_changed));
    if (e == ERR_OK || err_is_outage(e))
        return e;
    bool half_done = tx_changes(tx) != before && !op->answer.refusal_wrote;
    if (half_done || err_rolls_back(e))
        return op_fail_item(op, (int64_t)index, e);
    answer_refused(o, item, e, op->problem.detail);
    *ret_changed = op->answer.refusal_wrote;
    op->answer.refusal_wrote = false;
    problem_clear(&op->problem);
    return ERR_OK;
}

static enum err finish_jobs(struct op *op, struct tx *tx)
{
    const struct finish_jobs_input *in = op->input;
    struct json_out o = json_out_to(&op->answer.body);
    bool any = false;
    enum err e = ERR_OK;
    json_open(&o, NULL, '{');
    json_open(&o, "results", '[');
    for (size_t i = 0; i < in->count && e == ERR_OK; i++) {
        struct arena_mark mark = arena_mark(&tx->arena);
        bool changed = true;
        e = finish_item(op, tx, i, &o, &changed);
        any |= changed;
        if (e == ERR_OK)
            e = follow_up(tx, &op->problem);
        if (e == ERR_OK) {
            read_tx_drop_json(&tx->read);
            arena_back_to(&tx->arena, mark);
        }
    }
    json_close(&o, ']');
    int64_t count = 0;
    if (e == ERR_OK && in->claim != NULL)
        e = claim(op, in->claim, tx, &o, &count);
    json_close(&o, '}');
    op->answer.changed_nothing = !any && count == 0;
    return e;
}

const struct use_case UC_FINISH_JOBS = {.name = "finish_jobs", .write = finish_jobs};

/* --- heartbeat and release --- */

static enum err heartbeat(struct op *op, struct tx *tx)
{
    const struct heartbeat_input *in = op->input;
    struct job job = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    return e == ERR_OK ? job_owner_of(&job)->heartbeat(op, tx, in, &job) : e;
}

const struct use_case UC_HEARTBEAT = {.name = "heartbeat", .write = heartbeat};

static enum err release_job(struct op *op, struct tx *tx)
{
    const struct heartbeat_input *in = op->input;
    struct job job = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    return e == ERR_OK ? job_owner_of(&job)->release(op, tx, in, &job) : e;
}

const struct use_case UC_RELEASE_JOB = {.name = "release_job", .write = release_job};

/* --- durable functions --- */

static enum err refuse_not_durable(struct op *op)
{
    return problem_set(
        &op->problem, ERR_JOB_NOT_DURABLE,
        "The job is the call of an entity. Keep what is done in the entity's state.");
}

static enum err checkpoint_job(struct op *op, struct tx *tx)
{
    const struct checkpoint_input *in = op->input;
    struct job job = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e != ERR_OK)
        return e;
    const struct job_owner_ops *owner = job_owner_of(&job);
    return owner->checkpoint != NULL ? owner->checkpoint(op, tx, in, &job) : refuse_not_durable(op);
}

const struct use_case UC_CHECKPOINT_JOB = {.name = "checkpoint_job", .write = checkpoint_job};

static enum err suspend_job(struct op *op, struct tx *tx)
{
    const struct suspend_input *in = op->input;
    struct job job = {0};
    enum err e = find_job(op, &tx->read, in->job_id, &job);
    if (e != ERR_OK)
        return e;
    const struct job_owner_ops *owner = job_owner_of(&job);
    return owner->suspend != NULL ? owner->suspend(op, tx, in, &job) : refuse_not_durable(op);
}

const struct use_case UC_SUSPEND_JOB = {.name = "suspend_job", .write = suspend_job};

static enum err get_job(struct op *op, struct read_tx *tx)
{
    const struct get_job_input *in = op->input;
    struct job job = {0};
    struct json_out o = json_out_to(&op->answer.body);
    enum err e = find_job(op, tx, in->job_id, &job);
    return e == ERR_OK ? job_view(tx, &job, &op->problem, &o) : e;
}

const struct use_case UC_GET_JOB = {.name = "get_job", .read = get_job};
