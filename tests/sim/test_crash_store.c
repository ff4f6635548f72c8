/* The product's own store on the crash file system: its migrations, its commits and its recovery.
 */
#include "sim/crash_support.h"

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
    (void)snprintf(s->folder, sizeof(s->folder), "/tmp/pawl-crash-XXXXXX");
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
    struct db_config config = {str_of(s->url), access, &ENV_SYSTEM, 0};
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

static int64_t number_of(struct db *db, const char *text)
{
    struct db_rows *rows = db_query_values(db, text, NULL, 0);
    assert_true(db_next(rows));
    int64_t number = db_int(rows, 0);
    assert_int_equal(db_rows_end(rows), ERR_OK);
    return number;
}

static size_t file_size(const struct crash_disk *disk, const char *name)
{
    size_t len = 0;
    assert_non_null(crash_disk_read_file(disk, name, &len));
    return len;
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
    size_t log = file_size(s->disk, "a.db-wal");
    assert_true(log > 0);
    crash_disk_cut(s->disk, CRASH_CUT_DROP, draw_rng, &r);
    db_close(db);
    db_close(reader);
    crash_disk_restart(s->disk);
    assert_int_equal(file_size(s->disk, "a.db-wal"), log);
    uint64_t written = crash_disk_counts(s->disk)->bytes_written;
    db = store_open(s, DB_WRITER);
    check_store(db);
    /* Folded back, not migrated once more. */
    assert_int_equal(file_size(s->disk, "a.db-wal"), log);
    assert_true(crash_disk_counts(s->disk)->bytes_written - written < log);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_a_new_store_survives_a_power_cut_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
