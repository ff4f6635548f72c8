/* Statements that wait. Rows for one INSERT become one statement with an array per parameter, which
 * costs the server a third of single rows; between rows for different tables the order does not
 * matter. Any other statement stays where it is, between what came before and what comes after. */
#include "store/postgres/postgres_db.h"

#include <endian.h>

enum {
    BATCH_BYTES_MAX = 64 * 1024 * 1024,
    BATCH_BYTES_FULL = 8 * 1024 * 1024,
    MANY_SQL_MAX = 64 * 1024,
    ARRAY_BYTES_MAX = 512 * 1024 * 1024,
    SINGLE_ROWS_MAX = 8, /* arrays cost the server something for each column before the first row */
};

struct write_row {
    struct write_row *next;
    struct db_value values[];
};

struct write {
    struct write *next;
    struct postgres_rows *statement;
    struct write_row *first;
    struct write_row **last;
    int rows;
};

void postgres_batch_init(struct postgres_batch *batch)
{
    arena_init(&batch->arena, BATCH_BYTES_MAX);
    batch->first = NULL;
    batch->last = &batch->first;
    batch->barrier = NULL;
}

void postgres_batch_clear(struct postgres_batch *batch)
{
    arena_clear(&batch->arena);
    batch->first = NULL;
    batch->last = &batch->first;
    batch->barrier = NULL;
}

void postgres_batch_release(struct postgres_batch *batch)
{
    arena_release(&batch->arena);
}

bool postgres_batch_is_full(const struct postgres_batch *batch)
{
    return batch->arena.used >= BATCH_BYTES_FULL;
}

/* --- INSERTs of many rows --- */

static const char *array_type(Oid type)
{
    return type == 17 ? "bytea" : type == 25 ? "text" : "bigint";
}

/* "INSERT INTO t (a, b) VALUES ($1, 0)" becomes
 * "INSERT INTO t (a, b) SELECT u.p1, 0 FROM unnest($1::bigint[]) AS u (p1)". Of several rows the
 * first one tells. */
static void put_many_sql(struct buf *out, const struct postgres_rows *s, const char *values)
{
    buf_put(out, (struct str){s->base.sql, (size_t)(values - s->base.sql)});
    buf_put(out, STR(") SELECT "));
    const char *at = values + strlen(") VALUES (");
    for (; *at != ')'; at++) {
        if (*at == '$')
            buf_put(out, STR("u.p"));
        else
            buf_put_char(out, *at);
    }
    buf_put(out, STR(" FROM unnest("));
    for (int i = 1; i <= s->width; i++)
        buf_printf(out, "%s$%d::%s[]", i > 1 ? ", " : "", i, array_type(s->types[i - 1]));
    buf_put(out, STR(") AS u ("));
    for (int i = 1; i <= s->width; i++)
        buf_printf(out, "%sp%d", i > 1 ? ", " : "", i);
    buf_put_char(out, ')');
}

static bool has_rows_of(const struct postgres_rows *s, const char *rows, int width)
{
    struct buf expected;
    buf_init(&expected, MANY_SQL_MAX);
    for (int i = 1; i <= s->parameters; i++) {
        const char *before = i == 1 ? "(" : i % width == 1 % width ? "), (" : ", ";
        buf_printf(&expected, "%s$%d", before, i);
    }
    buf_put_char(&expected, ')');
    bool same = buf_ok(&expected) && strcmp(expected.ptr, rows) == 0;
    buf_release(&expected);
    return same;
}

/* The parameters of one row; 0: the rows are not all alike. `rows` is what comes after VALUES. */
static int width_of(const struct postgres_rows *s, const char *rows)
{
    if (strchr(rows + 1, '(') == NULL)
        return s->parameters;
    int width = 0;
    for (const char *at = rows; *at != ')' && *at != '\0'; at++)
        width += *at == '$';
    bool alike = width > 0 && s->parameters % width == 0 && has_rows_of(s, rows, width);
    return alike ? width : 0;
}

static const char *values_of(const struct postgres_rows *s)
{
    const char *sql = s->base.sql;
    if (s->parameters == 0 || strncmp(sql, "INSERT INTO ", 12) != 0 ||
        strstr(sql, "SELECT") != NULL || strstr(sql, "ON CONFLICT") != NULL ||
        strstr(sql, "RETURNING") != NULL)
        return NULL;
    return strstr(sql, ") VALUES (");
}

