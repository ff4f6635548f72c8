/* Jobs as rows. */
#ifndef PAWL_STORE_RUN_JOBS_H
#define PAWL_STORE_RUN_JOBS_H

#include "base/arena.h"
#include "domain/job.h"
#include "store/db.h"

/* A call of an entity's handler has no step. */
enum { JOB_OF_ENTITY = -1 };

struct job {
    int64_t owner;   /* the num of the run or entity that it is a job of */
    int64_t ordinal; /* 1, 2, 3 … within it */
    struct uuid id;
    int64_t tenant;
    int64_t step; /* index into the definition's steps, or JOB_OF_ENTITY */
    enum job_state state;
    struct str queue;
    int64_t urgency; /* minus the run's priority: smaller is sooner */
    int64_t attempt; /* how often a worker has claimed it */
    int64_t lease_epoch;
    struct str worker; /* ptr NULL: no worker has it */
    int64_t due_at;    /* the lease's end, or when a sleep or a delay is over; -1: neither */
    int64_t armed_at;  /* due_at as the row has it: the time of its timer */
    struct str output; /* ptr NULL: none */
    struct str error;  /* ptr NULL: none */
    int64_t created_at;
    int64_t started_at;  /* -1: not yet */
    int64_t finished_at; /* -1: not yet */
    int64_t item;        /* which one of a step with for_each; 0 otherwise */
    bool undo;           /* it compensates the step */
    struct str input;    /* JSON; ptr NULL: the step's own, or the run's */
    int64_t lease_ms;    /* what its worker asked for; -1: nobody has it */
    struct str note;     /* JSON of the last heartbeat; ptr NULL: none */
    struct uuid child;   /* the run that it waits for; all zero: none */
    int64_t dead_at;     /* since when it is a dead letter; -1: it is none */
    int64_t stale_epoch; /* the last lease whose late worker is in the timeline; 0: none */
    bool in_run;         /* it is part of its run's row: see jobs_insert_with_run() */
};

/* The id of the owner's job with this ordinal: the owner's time, the ordinal and random bits. So a
 * job is found by its id without an index. */
enum { JOB_ORDINAL_MAX = (1 << 24) - 1 };
struct uuid jobs_new_id(const struct env *env, int64_t run, int64_t ordinal);
int64_t jobs_ordinal(struct uuid id);
/* That of a run's first job, with the random bits of the run's own. */
struct uuid jobs_first_id(struct uuid run_id);

MUST_CHECK enum err jobs_insert(struct db *db, const struct job *job);
/* The first job of a run whose own row comes next. One that is as most are becomes part of that row
 * (docs/adr/053), and gets a row of its own when it changes. Until the run's row is there it is in
 * memory, and whoever asks for jobs makes it an ordinary one. */
MUST_CHECK enum err jobs_insert_with_run(struct db *db, const struct job *job);
/* For runs_insert(). The job that is to be part of the run's row, with its queue and due_at; NULL:
 * none. Borrowed until the next one is inserted. Of *from_run only what the run's row says of it is
 * read: owner, id, tenant, urgency and created_at. */
MUST_CHECK enum err jobs_put_first(struct db *db, const struct job *from_run,
                                   const struct job **ret);
/* Writes what a change may alter, if the row still has the epoch and state given; else
 * ERR_CONCURRENCY. After it the job has a row of its own. */
MUST_CHECK enum err jobs_update(struct db *db, const struct job *job, enum job_state from,
                                int64_t from_epoch);

MUST_CHECK enum err jobs_remove(struct db *db, int64_t run, int64_t ordinal);
/* Moves it to another queue. */
MUST_CHECK enum err jobs_set_queue(struct db *db, int64_t run, int64_t ordinal, struct str queue);

/* Changes its input before a worker claims it. */
MUST_CHECK enum err jobs_set_input(struct db *db, int64_t run, int64_t ordinal, struct str input);

/* Appends the attempts that were lost, a JSON list; nothing when none was. Kept apart from the rest
 * of the row, since only jobs that fail have them. */
MUST_CHECK enum err jobs_attempts(struct db *db, int64_t run, int64_t ordinal, struct buf *out);
MUST_CHECK enum err jobs_set_attempts(struct db *db, int64_t run, int64_t ordinal,
                                      struct str attempts);

/* Text is copied to the arena. tenant 0: of any tenant. */
MUST_CHECK enum err jobs_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                              bool *ret_found, struct job *ret);
MUST_CHECK enum err jobs_find_at(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                                 bool *ret_found, struct job *ret);
/* All jobs of a run in the order of their making. Text is borrowed for the call. */
typedef void job_each(void *ctx, const struct job *job);
MUST_CHECK enum err jobs_of_run(struct db *db, int64_t run, job_each *each, void *ctx);

/* The unfinished jobs of an owner with ordinals from `from` to below `to`, in order. `each` returns
 * false to stop. Text is borrowed. */
typedef bool job_each_open(void *ctx, const struct job *job);
MUST_CHECK enum err jobs_open(struct db *db, int64_t run, int64_t from, int64_t to,
                              job_each_open *each, void *ctx);
/* The first of them, with its text in the arena: for a caller that changes each one before it reads
 * the next. */
MUST_CHECK enum err jobs_next_open(struct db *db, int64_t run, int64_t from, int64_t to,
                                   struct arena *arena, bool *ret_found, struct job *ret);
/* The outputs of the jobs with these ordinals, in order. */
MUST_CHECK enum err jobs_range(struct db *db, int64_t run, int64_t from, int64_t to, job_each *each,
                               void *ctx);

/* Dead letters of a tenant, the newest first, those before (dead_at, owner, ordinal). */
MUST_CHECK enum err jobs_dead(struct db *db, int64_t tenant, int64_t dead_at, int64_t run,
                              int64_t ordinal, int64_t limit, job_each *each, void *ctx);

/* The items of a step with for_each. */
MUST_CHECK enum err map_items_insert(struct db *db, int64_t run, int64_t step, struct str items);
MUST_CHECK enum err map_items_find(struct db *db, int64_t run, int64_t step, struct arena *arena,
                                   struct str *ret);

/* The first claimable job of a queue: most urgent, then of the oldest run, or the oldest call of an
 * entity. */
MUST_CHECK enum err jobs_next(struct db *db, int64_t tenant, struct str queue, struct arena *arena,
                              bool *ret_found, struct job *ret);
/* The next tenant after `after` (by number) with something to claim in the queue. */
MUST_CHECK enum err jobs_next_tenant(struct db *db, struct str queue, int64_t after,
                                     bool *ret_found, int64_t *ret_tenant);

/* How many claimable jobs of the same tenant and queue come before this one; counts to `max`. */
MUST_CHECK enum err jobs_ahead(struct db *db, const struct job *job, int64_t max, int64_t *ret);

/* How many jobs are in each state, by queue: for metrics. */
MUST_CHECK enum err jobs_count(struct db *db,
                               void (*each)(void *ctx, struct str queue, struct str state,
                                            int64_t count),
                               void *ctx);

/* --- for the functions of queues, which are in job_queue.c --- */

/* Jobs of a queue that are as urgent are handed out by it. */
int64_t jobs_age(const struct job *job);
/* A job that waits for its run's row gets a row of its own: before rows are searched. */
MUST_CHECK enum err jobs_settle(struct db *db);
/* The only row of a query of all columns and in_run, with its text in the arena. */
MUST_CHECK enum err jobs_read_one(struct db_rows *rows, struct arena *arena, bool *ret_found,
                                  struct job *ret);

#endif
