/* What entities are held to, and what their handlers may answer: pure decisions about long-lived
 * entities.
 *
 *             a signal, or a timer is due              claimed
 *    idle ──────────────────────────────▶ waiting ─────────────▶ running
 *     ▲  ▲                                 ▲   ▲                  │ │ │
 *     │  │                                 │   └─ lease expired ──┘ │ │
 *     │  │                                 └───── failed: retried ──┘ │
 *     │  └──────────── answered, and nothing else waits ──────────────┤
 *     │                                                               │
 *    finished (the next signal opens it again)  ◀── answered: finished┘
 *
 * There is one job at a time per entity, and only its answer changes the state. What it is called
 * with is settled when it is first handed out, and the same for every attempt. */
#ifndef PAWL_DOMAIN_ENTITY_ENTITY_H
#define PAWL_DOMAIN_ENTITY_ENTITY_H

#include "base/fields.h"
#include "base/json.h"
#include "domain/retry/retry.h"

/* How the entities of a version of a type are handled. Text is borrowed. */
struct entity_rules {
    struct str queue;
    struct str handler;
    int64_t dedup_window_ms;
    int64_t dedup_max_keys;
    int64_t rollover_events;
    int64_t keep_generations; /* before the current one; -1: all */
    int64_t max_inbox;
    int64_t max_batch;    /* signals in one call */
    int64_t max_attempts; /* 0: until one succeeds */
    int64_t backoff_ms;
    int64_t max_backoff_ms;
};

/* Any text of 1 to ENTITY_ID_MAX bytes, UTF-8 without control characters. */
bool entity_id_ok(struct str id);

/* With the defaults of everything but queue and handler. */
struct entity_rules entity_rules_default(void);
/* Reads {queue, handler, version, dedup_window_s, …}. *ret_version is -1 when none is named.
 * Members that make no difference are noted in `defaults` (may be NULL). */
MUST_CHECK enum err entity_rules_parse(const struct json *body, size_t *defaults, struct problem *p,
                                       struct entity_rules *ret, int64_t *ret_version);
/* As members of an object. */
void entity_rules_render(struct json_out *o, const struct entity_rules *rules);
/* Of a call to the handler: without an end when the type names none. */
struct retry_policy entity_retry_policy(const struct entity_rules *rules);

#endif
