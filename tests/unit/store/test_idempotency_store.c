/* Idempotency records as rows: found whether they are recent or indexed, never twice, never lost.
 */
#include "base/limits.h"
#include "domain/idempotency.h"
#include "store/folder.h"
#include "store/rows.h"

#include "store/idempotency.h"
#include "store/run/late_index.h"
#include "store/run/runs.h"
#include "store/tenants.h"

struct shelf {
    struct db *db;
    struct idem_keys *keys;
};

static struct shelf open_shelf(const struct folder *f)
{
    struct shelf s = {open_writer(path_in(f, "p.db").text), idem_keys_new()};
    assert_non_null(s.keys);
    assert_ok(idem_keys_open(s.keys, s.db, &ENV_SYSTEM));
    return s;
}

static void close_shelf(struct shelf *s)
{
    idem_keys_free(s->keys);
    db_close(s->db);
}

/* As a restart does. */
static void reopen(struct shelf *s)
{
    idem_keys_free(s->keys);
    s->keys = idem_keys_new();
    assert_non_null(s->keys);
    assert_ok(idem_keys_open(s->keys, s->db, &ENV_SYSTEM));
}

static struct idem_record record_of(int64_t tenant, const char *key, int64_t expires_at)
{
    return (struct idem_record){
        .tenant = tenant,
        .key = str_of(key),
        .route = STR("POST /api/v1/runs"),
        .fingerprint = sha256_of(STR("print")),
        .raw_hash = str_hash(str_of(key)),
        .status = 201,
        .says_created = true,
        .body = str_of(key), /* so that a record shows whose it is */
        .created_at = 1000,
        .expires_at = expires_at,
        .last_replayed_at = -1,
    };
}

static void insert(struct shelf *s, int64_t tenant, const char *key, int64_t expires_at)
{
    struct idem_record r = record_of(tenant, key, expires_at);
    assert_ok(idempotency_insert(s->db, s->keys, &r));
}

/* The same in the row of a run that it has started; its number is minus the run's. */
static int64_t insert_run(struct shelf *s, int64_t tenant, const char *key, const char *route)
{
    static int64_t last = 1000;
    struct run run = plain_run(tenant, env_new_id(&ENV_SYSTEM), ++last);
    struct run_key record = {
        .key = str_of(key),
        .route = str_of(route),
        .fingerprint = sha256_of(STR("print")),
        .raw_hash = str_hash(str_of(key)),
        .born = str_of(key),
    };
    run.key = &record;
    assert_ok(runs_insert(s->db, &run));
    idem_keys_saw_run(s->keys, run.num, run.input.len);
    assert_ok(idem_keys_add(s->keys, tenant, record.key, -run.num, false));
    return -run.num;
}

struct found {
    int times;
    struct idem_record record; /* text is gone but for body */
    char body[64];
};

static struct found found_of(bool found, const struct idem_record *record, struct arena *arena)
{
    struct found f = {.times = found};
    if (found) {
        f.record = *record;
        struct str text = record->num < 0 ? record->born : record->body;
        (void)snprintf(f.body, sizeof(f.body), "%.*s", STR_ARG(text));
    }
    arena_release(arena);
    return f;
}

static struct found find(struct shelf *s, int64_t tenant, const char *key)
{
    struct arena arena;
    struct idem_record record;
    bool is_found = false;
    arena_init(&arena, MIB);
    assert_ok(idempotency_find(s->db, s->keys, tenant, str_of(key), &arena, &is_found, &record));
    struct found f = found_of(is_found, &record, &arena);
    if (f.times == 1) {
        assert_string_equal(f.body, key);
        assert_int_equal(f.record.tenant, tenant);
    }
    return f;
}

static bool has(struct shelf *s, int64_t tenant, const char *key)
{
    return find(s, tenant, key).times == 1;
}

static void index_all(struct shelf *s)
{
    assert_ok(db_begin(s->db));
    assert_ok(idem_keys_seal(s->keys, s->db));
    assert_ok(db_commit(s->db));
    idem_keys_commit(s->keys);
    assert_int_equal(idem_keys_unsealed(s->keys), 0);
}

