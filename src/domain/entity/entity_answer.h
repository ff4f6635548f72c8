/* What the handler of an entity answers, read and checked. Pure: what it means for the entity's
 * rows is the engine's business.
 *
 *   {state?, set_timers?: [{name, in_ms | at, payload?}], cancel_timers?: ["name"],
 *    emit?: [{event, payload?}], start?: [{workflow_id, input?, labels?, idempotency_key?}],
 *    results?: [{seq, result?} | {seq, error: {code, message}}], finished?} */
#ifndef PAWL_DOMAIN_ENTITY_ENTITY_ANSWER_H
#define PAWL_DOMAIN_ENTITY_ENTITY_ANSWER_H

#include "base/arena.h"
#include "base/fields.h"
#include "base/json.h"

struct answer_timer {
    struct str name;
    int64_t due_at;
    const struct json *payload; /* NULL: none */
};

struct answer_emit {
    struct str event;
    const struct json *payload; /* NULL: none */
};

struct answer_start {
    struct str workflow_id;
    const struct json *input;   /* NULL: null */
    const struct json *labels;  /* NULL: none */
    struct str idempotency_key; /* ptr NULL: one is made from the call and the place in the list */
};

struct answer_result {
    int64_t seq;
    bool rejected;
    const struct json *outcome; /* the result, or the error; NULL: null */
};

/* Borrows from the JSON that it was read from; the lists are in the arena. */
struct entity_answer {
    const struct json *state; /* NULL: as it was */
    struct answer_timer *timers;
    size_t timer_count;
    struct str *cancelled;
    size_t cancelled_count;
    struct answer_emit *emits;
    size_t emit_count;
    struct answer_start *starts;
    size_t start_count;
    struct answer_result *results;
    size_t result_count;
    bool finished;
};

/* ERR_ANSWER_INVALID with the place in p; ERR_NO_MEMORY. `now_ms` is what in_ms counts from. */
MUST_CHECK enum err entity_answer_parse(const struct json *json, int64_t now_ms,
                                        struct arena *arena, struct problem *p,
                                        struct entity_answer *ret);

#endif
