/* One request on its way through the api layer, and what handlers use to read it. */
#ifndef PAWL_API_CALL_H
#define PAWL_API_CALL_H

#include "api/api.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/usecase/use_cases.h"

struct export;
struct metrics_maker;
struct metrics_text;
struct stream;

struct api {
    struct api_config config;
    struct stream *streams;
    size_t stream_count;
    int64_t next_pulse_ms;
    struct metrics_maker *metrics;
    uint64_t key_epoch; /* engine_auth_epoch() when the streams' keys were checked */
};

struct route;

enum { PARAMS_MAX = 3 };

struct call {
    struct api *api;
    struct http_request *req;
    const struct route *route;
    bool aside;                    /* it came to --metrics-listen */
    struct str params[PARAMS_MAX]; /* the path's variable parts, decoded */
    struct str key;                /* the caller's API key; ptr NULL: none was needed */
    uint64_t key_epoch;            /* engine_auth_epoch() when it was checked */
    json_t *body;                  /* NULL when there was none */
    struct definition *definition; /* parsed by the handler, freed with the call */
    struct str fingerprinted;      /* the route, and who asks where that makes another request */
    char *place;                   /* with ROUTE_ASKS: room for where the answer will be */
    struct json_defaults defaults; /* members of the body that make no difference */
    struct stream *stream;         /* NULL: its answer is one piece */
    struct export *export;         /* likewise */
    struct metrics_text *metrics_text; /* that is sent; NULL: none */
    struct call *next_scraper;
    struct op op;
};

/* How a route reads its request: fills op.input (in the request's arena) and, where the route has
 * several, op.use_case. An error has its problem set. A large body is prepared on the body thread:
 * use nothing that the loop shares. */
typedef enum err prepare_fn(struct call *c);
/* A route that needs no engine: answers by itself. */
typedef void direct_fn(struct call *c);

enum route_flags {
    ROUTE_OPEN = 1,      /* no key needed */
    ROUTE_BODY_KEY = 2,  /* the idempotency key may be in the body */
    ROUTE_WAITS = 4,     /* takes ?wait_ms= */
    ROUTE_NO_TENANT = 8, /* about the whole server: no tenant header is needed */
    ROUTE_FILE = 16,     /* the answer is the path of a file to send and remove */
    ROUTE_QUERY = 32,    /* takes query parameters of its own; others take none */
    ROUTE_LONG = 64,     /* takes as long as the store is large */
    ROUTE_STREAM = 128, /* goes on as server-sent events when the client accepts them, or when there
                           is no other form */
    ROUTE_PERSONAL = 256, /* another person with the same key makes another request */
    ROUTE_ASKS = 512,     /* waits by itself for what it asked for, ASK_WAIT_MS_DEFAULT at most; an
                             answer without it says where that will be */
    ROUTE_SHOWS_NOW = 1024,  /* a replay shows the run as it is now */
    ROUTE_SERVER_KEY = 2048, /* needs a key for all tenants */
    ROUTE_ASIDE = 4096,      /* served without a key at --metrics-listen, where nothing else is */
};

struct route {
    const char *method;
    const char *pattern; /* "{}" stands for one variable part */
    unsigned may;        /* what the role must allow; 0: nothing */
    unsigned flags;
    const struct use_case *use_case;
    prepare_fn *prepare;
    direct_fn *direct;
    const char *body_key; /* with ROUTE_BODY_KEY: the member that holds the key */
};

/* Every route, ended by a NULL method. */
extern const struct route ROUTES[];

/* --- for handlers --- */

/* As fields_begin(), for the body or an object in it: members that make no difference are left out
 * of the request's fingerprint. */
void call_fields(struct call *c, struct fields *f, const json_t *object);
/* Zeroed, in the request's arena; NULL with the problem set when memory ran out. */
MUST_CHECK void *call_alloc(struct call *c, size_t size);
enum err call_no_memory(struct call *c);
/* The first variable part as an id; ERR_NOT_FOUND-like `missing` when it is none: such a thing
 * cannot exist. */