static void commit(struct shelf *s)
{
    assert_ok(db_commit(s->db));
    idem_keys_commit(s->keys);
}

static void delete_key(struct shelf *s, int64_t tenant, const char *key)
{
    struct found f = find(s, tenant, key);
    assert_int_equal(f.times, 1);
    assert_ok(idempotency_delete(s->db, f.record.num));
}

static int64_t keys_in_segments(struct shelf *s)
{
    static const char SQL[] = "SELECT COALESCE(sum(entries), 0) FROM key_segments";
    return number_of(s->db, SQL);
}

/* --- finding --- */

static void a_record_is_found_while_recent_when_indexed_and_after_a_reload(void **state)
{
    struct shelf s = open_shelf(*state);
    assert_false(has(&s, 1, "a"));
    insert(&s, 1, "a", -1);
    assert_int_equal(idem_keys_unsealed(s.keys), 1);
    assert_true(has(&s, 1, "a"));
    reopen(&s);
    assert_true(has(&s, 1, "a"));
    assert_int_equal(idem_keys_unsealed(s.keys), 1);
    index_all(&s);
    assert_true(has(&s, 1, "a"));
    reopen(&s);
    assert_true(has(&s, 1, "a"));
    assert_int_equal(idem_keys_unsealed(s.keys), 0);
    insert(&s, 1, "b", -1);
    assert_true(has(&s, 1, "a") && has(&s, 1, "b"));
    assert_false(has(&s, 1, "c"));
    close_shelf(&s);
}

static void every_column_comes_back(void **state)
{
    struct shelf s = open_shelf(*state);
    struct idem_record r = record_of(3, "key", 9999);
    r.has_run = true;
    r.run_id = env_new_id(&ENV_SYSTEM);
    assert_ok(idempotency_insert(s.db, s.keys, &r));
    struct found f = find(&s, 3, "key");
    assert_int_equal(f.times, 1);
    assert_true(f.record.num > 0);
    assert_true(sha256_eq(&f.record.fingerprint, &r.fingerprint));
    assert_true(f.record.raw_hash == r.raw_hash);
    assert_true(f.record.has_run && uuid_eq(f.record.run_id, r.run_id));
    assert_int_equal(f.record.status, 201);
    assert_true(f.record.says_created);
    assert_int_equal(f.record.created_at, 1000);
    assert_int_equal(f.record.expires_at, 9999);
    assert_int_equal(f.record.last_replayed_at, -1);
    assert_int_equal(f.record.replays, 0);
    assert_int_equal(f.record.mismatches, 0);
    close_shelf(&s);
}

static void tenants_do_not_share_keys(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "k", -1);
    assert_false(has(&s, 2, "k"));
    insert(&s, 2, "k", -1);
    int64_t one = find(&s, 1, "k").record.num;
    int64_t two = find(&s, 2, "k").record.num;
    assert_int_not_equal(one, two);
    index_all(&s);
    assert_int_equal(find(&s, 1, "k").record.num, one);
    assert_int_equal(find(&s, 2, "k").record.num, two);
    close_shelf(&s);
}

static int glance(struct shelf *s, struct db *reader, int64_t tenant, const char *key)
{
    struct arena arena;
    struct idem_record record;
    struct key_hints hints;
    bool found = false;
    arena_init(&arena, MIB);
    if (idem_keys_glance(s->keys, tenant, str_of(key), &hints))
        assert_ok(idempotency_follow(reader, s->keys, tenant, str_of(key), &hints, &arena, &found,
                                     &record));
    arena_release(&arena);
    return found;
}

static void another_thread_finds_what_is_committed(void **state)
{
    struct shelf s = open_shelf(*state);
    struct db *reader = open_reader(path_in(*state, "p.db").text);
    assert_ok(db_begin(s.db));
    insert(&s, 1, "k", -1);
    struct key_hints hints;
    assert_false(idem_keys_glance(s.keys, 1, STR("k"), &hints));
    commit(&s);
    assert_int_equal(glance(&s, reader, 1, "k"), 1);
    index_all(&s);
    assert_int_equal(glance(&s, reader, 1, "k"), 1);
    assert_int_equal(glance(&s, reader, 1, "other"), 0);
    assert_int_equal(glance(&s, reader, 2, "k"), 0);
    delete_key(&s, 1, "k");
    assert_int_equal(glance(&s, reader, 1, "k"), 0);
    db_close(reader);
    close_shelf(&s);
}

