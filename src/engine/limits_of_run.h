/* The limits that apply to a start, as it finds them: those of its workflow and keys, and the
 * tenant's. */
#ifndef PAWL_ENGINE_LIMITS_OF_RUN_H
#define PAWL_ENGINE_LIMITS_OF_RUN_H

#include "engine/tx.h"
#include "store/scopes.h"

struct limits_of_run {
    struct limit_state states[LIMITS_PER_RUN_MAX + 1]; /* the tenant's is the last */
    struct scope scopes[LIMITS_PER_RUN_MAX];           /* num 0: no run counts under it yet */
    size_t scope_count;
};

/* The scope of a rule for this input: finds by scope->tenant and workflow_id, and fills in the
 * rest. `key` holds its text, and is used again. */
MUST_CHECK enum err limits_find_scope(struct db *db, const struct limit_rule *rule,
                                      const json_t *input, struct buf *key, struct scope *scope);
/* `at_limit` is the request's own wish, or AT_LIMIT_COUNT. Text lives until the transaction ends.
 */
MUST_CHECK enum err limits_load(struct limits_of_run *l, struct tx *tx, const struct tenant *tenant,
                                const struct definition *def, const json_t *input,
                                enum at_limit at_limit, struct problem *p);
struct admission limits_decide(const struct limits_of_run *l);

/* Fills p for a limit that is reached, with `current`, `limit` and when to try again. */
enum err limits_reject(const struct limits_of_run *l, size_t which, struct tx *tx,
                       const struct tenant *tenant, struct problem *p);
/* What a queued run waits for: a scope, or 0 for the tenant. Scopes are stored by then. */
int64_t limits_first_full(const struct limits_of_run *l);

/* Stores the scopes that are new and writes the list that the run keeps. */
MUST_CHECK enum err limits_store(struct limits_of_run *l, struct tx *tx, struct str *ret_list);

#endif
