/* PostgreSQL's statements: prepared once per session and text, with numbers, texts and blobs in
 * binary form. */
#include "base/log.h"
#include "store/postgres/postgres_db.h"

#include <endian.h>

/* The types of PostgreSQL that pawl writes or reads, by their fixed numbers. */
enum {
    TYPE_BOOL = 16,
    TYPE_BYTEA = 17,
    TYPE_NAME = 19,
    TYPE_INT8 = 20,
    TYPE_INT2 = 21,
    TYPE_INT4 = 23,
    TYPE_TEXT = 25,
    TYPE_VARCHAR = 1043,
    TYPE_NUMERIC = 1700, /* of a sum */
};

static struct postgres_rows *rows_of(struct db_rows *base)
{
    return CONTAINER_OF(base, struct postgres_rows, base);
}

/* --- preparing --- */

static Oid type_of(enum db_kind kind)
{
    switch (kind) {
    case DB_INT:
        return TYPE_INT8;
    case DB_TEXT:
        return TYPE_TEXT;
    case DB_BLOB:
        return TYPE_BYTEA;
    case DB_NULL:
    case DB_OTHER:
        break;
    }
    return 0; /* as the server sees fit */
}

static bool fits(const struct postgres_rows *s, const struct db_value *values)
{
    for (int i = 0; i < s->parameters; i++) {
        if (values[i].kind != DB_NULL && s->types[i] != type_of(values[i].kind))
            return false;
    }
    return true;
}

static struct postgres_rows *broken(struct postgres_db *db, enum err e)
{
    assert(!db->broken.base.open);
    db->broken = (struct postgres_rows){.base = {.db = &db->base, .err = e}};
    return &db->broken;
}

static struct postgres_rows *find(struct postgres_db *db, const char *sql)
{
    struct hash_entry *e =
        hash_map_find(&db->statements, hash_number(&db->statements, (int64_t)(uintptr_t)sql));
    while (e != NULL && CONTAINER_OF(e, struct postgres_rows, entry)->base.sql != sql)
        e = hash_map_find_next(e);
    return e != NULL ? CONTAINER_OF(e, struct postgres_rows, entry) : NULL;
}

static struct postgres_rows *add(struct postgres_db *db, const char *sql)
{
    struct postgres_rows *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->base.sql = sql;
    s->base.db = &db->base;
    hash_map_add(&db->statements, &s->entry, hash_number(&db->statements, (int64_t)(uintptr_t)sql));
    return s;
}

/* A parameter that is NULL this time has the type that the server gives it; a small whole number
 * becomes a large one, so that every number fits. */
static bool learn_types(struct postgres_rows *s, const PGresult *described)
{
    bool small = false;
    for (int i = 0; i < s->parameters; i++) {
        s->types[i] = PQparamtype(described, i);
        if (s->types[i] == TYPE_INT4 || s->types[i] == TYPE_INT2) {
            s->types[i] = TYPE_INT8;
            small = true;
        }
    }
    return !small;
}

/* One trip: what waits goes first, as it may make the table. */
static enum err describe(struct postgres_db *db, struct postgres_rows *s, bool *ret_done)
{
    (void)snprintf(s->name.text, sizeof(s->name.text), "s%lld", (long long)++db->names_given);
    bool sent = postgres_send_prelude(db) && postgres_batch_send(db) &&
                PQsendPrepare(db->conn, s->name.text, s->base.sql, s->parameters, s->types) == 1 &&
                PQsendDescribePrepared(db->conn, s->name.text) == 1;
    struct trip trip = postgres_finish_trip(db, sent);
    if (trip.err != ERR_OK) {
        if (trip.err == ERR_INTERNAL)
            LOG(LOG_ERROR, "a statement does not compile", LOG_Z("sql", s->base.sql));
        return trip.err;
    }
    assert(PQnparams(trip.last) == s->parameters);
    *ret_done = learn_types(s, trip.last);
    PQclear(trip.last);
    return ERR_OK;
}

static enum err compile(struct postgres_db *db, struct postgres_rows *s,
                        const struct db_value *values, size_t count)
{
    assert(count <= POSTGRES_PARAMETERS_MAX);
    s->parameters = (int)count;
    for (size_t i = 0; i < count; i++)
        s->types[i] = type_of(values[i].kind);
    enum err e = ERR_OK;
    for (bool done = false; e == ERR_OK && !done;)
        e = describe(db, s, &done);
    s->name.session = e == ERR_OK ? db->session : 0;
    memset(s->in_lane, 0, sizeof(s->in_lane)); /* its types may be others */
    if (e != ERR_OK && db->in_transaction)
        db->failed = e;
    return e;
}