static void thousands_of_recent_records_are_all_found(void **state)
{
    enum { MANY = 10000 };
    struct shelf s = open_shelf(*state);
    char key[32];
    assert_ok(db_begin(s.db));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        insert(&s, 1 + i % 3, key, -1);
    }
    commit(&s);
    assert_int_equal(idem_keys_unsealed(s.keys), MANY);
    for (int i = 0; i < MANY; i += 7) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        assert_true(has(&s, 1 + i % 3, key));
        assert_false(has(&s, 1 + (i + 1) % 3, key));
    }
    index_all(&s);
    assert_int_equal(keys_in_segments(&s), MANY);
    for (int i = 0; i < MANY; i += 7) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        assert_true(has(&s, 1 + i % 3, key));
    }
    close_shelf(&s);
}

/* An entry leads to a row that may be another key's: that is not an answer. */
static void a_row_of_another_key_does_not_answer(void **state)
{
    static const char OTHER[] = "UPDATE key_records SET key = 'other' WHERE key = 'a'";
    static const char TENANT[] = "UPDATE key_records SET tenant = 2 WHERE key = 'b'";
    struct shelf s = open_shelf(*state);
    for (int sealed = 0; sealed < 2; sealed++) {
        insert(&s, 1, "a", -1);
        insert(&s, 1, "b", -1);
        if (sealed == 1)
            index_all(&s);
        run_sql(s.db, OTHER);
        run_sql(s.db, TENANT);
        assert_false(has(&s, 1, "a"));
        assert_false(has(&s, 1, "b"));
    }
    close_shelf(&s);
}

static void what_was_rolled_back_is_not_found(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "before", -1);
    idem_keys_commit(s.keys);
    assert_ok(db_begin(s.db));
    insert(&s, 1, "lost", -1);
    assert_true(has(&s, 1, "lost"));
    db_rollback(s.db);
    idem_keys_forget(s.keys);
    assert_false(has(&s, 1, "lost"));
    assert_true(has(&s, 1, "before"));
    insert(&s, 1, "lost", -1);
    assert_true(has(&s, 1, "lost"));
    close_shelf(&s);
}

static void an_index_that_was_rolled_back_is_filled_again(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "a", -1);
    idem_keys_commit(s.keys);
    assert_ok(db_begin(s.db));
    assert_ok(idem_keys_seal(s.keys, s.db));
    db_rollback(s.db);
    idem_keys_forget(s.keys);
    assert_true(has(&s, 1, "a"));
    assert_int_equal(idem_keys_unsealed(s.keys), 1);
    index_all(&s);
    index_all(&s); /* a second time there is nothing to do */
    assert_true(has(&s, 1, "a"));
    assert_int_equal(keys_in_segments(&s), 1);
    close_shelf(&s);
}

static void an_index_whose_mark_is_damaged_is_made_again(void **state)
{
    static const char SQL[] = "UPDATE indexed SET through = -7 WHERE name = 'idempotency'";
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "a", -1);
    idem_keys_commit(s.keys);
    index_all(&s);
    insert(&s, 1, "b", -1);
    assert_ok(db_exec_values(s.db, SQL, NULL, 0, NULL));
    reopen(&s);
    assert_true(has(&s, 1, "a"));
    assert_true(has(&s, 1, "b"));
    insert(&s, 1, "c", -1);
    assert_true(has(&s, 1, "c"));
    close_shelf(&s);
}

