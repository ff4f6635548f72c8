/* What one durable SQLite transaction costs on this disk: one-row inserts, WAL, synchronous=FULL.
 *
 *     sqlite_commit FILE SECONDS        FILE must not exist; it is removed at the end
 */
#include "latency.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECONDS_MAX 600.0 /* a benchmark that runs longer was mistyped */
#define WARM_COMMITS 50u  /* the first commits also grow the files */
#define PAYLOAD_BYTES 200 /* about what one small record needs */

static bool holds(sqlite3 *db, const char *pragma, const char *wanted)
{
    sqlite3_stmt *stmt = NULL;
    bool same = false;
    if (sqlite3_prepare_v2(db, pragma, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        const unsigned char *got = sqlite3_column_text(stmt, 0);
        same = got != NULL && strcmp((const char *)got, wanted) == 0;
    }
    sqlite3_finalize(stmt);
    return same;
}

static bool prepare(sqlite3 *db, sqlite3_stmt **ret_insert)
{
    static const char schema[] = "PRAGMA synchronous=FULL;"
                                 "CREATE TABLE bench(id INTEGER PRIMARY KEY, payload BLOB) STRICT";
    /* Read back: a file system without shared memory refuses WAL and says so only here. */
    if (!holds(db, "PRAGMA journal_mode=WAL", "wal"))
        return false;
    if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        !holds(db, "PRAGMA synchronous", "2"))
        return false;
    return sqlite3_prepare_v2(db, "INSERT INTO bench(payload) VALUES($1)", -1, ret_insert, NULL) ==
           SQLITE_OK;
}

/* Autocommit: each insert is a transaction of its own, begun and committed by one step. */
static bool commit_one(sqlite3_stmt *insert)
{
    bool done = sqlite3_step(insert) == SQLITE_DONE;
    return sqlite3_reset(insert) == SQLITE_OK && done;
}

static bool measure(sqlite3_stmt *insert, double seconds, struct latency *lat, double *ret_took_s)
{
    static const char payload[PAYLOAD_BYTES];
    if (sqlite3_bind_blob(insert, 1, payload, sizeof payload, SQLITE_STATIC) != SQLITE_OK)
        return false;
    for (unsigned i = 0; i < WARM_COMMITS; i++) {
        if (!commit_one(insert))
            return false;
    }
    uint64_t start = now_ns(), before = start;
    uint64_t end = start + (uint64_t)(seconds * 1e9);
    while (before < end) {
        if (!commit_one(insert))
            return false;
        uint64_t after = now_ns();
        latency_add(lat, after - before);
        before = after;
    }
    *ret_took_s = (double)(before - start) / 1e9;
    return true;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    double seconds = argc == 3 ? strtod(argv[2], &end) : 0;
    if (argc != 3 || *end != '\0' || !(seconds > 0 && seconds <= SECONDS_MAX)) {
        fprintf(stderr, "usage: sqlite_commit FILE SECONDS\n");
        return 1;
    }
    const char *path = argv[1];
    if (access(path, F_OK) == 0) {
        fprintf(stderr, "sqlite_commit: %s exists already\n", path);
        return 1;
    }

    static struct latency lat;
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    double took_s = 0;
    bool ok = sqlite3_open(path, &db) == SQLITE_OK && prepare(db, &insert) &&
              measure(insert, seconds, &lat, &took_s);
    if (ok)
        printf("{\"tx_per_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n", (double)lat.count / took_s,
               latency_percentile_us(&lat, 50), latency_percentile_us(&lat, 99));
    else
        fprintf(stderr, "sqlite_commit: %s: %s\n", path, sqlite3_errmsg(db));
    sqlite3_finalize(insert);
    sqlite3_close(db);
    unlink(path);
    return ok ? 0 : 1;
}
