/* Approvals and votes as rows. */
#include "store/folder.h"
#include "store/rows.h"

#include "store/run/approvals.h"
#include "store/run/retention.h"

static struct approval plain_approval(int64_t run, int64_t ordinal)
{
    return (struct approval){
        .run = run,
        .ordinal = ordinal,
        .tenant = 4,
        .status = APPROVAL_PENDING,
        .prompt = STR("pay?"),
        .content = STR("{\"n\":1}"),
        .content_hash = STR("h1"),
        .requested_by = STR("ann"),
        .requested_at = 1000 + run,
        .expires_at = -1,
        .escalated_at = -1,
        .decided_at = -1,
    };
}

static struct approval found(struct db *db, int64_t run, int64_t ordinal, struct arena *arena)
{
    struct approval a;
    bool is = false;
    assert_ok(approvals_find(db, run, ordinal, arena, &is, &a));
    assert_true(is);
    return a;
}

struct fixture {
    struct db *db;
    struct arena arena;
};

static struct fixture fixture_open(void **state)
{
    struct fixture f = {.db = open_writer(path_in(*state, "p.db").text)};
    arena_init(&f.arena, MIB);
    return f;
}

static void fixture_close(struct fixture *f)
{
    arena_release(&f->arena);
    db_close(f->db);
}

static void an_approval_comes_back_as_it_was_written(void **state)
{
    struct fixture f = fixture_open(state);
    struct approval a = plain_approval(7, 3);
    a.expires_at = 5000;
    a.reminded = 2;
    a.escalated_at = 1500;
    a.votes = 1;
    assert_ok(approvals_insert(f.db, &a));
    struct approval back = found(f.db, 7, 3, &f.arena);
    assert_int_equal(back.tenant, 4);
    assert_int_equal(back.status, APPROVAL_PENDING);
    assert_true(str_is(back.prompt, "pay?"));
    assert_true(str_is(back.content, "{\"n\":1}"));
    assert_true(str_is(back.content_hash, "h1"));
    assert_true(str_is(back.requested_by, "ann"));
    assert_int_equal(back.requested_at, 1007);
    assert_int_equal(back.expires_at, 5000);
    assert_int_equal(back.reminded, 2);
    assert_int_equal(back.escalated_at, 1500);
    assert_int_equal(back.votes, 1);
    assert_null(back.decided_by.ptr);
    assert_int_equal(back.decided_at, -1);
    assert_null(back.reason.ptr);
    assert_null(back.edited.ptr);
    bool is = true;
    assert_ok(approvals_find(f.db, 7, 4, &f.arena, &is, &back));
    assert_false(is);
    fixture_close(&f);
}

static void a_decision_is_written_once(void **state)
{
    struct fixture f = fixture_open(state);
    struct approval a = plain_approval(7, 1);
    assert_ok(approvals_insert(f.db, &a));
    a.status = APPROVAL_APPROVED;
    a.decided_by = STR("bob");
    a.decided_at = 2000;
    a.reason = STR("fine");
    a.edited = STR("{\"n\":2}");
    assert_ok(approvals_update(f.db, &a, STR("h1")));
    a.status = APPROVAL_REJECTED;
    a.decided_by = STR("eve");
    assert_int_equal(approvals_update(f.db, &a, STR("h1")), ERR_CONCURRENT_APPROVAL);
    struct approval back = found(f.db, 7, 1, &f.arena);
    assert_int_equal(back.status, APPROVAL_APPROVED);
    assert_true(str_is(back.decided_by, "bob"));
    assert_int_equal(back.decided_at, 2000);
    assert_true(str_is(back.reason, "fine"));
    assert_true(str_is(back.edited, "{\"n\":2}"));
    fixture_close(&f);
}

static void a_decision_about_something_else_is_not_written(void **state)
{
    struct fixture f = fixture_open(state);
    struct approval a = plain_approval(7, 1);
    assert_ok(approvals_insert(f.db, &a));
    a.status = APPROVAL_APPROVED;
    a.decided_by = STR("bob");
    a.decided_at = 2000;
    assert_int_equal(approvals_update(f.db, &a, STR("h0")), ERR_CONCURRENT_APPROVAL);
    assert_int_equal(found(f.db, 7, 1, &f.arena).status, APPROVAL_PENDING);
    fixture_close(&f);
}