/* One with a key and one without: the row's number is all that is wrong. */
static void a_run_whose_number_is_damaged_costs_the_others_nothing(void **state)
{
    static const char SQL[] = "UPDATE runs SET num = 4611686018427387904 + num WHERE num = $1";
    struct shelf s = open_shelf(*state);
    insert_run(&s, 1, "a", "POST /api/v1/runs");
    struct run keyless = plain_run(1, env_new_id(&ENV_SYSTEM), 1);
    assert_ok(runs_insert(s.db, &keyless));
    int64_t damaged[] = {-insert_run(&s, 1, "b", "POST /api/v1/runs"), keyless.num};
    idem_keys_commit(s.keys);
    for (size_t i = 0; i < ARRAY_LEN(damaged); i++)
        assert_ok(DB_EXEC(s.db, SQL, NULL, DB_I(damaged[i])));
    reopen(&s);
    assert_true(has(&s, 1, "a"));
    assert_ok(idem_keys_rebuild(s.keys, s.db));
    idem_keys_commit(s.keys);
    assert_true(has(&s, 1, "a"));
    int64_t lost = 0;
    int64_t broken = 0;
    assert_ok(idem_keys_check(s.db, &lost, &broken));
    assert_true(lost == 0 && broken == 0);
    close_shelf(&s);
}

/* --- deleting --- */

static void a_deleted_record_is_gone_whether_recent_or_indexed(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "recent", -1);
    delete_key(&s, 1, "recent");
    assert_false(has(&s, 1, "recent"));
    insert(&s, 1, "indexed", -1);
    index_all(&s);
    delete_key(&s, 1, "indexed");
    assert_false(has(&s, 1, "indexed"));
    insert(&s, 1, "recent", -1);
    insert(&s, 1, "indexed", -1);
    assert_true(has(&s, 1, "recent") && has(&s, 1, "indexed"));
    index_all(&s);
    assert_true(has(&s, 1, "recent") && has(&s, 1, "indexed"));
    close_shelf(&s);
}

static void numbers_are_never_used_again(void **state)
{
    struct shelf s = open_shelf(*state);
    int64_t last = 0;
    for (int round = 0; round < 12; round++) {
        insert(&s, 1, "k", -1);
        int64_t num = find(&s, 1, "k").record.num;
        assert_true(num > last);
        last = num;
        if (round % 3 == 1)
            index_all(&s);
        delete_key(&s, 1, "k");
        if (round % 3 == 1) /* the index knows the number by now */
            reopen(&s);
    }
    close_shelf(&s);
}

/* --- counting --- */

static void counts_add_up(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "k", -1);
    int64_t num = find(&s, 1, "k").record.num;
    assert_ok(idempotency_count(s.db, num, 0, 2, 5000));
    struct found f = find(&s, 1, "k");
    assert_int_equal(f.record.mismatches, 2);
    assert_int_equal(f.record.replays, 0);
    assert_int_equal(f.record.last_replayed_at, -1); /* a mismatch is no replay */
    assert_ok(idempotency_count(s.db, num, 3, 1, 6000));
    f = find(&s, 1, "k");
    assert_int_equal(f.record.mismatches, 3);
    assert_int_equal(f.record.replays, 3);
    assert_int_equal(f.record.last_replayed_at, 6000);
    assert_ok(idempotency_count(s.db, num + 100, 1, 1, 7000)); /* it may be gone by now */
    close_shelf(&s);
}

/* --- evicting --- */

static int64_t evict(struct shelf *s, int64_t now_ms, int64_t limit)
{
    int64_t evicted = -1;
    assert_ok(db_begin(s->db));
    assert_ok(idempotency_evict(s->db, now_ms, limit, &evicted));
    assert_ok(db_commit(s->db));
    return evicted;
}

static void the_first_to_expire_go_first_and_no_more_than_asked(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "d", 400);
    insert(&s, 2, "b", 200);
    index_all(&s);
    insert(&s, 1, "never", -1);
    insert(&s, 1, "a", 100);
    insert(&s, 3, "c", 300);
    assert_int_equal(evict(&s, 99, 10), 0);
    assert_int_equal(evict(&s, 1000, 2), 2);
    assert_false(has(&s, 1, "a") || has(&s, 2, "b"));
    assert_true(has(&s, 3, "c") && has(&s, 1, "d") && has(&s, 1, "never"));
    assert_int_equal(evict(&s, 300, 10), 1); /* at its time, not after it */
    assert_false(has(&s, 3, "c"));
    assert_true(has(&s, 1, "d"));
    assert_int_equal(evict(&s, INT64_MAX, 10), 1);
    assert_true(has(&s, 1, "never"));
    assert_int_equal(evict(&s, INT64_MAX, 10), 0);
    close_shelf(&s);
}

