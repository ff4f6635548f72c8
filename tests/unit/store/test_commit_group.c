/* Commits of several shards in one transaction on PostgreSQL: each keeps its fence and its outcome.
 *
 * Two shards commit to tables that are locked, so that the other ones gather. */
#include "store/cut_proxy.h"
#include "store/notes.h"

#include "store/postgres/cluster_store.h"
#include "store/postgres/commit_group.h"

enum { SHARDS = 5, HELD = 2, ROUNDS = 60, CUTS = 24, WAIT_MS_MAX = 60 * 1000 };

/* --- shards and their writers --- */

struct writer_thread {
    struct db *db;
    int64_t num;
    enum err err;
    pthread_t thread;
};

struct shards {
    struct commit_group *group;
    struct writer_thread writers[SHARDS];
    struct cut_proxy proxy;
    struct raw raw;
    struct raw locks[HELD]; /* of the tables of the first shards */
    char schema[64];
    char url[256]; /* through the proxy */
};

static enum err note(struct db *db, int64_t num)
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

static void make_shards(const char *url)
{
    struct cluster_store *c = NULL;
    struct problem p;
    bool is_new;
    problem_init(&p);
    assert_ok(cluster_store_open(url, &ENV_SYSTEM, &p, &c));
    assert_ok(cluster_store_init(c, SHARDS, &p, &is_new));
    cluster_store_close(c);
    problem_release(&p);
}

static struct db *open_shard(const struct shards *s, struct commit_group *group, int shard)
{
    char url[sizeof(s->url) + 16];
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    (void)snprintf(url, sizeof(url), "%s&shard=%d", s->url, shard);
    struct db_config config = {
        .url = str_of(url), .access = DB_WRITER, .env = &ENV_SYSTEM, .commit_group = group};
    if (db_open(&config, &p, &db) != ERR_OK)
        fail_msg("%s", p.detail);
    problem_release(&p);
    return db;
}

static void name_store(struct shards *s, void **state)
{
    char url[DB_PATH_MAX];
    test_store_url(path_in(*state, "g.db").text, url, sizeof(url));
    (void)snprintf(s->schema, sizeof(s->schema), "%s",
                   strstr(url, "&schema=") + strlen("&schema="));
    (void)snprintf(s->url, sizeof(s->url), "postgres:///postgres?host=%s&user=pawl&schema=%s",
                   s->proxy.folder.text, s->schema);
}

static void run_outside(struct shards *s, const char *format)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql), "SET search_path = %s", s->schema);
    raw_exec(&s->raw, sql);
    raw_exec(&s->raw, format);
}

/* Each shard has note 1, so that its statement is prepared. */
static void open_shards(struct shards *s, void **state)
{
    struct problem p;
    problem_init(&p);
    memset(s, 0, sizeof(*s));
    cut_proxy_start(&s->proxy, *state);
    name_store(s, state);
    make_shards(s->url);
    assert_ok(commit_group_new(str_of(s->url), &ENV_SYSTEM, &p, &s->group));
    for (int i = 0; i < SHARDS; i++) {
        s->writers[i].db = open_shard(s, s->group, i);
        make_notes(s->writers[i].db);
        assert_ok(note(s->writers[i].db, 1));
    }
    s->raw = raw_open(path_in(*state, "g.db").text);
    for (int i = 0; i < HELD; i++)
        s->locks[i] = raw_open(path_in(*state, "g.db").text);
    problem_release(&p);
}

static void close_shards(struct shards *s)
{
    for (int i = 0; i < SHARDS; i++)
        db_close(s->writers[i].db);
    commit_group_free(s->group);
    cut_proxy_stop(&s->proxy);
    raw_close(&s->raw);
    for (int i = 0; i < HELD; i++)
        raw_close(&s->locks[i]);
}

/* --- gathering --- */

static void *commit_main(void *ctx)
{
    struct writer_thread *w = ctx;
    w->err = note(w->db, w->num);
    return NULL;
}

static void begin_commit(struct writer_thread *w, int64_t num)
{
    w->num = num;
    assert_int_equal(pthread_create(&w->thread, NULL, commit_main, w), 0);
}

static int64_t held_up(struct shards *s)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IN"
                   " ('%s_0.notes'::regclass, '%s_1.notes'::regclass)",
                   s->schema, s->schema);
    return raw_number(&s->raw, sql);
}

