/* The write-ahead log: how long it is, and when it is folded back into the main file.
 *
 *   0 ........ WAL_CHECKPOINT_PAGES ........ WAL_FORCE_PAGES ........ log_pages_max
 *   the keeper folds slices    and smaller ones; when     the writer folds      writes are
 *   beside the writer          only a rest is left,       all that is left      refused
 *                              the writer folds it:
 *                              the log starts again */
#include "base/limits.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_keeper.h"

enum { PAGE_BYTES = 4096, SLICES_MIN = 8 /* of a log that is kept short */ };

static const struct sqlite_db *const_db_of(const struct db *base)
{
    return (const struct sqlite_db *)base; /* its first member */
}

void sqlite_log_init(struct sqlite_db *db, const struct db_config *config)
{
    db->log_pages_max =
        config->log_bytes_max > 0 ? config->log_bytes_max / PAGE_BYTES : (int64_t)WAL_PAGES_MAX;
    db->folds_in_background = config->folds_in_background;
}

static void log_has_restarted(struct sqlite_db *db)
{
    db->log_pages = 0;
    db->log_pages_passed = 0;
    if (db->keeper != NULL)
        sqlite_keeper_log_restarts(db->keeper);
}

static int note_log_size(void *ctx, sqlite3 *conn, const char *name, int pages)
{
    (void)conn;
    (void)name;
    struct sqlite_db *db = ctx;
    if (pages < db->log_pages)
        log_has_restarted(db); /* all of it was folded, and no reader was in its way */
    db->log_pages = pages;
    return SQLITE_OK;
}

void sqlite_log_watch(struct sqlite_db *db)
{
    (void)sqlite3_wal_hook(db->conn, note_log_size, db);
}

/* --- what is due --- */

/* From here on the log may start again. */
static int64_t restart_pages(const struct sqlite_db *db)
{
    return MIN((int64_t)WAL_CHECKPOINT_PAGES, db->log_pages_max);
}

static bool may_restart(const struct sqlite_db *db)
{
    return db->log_pages >= restart_pages(db);
}

/* So many pages make a slice; of a log that is kept short, fewer. */
static int64_t slice_of(const struct sqlite_db *db, int64_t pages)
{
    return MIN(pages, db->log_pages_max / SLICES_MIN);
}

static bool slice_is_due(const struct sqlite_db *db)
{
    int64_t slice = slice_of(db, may_restart(db) ? WAL_LAST_SLICE_PAGES : WAL_SLICE_PAGES);
    return db->folds_in_background && db->log_pages - db->log_pages_passed >= slice;
}

/* Is it time for the writer to fold what the keeper has left? */
static bool rest_is_due(const struct sqlite_db *db)
{
    if (!may_restart(db))
        return false;
    if (db->keeper == NULL || db->log_pages >= MIN((int64_t)WAL_FORCE_PAGES, db->log_pages_max))
        return true;
    int64_t rest = db->log_pages - sqlite_keeper_folded(db->keeper);
    return rest <= slice_of(db, WAL_REST_PAGES);
}

static bool wants_housekeeping(const struct db *base)
{
    return slice_is_due(const_db_of(base)) || rest_is_due(const_db_of(base));
}

/* --- doing it --- */

static void begin_slice(struct sqlite_db *db)
{
    if (db->keeper == NULL)
        db->keeper = sqlite_keeper_start(db->path, db->marks);
    db->folds_in_background = db->keeper != NULL;
    if (db->keeper == NULL || !sqlite_keeper_rests(db->keeper))
        return;
    db->log_pages_passed = db->log_pages;
    bool is_last = db->log_pages + slice_of(db, WAL_LAST_SLICE_PAGES) >= restart_pages(db);
    sqlite_keeper_wake(db->keeper, is_last);
}

static enum err fold_rest(struct sqlite_db *db)
{
    int in_log = 0;
    int folded = 0;
    if (db->keeper != NULL)
        sqlite_keeper_wait(db->keeper);
    int rc = sqlite3_wal_checkpoint_v2(db->conn, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &folded);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY)
        return sqlite_err_of(db, rc);
    if (rc == SQLITE_OK && folded == in_log) {
        log_has_restarted(db); /* the next commit begins it */
        return ERR_OK;
    }
    if (rc == SQLITE_OK)
        db->log_pages = in_log;
    return db->log_pages > db->log_pages_max ? ERR_STORE_BUSY : ERR_OK;
}

static enum err housekeep(struct db *base)
{
    struct sqlite_db *db = CONTAINER_OF(base, struct sqlite_db, base);
    assert(db->access == DB_WRITER);
    if (atomic_load(&db->marks->failed))
        return ERR_STORE_FAILED; /* the keeper's, or that of a sync */
    if (slice_is_due(db))
        begin_slice(db);
    return rest_is_due(db) ? fold_rest(db) : ERR_OK;
}

static int64_t log_bytes(const struct db *base)
{
    return const_db_of(base)->log_pages * PAGE_BYTES;
}

const struct db_log_ops SQLITE_LOG_OPS = {wants_housekeeping, housekeep, log_bytes};
