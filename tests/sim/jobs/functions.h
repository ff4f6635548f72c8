/* Durable functions as the model knows them: what was stored of each under which name, which leases
 * its workers had, and what its suspensions waited for.
 *
 * Every function has the steps s0 … s4. Even ones are work, whose result is a mark that nobody else
 * has; the others wait: for a time, a signal or a decision, as the function's id says. What a wait
 * brought is stored under the step's name like a result. */
#ifndef PAWL_TESTS_SIM_FUNCTIONS_H
#define PAWL_TESTS_SIM_FUNCTIONS_H

#include "sim/runs.h"

#define FUNCTIONS_TENANT "fn"

enum { FUNCTION_STEPS = 5, MARKS_MAX = 4096, NOTHING = -1 };

enum step_kind { STEP_WORKS, STEP_SLEEPS, STEP_HEARS, STEP_ASKS };

struct function;

/* One hand-out of a function, and what its worker knows. */
struct function_lease {
    struct function *f;
    char token[64];
    int64_t attempt;
    int64_t sent, answered;         /* of the claim, by sim.clock */
    int64_t expires_ms;             /* by the server's clock */
    int64_t ended;                  /* by sim.clock: an answer said so; 0: none did */
    int64_t values[FUNCTION_STEPS]; /* NOTHING: not done */
    int64_t tried[FUNCTION_STEPS];  /* what it has sent and not seen stored */
    int resumed;                    /* the step that it was resumed by; NOTHING: none */
    int64_t brought;                /* what that step brought */
    bool busy;                      /* a request is under way */
    struct function_lease *next;    /* the one before */
};

struct function {
    char id[RUN_ID_LEN + 1];
    char run[RUN_ID_LEN + 1];
    int place;
    bool alone;                       /* the only function of its run */
    unsigned heard;                   /* steps that a worker has suspended for a signal, as bits */
    int64_t values[FUNCTION_STEPS];   /* that were shown or acknowledged; NOTHING: none was */
    int64_t known_at[FUNCTION_STEPS]; /* by sim.clock */
    int64_t brought[FUNCTION_STEPS];  /* what was shown to end the wait of that step */
    int64_t until_ms[FUNCTION_STEPS]; /* the earliest time that a worker wanted to sleep until */
    int waits;                        /* the step that it is suspended by; NOTHING: not known */
    int64_t waits_since;              /* by sim.clock: when that was acknowledged */
    int64_t completed;                /* by sim.clock: that was acknowledged; 0: no */
    struct function_lease *newest;
    struct function *next;
};

/* A mark is of one step of one function, or of one signal to a run. */
struct mark {
    const struct function *f; /* whose step has it, or, of a signal, who has got it */
    int step;
    char run[RUN_ID_LEN + 1]; /* of a signal; "": it is none */
    int64_t acknowledged;     /* by sim.clock, of a signal; 0: not */
};

/* A question that somebody asked or decided. */
struct question {
    char id[RUN_ID_LEN + 1];
    int place;
    bool said[3];    /* somebody said so, may have said so: 1 approve, 2 reject */
    int64_t decided; /* 1 approved, 2 rejected, 3 expired, as acknowledged; 0: not yet */
    struct question *next;
};

struct functions {
    struct function *first;
    struct question *questions;
    struct mark marks[MARKS_MAX];
    int mark_count;
    int runs; /* started */
};

struct functions *functions_state(struct sim *w);

enum step_kind function_step_kind(const struct function *f, int step);
/* A new mark; NOTHING: there are no more. */
int64_t functions_mark(struct sim *w, const struct function *f, int step, const char *run);
/* The question of that id, which is added when it is new. */
struct question *functions_question(struct sim *w, const char *id, int place);

/* --- what answers say --- */

/* A claim handed it out: checks what comes with it. The worker's new lease. */
struct function_lease *function_claimed(struct sim *w, const struct call *c, const json_t *job);
/* A result is stored under the step's name. */
void function_stored(struct sim *w, struct function_lease *l, const struct call *c, int step,
                     int64_t sent);
void function_suspended(struct sim *w, struct function_lease *l, const struct call *c, int step);
void function_completed(struct sim *w, struct function_lease *l, const struct call *c);
/* Decided: 1 approved, 2 rejected. */
void question_decided(struct sim *w, struct question *q, int64_t decision);

/* The end: the job as it is shown has all of it. */
void function_check_shown(struct sim *w, const struct function *f, const json_t *job,
                          bool run_succeeded);

#endif
