/* Releasing jobs whose hand-out did not arrive. */
#include "runtime/give_back.h"

#include "base/log.h"
#include "core/txn/lease.h"
#include "core/usecase/use_cases.h"

struct returned_job {
    struct op op;
    struct heartbeat_input input;
    struct handed_job job;
    char text[]; /* the caller's tenant and actor */
};

static void returned(struct op *op)
{
    struct returned_job *r = op->owner;
    if (op->err != ERR_OK)
        LOG(LOG_WARN, "a job that was not delivered waits until its lease expires",
            LOG_Z("why", op->problem.detail));
    op_release(op);
    free(r);
}

static struct str copy_text(char **at, struct str text)
{
    struct str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static struct returned_job *returned_job_new(const struct op *from, const struct handed_job *job)
{
    const struct caller *who = &from->caller;
    struct returned_job *r = calloc(1, sizeof(*r) + who->tenant.len + who->actor.len);
    if (r == NULL)
        return NULL;
    char *at = r->text;
    r->job = *job;
    r->input =
        (struct heartbeat_input){.job_id = r->job.job_id, .lease_token = str_of(r->job.token)};
    op_init(&r->op, &UC_RELEASE_JOB);
    r->op.caller = *who;
    r->op.caller.tenant = copy_text(&at, who->tenant);
    r->op.caller.actor = copy_text(&at, who->actor);
    r->op.caller.peer = STR_NONE;
    r->op.input = &r->input;
    r->op.owner = r;
    r->op.done = returned;
    return r;
}

void give_back_jobs(struct op *from, void (*submit)(void *ctx, struct op *op), void *ctx)
{
    struct buf *handed = &from->answer.handed;
    assert(handed->len % sizeof(struct handed_job) == 0);
    for (size_t at = 0; at < handed->len; at += sizeof(struct handed_job)) {
        struct handed_job job;
        memcpy(&job, handed->ptr + at, sizeof(job));
        struct returned_job *r = returned_job_new(from, &job);
        if (r != NULL)
            submit(ctx, &r->op);
    }
    buf_clear(handed);
}
