/* Old generations go from the oldest on, a few rows at a time, with their events and jobs and with
 * nothing else; of an entity that was deleted everything goes, its events last. */
#include "store/entity_rows.h"

#include "store/entity/entity_sweep.h"
#include "store/entity/generations.h"
#include "store/run/jobs.h"

enum { ENTITY = 5, ALL_ROWS = 1000 };

struct fixture {
    struct folder *folder;
    struct path file;
    struct db *db;
};

static int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    void *folder = NULL;
    (void)folder_setup(&folder);
    f->folder = folder;
    f->file = path_in(f->folder, "p.db");
    f->db = open_writer(f->file.text);
    put_rows(f->file.text, ENTITY_STAGE);
    *state = f;
    return 0;
}

static int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    db_close(f->db);
    void *folder = f->folder;
    (void)folder_teardown(&folder);
    free(f);
    return 0;
}

#define sweep_test(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

/* --- one go --- */

struct gone {
    int64_t removed;
    bool all;
};

static struct gone sweep(struct fixture *f, int64_t through, int64_t held_from, int64_t rows)
{
    struct entity_sweep_row row = {.entity = ENTITY, .through = through};
    struct gone gone = {0};
    int64_t before = db_changes(f->db);
    assert_ok(db_begin(f->db));
    assert_ok(entity_sweep_generations(f->db, &row, held_from, rows, &gone.removed, &gone.all));
    assert_ok(db_commit(f->db));
    assert_int_equal(db_changes(f->db) - before, gone.removed);
    assert_true(gone.removed <= rows);
    return gone;
}

static int64_t oldest_event(struct fixture *f)
{
    return number_of(f->db, "SELECT COALESCE(min(seq), 0) FROM events WHERE run = 5");
}

static int64_t oldest_job(struct fixture *f)
{
    return number_of(f->db, "SELECT COALESCE(min(ordinal), 0) FROM jobs WHERE run = 5");
}

static int64_t oldest_generation(struct fixture *f)
{
    return number_of(f->db, "SELECT min(generation) FROM entity_generations WHERE entity = 5");
}

static int64_t jobs(struct fixture *f)
{
    return number_of(f->db, "SELECT count(*) FROM jobs WHERE run = 5");
}

/* --- generations --- */

static void generations_go_up_to_the_one_that_is_named(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 5, 10, 3, 0});
    put_entity(f->file.text, &(struct entity_plan){6, 2, 10, 3, 0});
    struct gone gone = sweep(f, 3, INT64_MAX, ALL_ROWS);
    assert_true(gone.all);
    assert_int_equal(gone.removed, 3 * (10 + 3 + 1));
    assert_int_equal(oldest_event(f), 31);
    assert_int_equal(oldest_job(f), 10);
    assert_int_equal(oldest_generation(f), 4);
    assert_int_equal(jobs(f), 6);
    assert_int_equal(number_of(f->db, "SELECT count(*) FROM events WHERE run = 6"), 20);
    assert_int_equal(number_of(f->db, "SELECT count(*) FROM jobs WHERE run = 6"), 6);
    gone = sweep(f, 3, INT64_MAX, ALL_ROWS);
    assert_true(gone.all && gone.removed == 0);
}

static void the_current_generation_stays_whatever_is_named(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 2, 10, 3, 0});
    assert_true(sweep(f, INT64_MAX, INT64_MAX, ALL_ROWS).all);
    assert_int_equal(oldest_generation(f), 2);
    assert_int_equal(oldest_event(f), 11);
    assert_int_equal(jobs(f), 3);
}

static void a_go_removes_no_more_rows_than_it_may(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 4, 10, 3, 0});
    int64_t removed = 0;
    int goes = 0;
    struct gone gone = {0};
    while (!gone.all) {
        gone = sweep(f, 3, INT64_MAX, 4);
        removed += gone.removed;
        /* What is left is always found again: the record goes after what it stands for. */
        assert_true(oldest_event(f) >= (oldest_generation(f) - 1) * 10 + 1);
        assert_true(++goes < 20);
    }
    assert_int_equal(removed, 3 * 14);
    assert_int_equal(goes, 11); /* 42 rows, and a look that finds nothing */
}

static void a_generation_without_calls_goes_too(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 3, 2, 3, 0});
    /* The call under way is the first of all generations since it began. */
    put_rows(f->file.text, "UPDATE entity_generations SET first_call = 4 WHERE generation > 1;"
                           "UPDATE entities SET calls = 4, open_job = 4;"
                           "DELETE FROM jobs WHERE ordinal > 4;"
                           "UPDATE jobs SET state = 'pending', finished_at = NULL"
                           " WHERE ordinal = 4");
    assert_true(sweep(f, 2, INT64_MAX, ALL_ROWS).all);
    assert_int_equal(jobs(f), 1);
    assert_int_equal(oldest_job(f), 4);
    assert_int_equal(oldest_generation(f), 3);
}

/* --- numbers that come round again --- */