/* Until then the first shards commit and the others wait. */
static void gather(struct shards *s, int64_t num)
{
    char sql[512];
    for (int i = 0; i < HELD; i++) {
        (void)snprintf(sql, sizeof(sql), "BEGIN; LOCK TABLE %s_%d.notes IN EXCLUSIVE MODE",
                       s->schema, i);
        raw_exec(&s->locks[i], sql);
        begin_commit(&s->writers[i], num);
    }
    int64_t until = env_mono_ms(&ENV_SYSTEM) + WAIT_MS_MAX;
    while (held_up(s) < HELD)
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
    for (int i = HELD; i < SHARDS; i++)
        begin_commit(&s->writers[i], num);
    while (commit_group_waiting(s->group) < SHARDS - HELD)
        assert_true(env_mono_ms(&ENV_SYSTEM) < until);
}

static void join(struct writer_thread *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* One of the first ends, and those that wait go on. */
static void let_go(struct shards *s)
{
    raw_exec(&s->locks[0], "COMMIT");
    join(&s->writers[0]);
    for (int i = HELD; i < SHARDS; i++)
        join(&s->writers[i]);
    raw_exec(&s->locks[1], "COMMIT");
    join(&s->writers[1]);
    assert_ok(s->writers[0].err);
    assert_ok(s->writers[1].err);
}

/* The first COMMIT is that of the shard that ends, the second one that of the others. */
static void cut_second(struct shards *s, enum cut cut)
{
    atomic_store(&s->proxy.spared, 1);
    atomic_store(&s->proxy.cut, cut);
}

static bool has_note(struct shards *s, int shard, int64_t num)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s_%d.notes WHERE num = %d", s->schema,
                   shard, (int)num);
    return raw_number(&s->raw, sql) == 1;
}

/* Of the last commits of the shards that gathered. */
static int64_t transactions(struct shards *s)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(DISTINCT xmin::text) FROM %s.commits WHERE shard >= %d AND"
                   " (shard, num) IN (SELECT shard, max(num) FROM %s.commits GROUP BY shard)",
                   s->schema, HELD, s->schema);
    return raw_number(&s->raw, sql);
}

/* --- tests --- */

static void commits_that_wait_become_one_transaction(void **state)
{
    struct shards s;
    open_shards(&s, state);
    for (int64_t num = 2; num < 5; num++) {
        gather(&s, num);
        let_go(&s);
        assert_int_equal(transactions(&s), 1);
        for (int i = 0; i < SHARDS; i++) {
            assert_ok(s.writers[i].err);
            assert_int_equal(db_commit_outcome(s.writers[i].db), DB_COMMITTED);
            assert_true(has_note(&s, i, num));
        }
    }
    close_shards(&s);
}

static void a_shard_that_has_another_owner_is_fenced_and_the_others_commit(void **state)
{
    struct shards s;
    open_shards(&s, state);
    gather(&s, 2);
    run_outside(&s, "UPDATE shards SET epoch = epoch + 1 WHERE shard = 3");
    let_go(&s);
    for (int i = HELD; i < SHARDS; i++) {
        assert_int_equal(db_commit_outcome(s.writers[i].db), i == 3 ? DB_FENCED : DB_COMMITTED);
        assert_int_equal(has_note(&s, i, 2), i != 3);
    }
    close_shards(&s);
}

static void a_row_that_breaks_a_rule_aborts_its_own_shard_only(void **state)
{
    struct shards s;
    open_shards(&s, state);
    char sql[256];
    (void)snprintf(sql, sizeof(sql), "INSERT INTO %s_3.notes VALUES (2, 'before')", s.schema);
    raw_exec(&s.raw, sql);
    gather(&s, 2);
    let_go(&s);
    for (int i = HELD; i < SHARDS; i++) {
        assert_int_equal(s.writers[i].err, i == 3 ? ERR_INTERNAL : ERR_OK);
        assert_true(has_note(&s, i, 2));
    }
    gather(&s, 3);
    let_go(&s);
    assert_int_equal(transactions(&s), 1);
    close_shards(&s);
}

static void a_common_commit_whose_answer_was_lost_is_found_out_by_each(void **state)
{
    struct shards s;
    open_shards(&s, state);
    gather(&s, 2);
    cut_second(&s, CUT_ANSWER);
    let_go(&s);
    for (int i = HELD; i < SHARDS; i++) {
        assert_ok(s.writers[i].err);
        assert_true(has_note(&s, i, 2));
        assert_ok(note(s.writers[i].db, 3)); /* the new session learns the statement */
    }
    gather(&s, 4);
    let_go(&s);
    assert_int_equal(transactions(&s), 1);
    close_shards(&s);
}

static void a_common_commit_that_never_arrived_is_aborted_for_each(void **state)
{
    struct shards s;
    open_shards(&s, state);
    gather(&s, 2);
    cut_second(&s, CUT_COMMIT);
    let_go(&s);
    for (int i = HELD; i < SHARDS; i++) {
        assert_int_equal(s.writers[i].err, ERR_STORE_BUSY);
        assert_int_equal(db_commit_outcome(s.writers[i].db), DB_ABORTED);
        assert_false(has_note(&s, i, 2));
        assert_ok(note(s.writers[i].db, 2));
    }
    close_shards(&s);
}