static void only_what_is_pending_becomes_void(void **state)
{
    struct fixture f = fixture_open(state);
    struct approval pending = plain_approval(7, 1);
    struct approval over = plain_approval(7, 2);
    over.status = APPROVAL_REJECTED;
    over.decided_by = STR("bob");
    over.decided_at = 5;
    assert_ok(approvals_insert(f.db, &pending));
    assert_ok(approvals_insert(f.db, &over));
    assert_ok(approvals_void(f.db, 7, 1));
    assert_ok(approvals_void(f.db, 7, 2));
    assert_int_equal(found(f.db, 7, 1, &f.arena).status, APPROVAL_VOID);
    assert_int_equal(found(f.db, 7, 2, &f.arena).status, APPROVAL_REJECTED);
    fixture_close(&f);
}

static void replays_and_conflicts_are_counted_apart(void **state)
{
    struct fixture f = fixture_open(state);
    struct approval a = plain_approval(7, 1);
    assert_ok(approvals_insert(f.db, &a));
    assert_ok(approvals_count(f.db, 7, 1, false));
    assert_ok(approvals_count(f.db, 7, 1, false));
    assert_ok(approvals_count(f.db, 7, 1, true));
    struct approval back = found(f.db, 7, 1, &f.arena);
    assert_int_equal(back.replays, 2);
    assert_int_equal(back.conflicts, 1);
    fixture_close(&f);
}

/* --- votes --- */

static void add_actor(void *ctx, const struct vote *v)
{
    char *out = ctx;
    size_t len = strlen(out);
    (void)snprintf(out + len, 64 - len, "%.*s%lld ", STR_ARG(v->actor), (long long)v->at);
}

static void votes_are_of_one_approval_and_go_together(void **state)
{
    struct fixture f = fixture_open(state);
    bool has = false;
    assert_ok(votes_insert(f.db, 7, 1, &(struct vote){STR("bob"), 20, STR_NONE}));
    assert_ok(votes_insert(f.db, 7, 1, &(struct vote){STR("ann"), 10, STR("ok")}));
    assert_ok(votes_insert(f.db, 7, 2, &(struct vote){STR("eve"), 5, STR_NONE}));
    assert_ok(votes_has(f.db, 7, 1, STR("ann"), &has));
    assert_true(has);
    assert_ok(votes_has(f.db, 7, 1, STR("eve"), &has));
    assert_false(has);
    char who[64] = "";
    assert_ok(votes_list(f.db, 7, 1, add_actor, who));
    assert_string_equal(who, "ann10 bob20 ");
    assert_ok(votes_clear(f.db, 7, 1));
    assert_ok(votes_has(f.db, 7, 1, STR("ann"), &has));
    assert_false(has);
    assert_ok(votes_has(f.db, 7, 2, STR("eve"), &has));
    assert_true(has);
    fixture_close(&f);
}

/* --- lists --- */

struct seen {
    char text[128];
    size_t most;
};

static bool add_seen(void *ctx, const struct approval *a)
{
    struct seen *s = ctx;
    size_t len = strlen(s->text);
    (void)snprintf(s->text + len, sizeof(s->text) - len, "%lld.%lld ", (long long)a->run,
                   (long long)a->ordinal);
    return --s->most > 0;
}

static void insert_four(struct db *db)
{
    static const struct {
        int64_t run, ordinal;
        enum approval_status status;
    } ROWS[] = {{7, 1, APPROVAL_PENDING},
                {7, 2, APPROVAL_VOID},
                {9, 1, APPROVAL_PENDING},
                {8, 1, APPROVAL_PENDING}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct approval a = plain_approval(ROWS[i].run, ROWS[i].ordinal);
        a.status = ROWS[i].status;
        assert_ok(approvals_insert(db, &a));
    }
    struct approval other = plain_approval(10, 1);
    other.tenant = 5;
    assert_ok(approvals_insert(db, &other));
}

