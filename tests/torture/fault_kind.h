/* What can be made to fail below a request of the simulated server. */
#ifndef PAWL_TESTS_TORTURE_FAULT_KIND_H
#define PAWL_TESTS_TORTURE_FAULT_KIND_H

#include "sim/crash_vfs.h"
#include "store_support/stores.h"

struct fault_kind {
    const char *name;
    enum { KIND_ALLOC, KIND_FILE, KIND_STATEMENT } of;
    /* KIND_FILE */
    enum crash_kind call;
    enum crash_result result;
    /* KIND_STATEMENT */
    enum err err;
    enum db_access access;
    bool commit_happened;
};

/* The kinds for this scheme of a store; the last one has no name. Statements fail on "failing"
 * only, everything else on "sqlite". */
const struct fault_kind *fault_kinds(const char *scheme);

/* Of so many calls one is made to fail: 1 in all with PAWL_TORTURE_STEP=1. Without it a share that
 * `make test` has time for. */
long fault_kind_step(const struct fault_kind *kind);

/* The nth call from now fails; `lasting`: and all after it. 0: none. */
void fault_kind_arm(const struct fault_kind *kind, struct crash_disk *disk, long n, bool lasting);
/* Did one fail? */
bool fault_kind_disarm(const struct fault_kind *kind, struct crash_disk *disk);

#endif
