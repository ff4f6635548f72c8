/* The types of steps that a definition may have. */
#ifndef PAWL_DOMAIN_STEP_TYPE_H
#define PAWL_DOMAIN_STEP_TYPE_H

#include "base/str.h"

/* clang-format off */
#define STEP_TYPES(X)                                                                              \
    /* symbol         name           runs in this version */                                       \
    X(STEP_TASK,        "task",        true)                                                       \
    X(STEP_SLEEP,       "sleep",       true)                                                       \
    X(STEP_HTTP,        "http",        true)                                                       \
    X(STEP_APPROVAL,    "approval",    true)                                                       \
    X(STEP_WAIT_SIGNAL, "wait_signal", true)                                                       \
    X(STEP_TRANSFORM,   "transform",   true)                                                       \
    X(STEP_EMIT,        "emit",        true)                                                       \
    X(STEP_WORKFLOW,    "workflow",    true)                                                       \
    X(STEP_LLM,         "llm",         false)
/* clang-format on */

enum step_type {
#define X(symbol, name, runs) symbol,
    STEP_TYPES(X)
#undef X
        STEP_TYPE_COUNT
};

const char *step_type_name(enum step_type type);
MUST_CHECK bool step_type_parse(struct str name, enum step_type *ret);
/* False: reserved for a later version. */
bool step_type_runs(enum step_type type);

/* Queues of this prefix are served by pawl itself. */
#define OWN_QUEUES "pawl:"

#endif
