/* The types of steps, one row each. A new type is one row here and one function in core/run,
 * step_<token>_begin(), which makes the job of an item. If it has members of its own, they are rows
 * of definition_fields.c. Tests fail until docs/workflows.md, docs/openapi.yaml and
 * tests/unit/engine/test_step_types.c have it too. */
#ifndef PAWL_DOMAIN_WORKFLOW_STEP_TYPE_H
#define PAWL_DOMAIN_WORKFLOW_STEP_TYPE_H

#include "base/str.h"

enum {
    STEP_RUNS = 1,        /* this version can run it; without: definitions are checked only */
    STEP_ONLY_WAITS = 2,  /* while it is open, nobody works on it: its run is waiting */
    STEP_FOR_WORKERS = 4, /* its jobs lie in a queue that workers claim from */
    STEP_QUEUED = 8,      /* its jobs lie in some queue: a paused run holds them back, and a retried
                             run repeats them under their own ids */
    STEP_ASKS = 16,       /* it is an approval: asking is all that it does */
};

/* A table is read by its columns. `waits` names what a job of the type does while it waits, and
 * what it must undo: struct step_waits in core/run/step_ops.h. `plain` waits for nothing but its
 * own retries. */
/* clang-format off */
#define STEP_TYPES(X)                                                                              \
    /* symbol           token        flags                                       waits */          \
    X(STEP_TASK,        task,        STEP_RUNS | STEP_QUEUED | STEP_FOR_WORKERS, plain)            \
    X(STEP_SLEEP,       sleep,       STEP_RUNS | STEP_ONLY_WAITS,                time)             \
    X(STEP_HTTP,        http,        STEP_RUNS | STEP_QUEUED,                    plain)            \
    X(STEP_APPROVAL,    approval,    STEP_RUNS | STEP_ONLY_WAITS | STEP_ASKS,    plain)            \
    X(STEP_WAIT_SIGNAL, wait_signal, STEP_RUNS | STEP_ONLY_WAITS,                signal)           \
    X(STEP_TRANSFORM,   transform,   STEP_RUNS,                                  plain)            \
    X(STEP_EMIT,        emit,        STEP_RUNS,                                  plain)            \
    X(STEP_WORKFLOW,    workflow,    STEP_RUNS,                                  child)            \
    X(STEP_LLM,         llm,         0,                                          plain)
/* clang-format on */

enum step_type {
#define X(symbol, token, flags, waits) symbol,
    STEP_TYPES(X)
#undef X
        STEP_TYPE_COUNT
};

/* The name is the token, as definitions write it. */
const char *step_type_name(enum step_type type);
/* False when no type has this name. */
MUST_CHECK bool step_type_parse(struct str name, enum step_type *ret);
/* Does the type's row have this flag? */
bool step_type_is(enum step_type type, unsigned flag);

/* Queues of this prefix are served by pawl itself. */
#define OWN_QUEUES "pawl:"

#endif
