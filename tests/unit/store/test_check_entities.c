/* Every invariant of entities: a sound file breaks none, each damage is found for what it is, and
 * the timers that are derived are made anew. */
#include "store/entity_rows.h"

#include "store/doctor/check.h"
#include "store/doctor/repair.h"

/* 20 waits for a timer, and an old generation of it is being removed. 21 is being handled, and was
 * told of one of its timers. 22 is blocked by a dead letter. 23 has finished. 24 wants a run to be
 * started. 30 was deleted, and is being removed. 2 is a run that knows a key. */
static const char SOUND[] =
    "INSERT INTO entities (num, id, tenant, type, name, type_version, version, generation,"
    " last_seq, consumed_seq, given_seq, last_event, rolled_event, calls, open_job, timer_at,"
    " created_at, active_at, finished_at) VALUES"
    " (20, x'00000000000000000000000000000020', 1, 1, 'ann', 2, 1, 2, 4, 4, NULL, 4, 2, 1, NULL,"
    "  5000, 1, 1, NULL),"
    " (21, x'00000000000000000000000000000021', 1, 1, 'bob', 1, 1, 1, 4, 1, 2, 3, 0, 2, 2, 9000, 1,"
    "  1, NULL),"
    " (22, x'00000000000000000000000000000022', 1, 1, 'eve', 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, NULL, 1,"
    "  1, NULL),"
    " (23, x'00000000000000000000000000000023', 1, 1, 'joe', 1, 1, 1, 1, 1, NULL, 1, 0, 0, NULL,"
    "  NULL, 1, 1, 5),"
    " (24, x'00000000000000000000000000000024', 1, 1, 'zoe', 1, 1, 1, 1, 1, NULL, 1, 0, 0, NULL,"
    "  NULL, 1, 1, NULL);"
    "INSERT INTO entity_states (entity, type_version, state) VALUES (20, 2, '1'), (21, 1, '1'),"
    " (30, 1, '1');"
    "INSERT INTO inbox (entity, seq, name, payload, asks, at) VALUES (21, 2, 'a', '1', 0, 1),"
    " (21, 3, 'a', '1', 1, 1), (21, 4, 'a', '1', 0, 1), (22, 1, 'a', '1', 0, 1),"
    " (30, 7, 'a', '1', 0, 1);"
    "INSERT INTO entity_updates (entity, seq, name, outcome, rejected, at, decided_at) VALUES"
    " (21, 1, 'a', '1', 0, 1, 1), (21, 3, 'a', NULL, 0, 1, NULL), (30, 1, 'a', NULL, 0, 1, NULL);"
    "INSERT INTO entity_timers (entity, name, due_at, given) VALUES (20, 'nap', 5000, 0),"
    " (20, 'tea', 6000, 0), (21, 'nap', 100, 1), (21, 'tea', 9000, 0), (30, 'nap', 1, 0);"
    "INSERT INTO entity_starts (entity, num, workflow_id, input, labels, key, tries) VALUES"
    " (24, 1, 'w', '1', '{}', 'k', 0), (30, 1, 'w', '1', '{}', 'k', 0);"
    "INSERT INTO entity_sweeps (entity, through, deleted, id, tenant, type, name, deleted_at) "
    "VALUES"
    " (20, 1, 0, NULL, NULL, NULL, NULL, NULL), (30, 9223372036854775807, 1,"
    " x'00000000000000000000000000000030', 1, 1, 'ned', 1);";

