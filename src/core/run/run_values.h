/* What expressions see of a run: input, state, steps, item and run, read when they are asked for.
 */
#ifndef PAWL_CORE_RUN_RUN_VALUES_H
#define PAWL_CORE_RUN_RUN_VALUES_H

#include "core/run/run_txn.h"
#include "domain/expr/expr.h"

struct values {
    struct run_txn *m;
    const struct json *item; /* NULL: none */
    enum err err;            /* why something could not be read */
};

/* ERR_EXPRESSION with p when it cannot be evaluated: the step fails. Other errors are the store's.
 */
MUST_CHECK enum err values_truth(struct run_txn *m, struct str source, struct problem *p,
                                 bool *ret);
/* What is returned lives until the transaction ends. */
MUST_CHECK enum err values_eval(struct run_txn *m, struct str source, struct problem *p,
                                const struct json **ret);
MUST_CHECK enum err values_fill(struct run_txn *m, const struct json *value,
                                const struct json *item, struct problem *p,
                                const struct json **ret);
/* A JSON value as text in the transaction's arena. */
MUST_CHECK enum err values_text(struct tx *tx, const struct json *value, struct str *ret);
/* The output of a step: its job's, or for a map those of its items in order. Empty: none. */
MUST_CHECK enum err values_output(struct run_txn *m, size_t step, struct str *ret);
/* The outputs of a map's items are more than JSON_KEPT_MAX together, so that `output`, which
 * values_output() gave, is none. */
bool values_too_large(const struct run_txn *m, size_t step, struct str output);
/* The error of a step: of the first of its jobs that did not succeed. Empty: none. */
MUST_CHECK enum err values_error(struct run_txn *m, size_t step, struct str *ret);

#endif
