/* The answer of a start, rendered from the facts of the run's birth.
 *
 * The facts are one line: status, version, started, and deadline_at and start_at if it has one of
 * them; and for each step that was not just waiting: its place, the ordinal of its job (0: none),
 * its status, its attempt, started. `started` is 1 for what had the time of the birth, since no
 * other time can have passed.
 *
 *     running,3,1;0,1,pending,0,0
 */
#include "core/run/run_birth.h"

#include "base/limits.h"
#include "core/run/run_view.h"

enum { FACTS_MAX = 4 * KIB };

void run_birth_render(struct answer *a, const struct run *run, const struct definition *def,
                      const struct step_view *views, bool coalesced)
{
    struct json_out o = json_out_to(&a->body);
    json_add_uuid(&o, "run_id", run->id);
    if (coalesced)
        json_add_bool(&o, "coalesced", true);
    render_run(&o, "run", run, def, views);
    json_close(&o, '}');
}

/* --- writing --- */

static bool is_birth_time(const struct run *run, int64_t at)
{
    return at < 0 || at == run->created_at;
}

static bool run_is_plain(const struct run *run)
{
    return str_is(run->state, "{}") && run->output.ptr == NULL && run->error.ptr == NULL &&
           run->finished_at < 0 && is_birth_time(run, run->started_at) &&
           uuid_is_nil(run->rerun_of);
}

static bool job_is_plain(const struct run *run, const struct job *j)
{
    return j->output.ptr == NULL && j->error.ptr == NULL && j->finished_at < 0 &&
           is_birth_time(run, j->started_at) && uuid_is_nil(j->child);
}

static bool step_is_plain(const struct run *run, const struct step_view *v)
{
    if (v->state->is_map || v->state->undo != UNDO_NONE)
        return false;
    return v->has_job ? v->state->status == STEP_IS_ACTIVE && job_is_plain(run, &v->job)
                      : v->output.ptr == NULL && v->error.ptr == NULL;
}

static void put_number(struct buf *out, int64_t number)
{
    buf_put_char(out, ',');
    buf_put_i64(out, number);
}

static void put_step(struct buf *out, size_t step, const struct step_view *v)
{
    if (!v->has_job && v->state->status == STEP_IS_WAITING)
        return;
    buf_put_char(out, ';');
    buf_put_i64(out, (int64_t)step);
    put_number(out, v->has_job ? v->job.ordinal : 0);
    buf_put_char(out, ',');
    buf_put(out, str_of(step_status_name(v)));
    put_number(out, v->has_job ? v->job.attempt : 0);
    put_number(out, v->has_job && v->job.started_at >= 0);
}

struct str run_birth_facts(struct run_txn *m, const struct step_view *views)
{
    const struct run *run = &m->run;
    bool plain = run_is_plain(run);
    for (size_t i = 0; i < m->def->step_count && plain; i++)
        plain = step_is_plain(run, &views[i]);
    if (!plain)
        return STR_NONE;
    struct buf text;
    buf_init(&text, FACTS_MAX);
    buf_put(&text, str_of(run_status_name(run->status)));
    put_number(&text, run->version);
    put_number(&text, run->started_at >= 0);
    if (run->deadline_at >= 0 || run->start_at >= 0) {
        put_number(&text, run->deadline_at);
        put_number(&text, run->start_at);
    }
    for (size_t i = 0; i < m->def->step_count; i++)
        put_step(&text, i, &views[i]);
    return arena_take(&m->tx->arena, &text);
}

enum err run_birth_place_key(struct run_txn *m)
{
    struct run_key *key = arena_alloc(&m->tx->arena, sizeof(*key));
    const struct step_view *views;
    enum err e = key != NULL ? run_txn_show(m, &views) : ERR_NO_MEMORY;
    if (e != ERR_OK)
        return e;
    *key = *m->run.key;
    if (m->tenant->idempotency_retention_ms < 0)
        key->born = run_birth_facts(m, views);
    if (key->born.ptr == NULL)
        m->run.key_num = idem_keys_reserve(m->tx->keys);
    m->run.key = key->born.ptr != NULL ? key : NULL;
    return ERR_OK;
}

/* --- reading --- */

struct facts {
    struct str rest; /* of the part that is being read */
    bool damaged;
};

static struct str next_word(struct facts *f)
{
    struct str word;
    f->damaged |= f->rest.len == 0;
    (void)str_cut(f->rest, ',', &word, &f->rest);
    return word;
}

