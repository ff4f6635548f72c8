/* The audit trail: what was written comes back, and whatever is done to it past pawl is found, in
 * the right place. */
#include "store/folder.h"

#include "store/audit.h"

enum { TENANT = 3, OTHER = 8, ENTRIES = 6 };

static void append(struct db *db, int64_t tenant, int64_t at, const char *actor, const char *action)
{
    struct audit_entry e = {tenant,
                            at,
                            str_of(actor),
                            STR("10.0.0.1"),
                            str_of(action),
                            STR("target"),
                            at % 2 == 0 ? STR("{\"n\":1}") : STR_NONE};
    assert_ok(db_begin(db));
    assert_ok(audit_append(db, &e));
    assert_ok(db_commit(db));
}

/* Two chains, one behind the other. */
static struct db *with_entries(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (int64_t i = 1; i <= ENTRIES; i++) {
        append(db, TENANT, 1000 + i, i % 2 == 0 ? "ann" : "bob",
               i < 4 ? "key.create" : "run.cancel");
        append(db, OTHER, 2000 + i, "eve", "key.revoke");
    }
    return db;
}

/* --- checking --- */

struct seen {
    struct audit_break first;
    int64_t count;
};

static void note(void *ctx, const struct audit_break *b)
{
    struct seen *s = ctx;
    if (s->count++ == 0)
        s->first = *b;
}

static struct seen look(struct db *db, int64_t *ret_checked)
{
    struct seen s = {0};
    *ret_checked = 0;
    assert_ok(audit_verify_all(db, note, &s, ret_checked));
    return s;
}

static void a_chain_that_nobody_touched_is_whole(void **state)
{
    struct db *db = with_entries(state);
    int64_t checked;
    assert_int_equal(look(db, &checked).count, 0);
    assert_int_equal(checked, 2 * ENTRIES);
    struct seen s = {0};
    struct audit_head head;
    checked = 0;
    assert_ok(audit_verify(db, TENANT, note, &s, &checked, &head));
    assert_int_equal(s.count, 0);
    assert_int_equal(checked, ENTRIES);
    assert_int_equal(head.seq, ENTRIES);
    db_close(db);
}

static void an_empty_store_has_no_chain_and_nothing_is_wrong_with_it(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t checked;
    assert_int_equal(look(db, &checked).count, 0);
    assert_int_equal(checked, 0);
    db_close(db);
}

#define OF_TENANT " WHERE tenant = 3"

