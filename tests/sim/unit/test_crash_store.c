/* The product's own store on the crash file system: its migrations, its commits and its recovery.
 */
#include "sim/unit/crash_support.h"

#include "base/log.h"
#include "store/db.h"
#include "store/migrations.h"

/* The store makes its lock file beside the database, in a real folder. */
struct scene {
    struct crash_disk *disk;
    char folder[64];
    char url[96];
};

static int scene_setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    crash_vfs_register();
    crash_vfs_seed(1);
    (void)snprintf(s->folder, sizeof(s->folder), "/dev/shm/pawl-crash-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->folder + strlen(s->folder), 2, "/");
    (void)snprintf(s->url, sizeof(s->url), "sqlite:%sa.db", s->folder);
    s->disk = crash_disk_new();
    crash_disk_mount(s->disk, s->folder);
    *state = s;
    return 0;
}

static int scene_teardown(void **state)
{
    struct scene *s = *state;
    char path[96];
    static const char *const FILES[] = {"a.db", "a.db.lock", ""};
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", s->folder, FILES[i]);
        assert_int_equal(remove(path), 0);
    }
    crash_disk_free(s->disk);
    free(s);
    return 0;
}

#define scene_test(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

static enum err store_try(const struct scene *s, enum db_access access, struct db **ret)
{
    struct db_config config = {.url = str_of(s->url), .access = access, .env = &ENV_SYSTEM};
    struct problem p;
    problem_init(&p);
    enum err e = db_open(&config, &p, ret);
    problem_release(&p);
    return e;
}

static struct db *store_open(const struct scene *s, enum db_access access)
{
    struct db *db = NULL;
    assert_int_equal(store_try(s, access, &db), ERR_OK);
    return db;
}

static enum err try_number(struct db *db, const char *text, int64_t *ret)
{
    struct db_rows *rows = db_query_values(db, text, NULL, 0);
    if (db_next(rows))
        *ret = db_int(rows, 0);
    return db_rows_end(rows);
}

static int64_t number_of(struct db *db, const char *text)
{
    int64_t number = -1;
    assert_int_equal(try_number(db, text, &number), ERR_OK);
    return number;
}

static void check_store(struct db *db)
{
    static const char VERSION[] = "SELECT user_version FROM pragma_user_version";
    struct buf found;
    buf_init(&found, 64 * 1024);
    assert_int_equal(db_integrity_check(db, &found), ERR_OK);
    assert_int_equal(found.len, 0);
    buf_release(&found);
    assert_int_equal(number_of(db, VERSION), MIGRATIONS_SQLITE[MIGRATIONS_SQLITE_COUNT - 1].number);
}

static void test_a_new_store_survives_a_power_cut_at_once(void **state)
{
    struct scene *s = *state;
    struct rng r = {1};
    struct db *db = store_open(s, DB_WRITER);
    check_store(db);
    struct db *reader = store_open(s, DB_READER);
    check_store(reader);
    assert_true(crash_disk_is_synced(s->disk, NULL));
    crash_disk_cut(s->disk, CRASH_CUT_DROP, draw_rng, &r);
    db_close(db);
    db_close(reader);
    crash_disk_restart(s->disk);
    /* A reader migrates nothing. */
    reader = store_open(s, DB_READER);
    check_store(reader);
    db_close(reader);
}

/* --- making a store, with a fault at each call --- */

/* Opens the store with the fault armed. True when the fault struck. */
static bool open_with_fault(struct scene *s, const struct crash_fault *fault)
{
    struct db *db = NULL;
    uint64_t touched = crash_disk_counts(s->disk)->touched_after_failed_sync;
    crash_disk_fail(s->disk, fault);
    enum err e = store_try(s, DB_WRITER, &db);
    bool struck = crash_disk_fired(s->disk) > 0;
    assert_true(struck || e == ERR_OK);
    if (has_file(s->disk, "a.db-wal")) /* before, SQLite takes its first page back */
        assert_int_equal(crash_disk_counts(s->disk)->touched_after_failed_sync, touched);
    if (e == ERR_OK)
        db_close(db);
    crash_disk_clear_faults(s->disk);
    crash_disk_restart(s->disk);
    return struck;
}

/* The release build makes every call fail; ASan looks at what some of them leave behind. */
#if defined(__SANITIZE_ADDRESS__)
enum { CALLS_STEP = 7, LEDGER_PROCESSES = 300 };
#else
enum { CALLS_STEP = 1, LEDGER_PROCESSES = 1500 };
#endif

