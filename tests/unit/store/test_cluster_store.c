/* The directory of a cluster: leases, who may take a shard, and what fences an old owner. */
#include "store/cut_proxy.h"
#include "store/notes.h"

#include "store/postgres/cluster_store.h"

static struct path store_of(void **state)
{
    struct path url;
    test_store_url(path_in(*state, "c.db").text, url.text, sizeof(url.text));
    return url;
}

static struct cluster_store *open_cluster(void **state)
{
    struct cluster_store *c = NULL;
    struct problem p;
    bool is_new;
    problem_init(&p);
    assert_ok(cluster_store_open(store_of(state).text, &ENV_SYSTEM, &p, &c));
    assert_ok(cluster_store_init(c, 4, &p, &is_new));
    problem_release(&p);
    return c;
}

static struct cluster_store *join(void **state, const char *name)
{
    struct cluster_store *c = open_cluster(state);
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_join(c, name, "http://127.0.0.1:1", &p));
    problem_release(&p);
    return c;
}

static struct cluster_view *view_of(struct cluster_store *c)
{
    static struct cluster_view view;
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_read(c, &p, &view));
    problem_release(&p);
    return &view;
}

static int64_t take(struct cluster_store *c, size_t shard)
{
    int64_t epoch = view_of(c)->shards[shard].epoch;
    int64_t taken = -1;
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_take(c, shard, epoch, &p, &taken));
    problem_release(&p);
    return taken;
}

static void renew(struct cluster_store *c)
{
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_renew(c, &p));
    problem_release(&p);
}

/* PostgreSQL lets go of a closed session's locks a little later, in its own process. */
enum { LET_GO_MS_MAX = 30 * 1000 };

static void take_when_free(struct cluster_store *c, size_t shard)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + LET_GO_MS_MAX;
    do {
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
        renew(c);
    } while (take(c, shard) == 0);
}

static const char *owner_of(struct cluster_store *c, size_t shard)
{
    const struct cluster_view *view = view_of(c);
    return view->shards[shard].owner < 0 ? "" : view->nodes[view->shards[shard].owner].name;
}

static void run_outside(void **state, const char *sql)
{
    struct raw raw = raw_open(path_in(*state, "c.db").text);
    char path[256];
    (void)snprintf(path, sizeof(path), "SET search_path = %s",
                   strstr(store_of(state).text, "schema=") + 7);
    raw_exec(&raw, path);
    raw_exec(&raw, sql);
    raw_close(&raw);
}

static void end_leases(void **state)
{
    run_outside(state, "UPDATE nodes SET lease_until = now() - interval '1 s'");
}

/* The store of a shard, for the node that has taken it. */
static struct path shard_url(void **state, size_t shard, int64_t epoch)
{
    struct path url = store_of(state);
    size_t len = strlen(url.text);
    (void)snprintf(url.text + len, sizeof(url.text) - len, "&shard=%zu&epoch=%lld", shard,
                   (long long)epoch);
    return url;
}

static enum err open_as_writer(const char *url, struct db **ret)
{
    struct problem p;
    struct db_config config = {.url = str_of(url), .access = DB_WRITER, .env = &ENV_SYSTEM};
    problem_init(&p);
    enum err e = db_open(&config, &p, ret);
    problem_release(&p);
    return e;
}

static struct db *open_shard(void **state, size_t shard, int64_t epoch)
{
    struct db *db = NULL;
    assert_ok(open_as_writer(shard_url(state, shard, epoch).text, &db));
    return db;
}

static enum err add_in_a_transaction(struct db *db, int64_t num)
{
    static const char SQL[] = "INSERT INTO notes (num, text) VALUES ($1, 'x')";
    enum err e = db_begin(db);
    if (e == ERR_OK)
        e = DB_EXEC(db, SQL, NULL, DB_I(num));
    if (e == ERR_OK)
        return db_commit(db);
    db_rollback(db);
    return e;
}

/* --- the directory --- */

static void a_directory_keeps_its_number_of_shards_and_its_secret(void **state)
{
    struct cluster_store *c = open_cluster(state);
    struct problem p;
    bool is_new = true;
    char secret[CLUSTER_SECRET_LEN + 1];
    (void)snprintf(secret, sizeof(secret), "%s", view_of(c)->secret);
    problem_init(&p);
    assert_ok(cluster_store_init(c, 7, &p, &is_new));
    assert_false(is_new);
    assert_int_equal(view_of(c)->shard_count, 4);
    assert_string_equal(view_of(c)->secret, secret);
    assert_int_equal(strlen(secret), CLUSTER_SECRET_LEN);
    problem_release(&p);
    cluster_store_close(c);
}

