/* The layer that gathers the log's appends: whatever is committed through it is on disk as SQLite
 * alone would have put it. */
#include "store/folder.h"

#include "store/sqlite/wal_vfs.h"

static void make_blobs(struct db *db)
{
    static const char SQL[] = "CREATE TABLE blobs (num INTEGER PRIMARY KEY, size INTEGER NOT NULL,"
                              " body BLOB NOT NULL, tag TEXT NOT NULL UNIQUE) STRICT";
    run_sql(db, SQL);
}

/* What row `num` holds follows from its number and size. */
static void fill(char *out, size_t size, int64_t num)
{
    struct rng r = {(uint64_t)num};
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = rng_next(&r);
        memcpy(out + i, &word, MIN(size - i, sizeof(word)));
    }
}

enum { BODY_MAX = 200 * KIB };

static void add_blob(struct db *db, int64_t num, size_t size)
{
    static const char SQL[] = "INSERT INTO blobs (num, size, body, tag) VALUES ($1, $2, $3, $4)";
    static char body[BODY_MAX];
    assert_true(size > 0 && size <= BODY_MAX);
    fill(body, size, num);
    char tag[32];
    (void)snprintf(tag, sizeof(tag), "%016llx", (unsigned long long)num * 0x9e3779b97f4a7c15u);
    assert_ok(DB_EXEC(db, SQL, NULL, DB_I(num), DB_I((int64_t)size), DB_B(body, size),
                      DB_T(str_of(tag))));
}

static int64_t count_blobs(struct db *db)
{
    static const char SQL[] = "SELECT count(*) FROM blobs";
    return number_of(db, SQL);
}

/* All of 1…count and nothing else, each with the right bytes, by SQLite alone. */
static void check_raw(const char *path, int64_t count)
{
    static char expected[BODY_MAX];
    struct raw raw = raw_open(path);
    raw_check_integrity(&raw);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(raw.file, "SELECT num, size, body FROM blobs ORDER BY num",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    int64_t num = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        num++;
        assert_int_equal(sqlite3_column_int64(stmt, 0), num);
        size_t size = (size_t)sqlite3_column_int64(stmt, 1);
        assert_int_equal(sqlite3_column_bytes(stmt, 2), size);
        fill(expected, size, num);
        assert_memory_equal(sqlite3_column_blob(stmt, 2), expected, size);
    }
    (void)sqlite3_finalize(stmt);
    assert_int_equal(num, count);
    raw_close(&raw);
}

static size_t random_size(struct rng *r)
{
    switch (rng_below(r, 8)) {
    case 0:
        return 1 + rng_below(r, 150 * KIB);
    case 1:
    case 2:
        return 1 + rng_below(r, 10000);
    default:
        return 1 + rng_below(r, 200);
    }
}

static void commit_some(struct db *db, struct rng *r, int64_t *count)
{
    assert_ok(db_begin(db));
    for (uint64_t n = 1 + rng_below(r, 5); n > 0; n--)
        add_blob(db, ++*count, random_size(r));
    assert_ok(db_commit(db));
}

static void many_commits_read_the_same_without_the_layer(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_with(file.text, DB_WRITER, &ENV_SYSTEM, 400 * 4096);
    make_blobs(db);
    struct rng r = {1};
    int64_t count = 0;
    for (int i = 0; i < 150; i++) {
        commit_some(db, &r, &count);
        if (i % 7 == 0)
            assert_ok(db_housekeep(db));
    }
    check_raw(file.text, count); /* beside the open writer */
    commit_some(db, &r, &count);
    db_close(db);
    check_raw(file.text, count);
    assert_int_equal(file_size(path_in(*state, "p.db-wal").text), -1);
}

static void a_reader_sees_every_commit_at_once(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    struct db *reader = open_reader(file.text);
    struct rng r = {2};
    int64_t count = 0;
    for (int i = 0; i < 50; i++) {
        commit_some(db, &r, &count);
        assert_int_equal(count_blobs(reader), count);
    }
    db_close(reader);
    db_close(db);
}

/* More than the layer gathers at a time, and more than the writer's cache holds, so that pages go
 * to the log before the commit. */
enum { LARGE_ROWS = 120 };

