/* Requests of workers whose lease is gone. */
#include "core/run/stale_result.h"

#include "base/limits.h"
#include "core/txn/job_row.h"
#include "core/txn/lease.h"

enum err job_refuse_stale(struct op *op, struct run_txn *m, struct job *job, struct str token,
                          const char *why)
{
    int64_t epoch = 0;
    if (lease_is_news(job, token, &epoch)) {
        struct job touched = *job;
        touched.stale_epoch = epoch;
        struct buf data;
        buf_init(&data, 4 * KIB);
        struct json_out o = json_out_to(&data);
        json_open(&o, NULL, '{');
        json_add_uuid(&o, "job_id", job->id);
        json_add_text(&o, "step", job_step(m->def, job)->name);
        json_add_int(&o, "lease", epoch);
        json_add_text(&o, "by", op->caller.actor);
        json_close(&o, '}');
        enum err e = buf_ok(&data) ? job_row_touch(m->tx, job, &touched) : ERR_NO_MEMORY;
        if (e == ERR_OK)
            e = run_txn_add_event(m, EVENT_JOB_STALE_RESULT, buf_str(&data));
        buf_release(&data);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot record the stale lease");
        op->answer.refusal_wrote = true;
    }
    return problem_set(&op->problem, ERR_LEASE_LOST, "%s", why);
}
