/* Handing jobs to workers and taking their results. */
#include "engine/run_move.h"
#include "engine/use_cases.h"

#include "base/limits.h"

enum { TOKEN_HEX = 32, TOKEN_MAX = 64 };

/* A lease's token says which hand-out of which job it is, and only the holder was told. */
static void lease_token(const struct job *job, char out[static TOKEN_MAX])
{
    unsigned char numbers[16];
    memcpy(numbers, &job->lease_epoch, 8);
    memcpy(numbers + 8, &job->started_at, 8);
    struct str parts[] = {{(const char *)job->id.bytes, sizeof(job->id.bytes)},
                          {(const char *)numbers, sizeof(numbers)},
                          job->worker};
    struct sha256 hash = sha256_of_parts(parts, ARRAY_LEN(parts));
    struct buf text;
    buf_init(&text, TOKEN_MAX);
    buf_put_i64(&text, job->lease_epoch);
    buf_put_char(&text, '.');
    buf_put_hex(&text, hash.bytes, TOKEN_HEX / 2);
    assert(buf_ok(&text) && text.len < TOKEN_MAX);
    memcpy(out, text.ptr, text.len + 1);
    buf_release(&text);
}

/* --- claim --- */

static void show_claimed(struct json_out *o, const struct run_move *m, const struct job *job)
{
    const struct step_def *step = &m->def->steps[job->step];
    char token[TOKEN_MAX];
    lease_token(job, token);
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", job->id);
    json_add_uuid(o, "run_id", m->run.id);
    json_add_text(o, "workflow_id", m->run.workflow_id);
    json_add_text(o, "step", step->name);
    json_add_text(o, "handler", step->handler);
    json_add_int(o, "attempt", job->attempt);
    json_add_text(o, "tenant", m->tenant->id);
    if (step->input != NULL) {
        json_add_name(o, "input");
        json_put_plain(o->buf, step->input);
    } else {
        json_add_raw(o, "input",
                     m->run.input); /* a step without an input of its own gets the run's */
    }
    json_add_text(o, "lease_token", str_of(token));
    json_add_time(o, "lease_expires_at", job->due_at);
    json_add_text_or_null(o, "traceparent", m->run.traceparent);
    json_close(o, '}');
}

static enum err claim_one(struct op *op, struct tx *tx, const struct job *job, struct json_out *o)
{
    const struct claim_input *in = op->input;
    struct run_move m;
    enum err e = run_move_load(&m, tx, job->run, &op->problem);
    if (e != ERR_OK)
        return e;
    struct job taken = *job;
    taken.worker = in->worker_id;
    taken.due_at = tx->now_ms + in->lease_ms;
    e = run_move_job(&m, &taken, JOB_ON_CLAIM);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot hand out the job");
    show_claimed(o, &m, &taken);
    return ERR_OK;
}

/* Large inputs end a claim early: what is left of the answer's room holds one more job of any size.
 */
static bool takes_more(const struct op *op, int64_t count)
{
    const struct claim_input *in = op->input;
    return count < in->max && op->answer.body.len <= PAGE_BYTES_MAX;
}

/* Up to in->max jobs of one tenant and queue. */
static enum err claim_from(struct op *op, struct tx *tx, int64_t tenant, struct str queue,
                           int64_t most, int64_t *count, struct json_out *o)
{
    enum err e = ERR_OK;
    while (takes_more(op, *count) && most-- > 0) {
        struct job job;
        bool found = false;
        e = jobs_next(tx->db, tenant, queue, &tx->arena, &found, &job);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "cannot look for jobs");
        if (!found)
            break;
        e = claim_one(op, tx, &job, o);
        if (e != ERR_OK)
            return e;
        ++*count;
    }
    return ERR_OK;
}