static void what_was_done_past_pawl_is_found_where_it_was_done(void **state)
{
    static const struct {
        const char *sql;
        enum audit_fault fault;
        int64_t seq;
        int64_t at;
        int64_t count;
    } CASES[] = {
        {"UPDATE audit SET actor = 'x'" OF_TENANT " AND seq = 3", AUDIT_CHANGED, 3, 1003, 1},
        {"UPDATE audit SET at = at + 1" OF_TENANT " AND seq = 1", AUDIT_CHANGED, 1, 1002, 1},
        {"UPDATE audit SET peer = ''" OF_TENANT " AND seq = 2", AUDIT_CHANGED, 2, 1002, 1},
        {"UPDATE audit SET action = 'y'" OF_TENANT " AND seq = 6", AUDIT_CHANGED, 6, 1006, 1},
        {"UPDATE audit SET target = 'z'" OF_TENANT " AND seq = 4", AUDIT_CHANGED, 4, 1004, 1},
        {"UPDATE audit SET detail = NULL" OF_TENANT " AND seq = 2", AUDIT_CHANGED, 2, 1002, 1},
        {"UPDATE audit SET detail = '{}'" OF_TENANT " AND seq = 3", AUDIT_CHANGED, 3, 1003, 1},
        /* A character that moves from one field to the next. */
        {"UPDATE audit SET action = 'key.creat', target = 'etarget'" OF_TENANT " AND seq = 2",
         AUDIT_CHANGED, 2, 1002, 1},
        /* A hash of its own makes an entry fit itself, and the one behind it not fit it. */
        {"UPDATE audit SET hash = zeroblob(32)" OF_TENANT " AND seq = 3", AUDIT_CHANGED, 3, 1003,
         2},
        {"UPDATE audit SET hash = zeroblob(32)" OF_TENANT " AND seq = 6", AUDIT_CHANGED, 6, 1006,
         1},
        {"UPDATE audit_heads SET hash = zeroblob(32)" OF_TENANT, AUDIT_CHANGED, 6, 1006, 1},
        {"DELETE FROM audit" OF_TENANT " AND seq = 1", AUDIT_MISSING, 1, -1, 1},
        {"DELETE FROM audit" OF_TENANT " AND seq = 4", AUDIT_MISSING, 4, -1, 1},
        {"DELETE FROM audit" OF_TENANT " AND seq IN (2, 3)", AUDIT_MISSING, 2, -1, 1},
        {"DELETE FROM audit" OF_TENANT " AND seq = 6", AUDIT_MISSING, 6, -1, 1},
        {"DELETE FROM audit" OF_TENANT " AND seq > 2", AUDIT_MISSING, 3, -1, 1},
        {"DELETE FROM audit" OF_TENANT, AUDIT_MISSING, 1, -1, 1},
        {"DELETE FROM audit_heads" OF_TENANT, AUDIT_ADDED, 1, 1001, 1},
        {"UPDATE audit_heads SET seq = 4" OF_TENANT, AUDIT_CHANGED, 4, 1004, 2},
        {"INSERT INTO audit SELECT tenant, 7, at, actor, peer, action, target, detail, hash"
         " FROM audit" OF_TENANT " AND seq = 6",
         AUDIT_ADDED, 7, 1006, 1},
        /* Two that change places; the numbers are taken round by a third. */
        {"UPDATE audit SET seq = 100" OF_TENANT " AND seq = 2;"
         "UPDATE audit SET seq = 2" OF_TENANT " AND seq = 3;"
         "UPDATE audit SET seq = 3" OF_TENANT " AND seq = 100",
         AUDIT_CHANGED, 2, 1003, 3},
        {"UPDATE audit SET seq = seq - 1" OF_TENANT " AND seq > 3 AND"
         " (SELECT count(*) FROM audit" OF_TENANT ") < 6;"
         "DELETE FROM audit" OF_TENANT " AND seq = 3;"
         "UPDATE audit SET seq = 3" OF_TENANT " AND seq = 4;"
         "UPDATE audit SET seq = 4" OF_TENANT " AND seq = 5;"
         "UPDATE audit SET seq = 5" OF_TENANT " AND seq = 6",
         AUDIT_CHANGED, 3, 1004, 4},
    };
    struct path whole = path_in(*state, "p.db");
    struct path path = path_in(*state, "broken.db");
    db_close(with_entries(state));
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        file_copy(whole.text, path.text);
        struct raw raw = raw_open(path.text);
        raw_exec(&raw, CASES[i].sql);
        raw_close(&raw);
        struct db *db = open_writer(path.text);
        int64_t checked;
        struct seen s = look(db, &checked);
        if (s.count != CASES[i].count || s.first.seq != CASES[i].seq)
            print_error("%s: %lld broken, the first %lld\n", CASES[i].sql, (long long)s.count,
                        (long long)s.first.seq);
        assert_int_equal(s.count, CASES[i].count);
        assert_int_equal(s.first.fault, CASES[i].fault);
        assert_int_equal(s.first.tenant, TENANT);
        assert_int_equal(s.first.seq, CASES[i].seq);
        assert_int_equal(s.first.at, CASES[i].at);
        db_close(db);
    }
}

