/* A table of the tests' own, in the store's file. */
#ifndef PAWL_TESTS_STORE_NOTES_H
#define PAWL_TESTS_STORE_NOTES_H

#include "store/folder.h"

static inline void make_notes(struct db *db)
{
    static const char SQL[] = "CREATE TABLE notes (num INTEGER PRIMARY KEY, text TEXT) STRICT";
    static const char POSTGRES[] =
        "CREATE TABLE notes (num BIGINT PRIMARY KEY, text TEXT COLLATE \"C\")";
    run_sql(db, test_store_is_postgres() ? POSTGRES : SQL);
}

static inline void add_note(struct db *db, int64_t num, struct str text)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, $2)";
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(num), DB_T(text)));
}

static inline int64_t count_notes(struct db *db)
{
    static const char SQL[] = "SELECT count(*) FROM notes";
    return number_of(db, SQL);
}

#endif
