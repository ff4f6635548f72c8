/* Windows of known keys, and how well they fit. */
#include "domain/entity/dedup.h"

#include "base/limits.h"

/* Leaves and goes in lots of so many: the rows of a lot lie side by side. */
enum { SWEEP_ROWS = 64, EVICTED_AT_ONCE = 8 };

/* --- what makes two signals the same --- */

enum err dedup_request(struct str name, const struct json *payload, struct problem *p,
                       struct sha256 *ret)
{
    struct buf canonical;
    buf_init(&canonical, JSON_WRITTEN_MAX);
    if (payload != NULL)
        json_write_canonical(&canonical, payload);
    else
        buf_put(&canonical, STR("null"));
    enum err e = ERR_OK;
    if (buf_ok(&canonical)) {
        struct str parts[] = {name, buf_str(&canonical)};
        *ret = sha256_of_parts(parts, ARRAY_LEN(parts));
    } else {
        e = problem_set(p, ERR_NO_MEMORY, "No memory to compare the signal");
    }
    buf_release(&canonical);
    return e;
}

/* --- the window --- */

struct dedup_window dedup_window_new(void)
{
    return (struct dedup_window){.first = 1, .last = 0, .emptied = 1, .forgotten = 1};
}

bool dedup_window_is_sound(const struct dedup_window *w)
{
    return w->forgotten >= 1 && w->forgotten <= w->emptied && w->emptied <= w->first &&
           w->first <= w->last + 1;
}

int64_t dedup_age_ms(int64_t at, int64_t now_ms)
{
    return now_ms > at ? now_ms - at : 0;
}

bool dedup_knows(const struct dedup_window *w, const struct dedup_limits *limits, int64_t num,
                 int64_t at, int64_t now_ms)
{
    /* With lower limits than before, more may be inside than fits. */
    return num >= w->first && num > w->last - limits->max_keys &&
           dedup_age_ms(at, now_ms) <= limits->window_ms;
}

enum dedup_leaving dedup_oldest_leaves(const struct dedup_window *w,
                                       const struct dedup_limits *limits, int64_t at,
                                       int64_t now_ms)
{
    assert(w->first <= w->last);
    if (dedup_age_ms(at, now_ms) > limits->window_ms)
        return DEDUP_TOO_OLD;
    return w->last - w->first + 1 > limits->max_keys ? DEDUP_TOO_MANY : DEDUP_STAYS;
}

bool dedup_oldest_is_forgotten(const struct dedup_window *w, const struct dedup_limits *limits,
                               int64_t at, int64_t now_ms)
{
    assert(w->forgotten < w->emptied);
    return dedup_age_ms(at, now_ms) > 2 * limits->window_ms ||
           w->emptied - w->forgotten > limits->max_keys;
}

bool dedup_sweep_is_due(const struct dedup_window *w, const struct dedup_limits *limits,
                        int64_t evicted_now)
{
    return evicted_now > EVICTED_AT_ONCE || w->first - w->emptied >= SWEEP_ROWS ||
           w->emptied - w->forgotten > limits->max_keys + SWEEP_ROWS;
}

/* --- how late duplicates come --- */

static const struct {
    const char *name;
    int64_t up_to_s;
} AGES[] = {
#define X(symbol, name, up_to_s) {name, up_to_s},
    DEDUP_AGES(X)
#undef X
};

enum dedup_bucket dedup_bucket_of(int64_t age_ms)
{
    enum dedup_bucket bucket = 0;
    while (bucket < DEDUP_OLDER && age_ms > AGES[bucket].up_to_s * 1000)
        bucket++;
    return bucket;
}

const char *dedup_bucket_name(enum dedup_bucket bucket)
{
    assert(bucket < DEDUP_BUCKETS);
    return AGES[bucket].name;
}

int64_t dedup_bucket_up_to_s(enum dedup_bucket bucket)
{
    assert(bucket < DEDUP_BUCKETS);
    return bucket == DEDUP_OLDER ? -1 : AGES[bucket].up_to_s;
}

static int64_t sum(const int64_t counts[static DEDUP_BUCKETS])
{
    int64_t total = 0;
    for (size_t i = 0; i < DEDUP_BUCKETS; i++)
        total += counts[i];
    return total;
}

int64_t dedup_duplicates(const struct dedup_counts *c)
{
    return sum(c->duplicates);
}

int64_t dedup_late(const struct dedup_counts *c)
{
    return sum(c->late);
}

enum dedup_bucket dedup_share_came_by(const struct dedup_counts *c, int percent)
{
    assert(percent > 0 && percent <= 100);
    int64_t total = dedup_duplicates(c) + dedup_late(c);
    double wanted = (double)total * percent / 100;
    int64_t seen = 0;
    for (enum dedup_bucket bucket = 0; bucket < DEDUP_BUCKETS && total > 0; bucket++) {
        seen += c->duplicates[bucket] + c->late[bucket];
        if ((double)seen >= wanted)
            return bucket;
    }
    return DEDUP_BUCKETS;
}