/* False: rows of this statement cannot be put together. */
static bool make_many_sql(struct postgres_rows *s)
{
    const char *values = values_of(s);
    s->width = values != NULL ? width_of(s, values + strlen(") VALUES ")) : 0;
    if (s->width == 0)
        return false;
    struct buf sql;
    buf_init(&sql, MANY_SQL_MAX);
    put_many_sql(&sql, s, values);
    if (buf_ok(&sql))
        s->many_sql = strdup(sql.ptr);
    buf_release(&sql);
    return s->many_sql != NULL;
}

/* --- adding --- */

static struct write *write_for(struct postgres_db *db, struct postgres_rows *s)
{
    struct postgres_batch *batch = &db->batch;
    bool many = s->many_sql != NULL || make_many_sql(s);
    struct write *w = batch->barrier != NULL ? batch->barrier->next : batch->first;
    while (many && w != NULL && w->statement != s)
        w = w->next;
    if (many && w != NULL)
        return w;
    w = arena_alloc(&batch->arena, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->statement = s;
    w->last = &w->first;
    *batch->last = w;
    batch->last = &w->next;
    if (!many)
        batch->barrier = w;
    return w;
}

static enum err add_row(struct postgres_db *db, struct write *w, const struct db_value *values,
                        size_t count)
{
    struct write_row *row =
        arena_alloc(&db->batch.arena, sizeof(*row) + count * sizeof(row->values[0]));
    if (row == NULL)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        row->values[i] = values[i];
        if (values[i].kind != DB_INT && !arena_keep(&db->batch.arena, &row->values[i].bytes))
            return ERR_NO_MEMORY;
    }
    *w->last = row;
    w->last = &row->next;
    w->rows++;
    return ERR_OK;
}

enum err postgres_batch_add(struct postgres_db *db, struct postgres_rows *s,
                            const struct db_value *values)
{
    struct write *w = write_for(db, s);
    enum err e = w != NULL ? ERR_OK : ERR_NO_MEMORY;
    int width = s->many_sql != NULL ? s->width : s->parameters;
    if (e == ERR_OK && width == 0)
        return add_row(db, w, values, 0);
    for (int i = 0; i < s->parameters && e == ERR_OK; i += width)
        e = add_row(db, w, values + i, (size_t)width);
    return e;
}

/* --- sending --- */

static void put_u32(struct buf *out, uint32_t number)
{
    uint32_t wire = htobe32(number);
    buf_put_bytes(out, &wire, sizeof(wire));
}

static void put_value(struct buf *out, const struct db_value *v)
{
    if (v->kind == DB_NULL) {
        put_u32(out, UINT32_MAX);
    } else if (v->kind == DB_INT) {
        uint64_t wire = htobe64((uint64_t)v->number);
        put_u32(out, sizeof(wire));
        buf_put_bytes(out, &wire, sizeof(wire));
    } else {
        put_u32(out, (uint32_t)v->bytes.len);
        buf_put(out, v->bytes);
    }
}

/* One column of all rows, as PostgreSQL's arrays are in binary form. */
static void put_array(struct buf *out, const struct write *w, int column)
{
    put_u32(out, 1); /* dimension */
    put_u32(out, 1); /* there may be nulls */
    put_u32(out, w->statement->types[column]);
    put_u32(out, (uint32_t)w->rows);
    put_u32(out, 1); /* the first index */
    for (const struct write_row *row = w->first; row != NULL; row = row->next)
        put_value(out, &row->values[column]);
}

static bool put_arrays(struct postgres_db *session, const struct postgres_name *name,
                       const struct write *w, struct buf *arrays)
{
    const struct postgres_rows *s = w->statement;
    size_t starts[POSTGRES_PARAMETERS_MAX + 1] = {0};
    const char *bytes[POSTGRES_PARAMETERS_MAX];
    int lengths[POSTGRES_PARAMETERS_MAX];
    int formats[POSTGRES_PARAMETERS_MAX];
    for (int i = 0; i < s->width; i++) {
        put_array(arrays, w, i);
        starts[i + 1] = arrays->len;
    }
    if (!buf_ok(arrays))
        return false;
    for (int i = 0; i < s->width; i++) {
        bytes[i] = arrays->ptr + starts[i];
        lengths[i] = (int)(starts[i + 1] - starts[i]);
        formats[i] = 1;
    }
    return PQsendQueryPrepared(session->conn, name->text, s->width, bytes, lengths, formats, 1) ==
           1;
}

