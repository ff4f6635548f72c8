/* Rebuilds the data that is derived from the runs. */
#include "store/doctor/repair.h"

#include "base/limits.h"
#include "store/claim_queues.h"
#include "store/columns.h"
#include "store/doctor/check.h"
#include "store/doctor/derived.h"
#include "store/row_cache.h"
#include "store/run/late_index.h"
#include "store/run/run_queue.h"
#include "store/run/runs.h"

#define RUN_IS_LIVE "(" RUN_HOLDS_SLOT " OR " RUN_IS_IN_LINE ")"
#define SLOT_IS_LISTED LIST_HAS("COALESCE(r.scopes, '')", "slots.scope")
#define LINE_IS_LISTED LIST_HAS("l.scopes", "line_scopes.scope")
#define WAITS_FOR_OWN LIST_HAS("lines.scopes", "lines.waits_for")
#define FIRST_URGENCY FIRST_IN_LINE("lines.num", "urgency")
#define FIRST_RUN FIRST_IN_LINE("lines.num", "run")

static enum err run_all(struct db *db, const char *const *statements, size_t count)
{
    claim_queues_clear(db_claim_queues(db));
    enum err e = ERR_OK;
    for (size_t i = 0; i < count && e == ERR_OK; i++)
        e = db_exec_values(db, statements[i], NULL, 0, NULL);
    return e;
}

/* --- lists --- */

static enum err exists(struct db_rows *rows, bool *ret)
{
    *ret = db_next(rows);
    return db_rows_end(rows);
}

enum err repair_has_scope(struct db *db, int64_t num, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM scopes WHERE num = $1";
    return exists(DB_QUERY(db, SQL, DB_I(num)), ret);
}

enum err repair_owns_scope(struct db *db, int64_t num, int64_t tenant, struct str workflow_id,
                           bool *ret)
{
    static const char SQL[] =
        "SELECT 1 FROM scopes WHERE num = $1 AND tenant = $2 AND workflow_id = $3";
    return exists(DB_QUERY(db, SQL, DB_I(num), DB_I(tenant), DB_T(workflow_id)), ret);
}

enum err repair_insert_scope(struct db *db, const struct limit_key_row *s)
{
    static const char SQL[] =
        "INSERT INTO scopes (num, tenant, workflow_id, path, key, active_runs, queued_runs)"
        " VALUES ($1, $2, $3, $4, $5, 0, 0)";
    assert(s->num > 0);
    return DB_EXEC(db, SQL, NULL, DB_I(s->num), DB_I(s->tenant), DB_T(s->workflow_id),
                   DB_T(s->path), DB_T(s->key));
}

enum err repair_set_list(struct db *db, int64_t run, struct str scopes)
{
    static const char SQL[] = "UPDATE runs SET scopes = $2 WHERE num = $1";
    enum err e = db_flush(db);
    if (e != ERR_OK)
        return e;
    row_cache_clear(db_row_cache(db));
    return DB_EXEC(db, SQL, NULL, DB_I(run), DB_T(scopes.len > 0 ? scopes : STR_NONE));
}

enum err repair_last_scope(struct db *db, int64_t *ret)
{
    static const char SQL[] = "SELECT COALESCE(max(num), 0) FROM"
                              " (SELECT max(num) AS num FROM scopes UNION ALL SELECT through"
                              " FROM indexed WHERE name = '" NUMBERS_MARK "') AS given";
    static const char SQL_LISTS[] =
        "SELECT scopes FROM runs WHERE scopes IS NOT NULL AND " RUN_IS_LIVE;
    struct db_rows *rows = db_query_values(db, SQL, NULL, 0);
    *ret = db_next(rows) ? db_int(rows, 0) : 0;
    enum err e = db_rows_end(rows);
    if (e != ERR_OK)
        return e;
    rows = db_query_values(db, SQL_LISTS, NULL, 0);
    while (db_next(rows)) {
        struct limit_key_list list = limit_key_list_parse(db_str(rows, 0));
        if (list.count > 0)
            *ret = MAX(*ret, list.nums[list.count - 1]);
    }
    return db_rows_end(rows);
}

/* Up to a slice of them; *ret_more: there may be others after *last. */
static enum err live_runs_slice(struct db *db, int64_t *last, live_run_each *each, void *ctx,
                                bool *ret_more)
{
    static const char SQL[] = "SELECT num, tenant, workflow_id, workflow_version, input, scopes"
                              " FROM runs WHERE num > $1 AND " RUN_IS_LIVE " ORDER BY num LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(*last), DB_I(ROWS_PER_SLICE));
    int64_t count = 0;
    bool more = true;
    while (more && db_next(rows)) {
        struct live_run run = {db_int(rows, 0), db_int(rows, 1), db_str(rows, 2),
                               db_int(rows, 3), db_str(rows, 4), db_str(rows, 5)};
        more = each(ctx, &run);
        *last = run.num;
        count++;
    }
    *ret_more = more && count == ROWS_PER_SLICE;
    return db_rows_end(rows);
}

