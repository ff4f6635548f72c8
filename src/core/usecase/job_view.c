/* A job as its readers see it. */
#include "core/usecase/job_view.h"

#include "core/entity/entity_call.h"
#include "core/run/approval_txn.h"
#include "core/run/job_txn.h"
#include "core/txn/attempts.h"

static enum err view_step(struct read_tx *tx, const struct job *job, struct problem *p,
                          struct json_out *o)
{
    struct run_txn m;
    bool approved = false;
    enum err e = run_txn_read(&m, tx, job->run, p);
    if (e != ERR_OK)
        return e;
    e = approval_of_job(&m, job, &approved);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the job's approval");
    render_job(o, job, &m.run, m.def, approved);
    return ERR_OK;
}

enum err job_view(struct read_tx *tx, const struct job *job, struct problem *p, struct json_out *o)
{
    enum err e = job_is_of_entity(job) ? entity_call_show(tx, job, p, o) : view_step(tx, job, p, o);
    if (e != ERR_OK)
        return e;
    e = attempts_show(tx, job, o);
    json_close(o, '}');
    return e == ERR_OK ? ERR_OK : problem_set(p, e, "Cannot read the job's attempts");
}