static void a_node_shows_with_its_url_and_its_lease(void **state)
{
    struct cluster_store *c = join(state, "a");
    const struct cluster_view *view = view_of(c);
    assert_int_equal(view->self, 0);
    assert_string_equal(view->nodes[0].name, "a");
    assert_string_equal(view->nodes[0].url, "http://127.0.0.1:1");
    assert_in_range(view->nodes[0].lease_ms, 1, NODE_LEASE_MS);
    cluster_store_close(c);
}

static void a_process_that_lost_its_name_cannot_renew_or_take(void **state)
{
    struct cluster_store *old = join(state, "a");
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_renew(old, &p));
    struct cluster_store *young = join(state, "a");
    assert_int_equal(cluster_store_renew(old, &p), ERR_STORE_FAILED);
    assert_int_equal(view_of(old)->self, -1);
    assert_int_equal(take(old, 0), 0);
    assert_true(take(young, 0) > 0);
    assert_ok(cluster_store_release(old, 0, &p)); /* it does nothing */
    assert_string_equal(owner_of(young, 0), "a");
    problem_release(&p);
    cluster_store_close(old);
    cluster_store_close(young);
}

/* --- taking --- */

static void a_shard_is_taken_once(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    struct problem p;
    int64_t taken;
    problem_init(&p);
    int64_t epoch = view_of(a)->shards[2].epoch;
    assert_ok(cluster_store_take(a, 2, epoch, &p, &taken));
    assert_int_equal(taken, epoch + 1);
    assert_ok(cluster_store_take(b, 2, epoch, &p, &taken));
    assert_int_equal(taken, 0);
    assert_int_equal(take(b, 2), 0); /* also with the new epoch: its owner lives */
    assert_string_equal(owner_of(b, 2), "a");
    problem_release(&p);
    cluster_store_close(a);
    cluster_store_close(b);
}

static void a_shard_can_be_taken_when_it_was_released_or_its_owner_is_gone(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    struct problem p;
    problem_init(&p);
    assert_true(take(a, 1) > 0);
    assert_ok(cluster_store_release(a, 1, &p));
    assert_true(take(b, 1) > 0);
    assert_true(take(a, 2) > 0);
    end_leases(state);
    assert_ok(cluster_store_renew(b, &p));
    assert_true(take(b, 2) > 0);
    assert_string_equal(owner_of(b, 2), "b");
    problem_release(&p);
    cluster_store_close(a);
    cluster_store_close(b);
}

/* Only a process that has the name is a reason for the node to end. */
static void a_lease_that_the_server_cannot_renew_is_tried_again(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct problem p;
    problem_init(&p);
    run_outside(state, "ALTER TABLE nodes RENAME TO missing");
    assert_int_equal(cluster_store_renew(a, &p), ERR_STORE_BUSY);
    run_outside(state, "ALTER TABLE missing RENAME TO nodes");
    assert_ok(cluster_store_renew(a, &p));
    problem_release(&p);
    cluster_store_close(a);
}

static const struct cluster_node *node_named(struct cluster_store *c, const char *name)
{
    const struct cluster_view *view = view_of(c);
    for (size_t i = 0; i < view->node_count; i++) {
        if (strcmp(view->nodes[i].name, name) == 0)
            return &view->nodes[i];
    }
    fail_msg("there is no node %s", name);
    return NULL;
}

static void end_lease_of(struct cluster_store *c, const char *name)
{
    struct problem p;
    char session[NODE_SESSION_LEN_MAX + 1];
    problem_init(&p);
    (void)snprintf(session, sizeof(session), "%s", node_named(c, name)->session);
    assert_ok(cluster_store_end_lease(c, name, session, &p));
    problem_release(&p);
}

static void a_node_that_has_died_has_no_session_and_its_lease_can_be_ended(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    int64_t until = env_mono_ms(&ENV_SYSTEM) + LET_GO_MS_MAX;
    assert_true(take(a, 2) > 0);
    assert_true(node_named(b, "a")->connected);
    end_lease_of(b, "a"); /* it lives */
    assert_true(node_named(b, "a")->lease_ms > 0);
    assert_int_equal(take(b, 2), 0);
    cluster_store_close(a); /* as if it had been killed: it does not leave */
    while (node_named(b, "a")->connected) {
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
        renew(b);
    }
    end_lease_of(b, "a");
    assert_false(cluster_node_lives(node_named(b, "a")));
    take_when_free(b, 2);
    cluster_store_close(b);
}