/* The turn goes to the next tenant with something to claim, for as many jobs as its weight. */
static enum err pass_turn(struct op *op, struct tx *tx, struct str queue, struct claim_turn *turn,
                          bool *ret_found)
{
    bool found = false;
    int64_t next = 0;
    struct tenant *tenant = NULL;
    enum err e = jobs_next_tenant(tx->db, queue, turn->tenant, &found, &next);
    if (e == ERR_OK && !found && turn->tenant > 0)
        e = jobs_next_tenant(tx->db, queue, 0, &found, &next);
    if (e == ERR_OK && found)
        e = tx_tenant_num(tx, next, &tenant);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot look for jobs");
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
static enum err claim_all_tenants(struct op *op, struct tx *tx, struct str queue, int64_t *count,
                                  struct json_out *o)
{
    struct claim_turn *turn = turn_of(tx, queue);
    bool more = true;
    while (more && takes_more(op, *count)) {
        enum err e = ERR_OK;
        int64_t before = *count;
        if (turn->left > 0)
            e = claim_from(op, tx, turn->tenant, queue, 1, count, o);
        turn->left--;
        if (e == ERR_OK && (*count == before || turn->left <= 0))
            e = pass_turn(op, tx, queue, turn, &more);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static enum err claim_jobs(struct op *op, struct tx *tx)
{
    const struct claim_input *in = op->input;
    bool all = str_is(op->caller.tenant, "*");
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    if (!all)
        e = tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    int64_t count = 0;
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_open(&o, "jobs", '[');
    for (size_t i = 0; i < in->queue_count && e == ERR_OK; i++) {
        if (all)
            e = claim_all_tenants(op, tx, in->queues[i], &count, &o);
        else
            e = claim_from(op, tx, tenant->num, in->queues[i], in->max, &count, &o);
    }
    json_close(&o, ']');
    json_close(&o, '}');
    op->answer.changed_nothing = count == 0;
    op->answer.keep_waiting = count == 0;
    return e;
}

const struct use_case UC_CLAIM_JOBS = {.name = "claim_jobs", .changes = true, .run = claim_jobs};

/* --- complete and fail --- */

static bool same_json(struct str a, struct str b)
{
    if (str_eq(a, b))
        return true;
    json_t *x = json_loadb(a.ptr, a.len, JSON_DECODE_ANY, NULL);
    json_t *y = json_loadb(b.ptr, b.len, JSON_DECODE_ANY, NULL);
    bool same = x != NULL && y != NULL && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static void answer_finished(struct op *op, const struct job *job, const char *status,
                            const struct run_move *m)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_text(&o, "status", str_of(status));
    json_add_uuid(&o, "run_id", m->run.id);
    json_add_text(&o, "run_status", str_of(run_status_name(m->run.status)));
    json_close(&o, '}');
}

/* The job is over: the same result again is answered, anything else comes too late. */
static enum err answer_again(struct op *op, const struct job *job, const struct run_move *m)
{
    const struct finish_job_input *in = op->input;
    bool again = in->failed ? job->state == JOB_FAILED && same_json(job->error, in->error)
                            : job->state == JOB_SUCCEEDED && same_json(job->output, in->output);
    if (!again)
        return problem_set(&op->problem, ERR_LEASE_LOST, "the job is over: it has %s",
                           job_state_name(job->state));
    op->answer.changed_nothing = true;
    answer_finished(op, job, in->failed ? "already_failed" : "already_completed", m);
    return ERR_OK;
}

static enum err load_job(struct op *op, struct tx *tx, struct uuid id, struct job *ret_job,
                         struct run_move *m)
{
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    if (!str_is(op->caller.tenant, "*"))
        e = tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    bool found = false;
    if (tenant == NULL || tenant->num != 0)
        e = jobs_find(tx->db, tenant != NULL ? tenant->num : 0, id, &tx->arena, &found, ret_job);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_JOB_NOT_FOUND, "there is no such job");
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot read the job");
    return run_move_load(m, tx, ret_job->run, &op->problem);
}

static enum err finish_job(struct op *op, struct tx *tx)
{
    const struct finish_job_input *in = op->input;
    struct job job = {0};
    struct run_move m = {0};
    enum err e = load_job(op, tx, in->job_id, &job, &m);
    if (e != ERR_OK)
        return e;
    char token[TOKEN_MAX];
    if (job.lease_epoch > 0)
        lease_token(&job, token);
    if (job.lease_epoch == 0 || !str_is(in->lease_token, token))
        return problem_set(&op->problem, ERR_LEASE_LOST,
                           "this lease is not the job's current one: its result is not taken");
    if (job_is_over(job.state))
        return answer_again(op, &job, &m);
    if (job.state != JOB_RUNNING)
        return problem_set(&op->problem, ERR_LEASE_LOST, "the lease has ended");
    job.output = in->failed ? STR_NONE : in->output;
    job.error = in->failed ? in->error : STR_NONE;
    if (in->state.ptr != NULL)
        m.run.state = in->state;
    e = run_move_job(&m, &job, in->failed ? JOB_ON_FAIL : JOB_ON_COMPLETE);
    if (e == ERR_OK)
        e = run_move_finish(&m);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "cannot store the result");
    answer_finished(op, &job, in->failed ? "failed" : "completed", &m);
    return ERR_OK;
}

const struct use_case UC_FINISH_JOB = {.name = "finish_job", .changes = true, .run = finish_job};

static enum err get_job(struct op *op, struct tx *tx)
{
    const struct get_job_input *in = op->input;
    struct job job = {0};
    struct run_move m = {0};
    enum err e = load_job(op, tx, in->job_id, &job, &m);
    if (e != ERR_OK)
        return e;
    struct json_out o = json_out_to(&op->answer.body);
    render_job(&o, &job, &m.run, m.def);
    return ERR_OK;
}

const struct use_case UC_GET_JOB = {.name = "get_job", .changes = false, .run = get_job};