static int64_t next_number(struct facts *f)
{
    int64_t number = 0;
    f->damaged |= !str_to_i64(next_word(f), &number);
    return number;
}

/* What the run looked like. All that is not said was as in every new run, or never changes. */
static void read_run(struct facts *f, struct run *run)
{
    struct run blank = run_blank();
    run->status = run_status_of(next_word(f));
    f->damaged |= run->status == RUN_STATUS_COUNT;
    run->version = next_number(f);
    run->started_at = next_number(f) != 0 ? run->created_at : -1;
    bool has_times = f->rest.len > 0;
    run->deadline_at = has_times ? next_number(f) : -1;
    run->start_at = has_times ? next_number(f) : -1;
    run->state = blank.state;
    run->output = blank.output;
    run->error = blank.error;
    run->finished_at = -1;
    run->rerun_of = blank.rerun_of;
}

static enum step_status status_of(struct facts *f, struct str word)
{
    for (enum step_status s = 0; s < STEP_STATUS_COUNT; s++) {
        struct step_view view = {.state = &(struct step_state){.status = s}};
        if (str_is(word, step_status_name(&view)))
            return s;
    }
    f->damaged = true;
    return STEP_IS_WAITING;
}

/* The job of a step, for its id; the rest of it is as it was. */
static enum err read_job(struct facts *f, struct read_tx *tx, const struct run *run,
                         int64_t ordinal, struct str state, struct step_view *view)
{
    struct job job;
    bool found = false;
    enum err e = jobs_find_at(tx->db, run->num, ordinal, &tx->arena, &found, &job);
    if (e != ERR_OK)
        return e;
    view->has_job = true;
    view->job = (struct job){.id = job.id, .finished_at = -1};
    view->job.state = job_state_of(state);
    view->job.attempt = next_number(f);
    view->job.started_at = next_number(f) != 0 ? run->created_at : -1;
    f->damaged |= !found || view->job.state == JOB_STATE_COUNT;
    return ERR_OK;
}

static enum err read_step(struct facts *f, struct read_tx *tx, const struct run *run,
                          struct step_view *views, struct step_state *states, size_t count)
{
    int64_t step = next_number(f);
    int64_t ordinal = next_number(f);
    struct str word = next_word(f);
    if (f->damaged || step < 0 || (size_t)step >= count)
        return ERR_DAMAGED;
    states[step].status = ordinal > 0 ? STEP_IS_ACTIVE : status_of(f, word);
    return ordinal > 0 ? read_job(f, tx, run, ordinal, word, &views[step]) : ERR_OK;
}

/* Views of all steps, in the arena; *facts has what comes after the run. */
static enum err read_steps(struct str facts, struct read_tx *tx, const struct run *run,
                           const struct definition *def, const struct step_view **ret)
{
    struct step_view *views = arena_alloc(&tx->arena, def->step_count * sizeof(*views));
    struct step_state *states = arena_alloc(&tx->arena, def->step_count * sizeof(*states));
    if (views == NULL || states == NULL)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < def->step_count; i++) {
        states[i] = (struct step_state){.status = STEP_IS_WAITING};
        views[i] = (struct step_view){.state = &states[i]};
    }
    enum err e = ERR_OK;
    while (facts.len > 0 && e == ERR_OK) {
        struct facts one = {0};
        (void)str_cut(facts, ';', &one.rest, &facts);
        e = read_step(&one, tx, run, views, states, def->step_count);
        if (e == ERR_OK && one.damaged)
            e = ERR_DAMAGED;
    }
    *ret = views;
    return e;
}

enum err run_birth_show(struct read_tx *tx, int64_t tenant, struct uuid run_id, struct str facts,
                        struct answer *a, struct problem *p)
{
    struct run run;
    bool found = false;
    enum err e = runs_find(tx->db, tenant, run_id, &tx->arena, &found, &run);
    if (e == ERR_OK && !found)
        e = ERR_DAMAGED;
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the run that the key has started");
    const struct definition *def;
    e = read_tx_definition(tx, tenant, run.workflow_id, run.workflow_version, p, &def);
    if (e != ERR_OK)
        return e;
    struct facts first = {0};
    (void)str_cut(facts, ';', &first.rest, &facts);
    read_run(&first, &run);
    const struct step_view *views = NULL;
    e = first.damaged ? ERR_DAMAGED : read_steps(facts, tx, &run, def, &views);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read what the run was like when it started");
    run_birth_render(a, &run, def, views, false);
    return ERR_OK;
}
