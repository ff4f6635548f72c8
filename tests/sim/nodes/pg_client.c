/* The functions of libpq that src/store/postgres calls, with a server in memory. What is sent is
 * done at once; results wait until they are asked for. */
#include "sim/nodes/pg.h"

#include "sim/fibers.h"

#include <endian.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { STATEMENTS_MAX = 2048 };

struct statement {
    char name[24];
    char *sql;
    int count;
    enum pg_type types[PG_PARAMETERS_MAX];
};

struct pg_conn_client {
    struct pg_conn *session; /* NULL: refused */
    struct pg_result *first, **last;
    bool pipelined;
    bool aborted; /* until the next sync of the pipeline */
    struct statement *statements;
    int statement_count;
    int statement_room;
};

static struct pg_conn_client *client_of(const PGconn *conn)
{
    return (struct pg_conn_client *)(uintptr_t)conn;
}

static struct pg_result *result_of(const PGresult *result)
{
    return (struct pg_result *)(uintptr_t)result;
}

static PGresult *shown(struct pg_result *r)
{
    return (PGresult *)r;
}

/* --- connections --- */

PGconn *PQconnectdbParams(const char *const *keywords, const char *const *values, int expand_dbname)
{
    (void)keywords;
    (void)values;
    (void)expand_dbname;
    struct pg_conn_client *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    c->last = &c->first;
    c->session = pg_connect();
    return (PGconn *)c;
}

void PQfinish(PGconn *conn)
{
    struct pg_conn_client *c = client_of(conn);
    if (c == NULL)
        return;
    if (c->session != NULL)
        pg_disconnect(c->session);
    while (c->first != NULL) {
        struct pg_result *r = c->first;
        c->first = r->next;
        pg_result_free(r);
    }
    for (int i = 0; i < c->statement_count; i++)
        free(c->statements[i].sql);
    free(c->statements);
    free(c);
}

ConnStatusType PQstatus(const PGconn *conn)
{
    const struct pg_conn_client *c = client_of(conn);
    bool lost = c == NULL || c->session == NULL || pg_is_lost(c->session);
    return lost ? CONNECTION_BAD : CONNECTION_OK;
}

static bool is_lost(const PGconn *conn)
{
    return PQstatus(conn) == CONNECTION_BAD;
}

char *PQerrorMessage(const PGconn *conn)
{
    static char lost[] = "the connection is lost";
    static char none[] = "";
    return is_lost(conn) ? lost : none;
}

int PQserverVersion(const PGconn *conn)
{
    (void)conn;
    return 150000;
}

const char *PQparameterStatus(const PGconn *conn, const char *name)
{
    (void)conn;
    (void)name;
    return "UTF8";
}

PQnoticeProcessor PQsetNoticeProcessor(PGconn *conn, PQnoticeProcessor processor, void *arg)
{
    (void)conn;
    (void)processor;
    (void)arg;
    return NULL;
}

int PQsetnonblocking(PGconn *conn, int on)
{
    (void)on;
    return is_lost(conn) ? -1 : 0;
}

int PQenterPipelineMode(PGconn *conn)
{
    client_of(conn)->pipelined = true;
    return !is_lost(conn);
}

int PQsocket(const PGconn *conn)
{
    return is_lost(conn) ? -1 : pg_fd(client_of(conn)->session);
}

int PQflush(PGconn *conn)
{
    return is_lost(conn) ? -1 : 0;
}

int PQconsumeInput(PGconn *conn)
{
    return !is_lost(conn);
}

/* What was sent is done. */
int PQisBusy(PGconn *conn)
{
    (void)conn;
    return 0;
}

PGnotify *PQnotifies(PGconn *conn)
{
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn) || !pg_has_notes(c->session))
        return NULL;
    pg_take_notes(c->session);
    return calloc(1, sizeof(PGnotify));
}

void PQfreemem(void *ptr)
{
    free(ptr);
}

/* --- values --- */

static int64_t number_of(const char *bytes)
{
    uint64_t wire;
    memcpy(&wire, bytes, sizeof(wire));
    return (int64_t)be64toh(wire);
}

static struct pg_value value_of(const char *bytes, int len, bool binary, enum pg_type type)
{
    if (bytes == NULL)
        return (struct pg_value){.is_null = true};
    if (!binary)
        return (struct pg_value){.bytes = bytes, .len = (int)strlen(bytes)};
    if (type == PG_INT8)
        return (struct pg_value){.type = type, .number = number_of(bytes)};
    return (struct pg_value){.type = type, .bytes = bytes, .len = len};
}

static uint32_t u32_at(const char *bytes)
{
    uint32_t wire;
    memcpy(&wire, bytes, sizeof(wire));
    return be32toh(wire);
}

/* --- statements --- */

static struct statement *find(struct pg_conn_client *c, const char *name)
{
    for (int i = c->statement_count - 1; i >= 0; i--) {
        if (strcmp(c->statements[i].name, name) == 0)
            return &c->statements[i];
    }
    abort();
}

