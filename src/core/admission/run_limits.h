/* The limits that apply to a run that is to begin, as it finds them: those of its workflow and
 * keys, and the tenant's. Every way a run can begin asks here: start, delayed start, dispatch from
 * the queue, retry, rerun. A run counts under the rules of its own version; how many may be active
 * under a rule is what the newest version says (docs/adr/008). Children need no slot
 * (docs/adr/011). */
#ifndef PAWL_CORE_ADMISSION_RUN_LIMITS_H
#define PAWL_CORE_ADMISSION_RUN_LIMITS_H

#include "core/txn/tx.h"
#include "store/run/limit_keys.h"
#include "store/run/runs.h"

struct limits_of_run {
    struct limit_state states[LIMITS_PER_RUN_MAX + 1]; /* the tenant's is the last */
    struct limit_key_row scopes[LIMITS_PER_RUN_MAX];   /* num 0: no run counts under it yet */
    size_t scope_count;
};

/* The scope of a rule for this input: finds by scope->tenant and workflow_id, and fills in the
 * rest. `key` holds its text, and is used again. */
MUST_CHECK enum err limits_find_scope(struct db *db, const struct limit_rule *rule,
                                      const struct json *input, struct buf *key,
                                      struct limit_key_row *scope);
/* The limit in force for a scope: that of the newest version of its workflow; -1 when that version
 * has no such limit any more. */
MUST_CHECK enum err limit_in_force(struct read_tx *tx, const struct limit_key_row *scope,
                                   struct problem *p, int64_t *ret);
/* `def` is the version that the run is pinned to. `at_limit` is the request's own wish, or
 * AT_LIMIT_COUNT. Text lives until the transaction ends. */
MUST_CHECK enum err limits_load(struct limits_of_run *l, struct tx *tx, const struct tenant *tenant,
                                const struct definition *def, const struct json *input,
                                enum at_limit at_limit, struct problem *p);
/* The same for a stored run, whose input is text: one that was delayed, or ran before. */
MUST_CHECK enum err limits_load_again(struct limits_of_run *l, struct tx *tx,
                                      const struct tenant *tenant, const struct definition *def,
                                      const struct run *run, enum at_limit at_limit,
                                      struct problem *p);
struct admission limits_decide(const struct limits_of_run *l);

/* Fills p for a limit that is reached, with `current`, `limit` and when to try again. */
enum err limits_reject(const struct limits_of_run *l, size_t which, struct tx *tx,
                       const struct tenant *tenant, struct problem *p);
/* What a queued run waits for: a scope, or 0 for the tenant. Scopes are stored by then. */
int64_t limits_first_full(const struct limits_of_run *l);

/* Stores the scopes that are new and writes the list that the run keeps. */
MUST_CHECK enum err limits_store(struct limits_of_run *l, struct tx *tx, struct str *ret_list);

#endif
