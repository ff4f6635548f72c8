/* Folds the write-ahead log back beside the writer. */
#include "store/sqlite/sqlite_keeper.h"

#include "base/log.h"

#include <pthread.h>
#include <sqlite3.h>

struct sqlite_keeper {
    sqlite3 *conn;
    struct db_marks *marks;
    pthread_t thread;
    bool runs;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    bool wanted;  /* a pass has been asked for and is not over */
    bool is_last; /* before the log starts again */
    bool stopping;
    int64_t folded;
};

/* --- the thread --- */

static int sync_copies(struct sqlite_keeper *k)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(k->conn, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return rc == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : rc;
}

/* A pass that meets a lock has done nothing, or less than all: the next one goes on. Returns how
 * many pages of the log are copied. */
static int64_t fold(struct sqlite_keeper *k, bool is_last, int64_t folded)
{
    int in_log = 0;
    int done = 0;
    int rc = sqlite3_wal_checkpoint_v2(k->conn, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &done);
    if (rc == SQLITE_OK && is_last)
        rc = sync_copies(k);
    bool later = rc == SQLITE_BUSY || rc == SQLITE_NOMEM || rc == SQLITE_FULL;
    if (rc != SQLITE_OK && !later)
        atomic_store(&k->marks->failed, true);
    return rc == SQLITE_OK ? done : folded;
}

static void *keeper_main(void *ctx)
{
    struct sqlite_keeper *k = ctx;
    pthread_mutex_lock(&k->lock);
    while (!k->stopping) {
        if (!k->wanted) {
            pthread_cond_wait(&k->changed, &k->lock);
            continue;
        }
        int64_t folded = k->folded;
        bool is_last = k->is_last;
        pthread_mutex_unlock(&k->lock);
        if (!atomic_load(&k->marks->failed))
            folded = fold(k, is_last, folded);
        pthread_mutex_lock(&k->lock);
        k->folded = folded;
        k->wanted = false;
        pthread_cond_broadcast(&k->changed);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* --- the writer's side --- */

void sqlite_keeper_wake(struct sqlite_keeper *k, bool is_last)
{
    pthread_mutex_lock(&k->lock);
    k->wanted = true;
    k->is_last = is_last;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
}

void sqlite_keeper_wait(struct sqlite_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    while (k->wanted)
        pthread_cond_wait(&k->changed, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

bool sqlite_keeper_rests(struct sqlite_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    bool rests = !k->wanted;
    pthread_mutex_unlock(&k->lock);
    return rests;
}

int64_t sqlite_keeper_folded(struct sqlite_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    int64_t folded = k->folded;
    pthread_mutex_unlock(&k->lock);
    return folded;
}

void sqlite_keeper_log_restarts(struct sqlite_keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->folded = 0;
    pthread_mutex_unlock(&k->lock);
}

/* --- life --- */

/* The writer's connection is the last to close: only that one may fold the log back then. */
static bool connect_file(struct sqlite_keeper *k, const char *path)
{
    static const char SETUP[] = "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=FULL;"
                                "PRAGMA cache_size=-64";
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    return sqlite3_open_v2(path, &k->conn, flags, NULL) == SQLITE_OK &&
           sqlite3_db_config(k->conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) == SQLITE_OK &&
           sqlite3_exec(k->conn, SETUP, NULL, NULL, NULL) == SQLITE_OK;
}

struct sqlite_keeper *sqlite_keeper_start(const char *path, struct db_marks *marks)
{
    struct sqlite_keeper *k = calloc(1, sizeof(*k));
    if (k == NULL)
        return NULL;
    k->marks = marks;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    k->runs = connect_file(k, path) && pthread_create(&k->thread, NULL, keeper_main, k) == 0;
    if (k->runs)
        return k;
    LOG(LOG_WARN, "the log is folded back by the writer itself",
        LOG_Z("why", k->conn != NULL ? sqlite3_errmsg(k->conn) : "no memory"));
    sqlite_keeper_stop(k);
    return NULL;
}

void sqlite_keeper_stop(struct sqlite_keeper *k)
{
    if (k == NULL)
        return;
    if (k->runs) {
        pthread_mutex_lock(&k->lock);
        k->stopping = true;
        pthread_cond_broadcast(&k->changed);
        pthread_mutex_unlock(&k->lock);
        pthread_join(k->thread, NULL);
    }
    (void)sqlite3_close(k->conn);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->changed);
    free(k);
}
