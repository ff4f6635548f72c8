/* Statements of PostgreSQL, executed by SQLite. */
#include "sim/nodes/pg_tables.h"

#include "base/buf.h"
#include "sim/fibers.h"

#include <libpq-fe.h>
#include <stdlib.h>

/* A statement of one connection to SQLite, by its text. */
struct pg_prepared {
    char *sql;
    sqlite3_stmt *stmt;
    struct pg_prepared *next;
};

static void fail_hard(const char *what, const char *sql, sqlite3 *db)
{
    (void)fprintf(stderr, "sim: the simulated PostgreSQL: %s: %s in: %s\n", what,
                  db != NULL ? sqlite3_errmsg(db) : "", sql);
    abort();
}

/* --- functions of PostgreSQL --- */

static void fn_now(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    sqlite3_result_int64(c, fibers_now_ns() / 1000000);
}

static void fn_epoch(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_double(c, (double)sqlite3_value_int64(values[0]) / 1000.0);
}

static void fn_one(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    sqlite3_result_int(c, 1);
}

/* begin_epoch() in the directory's own database. */
static void fn_second(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_value(c, values[1]);
}

static void fn_encode(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    char text[129];
    const unsigned char *bytes = sqlite3_value_blob(values[0]);
    int len = MIN(sqlite3_value_bytes(values[0]), 64);
    for (int i = 0; i < len; i++)
        (void)snprintf(text + (size_t)(2 * i), 3, "%02x", bytes[i]);
    sqlite3_result_text(c, text, 2 * len, SQLITE_TRANSIENT);
}

static void fn_notify(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    pg_notify_all();
    sqlite3_result_text(c, "", 0, SQLITE_STATIC);
}

static void fn_session_is_shown(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int(c, pg_session_is_shown((const char *)sqlite3_value_text(values[0])));
}

static void add_functions(sqlite3 *db)
{
    static const struct {
        const char *name;
        int count;
        void (*run)(sqlite3_context *c, int count, sqlite3_value **values);
    } FUNCTIONS[] = {
        {"now", 0, fn_now},
        {"clock_timestamp", 0, fn_now},
        {"epoch", 1, fn_epoch},
        {"encode", 2, fn_encode},
        {"pg_notify", 2, fn_notify},
        {"pg_try_advisory_xact_lock", 2, fn_one},
        {"hashtext", 1, fn_one},
        {"pg_logical_emit_message", 3, fn_one},
        {"begin_epoch", 2, fn_second},
        {"session_is_shown", 1, fn_session_is_shown},
    };
    for (size_t i = 0; i < ARRAY_LEN(FUNCTIONS); i++) {
        int rc = sqlite3_create_function(db, FUNCTIONS[i].name, FUNCTIONS[i].count, SQLITE_UTF8,
                                         NULL, FUNCTIONS[i].run, NULL, NULL);
        assert(rc == SQLITE_OK);
    }
}

/* --- connections to SQLite --- */

void pg_exec(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_hard("cannot run", sql, db);
}

void pg_link_open(struct pg_link *link, const char *folder, const char *name)
{
    char path[120];
    (void)snprintf(path, sizeof(path), "%s/%s.db", folder, name);
    int rc = sqlite3_open_v2(path, &link->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "crash");
    assert(rc == SQLITE_OK);
    pg_exec(link->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=OFF;"
                      "PRAGMA wal_autocheckpoint=300");
    add_functions(link->db);
}

/* --- results --- */

struct pg_result *pg_result_new(int status, const char *tag)
{
    struct pg_result *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    r->status = status;
    (void)snprintf(r->tag, sizeof(r->tag), "%s", tag);
    return r;
}

void pg_result_free(struct pg_result *r)
{
    if (r == NULL)
        return;
    for (int i = 0; i < r->rows * r->columns; i++) {
        free((char *)(uintptr_t)r->values[i].bytes);
        if (r->texts != NULL)
            free(r->texts[i]);
    }
    free(r->values);
    free(r->texts);
    free(r->names);
    free(r);
}

struct pg_result *pg_error(const char *state, const char *message)
{
    struct pg_result *r = pg_result_new(PGRES_FATAL_ERROR, "");
    (void)snprintf(r->state, sizeof(r->state), "%s", state);
    (void)snprintf(r->message, sizeof(r->message), "%s", message);
    return r;
}