static const char SOUND_TOO[] =
    "INSERT INTO entity_generations (entity, generation, type_version, reason, version,"
    " consumed_seq, timers, dedup, first_event, first_call, at) VALUES"
    " (20, 1, 1, 'created', 0, 0, '[]', '{}', 1, 1, 1),"
    " (20, 2, 2, 'migrated', 1, 2, '[]', '{}', 3, 2, 1),"
    " (21, 1, 1, 'created', 0, 0, '[]', '{}', 1, 1, 1),"
    " (22, 1, 1, 'created', 0, 0, '[]', '{}', 1, 1, 1),"
    " (23, 1, 1, 'created', 0, 0, '[]', '{}', 1, 1, 1),"
    " (24, 1, 1, 'created', 0, 0, '[]', '{}', 1, 1, 1),"
    " (30, 3, 1, 'rolled_over', 0, 0, '[]', '{}', 1, 1, 1);"
    "INSERT INTO timeline (run, seq, at, type) VALUES (20, 2, 1, 'x'), (20, 3, 1, 'x'),"
    " (20, 4, 1, 'x'), (21, 1, 1, 'x'), (21, 2, 1, 'x'), (21, 3, 1, 'x'), (22, 1, 1, 'x'),"
    " (23, 1, 1, 'x'), (24, 1, 1, 'x'), (30, 7, 1, 'x'), (2, 1, 1, 'run.created');"
    "INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt, lease_epoch,"
    " worker, due_at, created_at, finished_at, dead_at) VALUES"
    " (20, 1, x'00000000000000000000000000000001', 1, -1, 'succeeded', 'q', 0, 1, 1, 'w', NULL, 1, "
    "2, NULL),"
    " (21, 1, x'00000000000000000000000000000002', 1, -1, 'succeeded', 'q', 0, 1, 1, 'w', NULL, 1, "
    "2, NULL),"
    " (21, 2, x'00000000000000000000000000000003', 1, -1, 'running', 'q', 0, 1, 1, 'w', 800, 1, "
    "NULL, NULL),"
    " (22, 1, x'00000000000000000000000000000004', 1, -1, 'failed', 'q', 0, 1, 1, NULL, NULL, 1, "
    "2, 2),"
    " (30, 4, x'00000000000000000000000000000005', 1, -1, 'succeeded', 'q', 0, 1, 1, 'w', NULL, 1, "
    "2, NULL);"
    "INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5000, 20, -2, 0),"
    " (800, 21, 2, 1), (70, 24, -3, 0);"
    "INSERT INTO workflow_versions (tenant, workflow_id, version, digest, definition, created_at,"
    " created_by) VALUES (1, 'w', 1, zeroblob(32), '{}', 1, 'me');"
    "INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status, version, priority,"
    " input, state, labels, created_by, created_at, finished_at) VALUES"
    " (2, x'00000000000000000000000000000002', 1, 'w', 1, 'queued', 1, 0, '1', '{}', '{}', 'me', 1,"
    "  NULL);"
    "INSERT INTO lines (num, tenant, scopes, waits_for, urgency, run) VALUES (1, 1, '', 0, 0, 2);"
    "INSERT INTO queue (line, urgency, run, tenant) VALUES (1, 0, 2, 1);"
    "UPDATE tenants SET queued_runs = 1;"
    /* 20 has forgotten one key and knows two; 23 knows none any more */
    "INSERT INTO dedup (owner, num, key_hash, key, seq, at) VALUES (20, 2, 1, NULL, 2, 1),"
    " (20, 3, 2, 'b', 3, 1), (20, 4, 3, 'c', 4, 1), (2, 1, 1, 'a', 1, 1), (30, 5, 1, 'a', 1, 1);"
    "INSERT INTO dedup_windows (owner, first, last, emptied, forgotten) VALUES (20, 3, 4, 3, 2),"
    " (23, 4, 3, 4, 4), (2, 1, 1, 1, 1);";

static int fixture_setup(void **state)
{
    static const char *const ROWS[] = {ENTITY_STAGE, SOUND, SOUND_TOO};
    return checked_file_setup(state, ROWS, ARRAY_LEN(ROWS));
}

/* --- what was found --- */

enum { KINDS_MAX = 4 };

struct kinds {
    const char *what[KINDS_MAX]; /* each once, in the order of the table */
    size_t count;
    struct check_result result;
    bool has_entity; /* of the last */
    char type[32];
    char name[32];
};

static void take(void *ctx, const struct finding *f)
{
    struct kinds *k = ctx;
    k->has_entity = f->has_entity;
    assert_false(f->has_run && f->has_entity);
    (void)snprintf(k->type, sizeof(k->type), "%.*s", STR_ARG(f->entity_type));
    (void)snprintf(k->name, sizeof(k->name), "%.*s", STR_ARG(f->entity_id));
    if (k->count > 0 && strcmp(k->what[k->count - 1], f->what) == 0)
        return;
    assert_true(k->count < KINDS_MAX);
    k->what[k->count++] = f->what;
}

static struct kinds check_file(const char *path)
{
    struct db *db = open_reader(path);
    struct kinds k = {.count = 0};
    for (enum check_area area = 0; area < CHECK_AREA_COUNT; area++)
        assert_ok(check_area(db, area, CHECK_FULL, take, &k, &k.result));
    db_close(db);
    return k;
}

/* --- damages --- */

