/* The door through which signals come. */
#include "core/txn/signal_dedup.h"

#include "base/limits.h"
#include "core/txn/window_stats.h"
#include "domain/idempotency.h"
#include "store/entity/dedup.h"

/* --- is it known --- */

struct look {
    const struct signal_dedup_key *key;
    struct dedup_limits limits;
    int64_t now_ms;
    enum signal_dedup_verdict verdict;
    int64_t seq;
    int64_t age_ms; /* of the newest that had the same key; -1: none */
    bool damaged;
};

/* A row of an earlier version has no fingerprint: then the key alone decides. */
static bool same_request(const struct signal_dedup_key *key, struct str kept)
{
    return kept.len == 0 || (kept.len <= sizeof(key->request.bytes) &&
                             memcmp(key->request.bytes, kept.ptr, kept.len) == 0);
}

static bool look_at(void *ctx, const struct dedup_key *row)
{
    struct look *l = ctx;
    const struct dedup_window *w = &l->key->window;
    if (row->key.ptr != NULL && !str_eq(row->key, l->key->key))
        return true; /* another key with the same hash */
    bool knows = dedup_knows(w, &l->limits, row->num, row->at, l->now_ms);
    if (l->age_ms < 0 || knows)
        l->age_ms = dedup_age_ms(row->at, l->now_ms);
    if (!knows)
        return row->num > w->first;
    if (row->key.ptr == NULL) { /* text goes only after the window has moved on */
        l->damaged = true;
        return false;
    }
    l->verdict = same_request(l->key, row->request) ? SIGNAL_DUPLICATE : SIGNAL_REUSED;
    l->seq = row->seq;
    return false;
}

enum err signal_dedup_check(struct tx *tx, struct signal_dedup_key *key,
                            const struct signal_dedup_rules *rules, enum signal_dedup_verdict *ret,
                            int64_t *ret_seq)
{
    assert(key->key.ptr != NULL && rules->window_ms > 0 && rules->max_keys > 0);
    struct look look = {.key = key,
                        .limits = {rules->window_ms, rules->max_keys},
                        .now_ms = tx->now_ms,
                        .verdict = SIGNAL_NEW,
                        .age_ms = -1};
    key->key_hash = idem_key_hash(key->key);
    enum err e = dedup_windows_find(tx->db, key->owner, &key->window);
    if (e == ERR_OK)
        e = dedup_with_hash(tx->db, key->owner, key->key_hash, look_at, &look);
    if (e == ERR_OK && look.damaged)
        e = ERR_DAMAGED;
    if (e != ERR_OK)
        return e;
    key->late_ms = look.verdict == SIGNAL_NEW ? look.age_ms : -1;
    struct dedup_counts *counts =
        look.verdict == SIGNAL_DUPLICATE ? window_stats_of(tx->window_stats, rules->type) : NULL;
    if (counts != NULL)
        counts->duplicates[dedup_bucket_of(look.age_ms)]++;
    *ret = look.verdict;
    *ret_seq = look.seq;
    return ERR_OK;
}

struct find {
    struct str key;
    int64_t first;
    bool found;
    int64_t seq;
};

static bool find_at(void *ctx, const struct dedup_key *row)
{
    struct find *f = ctx;
    f->found = row->num >= f->first && row->key.ptr != NULL && str_eq(row->key, f->key);
    f->seq = row->seq;
    return !f->found;
}

enum err signal_dedup_find(struct db *db, int64_t owner, struct str key, bool *ret_found,
                           int64_t *ret_seq)
{
    struct dedup_window window;
    struct find find = {.key = key};
    enum err e = dedup_windows_find(db, owner, &window);
    if (e == ERR_OK) {
        find.first = window.first;
        e = dedup_with_hash(db, owner, idem_key_hash(key), find_at, &find);
    }
    *ret_found = e == ERR_OK && find.found;
    *ret_seq = *ret_found ? find.seq : 0;
    return e;
}

/* --- in, and out again --- */

struct eviction {
    struct dedup_window *window;
    struct dedup_limits limits;
    int64_t now_ms;
    int64_t by_age, by_count;
    int64_t last_seq;
    bool damaged; /* keys are numbered without a gap */
};

static bool evict(void *ctx, const struct dedup_key *row)
{
    struct eviction *v = ctx;
    v->damaged |= row->num != v->window->first;
    if (v->damaged)
        return false;
    enum dedup_leaving leaving = dedup_oldest_leaves(v->window, &v->limits, row->at, v->now_ms);
    if (leaving == DEDUP_STAYS)
        return false;
    v->by_age += leaving == DEDUP_TOO_OLD;
    v->by_count += leaving == DEDUP_TOO_MANY;
    v->last_seq = row->seq;
    v->window->first++;
    return true;
}

