/* The inbox of an entity, as rows: signals and updates that wait, the outcomes of updates, and
 * named timers. */
#ifndef PAWL_STORE_ENTITY_INBOX_H
#define PAWL_STORE_ENTITY_INBOX_H

#include "base/arena.h"
#include "store/db.h"

struct inbox_signal {
    int64_t entity;
    int64_t seq; /* 1, 2, 3 … within the entity */
    struct str name;
    struct str payload; /* JSON */
    bool asks;          /* an update */
    int64_t at;
};

MUST_CHECK enum err inbox_insert(struct db *db, const struct inbox_signal *signal);
/* Those above `after` up to `through`, in order. `each` returns false to stop. Text is borrowed. */
typedef bool inbox_each(void *ctx, const struct inbox_signal *signal);
MUST_CHECK enum err inbox_list(struct db *db, int64_t entity, int64_t after, int64_t through,
                               int64_t limit, inbox_each *each, void *ctx);
/* Removes those up to `through`, which have been applied. */
MUST_CHECK enum err inbox_remove(struct db *db, int64_t entity, int64_t through);

/* --- updates --- */

struct entity_update {
    int64_t entity;
    int64_t seq;
    struct str name;
    struct str outcome; /* JSON: the result or the error; ptr NULL: none yet */
    bool rejected;
    int64_t at;
    int64_t decided_at; /* -1: not yet */
};

MUST_CHECK enum err entity_updates_insert(struct db *db, const struct entity_update *update);
MUST_CHECK enum err entity_updates_find(struct db *db, int64_t entity, int64_t seq,
                                        struct arena *arena, bool *ret_found,
                                        struct entity_update *ret);
/* Fills in outcome, rejected and decided_at, if there was none yet. */
MUST_CHECK enum err entity_updates_decide(struct db *db, const struct entity_update *update,
                                          bool *ret_decided);
/* Those above `after` up to update->seq that have no outcome get this one; *ret_count of them. */
MUST_CHECK enum err entity_updates_decide_rest(struct db *db, const struct entity_update *update,
                                               int64_t after, int64_t *ret_count);
/* Removes those up to `through`, all of them decided. */
MUST_CHECK enum err entity_updates_remove(struct db *db, int64_t entity, int64_t through);

/* --- timers --- */

struct entity_timer {
    int64_t entity;
    struct str name;
    int64_t due_at;
    struct str payload; /* JSON; ptr NULL: none */
    bool given;         /* the current call has it */
};

MUST_CHECK enum err entity_timers_put(struct db *db, const struct entity_timer *timer);
MUST_CHECK enum err entity_timers_remove(struct db *db, int64_t entity, struct str name);
MUST_CHECK enum err entity_timers_remove_all(struct db *db, int64_t entity);
MUST_CHECK enum err entity_timers_remove_given(struct db *db, int64_t entity);
/* Gives those that are due to the current call. */
MUST_CHECK enum err entity_timers_give(struct db *db, int64_t entity, int64_t now_ms);
/* The current call is not made after all: the next one gets them. */
MUST_CHECK enum err entity_timers_take_back(struct db *db, int64_t entity);
/* When the earliest that is not given is due; -1: there is none. */
MUST_CHECK enum err entity_timers_next(struct db *db, int64_t entity, int64_t *ret_due_at);
/* By due time. Text is borrowed. */
typedef void entity_timer_each(void *ctx, const struct entity_timer *timer);
MUST_CHECK enum err entity_timers_list(struct db *db, int64_t entity, bool only_given,
                                       entity_timer_each *each, void *ctx);

#endif
