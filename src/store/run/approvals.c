/* Approvals and votes as rows. */
#include "store/run/approvals.h"

#include "base/limits.h"
#include "store/columns.h"

#define COLUMN_BIND_APPROVAL_STATUS(value) COLUMN_BIND_WORD(approval_status_name(value))
#define COLUMN_READ_APPROVAL_STATUS(rows, at) \
    COLUMN_READ_WORD(rows, at, approval_status_of, APPROVAL_STATUS_COUNT)
#define COLUMN_KEEP_APPROVAL_STATUS(arena, value)

#define APPROVAL_COLUMNS(X, p)                         \
    X(p, 1, INT, run, run)                             \
    X(p, 2, COUNT, ordinal, ordinal)                   \
    X(p, 3, INT, tenant, tenant)                       \
    X(p, 4, APPROVAL_STATUS, status, status)           \
    X(p, 5, TEXT, prompt, prompt)                      \
    X(p, 6, TEXT, content, content)                    \
    X(p, 7, TEXT, content_hash, content_hash)          \
    X(p, 8, TEXT, requested_by, requested_by)          \
    X(p, 9, TIME, requested_at, requested_at)          \
    X(p, 10, TIME_OR_NONE, expires_at, expires_at)     \
    X(p, 11, COUNT, reminded, reminded)                \
    X(p, 12, TIME_OR_NONE, escalated_at, escalated_at) \
    X(p, 13, COUNT, votes, votes)                      \
    X(p, 14, TEXT, decided_by, decided_by)             \
    X(p, 15, TIME_OR_NONE, decided_at, decided_at)     \
    X(p, 16, TEXT, reason, reason)                     \
    X(p, 17, TEXT, edited, edited)                     \
    X(p, 18, COUNT, replays, replays)                  \
    X(p, 19, COUNT, conflicts, conflicts)              \
    X(p, 20, COUNT_OR_NONE, asker, asker)              \
    X(p, 21, TEXT, ask, ask_text)
COLUMNS_NUMBERED(APPROVAL_COLUMNS, APPROVAL);

#define SELECT_APPROVALS COLUMNS_SELECT(APPROVAL_COLUMNS, "") " FROM approvals"

enum err approvals_insert(struct db *db, const struct approval *a)
{
    static const char SQL[] = COLUMNS_INSERT("approvals", APPROVAL_COLUMNS);
    return DB_EXEC(db, SQL, NULL, APPROVAL_COLUMNS(COLUMN_BIND, a));
}

static void read_row(struct db_rows *rows, struct approval *a)
{
    *a = (struct approval){APPROVAL_COLUMNS(COLUMN_READ, rows)};
}

COLUMNS_READ_ONE(read_one, struct approval, APPROVAL_COLUMNS, read_row);

enum err approvals_find(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                        bool *ret_found, struct approval *ret)
{
    static const char SQL[] = SELECT_APPROVALS " WHERE run = $1 AND ordinal = $2";
    return read_one(DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal)), arena, ret_found, ret);
}

enum err approvals_update(struct db *db, const struct approval *a, struct str shown)
{
    static const char SQL[] =
        "UPDATE approvals SET status = $4, content = $5, content_hash = $6, reminded = $7,"
        " escalated_at = $8, votes = $9, decided_by = $10, decided_at = $11, reason = $12,"
        " edited = $13"
        " WHERE run = $1 AND ordinal = $2 AND status = 'pending' AND content_hash = $3";
    int64_t changed = 0;
    enum err e = DB_EXEC(db, SQL, &changed, DB_I(a->run), DB_I(a->ordinal), DB_T(shown),
                         DB_T(str_of(approval_status_name(a->status))), DB_T(a->content),
                         DB_T(a->content_hash), DB_I(a->reminded), DB_I_OR_NULL(a->escalated_at),
                         DB_I(a->votes), DB_T(a->decided_by), DB_I_OR_NULL(a->decided_at),
                         DB_T(a->reason), DB_T(a->edited));
    return e == ERR_OK && changed != 1 ? ERR_CONCURRENT_APPROVAL : e;
}

enum err approvals_void(struct db *db, int64_t run, int64_t ordinal)
{
    static const char SQL[] = "UPDATE approvals SET status = 'void'"
                              " WHERE run = $1 AND ordinal = $2 AND status = 'pending'";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal));
}

enum err approvals_count(struct db *db, int64_t run, int64_t ordinal, bool conflict)
{
    static const char SQL[] = "UPDATE approvals SET replays = replays + $3,"
                              " conflicts = conflicts + $4 WHERE run = $1 AND ordinal = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal), DB_I(!conflict), DB_I(conflict));
}

/* The place of a row in the list. */
struct place {
    int64_t at, run, ordinal;
};