static bool send_arrays(struct postgres_db *session, const struct postgres_name *name,
                        const struct write *w)
{
    struct buf arrays;
    buf_init(&arrays, ARRAY_BYTES_MAX);
    bool sent = put_arrays(session, name, w, &arrays);
    buf_release(&arrays);
    return sent;
}

/* Known from now on, unless the trip fails before. */
static void note_sent(struct postgres_db *session, struct postgres_name *name)
{
    name->session = session->session;
    name->next_sent = session->names_sent;
    session->names_sent = name;
}

/* Arrays say their types in the text. */
static bool prepare_many(struct postgres_db *session, struct postgres_name *name, const char *sql)
{
    (void)snprintf(name->text, sizeof(name->text), "m%lld", (long long)++session->names_given);
    note_sent(session, name);
    return PQsendPrepare(session->conn, name->text, sql, 0, NULL) == 1;
}

/* A statement of one row is sent once for each. One that has several rows itself is only kept whole
 * by arrays. */
static bool send_singly(struct postgres_db *session, const struct postgres_name *name,
                        const struct write *w)
{
    bool sent = true;
    for (const struct write_row *row = w->first; row != NULL && sent; row = row->next)
        sent = postgres_send(session, name, w->statement, row->values);
    return sent;
}

static bool goes_as_arrays(const struct write *w)
{
    const struct postgres_rows *s = w->statement;
    return s->many_sql != NULL && (w->rows > SINGLE_ROWS_MAX || s->width < s->parameters);
}

static bool send_many(struct postgres_db *db, const struct write *w)
{
    struct postgres_rows *s = w->statement;
    bool known = s->many_name.session == db->session;
    return (known || prepare_many(db, &s->many_name, s->many_sql)) &&
           send_arrays(db, &s->many_name, w);
}

bool postgres_batch_send(struct postgres_db *db)
{
    bool sent = true;
    for (const struct write *w = db->batch.first; w != NULL && sent; w = w->next)
        sent = goes_as_arrays(w) ? send_many(db, w) : send_singly(db, &w->statement->name, w);
    postgres_batch_clear(&db->batch);
    return sent;
}

/* --- sending in the session of a commit group --- */

bool postgres_batch_has_only_rows(const struct postgres_batch *batch)
{
    bool rows = batch->first != NULL;
    for (const struct write *w = batch->first; w != NULL && rows; w = w->next)
        rows = w->statement->many_sql != NULL;
    return rows;
}

/* "INSERT INTO runs …" becomes "INSERT INTO pawl_3.runs …". */
static bool prepare_in(const struct postgres_db *db, struct postgres_db *session,
                       struct postgres_name *name, const struct postgres_rows *s, bool many)
{
    static const char INSERT[] = "INSERT INTO ";
    const char *plain = many ? s->many_sql : s->base.sql;
    struct buf sql;
    assert(strncmp(plain, INSERT, strlen(INSERT)) == 0);
    buf_init(&sql, MANY_SQL_MAX);
    buf_printf(&sql, "%s%s_%d.%s", INSERT, db->schema, db->shard, plain + strlen(INSERT));
    bool sent = buf_ok(&sql);
    if (sent && many) {
        sent = prepare_many(session, name, sql.ptr);
    } else if (sent) {
        (void)snprintf(name->text, sizeof(name->text), "s%lld", (long long)++session->names_given);
        note_sent(session, name);
        sent = PQsendPrepare(session->conn, name->text, sql.ptr, s->parameters, s->types) == 1;
    }
    buf_release(&sql);
    return sent;
}

static bool send_in(const struct postgres_db *db, struct postgres_db *session, int lane,
                    const struct write *w)
{
    struct postgres_rows *s = w->statement;
    bool many = goes_as_arrays(w);
    struct postgres_name *name = many ? &s->many_in_lane[lane] : &s->in_lane[lane];
    if (name->session != session->session && !prepare_in(db, session, name, s, many))
        return false;
    return many ? send_arrays(session, name, w) : send_singly(session, name, w);
}

bool postgres_batch_send_in(struct postgres_db *db, struct postgres_db *session, int lane)
{
    bool sent = true;
    for (const struct write *w = db->batch.first; w != NULL && sent; w = w->next)
        sent = send_in(db, session, lane, w);
    return sent;
}