/* One row of one number or word. */
struct pg_result *pg_one_value(enum pg_type type, int64_t number)
{
    struct pg_result *r = pg_result_new(PGRES_TUPLES_OK, "SELECT 1");
    r->rows = r->columns = 1;
    r->values = calloc(1, sizeof(*r->values));
    r->names = calloc(1, sizeof(*r->names));
    assert(r->values != NULL && r->names != NULL);
    r->values[0] = (struct pg_value){.type = type, .number = number};
    return r;
}

/* --- running a statement on SQLite --- */

static sqlite3_stmt *prepare(struct pg_link *link, const char *sql)
{
    struct pg_prepared **bucket = &link->prepared[str_hash(str_of(sql)) % PG_BUCKETS];
    for (struct pg_prepared *p = *bucket; p != NULL; p = p->next) {
        if (strcmp(p->sql, sql) == 0)
            return p->stmt;
    }
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(link->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK)
        return NULL;
    struct pg_prepared *p = malloc(sizeof(*p));
    assert(p != NULL);
    *p = (struct pg_prepared){strdup(sql), stmt, *bucket};
    *bucket = p;
    return stmt;
}

static bool looks_like_number(const struct pg_value *v)
{
    int from = v->len > 1 && v->bytes[0] == '-';
    for (int i = from; i < v->len; i++) {
        if (v->bytes[i] < '0' || v->bytes[i] > '9')
            return false;
    }
    return v->len > from && v->len < 19;
}

static void bind(sqlite3_stmt *stmt, const struct pg_value *values, int count)
{
    count = MIN(count, sqlite3_bind_parameter_count(stmt));
    for (int i = 0; i < count; i++) {
        const struct pg_value *v = &values[i];
        if (v->is_null)
            sqlite3_bind_null(stmt, i + 1);
        else if (v->type == PG_INT8)
            sqlite3_bind_int64(stmt, i + 1, v->number);
        else if (v->type == PG_BYTEA)
            sqlite3_bind_blob(stmt, i + 1, v->len > 0 ? v->bytes : "", v->len, SQLITE_STATIC);
        else if (v->type == PG_UNKNOWN && looks_like_number(v))
            sqlite3_bind_int64(stmt, i + 1, strtoll(v->bytes, NULL, 10));
        else
            sqlite3_bind_text(stmt, i + 1, v->bytes, v->len, SQLITE_STATIC);
    }
}

static char *copy(const void *bytes, int len)
{
    char *out = malloc((size_t)len + 1);
    assert(out != NULL);
    memcpy(out, bytes, (size_t)len);
    out[len] = '\0';
    return out;
}

static struct pg_value column_of(sqlite3_stmt *stmt, int i)
{
    const char *declared = sqlite3_column_decltype(stmt, i);
    bool is_bool = declared != NULL && strcmp(declared, "boolean") == 0;
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_NULL:
        return (struct pg_value){.is_null = true};
    case SQLITE_FLOAT: /* a whole number, by the cast that is not there any more */
    case SQLITE_INTEGER:
        return (struct pg_value){.type = is_bool ? PG_BOOL : PG_INT8,
                                 .number = sqlite3_column_int64(stmt, i)};
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(stmt, i);
        int len = sqlite3_column_bytes(stmt, i);
        return (struct pg_value){
            .type = PG_BYTEA, .bytes = copy(len > 0 ? bytes : "", len), .len = len};
    }
    default: {
        const unsigned char *text = sqlite3_column_text(stmt, i);
        int len = sqlite3_column_bytes(stmt, i);
        return (struct pg_value){.type = PG_TEXT, .bytes = copy(text, len), .len = len};
    }
    }
}

static void add_row(struct pg_result *r, sqlite3_stmt *stmt)
{
    if (r->names == NULL) {
        r->columns = sqlite3_column_count(stmt);
        r->names = calloc((size_t)r->columns + 1, sizeof(*r->names));
        assert(r->names != NULL);
        for (int i = 0; i < r->columns; i++)
            (void)snprintf(r->names[i], sizeof(r->names[i]), "%s", sqlite3_column_name(stmt, i));
    }
    size_t size = (size_t)(r->rows + 1) * (size_t)r->columns * sizeof(*r->values);
    r->values = realloc(r->values, size);
    assert(r->values != NULL);
    for (int i = 0; i < r->columns; i++)
        r->values[r->rows * r->columns + i] = column_of(stmt, i);
    r->rows++;
}

