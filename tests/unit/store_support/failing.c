/* A decorator that makes the Nth call fail. */
#include "store/sqlite/sqlite.h"
#include "store_support/decorated.h"
#include "store_support/stores.h"

#include <pthread.h>
#include <stdlib.h>

/* --- the plan: one for the program, as its threads share one store --- */

static struct {
    pthread_mutex_t lock;
    bool armed;
    bool fired;
    int64_t calls;
    struct fault fault;
} plan = {.lock = PTHREAD_MUTEX_INITIALIZER};

void failing_arm(const struct fault *fault)
{
    assert(fault->nth >= 1 && fault->err != ERR_OK);
    pthread_mutex_lock(&plan.lock);
    plan.armed = true;
    plan.fired = false;
    plan.calls = 0;
    plan.fault = *fault;
    pthread_mutex_unlock(&plan.lock);
}

void failing_disarm(void)
{
    pthread_mutex_lock(&plan.lock);
    plan.armed = false;
    pthread_mutex_unlock(&plan.lock);
}

bool failing_has_fired(void)
{
    pthread_mutex_lock(&plan.lock);
    bool fired = plan.fired;
    pthread_mutex_unlock(&plan.lock);
    return fired;
}

/* --- the plan of one thread --- */

static _Thread_local int64_t left_here; /* calls until the first that fails; 0: not armed */
static _Thread_local bool fired_here;

void failing_arm_here(int64_t nth)
{
    assert(nth >= 1);
    left_here = nth;
    fired_here = false;
}

bool failing_disarm_here(void)
{
    left_here = 0;
    return fired_here;
}

static bool fails_here(void)
{
    if (left_here > 1) {
        left_here--;
        return false;
    }
    fired_here |= left_here == 1;
    return left_here == 1;
}

/* Counts a call: ERR_OK, or the error that it must fail with. */
static enum err count_call(const struct db *base, bool *ret_happened)
{
    enum err e = fails_here() ? ERR_STORE_BUSY : ERR_OK;
    pthread_mutex_lock(&plan.lock);
    if (plan.armed && !plan.fault.at_housekeeping &&
        ((const struct decorated *)base)->access == plan.fault.access) {
        plan.calls++;
        if (plan.fault.lasting ? plan.calls >= plan.fault.nth : plan.calls == plan.fault.nth)
            e = plan.fault.err;
        plan.fired |= e != ERR_OK;
    }
    if (ret_happened != NULL)
        *ret_happened = plan.fault.commit_happened;
    pthread_mutex_unlock(&plan.lock);
    return e;
}

/* --- statements --- */

struct failing_rows {
    struct db_rows base;
    struct db_rows *inner; /* NULL: the query failed here */
};

static struct db_rows *inner_of(struct db_rows *base)
{
    return CONTAINER_OF(base, struct failing_rows, base)->inner;
}

static enum err failing_exec(struct db *base, const char *sql, const struct db_value *values,
                             size_t count, int64_t *ret_changed)
{
    enum err e = count_call(base, NULL);
    return e != ERR_OK ? e : db_exec_values(decorated_inner(base), sql, values, count, ret_changed);
}

static struct db_rows *failing_query(struct db *base, const char *sql,
                                     const struct db_value *values, size_t count)
{
    struct failing_rows *rows = calloc(1, sizeof(*rows));
    assert(rows != NULL);
    rows->base = (struct db_rows){.db = base, .sql = sql, .open = true};
    rows->base.err = count_call(base, NULL);
    if (rows->base.err == ERR_OK)
        rows->inner = db_query_values(decorated_inner(base), sql, values, count);
    return &rows->base;
}

static bool failing_next(struct db_rows *base)
{
    struct db_rows *inner = inner_of(base);
    base->err = count_call(base->db, NULL);
    if (base->err != ERR_OK)
        return false;
    bool more = db_next(inner);
    base->err = inner->err;
    return more;
}

static void failing_end(struct db_rows *base)
{
    struct failing_rows *rows = CONTAINER_OF(base, struct failing_rows, base);
    if (rows->inner != NULL)
        (void)!db_rows_end(rows->inner); /* its error is ours already */
    free(rows);
}

