/* Runs that wait for a slot. Runs of a tenant that count against the same scopes form one group,
 * since the same limits block them; a group waits for one limit at a time. So the next run to start
 * is found by looking at groups, however many runs they have. (Tables: lines, line_scopes, queue.)
 */
#ifndef PAWL_STORE_RUN_RUN_QUEUE_H
#define PAWL_STORE_RUN_RUN_QUEUE_H

#include "store/run/limit_keys.h"

struct queue_group {
    int64_t num;
    int64_t tenant;
    struct str scopes; /* as in the runs; empty: none */
    int64_t waits_for; /* a scope that is full; 0: the tenant's own limit */
    int64_t urgency;   /* of its first run: minus the priority, smaller is sooner */
    int64_t run;       /* its first */
};

/* Puts a run into its group. `waits_for` is what blocks it now: a new group waits for that, and so
 * does one that waited for a scope and gets a more urgent first run. */
MUST_CHECK enum err queue_insert(struct db *db, int64_t tenant, struct str scopes,
                                 int64_t waits_for, int64_t urgency, int64_t run);
/* Takes a run out of its group. An empty group is removed. */
MUST_CHECK enum err queue_delete(struct db *db, int64_t tenant, struct str scopes, int64_t urgency,
                                 int64_t run);

/* Of the tenant's groups that wait for this limit, the one with the most urgent first run. */
MUST_CHECK enum err queue_groups_first(struct db *db, int64_t tenant, int64_t waits_for,
                                       struct arena *arena, bool *ret_found,
                                       struct queue_group *ret);
MUST_CHECK enum err queue_groups_park(struct db *db, int64_t group, int64_t waits_for);
/* The next scope after (tenant, scope) that a group waits for. */
MUST_CHECK enum err queue_groups_next_limit_key(struct db *db, int64_t tenant, int64_t scope,
                                                bool *ret_found, int64_t *ret_tenant,
                                                int64_t *ret_scope);
/* The next tenant after `after`, by number, that has queued runs. */
MUST_CHECK enum err queue_groups_next_tenant(struct db *db, int64_t after, bool *ret_found,
                                             int64_t *ret_tenant);
/* The group of runs with these scopes. */
MUST_CHECK enum err queue_groups_find(struct db *db, int64_t tenant, struct str scopes,
                                      struct arena *arena, bool *ret_found,
                                      struct queue_group *ret);

/* How many of the tenant's queued runs would be started before this one, of those that count under
 * `scope` (0: all); counts to `max` at most. */
MUST_CHECK enum err queue_ahead(struct db *db, int64_t tenant, int64_t scope, int64_t urgency,
                                int64_t run, int64_t max, int64_t *ret);
/* The tenant's queued run that was made first; 0: none is queued. */
MUST_CHECK enum err queue_oldest(struct db *db, int64_t tenant, int64_t *ret_run);

#endif
