/* The engines of test programs, instead of the server's table. */
#include "store_support/stores.h"

#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>

const struct db_engine *const DB_ENGINES[] = {&DB_ENGINE_SQLITE, &DB_ENGINE_FAILING,
                                              &DB_ENGINE_EAGER, &DB_ENGINE_POSTGRES, NULL};

const char *const TEST_STORES[] = {"sqlite", "failing", "eager", "postgres", NULL};

const char *test_store(void)
{
    const char *wanted = getenv("PAWL_TEST_STORE");
    if (wanted == NULL)
        return TEST_STORES[0];
    for (size_t i = 0; TEST_STORES[i] != NULL; i++) {
        if (strcmp(wanted, TEST_STORES[i]) == 0)
            return TEST_STORES[i];
    }
    (void)fprintf(stderr, "PAWL_TEST_STORE=%s: there is no such store\n", wanted);
    abort();
}

/* A file has a schema of its own in the server's database. */
static int postgres_url(const char *path, char *out, size_t out_size)
{
    const char *server = getenv("PAWL_TEST_POSTGRES");
    if (server == NULL) {
        (void)fprintf(stderr, "PAWL_TEST_POSTGRES is not set: use tests/tools/with_postgres.py\n");
        abort();
    }
    return snprintf(out, out_size, "%s&schema=t%016llx", server,
                    (unsigned long long)str_hash(str_of(path)));
}

void test_store_url(const char *path, char *out, size_t out_size)
{
    int len = test_store_is_postgres() ? postgres_url(path, out, out_size)
                                       : snprintf(out, out_size, "%s:%s", test_store(), path);
    assert(len > 0 && (size_t)len < out_size);
}

bool test_store_is_postgres(void)
{
    return strcmp(test_store(), "postgres") == 0;
}

bool test_store_is_eager(void)
{
    return strcmp(test_store(), "eager") == 0 || test_store_is_postgres();
}
