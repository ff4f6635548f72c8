/* A store that behaves as one across a network will (store/db.h):
 *  - a query's result is fetched whole when it is made;
 *  - in a transaction a statement without a count is kept, and run before the next query, the next
 *    counted statement or the commit; until then nobody hears of its errors;
 *  - after a statement has failed, every query fails until the rollback, and a commit aborts;
 *  - statements without a count are counted as one change each, whatever they do;
 *  - there is no log to fold back, no online copy and no check of the file. */
#include "store/sqlite/sqlite.h"
#include "store_support/decorated.h"
#include "store_support/stores.h"

#include <stdlib.h>

enum { UNREAD_MAX = 8 }; /* rows with one key, say */

struct kept_statement {
    struct kept_statement *next;
    const char *sql;
    size_t count;
    struct db_value values[]; /* their bytes are owned */
};

struct eager_db {
    struct decorated d;
    bool in_transaction;
    enum err failed; /* the first error of this transaction */
    int64_t changes;
    struct kept_statement *first, **last;
};

struct eager_rows {
    struct db_rows base;
    int columns;
    size_t rows;
    size_t at;              /* of the row after the current one */
    struct db_value *cells; /* their bytes are owned */
    const char **names;     /* of the columns; owned */
};

static struct eager_db *db_of(struct db *base)
{
    return (struct eager_db *)(void *)base; /* its first member's first member */
}

static struct eager_rows *rows_of(struct db_rows *base)
{
    return CONTAINER_OF(base, struct eager_rows, base);
}

/* --- values that outlive their statement --- */

static struct db_value copy_value(const struct db_value *v)
{
    struct db_value copy = *v;
    if (v->kind == DB_TEXT || v->kind == DB_BLOB) {
        char *bytes = malloc(v->bytes.len + 1); /* never of size 0 */
        assert(bytes != NULL);
        if (v->bytes.len > 0)
            memcpy(bytes, v->bytes.ptr, v->bytes.len);
        copy.bytes.ptr = bytes;
    }
    return copy;
}

static void free_values(struct db_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == DB_TEXT || values[i].kind == DB_BLOB)
            free((void *)(uintptr_t)values[i].bytes.ptr);
    }
}

/* --- statements that are kept --- */

static void keep(struct eager_db *db, const char *sql, const struct db_value *values, size_t count)
{
    struct kept_statement *s = calloc(1, sizeof(*s) + count * sizeof(struct db_value));
    assert(s != NULL);
    s->sql = sql;
    s->count = count;
    for (size_t i = 0; i < count; i++)
        s->values[i] = copy_value(&values[i]);
    *db->last = s;
    db->last = &s->next;
}

static void forget_kept(struct eager_db *db)
{
    while (db->first != NULL) {
        struct kept_statement *s = db->first;
        db->first = s->next;
        free_values(s->values, s->count);
        free(s);
    }
    db->last = &db->first;
}

/* Runs what was kept. After an error the rest is dropped. */
static enum err flush(struct eager_db *db)
{
    for (const struct kept_statement *s = db->first; s != NULL && db->failed == ERR_OK; s = s->next)
        db->failed = db_exec_values(db->d.inner, s->sql, s->values, s->count, NULL);
    forget_kept(db);
    return db->failed;
}

static enum err eager_exec(struct db *base, const char *sql, const struct db_value *values,
                           size_t count, int64_t *ret_changed)
{
    struct eager_db *db = db_of(base);
    if (ret_changed == NULL)
        db->changes++; /* it may change something */
    if (db->in_transaction && ret_changed == NULL) {
        keep(db, sql, values, count);
        return ERR_OK;
    }
    enum err e = flush(db);
    if (e != ERR_OK)
        return e;
    e = db_exec_values(db->d.inner, sql, values, count, ret_changed);
    if (db->in_transaction)
        db->failed = e;
    if (e == ERR_OK && ret_changed != NULL)
        db->changes += *ret_changed;
    return e;
}

/* --- results, fetched whole --- */

static void take_names(struct eager_rows *rows, struct db_rows *from)
{
    rows->columns = from->db->ops->column_count(from);
    rows->names = calloc((size_t)rows->columns + 1, sizeof(*rows->names));
    assert(rows->names != NULL);
    for (int i = 0; i < rows->columns; i++)
        rows->names[i] = strdup(from->db->ops->column_name(from, i));
}

static void take_row(struct eager_rows *rows, struct db_rows *from)
{
    if (rows->rows == 0)
        take_names(rows, from);
    size_t width = (size_t)rows->columns;
    if ((rows->rows & (rows->rows - 1)) == 0) { /* 0, 1, 2, 4 …: room for as many again */
        rows->cells =
            realloc(rows->cells, (rows->rows + 1) * 2 * width * sizeof(struct db_value) + 1);
        assert(rows->cells != NULL);
    }
    for (size_t i = 0; i < width; i++) {
        struct db_value v = from->db->ops->column(from, (int)i);
        rows->cells[rows->rows * width + i] = copy_value(&v);
    }
    rows->rows++;
}