static void an_expired_record_is_still_found(void **state)
{
    struct shelf s = open_shelf(*state);
    insert(&s, 1, "old", 1);
    assert_true(has(&s, 1, "old")); /* whether it counts is the caller's business */
    close_shelf(&s);
}

/* --- against a model --- */

enum { KEYS = 40, TENANTS = 3 };

struct model {
    bool there[TENANTS][KEYS];
    int64_t expires_at[TENANTS][KEYS];
    int64_t num[TENANTS][KEYS];
};

static void key_text(size_t key, char out[static 16])
{
    (void)snprintf(out, 16, "key-%zu", key);
}

static void model_evict(struct model *m, int64_t now, int64_t limit)
{
    for (; limit > 0; limit--) {
        size_t best_t = 0;
        size_t best_k = 0;
        bool any = false;
        for (size_t t = 0; t < TENANTS; t++) {
            for (size_t k = 0; k < KEYS; k++) {
                if (!m->there[t][k] || m->expires_at[t][k] < 0 || m->expires_at[t][k] > now)
                    continue;
                int64_t best = m->expires_at[best_t][best_k];
                if (!any || m->expires_at[t][k] < best ||
                    (m->expires_at[t][k] == best && m->num[t][k] < m->num[best_t][best_k])) {
                    any = true;
                    best_t = t;
                    best_k = k;
                }
            }
        }
        if (!any)
            return;
        m->there[best_t][best_k] = false;
    }
}

static void check_model(struct shelf *s, const struct model *m)
{
    char key[16];
    for (size_t t = 0; t < TENANTS; t++) {
        for (size_t k = 0; k < KEYS; k++) {
            key_text(k, key);
            struct found f = find(s, (int64_t)t + 1, key);
            assert_int_equal(f.times, m->there[t][k]);
            if (f.times == 1)
                assert_int_equal(f.record.num, m->num[t][k]);
        }
    }
    int64_t doubles = -1;
    assert_ok(idempotency_doubles(s->db, &doubles));
    assert_int_equal(doubles, 0);
}

/* Does what background work does, until there is nothing left to do. */
static void merge_all(struct shelf *s)
{
    while (idem_keys_work_is_due(s->keys)) {
        assert_ok(db_begin(s->db));
        assert_ok(idem_keys_work(s->keys, s->db));
        commit(s);
    }
}

static void any_order_of_changes_loses_nothing_and_repeats_nothing(void **state)
{
    struct shelf s = open_shelf(*state);
    static struct model m;
    memset(&m, 0, sizeof(m));
    struct rng r = {77};
    for (int batch = 0; batch < 60; batch++) {
        struct model before = m;
        assert_ok(db_begin(s.db));
        for (int step = 0; step < 20; step++) {
            size_t t = rng_below(&r, TENANTS);
            size_t k = rng_below(&r, KEYS);
            char key[16];
            key_text(k, key);
            if (rng_below(&r, 12) == 0) {
                int64_t evicted;
                int64_t now = (int64_t)rng_below(&r, 1000);
                int64_t limit = (int64_t)rng_below(&r, 6);
                assert_ok(idempotency_evict(s.db, now, limit, &evicted));
                model_evict(&m, now, limit);
            } else if (m.there[t][k]) {
                delete_key(&s, (int64_t)t + 1, key);
                m.there[t][k] = false;
            } else {
                m.expires_at[t][k] = rng_below(&r, 2) == 0 ? -1 : (int64_t)rng_below(&r, 1000);
                if (m.expires_at[t][k] < 0 && rng_below(&r, 2) == 0)
                    (void)insert_run(&s, (int64_t)t + 1, key, "POST /api/v1/runs");
                else
                    insert(&s, (int64_t)t + 1, key, m.expires_at[t][k]);
                m.num[t][k] = find(&s, (int64_t)t + 1, key).record.num;
                m.there[t][k] = true;
            }
        }
        if (rng_below(&r, 3) == 0)
            assert_ok(idem_keys_seal(s.keys, s.db));
        if (rng_below(&r, 4) == 0) {
            db_rollback(s.db);
            idem_keys_forget(s.keys);
            m = before;
        } else {
            commit(&s);
        }
        if (rng_below(&r, 5) == 0)
            reopen(&s);
        merge_all(&s);
        check_model(&s, &m);
    }
    close_shelf(&s);
}