static void add_statement(struct pg_conn_client *c, const char *name, const char *sql, int count,
                          const enum pg_type *types)
{
    if (c->statement_count == c->statement_room) {
        c->statement_room = MAX(16, 2 * c->statement_room);
        c->statements = realloc(c->statements, (size_t)c->statement_room * sizeof(*c->statements));
        assert(c->statements != NULL && c->statement_room <= STATEMENTS_MAX);
    }
    struct statement *s = &c->statements[c->statement_count++];
    *s = (struct statement){.sql = strdup(sql), .count = count};
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    for (int i = 0; i < count; i++)
        s->types[i] = types[i];
}

/* A row of an INSERT of many: the next element of each array. */
static struct pg_result *run_arrays(struct pg_conn_client *c, const struct statement *s,
                                    const char *const *arrays, int count)
{
    const char *at[PG_PARAMETERS_MAX];
    struct pg_value values[PG_PARAMETERS_MAX];
    struct pg_result *r = NULL;
    uint32_t rows = u32_at(arrays[0] + 12);
    for (int i = 0; i < count; i++)
        at[i] = arrays[i] + 20;
    for (uint32_t row = 0; row < rows; row++) {
        for (int i = 0; i < count; i++) {
            int len = (int)u32_at(at[i]);
            enum pg_type type = (enum pg_type)u32_at(arrays[i] + 8);
            values[i] = value_of(len < 0 ? NULL : at[i] + 4, len, true, type);
            at[i] += 4 + MAX(len, 0);
        }
        pg_result_free(r);
        r = pg_run(c->session, s->sql, values, count);
        if (r->status == PGRES_FATAL_ERROR)
            break;
    }
    return r;
}

static struct pg_result *run_prepared(struct pg_conn_client *c, const char *name,
                                      const char *const *bytes, const int *lengths,
                                      const int *formats, int count)
{
    const struct statement *s = find(c, name);
    struct pg_value values[PG_PARAMETERS_MAX];
    if (strstr(s->sql, " FROM unnest(") != NULL)
        return run_arrays(c, s, bytes, count);
    for (int i = 0; i < count; i++)
        values[i] = value_of(bytes[i], lengths != NULL ? lengths[i] : 0,
                             formats != NULL && formats[i] == 1, s->types[i]);
    return pg_run(c->session, s->sql, values, count);
}

static struct pg_result *run_text(struct pg_conn_client *c, const char *sql,
                                  const char *const *bytes, int count)
{
    struct pg_value values[PG_PARAMETERS_MAX];
    for (int i = 0; i < count; i++)
        values[i] = value_of(bytes[i], 0, false, PG_UNKNOWN);
    return pg_run(c->session, sql, values, count);
}

/* --- statements --- */

/* Outside of pipelines, texts come back. */
static int push(struct pg_conn_client *c, struct pg_result *r)
{
    r->is_binary = c->pipelined;
    *c->last = r;
    c->last = &r->next;
    c->aborted |= c->pipelined && r->status == PGRES_FATAL_ERROR;
    return 1;
}

static struct pg_result *plain(int status)
{
    struct pg_result *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    r->status = status;
    return r;
}

static bool passes_over(struct pg_conn_client *c)
{
    if (c->aborted)
        (void)push(c, plain(PGRES_PIPELINE_ABORTED));
    return c->aborted;
}

int PQsendQuery(PGconn *conn, const char *query)
{
    static const char PREPARE[] = "PREPARE sync (bigint) AS ";
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn))
        return 0;
    if (strncmp(query, PREPARE, strlen(PREPARE)) == 0) {
        add_statement(c, "sync", query + strlen(PREPARE), 1, (enum pg_type[]){PG_UNKNOWN});
        query = "SET";
    }
    return push(c, pg_run_script(c->session, query));
}

int PQsendQueryParams(PGconn *conn, const char *command, int nParams, const Oid *paramTypes,
                      const char *const *paramValues, const int *paramLengths,
                      const int *paramFormats, int resultFormat)
{
    (void)paramTypes;
    (void)paramLengths;
    (void)paramFormats;
    (void)resultFormat;
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn))
        return 0;
    return passes_over(c) ? 1 : push(c, run_text(c, command, paramValues, nParams));
}

int PQsendQueryPrepared(PGconn *conn, const char *stmtName, int nParams,
                        const char *const *paramValues, const int *paramLengths,
                        const int *paramFormats, int resultFormat)
{
    (void)resultFormat;
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn))
        return 0;
    if (passes_over(c))
        return 1;
    return push(c, run_prepared(c, stmtName, paramValues, paramLengths, paramFormats, nParams));
}

int PQsendPrepare(PGconn *conn, const char *stmtName, const char *query, int nParams,
                  const Oid *paramTypes)
{
    struct pg_conn_client *c = client_of(conn);
    enum pg_type types[PG_PARAMETERS_MAX] = {PG_UNKNOWN};
    if (is_lost(conn))
        return 0;
    if (passes_over(c))
        return 1;
    for (int i = 0; i < nParams; i++)
        types[i] = (enum pg_type)paramTypes[i];
    struct pg_result *r = pg_describe(c->session, query, nParams, types);
    if (r->status != PGRES_FATAL_ERROR)
        add_statement(c, stmtName, query, nParams, types);
    return push(c, r);
}

