/* Every use case of the engine with the input it takes. The api layer fills one of these structs,
 * submits the op, and shows the answer. Inputs borrow from the request, which outlives the op. */
#ifndef PAWL_CORE_USECASE_USE_CASES_H
#define PAWL_CORE_USECASE_USE_CASES_H

#include "core/txn/job_owner.h"
#include "core/txn/op.h"
#include "domain/calendar/schedule.h"
#include "domain/entity/entity.h"
#include "domain/run.h"
#include "domain/workflow/definition.h"
#include "store/run/runs.h"

struct key_use;
struct stream_read;

/* --- runs --- */

struct start_run_input {
    struct str workflow_id;
    const struct json *input; /* NULL: null */
    struct str input_text;    /* the same as it is kept */
    struct str labels;        /* JSON object of texts */
    struct str traceparent;   /* of the caller; ptr NULL: none */
    struct str tracestate;    /* the same */
    int64_t priority;
    enum at_limit at_limit; /* AT_LIMIT_COUNT: the policy of the workflow or the tenant */
    int64_t start_at;       /* not before; -1: at once */
};
extern const struct use_case UC_START_RUN;

struct run_input {
    struct uuid run_id;
    bool as_started; /* only what the answer of its start shows: not where it comes from */
};
extern const struct use_case UC_GET_RUN;
extern const struct use_case UC_WHY_RUN;

enum control_action {
    CONTROL_CANCEL,
    CONTROL_PAUSE,
    CONTROL_RESUME,
    CONTROL_RETRY,
    CONTROL_COUNT,
};

struct control_run_input {
    struct uuid run_id;
    enum control_action action;
    int64_t if_match;  /* the version the caller has read; -1: any */
    struct str reason; /* for the timeline; ptr NULL: none was given */
};
extern const struct use_case UC_CONTROL_RUN;

struct rerun_run_input {
    struct uuid run_id;
    int64_t if_match;
    struct str from_step; /* ptr NULL: from the beginning */
};
extern const struct use_case UC_RERUN_RUN;

struct signal_run_input {
    struct uuid run_id;
    int64_t if_match;
    struct str name;
    struct str payload;    /* JSON */
    struct sha256 request; /* with a dedup_key: see dedup_request() */
    struct str dedup_key;  /* ptr NULL: none */
};
extern const struct use_case UC_SIGNAL_RUN;

/* One action on every run that a filter finds, BULK_RUNS_MAX at a time. */
struct bulk_runs_input {
    struct control_run_input control; /* without a run */
    struct run_filter filter;         /* without a tenant */
    int64_t before;                   /* the cursor; INT64_MAX: from the newest */
    bool dry_run;
};
extern const struct use_case UC_BULK_RUNS;

struct list_runs_input {
    unsigned statuses;      /* see struct run_filter */
    struct str workflow_id; /* ptr NULL: any */
    struct str label_name;  /* ptr NULL: any */
    struct str label_value;
    int64_t created_after;
    int64_t created_before;
    struct str id_prefix; /* ptr NULL: any */
    struct str search;    /* part of an id or an error, a key or a label; ptr NULL: none */
    struct str parent;    /* the id of a run; ptr NULL: any */
    struct str rerun_of;  /* the same */
    int64_t limit;
    struct str cursor; /* ptr NULL: from the newest */
};
extern const struct use_case UC_LIST_RUNS;

struct list_events_input {
    struct uuid run_id;
    int64_t after;
    int64_t limit;
};
extern const struct use_case UC_LIST_EVENTS;

/* Reads the next events for a stream: of a run, of an entity, or of the caller's whole tenant. */
struct read_stream_input {
    struct uuid owner_id; /* of the run or the entity; all zero: find the entity by its name */
    struct str entity_type, entity_id;
    struct stream_read *read; /* filled by the read; see stream_event.h */
};
extern const struct use_case UC_STREAM_RUN;
extern const struct use_case UC_STREAM_ENTITY;
extern const struct use_case UC_STREAM_TENANT;

/* --- jobs --- */

extern const struct use_case UC_CLAIM_JOBS; /* claim_input */

/* One job by its id, for a worker that was offered it on the bus. */
struct claim_job_input {
    struct uuid job_id;
    struct claim_input claim; /* who, and for how long */
};
extern const struct use_case UC_CLAIM_JOB;

