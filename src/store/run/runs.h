/* Runs and their timelines as rows. */
#ifndef PAWL_STORE_RUN_RUNS_H
#define PAWL_STORE_RUN_RUNS_H

#include "base/arena.h"
#include "base/crypto.h"
#include "domain/run.h"
#include "store/db.h"
#include "store/run/slot_holders.h"

/* The record of the key that has started a run, in the run's row: see store/idempotency.h. */
struct run_key {
    struct str key;
    struct str route;
    struct sha256 fingerprint;
    uint64_t raw_hash;
    struct str born;
};

enum { RUN_KEY_HASHES_LEN = SHA256_LEN + sizeof(uint64_t) };

struct run {
    int64_t num; /* the time in its id, rising with each run over all tenants: see runs_new_num() */
    struct uuid id;
    int64_t tenant;
    struct str workflow_id;
    int64_t workflow_version;
    enum run_status status;
    int64_t version;  /* the number of the last event of its timeline: grows with each change of the
                       * run, its steps or their attempts; 0: it has none yet */
    int64_t revision; /* of the row: grows by one per update, and every update names the one it read
                       */
    int64_t priority;
    struct str input;
    struct str state;
    struct str output;      /* ptr NULL: none yet */
    struct str error;       /* ptr NULL: none */
    struct str labels;      /* JSON object of texts */
    struct str traceparent; /* of the request that started it; ptr NULL: it had none */
    struct str tracestate;  /* the same; ptr NULL: it had none, or not a valid one */
    struct str created_by;
    struct str scopes; /* limits it counts under besides its tenant's: see limit_key_list_parse() */
    int64_t created_at;
    int64_t started_at;  /* -1: not yet */
    int64_t finished_at; /* -1: not yet */
    struct str progress; /* see domain/progress.h; ptr NULL: made by an earlier version */
    int64_t deadline_at; /* -1: none */
    int64_t start_at;    /* a queued run that waits for this time; -1: none */
    int64_t parent_run;  /* the num of the run it is a part of, and the job there; -1: none */
    int64_t parent_ordinal;
    int64_t depth;             /* how many runs are above it */
    struct uuid rerun_of;      /* all zero: none */
    struct str first_events;   /* only to be inserted; ptr NULL: none, or it was read */
    const struct run_key *key; /* only to be inserted; NULL: none, or it was read */
    int64_t key_num;           /* the same for a record in key_records; 0 */
};

/* The highest number of a run so far; 0 when there is none. */
MUST_CHECK enum err runs_last_num(struct db *db, int64_t *ret);
/* Makes `id` later than the run before it, if it is not already, so that its time is a number of
 * its own. */
int64_t runs_new_num(struct uuid *id, int64_t last_num, struct db_numbers numbers);
/* The time in it. */
int64_t runs_num_ms(int64_t num);
/* With its first events, if it has them: then run->version is the number of their last; and with
 * the job that jobs_insert_with_run() was given. */
MUST_CHECK enum err runs_insert(struct db *db, const struct run *run);
/* Writes what a change may alter, and revision + 1, if the row still has run->revision; else
 * ERR_CONCURRENCY. On success run->revision is the new one. */
MUST_CHECK enum err runs_update(struct db *db, struct run *run);

/* An event was added to the timeline of a run or an entity. */
void runs_note_event(struct db *db, int64_t num, int64_t seq);

/* Text is copied to the arena. */
MUST_CHECK enum err runs_find(struct db *db, int64_t tenant, struct uuid id, struct arena *arena,
                              bool *ret_found, struct run *ret);
MUST_CHECK enum err runs_find_num(struct db *db, int64_t num, struct arena *arena, bool *ret_found,
                                  struct run *ret);

/* Only its id and its trace; the rest of *ret is zero. */
MUST_CHECK enum err runs_find_trace(struct db *db, int64_t num, struct arena *arena,
                                    bool *ret_found, struct run *ret);

/* Is it a run of this workflow? */
MUST_CHECK enum err runs_is_of(struct db *db, int64_t num, struct str workflow_id, bool *ret);

/* What people search for. A run fits that has the label, or whose error contains the text. */
struct run_search {
    struct str label_name; /* ptr NULL: none */
    struct str label_value;
    struct str error; /* a part of it, as JSON has it, in small letters; not empty */
};

struct run_filter {
    int64_t tenant;
    unsigned statuses;      /* run_status_bit() of each, or RUN_ANY_STATUS */
    struct str workflow_id; /* ptr NULL: any */
    struct str label_name;  /* ptr NULL: any */
    struct str label_value;
    int64_t created_after;  /* -1: any */
    int64_t created_before; /* -1: any */
    struct uuid id_low;
    struct uuid id_high;             /* zero: any id */
    int64_t parent_run;              /* the num of the run that started it; 0: any or none */
    struct uuid rerun_of;            /* zero: any or none */
    const struct run_search *search; /* NULL: any */
};

bool runs_fit(const struct run_filter *filter, const struct run *run);

/* Newest first, those below `before` (a run's num; INT64_MAX: from the newest). `each` returns
 * false to stop. Looks at no more than PAGE_SCAN_MAX rows, or RUN_SEARCH_SCAN_MAX for a search;
 * *ret_next is where to go on, or -1 at the end. Text is borrowed. */
typedef bool run_each(void *ctx, const struct run *run);
MUST_CHECK enum err runs_list(struct db *db, const struct run_filter *filter, int64_t before,
                              run_each *each, void *ctx, int64_t *ret_next);

#endif
