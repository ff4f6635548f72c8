/* The functions of libpq that pawl uses: X(type, name, parameters, arguments), C for those that
 * clean up. */
#ifndef PAWL_LIBRARY_PQ_FUNCTIONS_H
#define PAWL_LIBRARY_PQ_FUNCTIONS_H

#include <libpq-fe.h>

/* clang-format off */
#define PQ_FUNCTIONS(X, C)                                                                         \
    X(PQconninfoOption *, PQconninfoParse, (const char *url, char **ret_why), (url, ret_why))      \
    C(void, PQconninfoFree, (PQconninfoOption *options), (options))                                \
    X(PGconn *, PQconnectdbParams, (const char *const *names, const char *const *values, int expand), (names, values, expand)) \
    X(PGconn *, PQconnectStartParams, (const char *const *names, const char *const *values, int expand), (names, values, expand)) \
    X(PostgresPollingStatusType, PQconnectPoll, (PGconn *conn), (conn))                            \
    C(void, PQfinish, (PGconn *conn), (conn))                                                      \
    X(ConnStatusType, PQstatus, (const PGconn *conn), (conn))                                      \
    X(char *, PQerrorMessage, (const PGconn *conn), (conn))                                        \
    X(const char *, PQparameterStatus, (const PGconn *conn, const char *name), (conn, name))       \
    X(int, PQserverVersion, (const PGconn *conn), (conn))                                          \
    X(int, PQsocket, (const PGconn *conn), (conn))                                                 \
    X(char *, PQhost, (const PGconn *conn), (conn))                                                \
    X(char *, PQhostaddr, (const PGconn *conn), (conn))                                            \
    X(char *, PQport, (const PGconn *conn), (conn))                                                \
    X(PQnoticeProcessor, PQsetNoticeProcessor, (PGconn *conn, PQnoticeProcessor to, void *ctx), (conn, to, ctx)) \
    X(int, PQsetnonblocking, (PGconn *conn, int on), (conn, on))                                   \
    X(int, PQenterPipelineMode, (PGconn *conn), (conn))                                            \
    X(int, PQpipelineSync, (PGconn *conn), (conn))                                                 \
    X(int, PQsendFlushRequest, (PGconn *conn), (conn))                                             \
    X(int, PQflush, (PGconn *conn), (conn))                                                        \
    X(int, PQconsumeInput, (PGconn *conn), (conn))                                                 \
    X(int, PQisBusy, (PGconn *conn), (conn))                                                       \
    X(PGnotify *, PQnotifies, (PGconn *conn), (conn))                                              \
    C(void, PQfreemem, (void *p), (p))                                                             \
    X(PGresult *, PQexecParams, (PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values, const int *lengths, const int *formats, int format), (conn, sql, count, types, values, lengths, formats, format)) \
    X(int, PQsendQuery, (PGconn *conn, const char *sql), (conn, sql))                              \
    X(int, PQsendQueryParams, (PGconn *conn, const char *sql, int count, const Oid *types, const char *const *values, const int *lengths, const int *formats, int format), (conn, sql, count, types, values, lengths, formats, format)) \
    X(int, PQsendPrepare, (PGconn *conn, const char *name, const char *sql, int count, const Oid *types), (conn, name, sql, count, types)) \
    X(int, PQsendDescribePrepared, (PGconn *conn, const char *name), (conn, name))                 \
    X(int, PQsendQueryPrepared, (PGconn *conn, const char *name, int count, const char *const *values, const int *lengths, const int *formats, int format), (conn, name, count, values, lengths, formats, format)) \
    X(PGresult *, PQgetResult, (PGconn *conn), (conn))                                             \
    C(void, PQclear, (PGresult *result), (result))                                                 \
    X(ExecStatusType, PQresultStatus, (const PGresult *result), (result))                          \
    X(char *, PQresultErrorMessage, (const PGresult *result), (result))                            \
    X(char *, PQresultErrorField, (const PGresult *result, int field), (result, field))            \
    X(char *, PQcmdStatus, (PGresult *result), (result))                                           \
    X(char *, PQcmdTuples, (PGresult *result), (result))                                           \
    X(int, PQntuples, (const PGresult *result), (result))                                          \
    X(int, PQnfields, (const PGresult *result), (result))                                          \
    X(int, PQnparams, (const PGresult *result), (result))                                          \
    X(Oid, PQparamtype, (const PGresult *result, int n), (result, n))                              \
    X(char *, PQfname, (const PGresult *result, int column), (result, column))                     \
    X(Oid, PQftype, (const PGresult *result, int column), (result, column))                        \
    X(int, PQgetisnull, (const PGresult *result, int row, int column), (result, row, column))      \
    X(int, PQgetlength, (const PGresult *result, int row, int column), (result, row, column))      \
    X(char *, PQgetvalue, (const PGresult *result, int row, int column), (result, row, column))
/* clang-format on */

#endif