static struct db_rows *eager_query(struct db *base, const char *sql, const struct db_value *values,
                                   size_t count)
{
    struct eager_db *db = db_of(base);
    struct eager_rows *rows = calloc(1, sizeof(*rows));
    assert(rows != NULL);
    rows->base = (struct db_rows){.db = base, .sql = sql, .open = true};
    rows->base.err = flush(db);
    if (rows->base.err != ERR_OK)
        return &rows->base;
    struct db_rows *from = db_query_values(db->d.inner, sql, values, count);
    while (db_next(from))
        take_row(rows, from);
    rows->base.err = db_rows_end(from);
    if (db->in_transaction)
        db->failed = rows->base.err;
    return &rows->base;
}

static bool eager_next(struct db_rows *base)
{
    struct eager_rows *rows = rows_of(base);
    if (rows->at == rows->rows)
        return false;
    rows->at++;
    return true;
}

static void eager_end(struct db_rows *base)
{
    struct eager_rows *rows = rows_of(base);
    /* What was fetched for nothing: a query that is left early says LIMIT. */
    assert(rows->rows - rows->at <= UNREAD_MAX || strstr(base->sql, "LIMIT") != NULL);
    free_values(rows->cells, rows->rows * (size_t)rows->columns);
    for (int i = 0; i < rows->columns; i++)
        free((void *)(uintptr_t)rows->names[i]);
    free(rows->names);
    free(rows->cells);
    free(rows);
}

static struct db_value eager_column(struct db_rows *base, int column)
{
    const struct eager_rows *rows = rows_of(base);
    assert(rows->at > 0 && column >= 0 && column < rows->columns);
    return rows->cells[(rows->at - 1) * (size_t)rows->columns + (size_t)column];
}

static int eager_column_count(struct db_rows *base)
{
    return rows_of(base)->columns;
}

static const char *eager_column_name(struct db_rows *base, int column)
{
    return rows_of(base)->names[column];
}

/* --- transactions --- */

static void over(struct eager_db *db)
{
    forget_kept(db);
    db->in_transaction = false;
    db->failed = ERR_OK;
}

static enum err eager_begin(struct db *base)
{
    struct eager_db *db = db_of(base);
    assert(!db->in_transaction);
    enum err e = db_begin(db->d.inner);
    db->in_transaction = e == ERR_OK;
    return e;
}

static enum err eager_commit(struct db *base, enum db_outcome *ret_outcome)
{
    struct eager_db *db = db_of(base);
    enum err e = flush(db);
    over(db);
    if (e == ERR_OK)
        return decorated_commit(base, ret_outcome);
    db_rollback(db->d.inner);
    *ret_outcome = e == ERR_STORE_FAILED ? DB_IN_DOUBT : DB_ABORTED;
    return e;
}

static void eager_rollback(struct db *base)
{
    over(db_of(base));
    db_rollback(decorated_inner(base));
}

static int64_t eager_changes(const struct db *base)
{
    return ((const struct eager_db *)(const void *)base)->changes;
}

/* --- opening --- */

static void eager_close(struct db *base)
{
    forget_kept(db_of(base));
    db_close(decorated_inner(base));
    free(base);
}

static const struct db_ops OPS = {
    .name = "an eager store",
    .close = eager_close,
    .exec = eager_exec,
    .query = eager_query,
    .next = eager_next,
    .end = eager_end,
    .column = eager_column,
    .column_count = eager_column_count,
    .column_name = eager_column_name,
    .begin = eager_begin,
    .commit = eager_commit,
    .sync = decorated_sync,
    .rollback = eager_rollback,
    .changes = eager_changes,
    .snapshot_begin = decorated_snapshot_begin,
    .snapshot_end = decorated_snapshot_end,
    .is_only_writer = decorated_is_only_writer,
    .schema_sql = SQLITE_SCHEMA_SQL,
};

static enum err eager_open(const struct db_config *config, struct str address, struct problem *p,
                           struct db **ret)
{
    struct eager_db *db = calloc(1, sizeof(*db));
    assert(db != NULL);
    db->last = &db->first;
    enum err e = decorated_open(&db->d, &OPS, config, address, p);
    if (e != ERR_OK) {
        free(db);
        return e;
    }
    *ret = &db->d.base;
    return ERR_OK;
}

const struct db_engine DB_ENGINE_EAGER = {
    {"eager:", 6}, "eager:PATH", "an eager store", eager_open};