/* Whatever happened to the one before, the next process makes the store whole. */
static void fault_at_each_call(struct scene *s, struct crash_fault fault)
{
    struct crash_disk *empty = crash_disk_new();
    for (uint64_t nth = 1;; nth += CALLS_STEP) {
        crash_disk_become(s->disk, empty);
        fault.nth = nth;
        if (!open_with_fault(s, &fault)) {
            assert_true(nth > 60);
            break;
        }
        struct db *db = store_open(s, DB_WRITER);
        check_store(db);
        db_close(db);
    }
    crash_disk_free(empty);
}

static void test_a_power_cut_at_each_call_of_the_migrations_is_mended(void **state)
{
    static const enum crash_cut CUTS[] = {CRASH_CUT_DROP, CRASH_CUT_RANDOM, CRASH_CUT_TORN_LAST};
    struct rng r = {1};
    for (size_t i = 0; i < ARRAY_LEN(CUTS); i++)
        fault_at_each_call(*state, (struct crash_fault){.kind = CRASH_ANY,
                                                        .result = CRASH_POWER_CUT,
                                                        .cut = CUTS[i],
                                                        .draw = draw_rng,
                                                        .ctx = &r});
}

static void test_a_kill_at_each_call_of_the_migrations_is_mended(void **state)
{
    struct rng r = {1};
    fault_at_each_call(
        *state,
        (struct crash_fault){.kind = CRASH_ANY, .result = CRASH_KILL, .draw = draw_rng, .ctx = &r});
}

static void test_a_failure_at_each_call_of_the_migrations_is_mended(void **state)
{
    fault_at_each_call(*state, (struct crash_fault){.kind = CRASH_ANY, .result = CRASH_EIO});
    fault_at_each_call(*state, (struct crash_fault){.kind = CRASH_ANY, .result = CRASH_SHORT});
    fault_at_each_call(
        *state, (struct crash_fault){.kind = CRASH_ANY, .result = CRASH_ENOSPC, .lasting = true});
}

/* --- a store in use --- */

enum { LEDGER_ROWS = 30 };

/* A ledger beside the store's own tables: transaction n adds row n and removes an old one. */
struct ledger {
    struct scene *scene;
    struct rng rng;
    struct db *db;
    int64_t kept; /* transactions 1…kept must be there: acknowledged, or shown by an opened store */
    int64_t may; /* those up to here may be there */
};

static void make_ledger(struct scene *s)
{
    static const char SQL[] = "CREATE TABLE ledger (n INTEGER PRIMARY KEY, body BLOB)";
    struct db *db = store_open(s, DB_WRITER);
    assert_int_equal(db_exec_values(db, SQL, NULL, 0, NULL), ERR_OK);
    db_close(db);
}

/* What an opened store shows is acknowledged to whoever asks again, so it must stay. */
static bool look(struct ledger *l)
{
    static const char LAST[] = "SELECT coalesce(max(n), 0) FROM ledger";
    static const char COUNT[] = "SELECT count(*) FROM ledger";
    int64_t last = 0;
    int64_t count = 0;
    if (try_number(l->db, LAST, &last) != ERR_OK || try_number(l->db, COUNT, &count) != ERR_OK) {
        assert_true(crash_disk_fired(l->scene->disk) > 0);
        return false;
    }
    if (last < l->kept || last > l->may)
        fail_msg("transaction %lld is the last, not %lld to %lld", (long long)last,
                 (long long)l->kept, (long long)l->may);
    assert_int_equal(count, MIN(last, LEDGER_ROWS));
    l->kept = l->may = last;
    return true;
}

static enum err add_row(struct ledger *l)
{
    static const char INSERT[] = "INSERT INTO ledger (n, body) VALUES ($1, zeroblob($2))";
    static const char REMOVE[] = "DELETE FROM ledger WHERE n = $1";
    enum err e = db_begin(l->db);
    if (e == ERR_OK)
        e = DB_EXEC(l->db, INSERT, NULL, DB_I(l->kept + 1),
                    DB_I((int64_t)rng_below(&l->rng, rng_below(&l->rng, 5) ? 100 : 20000)));
    if (e == ERR_OK)
        e = DB_EXEC(l->db, REMOVE, NULL, DB_I(l->kept + 1 - LEDGER_ROWS));
    if (e != ERR_OK) {
        db_rollback(l->db);
        return e;
    }
    e = db_commit(l->db);
    switch (db_commit_outcome(l->db)) {
    case DB_COMMITTED:
        l->kept = l->may = l->kept + 1;
        break;
    case DB_IN_DOUBT:
        l->may = l->kept + 1;
        break;
    default:
        break;
    }
    return e;
}

/* After a failed sync the kernel takes pages for written that are not. A process that finds them in
 * its cache may show them only when it has written them again. */