static void what_is_missing_stays_missed_when_more_is_written(void **state)
{
    static const char *const SQL[] = {
        "DELETE FROM audit" OF_TENANT " AND seq = 6",
        "UPDATE audit SET hash = zeroblob(32)" OF_TENANT " AND seq = 6",
    };
    struct path whole = path_in(*state, "p.db");
    struct path path = path_in(*state, "broken.db");
    db_close(with_entries(state));
    for (size_t i = 0; i < ARRAY_LEN(SQL); i++) {
        file_copy(whole.text, path.text);
        struct db *db = open_writer(path.text);
        run_sql(db, SQL[i]);
        append(db, TENANT, 5000, "ann", "key.create");
        append(db, TENANT, 5001, "ann", "key.create");
        int64_t checked;
        assert_int_equal(look(db, &checked).first.seq, 6);
        assert_int_equal(number_of(db, "SELECT max(seq) FROM audit" OF_TENANT), 8);
        db_close(db);
    }
}

static void an_earlier_store_takes_its_chains_with_it(void **state)
{
    struct path path = path_in(*state, "p.db");
    db_close(with_entries(state));
    struct raw raw = raw_open(path.text);
    raw_exec(&raw, "DELETE FROM audit_heads");
    raw_close(&raw);
    struct db *db = open_writer(path.text);
    append(db, TENANT, 5000, "ann", "key.create");
    assert_int_equal(number_of(db, "SELECT seq FROM audit_heads" OF_TENANT), ENTRIES + 1);
    int64_t checked;
    struct seen s = {0};
    struct audit_head head;
    checked = 0;
    assert_ok(audit_verify(db, TENANT, note, &s, &checked, &head));
    assert_int_equal(s.count, 0);
    db_close(db);
}

/* --- reading --- */

struct listed {
    int64_t seqs[2 * ENTRIES];
    size_t count;
    size_t room;
};

static bool take(void *ctx, const struct audit_row *row)
{
    struct listed *l = ctx;
    if (l->count == l->room)
        return false;
    l->seqs[l->count++] = row->seq;
    assert_int_equal(row->entry.at % 1000, row->seq);
    return true;
}

static void entries_are_listed_by_tenant_actor_and_action_in_both_directions(void **state)
{
    static const struct {
        const char *actor, *action;
        int64_t from;
        bool newest_first;
        size_t room;
        int64_t next;
        size_t count;
        int64_t first, last;
    } CASES[] = {
        {NULL, NULL, 0, false, 10, -1, 6, 1, 6},         {NULL, NULL, 2, false, 10, -1, 4, 3, 6},
        {NULL, NULL, 0, false, 2, 2, 2, 1, 2},           {NULL, NULL, 6, false, 2, -1, 0, 0, 0},
        {NULL, NULL, INT64_MAX, true, 4, 3, 4, 6, 3},    {NULL, NULL, 3, true, 4, -1, 2, 2, 1},
        {"ann", NULL, 0, false, 10, -1, 3, 2, 6},        {"ann", NULL, 0, false, 2, 5, 2, 2, 4},
        {NULL, "key.create", 0, false, 10, -1, 3, 1, 3}, {NULL, "run.*", 0, false, 10, -1, 3, 4, 6},
        {"bob", "run.*", 0, false, 10, -1, 1, 5, 5},     {"eve", NULL, 0, false, 10, -1, 0, 0, 0},
    };
    struct db *db = with_entries(state);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct audit_filter f = {.chain = TENANT};
        if (CASES[i].actor != NULL)
            f.actor = str_of(CASES[i].actor);
        if (CASES[i].action != NULL)
            f.action = str_of(CASES[i].action);
        struct listed l = {.room = CASES[i].room};
        int64_t next = 0;
        assert_ok(audit_list(db, &f, CASES[i].from, CASES[i].newest_first, take, &l, &next));
        assert_int_equal(l.count, CASES[i].count);
        assert_int_equal(next, CASES[i].next);
        if (l.count > 0) {
            assert_int_equal(l.seqs[0], CASES[i].first);
            assert_int_equal(l.seqs[l.count - 1], CASES[i].last);
        }
    }
    db_close(db);
}

/* --- chains that joined --- */

enum { CAME = 700, WAS = 42 /* the tenant's number where it was written */ };

