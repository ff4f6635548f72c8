/* SQLite's statements: prepared once per connection, bound, stepped and read. */
#include "base/log.h"
#include "store/sqlite/sqlite_db.h"

enum { STATEMENT_SLOTS_FIRST = 512 }; /* doubled before more than half are taken */

static struct sqlite_db *db_of(struct db *base)
{
    return CONTAINER_OF(base, struct sqlite_db, base);
}

static struct sqlite_rows *rows_of(struct db_rows *base)
{
    return CONTAINER_OF(base, struct sqlite_rows, base);
}

/* --- errors --- */

enum err sqlite_err_of(struct sqlite_db *db, int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
        return ERR_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return ERR_STORE_BUSY;
    case SQLITE_FULL:
        return ERR_STORE_FULL;
    case SQLITE_NOMEM:
        return ERR_NO_MEMORY;
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        LOG(LOG_ERROR, "the store failed", LOG_Z("error", sqlite3_errmsg(db->conn)),
            LOG_N("code", sqlite3_extended_errcode(db->conn)));
        db->failed = true;
        return ERR_STORE_FAILED;
    default:
        LOG(LOG_ERROR, "a statement failed", LOG_Z("error", sqlite3_errmsg(db->conn)),
            LOG_N("code", sqlite3_extended_errcode(db->conn)));
        return ERR_INTERNAL;
    }
}

/* --- prepared statements --- */

static struct sqlite_rows **slot_of(struct sqlite_rows **slots, size_t count, const char *sql)
{
    size_t slot = ((uintptr_t)sql >> 4) % count;
    while (slots[slot] != NULL && slots[slot]->base.sql != sql)
        slot = (slot + 1) % count;
    return &slots[slot];
}

/* Makes room for one more statement, so that a search always ends at a free slot. */
static bool grow(struct sqlite_db *db)
{
    if (db->statement_count < db->statement_slots / 2)
        return true;
    size_t count = MAX((size_t)STATEMENT_SLOTS_FIRST, 2 * db->statement_slots);
    struct sqlite_rows **slots = calloc(count, sizeof(struct sqlite_rows *));
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < db->statement_slots; i++) {
        if (db->statements[i] != NULL)
            *slot_of(slots, count, db->statements[i]->base.sql) = db->statements[i];
    }
    free(db->statements);
    db->statements = slots;
    db->statement_slots = count;
    return true;
}

static struct sqlite_rows *broken(struct sqlite_db *db, enum err e)
{
    db->broken = (struct sqlite_rows){.base = {.db = &db->base, .err = e, .open = true}};
    return &db->broken;
}

/* After an error the transaction can only be rolled back, so no statement must be able to undo what
 * it alone has done: SQLite then keeps no copies of the pages that it changes. The caller frees. */
static char *without_undo(const char *sql)
{
    static const char *const VERBS[] = {"INSERT INTO ", "UPDATE "};
    static const char *const FAILING[] = {"INSERT OR FAIL INTO ", "UPDATE OR FAIL "};
    for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
        size_t len = strlen(VERBS[i]);
        if (strncmp(sql, VERBS[i], len) == 0)
            return sqlite3_mprintf("%s%s", FAILING[i], sql + len);
    }
    return sqlite3_mprintf("%s", sql);
}

static struct sqlite_rows *compile(struct sqlite_db *db, const char *sql)
{
    struct sqlite_rows *s = calloc(1, sizeof(*s));
    char *text = without_undo(sql);
    if (s == NULL || text == NULL || !grow(db)) {
        sqlite3_free(text);
        free(s);
        return broken(db, ERR_NO_MEMORY);
    }
    int rc = sqlite3_prepare_v3(db->conn, text, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt, NULL);
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        LOG(LOG_ERROR, "a statement does not compile", LOG_Z("sql", sql),
            LOG_Z("error", sqlite3_errmsg(db->conn)));
        free(s);
        return broken(db, sqlite_err_of(db, rc));
    }
    s->base.sql = sql;
    s->base.db = &db->base;
    s->parameters = sqlite3_bind_parameter_count(s->stmt);
    assert(s->parameters <= SQLITE_PARAMETERS_MAX);
    for (int i = 1; i <= s->parameters; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "$%d", i);
        s->index[i] = sqlite3_bind_parameter_index(s->stmt, name);
        assert(s->index[i] > 0);
    }
    *slot_of(db->statements, db->statement_slots, sql) = s;
    db->statement_count++;
    return s;
}

static struct sqlite_rows *prepare(struct sqlite_db *db, const char *sql)
{
    struct sqlite_rows *known =
        db->statement_slots > 0 ? *slot_of(db->statements, db->statement_slots, sql) : NULL;
    return known != NULL ? known : compile(db, sql);
}

enum err sqlite_prepare(struct sqlite_db *db, const char *sql)
{
    return prepare(db, sql)->base.err;
}