static void renew_when_connected(struct cluster_store *c)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + LET_GO_MS_MAX;
    struct problem p;
    problem_init(&p);
    while (cluster_store_renew(c, &p) != ERR_OK) {
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
        problem_clear(&p);
    }
    problem_release(&p);
}

static void a_node_that_connects_again_shows_its_session_again(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    run_outside(state, "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks"
                       " WHERE locktype = 'advisory' AND classid = 1885435757"
                       " AND objid IN (SELECT hashtext(session)::oid FROM nodes)");
    renew_when_connected(b);
    assert_false(node_named(b, "a")->connected);
    assert_true(node_named(b, "b")->connected);
    renew_when_connected(a);
    assert_true(node_named(b, "a")->connected);
    end_lease_of(b, "a");
    assert_true(cluster_node_lives(node_named(b, "a")));
    cluster_store_close(a);
    cluster_store_close(b);
}

static void a_node_without_a_lease_takes_nothing(void **state)
{
    struct cluster_store *a = join(state, "a");
    end_leases(state);
    assert_int_equal(take(a, 0), 0);
    cluster_store_close(a);
}

/* As the console's offline commands do. */
static void a_writer_without_a_node_and_nodes_keep_out_of_each_others_way(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct db *db = NULL;
    struct path url = store_of(state);
    assert_ok(open_as_writer(url.text, &db));
    assert_int_equal(take(a, 0), 0);
    assert_true(take(a, 1) > 0); /* another shard is free */
    db_close(db);
    take_when_free(a, 0);
    assert_int_equal(open_as_writer(url.text, &db), ERR_STORE_BUSY);
    end_leases(state);
    assert_ok(open_as_writer(url.text, &db));
    db_close(db);
    cluster_store_close(a);
}

/* --- the fence --- */

static void an_owner_that_lost_its_shard_cannot_commit(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    struct db *old = open_shard(state, 3, take(a, 3));
    make_notes(old);
    assert_ok(add_in_a_transaction(old, 1));
    end_leases(state);
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_renew(b, &p));
    problem_release(&p);
    struct db *young = open_shard(state, 3, take(b, 3));
    assert_int_equal(add_in_a_transaction(old, 2), ERR_STORE_FAILED);
    assert_ok(add_in_a_transaction(young, 3));
    assert_int_equal(count_notes(young), 2);
    db_close(old);
    db_close(young);
    cluster_store_close(a);
    cluster_store_close(b);
}

static void an_epoch_of_yesterday_opens_no_shard(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct db *db = NULL;
    db_close(open_shard(state, 3, take(a, 3)));
    int64_t epoch = take(a, 3);
    assert_int_equal(open_as_writer(shard_url(state, 3, epoch - 1).text, &db), ERR_STORE_FAILED);
    cluster_store_close(a);
}

static void shards_have_tables_of_their_own(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct db *one = open_shard(state, 1, take(a, 1));
    struct db *two = open_shard(state, 2, take(a, 2));
    make_notes(one);
    make_notes(two);
    assert_ok(add_in_a_transaction(one, 1));
    assert_int_equal(count_notes(one), 1);
    assert_int_equal(count_notes(two), 0);
    db_close(one);
    db_close(two);
    cluster_store_close(a);
}

/* --- other databases: another schema of the test's is as good as one --- */

static struct path place_url(void **state, const char *end)
{
    struct path url = store_of(state);
    size_t len = strlen(url.text);
    (void)snprintf(url.text + len, sizeof(url.text) - len, "_%s", end); /* the schema's name */
    return url;
}

static enum err place(struct cluster_store *c, size_t shard, const char *url)
{
    struct problem p;
    problem_init(&p);
    enum err e = cluster_store_place(c, shard, url, &p);
    problem_release(&p);
    return e;
}

static struct db *open_placed(void **state, size_t shard, int64_t epoch)
{
    struct path url = place_url(state, "far");
    size_t len = strlen(url.text);
    struct db *db = NULL;
    (void)snprintf(url.text + len, sizeof(url.text) - len, "&shard=%zu&epoch=%lld", shard,
                   (long long)epoch);
    assert_ok(open_as_writer(url.text, &db));
    return db;
}

