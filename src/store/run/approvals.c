/* Approvals and votes as rows. */
#include "store/run/approvals.h"

#define COLUMNS                                                                         \
    "run, ordinal, tenant, status, prompt, content, content_hash, requested_by, "       \
    "requested_at, expires_at, reminded, escalated_at, votes, decided_by, decided_at, " \
    "reason, edited, replays, conflicts"

enum err approvals_insert(struct db *db, const struct approval *a)
{
    static const char SQL[] =
        "INSERT INTO approvals (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,"
        " $12, $13, $14, $15, $16, $17, $18, $19)";
    return DB_EXEC(db, SQL, NULL, DB_I(a->run), DB_I(a->ordinal), DB_I(a->tenant),
                   DB_T(str_of(approval_status_name(a->status))), DB_T(a->prompt), DB_T(a->content),
                   DB_T(a->content_hash), DB_T(a->requested_by), DB_I(a->requested_at),
                   DB_I_OR_NULL(a->expires_at), DB_I(a->reminded), DB_I_OR_NULL(a->escalated_at),
                   DB_I(a->votes), DB_T(a->decided_by), DB_I_OR_NULL(a->decided_at),
                   DB_T(a->reason), DB_T(a->edited), DB_I(a->replays), DB_I(a->conflicts));
}

static void read_row(struct db_rows *rows, struct approval *a)
{
    *a = (struct approval){
        .run = db_int(rows, 0),
        .ordinal = db_count(rows, 1),
        .tenant = db_int(rows, 2),
        .status = db_known(rows, 3, approval_status_of(db_str(rows, 3)), APPROVAL_STATUS_COUNT),
        .prompt = db_str(rows, 4),
        .content = db_str(rows, 5),
        .content_hash = db_str(rows, 6),
        .requested_by = db_str(rows, 7),
        .requested_at = db_time(rows, 8),
        .expires_at = db_time_or(rows, 9, -1),
        .reminded = db_count(rows, 10),
        .escalated_at = db_time_or(rows, 11, -1),
        .votes = db_count(rows, 12),
        .decided_by = db_str(rows, 13),
        .decided_at = db_time_or(rows, 14, -1),
        .reason = db_str(rows, 15),
        .edited = db_str(rows, 16),
        .replays = db_count(rows, 17),
        .conflicts = db_count(rows, 18),
    };
}

enum err approvals_find(struct db *db, int64_t run, int64_t ordinal, struct arena *arena,
                        bool *ret_found, struct approval *ret)
{
    static const char SQL[] = "SELECT " COLUMNS " FROM approvals WHERE run = $1 AND ordinal = $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(run), DB_I(ordinal));
    bool full = false;
    *ret_found = db_next(rows);
    if (*ret_found) {
        read_row(rows, ret);
        full = !(arena_keep(arena, &ret->prompt) && arena_keep(arena, &ret->content) &&
                 arena_keep(arena, &ret->content_hash) && arena_keep(arena, &ret->requested_by) &&
                 arena_keep(arena, &ret->decided_by) && arena_keep(arena, &ret->reason) &&
                 arena_keep(arena, &ret->edited));
    }
    enum err e = db_rows_end(rows);
    return e == ERR_OK && full ? ERR_NO_MEMORY : e;
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

enum err approvals_list(struct db *db, int64_t tenant, enum approval_status status,
                        int64_t before_at, int64_t before_run, int64_t before_ordinal,
                        approval_each *each, void *ctx)
{
    static const char SQL_ALL[] = "SELECT " COLUMNS " FROM approvals WHERE tenant = $1"
                                  " AND (requested_at, run, ordinal) < ($2, $3, $4)"
                                  " ORDER BY requested_at DESC, run DESC, ordinal DESC";
    static const char SQL_STATUS[] = "SELECT " COLUMNS " FROM approvals WHERE tenant = $1"
                                     " AND (requested_at, run, ordinal) < ($2, $3, $4)"
                                     " AND status = $5"
                                     " ORDER BY requested_at DESC, run DESC, ordinal DESC";
    struct db_rows *rows =
        status == APPROVAL_STATUS_COUNT
            ? DB_QUERY(db, SQL_ALL, DB_I(tenant), DB_I(before_at), DB_I(before_run),
                       DB_I(before_ordinal))
            : DB_QUERY(db, SQL_STATUS, DB_I(tenant), DB_I(before_at), DB_I(before_run),
                       DB_I(before_ordinal), DB_T(str_of(approval_status_name(status))));
    bool more = true;
    while (more && db_next(rows)) {
        struct approval a;
        read_row(rows, &a);
        more = db_skip_damaged(rows) || each(ctx, &a);
    }
    return db_rows_end(rows);
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
