/* Old generations of entities go in slices, each entity in its turn, and nothing goes that somebody
 * has not been told of, also of an entity that was deleted. */
#include "engine/actions.h"
#include "store/entity_rows.h"

#include "core/entity/entity_sweep.h"

/* --- a scripted_run without a server --- */

struct scripted_run {
    struct fixture *fixture;
    struct db *db;
    struct tx tx;
    struct entity_sweep sweep;
};

static void scripted_run_open(struct scripted_run *s, struct fixture *fixture)
{
    fixture_stop(fixture);
    put_rows(fixture->file.text, ENTITY_STAGE);
    *s = (struct scripted_run){.fixture = fixture, .db = open_writer(fixture->file.text)};
    assert_ok(tx_init(&s->tx, s->db, &fixture->env));
}

static void scripted_run_close(struct scripted_run *s)
{
    tx_release(&s->tx);
    db_close(s->db);
}

/* Returns the rows that it removed. */
static int64_t slice(struct scripted_run *s, bool *ret_more)
{
    int64_t before = db_changes(s->db);
    tx_start(&s->tx, env_now_ms(s->tx.env));
    assert_ok(db_begin(s->db));
    assert_ok(entity_sweep_slice(&s->sweep, &s->tx, ret_more));
    assert_ok(db_commit(s->db));
    return db_changes(s->db) - before;
}

static int64_t all_slices(struct scripted_run *s)
{
    int64_t removed = 0;
    int slices = 0;
    for (bool more = true; more; slices++) {
        int64_t now = slice(s, &more);
        assert_in_range(now, 0, ENTITY_SWEEP_ROWS_PER_TURN_MAX + 1);
        assert_true(slices < 100);
        removed += now;
    }
    return removed;
}

static void put_sweep(struct scripted_run *s, int64_t entity, int64_t through)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO entity_sweeps (entity, through, deleted) VALUES (%lld, %lld, 0)",
                   (long long)entity, (long long)through);
    put_rows(s->fixture->file.text, sql);
}

/* All entities are deleted, so long ago. */
static void delete_all(struct scripted_run *s, int64_t ago_ms)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO entity_sweeps (entity, through, deleted, id, tenant, type, name,"
                   " deleted_at) SELECT num, 9223372036854775807, 1, id, tenant, type, name, %lld"
                   " FROM entities; DELETE FROM entities",
                   (long long)(fixture_now_ms(s->fixture) - ago_ms));
    put_rows(s->fixture->file.text, sql);
}

static int64_t events_of(struct scripted_run *s, int64_t entity)
{
    struct db_rows *rows =
        DB_QUERY(s->db, "SELECT count(*) FROM events WHERE run = $1", DB_I(entity));
    assert_true(db_next(rows));
    int64_t count = db_int(rows, 0);
    assert_ok(db_rows_end(rows));
    return count;
}

static int64_t sweeps(struct scripted_run *s)
{
    return number_of(s->db, "SELECT count(*) FROM entity_sweeps");
}

/* --- slices --- */

static void where_nothing_is_to_go_nothing_is_done(void **state)
{
    struct scripted_run s;
    bool more = true;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 3, 10, 3, 0});
    assert_int_equal(slice(&s, &more), 0);
    assert_false(more);
    scripted_run_close(&s);
}

static void each_entity_has_its_turn(void **state)
{
    enum { EVENTS = 800, CALLS = 10 };
    struct scripted_run s;
    bool more = false;
    scripted_run_open(&s, *state);
    for (int64_t e = 5; e < 8; e++) {
        put_entity(s.fixture->file.text, &(struct entity_plan){e, 2, EVENTS, CALLS, 0});
        put_sweep(&s, e, 1);
    }
    for (int64_t e = 5; e < 8; e++) { /* a busy one does not hold up the others */
        assert_int_equal(slice(&s, &more), ENTITY_SWEEP_ROWS_PER_TURN_MAX);
        assert_true(more);
        assert_int_equal(events_of(&s, e), 2 * EVENTS - ENTITY_SWEEP_ROWS_PER_TURN_MAX);
    }
    int64_t rest = 3 * (EVENTS + CALLS + 1 - ENTITY_SWEEP_ROWS_PER_TURN_MAX);
    assert_int_equal(all_slices(&s), rest + 3);
    assert_int_equal(sweeps(&s), 0);
    for (int64_t e = 5; e < 8; e++)
        assert_int_equal(events_of(&s, e), EVENTS);
    assert_int_equal(number_of(s.db, "SELECT count(*) FROM jobs"), 3 * CALLS);
    scripted_run_close(&s);
}