int PQsendDescribePrepared(PGconn *conn, const char *stmt)
{
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn))
        return 0;
    if (passes_over(c))
        return 1;
    struct statement *s = find(c, stmt);
    return push(c, pg_describe(c->session, s->sql, s->count, s->types));
}

int PQsendFlushRequest(PGconn *conn)
{
    return !is_lost(conn);
}

int PQpipelineSync(PGconn *conn)
{
    struct pg_conn_client *c = client_of(conn);
    if (is_lost(conn))
        return 0;
    (void)push(c, plain(PGRES_PIPELINE_SYNC));
    c->aborted = false;
    return 1;
}

PGresult *PQgetResult(PGconn *conn)
{
    struct pg_conn_client *c = client_of(conn);
    struct pg_result *r = c->first;
    if (r == NULL)
        return NULL;
    c->first = r->next;
    if (c->first == NULL)
        c->last = &c->first;
    r->next = NULL;
    return shown(r);
}

/* --- results --- */

void PQclear(PGresult *res)
{
    pg_result_free(result_of(res));
}

ExecStatusType PQresultStatus(const PGresult *res)
{
    return res != NULL ? (ExecStatusType)result_of(res)->status : PGRES_FATAL_ERROR;
}

char *PQresultErrorField(const PGresult *res, int fieldcode)
{
    struct pg_result *r = result_of(res);
    (void)fieldcode;
    return r != NULL && r->state[0] != '\0' ? r->state : NULL;
}

char *PQresultErrorMessage(const PGresult *res)
{
    static char none[] = "";
    return res != NULL ? result_of(res)->message : none;
}

char *PQcmdStatus(PGresult *res)
{
    return result_of(res)->tag;
}

char *PQcmdTuples(PGresult *res)
{
    struct pg_result *r = result_of(res);
    (void)snprintf(r->tag, sizeof(r->tag), "%lld", (long long)r->changed);
    return r->tag;
}

int PQntuples(const PGresult *res)
{
    return res != NULL ? result_of(res)->rows : 0;
}

int PQnfields(const PGresult *res)
{
    return result_of(res)->columns;
}

char *PQfname(const PGresult *res, int field_num)
{
    return result_of(res)->names[field_num];
}

int PQnparams(const PGresult *res)
{
    return result_of(res)->parameters;
}

Oid PQparamtype(const PGresult *res, int param_num)
{
    return (Oid)result_of(res)->types[param_num];
}

static struct pg_value *value_at(const PGresult *res, int row, int column)
{
    struct pg_result *r = result_of(res);
    assert(row >= 0 && row < r->rows && column >= 0 && column < r->columns);
    return &r->values[row * r->columns + column];
}

/* Values of a column that are not null are of one type. */
Oid PQftype(const PGresult *res, int field_num)
{
    const struct pg_result *r = result_of(res);
    for (int i = 0; i < r->rows; i++) {
        const struct pg_value *v = &r->values[i * r->columns + field_num];
        if (!v->is_null)
            return (Oid)v->type;
    }
    return PG_TEXT;
}

int PQgetisnull(const PGresult *res, int tup_num, int field_num)
{
    return value_at(res, tup_num, field_num)->is_null;
}

int PQgetlength(const PGresult *res, int tup_num, int field_num)
{
    const struct pg_value *v = value_at(res, tup_num, field_num);
    return v->type == PG_INT8 ? 8 : v->type == PG_BOOL ? 1 : v->len;
}

static char *text_of(const struct pg_value *v, bool binary)
{
    char *text = malloc(32);
    assert(text != NULL);
    uint64_t wire = htobe64((uint64_t)v->number);
    if (v->type == PG_BOOL && binary)
        text[0] = v->number != 0;
    else if (v->type == PG_BOOL)
        (void)snprintf(text, 32, "%s", v->number != 0 ? "t" : "f");
    else if (binary)
        memcpy(text, &wire, sizeof(wire));
    else
        (void)snprintf(text, 32, "%lld", (long long)v->number);
    return text;
}

char *PQgetvalue(const PGresult *res, int tup_num, int field_num)
{
    static char none[] = "";
    struct pg_result *r = result_of(res);
    const struct pg_value *v = value_at(res, tup_num, field_num);
    if (v->is_null)
        return none;
    if (v->type == PG_TEXT || v->type == PG_BYTEA)
        return (char *)(uintptr_t)v->bytes;
    if (r->texts == NULL)
        r->texts = calloc((size_t)(r->rows * r->columns), sizeof(*r->texts));
    assert(r->texts != NULL);
    char **at = &r->texts[tup_num * r->columns + field_num];
    if (*at == NULL)
        *at = text_of(v, r->is_binary);
    return *at;
}
