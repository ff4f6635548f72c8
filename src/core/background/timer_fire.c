/* What a timer does when its time has come. */
#include "core/background/timer_fire.h"

#include "core/background/entity_starts_due.h"
#include "core/entity/entity_txn.h"
#include "core/run/follow_up.h"
#include "core/run/run_advance.h"
#include "core/run/run_control.h"
#include "core/txn/cpu_shares.h"
#include "core/usecase/job_owners.h"
#include "core/usecase/start.h"

/* The run's own: its start, its deadline, or more to do than one turn may take. */
static enum err fire_run(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct run_txn m;
    enum err e = run_txn_load(&m, tx, timer->owner, p);
    if (e != ERR_OK && e != ERR_RUN_NOT_FOUND)
        return e;
    bool found = e == ERR_OK;
    e = timers_delete(tx->db, timer);
    if (e != ERR_OK || !found || run_has_ended(m.run.status))
        return e;
    if (timer->ordinal == TIMER_PARENT_OVER)
        return run_txn_cancel(&m, STR("pawl"), STR("The parent run has ended"));
    if (timer->ordinal == TIMER_GO_ON) {
        cpu_shares_resume(tx->cpu, m.run.tenant);
        return m.run.status == RUN_QUEUED ? ERR_OK : run_txn_advance(&m);
    }
    /* A timer that is later than the run says was put off; an earlier one is of another time. */
    bool starts = m.run.start_at >= 0 && m.run.start_at <= timer->due_at;
    if (m.run.status == RUN_QUEUED)
        return starts ? start_delayed(&m, p) : ERR_OK;
    if (m.run.deadline_at < 0 || m.run.deadline_at > timer->due_at)
        return ERR_OK;
    advance_timed_out(&m.progress);
    return run_txn_advance(&m);
}

/* A timer of an older generation is only removed. */
static enum err fire_job(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(tx->db, timer->owner, timer->ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    bool child = found && job.state == JOB_DISPATCHED && !uuid_is_nil(job.child);
    bool due = found && !job_has_ended(job.state) && job.lease_epoch == timer->generation &&
               job.due_at >= 0 &&
               job.due_at <= timer->due_at; /* later than the job says: put off */
    if (!due || child)
        e = timers_delete(tx->db, timer);
    if (e != ERR_OK || (!due && !child))
        return e;
    return job_owner_of(&job)->due(tx, &job, p);
}

/* One of an entity's own: a call of its handler is due, unless one is under way. */
static enum err fire_entity(struct tx *tx, const struct timer *timer, struct problem *p)
{
    struct entity_txn m;
    bool found = false;
    enum err e = entity_txn_load(&m, tx, timer->owner, p, &found);
    if (e == ERR_OK)
        e = timers_delete(tx->db, timer);
    return e == ERR_OK && found ? entity_txn_timer_due(&m, timer->due_at) : e;
}

static enum err fire_owner(struct tx *tx, const struct timer *timer, struct problem *p)
{
    switch (timer->ordinal) {
    case TIMER_ENTITY:
        return fire_entity(tx, timer, p);
    case TIMER_ENTITY_START:
        return entity_starts_due(tx, timer, p);
    default:
        return fire_run(tx, timer, p);
    }
}

enum err timer_fire(struct tx *tx, const struct timer *timer, struct problem *p)
{
    enum err e = timer->ordinal <= TIMER_RUN ? fire_owner(tx, timer, p) : fire_job(tx, timer, p);
    if (e == ERR_OK)
        e = follow_up(tx, p);
    read_tx_drop_json(&tx->read);
    return e;
}
