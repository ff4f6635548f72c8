/* Suspensions as rows: what a suspended job waits for, and what has come. Each job has one row, of
 * its newest suspension. That the job still waits is said by its state. */
#ifndef PAWL_STORE_RUN_SUSPENSIONS_H
#define PAWL_STORE_RUN_SUSPENSIONS_H

#include "base/arena.h"
#include "store/db.h"

struct suspension {
    int64_t run;
    int64_t ordinal;   /* of the job */
    int64_t num;       /* how many the job has had, with this one */
    int64_t lease;     /* the lease_epoch under which the worker gave the job up */
    struct str name;   /* the worker's own name for it; ptr NULL: none */
    int64_t until;     /* the time that it waits for, or its last moment with a signal; -1: none */
    struct str signal; /* the signal that it waits for; ptr NULL: none */
    int64_t question;  /* the ordinal of the job that asks for a decision; -1: none */
    int64_t at;        /* when it began */
    struct str resumed_by; /* JSON; ptr NULL: nothing has come yet */
};

/* In the place of the one before. */
MUST_CHECK enum err suspensions_put(struct db *db, const struct suspension *s);
/* Text is copied to the arena. */
MUST_CHECK enum err suspensions_find(struct db *db, int64_t run, int64_t ordinal,
                                     struct arena *arena, bool *ret_found, struct suspension *ret);
/* What it waited for has come. ERR_DAMAGED when it waits for nothing. */
MUST_CHECK enum err suspensions_resume(struct db *db, int64_t run, int64_t ordinal,
                                       struct str resumed_by);
/* Is this the signal that the job waits for? */
MUST_CHECK enum err suspensions_want(struct db *db, int64_t run, int64_t ordinal, struct str signal,
                                     bool *ret);

#endif