static void jobs_are_found_when_their_ordinals_begin_anew(void **state)
{
    struct fixture *f = *state;
    /* Four calls in each: 16777212 … 16777215, then 1 … 4, then 5 … 8. */
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 3, 2, 4, (int64_t)JOB_ORDINAL_MAX - 4});
    assert_true(sweep(f, 1, INT64_MAX, ALL_ROWS).all);
    assert_int_equal(jobs(f), 8);
    assert_int_equal(number_of(f->db, "SELECT max(ordinal) FROM jobs"), 8);
}

static void jobs_of_one_generation_may_lie_at_both_ends(void **state)
{
    struct fixture *f = *state;
    /* 16777214, 16777215, 1, 2; then 3 … 6. */
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 2, 2, 4, (int64_t)JOB_ORDINAL_MAX - 2});
    for (int64_t left = 7; left >= 4; left--) {
        struct gone gone = sweep(f, 1, INT64_MAX, left == 7 ? 3 : 1);
        assert_false(gone.all);
        assert_int_equal(jobs(f), left);
    }
    assert_int_equal(oldest_job(f), 3);
    assert_int_equal(number_of(f->db, "SELECT max(ordinal) FROM jobs"), 6);
    assert_int_equal(sweep(f, 1, INT64_MAX, 1).removed, 1); /* the record */
    assert_true(sweep(f, 1, INT64_MAX, 1).all);
}

static void jobs_whose_ordinals_were_given_again_stay(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 3, 2, 3, 0});
    /* Since then so many calls were made that 1 and 2 are new ones. */
    put_rows(f->file.text,
             "UPDATE entities SET calls = 16777215 + 2;"
             "UPDATE jobs SET state = 'running', finished_at = NULL WHERE ordinal = 2");
    assert_true(sweep(f, 1, INT64_MAX, ALL_ROWS).all);
    assert_int_equal(jobs(f), 8);
    assert_int_equal(number_of(f->db, "SELECT count(*) FROM jobs WHERE ordinal = 3"), 0);
}

/* --- events that a reader has not had --- */

static void events_that_are_held_back_stay_and_so_does_their_generation(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 4, 10, 3, 0});
    struct gone gone = sweep(f, 3, 15, ALL_ROWS);
    assert_false(gone.all);
    assert_int_equal(gone.removed, 14 + 4);
    assert_int_equal(oldest_event(f), 15);
    assert_int_equal(oldest_generation(f), 2);
    assert_int_equal(oldest_job(f), 4);
    assert_int_equal(sweep(f, 3, 15, ALL_ROWS).removed, 0);
    assert_true(sweep(f, 3, 31, ALL_ROWS).all); /* the first of those that are kept anyway */
    assert_int_equal(oldest_event(f), 31);
}

/* --- all of it --- */

static const char EVERYTHING[] =
    "INSERT INTO inbox (entity, seq, name, payload, asks, at) VALUES (5, 1, 'a', '1', 0, 1),"
    " (5, 2, 'a', '1', 1, 1), (6, 1, 'a', '1', 0, 1);"
    "INSERT INTO entity_updates (entity, seq, name, rejected, at) VALUES (5, 2, 'a', 0, 1),"
    " (6, 1, 'a', 0, 1);"
    "INSERT INTO entity_timers (entity, name, due_at, given) VALUES (5, 'a', 1, 0),"
    " (5, 'b', 1, 0), (6, 'a', 1, 0);"
    "INSERT INTO entity_starts (entity, num, workflow_id, input, labels, key, tries) VALUES"
    " (5, 1, 'w', '1', '{}', 'k', 0), (6, 1, 'w', '1', '{}', 'k', 0);"
    "INSERT INTO entity_states (entity, type_version, state) VALUES (5, 1, '1'), (6, 1, '1');";

#define ROWS_OF                                                            \
    "WITH the(one) AS (SELECT %d)"                                         \
    " SELECT (SELECT count(*) FROM inbox, the WHERE entity = one)"         \
    " + (SELECT count(*) FROM entity_updates, the WHERE entity = one)"     \
    " + (SELECT count(*) FROM entity_timers, the WHERE entity = one)"      \
    " + (SELECT count(*) FROM entity_starts, the WHERE entity = one)"      \
    " + (SELECT count(*) FROM entity_states, the WHERE entity = one)"      \
    " + (SELECT count(*) FROM entity_generations, the WHERE entity = one)" \
    " + (SELECT count(*) FROM events, the WHERE run = one)"                \
    " + (SELECT count(*) FROM jobs, the WHERE run = one)"

static int64_t rows_of(struct fixture *f, int entity)
{
    char sql[1024];
    (void)snprintf(sql, sizeof(sql), ROWS_OF, entity);
    struct raw raw = raw_open(f->file.text);
    int64_t count = raw_number(&raw, sql);
    raw_close(&raw);
    return count;
}

