/* A run played by a script. A turn is written as what it did, in order: "+a" the step begins, ".a"
 * one of its jobs is made, "?a" its condition does not hold, "-a" it is cut off by an error that
 * went another way, "!a" its open jobs end, "~a" it is undone; words are the run's own moves. */
#ifndef PAWL_TESTS_DOMAIN_SCRIPTED_RUN_H
#define PAWL_TESTS_DOMAIN_SCRIPTED_RUN_H

#include "domain/parsed_definition.h"
#include "domain/simulated_run.h"

/* What is left to chance, for once told beforehand. By step. */
struct script {
    bool does_not_hold[SIMULATED_STEPS_MAX];
    bool cannot_be_evaluated[SIMULATED_STEPS_MAX];
    uint64_t items[SIMULATED_STEPS_MAX];
    bool succeeds_at_once[SIMULATED_STEPS_MAX];
    bool fails_at_once[SIMULATED_STEPS_MAX];
    bool asks[SIMULATED_STEPS_MAX];
    bool undo_fails_at_once[SIMULATED_STEPS_MAX];
    uint64_t per_turn; /* 0: enough */
};

struct scripted_run {
    struct parsed_definition parsed;
    struct script script;
    struct simulated_run simulated_run;
};

static inline uint64_t choose(void *ctx, enum simulated_choice what, size_t step, uint64_t bound)
{
    (void)bound;
    const struct script *s = ctx;
    switch (what) {
    case CHOOSE_CONDITION:
        return s->does_not_hold[step] ? 0 : s->cannot_be_evaluated[step] ? 1 : 2;
    case CHOOSE_ITEMS:
        return s->items[step];
    case CHOOSE_ITEM:
        return s->succeeds_at_once[step] ? 0 : s->fails_at_once[step] ? 1 : s->asks[step] ? 2 : 3;
    case CHOOSE_UNDO:
        return s->undo_fails_at_once[step] ? 0 : 1;
    case CHOOSE_PER_TURN:
        return s->per_turn > 0 ? s->per_turn - 1 : 1000;
    }
    return 0;
}

static inline struct scripted_run *scripted_run_new(const char *definition)
{
    struct scripted_run *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    try_text(&s->parsed, definition);
    assert_valid(&s->parsed);
    simulated_init(&s->simulated_run, s->parsed.def, choose, &s->script);
    return s;
}

static inline void scripted_run_free(struct scripted_run *s)
{
    simulated_release(&s->simulated_run);
    end(&s->parsed);
    free(s);
}

static inline size_t step_of(const struct scripted_run *s, const char *name)
{
    size_t step = definition_find_step(s->parsed.def, str_of(name));
    assert_true(step < s->parsed.def->step_count);
    return step;
}

static inline struct step_state *state_of(struct scripted_run *s, const char *name)
{
    return &s->simulated_run.p.steps[step_of(s, name)];
}

static inline void assert_turn(const struct scripted_run *s, enum run_status status,
                               const char *log)
{
    if (s->simulated_run.broken)
        fail_msg("%s does not hold (simulated_run.h:%d) in: %s", s->simulated_run.broken,
                 s->simulated_run.broken_line, s->simulated_run.log);
    size_t len = strlen(s->simulated_run.log);
    if (len != strlen(log) + (len > 0) || strncmp(s->simulated_run.log, log, strlen(log)) != 0)
        fail_msg("did <%s>, not <%s>", s->simulated_run.log, log);
    assert_string_equal(run_status_name(s->simulated_run.status), run_status_name(status));
}

static inline void go(struct scripted_run *s, enum run_status status, const char *log)
{
    simulated_go(&s->simulated_run);
    assert_turn(s, status, log);
}

/* An item of the step ends; -1: its compensation. */
static inline void job_ends(struct scripted_run *s, const char *step, int64_t item,
                            enum step_status as)
{
    const struct step_state *state = state_of(s, step);
    int64_t ordinal = item < 0 ? state->undo_job : state->first + item;
    simulated_job_over(&s->simulated_run, ordinal, as);
}

static inline void ends(struct scripted_run *s, const char *step, enum step_status as,
                        enum run_status status, const char *log)
{
    job_ends(s, step, 0, as);
    go(s, status, log);
}

static inline void succeeds(struct scripted_run *s, const char *step, enum run_status status,
                            const char *log)
{
    ends(s, step, STEP_IS_SUCCEEDED, status, log);
}

static inline void fails(struct scripted_run *s, const char *step, enum run_status status,
                         const char *log)
{
    ends(s, step, STEP_IS_FAILED, status, log);
}

static inline void undo_ends(struct scripted_run *s, const char *step, bool done,
                             enum run_status status, const char *log)
{
    job_ends(s, step, -1, done ? STEP_IS_SUCCEEDED : STEP_IS_FAILED);
    go(s, status, log);
}

static inline void assert_step(struct scripted_run *s, const char *name, enum step_status status)
{
    assert_int_equal(state_of(s, name)->status, status);
}

#define A_STEP(name, members) "{'name':'" name "','type':'task','handler':'h'" members "}"
#define STEPS(...) "{'steps':[" __VA_ARGS__ "]}"
#define UNDO ",'compensate':{'handler':'u'}"
#define NEEDS(list) ",'needs':[" list "]"
#define MAP(parallel) ",'for_each':'input','max_parallel':" parallel
#define ON_ERROR(what) ",'on_error':'" what "'"

#endif