static void test_a_commit_whose_sync_failed_is_durable_once_it_is_shown(void **state)
{
    struct scene *s = *state;
    make_ledger(s);
    struct ledger l = {.scene = s, .rng = {3}};
    l.db = store_open(s, DB_WRITER);
    for (int i = 0; i < 10; i++)
        assert_int_equal(add_row(&l), ERR_OK);
    fail_next(s->disk, CRASH_SYNC, CRASH_EIO);
    assert_int_equal(add_row(&l), ERR_STORE_FAILED);
    assert_int_equal(db_commit_outcome(l.db), DB_IN_DOUBT);
    crash_disk_kill(s->disk);
    db_close(l.db);
    crash_disk_restart(s->disk);
    l.db = store_open(s, DB_WRITER);
    assert_true(look(&l));
    assert_int_equal(l.kept, 11); /* in the cache */
    crash_disk_cut(s->disk, CRASH_CUT_DROP, draw_rng, &l.rng);
    db_close(l.db);
    crash_disk_restart(s->disk);
    l.db = store_open(s, DB_WRITER);
    assert_true(look(&l));
    check_store(l.db);
    db_close(l.db);
}

static void arm(struct ledger *l)
{
    enum crash_result result = (enum crash_result)rng_below(&l->rng, CRASH_KILL + 1);
    bool crashes = result == CRASH_POWER_CUT || result == CRASH_KILL;
    struct crash_fault fault = {
        .kind = (enum crash_kind)rng_below(&l->rng, CRASH_ANY + 1),
        .nth = 1 + rng_below(&l->rng, 60),
        .result = result,
        .lasting = !crashes && rng_below(&l->rng, 2) == 0,
        .cut = CRASH_CUT_ANY,
        .draw = draw_rng,
        .ctx = &l->rng,
    };
    crash_disk_fail(l->scene->disk, &fault);
}

/* As the product: it ends when nobody can tell what is on the disk, and goes on otherwise. */
static void work(struct ledger *l)
{
    enum err e = ERR_OK;
    uint64_t turns = rng_below(&l->rng, 80);
    for (uint64_t i = 0; i < turns && e != ERR_STORE_FAILED; i++) {
        e = add_row(l);
        if (e == ERR_OK && rng_below(&l->rng, 4) == 0)
            e = db_housekeep(l->db);
    }
}

/* The end of a process, and what happens to the machine before the next. */
static void end_process(struct ledger *l)
{
    struct crash_disk *disk = l->scene->disk;
    if (!crash_disk_is_down(disk) && rng_below(&l->rng, 2) == 0)
        crash_disk_kill(disk);
    db_close(l->db);
    l->db = NULL;
    assert_int_equal(crash_disk_counts(disk)->touched_after_failed_sync, 0);
    if (rng_below(&l->rng, 3) == 0)
        crash_disk_cut(disk, CRASH_CUT_ANY, draw_rng, &l->rng);
    crash_disk_clear_faults(disk);
}

static void one_process(struct ledger *l)
{
    struct crash_disk *disk = l->scene->disk;
    crash_disk_kill(disk); /* if the last one closed its files, nothing is left of it either */
    crash_disk_restart(disk);
    if (rng_below(&l->rng, 4) != 0)
        arm(l);
    enum err e = store_try(l->scene, DB_WRITER, &l->db);
    assert_true(e == ERR_OK || crash_disk_fired(disk) > 0);
    if (e == ERR_OK && look(l))
        work(l);
    end_process(l);
}

static void test_crashes_and_failures_lose_nothing_that_was_acknowledged(void **state)
{
    struct scene *s = *state;
    make_ledger(s);
    struct ledger l = {.scene = s, .rng = {1}};
    for (int i = 0; i < LEDGER_PROCESSES; i++)
        one_process(&l);
    crash_disk_restart(s->disk);
    l.db = store_open(s, DB_WRITER);
    assert_true(look(&l));
    check_store(l.db);
    db_close(l.db);
    assert_true(crash_disk_counts(s->disk)->cuts > LEDGER_PROCESSES / 4);
    assert_true(l.kept > LEDGER_PROCESSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_a_new_store_survives_a_power_cut_at_once),
        scene_test(test_a_power_cut_at_each_call_of_the_migrations_is_mended),
        scene_test(test_a_kill_at_each_call_of_the_migrations_is_mended),
        scene_test(test_a_failure_at_each_call_of_the_migrations_is_mended),
        scene_test(test_a_commit_whose_sync_failed_is_durable_once_it_is_shown),
        scene_test(test_crashes_and_failures_lose_nothing_that_was_acknowledged),
    };
    log_setup(LOG_TEXT, LOG_ERROR, &ENV_SYSTEM);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
