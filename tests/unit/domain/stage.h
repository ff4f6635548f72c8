/* A run played by a script. A turn is written as what it did, in order: "+a" the step begins, ".a"
 * one of its jobs is made, "?a" its condition does not hold, "-a" it is cut off by an error that
 * went another way, "!a" its open jobs end, "~a" it is undone; words are the run's own moves. */
#ifndef PAWL_TESTS_DOMAIN_STAGE_H
#define PAWL_TESTS_DOMAIN_STAGE_H

#include "domain/play.h"
#include "domain/trial.h"

/* What is left to chance, for once told beforehand. By step. */
struct script {
    bool does_not_hold[PLAY_STEPS_MAX];
    bool cannot_be_evaluated[PLAY_STEPS_MAX];
    uint64_t items[PLAY_STEPS_MAX];
    bool succeeds_at_once[PLAY_STEPS_MAX];
    bool fails_at_once[PLAY_STEPS_MAX];
    bool asks[PLAY_STEPS_MAX];
    bool undo_fails_at_once[PLAY_STEPS_MAX];
    uint64_t per_turn; /* 0: enough */
};

struct stage {
    struct trial trial;
    struct script script;
    struct play play;
};

static inline uint64_t choose(void *ctx, enum play_choice what, size_t step, uint64_t bound)
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

static inline struct stage *stage_new(const char *definition)
{
    struct stage *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    try_text(&s->trial, definition);
    assert_valid(&s->trial);
    play_init(&s->play, s->trial.def, choose, &s->script);
    return s;
}

static inline void stage_free(struct stage *s)
{
    play_release(&s->play);
    end(&s->trial);
    free(s);
}

static inline size_t step_of(const struct stage *s, const char *name)
{
    size_t step = definition_find_step(s->trial.def, str_of(name));
    assert_true(step < s->trial.def->step_count);
    return step;
}

static inline struct step_state *state_of(struct stage *s, const char *name)
{
    return &s->play.p.steps[step_of(s, name)];
}

static inline void assert_turn(const struct stage *s, enum run_status status, const char *log)
{
    if (s->play.broken)
        fail_msg("%s does not hold (play.h:%d) in: %s", s->play.broken, s->play.broken_line,
                 s->play.log);
    size_t len = strlen(s->play.log);
    if (len != strlen(log) + (len > 0) || strncmp(s->play.log, log, strlen(log)) != 0)
        fail_msg("did <%s>, not <%s>", s->play.log, log);
    assert_string_equal(run_status_name(s->play.status), run_status_name(status));
}

static inline void go(struct stage *s, enum run_status status, const char *log)
{
    play_go(&s->play);
    assert_turn(s, status, log);
}

/* An item of the step ends; -1: its compensation. */
static inline void job_ends(struct stage *s, const char *step, int64_t item, enum step_status as)
{
    const struct step_state *state = state_of(s, step);
    int64_t ordinal = item < 0 ? state->undo_job : state->first + item;
    play_job_over(&s->play, ordinal, as);
}

static inline void ends(struct stage *s, const char *step, enum step_status as,
                        enum run_status status, const char *log)
{
    job_ends(s, step, 0, as);
    go(s, status, log);
}

static inline void succeeds(struct stage *s, const char *step, enum run_status status,
                            const char *log)
{
    ends(s, step, STEP_IS_SUCCEEDED, status, log);
}

static inline void fails(struct stage *s, const char *step, enum run_status status, const char *log)
{
    ends(s, step, STEP_IS_FAILED, status, log);
}

static inline void undo_ends(struct stage *s, const char *step, bool done, enum run_status status,
                             const char *log)
{
    job_ends(s, step, -1, done ? STEP_IS_SUCCEEDED : STEP_IS_FAILED);
    go(s, status, log);
}

static inline void assert_step(struct stage *s, const char *name, enum step_status status)
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