extern const struct use_case UC_FINISH_JOB; /* finish_job_input */

/* Many results, and optionally a claim of the next jobs. */
struct finish_jobs_input {
    const struct finish_job_input *items;
    size_t count;
    const struct claim_input *claim; /* NULL: none wanted */
};
extern const struct use_case UC_FINISH_JOBS;

extern const struct use_case UC_HEARTBEAT;      /* heartbeat_input */
extern const struct use_case UC_RELEASE_JOB;    /* heartbeat_input */
extern const struct use_case UC_CHECKPOINT_JOB; /* takes a struct checkpoint_input */
extern const struct use_case UC_SUSPEND_JOB;    /* takes a struct suspend_input */

struct get_job_input {
    struct uuid job_id;
};
extern const struct use_case UC_GET_JOB;

struct list_dead_input {
    int64_t limit;
    struct str cursor; /* ptr NULL: from the newest */
};
extern const struct use_case UC_LIST_DEAD;
extern const struct use_case UC_LIST_WORKERS; /* list_dead_input, by id */
extern const struct use_case UC_RETRY_DEAD;   /* get_job_input: retries its run */
extern const struct use_case UC_DROP_DEAD;    /* get_job_input: removes it from the list */

struct list_queues_input {
    bool without_workers; /* only those with jobs that nobody polls */
    int64_t limit;
    struct str cursor; /* ptr NULL: from the first by name */
};
extern const struct use_case UC_LIST_QUEUES;

/* --- approvals --- */

struct list_approvals_input {
    enum approval_status status; /* APPROVAL_STATUS_COUNT: any */
    bool oldest_first;
    int64_t limit;
    struct str cursor; /* ptr NULL: from the newest */
};
extern const struct use_case UC_LIST_APPROVALS;
extern const struct use_case UC_GET_APPROVAL; /* get_job_input */

struct decide_input {
    struct uuid job_id;
    struct str reason;         /* ptr NULL: none was given */
    struct str expected_hash;  /* of the content that the caller has seen; ptr NULL: not sent */
    const struct json *edited; /* the content as the caller changed it; NULL: unchanged */
    struct str edited_text;    /* the same as it is kept */
};
extern const struct use_case UC_APPROVE;
extern const struct use_case UC_REJECT;

struct approval_stats_input {
    int64_t days;           /* how far back */
    struct str workflow_id; /* ptr NULL: all */
};
extern const struct use_case UC_APPROVAL_STATS;

/* --- figures --- */

/* Of the caller's tenant, or of all of them. */
struct get_stats_input {
    int64_t minutes; /* how many, up to the present one */
    bool buckets;    /* shows what the percentiles of waits are made of */
};
extern const struct use_case UC_GET_STATS;

struct get_admission_input {
    int64_t limit; /* limits of workflows and keys that are shown */
};
extern const struct use_case UC_GET_ADMISSION;

/* --- entities --- */

struct put_entity_type_input {
    struct str type;
    int64_t version; /* -1: the newest, or 1 for a new type */
    struct entity_rules rules;
};
extern const struct use_case UC_PUT_ENTITY_TYPE;

struct entity_type_input {
    struct str type;
};
extern const struct use_case UC_GET_ENTITY_TYPE;
extern const struct use_case UC_LIST_ENTITY_TYPES; /* list_input */
/* How well the deduplication window fits the duplicates that arrive. */
extern const struct use_case UC_ENTITY_STATS; /* entity_type_input */

struct signal_entity_input {
    struct str type;
    struct str id;
    struct str name;
    struct str payload;    /* JSON, as it is kept */
    struct sha256 request; /* over name and the canonical form of payload: see dedup_request() */
    struct str dedup_key;  /* ptr NULL: none; an update has one */
};
extern const struct use_case UC_SIGNAL_ENTITY;
extern const struct use_case UC_UPDATE_ENTITY;

struct entity_input {
    struct str type;
    struct str id;
};
extern const struct use_case UC_GET_ENTITY;
extern const struct use_case UC_DELETE_ENTITY;

/* The result of an update, by its number or by its key. */
struct get_update_input {
    struct str type;
    struct str id;
    int64_t seq; /* 0: by key */
    struct str dedup_key;
    int64_t entity; /* its number, if another entity with the same name must not match; 0: any */
};
extern const struct use_case UC_GET_UPDATE;