struct postgres_rows *postgres_prepare(struct postgres_db *db, const char *sql,
                                       const struct db_value *values, size_t count)
{
    enum err e = db->in_transaction ? db->failed : postgres_wake(db);
    if (e != ERR_OK)
        return broken(db, e);
    struct postgres_rows *s = find(db, sql);
    if (s == NULL)
        s = add(db, sql);
    if (s == NULL)
        return broken(db, ERR_NO_MEMORY);
    assert(!s->base.open);
    if (s->name.session != db->session || !fits(s, values))
        e = compile(db, s, values, count);
    assert(e != ERR_OK || s->parameters == (int)count);
    s->base.err = ERR_OK;
    return e == ERR_OK ? s : broken(db, e);
}

void postgres_forget_statements(struct postgres_db *db)
{
    HASH_MAP_WALK (&db->statements, e) {
        struct postgres_rows *s = CONTAINER_OF(e, struct postgres_rows, entry);
        assert(!s->base.open);
        free(s->many_sql);
        free(s);
    }
    hash_map_release(&db->statements);
}

/* --- running --- */

/* What waits, and the statement: one trip. The result is the caller's. */
static enum err run(struct postgres_db *db, const struct postgres_rows *s,
                    const struct db_value *values, PGresult **ret)
{
    bool sent = postgres_send_prelude(db) && postgres_batch_send(db) &&
                postgres_send(db, &s->name, s, values);
    struct trip trip = postgres_finish_trip(db, sent);
    if (trip.err == ERR_OK)
        *ret = trip.last;
    else if (db->in_transaction)
        db->failed = trip.err;
    return trip.err;
}

static enum err exec_now(struct postgres_db *db, const char *sql, const struct db_value *values,
                         size_t count, int64_t *ret_changed)
{
    PGresult *result = NULL;
    struct postgres_rows *s = postgres_prepare(db, sql, values, count);
    if (s->base.err != ERR_OK)
        return s->base.err;
    enum err e = run(db, s, values, &result);
    if (e != ERR_OK)
        return e;
    int64_t changed = 0;
    if (!str_to_i64(str_of(PQcmdTuples(result)), &changed))
        changed = 0; /* not a statement that changes rows */
    PQclear(result);
    db->changes += changed;
    if (ret_changed != NULL)
        *ret_changed = changed;
    return ERR_OK;
}

/* A statement of its own is a transaction of its own. */
static enum err exec_alone(struct postgres_db *db, const char *sql, const struct db_value *values,
                           size_t count, int64_t *ret_changed)
{
    enum db_outcome outcome;
    enum err e = postgres_begin(&db->base);
    if (e != ERR_OK)
        return e;
    e = exec_now(db, sql, values, count, ret_changed);
    if (e == ERR_OK)
        return postgres_commit(&db->base, &outcome);
    postgres_rollback(&db->base);
    return e;
}

enum err postgres_exec(struct db *base, const char *sql, const struct db_value *values,
                       size_t count, int64_t *ret_changed)
{
    struct postgres_db *db = postgres_db_of(base);
    if (!db->in_transaction && db->access == DB_WRITER)
        return exec_alone(db, sql, values, count, ret_changed);
    if (!db->in_transaction || ret_changed != NULL)
        return exec_now(db, sql, values, count, ret_changed);
    struct postgres_rows *s = postgres_prepare(db, sql, values, count);
    if (s->base.err != ERR_OK)
        return s->base.err;
    db->changes++;
    enum err e = postgres_batch_add(db, s, values);
    if (e == ERR_OK && postgres_batch_is_full(&db->batch)) {
        struct trip trip =
            postgres_finish_trip(db, postgres_send_prelude(db) && postgres_batch_send(db));
        PQclear(trip.last);
        e = db->failed = trip.err;
    }
    return e;
}

/* --- queries --- */

static struct postgres_rows *query(struct postgres_db *db, const char *sql,
                                   const struct db_value *values, size_t count)
{
    struct postgres_rows *s = postgres_prepare(db, sql, values, count);
    if (s->base.err != ERR_OK)
        return s;
    s->row = -1;
    s->base.err = run(db, s, values, &s->result);
    return s;
}

