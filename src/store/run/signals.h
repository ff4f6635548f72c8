/* Signals to runs as rows. A signal that comes before its step waits; each is taken once. */
#ifndef PAWL_STORE_RUN_SIGNALS_H
#define PAWL_STORE_RUN_SIGNALS_H

#include "base/arena.h"
#include "store/db.h"

struct run_signal {
    int64_t run;
    int64_t seq; /* 1, 2, 3 … within the run */
    struct str name;
    struct str payload; /* JSON */
    int64_t at;
};

/* The number of the newest one; 0: there is none. */
MUST_CHECK enum err signals_last(struct db *db, int64_t run, int64_t *ret);
MUST_CHECK enum err signals_insert(struct db *db, const struct run_signal *s);

/* The first of this name that still waits. Text is copied to the arena. */
MUST_CHECK enum err signals_waiting(struct db *db, int64_t run, struct str name,
                                    struct arena *arena, bool *ret_found, struct run_signal *ret);
/* How many wait, of any name; counts up to `limit`. */
MUST_CHECK enum err signals_count_waiting(struct db *db, int64_t run, int64_t limit, int64_t *ret);
MUST_CHECK enum err signals_take(struct db *db, int64_t run, int64_t seq, int64_t ordinal);

/* Those that the job has taken, by name. Text is borrowed until `each` returns; it returns false
 * when it has seen enough. */
typedef bool signal_each(void *ctx, const struct run_signal *s);
MUST_CHECK enum err signals_taken(struct db *db, int64_t run, int64_t ordinal, signal_each *each,
                                  void *ctx);
/* What the jobs from `first` on and below `below` have taken waits again. */
MUST_CHECK enum err signals_give_back(struct db *db, int64_t run, int64_t first, int64_t below);

#endif
