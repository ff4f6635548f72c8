/* Limits other than the tenant's own: one scope per workflow, or per key that its runs name, with
 * counters; and which runs hold the slots of a scope or a tenant. A scope exists while a run counts
 * against it. */
#ifndef PAWL_STORE_RUN_LIMIT_KEYS_H
#define PAWL_STORE_RUN_LIMIT_KEYS_H

#include "base/arena.h"
#include "base/limits.h"
#include "store/db.h"

struct limit_key_row {
    int64_t num; /* 0: not stored */
    int64_t tenant;
    struct str workflow_id;
    struct str path; /* of the key in the input; empty: the whole workflow */
    struct str key;
    int64_t active_runs; /* hold a slot */
    int64_t queued_runs;
};

/* --- the scopes of one run, as its row keeps them: "3,17" --- */

struct limit_key_list {
    int64_t nums[LIMITS_PER_RUN_MAX]; /* rising */
    size_t count;
};

enum { LIMIT_KEY_LIST_TEXT_MAX = LIMITS_PER_RUN_MAX * 21 };

void limit_key_list_add(struct limit_key_list *list, int64_t num);
/* Empty text is no scope. Only this module writes it. In damaged text, every number that can be
 * read counts once. */
struct limit_key_list limit_key_list_parse(struct str text);
struct str limit_key_list_text(const struct limit_key_list *list,
                               char out[static LIMIT_KEY_LIST_TEXT_MAX]);

/* --- counters --- */

/* Finds by tenant, workflow_id, path and key; what is found is put into the rest of *s. */
MUST_CHECK enum err limit_keys_find(struct db *db, struct limit_key_row *s);
/* Gives it its number, with no runs. */
MUST_CHECK enum err limit_keys_insert(struct db *db, struct limit_key_row *s);
/* By number; it must exist. Text is copied to the arena. */
MUST_CHECK enum err limit_keys_get(struct db *db, int64_t num, struct arena *arena,
                                   struct limit_key_row *ret);
/* Adds to the counters. A scope without runs is removed. */
MUST_CHECK enum err limit_keys_count(struct db *db, int64_t num, int64_t active, int64_t queued);

/* The tenant's, those with the most queued and then the most active runs first, `limit` at most,
 * among the first LIMIT_KEYS_SCAN_MAX. Text is borrowed. */
MUST_CHECK enum err limit_keys_busiest(struct db *db, int64_t tenant, int64_t limit,
                                       void (*each)(void *ctx, const struct limit_key_row *row),
                                       void *ctx);

/* --- holders --- */

MUST_CHECK enum err slots_insert(struct db *db, int64_t scope, int64_t run);
MUST_CHECK enum err slots_delete(struct db *db, int64_t scope, int64_t run);
/* The oldest or newest run with a slot of the scope. */
MUST_CHECK enum err slots_edge(struct db *db, int64_t scope, bool newest, bool *ret_found,
                               int64_t *ret_run);
/* From the oldest on. `each` returns false to stop. */
typedef bool holder_each(void *ctx, int64_t run);
MUST_CHECK enum err slots_list(struct db *db, int64_t scope, holder_each *each, void *ctx);

/* The runs that hold a slot of the tenant, up to the last run that is indexed. Newer ones are found
 * by looking at each run (see late_index.h). */
MUST_CHECK enum err active_runs_insert(struct db *db, int64_t tenant, int64_t run);
MUST_CHECK enum err active_runs_delete(struct db *db, int64_t tenant, int64_t run);
MUST_CHECK enum err active_runs_list(struct db *db, int64_t tenant, bool newest_first,
                                     holder_each *each, void *ctx);

#endif
