/* The audit trail as rows. */
#include "store/audit.h"

#include "base/limits.h"
#include "domain/type_pattern.h"
#include "store/columns.h"

#define AUDIT_COLUMNS(X, p)             \
    X(p, 1, INT, tenant, entry.tenant)  \
    X(p, 2, COUNT, seq, seq)            \
    X(p, 3, TIME, at, entry.at)         \
    X(p, 4, TEXT, actor, entry.actor)   \
    X(p, 5, TEXT, peer, entry.peer)     \
    X(p, 6, TEXT, action, entry.action) \
    X(p, 7, TEXT, target, entry.target) \
    X(p, 8, TEXT, detail, entry.detail) \
    X(p, 9, HASH, hash, hash)
COLUMNS_NUMBERED(AUDIT_COLUMNS, AUDIT);

#define SELECT_AUDIT COLUMNS_SELECT(AUDIT_COLUMNS, "") " FROM audit"

static struct sha256 hash_entry(const struct sha256 *before, int64_t seq,
                                const struct audit_entry *e)
{
    int64_t numbers[] = {e->tenant, seq, e->at};
    struct str parts[] = {
        {(const char *)before->bytes, SHA256_LEN},
        {(const char *)numbers, sizeof(numbers)},
        e->actor,
        e->peer,
        e->action,
        e->target,
        e->detail,
    };
    return sha256_of_parts(parts, ARRAY_LEN(parts));
}

/* --- writing --- */

/* What the next entry continues: the end that is kept, not the last entry that is there. An entry
 * that was removed stays missed; the last one counts only where no end is kept. */
static enum err read_end(struct db *db, int64_t tenant, struct audit_head *ret)
{
    static const char SQL[] =
        "SELECT seq, hash, 1 AS kept FROM audit_heads WHERE tenant = $1"
        " UNION ALL SELECT seq, hash, 0 FROM (SELECT seq, hash FROM audit WHERE tenant = $1"
        " ORDER BY seq DESC LIMIT 1) AS newest ORDER BY seq DESC, kept DESC LIMIT 1";
    *ret = (struct audit_head){0};
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant));
    if (db_next(rows))
        *ret = (struct audit_head){db_int(rows, 0), db_hash(rows, 1)};
    return db_rows_end(rows);
}

static enum err write_end(struct db *db, int64_t tenant, const struct audit_head *head)
{
    static const char SQL[] =
        "INSERT INTO audit_heads (tenant, seq, hash) VALUES ($1, $2, $3)"
        " ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, hash = excluded.hash";
    return DB_EXEC(db, SQL, NULL, DB_I(tenant), DB_I(head->seq), DB_H(head->hash));
}

enum err audit_append(struct db *db, const struct audit_entry *e)
{
    static const char SQL[] = COLUMNS_INSERT("audit", AUDIT_COLUMNS);
    struct audit_head head;
    enum err err = read_end(db, e->tenant, &head);
    if (err != ERR_OK)
        return err;
    struct sha256 before = head.hash;
    head.seq++;
    head.hash = hash_entry(&before, head.seq, e);
    const struct audit_row row = {.seq = head.seq, .entry = *e, .hash = head.hash};
    err = DB_EXEC(db, SQL, NULL, AUDIT_COLUMNS(COLUMN_BIND, &row));
    return err == ERR_OK ? write_end(db, e->tenant, &head) : err;
}

/* --- reading --- */

static struct audit_row row_of(struct db_rows *rows)
{
    return (struct audit_row){AUDIT_COLUMNS(COLUMN_READ, rows)};
}

static bool passes(const struct audit_filter *f, const struct audit_entry *e)
{
    return (f->actor.ptr == NULL || str_eq(f->actor, e->actor)) &&
           (f->action.ptr == NULL || type_pattern_fits(f->action, e->action));
}

enum err audit_list(struct db *db, const struct audit_filter *filter, int64_t from,
                    bool newest_first, audit_each *each, void *ctx, int64_t *ret_next)
{
    static const char SQL_UP[] = SELECT_AUDIT " WHERE tenant = $1 AND seq > $2"
                                              " ORDER BY seq LIMIT $3";
    static const char SQL_DOWN[] = SELECT_AUDIT " WHERE tenant = $1 AND seq < $2"
                                                " ORDER BY seq DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, newest_first ? SQL_DOWN : SQL_UP, DB_I(filter->chain),
                                    DB_I(from), DB_I(PAGE_SCAN_MAX + 1));
    int64_t seen = 0;
    bool full = false;
    while (!full && db_next(rows)) {
        struct audit_row row = row_of(rows);
        full = ++seen > PAGE_SCAN_MAX || (passes(filter, &row.entry) && !each(ctx, &row));
        if (!full)
            from = row.seq;
    }
    *ret_next = full ? from : -1;
    return db_rows_end(rows);
}

