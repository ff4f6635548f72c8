/* Signals to runs. A key that is known changes nothing; a signal that no step waits for yet stays
 * until one does. */
#include "core/run/run_advance.h"
#include "core/run/signal_wait.h"
#include "core/txn/signal_dedup.h"
#include "core/usecase/control.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"

static struct signal_dedup_rules rules_of(const struct run_txn *m)
{
    return (struct signal_dedup_rules){.window_ms = m->def->signal_window_ms,
                                       .max_keys = m->def->signal_max_keys};
}

static void answer(struct op *op, const struct run_txn *m, int64_t seq, bool duplicate)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "run_id", m->run.id);
    json_add_int(&o, "seq", seq);
    json_add_bool(&o, "duplicate", duplicate);
    json_add_text(&o, "run_status", str_of(run_status_name(m->run.status)));
    json_close(&o, '}');
}

static enum err look_up(struct op *op, struct run_txn *m, struct signal_dedup_key *key,
                        bool *ret_known)
{
    struct signal_dedup_rules rules = rules_of(m);
    enum signal_dedup_verdict verdict = SIGNAL_NEW;
    int64_t seq = 0;
    enum err e = signal_dedup_check(m->tx, key, &rules, &verdict, &seq);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot look up the dedup_key");
    if (verdict == SIGNAL_REUSED)
        return problem_set(&op->problem, ERR_IDEM_KEY_REUSED,
                           "The dedup_key was already used for a different signal");
    *ret_known = verdict == SIGNAL_DUPLICATE;
    if (*ret_known) {
        op->answer.changed_nothing = true;
        answer(op, m, seq, true);
    }
    return ERR_OK;
}

/* Counting is left out while no more have come than may wait. */
static enum err check_room(struct op *op, const struct run_txn *m, int64_t came)
{
    int64_t waiting = 0;
    if (came < RUN_SIGNALS_WAITING_MAX)
        return ERR_OK;
    enum err e = signals_count_waiting(m->tx->db, m->run.num, RUN_SIGNALS_WAITING_MAX, &waiting);
    if (e != ERR_OK || waiting < RUN_SIGNALS_WAITING_MAX)
        return e;
    e = problem_set(
        &op->problem, ERR_INBOX_FULL,
        "The run's inbox is full: %d signals are waiting for steps that have not started",
        RUN_SIGNALS_WAITING_MAX);
    problem_add_limit(&op->problem, "inbox", "waiting-signals", waiting, RUN_SIGNALS_WAITING_MAX);
    return e;
}

static enum err tell(struct op *op, struct run_txn *m, struct str name)
{
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_out o = json_out_to(&data);
    json_open(&o, NULL, '{');
    json_add_text(&o, "name", name);
    json_add_text(&o, "by", op->caller.actor);
    json_close(&o, '}');
    enum err e =
        buf_ok(&data) ? run_txn_add_event(m, EVENT_SIGNAL_RECEIVED, buf_str(&data)) : ERR_NO_MEMORY;
    buf_release(&data);
    return e;
}

/* The first step that waits for it gets it; otherwise it waits for its step. */
static enum err take_in(struct op *op, struct run_txn *m, struct run_signal *s,
                        const struct signal_dedup_key *key)
{
    struct signal_dedup_rules rules = rules_of(m);
    struct job job;
    bool awaited = false;
    int64_t evicted = 0;
    enum err e = signals_last(m->tx->db, m->run.num, &s->seq);
    if (e == ERR_OK)
        e = signal_wait_find(m, s->name, &awaited, &job);
    if (e == ERR_OK && !awaited)
        e = check_room(op, m, s->seq);
    if (e != ERR_OK)
        return e;
    s->seq++;
    e = signals_insert(m->tx->db, s);
    if (e == ERR_OK && key->key.ptr != NULL)
        e = signal_dedup_record(m->tx, key, &rules, s->seq, &evicted);
    if (e == ERR_OK)
        e = tell(op, m, s->name);
    if (e != ERR_OK || !awaited)
        return e;
    bool was_suspended = job.state == JOB_SUSPENDED;
    e = signal_wait_give(m, s, &job);
    return e == ERR_OK && (was_suspended || job_has_ended(job.state)) ? run_txn_advance(m) : e;
}

static enum err signal_run(struct op *op, struct tx *tx)
{
    const struct signal_run_input *in = op->input;
    struct run_txn m;
    bool known = false;
    enum err e = run_txn_find(&m, op, tx, in->run_id);
    if (e == ERR_OK)
        e = run_check_version(op, &m, in->if_match);
    if (e != ERR_OK)
        return e;
    struct signal_dedup_key key = {
        .owner = m.run.num, .key = in->dedup_key, .request = in->request};
    if (key.key.ptr != NULL)
        e = look_up(op, &m, &key, &known);
    if (e != ERR_OK || known)
        return e;
    if (run_has_ended(m.run.status))
        return run_refuse(op, &m, ERR_RUN_IS_OVER, "it no longer accepts signals");
    struct run_signal s = {
        .run = m.run.num, .name = in->name, .payload = in->payload, .at = tx->now_ms};
    e = take_in(op, &m, &s, &key);
    if (e != ERR_OK)
        return op->problem.err != ERR_OK ? op->problem.err
                                         : problem_set(&op->problem, e, "Cannot store the signal");
    answer(op, &m, s.seq, false);
    return ERR_OK;
}

const struct use_case UC_SIGNAL_RUN = {.name = "signal_run", .write = signal_run};