enum err live_runs(struct db *db, int64_t after, live_run_each *each, void *ctx)
{
    enum err e = ERR_OK;
    bool more = true;
    while (e == ERR_OK && more)
        e = live_runs_slice(db, &after, each, ctx, &more);
    return e;
}

/* --- slots --- */

enum { SCOPES_PAGE = 64 };

/* The rows of a table with a list of scopes, a page at a time, and a row for each scope of a list
 * where it is missing. */
static enum err fill_in_scopes(struct db *db, const char *sql_page, const char *sql_insert)
{
    struct {
        int64_t num;
        struct limit_key_list list;
    } page[SCOPES_PAGE];
    size_t count;
    int64_t after = 0;
    do {
        struct db_rows *rows = DB_QUERY(db, sql_page, DB_I(after), DB_I(SCOPES_PAGE));
        for (count = 0; db_next(rows); count++) {
            page[count].num = after = db_int(rows, 0);
            page[count].list = limit_key_list_parse(db_str(rows, 1));
        }
        enum err e = db_rows_end(rows);
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < page[i].list.count && e == ERR_OK; k++)
                e = DB_EXEC(db, sql_insert, NULL, DB_I(page[i].list.nums[k]), DB_I(page[i].num));
        }
        if (e != ERR_OK)
            return e;
    } while (count == SCOPES_PAGE);
    return ERR_OK;
}

static enum err mend_slots(struct db *db)
{
    static const char SQL_STRAY[] =
        "DELETE FROM slots WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.num = slots.run"
        " AND " RUN_HOLDS_SLOT " AND " SLOT_IS_LISTED ")";
    static const char SQL_RUNS[] =
        "SELECT num, scopes FROM runs WHERE num > $1"
        " AND scopes IS NOT NULL AND " RUN_HOLDS_SLOT " ORDER BY num LIMIT $2";
    static const char SQL_SLOT[] = "INSERT INTO slots (scope, run) VALUES ($1, $2)"
                                   " ON CONFLICT (scope, run) DO NOTHING";
    enum err e = db_exec_values(db, SQL_STRAY, NULL, 0, NULL);
    return e == ERR_OK ? fill_in_scopes(db, SQL_RUNS, SQL_SLOT) : e;
}

/* --- the queue --- */

/* The first queued run behind `after` that does not stand in its line is put there. One at a time,
 * since lines change with each. */
static enum err put_into_line(struct db *db, int64_t *after, bool *ret_more)
{
    static const char SQL[] =
        "SELECT r.num, r.tenant, r.priority, r.scopes FROM runs r"
        " LEFT JOIN lines l ON l.tenant = r.tenant AND l.scopes = COALESCE(r.scopes, '')"
        " LEFT JOIN queue q ON q.line = l.num AND q.urgency = -r.priority AND q.run = r.num"
        " WHERE r.num > $1 AND " RUN_IS_IN_LINE " AND q.run IS NULL ORDER BY r.num LIMIT 1";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(*after));
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    struct str scopes = STR_NONE;
    int64_t tenant = 0;
    int64_t priority = 0;
    *ret_more = db_next(rows);
    if (*ret_more) {
        struct limit_key_list list = limit_key_list_parse(db_str(rows, 3));
        scopes = limit_key_list_text(&list, text);
        *after = db_int(rows, 0);
        tenant = db_int(rows, 1);
        priority = db_int(rows, 2);
    }
    enum err e = db_rows_end(rows);
    if (e != ERR_OK || !*ret_more)
        return e;
    return queue_insert(db, tenant, scopes, 0, -priority, *after);
}

static enum err list_lines(struct db *db)
{
    static const char SQL_LINES[] = "SELECT num, scopes FROM lines WHERE num > $1"
                                    " AND scopes <> '' ORDER BY num LIMIT $2";
    static const char SQL_SCOPE[] = "INSERT INTO line_scopes (scope, line) VALUES ($1, $2)"
                                    " ON CONFLICT (scope, line) DO NOTHING";
    return fill_in_scopes(db, SQL_LINES, SQL_SCOPE);
}