/* A chain of another shard, as a copy brings it here. */
static struct db *with_joined_chain(void **state)
{
    static const char *const JOINS[] = {
        "UPDATE audit SET tenant = 700 WHERE tenant = 42",
        "UPDATE audit_heads SET tenant = 700 WHERE tenant = 42",
        "INSERT INTO audit_chains (chain, tenant, hashed_as) VALUES (700, 3, 42)",
    };
    struct db *db = with_entries(state);
    for (int64_t i = 1; i <= 3; i++)
        append(db, WAS, 3000 + i, "eve", "key.create");
    for (size_t i = 0; i < ARRAY_LEN(JOINS); i++)
        run_sql(db, JOINS[i]);
    return db;
}

static void a_chain_that_joined_stays_whole_beside_the_tenants_own(void **state)
{
    struct db *db = with_joined_chain(state);
    struct seen s = {0};
    struct audit_head head;
    int64_t checked;
    int64_t chain = 0;
    assert_int_equal(look(db, &checked).count, 0);
    assert_int_equal(checked, 2 * ENTRIES + 3);
    assert_ok(audit_next_joined(db, TENANT, 0, false, &chain));
    assert_int_equal(chain, CAME);
    assert_ok(audit_next_joined(db, TENANT, CAME, false, &chain));
    assert_int_equal(chain, 0);
    assert_ok(audit_next_joined(db, TENANT, INT64_MAX, true, &chain));
    assert_int_equal(chain, CAME);
    assert_ok(audit_next_joined(db, OTHER, 0, false, &chain));
    assert_int_equal(chain, 0);
    assert_ok(audit_verify(db, CAME, note, &s, &checked, &head));
    assert_int_equal(s.count, 0);
    assert_int_equal(head.seq, 3);
    append(db, TENANT, 1000 + ENTRIES + 1, "ann", "run.cancel"); /* to its own */
    assert_ok(audit_verify(db, TENANT, note, &s, &checked, &head));
    assert_int_equal(head.seq, ENTRIES + 1);
    db_close(db);
}

static void what_was_done_to_a_chain_that_joined_is_found_there(void **state)
{
    static const struct {
        const char *sql;
        enum audit_fault fault;
        int64_t tenant, chain, seq;
    } CASES[] = {
        {"UPDATE audit SET actor = 'bob' WHERE tenant = 700 AND seq = 2", AUDIT_CHANGED, TENANT,
         CAME, 2},
        {"DELETE FROM audit WHERE tenant = 700", AUDIT_MISSING, TENANT, CAME, 1},
        {"UPDATE audit_chains SET hashed_as = 43", AUDIT_CHANGED, TENANT, CAME, 1},
        {"DELETE FROM audit_chains", AUDIT_CHANGED, CAME, 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        void *folder = NULL;
        int64_t checked;
        assert_int_equal(folder_setup(&folder), 0);
        struct db *db = with_joined_chain(&folder);
        run_sql(db, CASES[i].sql);
        struct seen s = look(db, &checked);
        assert_true(s.count > 0);
        assert_int_equal(s.first.fault, CASES[i].fault);
        assert_int_equal(s.first.tenant, CASES[i].tenant);
        assert_int_equal(s.first.chain, CASES[i].chain);
        assert_int_equal(s.first.seq, CASES[i].seq);
        db_close(db);
        folder_teardown(&folder);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_chain_that_nobody_touched_is_whole),
        folder_test(an_empty_store_has_no_chain_and_nothing_is_wrong_with_it),
        folder_test(what_was_done_past_pawl_is_found_where_it_was_done),
        folder_test(what_is_missing_stays_missed_when_more_is_written),
        folder_test(an_earlier_store_takes_its_chains_with_it),
        folder_test(a_chain_that_joined_stays_whole_beside_the_tenants_own),
        folder_test(what_was_done_to_a_chain_that_joined_is_found_there),
        folder_test(entries_are_listed_by_tenant_actor_and_action_in_both_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