static bool forget(void *ctx, const struct dedup_key *row)
{
    struct eviction *v = ctx;
    v->damaged |= row->num != v->window->forgotten;
    if (v->damaged)
        return false;
    if (row->num == v->window->emptied ||
        !dedup_oldest_is_forgotten(v->window, &v->limits, row->at, v->now_ms))
        return false;
    v->window->forgotten++;
    return true;
}

/* What has left the window loses its text, and what left it long ago its row. */
static enum err sweep(struct tx *tx, int64_t owner, struct eviction *v)
{
    struct dedup_window *w = v->window;
    int64_t emptied = w->emptied;
    int64_t forgotten = w->forgotten;
    w->emptied = w->first;
    enum err e =
        dedup_from(tx->db, owner, forgotten, 2 * (int64_t)DEDUP_EVICTED_PER_KEY_MAX, forget, v);
    if (e == ERR_OK && w->forgotten > forgotten)
        e = dedup_delete(tx->db, owner, forgotten, w->forgotten);
    int64_t from = MAX(emptied, w->forgotten);
    if (e == ERR_OK && w->emptied > from)
        e = dedup_empty(tx->db, owner, from, w->emptied);
    return e;
}

static void count_arrival(struct tx *tx, const struct signal_dedup_key *key,
                          const struct signal_dedup_rules *rules, const struct eviction *v)
{
    struct dedup_counts *counts = window_stats_of(tx->window_stats, rules->type);
    if (counts == NULL)
        return;
    counts->keyed++;
    counts->evicted_by_age += v->by_age;
    counts->evicted_by_count += v->by_count;
    if (key->late_ms >= 0)
        counts->late[dedup_bucket_of(key->late_ms)]++;
}

enum err signal_dedup_record(struct tx *tx, const struct signal_dedup_key *key,
                             const struct signal_dedup_rules *rules, int64_t seq,
                             int64_t *ret_evicted_seq)
{
    struct dedup_window window = key->window;
    struct eviction eviction = {
        .window = &window, .limits = {rules->window_ms, rules->max_keys}, .now_ms = tx->now_ms};
    struct dedup_key row = {.num = ++window.last,
                            .key_hash = key->key_hash,
                            .key = key->key,
                            .request = {(const char *)key->request.bytes, DEDUP_REQUEST_LEN},
                            .seq = seq,
                            .at = tx->now_ms};
    assert(dedup_window_is_sound(&window) && row.num > 0);
    enum err e = dedup_insert(tx->db, key->owner, &row);
    if (e == ERR_OK)
        e = dedup_from(tx->db, key->owner, window.first, DEDUP_EVICTED_PER_KEY_MAX, evict,
                       &eviction);
    if (e == ERR_OK &&
        dedup_sweep_is_due(&window, &eviction.limits, eviction.by_age + eviction.by_count))
        e = sweep(tx, key->owner, &eviction);
    if (e == ERR_OK && eviction.damaged)
        e = ERR_DAMAGED;
    if (e == ERR_OK)
        e = dedup_windows_put(tx->db, key->owner, &window);
    if (e != ERR_OK)
        return e;
    count_arrival(tx, key, rules, &eviction);
    *ret_evicted_seq = eviction.last_seq;
    return ERR_OK;
}

/* --- looking on --- */

static bool take_time(void *ctx, const struct dedup_key *row)
{
    struct signal_dedup_view *view = ctx;
    view->oldest_at = row->at;
    return false;
}

enum err signal_dedup_show(struct db *db, int64_t owner, struct signal_dedup_view *ret)
{
    struct dedup_window window;
    enum err e = dedup_windows_find(db, owner, &window);
    if (e != ERR_OK)
        return e;
    *ret = (struct signal_dedup_view){.keys = window.last - window.first + 1,
                                      .oldest_at = -1,
                                      .first = window.first,
                                      .last = window.last};
    return ret->keys > 0 ? dedup_from(db, owner, window.first, 1, take_time, ret) : ERR_OK;
}

enum err signal_dedup_forget(struct db *db, int64_t owner, int64_t rows, int64_t *ret_removed,
                             bool *ret_gone)
{
    return dedup_remove_owner(db, owner, rows, ret_removed, ret_gone);
}
