/* Who sends a request at a node that does not serve shard 0. */
#include "store/folder.h"

#include "cluster/identity.h"
#include "runtime/auth.h"
#include "store/secrets.h"

#define ROOT_KEY "pawl_root_0123456789abcdef0123456789abcdef"

struct directory {
    int64_t age_ms; /* of what the node knows of it */
};

static struct engine *no_engine(const void *ctx)
{
    (void)ctx;
    return NULL;
}

static uint64_t first_epoch(const void *ctx)
{
    (void)ctx;
    return 1;
}

static int64_t age_of(const void *ctx)
{
    return ((const struct directory *)ctx)->age_ms;
}

static void make_store(const char *path)
{
    struct secret secret;
    struct db *db = open_writer(path);
    assert_ok(db_begin(db));
    assert_ok(secrets_get(db, &ENV_SYSTEM, STR("session"), &secret));
    assert_ok(db_commit(db));
    db_close(db);
}

static void assert_answers(const struct identity *i, enum err key, enum err session)
{
    const struct api_auth *auth = identity_auth(i);
    struct auth_identity found;
    struct problem p;
    problem_init(&p);
    assert_int_equal(auth->identify(auth->ctx, STR(ROOT_KEY), STR_NONE, &p, &found), key);
    problem_clear(&p);
    assert_int_equal(auth->identify_session(auth->ctx, STR("no session"), &p, &found), session);
    problem_release(&p);
}

/* A key may have been revoked meanwhile, and a session ended. */
static void without_the_directory_no_key_is_believed_for_longer_than_a_lease(void **state)
{
    struct path path = path_in(*state, "p.db");
    char url[DB_PATH_MAX];
    struct directory directory = {0};
    struct identity_config config = {
        .env = &ENV_SYSTEM, .root_key = STR(ROOT_KEY), .metrics = metrics_new()};
    struct identity *i = identity_new(&config);
    assert_non_null(i);
    make_store(path.text);
    test_store_url(path.text, url, sizeof(url));
    identity_use(i, &(struct identity_source){&directory, url, no_engine, first_epoch, age_of});
    assert_answers(i, ERR_OK, ERR_UNAUTHENTICATED);
    directory.age_ms = NODE_LEASE_MS;
    assert_answers(i, ERR_OK, ERR_UNAUTHENTICATED);
    directory.age_ms = NODE_LEASE_MS + 1;
    assert_answers(i, ERR_STORE_BUSY, ERR_STORE_BUSY);
    assert_int_equal(err_http_status(ERR_STORE_BUSY), 503);
    directory.age_ms = 0;
    assert_answers(i, ERR_OK, ERR_UNAUTHENTICATED);
    identity_free(i);
    metrics_free(config.metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(without_the_directory_no_key_is_believed_for_longer_than_a_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