/* --- events that a reader has not had --- */

/* Webhooks have had the feed up to a row. */
static void put_feed(struct scripted_run *s, const char *rows, int through)
{
    char sql[512];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at) VALUES %s;"
                   "INSERT INTO feed_marks (name, through) VALUES ('webhooks', %d)",
                   rows, through);
    put_rows(s->fixture->file.text, sql);
}

static void set_feed_mark(struct scripted_run *s, int through)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "UPDATE feed_marks SET through = %d", through);
    put_rows(s->fixture->file.text, sql);
}

static void events_wait_until_every_reader_has_had_them(void **state)
{
    struct scripted_run s;
    bool more = true;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 3, 10, 3, 0});
    put_sweep(&s, 5, 2);
    put_feed(
        &s, "(1, 1, 5, 1, 4, 1), (2, 1, 6, 1, 9, 1), (3, 1, 5, 5, 14, 1), (4, 1, 5, 15, 30, 1)", 1);
    assert_int_equal(slice(&s, &more), 4);
    assert_false(more); /* the rest has time */
    assert_int_equal(slice(&s, &more), 0);
    assert_false(more);
    set_feed_mark(&s, 3);
    assert_int_equal(slice(&s, &more), 6 + 3 + 1 + 4);
    assert_int_equal(events_of(&s, 5), 16);
    assert_int_equal(sweeps(&s), 1);
    set_feed_mark(&s, 4);
    assert_int_equal(slice(&s, &more), 6 + 3 + 1 + 1);
    assert_int_equal(events_of(&s, 5), 10);
    assert_int_equal(sweeps(&s), 0);
    scripted_run_close(&s);
}

/* It is always in the part of the feed that somebody is behind with. */
static void a_busy_entity_loses_its_old_generations_all_the_same(void **state)
{
    struct scripted_run s;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 4, 10, 3, 0});
    put_sweep(&s, 5, 3);
    put_feed(&s, "(1, 1, 5, 1, 33, 1), (2, 1, 5, 34, 36, 1), (3, 1, 5, 37, 40, 1)", 1);
    assert_int_equal(all_slices(&s), 3 * 14 + 1);
    assert_int_equal(events_of(&s, 5), 10);
    scripted_run_close(&s);
}

static void those_that_must_wait_do_not_keep_the_writer_busy(void **state)
{
    enum { MANY = 300 };
    struct scripted_run s;
    bool more = false;
    scripted_run_open(&s, *state);
    for (int64_t e = 0; e < MANY; e++) {
        put_entity(s.fixture->file.text, &(struct entity_plan){5 + e, 2, 1, 1, 0});
        put_sweep(&s, 5 + e, 1);
    }
    put_rows(s.fixture->file.text,
             "INSERT INTO feed_packs (num, tenant, run, first_seq, last_seq, at)"
             " SELECT num, 1, num, 1, 2, 1 FROM entities;"
             "INSERT INTO feed_marks (name, through) VALUES ('webhooks', 0)");
    for (int i = 0; i < 4; i++) { /* some at a time, however many there are */
        assert_int_equal(slice(&s, &more), 0);
        assert_false(more);
    }
    set_feed_mark(&s, 1000);
    assert_int_equal(all_slices(&s), MANY * (3 + 1));
    scripted_run_close(&s);
}

/* --- deletion --- */

#define LONG_AGO_MS (60 * 1000)

static const char KEYS[] =
    "INSERT INTO dedup_windows (owner, first, last, emptied, forgotten) VALUES (5, 1, 700, 1, 1);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 700)"
    " INSERT INTO dedup (owner, num, key_hash, key, seq, at) SELECT 5, i, i, 'k' || i, i, 1 FROM "
    "n;";

static int64_t rows_but_events(struct scripted_run *s)
{
    return number_of(s->db, "SELECT (SELECT count(*) FROM jobs)"
                            " + (SELECT count(*) FROM entity_generations)"
                            " + (SELECT count(*) FROM dedup)"
                            " + (SELECT count(*) FROM dedup_windows)");
}