/* Behind the place, in the order of the list. */
static struct db_rows *slice_behind(struct db *db, int64_t tenant, enum approval_status status,
                                    bool oldest_first, const struct place *place)
{
    static const char SQL_ALL[] =
        SELECT_APPROVALS " WHERE tenant = $1"
                         " AND (requested_at, run, ordinal) < ($2, $3, $4)"
                         " ORDER BY requested_at DESC, run DESC, ordinal DESC LIMIT $5";
    static const char SQL_STATUS[] =
        SELECT_APPROVALS " WHERE tenant = $1"
                         " AND (requested_at, run, ordinal) < ($2, $3, $4)"
                         " AND status = $6"
                         " ORDER BY requested_at DESC, run DESC, ordinal DESC LIMIT $5";
    static const char SQL_ALL_OLDEST[] =
        SELECT_APPROVALS " WHERE tenant = $1"
                         " AND (requested_at, run, ordinal) > ($2, $3, $4)"
                         " ORDER BY requested_at, run, ordinal LIMIT $5";
    static const char SQL_STATUS_OLDEST[] =
        SELECT_APPROVALS " WHERE tenant = $1"
                         " AND (requested_at, run, ordinal) > ($2, $3, $4)"
                         " AND status = $6"
                         " ORDER BY requested_at, run, ordinal LIMIT $5";
    if (status == APPROVAL_STATUS_COUNT)
        return DB_QUERY(db, oldest_first ? SQL_ALL_OLDEST : SQL_ALL, DB_I(tenant), DB_I(place->at),
                        DB_I(place->run), DB_I(place->ordinal), DB_I(ROWS_PER_SLICE));
    return DB_QUERY(db, oldest_first ? SQL_STATUS_OLDEST : SQL_STATUS, DB_I(tenant),
                    DB_I(place->at), DB_I(place->run), DB_I(place->ordinal), DB_I(ROWS_PER_SLICE),
                    DB_T(str_of(approval_status_name(status))));
}

enum err approvals_list(struct db *db, int64_t tenant, enum approval_status status,
                        bool oldest_first, const int64_t *behind, approval_each *each, void *ctx)
{
    int64_t edge = oldest_first ? -1 : INT64_MAX;
    struct place place = {edge, edge, edge};
    if (behind != NULL)
        place = (struct place){behind[0], behind[1], behind[2]};
    int64_t count = ROWS_PER_SLICE;
    bool more = true;
    enum err e = ERR_OK;
    while (e == ERR_OK && more && count == ROWS_PER_SLICE) {
        struct db_rows *rows = slice_behind(db, tenant, status, oldest_first, &place);
        for (count = 0; more && db_next(rows); count++) {
            struct approval a;
            read_row(rows, &a);
            place = (struct place){a.requested_at, a.run, a.ordinal};
            more = db_skip_damaged(rows) || each(ctx, &a);
        }
        e = db_rows_end(rows);
    }
    return e;
}

/* --- votes --- */

enum err votes_insert(struct db *db, int64_t run, int64_t ordinal, const struct vote *v)
{
    static const char SQL[] = "INSERT INTO approval_votes (run, ordinal, actor, at, reason)"
                              " VALUES ($1, $2, $3, $4, $5)";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal), DB_T(v->actor), DB_I(v->at),
                   DB_T(v->reason));
}

enum err votes_has(struct db *db, int64_t run, int64_t ordinal, struct str actor, bool *ret)
{
    static const char SQL[] =
        "SELECT 1 FROM approval_votes WHERE run = $1 AND ordinal = $2 AND actor = $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal), DB_T(actor));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

enum err votes_clear(struct db *db, int64_t run, int64_t ordinal)
{
    static const char SQL[] = "DELETE FROM approval_votes WHERE run = $1 AND ordinal = $2";
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_I(ordinal));
}

enum err votes_list(struct db *db, int64_t run, int64_t ordinal, vote_each *each, void *ctx)
{
    static const char SQL[] = "SELECT actor, at, reason FROM approval_votes"
                              " WHERE run = $1 AND ordinal = $2 ORDER BY at, actor";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    while (db_next(rows)) {
        struct vote v = {db_str(rows, 0), db_time(rows, 1), db_str(rows, 2)};
        if (!db_skip_damaged(rows))
            each(ctx, &v);
    }
    return db_rows_end(rows);
}

/* --- statistics --- */

enum err approvals_facts(struct db *db, int64_t tenant, int64_t since, int64_t limit,
                         approval_fact_each *each, void *ctx)
{
    static const char SQL[] =
        "SELECT r.workflow_id, a.status, a.requested_at, a.decided_at, a.replays, a.conflicts"
        " FROM approvals a JOIN runs r ON r.num = a.run"
        " WHERE a.tenant = $1 AND a.requested_at >= $2 ORDER BY a.requested_at DESC LIMIT $3";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(tenant), DB_I(since), DB_I(limit));
    while (db_next(rows)) {
        struct approval_fact fact = {
            db_str(rows, 0),
            db_known(rows, 1, approval_status_of(db_str(rows, 1)), APPROVAL_STATUS_COUNT),
            db_int(rows, 2),
            db_int_or(rows, 3, -1),
            db_int(rows, 4),
            db_int(rows, 5)};
        if (!db_skip_damaged(rows))
            each(ctx, &fact);
    }
    return db_rows_end(rows);
}