static void a_list_is_of_one_tenant_and_begins_with_the_newest(void **state)
{
    struct fixture f = fixture_open(state);
    insert_four(f.db);
    struct seen all = {.most = 10};
    assert_ok(approvals_list(f.db, 4, APPROVAL_STATUS_COUNT, false, NULL, add_seen, &all));
    assert_string_equal(all.text, "9.1 8.1 7.2 7.1 ");
    struct seen pending = {.most = 10};
    assert_ok(approvals_list(f.db, 4, APPROVAL_PENDING, false, NULL, add_seen, &pending));
    assert_string_equal(pending.text, "9.1 8.1 7.1 ");
    struct seen rest = {.most = 2};
    assert_ok(approvals_list(f.db, 4, APPROVAL_STATUS_COUNT, false, (const int64_t[]){1009, 9, 1},
                             add_seen, &rest));
    assert_string_equal(rest.text, "8.1 7.2 ");
    fixture_close(&f);
}

static bool count_down(void *ctx, const struct approval *a)
{
    int64_t *next = ctx; /* runs come from the newest on */
    assert_int_equal(a->run, *next);
    return --*next > 0;
}

static void a_list_goes_on_across_slices(void **state)
{
    enum { ROWS = 2 * ROWS_PER_SLICE };
    struct fixture f = fixture_open(state);
    for (int64_t run = 1; run <= ROWS; run++) {
        struct approval a = plain_approval(run, 1);
        assert_ok(approvals_insert(f.db, &a));
    }
    int64_t next = ROWS;
    assert_ok(approvals_list(f.db, 4, APPROVAL_STATUS_COUNT, false, NULL, count_down, &next));
    assert_int_equal(next, 0);
    next = ROWS;
    assert_ok(approvals_list(f.db, 4, APPROVAL_PENDING, false, NULL, count_down, &next));
    assert_int_equal(next, 0);
    fixture_close(&f);
}

/* --- the end --- */

static void an_approval_goes_with_its_run(void **state)
{
    struct fixture f = fixture_open(state);
    struct run run = plain_run(4, env_new_id(&ENV_SYSTEM), 7);
    assert_ok(runs_insert(f.db, &run));
    insert_four(f.db);
    assert_ok(votes_insert(f.db, 7, 1, &(struct vote){STR("bob"), 20, STR_NONE}));
    assert_ok(votes_insert(f.db, 7, 1, &(struct vote){STR("ann"), 20, STR_NONE}));
    assert_ok(votes_insert(f.db, 8, 1, &(struct vote){STR("ann"), 20, STR_NONE}));
    bool gone = false;
    for (int turn = 0; turn < 10 && !gone; turn++) {
        int64_t removed = 0;
        assert_ok(retention_remove(f.db, 4, 7, 2, &removed, &gone));
        assert_true(removed <= 3);
    }
    assert_true(gone);
    bool is = true;
    struct approval a;
    assert_ok(approvals_find(f.db, 7, 1, &f.arena, &is, &a));
    assert_false(is);
    assert_ok(votes_has(f.db, 7, 1, STR("ann"), &is));
    assert_false(is);
    assert_ok(votes_has(f.db, 8, 1, STR("ann"), &is));
    assert_true(is);
    fixture_close(&f);
}

#define store_test(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(an_approval_comes_back_as_it_was_written),
        store_test(a_decision_is_written_once),
        store_test(a_decision_about_something_else_is_not_written),
        store_test(only_what_is_pending_becomes_void),
        store_test(replays_and_conflicts_are_counted_apart),
        store_test(votes_are_of_one_approval_and_go_together),
        store_test(a_list_is_of_one_tenant_and_begins_with_the_newest),
        store_test(a_list_goes_on_across_slices),
        store_test(an_approval_goes_with_its_run),
    };
    return cmocka_run_group_tests_name("approvals store", tests, NULL, NULL);
}