static void of_a_deleted_entity_everything_goes(void **state)
{
    struct scripted_run s;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 2, 600, 3, 0});
    put_rows(s.fixture->file.text, KEYS);
    put_feed(&s, "(1, 1, 5, 1, 1200, 1)", 1);
    delete_all(&s, LONG_AGO_MS);
    assert_int_equal(all_slices(&s), 1200 + 6 + 2 + 700 + 1 + 1);
    assert_int_equal(rows_but_events(&s) + events_of(&s, 5) + sweeps(&s), 0);
    scripted_run_close(&s);
}

static void of_a_deleted_entity_only_events_wait_until_everybody_has_been_told(void **state)
{
    struct scripted_run s;
    bool more = true;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 2, 600, 3, 0});
    put_rows(s.fixture->file.text, KEYS);
    put_feed(&s, "(1, 1, 5, 1, 100, 1), (2, 1, 5, 101, 1200, 1)", 1);
    delete_all(&s, LONG_AGO_MS);
    assert_int_equal(all_slices(&s), 100 + 6 + 2 + 700 + 1);
    assert_int_equal(rows_but_events(&s), 0);
    assert_int_equal(events_of(&s, 5), 1100);
    assert_int_equal(sweeps(&s), 1); /* it says whose they are */
    assert_int_equal(slice(&s, &more), 0);
    assert_false(more);
    set_feed_mark(&s, 2);
    assert_int_equal(all_slices(&s), 1100 + 1);
    assert_int_equal(events_of(&s, 5) + sweeps(&s), 0);
    scripted_run_close(&s);
}

static void a_subscriber_receives_a_deletion(void **state)
{
    struct scripted_run s;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 1, 10, 3, 0});
    delete_all(&s, 0);
    assert_int_equal(all_slices(&s), 3 + 1);
    assert_int_equal(events_of(&s, 5), 10);
    put_rows(s.fixture->file.text, "UPDATE entity_sweeps SET deleted_at = deleted_at - 60000");
    assert_int_equal(all_slices(&s), 10 + 1);
    scripted_run_close(&s);
}

/* More is unpublished_events than can be looked at: nothing of generations goes, and of deleted
 * entities all but their events. */
static void while_a_bus_is_far_behind_little_is_looked_at(void **state)
{
    struct scripted_run s;
    bool more = true;
    scripted_run_open(&s, *state);
    put_entity(s.fixture->file.text, &(struct entity_plan){5, 2, 10, 3, 0});
    delete_all(&s, LONG_AGO_MS);
    put_entity(s.fixture->file.text, &(struct entity_plan){6, 2, 10, 3, 0});
    put_sweep(&s, 6, 1);
    put_feed(&s, "(1, 1, 2, 1, 1, 1), (20000, 1, 2, 2, 2, 1)", 1);
    assert_int_equal(all_slices(&s), 6 + 2);
    assert_int_equal(slice(&s, &more), 0);
    assert_false(more);
    assert_int_equal(events_of(&s, 5) + events_of(&s, 6), 40);
    set_feed_mark(&s, 20000);
    assert_int_equal(all_slices(&s), 20 + 1 + 10 + 3 + 1 + 1);
    scripted_run_close(&s);
}

/* --- with a server --- */

static void a_server_sweeps_by_itself(void **state)
{
    struct fixture *fixture = *state;
    fixture_stop(fixture);
    put_rows(fixture->file.text, ENTITY_STAGE);
    put_entity(fixture->file.text, &(struct entity_plan){5, 4, 700, 3, 0});
    put_rows(fixture->file.text,
             "INSERT INTO entity_sweeps (entity, through, deleted) VALUES (5, 3, 0)");
    fixture_start(fixture, 0);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT count(*) FROM entity_sweeps") > 0) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 1000);
        settle(fixture);
    }
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events"), 700);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM entity_generations"), 1);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM jobs"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(where_nothing_is_to_go_nothing_is_done),
        fixture_test(each_entity_has_its_turn),
        fixture_test(events_wait_until_every_reader_has_had_them),
        fixture_test(a_busy_entity_loses_its_old_generations_all_the_same),
        fixture_test(those_that_must_wait_do_not_keep_the_writer_busy),
        fixture_test(of_a_deleted_entity_everything_goes),
        fixture_test(of_a_deleted_entity_only_events_wait_until_everybody_has_been_told),
        fixture_test(a_subscriber_receives_a_deletion),
        fixture_test(while_a_bus_is_far_behind_little_is_looked_at),
        fixture_test(a_server_sweeps_by_itself),
    };
    return cmocka_run_group_tests_name("entity_sweep", tests, NULL, NULL);
}