/* What of a deleted entity goes at once; returns how many rows that were. */
static int64_t sweep_deleted(struct fixture *f)
{
    int64_t all = 0;
    bool gone = false;
    for (int goes = 0; !gone; goes++) {
        int64_t removed = 0;
        int64_t before = rows_of(f, ENTITY);
        assert_ok(db_begin(f->db));
        assert_ok(entity_sweep_deleted(f->db, ENTITY, 8, &removed, &gone));
        assert_ok(db_commit(f->db));
        assert_true(removed <= 8 && goes < 10);
        assert_int_equal(rows_of(f, ENTITY), before - removed);
        all += removed;
    }
    return all;
}

static int64_t sweep_events(struct fixture *f, int64_t held_from, int64_t rows)
{
    int64_t removed = 0;
    assert_ok(db_begin(f->db));
    assert_ok(entity_sweep_events(f->db, ENTITY, held_from, rows, &removed));
    assert_ok(db_commit(f->db));
    return removed;
}

static void of_a_deleted_entity_everything_goes_and_of_others_nothing(void **state)
{
    struct fixture *f = *state;
    put_entity(f->file.text, &(struct entity_plan){ENTITY, 2, 10, 3, 0});
    put_entity(f->file.text, &(struct entity_plan){6, 2, 10, 3, 0});
    put_rows(f->file.text, EVERYTHING);
    put_rows(f->file.text, "DELETE FROM entities WHERE num = 5");
    int64_t others = rows_of(f, 6);
    assert_int_equal(sweep_deleted(f), 2 * 4 + 7);
    assert_int_equal(rows_of(f, ENTITY), 20); /* events that somebody may not have been told of */
    assert_int_equal(sweep_events(f, 0, ALL_ROWS), 0);
    assert_int_equal(sweep_events(f, 15, 6), 6);
    assert_int_equal(sweep_events(f, 15, ALL_ROWS), 8);
    assert_int_equal(oldest_event(f), 15);
    assert_int_equal(sweep_events(f, INT64_MAX, ALL_ROWS), 6);
    assert_int_equal(rows_of(f, ENTITY), 0);
    assert_int_equal(rows_of(f, 6), others);
}

/* Also of one whose old generations were on their way out. */
static void a_deleted_entity_is_kept_until_all_its_rows_are_gone(void **state)
{
    struct fixture *f = *state;
    struct entity ann = {.num = 7, .tenant = 1, .type = 1, .name = STR("ann")};
    memcpy(ann.id.bytes, "0000000000000007", 16);
    assert_ok(db_begin(f->db));
    assert_ok(entity_sweeps_note(f->db, 7, 3));
    assert_ok(entity_sweeps_note_deleted(f->db, &ann, 1234));
    assert_ok(db_commit(f->db));
    struct entity_sweep_row row;
    bool found = false;
    assert_ok(entity_sweeps_next(f->db, 0, &found, &row));
    assert_true(found && row.entity == 7 && row.deleted && row.deleted_at == 1234);
    assert_int_equal(number_of(f->db, "SELECT count(*) FROM entity_sweeps WHERE tenant = 1"
                                      " AND type = 1 AND name = 'ann'"
                                      " AND id = CAST('0000000000000007' AS BLOB)"),
                     1);
}

static void entities_with_something_to_remove_are_listed_by_number(void **state)
{
    struct fixture *f = *state;
    put_rows(f->file.text, "INSERT INTO entity_sweeps (entity, through, deleted) VALUES (9, 4, 0),"
                           " (7, 9223372036854775807, 1)");
    struct entity_sweep_row row;
    bool found = false;
    assert_ok(entity_sweeps_next(f->db, 0, &found, &row));
    assert_true(found && row.entity == 7 && row.deleted);
    assert_ok(entity_sweeps_next(f->db, 7, &found, &row));
    assert_true(found && row.entity == 9 && row.through == 4 && !row.deleted);
    assert_int_equal(row.deleted_at, 0);
    assert_ok(entity_sweeps_next(f->db, 9, &found, &row));
    assert_false(found);
    assert_ok(db_begin(f->db));
    assert_ok(entity_sweeps_done(f->db, 7));
    assert_ok(db_commit(f->db));
    assert_ok(entity_sweeps_next(f->db, 0, &found, &row));
    assert_true(found && row.entity == 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        sweep_test(generations_go_up_to_the_one_that_is_named),
        sweep_test(the_current_generation_stays_whatever_is_named),
        sweep_test(a_go_removes_no_more_rows_than_it_may),
        sweep_test(a_generation_without_calls_goes_too),
        sweep_test(jobs_are_found_when_their_ordinals_begin_anew),
        sweep_test(jobs_of_one_generation_may_lie_at_both_ends),
        sweep_test(jobs_whose_ordinals_were_given_again_stay),
        sweep_test(events_that_are_held_back_stay_and_so_does_their_generation),
        sweep_test(of_a_deleted_entity_everything_goes_and_of_others_nothing),
        sweep_test(a_deleted_entity_is_kept_until_all_its_rows_are_gone),
        sweep_test(entities_with_something_to_remove_are_listed_by_number),
    };
    return cmocka_run_group_tests_name("entity_sweep_store", tests, NULL, NULL);
}
