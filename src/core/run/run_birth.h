/* The answer of a start, and how little of it has to be kept: most of it is in the run for ever,
 * and the rest are the facts of its birth, a line of text. The answer is rendered again from both,
 * byte for byte, whatever has become of the run. docs/adr/034 has the rule. */
#ifndef PAWL_CORE_RUN_RUN_BIRTH_H
#define PAWL_CORE_RUN_RUN_BIRTH_H

#include "core/run/run_txn.h"

/* Appends the answer without its beginning (see answer_begin()). */
void run_birth_render(struct answer *a, const struct run *run, const struct definition *def,
                      const struct step_view *views, bool coalesced);

/* The facts, for a run that was just made and shown with these views. ptr NULL: they do not say all
 * that the answer has, because the run has already come further, or there is no memory; then the
 * answer itself has to be kept. */
struct str run_birth_facts(struct run_txn *m, const struct step_view *views);

/* The record of the key that the run is started with goes into its row if the answer can be made
 * from the facts, and the key never expires. Otherwise run->key_num is reserved for it. A
 * run_txn.before_insert; run->key is what is known of the key. */
MUST_CHECK enum err run_birth_place_key(struct run_txn *m);

/* Appends the answer of the start that made the run, as run_birth_render() did then. ERR_DAMAGED:
 * the run is not there, or the facts are none. */
MUST_CHECK enum err run_birth_show(struct read_tx *tx, int64_t tenant, struct uuid run_id,
                                   struct str facts, struct answer *a, struct problem *p);

#endif