/* The beginnings of what is said; each is unique in its table. */
#define SAME_NUMBER "a run and an entity"
#define OWNER "the tenant of an entity"
#define LATEST "the latest version"
#define STRAY "rows are of an entity"
#define WHO_IT_WAS "an entity was deleted"
#define INBOX "the inbox"
#define UPDATE_LOST "an update waits"
#define CALL "an entity does not name the one call"
#define GIVEN "a call was given"
#define NEXT_TIMER "an entity does not name the time"
#define NOT_ARMED "an entity that no call"
#define ARMED "a timer is armed"
#define START_LOST "runs are to be started"
#define RECORD "the record of an entity"
#define GENERATIONS "the generations"
#define TIMELINE "the timeline of an entity"
#define WINDOW "a window of known keys"
#define KEYS "keys are kept"
#define TIMELINE_STRAY "a timeline is of no run"
#define JOB_STRAY "a call is of an entity"
#define TIMER_STRAY "a timer is of no job"
#define RUN_STRAY "a job is of a run"

struct damage {
    const char *sql;
    const char *found[KINDS_MAX]; /* in the order of the tables */
};

/* A table is read by its columns. */
/* clang-format off */
static const struct damage DAMAGES[] = {
    {"INSERT INTO runs (num, id, tenant, workflow_id, workflow_version, status, version, priority,"
     " input, state, labels, created_by, created_at, finished_at) VALUES (23, x'00000000000000000000000000000099', 1, 'w', 1,"
     " 'failed', 1, 0, '1', '{}', '{}', 'me', 1, 5)", {SAME_NUMBER}},
    {"UPDATE entities SET type = 9 WHERE num = 23", {OWNER}},
    {"UPDATE entities SET type_version = 9 WHERE num = 23", {OWNER}},
    {"UPDATE entities SET tenant = 9 WHERE num = 23", {OWNER}},
    {"UPDATE entity_types SET latest_version = 9", {LATEST}},
    {"INSERT INTO inbox (entity, seq, name, payload, asks, at) VALUES (40, 1, 'a', '1', 0, 1)", {STRAY}},
    {"INSERT INTO entity_updates (entity, seq, name, rejected, at) VALUES (40, 1, 'a', 0, 1)", {STRAY}},
    {"INSERT INTO entity_timers (entity, name, due_at, given) VALUES (40, 'a', 1, 0)", {STRAY}},
    {"INSERT INTO entity_states (entity, type_version, state) VALUES (40, 1, '1')", {STRAY}},
    {"DELETE FROM entity_sweeps WHERE entity = 30", {TIMELINE_STRAY, JOB_STRAY, STRAY, KEYS}},
    {"UPDATE entity_sweeps SET deleted = 0 WHERE entity = 30", {TIMELINE_STRAY, JOB_STRAY, STRAY, KEYS}},
    {"UPDATE entity_sweeps SET id = NULL WHERE entity = 30", {WHO_IT_WAS}},
    {"UPDATE entity_sweeps SET name = NULL WHERE entity = 30", {WHO_IT_WAS}},
    {"UPDATE entity_sweeps SET tenant = 9 WHERE entity = 30", {WHO_IT_WAS}},
    {"UPDATE entity_sweeps SET type = NULL WHERE entity = 30", {WHO_IT_WAS}},
    {"UPDATE entity_sweeps SET deleted_at = NULL WHERE entity = 30", {WHO_IT_WAS}},
    {"INSERT INTO entity_sweeps (entity, through, deleted, id, tenant, type, name, deleted_at) VALUES"
     " (23, 9, 1, x'00000000000000000000000000000023', 1, 1, 'joe', 1)", {WHO_IT_WAS}},

    {"DELETE FROM inbox WHERE entity = 22", {INBOX}},
    {"DELETE FROM inbox WHERE entity = 21 AND seq = 4", {INBOX}},
    {"UPDATE inbox SET seq = 5 WHERE entity = 21 AND seq = 4", {INBOX}},
    {"UPDATE inbox SET seq = 1 WHERE entity = 21 AND seq = 4", {INBOX}},
    {"INSERT INTO inbox (entity, seq, name, payload, asks, at) VALUES (20, 5, 'a', '1', 0, 1)", {INBOX}},
    {"UPDATE entities SET consumed_seq = 2 WHERE num = 23", {INBOX}},
    {"INSERT INTO entity_updates (entity, seq, name, rejected, at) VALUES (20, 3, 'a', 0, 1)", {UPDATE_LOST}},

    {"UPDATE entities SET open_job = NULL, given_seq = NULL WHERE num = 21", {CALL, NOT_ARMED}},
    {"UPDATE entities SET open_job = 1 WHERE num = 21", {CALL}},
    {"UPDATE entities SET open_job = 1 WHERE num = 20", {CALL, ARMED}},
    {"UPDATE entities SET open_job = 7 WHERE num = 22", {CALL}},
    {"UPDATE jobs SET dead_at = NULL WHERE run = 22", {CALL}},
    {"UPDATE jobs SET state = 'pending', finished_at = NULL WHERE run = 21 AND ordinal = 1", {CALL}},
    {"UPDATE jobs SET tenant = 2 WHERE run = 20", {JOB_STRAY}},
    {"UPDATE jobs SET step = 0 WHERE run = 20", {RUN_STRAY}},
    {"UPDATE jobs SET run = 40 WHERE run = 20", {JOB_STRAY}},
    {"UPDATE entities SET given_seq = 0 WHERE num = 21", {GIVEN}},
    {"UPDATE entities SET given_seq = 5 WHERE num = 21", {GIVEN}},
    {"UPDATE entities SET given_seq = 4 WHERE num = 20", {GIVEN}},

    {"UPDATE entities SET timer_at = 5001 WHERE num = 20", {NEXT_TIMER, ARMED}},
    {"UPDATE entities SET timer_at = NULL WHERE num = 21", {NEXT_TIMER}},
    {"UPDATE entities SET timer_at = 100 WHERE num = 21", {NEXT_TIMER}},
    {"UPDATE entity_timers SET given = 1 WHERE entity = 20 AND name = 'nap'", {NEXT_TIMER}},
    {"DELETE FROM entity_timers WHERE entity = 20", {NEXT_TIMER}},
    {"DELETE FROM timers WHERE run = 20", {NOT_ARMED}},
    {"UPDATE timers SET due_at = 4000 WHERE run = 20", {ARMED}},
    {"UPDATE timers SET due_at = 65000 WHERE run = 20", {NULL}}, /* put off */
    {"INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5, 23, -2, 0)", {ARMED}},
    {"INSERT INTO timers (due_at, run, ordinal, generation) VALUES (5, 40, -2, 0)", {ARMED}},
    {"DELETE FROM timers WHERE run = 24", {START_LOST}},
    {"DELETE FROM timers WHERE run = 21", {"a job that waits for a time has no"}},
    {"UPDATE jobs SET due_at = NULL WHERE run = 21 AND ordinal = 2", {"a running job lacks", TIMER_STRAY}},

    {"DELETE FROM entity_generations WHERE entity = 23", {RECORD}},
    {"UPDATE entities SET generation = 2 WHERE num = 23", {RECORD}},
    {"UPDATE entities SET rolled_event = 1 WHERE num = 20", {RECORD}},
    {"UPDATE entity_generations SET generation = 2 WHERE entity = 22;"
     "UPDATE entities SET generation = 4 WHERE num = 22;"
     "INSERT INTO entity_generations SELECT 22, 4, 1, 'migrated', NULL, 0, 0, '[]', '{}', 1, 1, 1", {GENERATIONS}},
    {"UPDATE entities SET generation = 1, rolled_event = 0 WHERE num = 20", {GENERATIONS, TIMELINE}},
    {"DELETE FROM timeline WHERE run = 20 AND seq = 4", {TIMELINE}},
    {"DELETE FROM timeline WHERE run = 20 AND seq = 3", {TIMELINE}},
    {"DELETE FROM timeline WHERE run = 20 AND seq < 4", {TIMELINE}},
    {"DELETE FROM timeline WHERE run = 20 AND seq < 3", {NULL}}, /* of the generation that goes */
    {"DELETE FROM timeline WHERE run = 23", {TIMELINE}},
    {"INSERT INTO timeline (run, seq, at, type) VALUES (23, 2, 1, 'x')", {TIMELINE}},
    {"INSERT INTO timeline (run, seq, at, type) VALUES (40, 1, 1, 'x')", {TIMELINE_STRAY}},

    {"DELETE FROM dedup WHERE owner = 20 AND num = 2", {WINDOW}},
    {"DELETE FROM dedup WHERE owner = 20 AND num = 3", {WINDOW}},
    {"DELETE FROM dedup WHERE owner = 2", {WINDOW}},
    {"UPDATE dedup SET num = num + 1 WHERE owner = 2", {WINDOW}},
    {"UPDATE dedup_windows SET first = 6 WHERE owner = 20", {WINDOW}},
    {"UPDATE dedup_windows SET emptied = 4 WHERE owner = 20", {WINDOW}},
    {"UPDATE dedup_windows SET forgotten = 0 WHERE owner = 20", {WINDOW}},
    {"DELETE FROM dedup_windows WHERE owner = 20", {KEYS}},
    {"INSERT INTO dedup_windows (owner, first, last, emptied, forgotten) VALUES (40, 1, 0, 1, 1)", {KEYS}},
};
/* clang-format on */