/* A line that waits for a limit of its own keeps waiting: the writer looks at all of them next. */
static enum err mend_queue(struct db *db)
{
    static const char *const STRAY[] = {
        "DELETE FROM queue WHERE NOT EXISTS (SELECT 1 FROM runs r, lines l"
        " WHERE r.num = queue.run AND l.num = queue.line AND " RUN_IS_IN_LINE
        " AND r.tenant = queue.tenant AND -r.priority = queue.urgency AND l.tenant = r.tenant"
        " AND l.scopes = COALESCE(r.scopes, ''))",
        "DELETE FROM lines WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.line = lines.num)",
        "DELETE FROM line_scopes WHERE NOT EXISTS (SELECT 1 FROM lines l"
        " WHERE l.num = line_scopes.line AND " LINE_IS_LISTED ")",
        "UPDATE lines SET urgency = " FIRST_URGENCY ", run = " FIRST_RUN
        " WHERE urgency <> " FIRST_URGENCY " OR run <> " FIRST_RUN,
        "UPDATE lines SET waits_for = 0 WHERE waits_for <> 0 AND NOT " WAITS_FOR_OWN,
    };
    enum err e = run_all(db, STRAY, ARRAY_LEN(STRAY));
    int64_t after = 0;
    for (bool more = true; e == ERR_OK && more;)
        e = put_into_line(db, &after, &more);
    return e == ERR_OK ? list_lines(db) : e;
}

/* --- counters --- */

static enum err mend_counters(struct db *db)
{
    static const char *const COUNTERS[] = {
        "UPDATE tenants SET rate_full_at = c.rate_full_at FROM logged_counters AS c"
        " WHERE c.tenant = tenants.num AND c.rate_full_at = CAST(c.rate_full_at AS BIGINT)",
        "INSERT INTO indexed (name, through) VALUES ('counters', " FEED_END ")"
        " ON CONFLICT (name) DO UPDATE SET through = excluded.through"
        " WHERE indexed.through > excluded.through OR EXISTS (SELECT 1 FROM counter_lists)",
        "UPDATE scopes SET active_runs = c.n FROM (SELECT s.num, count(x.run) AS n FROM scopes s"
        " LEFT JOIN slots x ON x.scope = s.num GROUP BY s.num) AS c"
        " WHERE c.num = scopes.num AND scopes.active_runs <> c.n",
        "UPDATE scopes SET queued_runs = c.n FROM (SELECT s.num, count(q.run) AS n FROM scopes s"
        " LEFT JOIN line_scopes x ON x.scope = s.num LEFT JOIN queue q ON q.line = x.line"
        " GROUP BY s.num) AS c WHERE c.num = scopes.num AND scopes.queued_runs <> c.n",
        "DELETE FROM scopes WHERE active_runs = 0 AND queued_runs = 0",
        "UPDATE tenants SET active_runs = c.n FROM (SELECT t.num, COALESCE(a.n, 0) AS n"
        " FROM tenants t LEFT JOIN (SELECT tenant, count(*) AS n FROM runs WHERE " RUN_HOLDS_SLOT
        " GROUP BY tenant) AS a ON a.tenant = t.num) AS c"
        " WHERE c.num = tenants.num AND tenants.active_runs <> c.n",
        "UPDATE tenants SET queued_runs = c.n FROM (SELECT t.num, COALESCE(a.n, 0) AS n"
        " FROM tenants t LEFT JOIN (SELECT tenant, count(*) AS n FROM queue GROUP BY tenant) AS a"
        " ON a.tenant = t.num) AS c WHERE c.num = tenants.num AND tenants.queued_runs <> c.n",
    };
    return run_all(db, COUNTERS, ARRAY_LEN(COUNTERS));
}

enum err repair_admission(struct db *db)
{
    enum err e = mend_slots(db);
    if (e != ERR_OK)
        return e;
    e = mend_queue(db);
    return e == ERR_OK ? mend_counters(db) : e;
}

/* --- indexes, timers --- */

/* An index without its mark starts empty, and the writer fills it as usual. */
enum err repair_indexes(struct db *db)
{
    static const char *const INDEXES[] = {
        "INSERT INTO indexed (name, through) VALUES ('runs', 0), ('idempotency', 0),"
        " ('run_keys', 0)"
        " ON CONFLICT (name) DO NOTHING",
        "UPDATE indexed SET through = (SELECT COALESCE(max(num), 0) FROM runs)"
        " WHERE name = 'runs' AND through > (SELECT COALESCE(max(num), 0) FROM runs)",
        "DELETE FROM holding WHERE run > " RUNS_THROUGH
        " OR NOT EXISTS (SELECT 1 FROM runs r WHERE r.num = holding.run"
        " AND r.tenant = holding.tenant AND " RUN_HOLDS_SLOT ")",
        "INSERT INTO holding (tenant, run) SELECT r.tenant, r.num FROM runs r"
        " WHERE r.num <= " RUNS_THROUGH " AND " RUN_HOLDS_SLOT
        " AND NOT EXISTS (SELECT 1 FROM holding x WHERE x.tenant = r.tenant AND x.run = r.num)",
    };
    struct check_result wrong = {0};
    enum err e = run_all(db, INDEXES, ARRAY_LEN(INDEXES));
    if (e == ERR_OK)
        e = check_area(db, CHECK_INDEXES, CHECK_FULL, NULL, NULL, &wrong);
    return e == ERR_OK && wrong.found > 0 ? late_index_rebuild(db) : e;
}

