/* Signals to runs as rows. One that comes before its step waits; each is taken once. */
#ifndef PAWL_STORE_SIGNALS_H
#define PAWL_STORE_SIGNALS_H

#include "base/arena.h"
#include "store/db.h"

struct run_signal {
    int64_t run;
    int64_t seq; /* 1, 2, 3 … within the run */
    struct str name;
    struct str payload;   /* JSON */
    struct str dedup_key; /* ptr NULL: none */
    int64_t at;
};

/* Gives it its number. */
MUST_CHECK enum err signals_insert(struct db *db, struct run_signal *s);
/* The one that came with this key. Text is copied to the arena. */
MUST_CHECK enum err signals_find_key(struct db *db, int64_t run, struct str dedup_key,
                                     struct arena *arena, bool *ret_found, struct run_signal *ret);
/* The first of this name that still waits. */
MUST_CHECK enum err signals_waiting(struct db *db, int64_t run, struct str name,
                                    struct arena *arena, bool *ret_found, struct run_signal *ret);
MUST_CHECK enum err signals_take(struct db *db, int64_t run, int64_t seq, int64_t ordinal);

#endif
