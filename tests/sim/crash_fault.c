/* Faults of a crash disk: which call fails, and how. */
#include "sim/crash_disk.h"

int code_of(enum crash_kind kind)
{
    static const int CODES[CRASH_KINDS] = {
        [CRASH_READ] = SQLITE_IOERR_READ,  [CRASH_WRITE] = SQLITE_IOERR_WRITE,
        [CRASH_SYNC] = SQLITE_IOERR_FSYNC, [CRASH_TRUNCATE] = SQLITE_IOERR_TRUNCATE,
        [CRASH_OPEN] = SQLITE_CANTOPEN,    [CRASH_DELETE] = SQLITE_IOERR_DELETE,
        [CRASH_SHM] = SQLITE_IOERR_SHMMAP,
    };
    return CODES[kind];
}

void crash_disk_fail(struct crash_disk *disk, const struct crash_fault *fault)
{
    bool crashes = fault->result == CRASH_POWER_CUT || fault->result == CRASH_KILL;
    assert(disk->fault_count < CRASH_FAULTS_MAX && fault->nth > 0);
    assert(!crashes || (fault->draw != NULL && !fault->lasting));
    disk->faults[disk->fault_count++] = *fault;
}

void crash_disk_clear_faults(struct crash_disk *disk)
{
    disk->fault_count = 0;
    disk->fired = 0;
}

uint64_t crash_disk_fired(const struct crash_disk *disk)
{
    return disk->fired;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name);
    size_t tail = strlen(suffix);
    return len >= tail && strcmp(name + len - tail, suffix) == 0;
}

static bool is_change(enum crash_kind kind)
{
    return kind == CRASH_WRITE || kind == CRASH_SYNC || kind == CRASH_TRUNCATE ||
           kind == CRASH_DELETE;
}

static bool concerns(const struct crash_fault *f, enum crash_kind kind, const char *name)
{
    return (f->kind == CRASH_ANY || f->kind == kind ||
            (f->kind == CRASH_CHANGE && is_change(kind))) &&
           (f->suffix == NULL || ends_with(name, f->suffix));
}

/* The fault that strikes now. All that are concerned count the call. */
static bool strike(struct crash_disk *disk, enum crash_kind kind, const char *name,
                   struct crash_fault *ret)
{
    bool struck = false;
    for (size_t i = disk->fault_count; i-- > 0;) { /* backwards: the last one may take its place */
        struct crash_fault *f = &disk->faults[i];
        if (!concerns(f, kind, name) || --f->nth > 0)
            continue;
        *ret = *f;
        struck = true;
        if (f->lasting)
            f->nth = 1;
        else
            *f = disk->faults[--disk->fault_count];
    }
    return struck;
}

static void crash(struct crash_disk *disk, const struct crash_fault *f)
{
    if (f->result == CRASH_KILL)
        crash_disk_kill(disk);
    else
        crash_disk_cut(disk, f->cut, f->draw, f->ctx);
}

void disk_note_touch(struct crash_disk *disk, enum crash_kind kind)
{
    if (disk->sync_failed && is_change(kind))
        disk->counts.touched_after_failed_sync++;
}

void disk_admit(struct crash_disk *disk, enum crash_kind kind, const char *name,
                struct verdict *ret)
{
    *ret = (struct verdict){.code = SQLITE_OK};
    disk->counts.calls[kind]++;
    if (kind != CRASH_SYNC) /* that of a sync was noted when it began */
        disk_note_touch(disk, kind);
    if (!strike(disk, kind, name, &ret->fault))
        return;
    disk->fired++;
    /* SQLite's own layer tells a full disk apart for writes only. */
    bool full = ret->fault.result == CRASH_ENOSPC && kind == CRASH_WRITE;
    ret->code = full ? SQLITE_FULL : code_of(kind);
    ret->partial = ret->fault.result == CRASH_SHORT;
    if (ret->fault.result != CRASH_POWER_CUT && ret->fault.result != CRASH_KILL)
        return;
    if (ret->fault.draw(ret->fault.ctx, 2) == 1)
        ret->after = &ret->fault;
    else
        crash(disk, &ret->fault);
}

int disk_conclude(struct crash_disk *disk, enum crash_kind kind, const struct verdict *v, int code)
{
    if (v->after != NULL)
        crash(disk, v->after);
    if (v->code != SQLITE_OK)
        code = v->code;
    if (kind == CRASH_SYNC && code != SQLITE_OK && !disk->down)
        disk->sync_failed = true;
    return code;
}
