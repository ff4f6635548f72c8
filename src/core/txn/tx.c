/* One transaction and what it has loaded. */
#include "core/txn/tx.h"

#include "base/limits.h"
#include "core/txn/cpu_shares.h"
#include "core/txn/release_rates.h"
#include "store/entity/entities.h"
#include "store/outbox/feed.h"
#include "store/run/jobs.h"
#include "store/run/late_index.h"
#include "store/run/runs.h"
#include "store/tenants.h"

static struct hmac_key lease_key_of(const struct secret *secret)
{
    return hmac_key_of((struct str){(const char *)secret->bytes, sizeof(secret->bytes)});
}

static enum err read_lease_keys(struct tx *tx, struct db *db, const struct env *env)
{
    struct secret own;
    struct secret others[CLUSTER_SHARDS_MAX];
    size_t count = 0;
    enum err e = secrets_get(db, env, STR("lease"), &own);
    if (e == ERR_OK)
        e = secrets_list(db, STR("lease."), others, ARRAY_LEN(others), &count);
    if (e != ERR_OK)
        return e;
    tx->lease_key = lease_key_of(&own);
    if (count == 0)
        return ERR_OK;
    tx->other_lease_keys = calloc(count, sizeof(*tx->other_lease_keys));
    if (tx->other_lease_keys == NULL)
        return ERR_NO_MEMORY;
    tx->other_lease_key_count = count;
    for (size_t i = 0; i < count; i++)
        tx->other_lease_keys[i] = lease_key_of(&others[i]);
    return ERR_OK;
}

enum err tx_init(struct tx *tx, struct db *db, const struct env *env)
{
    *tx = (struct tx){.env = env, .turn_until_ms = INT64_MAX};
    effects_init(&tx->effects);
    buf_init(&tx->unwritten.packed, TIMELINE_ROW_BYTES + JSON_WRITTEN_MAX + KIB);
    bool ok = read_tx_init(&tx->read, db) == ERR_OK;
    tx->counts = true;
    tx->release_rates = release_rates_new();
    tx->cpu = cpu_shares_new();
    ok &= tx->release_rates != NULL && tx->cpu != NULL;
#define X(member, type, until, functions) \
    tx->member = functions##_new();       \
    ok &= tx->member != NULL;
    TX_MEMORY(X)
#undef X
    enum err e = ok ? read_lease_keys(tx, db, env) : ERR_NO_MEMORY;
    return e == ERR_OK ? idem_keys_open(tx->keys, db, env) : e;
}

bool tx_turn_is_over(const struct tx *tx)
{
    return tx->turn_until_ms != INT64_MAX && env_mono_ms(tx->env) >= tx->turn_until_ms;
}

static void drop_unwritten(struct tx *tx)
{
    tx->unwritten.owner = 0;
    buf_clear(&tx->unwritten.packed);
}

/* What belongs to one transaction only. */
static void clear_turn(struct tx *tx)
{
    effects_begin(&tx->effects);
    drop_unwritten(tx);
    tx->freed = NULL;
    tx->dispatches_later = tx->dispatch_failed = false;
    read_tx_clear(&tx->read);
}

static void forget_until(struct tx *tx, enum memory_until end)
{
    clear_turn(tx);
    read_tx_forget(&tx->read, end);
#define X(member, type, until, functions) \
    if ((until) <= end)                   \
        functions##_forget(tx->member);
    TX_MEMORY(X)
#undef X
    tx->stale = false;
}

void tx_forget(struct tx *tx)
{
    forget_until(tx, UNTIL_STALE);
}

void tx_rolled_back(struct tx *tx)
{
    forget_until(tx, UNTIL_ROLLBACK);
}

void tx_release(struct tx *tx)
{
    clear_turn(tx);
#define X(member, type, until, functions) functions##_free(tx->member);
    TX_MEMORY(X)
#undef X
    release_rates_free(tx->release_rates);
    cpu_shares_free(tx->cpu);
    free(tx->other_lease_keys);
    buf_release(&tx->unwritten.packed);
    effects_release(&tx->effects);
    read_tx_release(&tx->read);
}

void tx_start(struct tx *tx, int64_t now_ms)
{
    cpu_shares_turn(tx->cpu);
    if (!tx->remembers || tx->stale)
        tx_forget(tx);
    else
        clear_turn(tx);
    read_tx_start(&tx->read, now_ms);
}

void tx_end(struct tx *tx)
{
    clear_turn(tx);
}

