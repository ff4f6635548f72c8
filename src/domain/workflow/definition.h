/* A workflow definition: what a client wrote, checked in every part and made ready to run.
 * Parsing collects all faults, each with a JSON Pointer to its place, so that a file is mended in
 * one go. A parsed definition is immutable and may be shared between threads. */
#ifndef PAWL_DOMAIN_WORKFLOW_DEFINITION_H
#define PAWL_DOMAIN_WORKFLOW_DEFINITION_H

#include "base/arena.h"
#include "base/json.h"
#include "domain/admission/admission.h"
#include "domain/approval.h"
#include "domain/workflow/step_type.h"

/* What a failed step means for its run. */
enum on_error { ON_ERROR_FAIL, ON_ERROR_CONTINUE, ON_ERROR_STEP };

/* How often and when a failed attempt is made again. */
struct retry_policy {
    int64_t max_attempts; /* 0: not said */
    int64_t backoff_ms;
    int64_t max_backoff_ms;
    double multiplier;
    enum retry_jitter { JITTER_NONE, JITTER_FULL, JITTER_EQUAL, JITTER_DECORRELATED } jitter;
    const struct json *non_retryable; /* array of error codes, or NULL */
};

struct step_def {
    struct str name;
    enum step_type type;
    /* Indexes into the definition's steps. Written order is turned into needs when no step has any.
     */
    const size_t *needs;
    size_t need_count;
    struct str queue;   /* task: "default" when absent */
    struct str handler; /* task */
    /* The member `input` as written, or NULL. Belongs to the definition's json. */
    const struct json *input;
    int64_t duration_ms; /* sleep: -1 when `until` is given */
    int64_t until_ms;    /* sleep: -1 when `duration_ms` is given, or when it is a template */
    struct str until;    /* sleep: the template; empty: none */

    struct str when;             /* an expression; empty: always */
    const struct json *for_each; /* a text (an expression) or an array; NULL: one item */
    int64_t max_parallel;        /* open items at a time */
    struct retry_policy retry;
    int64_t timeout_ms; /* of one attempt; -1: none */
    enum on_error on_error;
    size_t error_step;   /* with ON_ERROR_STEP */
    bool handles_errors; /* some step's on_error names it */
    bool has_undo;       /* compensate */
    struct str undo_handler;
    struct str undo_queue;
    const struct json *undo_input; /* NULL: absent */

    bool asks; /* an approval, or a task that waits for one */
    struct approval_ask ask;

    const struct json *request; /* http */
    const struct json *signals; /* wait_signal: a text or an array of texts */
    bool waits_for_all;         /* wait_signal: one of each, not the first of any */
    const struct json *output;  /* transform */
    struct str event;           /* emit */
    const struct json *payload; /* emit; NULL: absent */
    struct str workflow_id;     /* workflow */
    int64_t version;            /* workflow; -1: the newest */
};

/* How many runs of the workflow may be active at once, all together or per key. */
struct limit_rule {
    struct str path; /* of the key in the input; empty: for the whole workflow */
    int64_t limit;
    enum at_limit at_limit; /* AT_LIMIT_COUNT: as the tenant says */
};

struct definition {
    struct json *json; /* the definition as written */
    struct str id;
    const struct step_def *steps;
    size_t step_count;
    const struct json *input_schema; /* NULL when absent */
    int64_t timeout_ms;              /* of a whole run; -1: none */
    /* How long, and how many, keys of signals to a run are known. */
    int64_t signal_window_ms;
    int64_t signal_max_keys;
    const struct limit_rule *limits;
    size_t limit_count; /* at most LIMITS_PER_RUN_MAX */
    /* Empty, or a sentence for people with the path of the first part that this version can check
     * but not run. */
    struct str unsupported;
    struct arena arena;
};

/* Checks `source` as the definition of workflow `id` (its own "id" member must agree or be absent).
 * Faults go to p->faults as [{path, message}] with ERR_DEFINITION_INVALID. Keeps a copy
 * of source. The caller owns *ret (definition_free). */
MUST_CHECK enum err definition_parse(const struct json *source, struct str id, struct problem *p,
                                     struct definition **ret);
void definition_free(struct definition *def);

/* The step's index, or step_count when there is none. */
size_t definition_find_step(const struct definition *def, struct str name);

#endif