/* --- in rows of runs --- */

static void a_record_in_the_row_of_its_run_is_as_any_other(void **state)
{
    struct shelf s = open_shelf(*state);
    struct sha256 print = sha256_of(STR("print"));
    int64_t num = insert_run(&s, 3, "key", "POST /api/v1/runs");
    for (int round = 0; round < 3; round++) {
        struct found f = find(&s, 3, "key");
        assert_int_equal(f.times, 1);
        assert_int_equal(f.record.num, num);
        assert_true(sha256_eq(&f.record.fingerprint, &print));
        assert_true(f.record.raw_hash == str_hash(STR("key")));
        assert_true(f.record.has_run && f.record.says_created);
        assert_int_equal(f.record.status, 200);
        assert_int_equal(f.record.expires_at, -1);
        assert_int_equal(f.record.last_replayed_at, -1);
        assert_false(has(&s, 4, "key") || has(&s, 3, "other"));
        if (round == 0)
            reopen(&s);
        else
            index_all(&s);
    }
    assert_ok(idempotency_count(s.db, num, 2, 1, 5000));
    assert_ok(idempotency_count(s.db, num, 1, 0, 6000));
    struct found f = find(&s, 3, "key");
    assert_int_equal(f.record.replays, 3);
    assert_int_equal(f.record.mismatches, 1);
    assert_int_equal(f.record.last_replayed_at, 6000);
    delete_key(&s, 3, "key");
    assert_false(has(&s, 3, "key"));
    reopen(&s);
    assert_false(has(&s, 3, "key"));
    (void)insert_run(&s, 3, "key", "POST /api/v1/runs");
    assert_true(has(&s, 3, "key"));
    close_shelf(&s);
}

static void check_route(struct shelf *s, const char *key, const char *route)
{
    struct arena arena;
    struct idem_record record;
    bool found = false;
    arena_init(&arena, MIB);
    assert_ok(idempotency_find(s->db, s->keys, 1, str_of(key), &arena, &found, &record));
    assert_true(found && str_is(record.route, route));
    arena_release(&arena);
}

/* The workflow of a plain run is "w". */
static void the_usual_route_of_a_start_is_not_kept(void **state)
{
    static const char USUAL[] = "POST /api/v1/workflows/w/runs";
    static const char LONGER[] = "POST /api/v1/workflows/ww/runs";
    struct shelf s = open_shelf(*state);
    (void)insert_run(&s, 1, "a", USUAL);
    (void)insert_run(&s, 1, "b", LONGER);
    check_route(&s, "a", USUAL);
    check_route(&s, "b", LONGER);
    assert_int_equal(number_of(s.db, "SELECT count(*) FROM runs WHERE key_route IS NULL"), 1);
    close_shelf(&s);
}

static void a_record_outlives_the_run_that_had_it(void **state)
{
    struct shelf s = open_shelf(*state);
    int64_t run = -insert_run(&s, 1, "k", "POST /api/v1/runs");
    assert_ok(idempotency_count(s.db, -run, 7, 0, 5000));
    struct arena arena;
    struct idem_record record;
    bool found = false;
    arena_init(&arena, MIB);
    assert_ok(db_begin(s.db));
    assert_ok(idempotency_of_run(s.db, run, &arena, &found, &record));
    assert_true(found && record.num == -run);
    assert_ok(idempotency_keep_body(s.db, s.keys, &record, STR("k")));
    run_sql(s.db, "DELETE FROM runs");
    commit(&s);
    arena_release(&arena);
    for (int round = 0; round < 3; round++) {
        struct found f = find(&s, 1, "k");
        assert_int_equal(f.times, 1);
        assert_true(f.record.num > 0);
        assert_int_equal(f.record.replays, 7);
        if (round == 0)
            reopen(&s);
        else
            index_all(&s);
    }
    close_shelf(&s);
}

/* A start of the server reads what was not sealed: that must not grow with runs that have no key.
 */
