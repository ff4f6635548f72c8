/* Damage to the rows of a store. */
#include "damage.h"

#include "base/buf.h"
#include "base/limits.h"
#include "samples.h"

enum { TABLES_MAX = 64, COLUMNS_MAX = 40 };

static struct table {
    char name[64];
    char columns[COLUMNS_MAX][64];
    size_t column_count;
    char key[160]; /* what names a row: rowid, or the columns of the key */
    int64_t rows;
} tables[TABLES_MAX];
static size_t table_count;

/* --- SQLite, with nothing of ours in between --- */

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, message);
    assert(rc == SQLITE_OK);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    assert(rc == SQLITE_OK);
    return stmt;
}

/* --- the tables --- */

static void find_columns(sqlite3 *db, struct table *table)
{
    struct buf key;
    buf_init(&key, sizeof(table->key) - 1);
    sqlite3_stmt *columns = prepare(db, "SELECT name, pk FROM pragma_table_info($1)");
    (void)sqlite3_bind_text(columns, 1, table->name, -1, SQLITE_STATIC);
    while (sqlite3_step(columns) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(columns, 0);
        assert(table->column_count < COLUMNS_MAX);
        (void)snprintf(table->columns[table->column_count++], sizeof(table->columns[0]), "%s",
                       name);
        if (sqlite3_column_int(columns, 1) > 0)
            buf_printf(&key, "%s%s", key.len > 0 ? ", " : "", name);
    }
    (void)sqlite3_finalize(columns);
    (void)snprintf(table->key, sizeof(table->key), "%s", key.len > 0 ? key.ptr : "rowid");
    assert(buf_ok(&key));
    buf_release(&key);
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table->name);
    sqlite3_stmt *count = prepare(db, sql);
    (void)sqlite3_step(count);
    table->rows = sqlite3_column_int64(count, 0);
    (void)sqlite3_finalize(count);
}

void damage_setup(sqlite3 *db)
{
    run(db, "PRAGMA writable_schema=ON;"
            "UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql, 'STRICT, WITHOUT',"
            " 'WITHOUT'), ', STRICT', ''), 'STRICT', ''), 'NOT NULL', '') WHERE type = 'table';"
            "PRAGMA writable_schema=RESET");
    sqlite3_stmt *names =
        prepare(db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    while (sqlite3_step(names) == SQLITE_ROW) {
        assert(table_count < TABLES_MAX);
        struct table *table = &tables[table_count];
        (void)snprintf(table->name, sizeof(table->name), "%s", sqlite3_column_text(names, 0));
        find_columns(db, table);
        table_count += table->rows > 0;
        if (table->rows == 0)
            memset(table, 0, sizeof(*table));
    }
    (void)sqlite3_finalize(names);
    run(db, "PRAGMA ignore_check_constraints=ON");
}

/* --- values --- */

static void bind_changed(sqlite3_stmt *stmt, sqlite3_value *old, struct taker *t)
{
    char text[4096];
    int len = MIN(sqlite3_value_bytes(old), (int)sizeof(text));
    bool blob = sqlite3_value_type(old) == SQLITE_BLOB;
    memcpy(text, len > 0 ? sqlite3_value_blob(old) : "", (size_t)len);
    if (len > 0)
        text[(uint64_t)take_number(t) % (uint64_t)len] = (char)take_byte(t);
    if (take_one_in(t, 4))
        len = (int)take_below(t, (size_t)len + 1);
    if (blob)
        (void)sqlite3_bind_blob(stmt, 1, text, len, SQLITE_TRANSIENT);
    else
        (void)sqlite3_bind_text(stmt, 1, text, len, SQLITE_TRANSIENT);
}

static void bind_value(sqlite3_stmt *stmt, sqlite3_value *old, struct taker *t)
{
    static const int64_t ODD[] = {
        0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 60, 253402300800000};
    struct str text;
    switch (take_below(t, 8)) {
    case 0:
        (void)sqlite3_bind_null(stmt, 1);
        break;
    case 1:
        (void)sqlite3_bind_int64(stmt, 1, ODD[take_below(t, ARRAY_LEN(ODD))]);
        break;
    case 2:
        (void)sqlite3_bind_int64(stmt, 1, take_number(t));
        break;
    case 3:
        text = take_text(t, 255);
        (void)sqlite3_bind_text(stmt, 1, text.ptr, (int)text.len, SQLITE_TRANSIENT);
        break;
    case 4:
        text = take_text(t, 255);
        (void)sqlite3_bind_blob(stmt, 1, text.ptr, (int)text.len, SQLITE_TRANSIENT);
        break;
    case 5:
        text = sample_json(STR(""), take_byte(t));
        (void)sqlite3_bind_text(stmt, 1, text.ptr, (int)text.len, SQLITE_TRANSIENT);
        break;
    case 6:
        (void)sqlite3_bind_double(stmt, 1, (double)take_number(t) / 3);
        break;
    default:
        bind_changed(stmt, old, t);
    }
}

/* --- the damage --- */

static void change(sqlite3 *db, const struct table *table, struct taker *t)
{
    const char *column = table->columns[take_below(t, table->column_count)];
    int64_t row = (int64_t)((uint64_t)take_number(t) % (uint64_t)table->rows);
    char sql[768];
    (void)snprintf(sql, sizeof(sql), "SELECT %s FROM %s LIMIT 1 OFFSET %lld", column, table->name,
                   (long long)row);
    sqlite3_stmt *old = prepare(db, sql);
    bool there = sqlite3_step(old) == SQLITE_ROW;
    bool all_rows = take_one_in(t, 2);
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE OR IGNORE %s SET %s = $1 WHERE %d OR (%s) = (SELECT %s FROM %s LIMIT 1"
                   " OFFSET %lld)",
                   table->name, column, all_rows, table->key, table->key, table->name,
                   (long long)row);
    sqlite3_stmt *stmt = prepare(db, sql);
    if (there) {
        sqlite3_value *copy = sqlite3_value_dup(sqlite3_column_value(old, 0));
        (void)sqlite3_reset(old);
        bind_value(stmt, copy, t);
        (void)sqlite3_step(stmt); /* a key that is no integer is refused */
        sqlite3_value_free(copy);
    }
    (void)sqlite3_finalize(old);
    (void)sqlite3_finalize(stmt);
}

static void remove_row(sqlite3 *db, const struct table *table, struct taker *t)
{
    char sql[768];
    int64_t row = (int64_t)((uint64_t)take_number(t) % (uint64_t)table->rows);
    (void)snprintf(sql, sizeof(sql),
                   "DELETE FROM %s WHERE (%s) = (SELECT %s FROM %s LIMIT 1 OFFSET %lld)",
                   table->name, table->key, table->key, table->name, (long long)row);
    run(db, sql);
}

void damage_do(sqlite3 *db, struct taker *t)
{
    for (size_t n = 1 + take_below(t, 3); n > 0; n--) {
        const struct table *table = &tables[take_below(t, table_count)];
        if (take_one_in(t, 16))
            remove_row(db, table, t);
        else
            change(db, table, t);
    }
}