/* What it had sent of them may not have come to its end. */
static void a_session_that_was_lost_forgets_the_statements_of_writers_that_close(void **state)
{
    struct shards s;
    open_shards(&s, state);
    gather(&s, 2);
    atomic_store(&s.proxy.cut, CUT_FENCES);
    let_go(&s);
    for (int i = HELD; i < SHARDS; i++) {
        assert_ok(s.writers[i].err);
        db_close(s.writers[i].db);
        s.writers[i].db = open_shard(&s, s.group, i);
        assert_ok(note(s.writers[i].db, 3));
    }
    gather(&s, 4);
    atomic_store(&s.proxy.cut, CUT_SENSE);
    let_go(&s);
    assert_int_equal(atomic_load(&s.proxy.cut), CUT_NOTHING);
    for (int i = HELD; i < SHARDS; i++)
        assert_ok(s.writers[i].err);
    assert_int_equal(transactions(&s), SHARDS - HELD);
    close_shards(&s);
}

/* As after a crash that has lost the end of the log: the writer's own session would be gone. */
static void nobody_commits_together_where_the_last_commit_of_one_is_missing(void **state)
{
    struct shards s;
    open_shards(&s, state);
    run_outside(&s, "DELETE FROM commits WHERE shard = 3");
    gather(&s, 2);
    let_go(&s);
    assert_int_equal(transactions(&s), SHARDS - HELD);
    close_shards(&s);
}

static void a_shard_in_another_schema_commits_alone(void **state)
{
    struct shards s;
    struct problem p;
    struct commit_group *other = NULL;
    problem_init(&p);
    open_shards(&s, state);
    assert_ok(commit_group_new(STR("postgres:///postgres?schema=other"), &ENV_SYSTEM, &p, &other));
    db_close(s.writers[0].db);
    s.writers[0].db = open_shard(&s, other, 0);
    assert_ok(note(s.writers[0].db, 2));
    problem_release(&p);
    close_shards(&s);
    commit_group_free(other);
}

/* --- many of them, and connections that break --- */

struct history {
    struct writer_thread *writer;
    enum err err[ROUNDS];
    atomic_int *running;
};

static void *history_main(void *ctx)
{
    struct history *h = ctx;
    for (int i = 0; i < ROUNDS; i++)
        h->err[i] = note(h->writer->db, 100 + i);
    (void)atomic_fetch_sub(h->running, 1);
    return NULL;
}

static void what_is_acknowledged_is_there_and_what_is_aborted_is_not(void **state)
{
    struct shards s;
    struct history histories[SHARDS];
    atomic_int running = SHARDS;
    int cuts = 0;
    int lost = 0;
    open_shards(&s, state);
    for (int i = 0; i < SHARDS; i++) {
        histories[i] = (struct history){.writer = &s.writers[i], .running = &running};
        assert_int_equal(pthread_create(&s.writers[i].thread, NULL, history_main, &histories[i]),
                         0);
    }
    while (atomic_load(&running) > 0) {
        enum cut none = CUT_NOTHING;
        if (cuts < CUTS && atomic_compare_exchange_strong(&s.proxy.cut, &none,
                                                          cuts % 2 == 0 ? CUT_ANSWER : CUT_COMMIT))
            cuts++;
        sched_yield();
    }
    for (int i = 0; i < SHARDS; i++) {
        assert_int_equal(pthread_join(s.writers[i].thread, NULL), 0);
        for (int k = 0; k < ROUNDS; k++) {
            assert_true(histories[i].err[k] == ERR_OK || histories[i].err[k] == ERR_STORE_BUSY);
            assert_int_equal(has_note(&s, i, 100 + k), histories[i].err[k] == ERR_OK);
            lost += histories[i].err[k] != ERR_OK;
        }
    }
    assert_int_equal(cuts, CUTS);
    assert_true(lost > 0);
    close_shards(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(commits_that_wait_become_one_transaction),
        folder_test(a_shard_that_has_another_owner_is_fenced_and_the_others_commit),
        folder_test(a_row_that_breaks_a_rule_aborts_its_own_shard_only),
        folder_test(a_common_commit_whose_answer_was_lost_is_found_out_by_each),
        folder_test(a_common_commit_that_never_arrived_is_aborted_for_each),
        folder_test(a_session_that_was_lost_forgets_the_statements_of_writers_that_close),
        folder_test(nobody_commits_together_where_the_last_commit_of_one_is_missing),
        folder_test(a_shard_in_another_schema_commits_alone),
        folder_test(what_is_acknowledged_is_there_and_what_is_aborted_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