struct migrate_entity_input {
    struct str type;
    struct str id;
    int64_t version; /* -1: the newest */
};
extern const struct use_case UC_MIGRATE_ENTITY;

/* An entity's events after the cursor, its waiting signals, or its generations from the newest. */
struct list_of_entity_input {
    struct str type;
    struct str id;
    struct str cursor; /* ptr NULL: from the beginning */
    int64_t limit;
};
extern const struct use_case UC_LIST_ENTITY_EVENTS;
extern const struct use_case UC_LIST_INBOX;
extern const struct use_case UC_LIST_GENERATIONS;

struct list_entities_input {
    struct str type;
    int64_t type_version; /* -1: any */
    struct str cursor;    /* ptr NULL: from the first by id */
    int64_t limit;
};
extern const struct use_case UC_LIST_ENTITIES;

/* --- workflows --- */

struct put_workflow_input {
    struct str workflow_id;
    const struct definition *definition; /* parsed and checked */
    struct str text;                     /* as it is kept */
    struct sha256 digest;                /* over its canonical form */
};
extern const struct use_case UC_PUT_WORKFLOW;

struct workflow_input {
    struct str workflow_id;
    int64_t version; /* -1: the latest */
};
extern const struct use_case UC_GET_WORKFLOW;
extern const struct use_case UC_ARCHIVE_WORKFLOW;

struct list_input {
    struct str parent; /* a workflow's id for its versions */
    struct str cursor; /* ptr NULL: from the beginning */
    int64_t limit;
};
/* Checks a definition without storing it. */
struct validate_workflow_input {
    struct str workflow_id;
    struct str text; /* JSON, as it came */
};
extern const struct use_case UC_VALIDATE_WORKFLOW;
extern const struct use_case UC_LIST_WORKFLOWS;
extern const struct use_case UC_LIST_VERSIONS;

/* --- schedules --- */

struct put_schedule_input {
    struct str id;
    struct str workflow_id;
    struct str cron;
    struct str timezone;
    enum overlap overlap;
    int64_t catch_up_ms;
    struct str input; /* JSON */
    bool paused;
};
extern const struct use_case UC_PUT_SCHEDULE;

struct schedule_input {
    struct str id;
};
extern const struct use_case UC_GET_SCHEDULE;
extern const struct use_case UC_DELETE_SCHEDULE;
extern const struct use_case UC_TRIGGER_SCHEDULE;
extern const struct use_case UC_LIST_SCHEDULES; /* list_input */

/* --- webhooks --- */

struct put_webhook_input {
    struct uuid webhook_id; /* of one that is changed */
    /* With ptr NULL they stay as they are; a new one has url and events. */
    struct str url;
    struct str events; /* see type_list_fits() */
    struct str description;
    enum { WEBHOOK_LEAVE, WEBHOOK_ENABLE, WEBHOOK_DISABLE } enabled;
};
extern const struct use_case UC_CREATE_WEBHOOK;
extern const struct use_case UC_PUT_WEBHOOK;

struct webhook_input {
    struct uuid webhook_id;
};
extern const struct use_case UC_GET_WEBHOOK;
extern const struct use_case UC_DELETE_WEBHOOK;
extern const struct use_case UC_TEST_WEBHOOK;
extern const struct use_case UC_LIST_WEBHOOKS; /* list_input */

struct rotate_webhook_input {
    struct uuid webhook_id;
    int64_t keep_ms; /* for how long the old secret signs too */
};
extern const struct use_case UC_ROTATE_WEBHOOK;

struct list_deliveries_input {
    struct uuid webhook_id;
    struct str cursor; /* ptr NULL: from the newest */
    int64_t limit;
};
extern const struct use_case UC_LIST_DELIVERIES;

struct delivery_input {
    struct uuid webhook_id;
    struct uuid delivery_id;
};
extern const struct use_case UC_REDELIVER;

/* --- tenants, keys, idempotency records --- */

struct put_tenant_input {
    struct str tenant_id;
    const struct json *body;
};
extern const struct use_case UC_PUT_TENANT;

struct tenant_input {
    struct str tenant_id;
};
extern const struct use_case UC_GET_TENANT;
extern const struct use_case UC_LIST_TENANTS;