/* `counters` goes into the last of the packs, of which *ret_packs says how many there are. */
static enum err write_packs(struct tx *tx, struct str counters, int64_t *ret_packs)
{
    struct feed_row rows[FEED_PACK_ROWS_MAX];
    size_t count = 0;
    enum err e = ERR_OK;
    *ret_packs = 0;
    for (struct effect *x = effects_next_unfed(&tx->effects); x != NULL && e == ERR_OK;
         x = effects_next_unfed(&tx->effects)) {
        if (count == ARRAY_LEN(rows)) {
            e = feed_insert(tx->db, rows, count, STR_NONE);
            ++*ret_packs;
            count = 0;
        }
        x->events.feed = ++tx->nums->last_feed;
        rows[count++] = (struct feed_row){x->events.feed,      x->tenant,          x->events.owner,
                                          x->events.first_seq, x->events.last_seq, tx->now_ms};
    }
    if (e != ERR_OK || count == 0)
        return e;
    ++*ret_packs;
    return feed_insert(tx->db, rows, count, counters);
}

/* The feed's new rows, and the counters that changed: in the last of them, or in the tenants' rows.
 */
static enum err write_feed(struct tx *tx)
{
    bool grows = effects_next_unfed(&tx->effects) != NULL;
    struct str counters = STR_NONE;
    int64_t end = 0;
    int64_t packs = 0;
    if (!grows && tenant_cache_is_flushed(tx->tenants))
        return ERR_OK;
    enum err e = tx_feed_end(tx, &end);
    if (e == ERR_OK)
        e = tenant_cache_read_log(tx->tenants, tx->db, &tx->arena);
    if (e == ERR_OK)
        e = tenant_cache_take(tx->tenants, grows, &counters);
    if (e == ERR_OK)
        e = write_packs(tx, counters, &packs);
    return e == ERR_OK ? tenant_cache_flush(tx->tenants, tx->db, packs, tx->nums->last_feed) : e;
}

enum err tx_flush(struct tx *tx)
{
    enum err e = db_flush(tx->db);
    if (e == ERR_OK)
        e = tx_write_events(tx);
    if (e == ERR_OK)
        e = recent_timers_flush(tx->recent_timers, tx->db, &tx->effects, &tx->arena);
    return e == ERR_OK ? write_feed(tx) : e;
}

enum err tx_commit(struct tx *tx)
{
    enum err e = tx_flush(tx);
    if (e == ERR_OK && tx->effects.failed)
        e = tx_own_error(tx, ERR_NO_MEMORY);
    /* Whoever reads an API key must not have to wait until it is on disk. */
    bool now = (tx->effects.once & 1u << EFFECT_KEYS_CHANGED) != 0;
    if (e == ERR_OK)
        e = now ? db_commit_now(tx->db) : db_commit(tx->db);
    if (e == ERR_OK) {
        effects_commit(&tx->effects);
        idem_keys_commit(tx->keys);
    }
    return e;
}

/* --- tenants --- */

enum err tx_tenant_ensure(struct tx *tx, struct tenant *t)
{
    if (t->num != 0)
        return ERR_OK;
    enum err e = tenants_insert(tx->db, t);
    if (e == ERR_OK)
        tenant_cache_numbered(tx->tenants, t);
    return e;
}

void tx_tenant_touch(struct tx *tx, struct tenant *t)
{
    tx->touched++;
    tenant_cache_touch(tx->tenants, t);
}

void tx_tenant_changed(struct tx *tx)
{
    tx->stale = true;
}

enum err tx_reload_counters(struct tx *tx)
{
    return tenant_cache_reload(tx->tenants, tx->db, &tx->arena);
}

void tx_newest_changed(struct tx *tx)
{
    newest_cache_forget(tx->newest);
}

/* --- numbers, and what is pending --- */

struct tx_nums *tx_nums_new(void)
{
    struct tx_nums *nums = malloc(sizeof(*nums));
    if (nums != NULL)
        tx_nums_forget(nums);
    return nums;
}

void tx_nums_forget(struct tx_nums *nums)
{
    *nums = (struct tx_nums){-1, -1, -1};
}

void tx_nums_free(struct tx_nums *nums)
{
    free(nums);
}

struct tx_pending *tx_pending_new(void)
{
    struct tx_pending *pending = malloc(sizeof(*pending));
    if (pending != NULL)
        *pending = (struct tx_pending){.webhooks_changed = true};
    return pending;
}

void tx_pending_forget(struct tx_pending *pending)
{
    *pending = (struct tx_pending){.runs_unindexed = LATE_INDEX_ROWS, .webhooks_changed = true};
}

void tx_pending_free(struct tx_pending *pending)
{
    free(pending);
}

bool tx_runs_index_is_due(const struct tx *tx)
{
    return tx->pending->runs_unindexed >=
           (tx->pending->holders_sought ? HOLDERS_PASSED_MAX : LATE_INDEX_ROWS);
}