static void runs_without_a_key_move_the_mark_too(void **state)
{
    struct shelf s = open_shelf(*state);
    int64_t num = insert_run(&s, 1, "k", "POST /api/v1/runs");
    for (int i = 0; i < KEY_ROWS_READ_MAX; i++)
        idem_keys_saw_run(s.keys, -num + i, 10);
    assert_true(idem_keys_work_is_due(s.keys));
    merge_all(&s); /* and what else is due */
    assert_int_equal(number_of(s.db, "SELECT through FROM indexed WHERE name = 'run_keys'"),
                     -num + KEY_ROWS_READ_MAX - 1);
    assert_true(has(&s, 1, "k"));
    idem_keys_saw_run(s.keys, -num + KEY_ROWS_READ_MAX, (size_t)4 * KIB * KEY_ROWS_READ_MAX);
    assert_true(idem_keys_work_is_due(s.keys));
    close_shelf(&s);
}

/* Its number is a time, which the next run may have again. */
static void a_run_that_was_rolled_back_does_not_move_the_mark(void **state)
{
    struct shelf s = open_shelf(*state);
    assert_ok(db_begin(s.db));
    idem_keys_saw_run(s.keys, INT64_C(1) << 40, 10);
    db_rollback(s.db);
    idem_keys_forget(s.keys);
    index_all(&s);
    (void)insert_run(&s, 1, "k", "POST /api/v1/runs");
    reopen(&s);
    assert_true(has(&s, 1, "k"));
    close_shelf(&s);
}

static void a_run_whose_key_the_index_lacks_is_noticed_and_mended(void **state)
{
    struct shelf s = open_shelf(*state);
    int64_t lost = -1;
    int64_t broken = -1;
    int64_t num = insert_run(&s, 1, "k", "POST /api/v1/runs");
    assert_ok(idem_keys_check(s.db, &lost, &broken));
    assert_int_equal(lost + broken, 0);
    assert_ok(
        DB_EXEC(s.db, "UPDATE indexed SET through = $1 WHERE name = 'run_keys'", NULL, DB_I(-num)));
    assert_ok(idem_keys_check(s.db, &lost, &broken));
    assert_int_equal(lost, 1);
    reopen(&s);
    assert_false(has(&s, 1, "k"));
    assert_ok(db_begin(s.db));
    assert_ok(idem_keys_rebuild(s.keys, s.db));
    commit(&s);
    assert_true(has(&s, 1, "k"));
    assert_ok(idem_keys_check(s.db, &lost, &broken));
    assert_int_equal(lost + broken, 0);
    close_shelf(&s);
}

/* --- for doctor --- */

static void doubles_are_noticed(void **state)
{
    static const char DOUBLE[] = "UPDATE key_records SET key = 'a' WHERE key = 'b'";
    struct shelf s = open_shelf(*state);
    int64_t doubles = -1;
    insert(&s, 1, "a", -1);
    insert(&s, 1, "b", -1);
    insert(&s, 2, "a", -1);
    assert_ok(idempotency_doubles(s.db, &doubles));
    assert_int_equal(doubles, 0);
    run_sql(s.db, DOUBLE);
    assert_ok(idempotency_doubles(s.db, &doubles));
    assert_int_equal(doubles, 1);
    (void)insert_run(&s, 2, "a", "POST /api/v1/runs");
    assert_ok(idempotency_doubles(s.db, &doubles));
    assert_int_equal(doubles, 2);
    close_shelf(&s);
}