/* --- tests --- */

static void sound_entities_break_nothing(void **state)
{
    const struct checked_file *f = *state;
    struct kinds k = check_file(f->file.text);
    if (k.count > 0)
        fail_msg("%s", k.what[0]);
    assert_int_equal(k.result.found, 0);
}

static void assert_found(const struct damage *d, const struct kinds *k)
{
    for (size_t i = 0; i < KINDS_MAX; i++) {
        const char *expected = d->found[i] != NULL ? d->found[i] : "nothing more";
        const char *found = i < k->count ? k->what[i] : "nothing more";
        if (!begins(found, expected))
            fail_msg("%s: found \"%s\", not \"%s\"", d->sql, found, expected);
    }
}

static void every_damage_is_found_for_what_it_is(void **state)
{
    const struct checked_file *f = *state;
    struct path broken = path_in(f->folder, "broken.db");
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        file_copy(f->file.text, broken.text);
        put_rows(broken.text, DAMAGES[i].sql);
        struct kinds k = check_file(broken.text);
        assert_found(&DAMAGES[i], &k);
    }
}

static void the_damages_break_every_invariant(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTITY_INVARIANT_COUNT; i++) {
        bool broken = false;
        for (size_t d = 0; d < ARRAY_LEN(DAMAGES) && !broken; d++) {
            for (size_t j = 0; j < KINDS_MAX; j++)
                broken |= DAMAGES[d].found[j] != NULL &&
                          begins(ENTITY_INVARIANTS[i].broken, DAMAGES[d].found[j]);
        }
        if (!broken)
            fail_msg("nothing breaks: %s", ENTITY_INVARIANTS[i].broken);
        assert_int_equal(ENTITY_INVARIANTS[i].area, CHECK_ENTITIES);
    }
}

