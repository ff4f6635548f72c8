/* The stores that tests run on, chosen by PAWL_TEST_STORE. Every test program that opens a store
 * through store/folder.h or engine/fixture.h runs on sqlite and on eager; tests about failures
 * choose failing themselves:
 *
 *   sqlite   the product's own engine
 *   failing  SQLite behind a decorator that can make the Nth call fail; unarmed it changes nothing
 *   eager    behaves as an engine across a network: whole results, statements and their errors
 *            deferred to the next query or the commit, none of the optional functions
 *   postgres the server that PAWL_TEST_POSTGRES names, as tests/tools/with_postgres.py starts it
 *
 * None of this is in the product: only test programs link it. */
#ifndef PAWL_TESTS_STORE_SUPPORT_STORES_H
#define PAWL_TESTS_STORE_SUPPORT_STORES_H

#include "store/db_driver.h"

extern const struct db_engine DB_ENGINE_FAILING; /* "failing:PATH" */
extern const struct db_engine DB_ENGINE_EAGER;   /* "eager:PATH" */

/* The names above, then NULL. */
extern const char *const TEST_STORES[];

/* The one that PAWL_TEST_STORE names; "sqlite" when it is not set. An unknown name ends the
 * program. */
const char *test_store(void);
/* "sqlite:PATH", with the scheme of test_store(); on PostgreSQL a schema named after the path. */
void test_store_url(const char *path, char *out, size_t out_size);

/* It counts statements instead of rows and has none of the optional functions: a test about one of
 * these expects something else there, and says why. */
bool test_store_is_eager(void);
/* It is eager too, and its dialect is another one where a test makes tables of its own. */
bool test_store_is_postgres(void);

/* --- making calls fail: connections of "failing:", in all threads --- */

struct fault {
    int64_t nth; /* of the calls from now that can fail: exec, query, next, begin, commit; from 1 */
    enum err err;
    bool lasting; /* this one and all after it, until failing_disarm() */
    /* Of a commit that fails with ERR_STORE_FAILED: was it done all the same? */
    bool commit_happened;
    enum db_access access; /* the connections that it concerns */
    bool at_housekeeping;  /* not these calls, but the next housekeeping, once */
};

void failing_arm(const struct fault *fault);
void failing_disarm(void);
/* Has a call failed since failing_arm()? */
bool failing_has_fired(void);

/* The same for calls of this thread alone, whatever others are armed with: a lasting failure with
 * ERR_STORE_BUSY from the nth call on. */
void failing_arm_here(int64_t nth);
/* Has a call failed since failing_arm_here()? */
bool failing_disarm_here(void);

#endif
