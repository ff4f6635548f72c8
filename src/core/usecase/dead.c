/* Dead letters: jobs that failed permanently, which a user can inspect, retry or drop. */
#include "core/txn/audit_record.h"
#include "core/txn/job_row.h"
#include "core/txn/page.h"
#include "core/usecase/job_owners.h"
#include "core/usecase/use_cases.h"

struct dead_page {
    struct page page;
    struct read_tx *tx;
    enum err err;
};

static void add_dead(void *ctx, const struct job *job)
{
    struct dead_page *d = ctx;
    if (d->err != ERR_OK || !page_takes(&d->page))
        return;
    struct problem p;
    problem_init(&p);
    d->err = job_view(d->tx, job, &p, &d->page.out);
    problem_release(&p);
    if (d->err != ERR_OK)
        return;
    char last[64];
    (void)snprintf(last, sizeof(last), "%lld.%lld.%lld", (long long)job->dead_at,
                   (long long)job->owner, (long long)job->ordinal);
    page_set_last(&d->page, str_of(last));
}

static enum err list_dead(struct op *op, struct read_tx *tx)
{
    const struct list_dead_input *in = op->input;
    struct tenant *tenant;
    int64_t before[3] = {INT64_MAX, INT64_MAX, INT64_MAX};
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !page_read_place(in->cursor, before))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct dead_page d = {page_begin(op, in->limit), tx, ERR_OK};
    e = jobs_dead(tx->db, tenant->num, before[0], before[1], before[2], in->limit + 1, add_dead,
                  &d);
    if (e == ERR_OK)
        e = d.err;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the dead letters");
    page_end(&d.page);
    return ERR_OK;
}

const struct use_case UC_LIST_DEAD = {.name = "list_dead_letters", .read = list_dead};

static enum err find_dead(struct op *op, struct read_tx *tx, struct job *ret_job)
{
    const struct get_job_input *in = op->input;
    struct tenant *tenant;
    bool found = false;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    if (tenant->num != 0) /* one that is not stored has none; 0 would mean everybody's */
        e = jobs_find(tx->db, tenant->num, in->job_id, &tx->arena, &found, ret_job);
    if (e == ERR_OK && found)
        return ERR_OK;
    bool missing = e == ERR_OK;
    if (missing)
        e = ERR_JOB_NOT_FOUND;
    (void)problem_set(&op->problem, e, missing ? "This job does not exist" : "Cannot read the job");
    return e;
}

static enum err answer_job(struct op *op, struct read_tx *tx, const struct job *job)
{
    struct json_out o = json_out_to(&op->answer.body);
    return job_view(tx, job, &op->problem, &o);
}

static enum err retry_dead(struct op *op, struct tx *tx)
{
    struct job job;
    enum err e = find_dead(op, &tx->read, &job);
    if (e != ERR_OK)
        return e;
    if (job.dead_at < 0 && !job_has_ended(job.state)) { /* again */
        op->answer.changed_nothing = true;
        return answer_job(op, &tx->read, &job);
    }
    if (job.dead_at < 0)
        return problem_set(&op->problem, ERR_NOT_A_DEAD_LETTER,
                           "The job has already ended (status: %s)", job_state_name(job.state));
    e = job_owner_of(&job)->retry(op, tx, &job);
    if (e == ERR_OK)
        e = audit_record_id(op, tx, job.tenant, "dead_letter.retry", job.id, STR_NONE);
    if (e != ERR_OK)
        return op->problem.err != ERR_OK ? op->problem.err
                                         : problem_set(&op->problem, e, "Cannot retry the job");
    return answer_job(op, &tx->read, &job);
}

const struct use_case UC_RETRY_DEAD = {.name = "retry_dead_letter", .write = retry_dead};

static enum err drop_dead(struct op *op, struct tx *tx)
{
    struct job job;
    enum err e = find_dead(op, &tx->read, &job);
    if (e != ERR_OK)
        return e;
    const struct job_owner_ops *owner = job_owner_of(&job);
    if (job.dead_at >= 0 && owner->check_drop != NULL)
        e = owner->check_drop(op);
    if (e != ERR_OK)
        return e;
    struct job dropped = job;
    dropped.dead_at = -1;
    op->answer.changed_nothing = job.dead_at < 0;
    if (job.dead_at >= 0)
        e = job_row_touch(tx, &job, &dropped);
    if (e == ERR_OK && job.dead_at >= 0)
        e = audit_record_id(op, tx, job.tenant, "dead_letter.drop", job.id, STR_NONE);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot drop the dead letter");
    return answer_job(op, &tx->read, &dropped);
}

const struct use_case UC_DROP_DEAD = {.name = "drop_dead_letter", .write = drop_dead};