static void one_transaction_larger_than_all_buffers(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    struct db *reader = open_reader(file.text);
    assert_ok(db_begin(db));
    for (int64_t num = 1; num <= LARGE_ROWS; num++)
        add_blob(db, num, BODY_MAX);
    assert_int_equal(count_blobs(db), LARGE_ROWS);
    assert_int_equal(count_blobs(reader), 0);
    assert_true(file_size(path_in(*state, "p.db-wal").text) > MIB); /* it has spilled */
    assert_ok(db_commit(db));
    assert_int_equal(count_blobs(reader), LARGE_ROWS);
    db_close(reader);
    check_raw(file.text, LARGE_ROWS);
    db_close(db);
    check_raw(file.text, LARGE_ROWS);
}

static void what_spilled_and_was_rolled_back_is_gone(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    add_blob(db, 1, 5000);
    assert_ok(db_begin(db));
    for (int64_t num = 2; num <= LARGE_ROWS; num++)
        add_blob(db, num, BODY_MAX);
    db_rollback(db);
    assert_int_equal(count_blobs(db), 1);
    struct rng r = {3};
    int64_t count = 1;
    for (int i = 0; i < 10; i++) /* over the frames that the lost transaction left behind */
        commit_some(db, &r, &count);
    check_raw(file.text, count);
    db_close(db);
    check_raw(file.text, count);
}