static void a_shard_can_be_placed_until_it_has_tables(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct path far = place_url(state, "far");
    assert_ok(place(a, 3, far.text));
    assert_ok(place(a, 3, far.text)); /* it is there */
    assert_int_equal(place(a, 3, place_url(state, "other").text), ERR_BAD_REQUEST);
    assert_int_equal(place(a, 0, far.text), ERR_BAD_REQUEST);
    assert_int_equal(place(a, 4, far.text), ERR_NOT_FOUND);
    db_close(open_shard(state, 1, take(a, 1)));
    assert_int_equal(place(a, 1, far.text), ERR_BAD_REQUEST);
    const struct cluster_view *view = view_of(a);
    assert_int_equal(view->shards[1].place, -1);
    assert_int_equal(view->shards[3].place, 0);
    assert_string_equal(view->places[0], far.text);
    cluster_store_close(a);
}

static void a_database_with_shards_is_no_cluster_of_its_own(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *c = NULL;
    struct problem p;
    struct db *db = NULL;
    bool is_new;
    problem_init(&p);
    assert_ok(place(a, 3, place_url(state, "far").text));
    assert_ok(cluster_store_open(place_url(state, "far").text, &ENV_SYSTEM, &p, &c));
    assert_int_equal(cluster_store_init(c, 4, &p, &is_new), ERR_STORE_FAILED);
    assert_int_equal(place(c, 1, store_of(state).text), ERR_STORE_FAILED);
    assert_int_equal(place(a, 1, store_of(state).text), ERR_BAD_REQUEST); /* a directory */
    assert_int_equal(open_as_writer(place_url(state, "far&shard=3").text, &db), ERR_STORE_FAILED);
    problem_release(&p);
    cluster_store_close(a);
    cluster_store_close(c);
}

static void an_owner_that_lost_a_shard_elsewhere_cannot_commit(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    struct problem p;
    problem_init(&p);
    assert_ok(place(a, 3, place_url(state, "far").text));
    struct db *old = open_placed(state, 3, take(a, 3));
    make_notes(old);
    assert_ok(add_in_a_transaction(old, 1));
    end_leases(state);
    assert_ok(cluster_store_renew(b, &p));
    struct db *young = open_placed(state, 3, take(b, 3));
    assert_int_equal(add_in_a_transaction(old, 2), ERR_STORE_FAILED);
    assert_ok(add_in_a_transaction(young, 3));
    assert_int_equal(count_notes(young), 2);
    problem_release(&p);
    db_close(old);
    db_close(young);
    cluster_store_close(a);
    cluster_store_close(b);
}

/* An owner that connects again raises the epoch over there only: a later one must still be newer.
 */
static void reconnecting_never_reaches_the_next_owners_epoch(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct problem p;
    problem_init(&p);
    assert_ok(place(a, 3, place_url(state, "far").text));
    struct db *old = open_placed(state, 3, take(a, 3));
    make_notes(old);
    for (int i = 1; i <= 3; i++) {
        run_outside(state, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                           " WHERE application_name = 'pawl' AND query = 'COMMIT'");
        assert_ok(add_in_a_transaction(old, i));
    }
    struct db *young = open_placed(state, 3, take(a, 3));
    assert_int_equal(add_in_a_transaction(old, 8), ERR_STORE_FAILED);
    assert_ok(add_in_a_transaction(young, 9));
    problem_release(&p);
    db_close(old);
    db_close(young);
    cluster_store_close(a);
}

/* --- a database that does not answer --- */

/* Takes connections and never answers. */
static int listen_in(const char *folder)
{
    struct sockaddr_un address = socket_in(folder);
    int silent = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(silent, 8), 0);
    return silent;
}