static struct pg_result *error_of(sqlite3 *db, const char *sql)
{
    int rc = sqlite3_extended_errcode(db);
    if ((rc & 0xff) == SQLITE_CONSTRAINT)
        return pg_error("23505", sqlite3_errmsg(db));
    fail_hard("a statement failed", sql, db);
    return NULL;
}

/* `sql` is SQLite's. */
struct pg_result *pg_link_step(struct pg_link *link, const char *sql, const struct pg_value *values,
                               int count)
{
    sqlite3_stmt *stmt = prepare(link, sql);
    if (stmt == NULL)
        fail_hard("a statement does not compile", sql, link->db);
    struct pg_result *r = pg_result_new(PGRES_COMMAND_OK, "OK");
    int before = sqlite3_total_changes(link->db);
    bind(stmt, values, count);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        add_row(r, stmt);
    if (rc != SQLITE_DONE) {
        pg_result_free(r);
        r = error_of(link->db, sql);
    } else if (sqlite3_column_count(stmt) > 0) {
        r->status = PGRES_TUPLES_OK;
        if (r->names == NULL)
            r->columns = 0;
    }
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    if (r->status != PGRES_FATAL_ERROR)
        r->changed =
            sqlite3_stmt_readonly(stmt) ? r->rows : sqlite3_total_changes(link->db) - before;
    return r;
}

/* --- WITH that changes rows --- */

static const char *closing(const char *at)
{
    int depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '\'') {
            at = strchr(at + 1, '\'');
            assert(at != NULL);
        }
        depth += *at == '(';
        depth -= *at == ')';
        if (depth == 0)
            return at;
    }
    abort();
}

static bool changes_rows(const char *body)
{
    return strncmp(body, "UPDATE", 6) == 0 || strncmp(body, "INSERT", 6) == 0 ||
           strncmp(body, "DELETE", 6) == 0;
}

/* What a part has returned, as a table of constants. */
static void put_returned(struct buf *out, struct str name, const struct pg_result *r)
{
    if (r->columns == 0) {
        buf_printf(out, "%.*s AS (SELECT NULL AS epoch WHERE 0)", STR_ARG(name));
        return;
    }
    buf_printf(out, "%.*s AS (", STR_ARG(name));
    for (int i = 0; i < r->rows; i++) {
        const struct pg_value *v = &r->values[i * r->columns];
        buf_printf(out, "%sSELECT %lld AS \"%s\"", i > 0 ? " UNION ALL " : "", (long long)v->number,
                   r->names[0]);
    }
    buf_put_char(out, ')');
}

/* One part after the other; what a part has returned is a table for the next ones. */
static struct pg_result *run_with(struct pg_link *link, const char *sql,
                                  const struct pg_value *values, int count)
{
    struct buf tables;
    struct buf one;
    buf_init(&tables, 1 << 16);
    buf_init(&one, 1 << 16);
    const char *at = sql + strlen("WITH ");
    for (;;) {
        const char *body = strchr(at, '(');
        struct str name = {at, (size_t)(strstr(at, " AS ") - at)};
        const char *end = closing(body);
        if (changes_rows(body + 1)) {
            buf_clear(&one);
            if (tables.len > 0)
                buf_printf(&one, "WITH %.*s ", STR_ARG(buf_str(&tables)));
            buf_put(&one, (struct str){body + 1, (size_t)(end - body - 1)});
            struct pg_result *r = pg_link_step(link, buf_str(&one).ptr, values, count);
            assert(r->status != PGRES_FATAL_ERROR);
            if (tables.len > 0)
                buf_put(&tables, STR(", "));
            put_returned(&tables, name, r);
            pg_result_free(r);
        } else {
            buf_printf(&tables, "%s%.*s", tables.len > 0 ? ", " : "", (int)(end + 1 - at), at);
        }
        at = end + 1;
        if (*at != ',')
            break;
        at += strspn(at, ", ");
    }
    buf_clear(&one);
    buf_printf(&one, "WITH %.*s%s", STR_ARG(buf_str(&tables)), at);
    struct pg_result *r = pg_link_step(link, buf_str(&one).ptr, values, count);
    buf_release(&tables);
    buf_release(&one);
    return r;
}

/* --- what is known of a statement --- */

struct known {
    char *sql;
    char *translated; /* NULL: not yet */
    enum pg_type types[PG_PARAMETERS_MAX];
    struct known *next;
};

static struct known *known[PG_BUCKETS];