static void a_finding_names_its_entity(void **state)
{
    const struct checked_file *f = *state;
    put_rows(f->file.text, "DELETE FROM inbox WHERE entity = 22");
    struct kinds k = check_file(f->file.text);
    assert_true(k.has_entity);
    assert_string_equal(k.type, "member");
    assert_string_equal(k.name, "eve");
}

static void its_extent_is_the_number_of_entities(void **state)
{
    const struct checked_file *f = *state;
    struct db *db = open_reader(f->file.text);
    int64_t extent = 0;
    assert_ok(check_extent(db, CHECK_ENTITIES, &extent));
    assert_int_equal(extent, 5);
    db_close(db);
}

/* --- repair --- */

/* Returns how many rows it changed, or -1 on a store that does not count them. */
static int64_t repair_file(const char *path)
{
    struct db *db = open_writer(path);
    int64_t before = db_changes(db);
    assert_ok(db_begin(db));
    assert_ok(repair_timers(db));
    assert_ok(db_commit(db));
    int64_t changed = db_changes(db) - before;
    db_close(db);
    return test_store_is_eager() ? -1 : changed;
}

static void timers_of_entities_are_made_anew(void **state)
{
    const struct checked_file *f = *state;
    struct path broken = path_in(f->folder, "broken.db");
    assert_true(repair_file(f->file.text) <= 0); /* sound */
    int mended = 0;
    for (size_t i = 0; i < ARRAY_LEN(DAMAGES); i++) {
        file_copy(f->file.text, broken.text);
        put_rows(broken.text, DAMAGES[i].sql);
        struct check_result before = check_file(broken.text).result;
        int64_t changed = repair_file(broken.text);
        assert_true(changed < 0 || (changed > 0) == (before.derived > 0));
        struct kinds k = check_file(broken.text);
        if (k.result.derived > 0)
            fail_msg("%s: still \"%s\"", DAMAGES[i].sql, k.what[0]);
        assert_int_equal(k.result.found, before.found - before.derived);
        mended += before.derived > 0;
    }
    assert_true(mended >= 6);
    put_rows(f->file.text, "DELETE FROM timers");
    int64_t changed = repair_file(f->file.text);
    assert_true(changed < 0 || changed == 3);
    assert_int_equal(check_file(f->file.text).result.found, 0);
    struct raw raw = raw_open(f->file.text);
    assert_int_equal(raw_number(&raw, "SELECT due_at FROM timers WHERE run = 20"), 5000);
    raw_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(sound_entities_break_nothing),
        check_test(every_damage_is_found_for_what_it_is),
        check_test(the_damages_break_every_invariant),
        check_test(a_finding_names_its_entity),
        check_test(its_extent_is_the_number_of_entities),
        check_test(timers_of_entities_are_made_anew),
    };
    return cmocka_run_group_tests_name("check_entities", tests, NULL, NULL);
}