static void pages_that_are_written_twice_in_one_transaction_keep_the_last(void **state)
{
    static const char DELETE[] = "DELETE FROM blobs WHERE num = $1";
    struct path file = path_in(*state, "p.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    assert_ok(db_begin(db));
    for (int64_t num = 1; num <= LARGE_ROWS; num++)
        add_blob(db, num, BODY_MAX);
    /* The first rows have left the cache by now: their frames are in the log, are read back from
     * there, and are written again in their old places, between new ones at the end. */
    for (int64_t num = 1; num <= LARGE_ROWS; num += 2) {
        assert_ok(DB_EXEC(db, DELETE, NULL, DB_I(num)));
        add_blob(db, num, (size_t)(1 + 1500 * num));
    }
    assert_int_equal(count_blobs(db), LARGE_ROWS);
    assert_ok(db_commit(db));
    check_raw(file.text, LARGE_ROWS);
    db_close(db);
    check_raw(file.text, LARGE_ROWS);
}

/* --- the machine stops --- */

/* What a power cut leaves: the file and its log as they are now, without the shared memory. */
static void snapshot_files(const struct folder *f, const char *copy)
{
    char copy_log[160];
    char copy_shm[160];
    (void)snprintf(copy_log, sizeof(copy_log), "%s-wal", copy);
    (void)snprintf(copy_shm, sizeof(copy_shm), "%s-shm", copy);
    (void)unlink(copy_shm);
    file_copy(path_in(f, "p.db").text, copy);
    file_copy(path_in(f, "p.db-wal").text, copy_log);
}

static void every_commit_is_on_disk_when_it_returns(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path copy = path_in(*state, "copy.db");
    struct db *db = open_with(file.text, DB_WRITER, &ENV_SYSTEM, 100 * 4096);
    make_blobs(db);
    struct rng r = {4};
    int64_t count = 0;
    for (int i = 0; i < 40; i++) {
        commit_some(db, &r, &count);
        snapshot_files(*state, copy.text);
        check_raw(copy.text, count);
        assert_ok(db_housekeep(db));
        snapshot_files(*state, copy.text);
        check_raw(copy.text, count);
    }
    db_close(db);
}

static void a_cut_inside_a_transaction_leaves_the_last_commit(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path copy = path_in(*state, "copy.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    add_blob(db, 1, 3000);
    assert_ok(db_begin(db));
    for (int64_t num = 2; num <= LARGE_ROWS; num++)
        add_blob(db, num, BODY_MAX);
    snapshot_files(*state, copy.text);
    check_raw(copy.text, 1);
    assert_ok(db_commit(db));
    snapshot_files(*state, copy.text);
    check_raw(copy.text, LARGE_ROWS);
    db_close(db);
}

static void a_copy_after_a_cut_opens_as_a_store_and_goes_on(void **state)
{
    struct path file = path_in(*state, "p.db");
    struct path copy = path_in(*state, "copy.db");
    struct db *db = open_writer(file.text);
    make_blobs(db);
    struct rng r = {5};
    int64_t count = 0;
    for (int i = 0; i < 20; i++)
        commit_some(db, &r, &count);
    snapshot_files(*state, copy.text);
    db_close(db);
    db = open_writer(copy.text);
    assert_int_equal(count_blobs(db), count);
    commit_some(db, &r, &count);
    db_close(db);
    check_raw(copy.text, count);
}

static void the_layer_is_registered_once(void **state)
{
    (void)state;
    const char *name = wal_vfs_name();
    assert_ptr_equal(name, wal_vfs_name());
    assert_non_null(sqlite3_vfs_find(name));
    assert_string_not_equal(sqlite3_vfs_find(NULL)->zName, name);
}

/* --- the layer by itself, against a model of a file --- */

/* The default layer takes fewer than 128 KiB at a time. */
enum { MODEL_SIZE = 600 * KIB, WRITE_MAX = 127 * KIB };

struct model {
    unsigned char bytes[MODEL_SIZE];
    sqlite3_int64 size;
    unsigned char scratch[WRITE_MAX];
};

static void model_write(struct model *m, sqlite3_file *file, struct rng *r, sqlite3_int64 offset,
                        size_t len)
{
    len = MIN(len, (size_t)(MODEL_SIZE - offset));
    fill((char *)m->scratch, len, (int64_t)rng_next(r));
    assert_int_equal(file->pMethods->xWrite(file, m->scratch, (int)len, offset), SQLITE_OK);
    memcpy(m->bytes + offset, m->scratch, len);
    m->size = MAX(m->size, offset + (sqlite3_int64)len);
}

static void model_read(struct model *m, sqlite3_file *file, struct rng *r)
{
    if (m->size == 0)
        return;
    sqlite3_int64 offset = (sqlite3_int64)rng_below(r, (uint64_t)m->size);
    size_t len = 1 + rng_below(r, MIN((uint64_t)(m->size - offset), (uint64_t)8192));
    assert_int_equal(file->pMethods->xRead(file, m->scratch, (int)len, offset), SQLITE_OK);
    assert_memory_equal(m->scratch, m->bytes + offset, len);
}

static void check_size(const struct model *m, sqlite3_file *file)
{
    sqlite3_int64 size = -1;
    assert_int_equal(file->pMethods->xFileSize(file, &size), SQLITE_OK);
    assert_int_equal(size, m->size);
}

static void check_disk(const struct model *m, const char *path)
{
    size_t len;
    char *bytes = file_read(path, &len);
    assert_int_equal(len, m->size);
    assert_memory_equal(bytes, m->bytes, len);
    free(bytes);
}

static void one_step(struct model *m, sqlite3_file *file, struct rng *r, const char *path)
{
    switch (rng_below(r, 32)) {
    case 0:
        model_write(m, file, r, m->size, 1 + rng_below(r, WRITE_MAX)); /* past what it gathers */
        break;
    case 1:
    case 2:
        if (m->size > 0)
            model_write(m, file, r, (sqlite3_int64)rng_below(r, (uint64_t)m->size),
                        1 + rng_below(r, 5000));
        break;
    case 3:
    case 4:
        model_read(m, file, r);
        break;
    case 5:
        check_size(m, file);
        break;
    case 6:
        assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        check_disk(m, path);
        break;
    case 7:
        m->size = (sqlite3_int64)rng_below(r, (uint64_t)m->size + 1);
        assert_int_equal(file->pMethods->xTruncate(file, m->size), SQLITE_OK);
        break;
    default:
        model_write(m, file, r, m->size, 1 + rng_below(r, 5000));
        break;
    }
}

struct log_file {
    struct path path;
    const char *name; /* of the main file, as SQLite makes it */
    sqlite3_file *file;
};

static void log_open(struct log_file *l, const struct folder *folder)
{
    struct path main_file = path_in(folder, "m.db");
    l->path = path_in(folder, "m.db-wal");
    file_write(main_file.text, "", 0);
    l->name = sqlite3_create_filename(main_file.text, "", l->path.text, 0, NULL);
    assert_non_null(l->name);
    sqlite3_vfs *vfs = sqlite3_vfs_find(wal_vfs_name());
    assert_non_null(vfs);
    l->file = calloc(1, (size_t)vfs->szOsFile);
    int flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    assert_int_equal(vfs->xOpen(vfs, sqlite3_filename_wal(l->name), l->file, flags, &flags),
                     SQLITE_OK);
}

static void log_close(struct log_file *l)
{
    assert_int_equal(l->file->pMethods->xClose(l->file), SQLITE_OK);
    free(l->file);
    sqlite3_free_filename(l->name);
}

static void the_layer_behaves_as_a_file(void **state)
{
    struct log_file l;
    log_open(&l, *state);
    static struct model m;
    memset(&m, 0, sizeof(m));
    struct rng r = {6};
    for (int i = 0; i < 20000; i++) {
        one_step(&m, l.file, &r, l.path.text);
        if (m.size == MODEL_SIZE) {
            m.size = 0;
            assert_int_equal(l.file->pMethods->xTruncate(l.file, 0), SQLITE_OK);
        }
    }
    log_close(&l);
    check_disk(&m, l.path.text); /* closing leaves nothing behind */
}

/* --- syncs that are left to another thread --- */

/* As SQLite commits: whatever belongs to it, then a sync. */
static void append(struct log_file *l, int len, sqlite3_int64 offset)
{
    static const char bytes[4096];
    assert_true(len <= (int)sizeof(bytes));
    assert_int_equal(l->file->pMethods->xWrite(l->file, bytes, len, offset), SQLITE_OK);
    assert_int_equal(l->file->pMethods->xSync(l->file, SQLITE_SYNC_NORMAL), SQLITE_OK);
}

#define assert_marks(marks, written_, durable_)                       \
    do {                                                              \
        assert_int_equal(atomic_load(&(marks)->written), (written_)); \
        assert_int_equal(atomic_load(&(marks)->durable), (durable_)); \
    } while (0)

static void a_deferred_commit_is_on_disk_after_the_next_sync(void **state)
{
    struct db_marks marks = {0};
    struct log_file l;
    log_open(&l, *state);
    assert_true(wal_vfs_use_marks(l.file, &marks));
    wal_vfs_defer(l.file, true);
    append(&l, 4096, 32);
    append(&l, 4096, 32 + 4096);
    assert_marks(&marks, 2, 0);
    assert_int_equal(file_size(l.path.text), 32 + 2 * 4096); /* others can read it */
    assert_int_equal(wal_vfs_sync(l.file), SQLITE_OK);
    assert_marks(&marks, 2, 2);
    wal_vfs_defer(l.file, false);
    append(&l, 4096, 32);
    assert_marks(&marks, 2, 2); /* nobody has to wait for it */
    log_close(&l);
}

static void the_header_of_a_log_that_starts_again_is_synced_before_its_first_commit(void **state)
{
    struct db_marks marks = {0};
    struct log_file l;
    log_open(&l, *state);
    assert_true(wal_vfs_use_marks(l.file, &marks));
    wal_vfs_defer(l.file, true);
    append(&l, 32, 0);
    assert_marks(&marks, 0, 0); /* it was not put off */
    append(&l, 4096, 32);
    assert_marks(&marks, 1, 0);
    log_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(many_commits_read_the_same_without_the_layer),
        folder_test(a_reader_sees_every_commit_at_once),
        folder_test(one_transaction_larger_than_all_buffers),
        folder_test(what_spilled_and_was_rolled_back_is_gone),
        folder_test(pages_that_are_written_twice_in_one_transaction_keep_the_last),
        folder_test(every_commit_is_on_disk_when_it_returns),
        folder_test(a_cut_inside_a_transaction_leaves_the_last_commit),
        folder_test(a_copy_after_a_cut_opens_as_a_store_and_goes_on),
        folder_test(the_layer_behaves_as_a_file),
        folder_test(a_deferred_commit_is_on_disk_after_the_next_sync),
        folder_test(the_header_of_a_log_that_starts_again_is_synced_before_its_first_commit),
        cmocka_unit_test(the_layer_is_registered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
