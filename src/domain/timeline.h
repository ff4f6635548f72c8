/* The events of timelines: one row for each type. The timelines of runs and entities are written,
 * published and documented by these names, and a name never changes: clients match on them.
 *
 * Publishing adds members to the data (core/txn/event_json.h). So the data of a run's events must
 * not have members named run_id, seq or, without EVENT_SAYS_WORKFLOW, workflow_id; that of an
 * entity's events must not have entity_type, entity_id or seq.
 *
 * A new type is one row here, one in the table of docs/api.md and one in the enum of
 * docs/openapi.yaml; a test compares the three. */
#ifndef PAWL_DOMAIN_TIMELINE_H
#define PAWL_DOMAIN_TIMELINE_H

#include "base/str.h"
#include "domain/run.h"

/* What readers of the feed need to know of an event without parsing its data. */
enum {
    EVENT_OF_RUN = 1,         /* appears in timelines of runs */
    EVENT_OF_ENTITY = 2,      /* appears in timelines of entities */
    EVENT_NAMES_JOB = 4,      /* data has job_id */
    EVENT_OFFERS_JOB = 8,     /* that job may lie in its queue, ready to be claimed */
    EVENT_NAMED_BY_JOB = 16,  /* published once for a job, under the id approval:<job_id> */
    EVENT_NAMED_BY_USER = 32, /* published under a type that its workflow or its handler chose */
    EVENT_HAS_NAME = EVENT_NAMED_BY_JOB | EVENT_NAMED_BY_USER, /* the row has published_as */
    EVENT_SAYS_WORKFLOW = 64, /* data has workflow_id, the run's own */
};

