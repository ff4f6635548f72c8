/* Checkpoints as rows: what the worker of a job has finished, each result under its name. A row is
 * written once and never changes. */
#ifndef PAWL_STORE_RUN_CHECKPOINTS_H
#define PAWL_STORE_RUN_CHECKPOINTS_H

#include "base/arena.h"
#include "store/db.h"

struct checkpoint {
    int64_t run;
    int64_t ordinal; /* of the job */
    int64_t seq;     /* 1, 2, 3 … within the job */
    struct str name;
    int64_t bytes; /* of the names and values of the job up to this one */
    int64_t at;
    struct str output; /* JSON; ptr NULL: it has an error */
    struct str error;  /* JSON; ptr NULL: it has an output */
};

MUST_CHECK enum err checkpoints_insert(struct db *db, const struct checkpoint *c);
/* Text is copied to the arena. */
MUST_CHECK enum err checkpoints_find(struct db *db, int64_t run, int64_t ordinal, struct str name,
                                     struct arena *arena, bool *ret_found, struct checkpoint *ret);
/* How many the job has, and their bytes. */
MUST_CHECK enum err checkpoints_total(struct db *db, int64_t run, int64_t ordinal,
                                      int64_t *ret_count, int64_t *ret_bytes);

/* Those of a job in the order in which they were stored. Text is borrowed for the call. */
typedef void checkpoint_each(void *ctx, const struct checkpoint *c);
MUST_CHECK enum err checkpoints_list(struct db *db, int64_t run, int64_t ordinal,
                                     checkpoint_each *each, void *ctx);

#endif