enum err tx_runs_through(struct tx *tx, int64_t *ret)
{
    enum err e = ERR_OK;
    if (tx->nums->runs_through < 0)
        e = late_index_through(tx->db, &tx->nums->runs_through);
    *ret = tx->nums->runs_through;
    return e;
}

enum err tx_feed_end(struct tx *tx, int64_t *ret)
{
    enum err e = ERR_OK;
    if (tx->nums->last_feed < 0)
        e = feed_last(tx->db, &tx->nums->last_feed);
    *ret = tx->nums->last_feed;
    return e;
}

enum err tx_last_num(struct tx *tx, int64_t *ret)
{
    int64_t entity = 0;
    enum err e = ERR_OK;
    if (tx->nums->last < 0) {
        e = entities_last_num(tx->db, &entity);
        if (e == ERR_OK)
            e = runs_last_num(tx->db, &tx->nums->last);
        tx->nums->last = MAX(tx->nums->last, entity);
    }
    *ret = tx->nums->last;
    return e;
}

static enum err new_num(struct tx *tx, struct uuid *ret_id, int64_t *ret_num)
{
    int64_t last = 0;
    enum err e = tx_last_num(tx, &last);
    if (e != ERR_OK)
        return e;
    *ret_id = env_new_id(tx->env);
    *ret_num = tx->nums->last = runs_new_num(ret_id, last, db_numbers(tx->db));
    return ERR_OK;
}

enum err tx_new_run(struct tx *tx, int64_t tenant, struct uuid *ret_id, int64_t *ret_num)
{
    enum err e = new_num(tx, ret_id, ret_num);
    if (e != ERR_OK)
        return e;
    tx->pending->runs_unindexed++;
    tx->touched++; /* without the run this transaction must not commit */
    recent_runs_add(tx->recent_runs, tenant, *ret_num);
    struct effect *x = effects_add(&tx->effects, EFFECT_RUN_MADE);
    if (x == NULL)
        return ERR_NO_MEMORY;
    x->tenant = tenant;
    return ERR_OK;
}

enum err tx_new_entity(struct tx *tx, struct uuid *ret_id, int64_t *ret_num)
{
    return new_num(tx, ret_id, ret_num);
}

/* --- what an op may do --- */

int64_t tx_changes(const struct tx *tx)
{
    return db_changes(tx->db) + tx->touched;
}

enum err tx_own_error(const struct tx *tx, enum err e)
{
    return e == ERR_NO_MEMORY &&
                   (tx->arena.refused || tx->notes.refused || tx->effects.memory.refused)
               ? ERR_TOO_LARGE
               : e;
}

/* --- timelines --- */

enum err tx_write_events(struct tx *tx)
{
    struct unwritten_events *t = &tx->unwritten;
    if (t->owner == 0)
        return ERR_OK;
    int64_t before = db_changes(tx->db);
    event_pack_end(&t->packed);
    enum err e = buf_ok(&t->packed)
                     ? events_append(tx->db, t->owner, t->last_seq, tx->now_ms, buf_str(&t->packed))
                     : ERR_NO_MEMORY;
    tx->touched -= db_changes(tx->db) - before; /* each event counted when it was added */
    drop_unwritten(tx);
    return e;
}

enum err tx_take_first_events(struct tx *tx, int64_t run, struct str *ret)
{
    struct unwritten_events *t = &tx->unwritten;
    *ret = STR_NONE;
    if (t->owner != run || t->first_seq != 1 || t->packed.len > FIRST_EVENTS_BYTES_MAX)
        return ERR_OK;
    event_pack_end(&t->packed);
    t->owner = 0; /* what is packed stays until the next event */
    *ret = buf_str(&t->packed);
    return buf_ok(&t->packed) ? ERR_OK : ERR_NO_MEMORY;
}

enum err tx_add_event(struct tx *tx, int64_t tenant, int64_t owner, const struct event *event)
{
    struct unwritten_events *t = &tx->unwritten;
    assert(event->at == tx->now_ms);
    if (t->owner != owner || t->packed.len > TIMELINE_ROW_BYTES) {
        enum err e = tx_write_events(tx);
        if (e != ERR_OK)
            return e;
    }
    assert(t->owner == 0 || t->last_seq + 1 == event->seq);
    if (t->owner == 0) {
        buf_clear(&t->packed);
        t->first_seq = event->seq;
    }
    t->owner = owner;
    t->last_seq = event->seq;
    event_pack(&t->packed, event);
    tx->touched++;
    effects_event(&tx->effects, tenant, owner, event->seq);
    return tx->effects.failed || !buf_ok(&t->packed) ? ERR_NO_MEMORY : ERR_OK;
}

/* --- the gate --- */