struct list_settings_input {
    struct str tenant_id;
    struct str cursor; /* ptr NULL: from the newest */
    int64_t limit;
};
extern const struct use_case UC_LIST_SETTINGS;

struct rollback_tenant_input {
    struct str tenant_id;
    int64_t version; /* of the settings to go back to; -1: the one before the current */
};
extern const struct use_case UC_ROLLBACK_TENANT;

struct create_key_input {
    struct str tenant_id; /* "*": for all tenants */
    enum role role;
    struct str label;
};
extern const struct use_case UC_CREATE_KEY;

struct key_input {
    struct uuid key_id;
};
extern const struct use_case UC_REVOKE_KEY;
extern const struct use_case UC_LIST_KEYS;

struct end_session_input {
    bool has_session;
    struct uuid id;
    int64_t expires_at;
};
extern const struct use_case UC_END_SESSION;

/* For the engine: last uses of keys that were not stored yet. */
struct touch_keys_input {
    const struct key_use *uses;
    size_t count;
};
extern const struct use_case UC_TOUCH_KEYS;

struct idem_input {
    struct str key;
};
extern const struct use_case UC_GET_IDEM;
extern const struct use_case UC_RELEASE_IDEM;

/* --- the audit trail: the caller's chain, or with "*" the server's own --- */

struct list_audit_input {
    int64_t after; /* the list begins after this entry, oldest first */
    bool newest_first;
    struct str actor;  /* ptr NULL: any */
    struct str action; /* a pattern; ptr NULL: any */
    int64_t limit;
    struct str cursor; /* ptr NULL: from the beginning */
};
extern const struct use_case UC_LIST_AUDIT;

/* A slice of it as JSON lines. */
struct export_audit_input {
    int64_t chain; /* as *ret_chain of the slice before; -1: the first of the trail */
    int64_t after;
    int64_t *ret_chain;
    int64_t *ret_next; /* where the next slice begins; -1: this was the last one */
    struct str actor;
    struct str action;
};
extern const struct use_case UC_EXPORT_AUDIT;
extern const struct use_case UC_VERIFY_AUDIT; /* no input; with "*" every chain */

/* --- the outbox: of the caller's tenant, or with "*" of all --- */

struct list_outbox_input {
    const char *bus;    /* its kind; NULL: there is none */
    const char *status; /* ok, failing or none */
    const char *detail;
    int64_t depth;
    int64_t lag_ms;
    struct str cursor; /* ptr NULL: from the beginning */
    int64_t limit;
};
extern const struct use_case UC_LIST_OUTBOX;

struct retry_parked_input {
    struct str message_id;
};
extern const struct use_case UC_RETRY_PARKED;

/* --- the whole store --- */

#define DOCTOR_CHECKS(X)                 \
    X(DOCTOR_FILE, "file")               \
    X(DOCTOR_OBJECTS, "objects")         \
    X(DOCTOR_SLOTS, "slots")             \
    X(DOCTOR_QUEUE, "queue")             \
    X(DOCTOR_RUNS, "runs")               \
    X(DOCTOR_JOBS, "jobs")               \
    X(DOCTOR_APPROVALS, "approvals")     \
    X(DOCTOR_ENTITIES, "entities")       \
    X(DOCTOR_WEBHOOKS, "webhooks")       \
    X(DOCTOR_IDEMPOTENCY, "idempotency") \
    X(DOCTOR_INDEXES, "indexes")         \
    X(DOCTOR_AUDIT, "audit")

enum doctor_check {
#define X(symbol, name) symbol,
    DOCTOR_CHECKS(X)
#undef X
        DOCTOR_CHECK_COUNT
};

const char *doctor_check_name(enum doctor_check check);

struct doctor_findings {
    bool ran[DOCTOR_CHECK_COUNT];
    int64_t differences[DOCTOR_CHECK_COUNT];
};

struct doctor_input {
    struct doctor_findings *findings; /* filled by the run */
};
extern const struct use_case UC_DOCTOR;
/* Checks counters against runs, briefly: the server does this regularly. */
extern const struct use_case UC_DOCTOR_QUICK;
/* Rebuilds all data that is derived from the runs. */
extern const struct use_case UC_DOCTOR_REPAIR;

#endif
