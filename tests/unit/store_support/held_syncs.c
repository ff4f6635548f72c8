/* A layer under SQLite whose syncs of write-ahead logs wait for the test, and which counts those of
 * main files. */
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
    int main_syncs;
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

int main_file_syncs(void)
{
    pthread_mutex_lock(&gate.lock);
    int count = gate.main_syncs;
    pthread_mutex_unlock(&gate.lock);
    return count;
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
static const sqlite3_io_methods *real_methods;      /* of every log */
static const sqlite3_io_methods *real_main_methods; /* of every main file */

static int held_sync(sqlite3_file *file, int flags)
{
    return pass_gate() ? SQLITE_IOERR_FSYNC : real_methods->xSync(file, flags);
}

static int counted_sync(sqlite3_file *file, int flags)
{
    pthread_mutex_lock(&gate.lock);
    gate.main_syncs++;
    pthread_mutex_unlock(&gate.lock);
    return real_main_methods->xSync(file, flags);
}

static sqlite3_io_methods held_methods;
static sqlite3_io_methods counted_methods;

static int held_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    int rc = below->xOpen(below, name, file, flags, ret);
    bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (rc != SQLITE_OK || (!is_log && (flags & SQLITE_OPEN_MAIN_DB) == 0))
        return rc;
    pthread_mutex_lock(&gate.lock);
    const sqlite3_io_methods **real = is_log ? &real_methods : &real_main_methods;
    sqlite3_io_methods *changed = is_log ? &held_methods : &counted_methods;
    *real = file->pMethods;
    *changed = **real;
    changed->xSync = is_log ? held_sync : counted_sync;
    pthread_mutex_unlock(&gate.lock);
    file->pMethods = changed;
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
