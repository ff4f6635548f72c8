/* One entity inside a transaction: its row, inbox, job, timers, timeline and generation change
 * together or not at all. Every use case that changes an entity loads it here, changes it, and
 * calls entity_txn_settle(), which does what follows: it reopens an entity that was finished and
 * has something to do, makes the next call of the handler, arms the timer, rolls the history over,
 * and writes the row once.
 *
 * What holds between two operations. A load for a change checks it, because a file may be damaged
 * (ERR_DAMAGED); entity_txn_settle() asserts it, because only a bug can break it.
 *
 *   any        consumed_seq <= last_seq; the generation is at least 1
 *   idle       open_job and given_seq are -1, and nothing waits
 *   called     open_job is its call. given_seq is -1 until a worker has claimed it; from then on it
 *              lies between consumed_seq and last_seq, and stays so for every attempt
 *   finished   finished_at is set, and no call is open */
#ifndef PAWL_CORE_ENTITY_ENTITY_TXN_H
#define PAWL_CORE_ENTITY_ENTITY_TXN_H

#include "core/txn/tx.h"
#include "domain/timeline.h"
#include "store/entity/entities.h"
#include "store/run/jobs.h"

/* Kinds of calls, kept as a job's `item`. */
enum { CALL_SIGNALS = 0, CALL_MIGRATE = 1 };

/* Timers of an entity that belong to no call, as ordinals in `timers`. */
enum {
    TIMER_ENTITY = -2,       /* one of its own is due */
    TIMER_ENTITY_START = -3, /* runs are to be started for it */
};

struct entity_txn {
    struct read_tx *read_tx; /* what it was loaded through */
    struct tx *tx;           /* NULL: it was loaded to be shown and must not change */
    struct tenant *tenant;
    struct entity_type type;
    struct entity_version version; /* the one that it is pinned to */
    struct entity entity;
    struct entity read; /* as the row was */
    bool is_new;
};

/* The caller's type; ERR_ENTITY_TYPE_NOT_FOUND. */
MUST_CHECK enum err entity_type_load(struct op *op, struct read_tx *tx, struct str id,
                                     struct tenant **ret_tenant, struct entity_type *ret);
/* The caller's entity; *ret_found false leaves tenant and type loaded, and the newest version. */
MUST_CHECK enum err entity_txn_find(struct entity_txn *m, struct op *op, struct tx *tx,
                                    struct str type, struct str id, bool *ret_found);
/* The same; ERR_ENTITY_NOT_FOUND when there is none. */
MUST_CHECK enum err entity_txn_need(struct entity_txn *m, struct op *op, struct tx *tx,
                                    struct str type, struct str id);
/* By its number; *ret_found false when it is gone. */
MUST_CHECK enum err entity_txn_load(struct entity_txn *m, struct tx *tx, int64_t num,
                                    struct problem *p, bool *ret_found);
/* The same two for an entity that is only shown. */
MUST_CHECK enum err entity_txn_read(struct entity_txn *m, struct op *op, struct read_tx *tx,
                                    struct str type, struct str id);
MUST_CHECK enum err entity_txn_read_num(struct entity_txn *m, struct read_tx *tx, int64_t num,
                                        struct problem *p, bool *ret_found);
/* A new one, after entity_txn_find() has found none. Its row is written by the settling. */
MUST_CHECK enum err entity_txn_create(struct entity_txn *m, struct str id, struct str by);

/* One line of its story. `data` is a JSON object, or ptr NULL. */
MUST_CHECK enum err entity_txn_add_event(struct entity_txn *m, enum event_type type,
                                         struct str data);
/* For types that are published under another name. */
MUST_CHECK enum err entity_txn_add_named_event(struct entity_txn *m, enum event_type type,
                                               struct str data, struct str published_as);
/* The call under way is over. */
void entity_txn_call_ended(struct entity_txn *m);
/* Goes over to another generation, pinned to m->version. */
MUST_CHECK enum err entity_txn_begin_generation(struct entity_txn *m, const char *reason);
/* Its timers changed: looks for the next one that is due. */
MUST_CHECK enum err entity_txn_seek_timer(struct entity_txn *m);
/* The timer that was armed for this time has fired, and is removed. */
MUST_CHECK enum err entity_txn_timer_due(struct entity_txn *m, int64_t due_at);
/* Does what follows, and writes the row. */
MUST_CHECK enum err entity_txn_settle(struct entity_txn *m);

/* What whoever waits for something of the entity is known by. */
struct uuid entity_wait_key(struct str tenant, struct str type, struct str id);
/* Once the commit is on disk, wakes those who wait for updates above `after` up to `through`; with
 * 0 and 0 all of them. */
MUST_CHECK enum err entity_txn_wake(struct entity_txn *m, int64_t after, int64_t through);

/* A version of the entity's type, which must exist. */
MUST_CHECK enum err entity_version_load(struct entity_txn *m, int64_t version,
                                        struct entity_version *ret);

/* Its timers as an array, all of them or those that the call under way was given. */
MUST_CHECK enum err entity_put_timers(struct json_out *o, const char *name, struct db *db,
                                      int64_t entity, bool only_given);
/* "entity":{"type":…,"id":…} */
void entity_put_name(struct json_out *o, const struct entity_txn *m);

#endif
