/* The engines of test programs, instead of the server's table. */
#include "store_support/stores.h"

#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>

const struct db_engine *const DB_ENGINES[] = {&DB_ENGINE_SQLITE, &DB_ENGINE_FAILING,
                                              &DB_ENGINE_EAGER, NULL};

const char *const TEST_STORES[] = {"sqlite", "failing", "eager", NULL};

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

void test_store_url(const char *path, char *out, size_t out_size)
{
    int len = snprintf(out, out_size, "%s:%s", test_store(), path);
    assert(len > 0 && (size_t)len < out_size);
}

bool test_store_is_eager(void)
{
    return strcmp(test_store(), "eager") == 0;
}
