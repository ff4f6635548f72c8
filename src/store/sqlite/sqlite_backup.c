/* Online copies of the data file. */
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_file.h"

enum { BACKUP_PAGES = 256 };

struct sqlite_backup {
    struct db_backup base;
    sqlite3 *copy;
    sqlite3_backup *backup;
    bool complete;
    char path[DB_PATH_MAX];
};

static struct sqlite_backup *backup_of(struct db_backup *base)
{
    return CONTAINER_OF(base, struct sqlite_backup, base);
}

static enum err backup_begin(struct db *base, struct problem *p, struct db_backup **ret)
{
    struct sqlite_db *db = CONTAINER_OF(base, struct sqlite_db, base);
    struct sqlite_backup *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for a backup");
    b->base.db = base;
    bool named = sqlite_file_name_copy(db->path, db->env, b->path, sizeof(b->path));
    if (named && sqlite3_open_v2(b->path, &b->copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                 NULL) == SQLITE_OK)
        b->backup = sqlite3_backup_init(b->copy, "main", db->conn, "main");
    if (b->backup == NULL) {
        (void)problem_set(p, ERR_STORE_FULL, "Cannot write a copy beside the store: %s",
                          b->copy != NULL ? sqlite3_errmsg(b->copy) : "no memory");
        (void)sqlite3_close(b->copy);
        sqlite_file_remove_copy(b->path);
        free(b);
        return p->err;
    }
    *ret = &b->base;
    return ERR_OK;
}

static enum err backup_step(struct db_backup *base, bool *ret_done)
{
    struct sqlite_backup *b = backup_of(base);
    int rc = sqlite3_backup_step(b->backup, BACKUP_PAGES);
    b->complete = rc == SQLITE_DONE;
    *ret_done = b->complete;
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return ERR_OK;
    return (rc & 0xFF) == SQLITE_FULL ? ERR_STORE_FULL : ERR_STORE_BUSY;
}

static enum err backup_end(struct db_backup *base, char path[static DB_PATH_MAX])
{
    struct sqlite_backup *b = backup_of(base);
    int rc = sqlite3_backup_finish(b->backup);
    (void)sqlite3_close(b->copy);
    enum err e = b->complete && rc == SQLITE_OK ? ERR_OK : ERR_STORE_BUSY;
    if (e == ERR_OK)
        memcpy(path, b->path, sizeof(b->path));
    else
        sqlite_file_remove_copy(b->path);
    free(b);
    return e;
}

const struct db_backup_ops SQLITE_BACKUP_OPS = {backup_begin, backup_step, backup_end};
