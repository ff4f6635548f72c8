/* What the types of steps do, one function and one table of hooks per row of
 * domain/workflow/step_type.h. Nothing else in core knows a type by its symbol.
 *
 * A type is begun by step_<token>_begin(). What its jobs do while they wait is a struct step_waits,
 * which several types may share; most use step_waits_plain. */
#ifndef PAWL_CORE_RUN_STEP_OPS_H
#define PAWL_CORE_RUN_STEP_OPS_H

#include "core/run/run_txn.h"

/* The code of a job whose expressions cannot be evaluated. */
#define EXPRESSION_FAILED "EXPRESSION_FAILED"

/* One item of a step for which a job is made. */
struct step_item {
    struct run_txn *m;
    const struct step_def *def;
    struct job *job;          /* pending, not stored */
    const struct json *value; /* of the map's item; NULL: the step is no map */
    const char *code;         /* of the failure when the job cannot be made */
    struct problem p;
};

/* Fills in i->job as the type wants it: its input and queue, the time that it waits for, or the
 * result when it ends at once. The caller stores it. ERR_EXPRESSION with i->p: the job fails. */
typedef enum err step_begin_fn(struct step_item *i);

struct step_waits {
    const char *kind; /* what an answer to "why" calls the wait; NULL: there is none of its own */
    /* The due_at of a scheduled job has come, or the child run that it waits for has ended. */
    enum err (*due)(struct run_txn *m, struct job *job, struct problem *p);
    /* An open job was cancelled. NULL: nothing else ends with it. */
    enum err (*cancelled)(struct run_txn *m, const struct job *job);
    /* The run tries again with new jobs; those with ordinals from … to - 1 are forgotten. NULL:
     * they hold nothing. */
    enum err (*dropped)(struct run_txn *m, int64_t from, int64_t to);
    /* For "why": members about what an open job waits for, and a sentence. Set with `kind`. */
    enum err (*why)(struct read_tx *tx, const struct step_def *def, const struct job *job,
                    struct json_out *o, struct buf *sentence);
};

#define X(symbol, token, flags, waits)                             \
    MUST_CHECK enum err step_##token##_begin(struct step_item *i); \
    extern const struct step_waits step_waits_##waits;
STEP_TYPES(X)
#undef X

/* The begin function of the type. */
step_begin_fn *step_begin_of(enum step_type type);
/* What the job does while it waits; one that compensates is plain, whatever its step is. */
const struct step_waits *step_waits_of(const struct definition *def, const struct job *job);
/* The same for the jobs of a step. */
const struct step_waits *step_waits_of_type(enum step_type type);

/* A template filled in, as JSON text; the value itself where there is nothing to fill in. */
MUST_CHECK enum err step_fill_text(struct step_item *i, const struct json *template,
                                   struct str *ret);

#endif
