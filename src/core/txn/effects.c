/* What a transaction means for the world outside the store. */
#include "core/txn/effects.h"

#include "base/limits.h"

#include <assert.h>

_Static_assert(EFFECT_COUNT <= 32, "one bit for each kind in effects.once");

const char *entity_call_end_name(enum entity_call_end end)
{
    static const char *const NAMES[] = {
#define X(symbol, name) name,
        ENTITY_CALL_ENDS(X)
#undef X
    };
    return NAMES[end];
}

void effects_init(struct effects *fx)
{
    *fx = (struct effects){.last = &fx->first, .begun = &fx->first};
    arena_init(&fx->memory, EFFECTS_BYTES_MAX);
}

void effects_release(struct effects *fx)
{
    arena_release(&fx->memory);
}

static void forget_transaction(struct effects *fx)
{
    fx->last_events = fx->unfed = fx->timer = NULL;
    fx->once = 0;
    fx->failed = false;
}

void effects_begin(struct effects *fx)
{
    effects_rollback(fx);
    fx->mark = arena_mark(&fx->memory);
}

void effects_commit(struct effects *fx)
{
    assert(!fx->failed && effects_next_unfed(fx) == NULL);
    fx->begun = fx->last;
    fx->mark = arena_mark(&fx->memory);
    forget_transaction(fx);
}

void effects_rollback(struct effects *fx)
{
    fx->last = fx->begun;
    *fx->last = NULL;
    if (fx->first == NULL)
        effects_forget(fx);
    else
        arena_back_to(&fx->memory, fx->mark);
    forget_transaction(fx);
}

struct effect *effects_add(struct effects *fx, enum effect_kind kind)
{
    if (fx->parcel == NULL)
        fx->parcel = arena_alloc(&fx->memory, sizeof(*fx->parcel));
    struct effect *effect = fx->parcel != NULL ? arena_alloc(&fx->memory, sizeof(*effect)) : NULL;
    if (effect == NULL) {
        fx->failed = true;
        return NULL;
    }
    effect->kind = kind;
    *fx->last = effect;
    fx->last = &effect->next;
    return effect;
}

void effects_once(struct effects *fx, enum effect_kind kind)
{
    if ((fx->once & 1u << kind) == 0 && effects_add(fx, kind) != NULL)
        fx->once |= 1u << kind;
}

void effects_timer(struct effects *fx, int64_t at_ms)
{
    if (fx->timer == NULL) {
        fx->timer = effects_add(fx, EFFECT_TIMER_ARMED);
        if (fx->timer != NULL)
            fx->timer->timer_at = at_ms;
        return;
    }
    fx->timer->timer_at = MIN(fx->timer->timer_at, at_ms);
}

void effects_event(struct effects *fx, int64_t tenant, int64_t owner, int64_t seq)
{
    struct effect *last = fx->last_events;
    if (last != NULL && last->events.owner == owner && last->events.last_seq + 1 == seq) {
        last->events.last_seq = seq;
        return;
    }
    struct effect *effect = effects_add(fx, EFFECT_EVENTS_APPENDED);
    if (effect == NULL)
        return;
    effect->tenant = tenant;
    effect->events.owner = owner;
    effect->events.first_seq = effect->events.last_seq = seq;
    fx->last_events = effect;
    if (fx->unfed == NULL)
        fx->unfed = effect;
}

struct effect *effects_next_unfed(struct effects *fx)
{
    while (fx->unfed != NULL &&
           (fx->unfed->kind != EFFECT_EVENTS_APPENDED || fx->unfed->events.feed != 0))
        fx->unfed = fx->unfed->next;
    if (fx->unfed == NULL)
        fx->last_events = NULL; /* what is in the feed does not grow any more */
    return fx->unfed;
}

struct effect_parcel *effects_take(struct effects *fx)
{
    assert(*fx->begun == NULL); /* no transaction is under way */
    if (fx->first == NULL)
        return NULL;
    struct effect_parcel *parcel = fx->parcel;
    *parcel = (struct effect_parcel){.first = fx->first, .memory = fx->memory};
    effects_init(fx);
    return parcel;
}

void effects_forget(struct effects *fx)
{
    arena_clear(&fx->memory);
    fx->parcel = NULL;
    fx->first = NULL;
    fx->last = fx->begun = &fx->first;
    fx->mark = arena_mark(&fx->memory);
    forget_transaction(fx);
}

bool effects_are_empty(const struct effects *fx)
{
    return fx->first == NULL && !fx->failed;
}

bool effects_transaction_is_over(const struct effects *fx)
{
    return *fx->begun == NULL && !fx->failed;
}

void effect_parcel_free(struct effect_parcel *parcel)
{
    struct arena memory = parcel->memory;
    arena_release(&memory);
}