static struct known *known_of(const char *sql)
{
    struct known **bucket = &known[str_hash(str_of(sql)) % PG_BUCKETS];
    for (struct known *k = *bucket; k != NULL; k = k->next) {
        if (strcmp(k->sql, sql) == 0)
            return k;
    }
    struct known *k = calloc(1, sizeof(*k));
    assert(k != NULL);
    k->sql = strdup(sql);
    k->next = *bucket;
    *bucket = k;
    return k;
}

struct pg_result *pg_link_run(struct pg_link *link, const char *sql, const struct pg_value *values,
                              int count)
{
    struct known *k = known_of(sql);
    if (k->translated == NULL)
        k->translated = pg_translate(sql);
    const char *text = k->translated;
    bool changes = strstr(text, "(UPDATE ") != NULL || strstr(text, "(INSERT ") != NULL ||
                   strstr(text, "(DELETE ") != NULL;
    bool parts = strncmp(text, "WITH ", 5) == 0 && changes;
    return parts ? run_with(link, text, values, count) : pg_link_step(link, text, values, count);
}

/* --- types of parameters --- */

static enum pg_type type_of_column(sqlite3 *db, struct str table, struct str column)
{
    char names[2][64];
    const char *declared = NULL;
    (void)snprintf(names[0], sizeof(names[0]), "%.*s", STR_ARG(table));
    (void)snprintf(names[1], sizeof(names[1]), "%.*s", STR_ARG(column));
    if (sqlite3_table_column_metadata(db, NULL, names[0], names[1], &declared, NULL, NULL, NULL,
                                      NULL) != SQLITE_OK ||
        declared == NULL)
        return PG_UNKNOWN;
    return strcmp(declared, "INTEGER") == 0 ? PG_INT8
           : strcmp(declared, "TEXT") == 0  ? PG_TEXT
           : strcmp(declared, "BLOB") == 0  ? PG_BYTEA
                                            : PG_UNKNOWN;
}

static struct str word_at(const char *at)
{
    size_t len = 0;
    while (at[len] == '_' || (at[len] >= 'a' && at[len] <= 'z') ||
           (at[len] >= '0' && at[len] <= '9'))
        len++;
    return (struct str){at, len};
}

static void guess(enum pg_type *types, int count, int parameter, enum pg_type type)
{
    if (parameter >= 1 && parameter <= count && types[parameter - 1] == PG_UNKNOWN)
        types[parameter - 1] = type;
}

/* "INSERT INTO t (a, b) VALUES ($1, $2)": column by column, of the first row. */
static void guess_of_insert(sqlite3 *db, const char *sql, int count, enum pg_type *types)
{
    struct str table = word_at(sql + strlen("INSERT INTO "));
    const char *name = strchr(sql, '(');
    const char *value = strstr(sql, ") VALUES (");
    value = value != NULL ? value + strlen(") VALUES (") : NULL;
    while (name != NULL && value != NULL && *name != ')' && *value != ')') {
        name += strspn(name, "(, ");
        value += strspn(value, ", ");
        struct str column = word_at(name);
        if (*value == '$')
            guess(types, count, (int)strtol(value + 1, NULL, 10),
                  type_of_column(db, table, column));
        name += column.len;
        value += strcspn(value, ",)");
    }
}

/* "UPDATE t SET a = $1 WHERE b = $2" */
static void guess_of_update(sqlite3 *db, const char *sql, int count, enum pg_type *types)
{
    struct str table = word_at(sql + strlen("UPDATE "));
    for (const char *at = strchr(sql, '$'); at != NULL; at = strchr(at + 1, '$')) {
        const char *name = at;
        while (name > sql && strchr(" =<>", name[-1]) != NULL)
            name--;
        if (name == at)
            continue;
        while (name > sql && word_at(name - 1).len > 0)
            name--;
        guess(types, count, (int)strtol(at + 1, NULL, 10),
              type_of_column(db, table, word_at(name)));
    }
}

void pg_learn_types(sqlite3 *db, const char *sql, int count, enum pg_type *types)
{
    struct known *k = known_of(sql);
    if (strncmp(sql, "INSERT INTO ", 12) == 0)
        guess_of_insert(db, sql, count, k->types);
    else if (strncmp(sql, "UPDATE ", 7) == 0)
        guess_of_update(db, sql, count, k->types);
    for (int i = 0; i < count; i++) {
        if (types[i] != PG_UNKNOWN)
            k->types[i] = types[i];
        types[i] = k->types[i];
    }
}