static struct db_value failing_column(struct db_rows *base, int column)
{
    struct db_rows *inner = inner_of(base);
    return inner->db->ops->column(inner, column);
}

static int failing_column_count(struct db_rows *base)
{
    struct db_rows *inner = inner_of(base);
    return inner->db->ops->column_count(inner);
}

static const char *failing_column_name(struct db_rows *base, int column)
{
    struct db_rows *inner = inner_of(base);
    return inner->db->ops->column_name(inner, column);
}

/* --- transactions --- */

static enum err failing_begin(struct db *base)
{
    enum err e = count_call(base, NULL);
    return e != ERR_OK ? e : db_begin(decorated_inner(base));
}

static enum err failing_commit(struct db *base, enum db_outcome *ret_outcome)
{
    struct db *inner = decorated_inner(base);
    bool happened;
    enum err e = count_call(base, &happened);
    if (e == ERR_OK)
        return decorated_commit(base, ret_outcome);
    *ret_outcome = e == ERR_STORE_FAILED ? DB_IN_DOUBT : DB_ABORTED;
    if (e == ERR_STORE_FAILED && happened)
        (void)!db_commit(inner);
    else
        db_rollback(inner);
    return e;
}

static void failing_rollback(struct db *base)
{
    db_rollback(decorated_inner(base));
}

static int64_t failing_changes(const struct db *base)
{
    return db_changes(decorated_inner(base));
}

/* --- what SQLite offers besides --- */

static bool failing_wants_housekeeping(const struct db *base)
{
    return db_wants_housekeeping(decorated_inner(base));
}

static enum err failing_housekeep(struct db *base)
{
    pthread_mutex_lock(&plan.lock);
    bool fails = plan.armed && plan.fault.at_housekeeping && !plan.fired;
    plan.fired |= fails;
    pthread_mutex_unlock(&plan.lock);
    if (fails)
        return plan.fault.err;
    return db_housekeep(decorated_inner(base));
}

static int64_t failing_log_bytes(const struct db *base)
{
    return db_log_bytes(decorated_inner(base));
}

/* What it gives is the inner store's: its steps go there. */
static enum err failing_backup_begin(struct db *base, struct problem *p, struct db_backup **ret)
{
    return db_backup_begin(decorated_inner(base), p, ret);
}

static enum err failing_integrity_check(struct db *base, struct buf *found)
{
    return db_integrity_check(decorated_inner(base), found);
}

/* --- opening --- */

static void failing_close(struct db *base)
{
    db_close(decorated_inner(base));
    free(base);
}

static const struct db_log_ops LOG_OPS = {failing_wants_housekeeping, failing_housekeep,
                                          failing_log_bytes};
static const struct db_backup_ops BACKUP_OPS = {.begin = failing_backup_begin};

static const struct db_ops OPS = {
    .name = "a store that can fail",
    .close = failing_close,
    .exec = failing_exec,
    .query = failing_query,
    .next = failing_next,
    .end = failing_end,
    .column = failing_column,
    .column_count = failing_column_count,
    .column_name = failing_column_name,
    .begin = failing_begin,
    .commit = failing_commit,
    .sync = decorated_sync,
    .rollback = failing_rollback,
    .changes = failing_changes,
    .snapshot_begin = decorated_snapshot_begin,
    .snapshot_end = decorated_snapshot_end,
    .is_only_writer = decorated_is_only_writer,
    .schema_sql = SQLITE_SCHEMA_SQL,
    .log = &LOG_OPS,
    .backup = &BACKUP_OPS,
    .integrity_check = failing_integrity_check,
};

static enum err failing_open(const struct db_config *config, struct str address, struct problem *p,
                             struct db **ret)
{
    struct decorated *d = calloc(1, sizeof(*d));
    assert(d != NULL);
    enum err e = decorated_open(d, &OPS, config, address, p);
    if (e != ERR_OK) {
        free(d);
        return e;
    }
    *ret = &d->base;
    return ERR_OK;
}

const struct db_engine DB_ENGINE_FAILING = {
    {"failing:", 8}, "failing:PATH", "a store that can fail", failing_open};
