/* For tests that hold for every store: each runs on all of them that are part of the program, or on
 * the one that PAWL_TEST_STORE names. */
#ifndef PAWL_TESTS_STORE_CONFORMANCE_H
#define PAWL_TESTS_STORE_CONFORMANCE_H

#include "store/notes.h"

static inline int run_on_every_store(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    if (getenv("PAWL_TEST_STORE") != NULL)
        return _cmocka_run_group_tests(test_store(), tests, count, NULL, NULL);
    for (size_t i = 0; TEST_STORES[i] != NULL; i++) {
        if (strcmp(TEST_STORES[i], "postgres") == 0)
            continue; /* needs a server: a test of its own */
        assert_int_equal(setenv("PAWL_TEST_STORE", TEST_STORES[i], 1), 0);
        failed += _cmocka_run_group_tests(TEST_STORES[i], tests, count, NULL, NULL);
    }
    return failed;
}

/* --- one file per test --- */

static inline struct db *writer_of(void **state)
{
    return open_writer(path_in(*state, "p.db").text);
}

static inline struct db *reader_of(void **state)
{
    return open_reader(path_in(*state, "p.db").text);
}

static inline struct db *writer_with_notes(void **state)
{
    struct db *db = writer_of(state);
    make_notes(db);
    return db;
}

static inline enum err try_note(struct db *db, int64_t num, int64_t *ret_changed)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, 'x')";
    return DB_EXEC(db, SQL, ret_changed, DB_I(num));
}

#endif