/* What may write is fenced. */
static struct postgres_rows *query_alone(struct postgres_db *db, const char *sql,
                                         const struct db_value *values, size_t count)
{
    enum db_outcome outcome;
    enum err e = postgres_begin(&db->base);
    if (e != ERR_OK)
        return broken(db, e);
    struct postgres_rows *s = query(db, sql, values, count);
    if (s->base.err == ERR_OK)
        s->base.err = postgres_commit(&db->base, &outcome);
    else
        postgres_rollback(&db->base);
    return s;
}

struct db_rows *postgres_query(struct db *base, const char *sql, const struct db_value *values,
                               size_t count)
{
    struct postgres_db *db = postgres_db_of(base);
    struct postgres_rows *s;
    if (db->in_transaction && db->deadline_ms > 0 && env_mono_ms(db->env) > db->deadline_ms)
        s = broken(db, ERR_STORE_BUSY);
    else if (!db->in_transaction && db->access == DB_WRITER && strncmp(sql, "SELECT ", 7) != 0)
        s = query_alone(db, sql, values, count);
    else
        s = query(db, sql, values, count);
    s->base.open = true;
    return &s->base;
}

bool postgres_next(struct db_rows *base)
{
    struct postgres_rows *s = rows_of(base);
    return ++s->row < PQntuples(s->result);
}

void postgres_end(struct db_rows *base)
{
    PQclear(rows_of(base)->result);
    rows_of(base)->result = NULL;
}

/* --- columns --- */

static int64_t whole_number(const char *bytes, int len)
{
    uint64_t number = 0;
    for (int i = 0; i < len; i++)
        number = number << 8 | (unsigned char)bytes[i];
    bool negative = ((unsigned char)bytes[0] & 0x80) != 0;
    for (int i = len; negative && i < (int)sizeof(number); i++)
        number |= UINT64_C(0xFF) << (8 * i);
    return (int64_t)number;
}

/* In binary form: how many digits of base 10,000 follow, the weight of the first, the sign, how
 * many decimal places are shown. Whole numbers of 64 bits only. */
static struct db_value whole_numeric(const char *bytes, int len)
{
    uint16_t head[4];
    int64_t number = 0;
    if (len < (int)sizeof(head))
        return (struct db_value){.kind = DB_OTHER};
    memcpy(head, bytes, sizeof(head));
    int count = be16toh(head[0]);
    int weight = (int16_t)be16toh(head[1]);
    bool negative = be16toh(head[2]) == 0x4000;
    if (be16toh(head[3]) != 0 || (be16toh(head[2]) != 0 && !negative))
        return (struct db_value){.kind = DB_OTHER};
    for (int i = 0; i <= weight && count > 0; i++) {
        uint16_t digit = 0;
        if (i < count)
            memcpy(&digit, bytes + sizeof(head) + 2 * (size_t)i, sizeof(digit));
        if (__builtin_mul_overflow(number, 10000, &number) ||
            __builtin_sub_overflow(number, be16toh(digit), &number))
            return (struct db_value){.kind = DB_OTHER};
    }
    if (!negative && number == INT64_MIN)
        return (struct db_value){.kind = DB_OTHER};
    return DB_I(negative ? number : -number);
}

struct db_value postgres_column(struct db_rows *base, int column)
{
    const struct postgres_rows *s = rows_of(base);
    if (PQgetisnull(s->result, s->row, column))
        return DB_N();
    const char *bytes = PQgetvalue(s->result, s->row, column);
    int len = PQgetlength(s->result, s->row, column);
    switch (PQftype(s->result, column)) {
    case TYPE_INT8:
    case TYPE_INT4:
    case TYPE_INT2:
        return DB_I(whole_number(bytes, len));
    case TYPE_BOOL:
        return DB_I(bytes[0] != 0);
    case TYPE_TEXT:
    case TYPE_VARCHAR:
    case TYPE_NAME:
        return (struct db_value){DB_TEXT, 0, {bytes, (size_t)len}};
    case TYPE_BYTEA:
        return DB_B(bytes, (size_t)len);
    case TYPE_NUMERIC:
        return whole_numeric(bytes, len);
    default:
        return (struct db_value){.kind = DB_OTHER};
    }
}

int postgres_column_count(struct db_rows *base)
{
    return PQnfields(rows_of(base)->result);
}

const char *postgres_column_name(struct db_rows *base, int column)
{
    return PQfname(rows_of(base)->result, column);
}