/* A table is read by its columns. */
/* clang-format off */
#define TIMELINE_EVENTS(X)                                                                         \
    /* symbol                   name                    flags */                                   \
    X(EVENT_RUN_CREATED,        "run.created",          EVENT_OF_RUN | EVENT_SAYS_WORKFLOW)        \
    X(EVENT_RUN_SCHEDULED,      "run.scheduled",        EVENT_OF_RUN)                              \
    X(EVENT_RUN_QUEUED,         "run.queued",           EVENT_OF_RUN)                              \
    X(EVENT_RUN_ADMITTED,       "run.admitted",         EVENT_OF_RUN)                              \
    X(EVENT_RUN_PAUSED,         "run.paused",           EVENT_OF_RUN)                              \
    X(EVENT_RUN_RESUMED,        "run.resumed",          EVENT_OF_RUN)                              \
    X(EVENT_RUN_RETRIED,        "run.retried",          EVENT_OF_RUN)                              \
    X(EVENT_RUN_PROGRESSED,     "run.progressed",       EVENT_OF_RUN)                              \
    X(EVENT_RUN_SUCCEEDED,      "run.succeeded",        EVENT_OF_RUN)                              \
    X(EVENT_RUN_FAILED,         "run.failed",           EVENT_OF_RUN)                              \
    X(EVENT_RUN_TIMED_OUT,      "run.timed_out",        EVENT_OF_RUN)                              \
    X(EVENT_RUN_DENIED,         "run.denied",           EVENT_OF_RUN)                              \
    X(EVENT_RUN_CANCELLED,      "run.cancelled",        EVENT_OF_RUN)                              \
    X(EVENT_STEP_SKIPPED,       "step.skipped",         EVENT_OF_RUN)                              \
    X(EVENT_SIGNAL_RECEIVED,    "signal.received",      EVENT_OF_RUN)                              \
    X(EVENT_APPROVAL_REQUESTED, "approval.requested",   EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_APPROVAL_REMINDED,  "approval.reminded",    EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_APPROVAL_ESCALATED, "approval.escalated",   EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_APPROVAL_VOTED,     "approval.voted",       EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_APPROVAL_DECIDED,   "approval.decided",     EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_CREATED,        "job.created",          EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB)                          \
    X(EVENT_JOB_SCHEDULED,      "job.scheduled",        EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_DISPATCHED,     "job.dispatched",       EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_APPROVED,       "job.approved",         EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB | EVENT_NAMED_BY_JOB)     \
    X(EVENT_JOB_CLAIMED,        "job.claimed",          EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_RELEASED,       "job.released",         EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB)                          \
    X(EVENT_JOB_HELD,           "job.held",             EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_CHECKPOINTED,   "job.checkpointed",     EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_SUSPENDED,      "job.suspended",        EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_RESUMED,        "job.resumed",          EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB)                          \
    X(EVENT_JOB_LEASE_EXPIRED,  "job.lease_expired",    EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB)                          \
    X(EVENT_JOB_STALE_RESULT,   "job.stale_result",     EVENT_OF_RUN | EVENT_OF_ENTITY |           \
                                                        EVENT_NAMES_JOB)                           \
    X(EVENT_JOB_RETRY_SCHEDULED, "job.retry_scheduled", EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_RETRIED,        "job.retried",          EVENT_OF_RUN | EVENT_NAMES_JOB |           \
                                                        EVENT_OFFERS_JOB)                          \
    X(EVENT_JOB_SUCCEEDED,      "job.succeeded",        EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_FAILED,         "job.failed",           EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_TIMED_OUT,      "job.timed_out",        EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_DENIED,         "job.denied",           EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_JOB_CANCELLED,      "job.cancelled",        EVENT_OF_RUN | EVENT_NAMES_JOB)            \
    X(EVENT_EMITTED,            "event.emitted",        EVENT_OF_RUN | EVENT_OF_ENTITY |           \
                                                        EVENT_NAMED_BY_USER)                       \
    X(EVENT_ENTITY_CREATED,     "entity.created",       EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_SIGNALED,    "entity.signaled",      EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_TIMER_DUE,   "entity.timer_due",     EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_CALLED,      "entity.called",        EVENT_OF_ENTITY | EVENT_NAMES_JOB)         \
    X(EVENT_ENTITY_HANDLED,     "entity.handled",       EVENT_OF_ENTITY | EVENT_NAMES_JOB)         \
    X(EVENT_ENTITY_CALL_RELEASED, "entity.call_released", EVENT_OF_ENTITY | EVENT_NAMES_JOB)       \
    X(EVENT_ENTITY_CALL_FAILED, "entity.call_failed",   EVENT_OF_ENTITY | EVENT_NAMES_JOB)         \
    X(EVENT_ENTITY_BLOCKED,     "entity.blocked",       EVENT_OF_ENTITY | EVENT_NAMES_JOB)         \
    X(EVENT_ENTITY_UNBLOCKED,   "entity.unblocked",     EVENT_OF_ENTITY | EVENT_NAMES_JOB)         \
    X(EVENT_ENTITY_MIGRATION_REQUESTED, "entity.migration_requested", EVENT_OF_ENTITY)             \
    X(EVENT_ENTITY_MIGRATED,    "entity.migrated",      EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_ROLLED_OVER, "entity.rolled_over",   EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_REOPENED,    "entity.reopened",      EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_FINISHED,    "entity.finished",      EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_DELETED,     "entity.deleted",       EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_RUN_STARTED, "entity.run_started",   EVENT_OF_ENTITY)                           \
    X(EVENT_ENTITY_RUN_REFUSED, "entity.run_refused",   EVENT_OF_ENTITY)
/* clang-format on */

enum event_type {
#define X(symbol, name, flags) symbol,
    TIMELINE_EVENTS(X)
#undef X
        EVENT_TYPE_COUNT
};

struct str event_type_name(enum event_type type);
/* What the row says, as EVENT_… bits. */
unsigned event_type_flags(enum event_type type);
/* EVENT_TYPE_COUNT when no type has this name: a row of a later version. */
enum event_type event_type_of(struct str name);

/* The event that a run ended with this status. */
enum event_type event_of_run_end(enum run_status status);

#endif
