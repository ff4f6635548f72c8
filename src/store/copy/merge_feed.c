/* Feeds of several shards. */
#include "store/copy/merge_feed.h"

#include "store/outbox/feed.h"
#include "store/run/timers.h"
#include "store/tenants.h"

enum { TENANTS_AT_ONCE = 256 };

/* --- one shard --- */

static enum err read_mark(struct db *db, struct str name, bool *ret_found, int64_t *ret)
{
    bool found = false;
    enum err e = feed_mark_get(db, name, &found, ret);
    if (ret_found != NULL)
        *ret_found = found;
    return e;
}

static enum err read_feed(struct db *db, struct merge_feed *f)
{
    enum err e = feed_last(db, &f->last);
    if (e == ERR_OK)
        e = read_mark(db, FEED_MARK_SWEPT, NULL, &f->swept);
    if (e == ERR_OK)
        e = read_mark(db, FEED_MARK_BUS, &f->has_bus, &f->bus);
    if (e == ERR_OK)
        e = read_mark(db, FEED_MARK_WEBHOOKS, &f->has_webhooks, &f->webhooks);
    if (e == ERR_OK)
        e = read_mark(db, FEED_MARK_WEBHOOKS_SEQ, &f->has_webhooks_seq, &f->webhooks_seq);
    if (e == ERR_OK)
        e = timers_folded_through(db, &f->timers);
    return e == ERR_OK ? counters_folded_through(db, &f->counters) : e;
}

/* Parked messages are of rows that may be gone. */
static enum err first_parked(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT MIN(feed) FROM parked";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int_or(rows, 0, INT64_MAX) : INT64_MAX;
    return db_rows_end(rows);
}

enum err merge_feeds_read(struct db *const *shards, size_t count, struct merge_feed *ret)
{
    int64_t last = 0; /* of the shards before */
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++) {
        struct merge_feed *f = &ret[i];
        int64_t parked = 0;
        *f = (struct merge_feed){0};
        e = read_feed(shards[i], f);
        if (e == ERR_OK)
            e = first_parked(shards[i], &parked);
        int64_t base = MIN(f->swept, parked - 1); /* before the first number that it has */
        f->shift = i > 0 ? MAX(last - base, 0) : 0;
        last = MAX(last, f->last + f->shift);
    }
    return e;
}

/* --- positions of tenants --- */

/* A row of moved_feeds (schema/028). */
struct position {
    int64_t tenant;
    bool has_moved; /* before; otherwise the rest is 0 */
    int64_t shift, since, swept, published, fanned, fanned_seq;
};

static struct position shifted(const struct merge_feed *f, const struct position *was)
{
    struct position p = {.tenant = was->tenant, .shift = was->shift + f->shift};
    p.since = MAX(was->since, f->swept) + f->shift;
    p.swept = f->swept > was->since ? f->swept - was->shift : was->swept;
    p.published = MAX(was->published, f->bus) + f->shift;
    p.fanned = (f->has_webhooks ? MAX(was->fanned, f->webhooks) : f->last) + f->shift;
    if (f->has_webhooks)
        p.fanned_seq =
            was->has_moved && was->fanned >= f->webhooks ? was->fanned_seq : f->webhooks_seq;
    return p;
}

static enum err insert_position(struct db *target, const struct position *p)
{
    static const char SQL[] =
        "INSERT INTO moved_feeds (tenant, shift, since, swept, published, fanned, fanned_seq)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)";
    return DB_EXEC(target, SQL, NULL, DB_I(p->tenant), DB_I(p->shift), DB_I(p->since),
                   DB_I(p->swept), DB_I(p->published), DB_I(p->fanned), DB_I(p->fanned_seq));
}

static enum err read_positions(struct db *db, int64_t after,
                               struct position ret[static TENANTS_AT_ONCE], size_t *ret_count)
{
    static const char SQL[] =
        "SELECT t.num, m.shift, m.since, m.swept, m.published, m.fanned, m.fanned_seq"
        " FROM tenants t LEFT JOIN moved_feeds m ON m.tenant = t.num WHERE t.num > $1"
        " ORDER BY t.num LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after), DB_I(TENANTS_AT_ONCE));
    size_t count = 0;
    while (db_next(rows)) {
        struct position *p = &ret[count++];
        *p = (struct position){.tenant = db_int(rows, 0), .has_moved = !db_is_null(rows, 1)};
        if (!p->has_moved)
            continue;
        p->shift = db_int(rows, 1);
        p->since = db_int(rows, 2);
        p->swept = db_int(rows, 3);
        p->published = db_int(rows, 4);
        p->fanned = db_int(rows, 5);
        p->fanned_seq = db_int(rows, 6);
    }
    *ret_count = count;
    return db_rows_end(rows);
}

/* Those of shard 0 count on as they did. */
static enum err put_position(struct db *target, size_t shard, const struct merge_feed *f,
                             const struct merge_tenants *tenants, const struct position *was)
{
    if (merge_tenants_find(tenants, shard, was->tenant) != NULL)
        return ERR_OK;
    if (shard == 0)
        return was->has_moved ? insert_position(target, was) : ERR_OK;
    struct position p = shifted(f, was);
    return insert_position(target, &p);
}

static enum err put_positions(struct db *db, size_t shard, const struct merge_feed *f,
                              const struct merge_tenants *tenants, struct db *target)
{
    struct position found[TENANTS_AT_ONCE];
    int64_t after = 0;
    size_t count;
    enum err e = ERR_OK;
    do {
        e = read_positions(db, after, found, &count);
        for (size_t i = 0; i < count && e == ERR_OK; i++)
            e = put_position(target, shard, f, tenants, &found[i]);
        if (count > 0)
            after = found[count - 1].tenant;
    } while (e == ERR_OK && count == TENANTS_AT_ONCE);
    return e;
}

/* --- marks --- */

static enum err has_webhooks(struct db *db, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM webhooks LIMIT 1";
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows);
    return db_rows_end(rows);
}

/* Those of shard 0, whose rows come first. If nobody there has webhooks, all of it is done. */
static enum err put_marks(const struct merge_feed *first, struct db *target)
{
    bool hooked = false;
    enum err e = has_webhooks(target, &hooked);
    if (e == ERR_OK && first->swept > 0)
        e = feed_mark_set(target, FEED_MARK_SWEPT, first->swept);
    if (e == ERR_OK && first->has_bus)
        e = feed_mark_set(target, FEED_MARK_BUS, first->bus);
    if (e == ERR_OK && hooked)
        e = feed_mark_set(target, FEED_MARK_WEBHOOKS,
                          first->has_webhooks ? first->webhooks : first->last);
    if (e == ERR_OK && hooked && first->has_webhooks_seq)
        e = feed_mark_set(target, FEED_MARK_WEBHOOKS_SEQ, first->webhooks_seq);
    /* Timers of the other shards' jobs may be missing: they are looked for when it is opened. */
    if (e == ERR_OK)
        e = timers_folded(target, first->timers);
    /* The first commit finds a long log, and folds it. */
    return e == ERR_OK ? counters_folded(target, MIN(first->counters, first->last)) : e;
}

enum err merge_feeds_finish(struct db *const *shards, size_t count, const struct merge_feed *feeds,
                            const struct merge_tenants *tenants, struct db *target)
{
    enum err e = put_marks(&feeds[0], target);
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = put_positions(shards[i], i, &feeds[i], tenants, target);
    return e;
}