void sqlite_finalize_all(struct sqlite_db *db)
{
    for (size_t i = 0; i < db->statement_slots; i++) {
        if (db->statements[i] == NULL)
            continue;
        assert(!db->statements[i]->base.open);
        (void)sqlite3_finalize(db->statements[i]->stmt);
        free(db->statements[i]);
    }
    free(db->statements);
}

/* --- running --- */

static int bind(sqlite3_stmt *stmt, int at, const struct db_value *v)
{
    switch (v->kind) {
    case DB_NULL:
        return sqlite3_bind_null(stmt, at);
    case DB_INT:
        return sqlite3_bind_int64(stmt, at, v->number);
    case DB_TEXT:
        return sqlite3_bind_text64(stmt, at, v->bytes.ptr, v->bytes.len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case DB_BLOB:
        return sqlite3_bind_blob64(stmt, at, v->bytes.ptr, v->bytes.len, SQLITE_STATIC);
    case DB_OTHER:
        break;
    }
    assert(!"a kind of value that is never written");
    return SQLITE_MISUSE;
}

static bool is_same(const struct db_value *a, const struct db_value *b)
{
    return a->kind == b->kind && a->number == b->number && a->bytes.ptr == b->bytes.ptr &&
           a->bytes.len == b->bytes.len;
}

/* Many values of a row are those of the row before: NULL, 0, a word of a table. */
static int bind_changed(struct sqlite_rows *s, const struct db_value *values, size_t count)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++) {
        struct db_value *bound = &s->bound[i + 1];
        if (is_same(bound, &values[i]))
            continue;
        rc = bind(s->stmt, s->index[i + 1], &values[i]);
        *bound = rc == SQLITE_OK ? values[i] : (struct db_value){.kind = DB_OTHER};
    }
    return rc;
}

static struct sqlite_rows *query(struct sqlite_db *db, const char *sql,
                                 const struct db_value *values, size_t count)
{
    struct sqlite_rows *s = prepare(db, sql);
    if (s->stmt == NULL)
        return s;
    assert(!s->base.open);
    assert(s->parameters == (int)count && (values != NULL || count == 0));
    s->base.open = true;
    s->base.err = ERR_OK;
    int rc = bind_changed(s, values, count);
    if (rc != SQLITE_OK)
        s->base.err = sqlite_err_of(db, rc);
    return s;
}

struct db_rows *sqlite_query(struct db *base, const char *sql, const struct db_value *values,
                             size_t count)
{
    return &query(db_of(base), sql, values, count)->base;
}

bool sqlite_next(struct db_rows *base)
{
    int rc = sqlite3_step(rows_of(base)->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        base->err = sqlite_err_of(db_of(base->db), rc);
    return rc == SQLITE_ROW;
}

void sqlite_end(struct db_rows *base)
{
    sqlite3_stmt *stmt = rows_of(base)->stmt;
    if (stmt != NULL)
        (void)sqlite3_reset(stmt); /* repeats the error of the last step, which is kept already */
}

enum err sqlite_exec(struct db *base, const char *sql, const struct db_value *values, size_t count,
                     int64_t *ret_changed)
{
    struct sqlite_db *db = db_of(base);
    struct sqlite_rows *s = query(db, sql, values, count);
    while (s->base.err == ERR_OK && sqlite_next(&s->base)) {
    }
    if (s->base.err == ERR_OK && ret_changed != NULL)
        *ret_changed = sqlite3_changes64(db->conn);
    s->base.open = false;
    sqlite_end(&s->base);
    return s->base.err;
}

/* --- columns --- */

/* A harmless value; the query ends with the error. */
static struct db_value no_memory(struct db_rows *base)
{
    if (base->err == ERR_OK)
        base->err = ERR_NO_MEMORY;
    return (struct db_value){.kind = DB_TEXT, .bytes = STR("")};
}

/* The value is looked up once: each sqlite3_column_x() would look it up again. It is used by the
 * connection's one thread only, before the next step, so it needs no protection. */
struct db_value sqlite_column(struct db_rows *base, int column)
{
    sqlite3_value *v = sqlite3_column_value(rows_of(base)->stmt, column);
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        return DB_I(sqlite3_value_int64(v));
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_value_text(v);
        if (text == NULL)
            return no_memory(base);
        return (struct db_value){DB_TEXT, 0, {text, (size_t)sqlite3_value_bytes(v)}};
    }
    case SQLITE_BLOB: {
        const char *blob = sqlite3_value_blob(v);
        if (blob == NULL && sqlite3_value_bytes(v) > 0)
            return no_memory(base);
        return DB_B(blob != NULL ? blob : "", (size_t)sqlite3_value_bytes(v));
    }
    case SQLITE_NULL:
        return DB_N();
    default:
        return (struct db_value){.kind = DB_OTHER};
    }
}

int sqlite_column_count(struct db_rows *base)
{
    return sqlite3_column_count(rows_of(base)->stmt);
}

const char *sqlite_column_name(struct db_rows *base, int column)
{
    return sqlite3_column_name(rows_of(base)->stmt, column);
}
