/* Checkpoints and suspensions as rows. */
#include "store/folder.h"
#include "store/rows.h"

#include "store/run/checkpoints.h"
#include "store/run/retention.h"
#include "store/run/suspensions.h"

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

static struct checkpoint plain_checkpoint(int64_t seq, const char *name)
{
    return (struct checkpoint){.run = 7,
                               .ordinal = 2,
                               .seq = seq,
                               .name = str_of(name),
                               .bytes = 10 * seq,
                               .at = 1000 + seq,
                               .output = STR("{\"n\":1}")};
}

struct listed {
    char names[64];
    int64_t bytes;
};

static void add_name(void *ctx, const struct checkpoint *c)
{
    struct listed *l = ctx;
    size_t len = strlen(l->names);
    (void)snprintf(l->names + len, sizeof(l->names) - len, "%.*s%s ", STR_ARG(c->name),
                   c->error.ptr != NULL ? "!" : "");
    l->bytes = c->bytes;
}

static void checkpoints_come_back_as_they_were_written_and_in_that_order(void **state)
{
    struct fixture f = fixture_open(state);
    struct checkpoint b = plain_checkpoint(1, "b");
    struct checkpoint a = plain_checkpoint(2, "a");
    a.output = STR_NONE;
    a.error = STR("{\"code\":\"X\"}");
    struct checkpoint of_another = plain_checkpoint(1, "b");
    of_another.ordinal = 3;
    assert_ok(db_begin(f.db));
    assert_ok(checkpoints_insert(f.db, &b));
    assert_ok(checkpoints_insert(f.db, &a));
    assert_ok(checkpoints_insert(f.db, &of_another));
    assert_ok(db_commit(f.db));

    struct checkpoint back;
    bool found = false;
    assert_ok(checkpoints_find(f.db, 7, 2, STR("a"), &f.arena, &found, &back));
    assert_true(found && str_eq(back.error, a.error) && back.output.ptr == NULL);
    assert_true(back.seq == 2 && back.at == 1002 && back.bytes == 20);
    assert_ok(checkpoints_find(f.db, 7, 2, STR("c"), &f.arena, &found, &back));
    assert_false(found);
    struct listed listed = {{0}, 0};
    assert_ok(checkpoints_list(f.db, 7, 2, add_name, &listed));
    assert_string_equal(listed.names, "b a! ");
    int64_t count = 0;
    int64_t bytes = 0;
    assert_ok(checkpoints_total(f.db, 7, 2, &count, &bytes));
    assert_true(count == 2 && bytes == 20);
    assert_ok(checkpoints_total(f.db, 7, 4, &count, &bytes));
    assert_true(count == 0 && bytes == 0);
    fixture_close(&f);
}

static void a_name_is_stored_once(void **state)
{
    struct fixture f = fixture_open(state);
    struct checkpoint first = plain_checkpoint(1, "a");
    struct checkpoint second = plain_checkpoint(2, "a");
    assert_ok(checkpoints_insert(f.db, &first));
    assert_int_not_equal(checkpoints_insert(f.db, &second), ERR_OK);
    fixture_close(&f);
}

static void a_checkpoint_without_a_result_is_damaged(void **state)
{
    struct fixture f = fixture_open(state);
    struct checkpoint c = plain_checkpoint(1, "a");
    struct checkpoint back;
    bool found = false;
    struct listed listed = {{0}, 0};
    assert_ok(checkpoints_insert(f.db, &c));
    assert_ok(DB_EXEC(f.db, "UPDATE checkpoints SET output = NULL WHERE run = $1", NULL, DB_I(7)));
    assert_int_equal(checkpoints_find(f.db, 7, 2, STR("a"), &f.arena, &found, &back), ERR_DAMAGED);
    assert_int_equal(checkpoints_list(f.db, 7, 2, add_name, &listed), ERR_DAMAGED);
    fixture_close(&f);
}

static struct suspension plain_suspension(int64_t num)
{
    return (struct suspension){.run = 7,
                               .ordinal = 2,
                               .num = num,
                               .lease = num,
                               .until = -1,
                               .signal = STR("go"),
                               .question = -1,
                               .at = 1000 + num};
}

static struct suspension found_suspension(struct fixture *f)
{
    struct suspension s;
    bool found = false;
    assert_ok(suspensions_find(f->db, 7, 2, &f->arena, &found, &s));
    assert_true(found);
    return s;
}

static void a_suspension_ends_once_and_gives_way_to_the_next(void **state)
{
    struct fixture f = fixture_open(state);
    struct suspension s = plain_suspension(1);
    bool wanted = false;
    s.name = STR("mine");
    assert_ok(suspensions_put(f.db, &s));
    assert_ok(suspensions_want(f.db, 7, 2, STR("go"), &wanted));
    assert_true(wanted);
    assert_ok(suspensions_want(f.db, 7, 2, STR("gone"), &wanted));
    assert_false(wanted);
    struct suspension back = found_suspension(&f);
    assert_true(back.num == 1 && back.lease == 1 && back.until == -1 && back.question == -1);
    assert_true(str_is(back.name, "mine") && str_is(back.signal, "go"));
    assert_null(back.resumed_by.ptr);
    assert_ok(suspensions_resume(f.db, 7, 2, STR("{\"kind\":\"signal\"}")));
    assert_int_equal(suspensions_resume(f.db, 7, 2, STR("{}")), ERR_DAMAGED);
    assert_true(str_is(found_suspension(&f).resumed_by, "{\"kind\":\"signal\"}"));

    s = plain_suspension(2);
    s.signal = STR_NONE;
    s.until = 5000;
    assert_ok(suspensions_put(f.db, &s));
    back = found_suspension(&f);
    assert_true(back.num == 2 && back.until == 5000);
    assert_true(back.name.ptr == NULL && back.signal.ptr == NULL && back.resumed_by.ptr == NULL);
    fixture_close(&f);
}

static void both_go_with_their_run(void **state)
{
    struct fixture f = fixture_open(state);
    struct checkpoint c = plain_checkpoint(1, "a");
    struct suspension s = plain_suspension(1);
    int64_t removed = 0;
    bool gone = false;
    bool found = true;
    assert_ok(checkpoints_insert(f.db, &c));
    assert_ok(suspensions_put(f.db, &s));
    assert_ok(retention_remove(f.db, 4, 7, 1, &removed, &gone));
    assert_true(removed == 1 && !gone);
    assert_ok(retention_remove(f.db, 4, 7, 100, &removed, &gone));
    assert_true(gone);
    assert_ok(checkpoints_find(f.db, 7, 2, STR("a"), &f.arena, &found, &c));
    assert_false(found);
    assert_ok(suspensions_find(f.db, 7, 2, &f.arena, &found, &s));
    assert_false(found);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(checkpoints_come_back_as_they_were_written_and_in_that_order),
        folder_test(a_name_is_stored_once),
        folder_test(a_checkpoint_without_a_result_is_damaged),
        folder_test(a_suspension_ends_once_and_gives_way_to_the_next),
        folder_test(both_go_with_their_run),
    };
    return cmocka_run_group_tests_name("durable functions in the store", tests, NULL, NULL);
}
