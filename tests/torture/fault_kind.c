/* What can be made to fail below a request of the simulated server. */
#include "fault_kind.h"

#include "fault.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
enum { ALLOC_STEP = 149, OTHER_STEP = 29 }; /* a fault costs fifty times as much */
#else
enum { ALLOC_STEP = 149, OTHER_STEP = 19 };
#endif

static const struct fault_kind ON_SQLITE[] = {
    {.name = "allocation", .of = KIND_ALLOC},
    {.name = "full disk at write", .of = KIND_FILE, .call = CRASH_WRITE, .result = CRASH_ENOSPC},
    {.name = "failed write", .of = KIND_FILE, .call = CRASH_WRITE, .result = CRASH_EIO},
    {.name = "short write", .of = KIND_FILE, .call = CRASH_WRITE, .result = CRASH_SHORT},
    {.name = "failed sync", .of = KIND_FILE, .call = CRASH_SYNC, .result = CRASH_EIO},
    {.name = "failed truncate", .of = KIND_FILE, .call = CRASH_TRUNCATE, .result = CRASH_EIO},
    {.name = "failed read", .of = KIND_FILE, .call = CRASH_READ, .result = CRASH_EIO},
    {.name = "failed open", .of = KIND_FILE, .call = CRASH_OPEN, .result = CRASH_EIO},
    {.name = "failed shared memory", .of = KIND_FILE, .call = CRASH_SHM, .result = CRASH_EIO},
    {0},
};

static const struct fault_kind ON_FAILING[] = {
    {.name = "full store", .of = KIND_STATEMENT, .err = ERR_STORE_FULL, .access = DB_WRITER},
    {.name = "busy store", .of = KIND_STATEMENT, .err = ERR_STORE_BUSY, .access = DB_WRITER},
    {.name = "statement without memory",
     .of = KIND_STATEMENT,
     .err = ERR_NO_MEMORY,
     .access = DB_WRITER},
    {.name = "failed store", .of = KIND_STATEMENT, .err = ERR_STORE_FAILED, .access = DB_WRITER},
    {.name = "commit in doubt",
     .of = KIND_STATEMENT,
     .err = ERR_STORE_FAILED,
     .access = DB_WRITER,
     .commit_happened = true},
    {.name = "busy reader", .of = KIND_STATEMENT, .err = ERR_STORE_BUSY, .access = DB_READER},
    {.name = "read without memory",
     .of = KIND_STATEMENT,
     .err = ERR_NO_MEMORY,
     .access = DB_READER},
    {0},
};

const struct fault_kind *fault_kinds(const char *scheme)
{
    return strcmp(scheme, "failing") == 0 ? ON_FAILING : ON_SQLITE;
}

long fault_kind_step(const struct fault_kind *kind)
{
    const char *chosen = getenv("PAWL_TORTURE_STEP");
    long usual = kind->of == KIND_ALLOC ? ALLOC_STEP : OTHER_STEP;
    return chosen != NULL ? MAX(strtol(chosen, NULL, 10), 1L) : usual;
}

void fault_kind_arm(const struct fault_kind *kind, struct crash_disk *disk, long n, bool lasting)
{
    if (n == 0)
        return;
    if (kind->of == KIND_ALLOC)
        fault_arm(FAULT_ALLOC, n, lasting);
    else if (kind->of == KIND_FILE)
        crash_disk_fail(disk, &(struct crash_fault){.kind = kind->call,
                                                    .nth = (uint64_t)n,
                                                    .result = kind->result,
                                                    .lasting = lasting});
    else
        failing_arm(&(struct fault){.nth = n,
                                    .err = kind->err,
                                    .lasting = lasting,
                                    .commit_happened = kind->commit_happened,
                                    .access = kind->access});
}

bool fault_kind_disarm(const struct fault_kind *kind, struct crash_disk *disk)
{
    if (kind->of == KIND_ALLOC) {
        (void)fault_disarm();
        return fault_hits() > 0;
    }
    if (kind->of == KIND_FILE) {
        bool fired = crash_disk_fired(disk) > 0;
        crash_disk_clear_faults(disk);
        return fired;
    }
    failing_disarm();
    return failing_has_fired();
}
