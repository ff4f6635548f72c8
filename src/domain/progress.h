/* How far a run is: one small record per step, kept as text in the run's row, so that moving a run
 * on needs that row and the one job that changed, however many jobs it has. Pure.
 *
 *             BEGIN            last item over
 *   waiting ────────▶ active ─────────────────▶ succeeded ── undo: none → open → done | failed
 *      │                 │    an item failed or took too long
 *      │ skip            ├───────────────────▶ failed, timed_out (handled, where on_error goes on)
 *      ▼                 │    the run stops
 *   skipped              └───────────────────▶ cancelled
 *
 * waiting    no job yet.
 * active     its jobs have the ordinals first … first + items - 1; `begun` of them exist.
 * the others are settled: `seq` tells in which order they came to be.
 * A step without for_each has one item. */
#ifndef PAWL_DOMAIN_PROGRESS_H
#define PAWL_DOMAIN_PROGRESS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* A table is read by its columns. */
/* clang-format off */
#define STEP_STATUSES(X)                                                                           \
    /* symbol            letter  settled */                                                        \
    X(STEP_IS_WAITING,   'w',    false)                                                            \
    X(STEP_IS_ACTIVE,    'a',    false)                                                            \
    X(STEP_IS_SUCCEEDED, 's',    true)                                                             \
    X(STEP_IS_FAILED,    'f',    true)                                                             \
    X(STEP_IS_SKIPPED,   'k',    true)                                                             \
    X(STEP_IS_CANCELLED, 'c',    true)                                                             \
    X(STEP_IS_TIMED_OUT, 't',    true)                                                             \
    X(STEP_IS_DENIED,    'd',    true)
/* clang-format on */

enum step_status {
#define X(symbol, letter, settled) symbol,
    STEP_STATUSES(X)
#undef X
        STEP_STATUS_COUNT
};

bool step_is_settled(enum step_status status);

enum undo_status { UNDO_NONE, UNDO_OPEN, UNDO_DONE, UNDO_FAILED, UNDO_STATUS_COUNT };

struct step_state {
    enum step_status status;
    bool cut;      /* skipped because it lies behind an error that went another way */
    bool is_map;   /* has for_each */
    int64_t first; /* ordinal of its first job; 0: none */
    int64_t items;
    int64_t begun;
    int64_t over;
    int64_t failed; /* items that are over and did not succeed */
    int64_t asked;  /* open items that wait for a person, or are suspended */
    int64_t seq;    /* 1, 2, 3 … in the order of settling; 0: not yet */
    enum undo_status undo;
    int64_t undo_job; /* its ordinal; 0: none */
};

/* Why a run stops before its end. */
enum run_stop { STOP_NO, STOP_FAILED, STOP_TIMED_OUT, RUN_STOP_COUNT };

struct progress {
    int64_t jobs;    /* ordinals given out */
    int64_t settled; /* steps that are */
    int64_t order;   /* the last `seq` given out */
    enum run_stop stop;
    int64_t cause; /* the step that failed, with STOP_FAILED */
    struct step_state *steps;
    size_t count;
};

/* All steps waiting. False when the arena is full. */
MUST_CHECK bool progress_init(struct progress *p, size_t count, struct arena *arena);
/* ERR_DAMAGED when the text is not what progress_put() wrote for so many steps. */
MUST_CHECK enum err progress_parse(struct str text, size_t count, struct arena *arena,
                                   struct progress *ret);
void progress_put(struct buf *out, const struct progress *p);
/* Could advancing have led here? progress_parse() refuses what could not. */
bool progress_is_sound(const struct progress *p);

#endif