enum err audit_next_joined(struct db *db, int64_t tenant, int64_t from, bool newest_first,
                           int64_t *ret)
{
    static const char SQL_UP[] = "SELECT chain FROM audit_chains WHERE tenant = $1 AND chain > $2"
                                 " ORDER BY chain LIMIT 1";
    static const char SQL_DOWN[] = "SELECT chain FROM audit_chains WHERE tenant = $1 AND chain < $2"
                                   " ORDER BY chain DESC LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, newest_first ? SQL_DOWN : SQL_UP, DB_I(tenant), DB_I(from));
    *ret = db_next(rows) ? db_count(rows, 0) : 0;
    return db_rows_end(rows);
}

/* --- checking --- */

const char *audit_fault_name(enum audit_fault fault)
{
    static const char *const NAMES[] = {
        [AUDIT_CHANGED] = "changed", [AUDIT_MISSING] = "missing", [AUDIT_ADDED] = "added"};
    return NAMES[fault];
}

struct walk {
    int64_t tenant;
    int64_t joined;       /* the number of the chain; 0: it is the tenant's own */
    int64_t hashed_as;    /* the tenant's number in its hashes */
    struct audit_head at; /* the last entry that was there */
    audit_break_each *each;
    void *ctx;
};

static void report(const struct walk *w, enum audit_fault fault, int64_t seq, int64_t at)
{
    struct audit_break broken = {fault, w->tenant, w->joined, seq, at};
    w->each(w->ctx, &broken);
}

/* After a gap the hash cannot be checked: only the gap is reported. */
static void step(struct walk *w, const struct audit_row *row, const struct audit_head *end)
{
    struct audit_entry entry = row->entry;
    entry.tenant = w->hashed_as;
    struct sha256 right = hash_entry(&w->at.hash, row->seq, &entry);
    if (row->seq != w->at.seq + 1)
        report(w, AUDIT_MISSING, w->at.seq + 1, -1);
    else if (row->seq == end->seq + 1)
        report(w, AUDIT_ADDED, row->seq, row->entry.at);
    else if (!sha256_eq(&row->hash, &right) ||
             (row->seq == end->seq && !sha256_eq(&row->hash, &end->hash)))
        report(w, AUDIT_CHANGED, row->seq, row->entry.at);
    w->at = (struct audit_head){row->seq, row->hash};
}

/* Whose chain is it, and what do its hashes say? */
static enum err find_chain(struct db *db, int64_t chain, struct walk *w)
{
    static const char SQL[] = "SELECT tenant, hashed_as FROM audit_chains WHERE chain = $1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(chain));
    bool has_joined = db_next(rows);
    w->tenant = has_joined ? db_count(rows, 0) : chain;
    w->hashed_as = has_joined ? db_count(rows, 1) : chain;
    w->joined = has_joined ? chain : 0;
    return db_rows_end(rows);
}

static enum err kept_end(struct db *db, int64_t chain, struct audit_head *ret)
{
    static const char SQL[] = "SELECT seq, hash FROM audit_heads WHERE tenant = $1";
    *ret = (struct audit_head){0};
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(chain));
    if (db_next(rows))
        *ret = (struct audit_head){db_int(rows, 0), db_hash(rows, 1)};
    (void)db_skip_damaged(rows); /* it fits no entry */
    return db_rows_end(rows);
}

enum err audit_verify(struct db *db, int64_t chain, audit_break_each *each, void *ctx,
                      int64_t *checked, struct audit_head *ret_head)
{
    static const char SQL[] = SELECT_AUDIT " WHERE tenant = $1 ORDER BY seq";
    struct audit_head end;
    struct walk w = {.each = each, .ctx = ctx};
    enum err e = find_chain(db, chain, &w);
    if (e == ERR_OK)
        e = kept_end(db, chain, &end);
    if (e != ERR_OK)
        return e;
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(chain));
    while (db_next(rows)) {
        struct audit_row row = row_of(rows);
        (void)db_skip_damaged(rows); /* it is not what was written */
        step(&w, &row, &end);
        ++*checked;
    }
    e = db_rows_end(rows);
    if (e == ERR_OK && w.at.seq < end.seq)
        report(&w, AUDIT_MISSING, w.at.seq + 1, -1);
    *ret_head = w.at;
    return e;
}

/* -1: there is none after it. */
static enum err next_chain(struct db *db, int64_t after, int64_t *ret)
{
    static const char SQL[] =
        "SELECT MIN(tenant) FROM (SELECT MIN(tenant) AS tenant FROM audit_heads WHERE tenant > $1"
        " UNION ALL SELECT MIN(tenant) FROM audit WHERE tenant > $1) AS firsts";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after));
    *ret = db_next(rows) ? db_int_or(rows, 0, -1) : -1;
    return db_rows_end(rows);
}

enum err audit_verify_all(struct db *db, audit_break_each *each, void *ctx, int64_t *checked)
{
    struct audit_head ignored;
    int64_t chain;
    enum err e = next_chain(db, -1, &chain);
    while (e == ERR_OK && chain >= 0) {
        e = audit_verify(db, chain, each, ctx, checked, &ignored);
        if (e == ERR_OK)
            e = next_chain(db, chain, &chain);
    }
    return e;
}
