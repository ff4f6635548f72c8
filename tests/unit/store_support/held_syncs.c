/* A layer under SQLite whose syncs of write-ahead logs wait for the test. */
#include "store_support/held_syncs.h"

#include "store/db.h"

#include <pthread.h>
#include <sqlite3.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;
    bool failing;
    int allowed; /* go on although syncs are held */
    int waiting;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* --- the test's side --- */

static void set(bool held, bool failing, int allowed)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = held;
    gate.failing = failing;
    gate.allowed = allowed;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

void hold_syncs(void)
{
    set(true, false, 0);
}

void let_one_sync(void)
{
    set(true, false, 1);
}

void release_syncs(void)
{
    set(false, false, 0);
}

void fail_syncs(void)
{
    set(false, true, 0);
}

int syncs_waiting(void)
{
    pthread_mutex_lock(&gate.lock);
    int waiting = gate.waiting;
    pthread_mutex_unlock(&gate.lock);
    return waiting;
}

/* --- SQLite's side --- */

/* True: the sync must fail. */
static bool pass_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    while (gate.held && gate.allowed == 0)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    gate.allowed -= gate.held;
    bool fails = gate.failing;
    pthread_mutex_unlock(&gate.lock);
    return fails;
}

static sqlite3_vfs *below;
static const sqlite3_io_methods *real_methods; /* of every log */

static int held_sync(sqlite3_file *file, int flags)
{
    return pass_gate() ? SQLITE_IOERR_FSYNC : real_methods->xSync(file, flags);
}

static sqlite3_io_methods held_methods;

static int held_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    int rc = below->xOpen(below, name, file, flags, ret);
    if (rc != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0)
        return rc;
    pthread_mutex_lock(&gate.lock);
    real_methods = file->pMethods;
    held_methods = *real_methods;
    held_methods.xSync = held_sync;
    pthread_mutex_unlock(&gate.lock);
    file->pMethods = &held_methods;
    return SQLITE_OK;
}

/* The store configures SQLite when it first opens anything, and that must come before all else. */
static void configure_sqlite(void)
{
    struct db_config config = {
        .url = STR("sqlite:/nowhere/at/all"), .access = DB_READER, .env = &ENV_SYSTEM};
    struct problem p;
    struct db *db = NULL;
    problem_init(&p);
    enum err e = db_open(&config, &p, &db);
    assert(e == ERR_STORE_FAILED);
    problem_release(&p);
}

void held_syncs_install(void)
{
    static sqlite3_vfs held_vfs;
    configure_sqlite();
    below = sqlite3_vfs_find(NULL);
    assert(below != NULL);
    held_vfs = *below; /* all but opening is the default's */
    held_vfs.zName = "held-syncs";
    held_vfs.pNext = NULL;
    held_vfs.xOpen = held_open;
    int rc = sqlite3_vfs_register(&held_vfs, 1);
    assert(rc == SQLITE_OK);
}