enum err repair_first_jobs(struct db *db)
{
    static const char *const FIRST_JOBS[] = {
        "DELETE FROM first_jobs WHERE NOT EXISTS (SELECT 1 FROM first_jobs f"
        " JOIN runs r ON " IS_IN_QUEUE " WHERE f.queue = first_jobs.queue"
        " AND f.tenant = first_jobs.tenant AND f.urgency = first_jobs.urgency"
        " AND f.run = first_jobs.run AND " FIRST_IS_IN_RUN ")",
        "INSERT INTO first_jobs (queue, tenant, urgency, run)"
        " SELECT r.first_queue, r.tenant, -r.priority, r.num FROM runs r WHERE r.first_queue <> '' "
        "AND " FIRST_IS_IN_RUN " AND NOT EXISTS (SELECT 1 FROM first_jobs f WHERE " IS_IN_QUEUE ")",
    };
    return run_all(db, FIRST_JOBS, ARRAY_LEN(FIRST_JOBS));
}

enum err repair_timers(struct db *db)
{
    static const char *const TIMERS[] = {
        "DELETE FROM timers WHERE ordinal > 0 AND NOT EXISTS (SELECT 1 FROM jobs j"
        " WHERE j.run = timers.run AND j.ordinal = timers.ordinal AND (" JOB_HAS_CHILD
        " OR (" JOB_MAY_WAIT " AND j.due_at = timers.due_at"
        " AND j.lease_epoch = timers.generation)))"
        " AND NOT EXISTS (SELECT 1 FROM runs r JOIN timers t ON " IS_FIRST_TIMER
        " WHERE r.num = timers.run AND t.due_at = timers.due_at AND t.ordinal = timers.ordinal"
        " AND t.generation = timers.generation AND " FIRST_IS_IN_RUN ")",
        "INSERT INTO timers (due_at, run, ordinal, generation)"
        " SELECT j.due_at, j.run, j.ordinal, j.lease_epoch FROM jobs j"
        " WHERE " JOB_MAY_WAIT " AND j.due_at IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.due_at = j.due_at AND t.run = j.run"
        " AND t.ordinal = j.ordinal)",
        "INSERT INTO timers (due_at, run, ordinal, generation)"
        " SELECT r.first_due, r.num, 1, 0 FROM runs r WHERE r.first_due IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM timers t WHERE " IS_FIRST_TIMER ") AND " FIRST_IS_IN_RUN,
        /* The run's own: its start, or its deadline, which does no harm when it has passed. */
        "INSERT INTO timers (due_at, run, ordinal, generation)"
        " SELECT COALESCE(r.start_at, r.deadline_at), r.num, 0, 0 FROM runs r"
        " WHERE (" RUN_IS_DELAYED " OR (" RUN_IS_ACTIVE " AND r.deadline_at IS NOT NULL))"
        " AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.run = r.num AND t.ordinal = 0)",
        /* An entity's own: one that is due later than it says was put off. */
        "DELETE FROM timers WHERE ordinal = " ENTITY_TIMER
        " AND NOT EXISTS (SELECT 1 FROM entities e WHERE e.num = timers.run"
        " AND " ENTITY_IS_ARMED " AND e.timer_at <= timers.due_at)",
        "INSERT INTO timers (due_at, run, ordinal, generation)"
        " SELECT e.timer_at, e.num, " ENTITY_TIMER ", 0 FROM entities e WHERE " ENTITY_IS_ARMED
        " AND e.num NOT IN (SELECT run FROM timers WHERE ordinal = " ENTITY_TIMER ")",
        "INSERT INTO timers (due_at, run, ordinal, generation)"
        " SELECT e.active_at, e.num, " ENTITY_START_TIMER ", 0 FROM entities e"
        " WHERE e.num IN (SELECT entity FROM entity_starts)"
        " AND e.num NOT IN (SELECT run FROM timers WHERE ordinal = " ENTITY_START_TIMER ")",
        "UPDATE indexed SET through = " FEED_END " WHERE name = 'timers' AND through > " FEED_END,
    };
    return run_all(db, TIMERS, ARRAY_LEN(TIMERS));
}