static void stop_listening(int silent, const char *folder)
{
    close(silent);
    assert_int_equal(unlink(socket_in(folder).sun_path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* The URL has two hosts: both are silent for a while, and then the first one is back. */
static void a_node_is_back_when_a_silent_database_is(void **state)
{
    struct path url = store_of(state);
    struct path real;
    struct path x = path_in(*state, "x");
    struct path y = path_in(*state, "y");
    char hosts[4 * DB_PATH_MAX];
    char *host = strstr(url.text, "host=") + strlen("host=");
    char *rest = strchr(host, '&');
    (void)snprintf(real.text, sizeof(real.text), "%.*s", (int)(rest - host), host);
    (void)snprintf(hosts, sizeof(hosts), "%.*s%s,%s%s", (int)(host - url.text), url.text, x.text,
                   y.text, rest);
    assert_int_equal(symlink(real.text, x.text), 0);
    cluster_store_close(open_cluster(state));
    struct cluster_store *a = NULL;
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_open(hosts, &ENV_SYSTEM, &p, &a));
    assert_ok(cluster_store_join(a, "a", "http://127.0.0.1:1", &p));
    assert_int_equal(unlink(x.text), 0);
    int silent[] = {listen_in(x.text), listen_in(y.text)};
    run_outside(state, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                       " WHERE application_name = 'pawl'");
    assert_int_equal(cluster_store_renew(a, &p), ERR_STORE_BUSY);
    problem_clear(&p);
    assert_int_equal(cluster_store_renew(a, &p), ERR_STORE_BUSY);
    problem_clear(&p);
    assert_false(cluster_store_is_connected(a));
    stop_listening(silent[0], x.text);
    stop_listening(silent[1], y.text);
    assert_int_equal(symlink(real.text, x.text), 0);
    assert_ok(cluster_store_renew(a, &p));
    assert_int_equal(unlink(x.text), 0);
    problem_release(&p);
    cluster_store_close(a);
}

/* --- what others learn --- */

static void a_change_of_keys_is_known_everywhere(void **state)
{
    static const char KEY[] =
        "INSERT INTO api_keys (id, prefix, hash, role, created_at, created_by) VALUES"
        " ('\\x01', 'p', '\\x02', 'admin', 1, 'me')";
    struct cluster_store *a = join(state, "a");
    struct db *db = open_shard(state, 0, take(a, 0));
    uint64_t before = view_of(a)->auth_epoch;
    run_sql(db, KEY);
    assert_int_equal(view_of(a)->auth_epoch, before + 1);
    run_sql(db, "UPDATE api_keys SET last_used_at = 2");
    assert_int_equal(view_of(a)->auth_epoch, before + 1);
    run_sql(db, "UPDATE api_keys SET revoked_at = 3");
    assert_int_equal(view_of(a)->auth_epoch, before + 2);
    db_close(db);
    cluster_store_close(a);
}

static void a_node_that_is_drained_stays_so_and_one_that_leaves_is_forgotten(void **state)
{
    struct cluster_store *a = join(state, "a");
    struct cluster_store *b = join(state, "b");
    struct problem p;
    problem_init(&p);
    assert_ok(cluster_store_set_draining(b, "a", true, &p));
    assert_int_equal(cluster_store_set_draining(b, "nobody", true, &p), ERR_NOT_FOUND);
    assert_ok(cluster_store_leave(a, &p));
    assert_ok(cluster_store_leave(b, &p));
    cluster_store_close(a);
    a = join(state, "a");
    const struct cluster_view *view = view_of(a);
    assert_int_equal(view->node_count, 1);
    assert_true(view->nodes[0].draining);
    problem_release(&p);
    cluster_store_close(a);
    cluster_store_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_directory_keeps_its_number_of_shards_and_its_secret),
        folder_test(a_node_shows_with_its_url_and_its_lease),
        folder_test(a_process_that_lost_its_name_cannot_renew_or_take),
        folder_test(a_shard_is_taken_once),
        folder_test(a_shard_can_be_taken_when_it_was_released_or_its_owner_is_gone),
        folder_test(a_lease_that_the_server_cannot_renew_is_tried_again),
        folder_test(a_node_that_has_died_has_no_session_and_its_lease_can_be_ended),
        folder_test(a_node_that_connects_again_shows_its_session_again),
        folder_test(a_node_without_a_lease_takes_nothing),
        folder_test(a_writer_without_a_node_and_nodes_keep_out_of_each_others_way),
        folder_test(an_owner_that_lost_its_shard_cannot_commit),
        folder_test(an_epoch_of_yesterday_opens_no_shard),
        folder_test(shards_have_tables_of_their_own),
        folder_test(a_shard_can_be_placed_until_it_has_tables),
        folder_test(a_database_with_shards_is_no_cluster_of_its_own),
        folder_test(an_owner_that_lost_a_shard_elsewhere_cannot_commit),
        folder_test(reconnecting_never_reaches_the_next_owners_epoch),
        folder_test(a_node_is_back_when_a_silent_database_is),
        folder_test(a_change_of_keys_is_known_everywhere),
        folder_test(a_node_that_is_drained_stays_so_and_one_that_leaves_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