enum err tx_pass_gate(const struct tx *tx, struct op *op, const struct tenant *t)
{
    if (t->gate.kind == GATE_KIND_STORE || op->gate_passed)
        return ERR_OK;
    if (!tx->has_gate)
        return problem_set(&op->problem, ERR_GATE_UNAVAILABLE,
                           "The starts of tenant %.*s pass a gate in Redis, and this server runs "
                           "without one (--gate)",
                           STR_ARG(t->id));
    op->gate_wanted = true;
    op->gate_policy = t->gate;
    return problem_set(&op->problem, ERR_GATE_UNAVAILABLE,
                       "The start has not passed the admission gate");
}

/* --- effects --- */

void tx_note_due(struct tx *tx, int64_t due_at)
{
    if (due_at >= 0)
        effects_timer(&tx->effects, due_at);
}

void tx_note(struct tx *tx, enum effect_kind kind)
{
    effects_once(&tx->effects, kind);
}

static enum err failed_or_ok(const struct tx *tx)
{
    return tx->effects.failed ? ERR_NO_MEMORY : ERR_OK;
}

enum err tx_wake_queue(struct tx *tx, const struct job *job, struct str queue)
{
    struct effect *x = effects_add(&tx->effects, EFFECT_JOB_READY);
    if (x == NULL)
        return ERR_NO_MEMORY;
    x->tenant = job->tenant;
    x->ready.queue = queue;
    x->ready.owner = job->owner;
    x->ready.ordinal = job->ordinal;
    x->ready.leased = false;
    return arena_keep(&tx->effects.memory, &x->ready.queue) ? ERR_OK : ERR_NO_MEMORY;
}

/* NULL: out of memory. */
static struct effect *note_decided(struct tx *tx, enum effect_kind kind, int64_t tenant,
                                   struct uuid key)
{
    struct effect *x = effects_add(&tx->effects, kind);
    if (x == NULL)
        return NULL;
    x->tenant = tenant;
    x->decided.key = key;
    return x;
}

enum err tx_wake_updates(struct tx *tx, int64_t tenant, struct uuid key, int64_t after,
                         int64_t through)
{
    struct effect *x = note_decided(tx, EFFECT_UPDATES_DECIDED, tenant, key);
    if (x == NULL)
        return ERR_NO_MEMORY;
    x->decided.after = after;
    x->decided.through = through;
    return ERR_OK;
}

enum err tx_wake_run(struct tx *tx, int64_t tenant, struct uuid run_id, enum run_status status)
{
    assert(run_has_ended(status));
    struct effect *x = note_decided(tx, EFFECT_RUN_ENDED, tenant, run_id);
    if (x == NULL)
        return ERR_NO_MEMORY;
    x->decided.status = status;
    return ERR_OK;
}

void tx_count_call(struct tx *tx, enum entity_call_end end)
{
    struct effect *x = effects_add(&tx->effects, EFFECT_ENTITY_CALL_ENDED);
    if (x != NULL)
        x->call_end = end;
}

/* Tenants are forgotten by a rollback, effects that are committed are not: they have the name. */
static struct effect *note_wait(struct tx *tx, enum effect_kind kind, const struct tenant *t,
                                int64_t wait_ms)
{
    struct effect *x = effects_add(&tx->effects, kind);
    if (x == NULL)
        return NULL;
    x->tenant = t->num;
    x->admission.tenant = arena_str(&tx->effects.memory, t->id);
    x->admission.wait_ms = wait_ms;
    tx->effects.failed |= x->admission.tenant.ptr == NULL;
    return x;
}

enum err tx_count_admission(struct tx *tx, const struct tenant *t, const char *endpoint,
                            struct str outcome, int64_t wait_ms)
{
    struct effect *x = note_wait(tx, EFFECT_ADMISSION, t, wait_ms);
    if (x != NULL) {
        x->admission.endpoint = endpoint;
        x->admission.outcome = outcome;
    }
    return failed_or_ok(tx);
}

struct str tx_id_text(struct tx *tx, struct uuid id)
{
    struct buf text;
    buf_init(&text, UUID_TEXT_LEN);
    buf_put_uuid(&text, id);
    return arena_take(&tx->arena, &text);
}

enum err tx_export_span(struct tx *tx, const struct span *span)
{
    assert(tx->exports_spans);
    struct effect *x = effects_add(&tx->effects, EFFECT_SPAN);
    if (x == NULL)
        return ERR_NO_MEMORY;
    x->span = span_keep(span, &tx->effects.memory);
    tx->effects.failed |= x->span == NULL;
    return failed_or_ok(tx);
}

void tx_observe_queue_wait(struct tx *tx, const struct tenant *t, int64_t ms)
{
    (void)note_wait(tx, EFFECT_QUEUE_WAIT, t, ms);
}