/* Of tenants that keep their runs for ever: elsewhere a key may outlive its run. */
static void records_without_their_run_are_noticed(void **state)
{
    struct shelf s = open_shelf(*state);
    struct tenant keeps = tenant_default(STR("keeps"), 1);
    struct tenant forgets = tenant_default(STR("forgets"), 1);
    forgets.run_retention_ms = 1000;
    assert_ok(tenants_insert(s.db, &keeps));
    assert_ok(tenants_insert(s.db, &forgets));
    assert_int_equal(keeps.num, 1);
    struct uuid id = env_new_id(&ENV_SYSTEM);
    int64_t num = runs_new_num(&id, 0, db_numbers(s.db));
    struct run run = plain_run(1, id, num);
    run.status = RUN_RUNNING;
    assert_ok(runs_insert(s.db, &run));
    struct idem_record r = record_of(1, "good", -1);
    r.has_run = true;
    r.run_id = id;
    assert_ok(idempotency_insert(s.db, s.keys, &r));
    insert(&s, 1, "without", -1);
    int64_t checked = -1;
    int64_t orphans = -1;
    assert_ok(idempotency_orphans(s.db, &checked, &orphans));
    assert_int_equal(checked, 1);
    assert_int_equal(orphans, 0);
    r = record_of(1, "orphan", -1);
    r.has_run = true;
    r.run_id = id;
    r.run_id.bytes[15] ^= 1; /* the same time, another run */
    assert_ok(idempotency_insert(s.db, s.keys, &r));
    assert_ok(idempotency_orphans(s.db, &checked, &orphans));
    assert_int_equal(checked, 2);
    assert_int_equal(orphans, 1);
    r = record_of(forgets.num, "gone", -1);
    r.has_run = true;
    r.run_id = env_new_id(&ENV_SYSTEM);
    assert_ok(idempotency_insert(s.db, s.keys, &r));
    assert_ok(idempotency_orphans(s.db, &checked, &orphans));
    assert_int_equal(checked, 2);
    assert_int_equal(orphans, 1);
    close_shelf(&s);
}

static void records_of_a_tenant_that_once_removed_runs_may_lack_their_run(void **state)
{
    struct shelf s = open_shelf(*state);
    struct tenant t = tenant_default(STR("once"), 1);
    assert_ok(tenants_insert(s.db, &t));
    struct idem_record r = record_of(t.num, "gone", -1);
    r.has_run = true;
    r.run_id = env_new_id(&ENV_SYSTEM);
    assert_ok(idempotency_insert(s.db, s.keys, &r));
    struct settings earlier = {.tenant = t.num, .version = 1, .actor = STR("ann")};
    int64_t checked = -1;
    int64_t orphans = -1;
    earlier.json = STR("{\"run_retention_s\":null,\"weight\":1}");
    assert_ok(settings_keep(s.db, &earlier));
    assert_ok(idempotency_orphans(s.db, &checked, &orphans));
    assert_int_equal(orphans, 1);
    earlier.version = 2;
    earlier.json = STR("{\"run_retention_s\":30,\"weight\":1}");
    assert_ok(settings_keep(s.db, &earlier));
    assert_ok(idempotency_orphans(s.db, &checked, &orphans));
    assert_int_equal(orphans, 0);
    close_shelf(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_record_is_found_while_recent_when_indexed_and_after_a_reload),
        folder_test(every_column_comes_back),
        folder_test(tenants_do_not_share_keys),
        folder_test(another_thread_finds_what_is_committed),
        folder_test(thousands_of_recent_records_are_all_found),
        folder_test(a_row_of_another_key_does_not_answer),
        folder_test(what_was_rolled_back_is_not_found),
        folder_test(an_index_that_was_rolled_back_is_filled_again),
        folder_test(an_index_whose_mark_is_damaged_is_made_again),
        folder_test(a_run_whose_number_is_damaged_costs_the_others_nothing),
        folder_test(a_deleted_record_is_gone_whether_recent_or_indexed),
        folder_test(numbers_are_never_used_again),
        folder_test(counts_add_up),
        folder_test(the_first_to_expire_go_first_and_no_more_than_asked),
        folder_test(an_expired_record_is_still_found),
        folder_test(any_order_of_changes_loses_nothing_and_repeats_nothing),
        folder_test(a_record_in_the_row_of_its_run_is_as_any_other),
        folder_test(the_usual_route_of_a_start_is_not_kept),
        folder_test(a_record_outlives_the_run_that_had_it),
        folder_test(runs_without_a_key_move_the_mark_too),
        folder_test(a_run_that_was_rolled_back_does_not_move_the_mark),
        folder_test(a_run_whose_key_the_index_lacks_is_noticed_and_mended),
        folder_test(doubles_are_noticed),
        folder_test(records_without_their_run_are_noticed),
        folder_test(records_of_a_tenant_that_once_removed_runs_may_lack_their_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