MUST_CHECK enum err call_uuid(struct call *c, enum err missing, struct uuid *ret);
/* The first variable part as the name of a workflow or tenant. */
MUST_CHECK enum err call_name(struct call *c, size_t max, struct str *ret);
/* ?limit= and ?cursor=. */
MUST_CHECK enum err call_page(struct call *c, int64_t *ret_limit, struct str *ret_cursor);
MUST_CHECK enum err call_query_int(struct call *c, const char *name, int64_t min, int64_t max,
                                   int64_t *ret);
/* If-Match: "<version>"; -1 when absent. */
MUST_CHECK enum err call_if_match(struct call *c, int64_t *ret);
/* Does If-None-Match name this version? Weak tags count, as RFC 9110 wants it. */
bool call_has_version(struct call *c, int64_t version);
/* The version as an entity tag, in the arena; empty when memory ran out. */
struct str call_etag(struct call *c, int64_t version);
/* A JSON value as text in the arena. */
MUST_CHECK enum err call_json_text(struct call *c, const json_t *value, struct str *ret);

/* What a body says of a signal, to a run or to an entity. */
struct signal_fields {
    struct str name;
    struct str payload;    /* JSON */
    struct str dedup_key;  /* ptr NULL: none */
    struct sha256 request; /* see dedup_request() */
};
MUST_CHECK enum err call_signal(struct call *c, bool needs_key, struct signal_fields *ret);

/* False: the key was revoked since the request came. For requests that wait or go on, before they
 * are given anything. */
bool call_key_holds(struct call *c);
/* What such a request is answered instead. */
enum err call_revoked(struct call *c);

/* In reading.c. Reads the key and the body, up to what the engine is asked, and calls then(): at
 * once, or later if the body is large. Instead of it op.done() may come, when the engine refuses.
 */
typedef void call_read_fn(struct call *c, enum err e);
void call_read(struct call *c, call_read_fn *then);
void call_free_body(struct call *c);

void call_send_json(struct call *c, int status, struct str body);

/* The client wants server-sent events: answers from here on. In streams.c. */
bool call_wants_stream(struct call *c);
void call_stream(struct call *c);
void streams_tick(struct api *api, int64_t mono_ms);
void streams_end(struct api *api);

/* In metrics.c. */
MUST_CHECK struct metrics_maker *metrics_maker_new(struct api *api);
void metrics_maker_free(struct metrics_maker *maker);
void metrics_text_drop(struct metrics_text *text); /* NULL is fine */
void metrics_tick(struct api *api);
int metrics_timeout_ms(const struct api *api);

/* --- handlers, by file --- */

prepare_fn prepare_start_run, prepare_start_run_flat, prepare_get_run, prepare_cancel_run,
    prepare_pause_run, prepare_resume_run, prepare_retry_run, prepare_rerun_run, prepare_signal_run,
    prepare_bulk_runs, prepare_list_runs, prepare_list_events;
prepare_fn prepare_claim, prepare_claim_job, prepare_complete, prepare_fail, prepare_finish_jobs,
    prepare_heartbeat, prepare_list_dead, prepare_get_job;
prepare_fn prepare_list_approvals, prepare_get_approval, prepare_decide, prepare_approval_stats;
prepare_fn prepare_put_entity_type, prepare_entity_type, prepare_signal_entity,
    prepare_update_entity, prepare_get_update, prepare_entity, prepare_migrate_entity,
    prepare_list_of_entity, prepare_list_entities;
prepare_fn prepare_put_schedule, prepare_schedule;
prepare_fn prepare_create_webhook, prepare_put_webhook, prepare_webhook, prepare_rotate_webhook,
    prepare_list_deliveries, prepare_delivery;
prepare_fn prepare_put_workflow, prepare_get_workflow, prepare_archive_workflow,
    prepare_list_workflows, prepare_list_versions, prepare_validate_workflow;
prepare_fn prepare_put_tenant, prepare_get_tenant, prepare_list_tenants, prepare_create_key,
    prepare_list_settings, prepare_rollback_tenant, prepare_list_keys, prepare_revoke_key,
    prepare_idem, prepare_doctor, prepare_nothing;
prepare_fn prepare_list_outbox, prepare_retry_parked;
prepare_fn prepare_list_audit;
direct_fn direct_export_audit;
direct_fn direct_healthz, direct_readyz, direct_metrics, direct_openapi, direct_index;

#endif
