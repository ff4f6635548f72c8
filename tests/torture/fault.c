/* Which call fails. */
#include "fault.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    EVERY_ONE_UP_TO = 50,
#ifdef __SANITIZE_ADDRESS__
    STEP = 11, /* a call costs ten times as much */
#else
    STEP = 1,
#endif
};

static atomic_int armed = -1;
static atomic_long calls;
static atomic_long hits;
static atomic_long nth;
static atomic_bool for_good;
static _Thread_local bool spared = true; /* until the thread's own code runs */

const char *fault_class_name(enum fault_class class)
{
    static const char *const NAMES[] = {
        [FAULT_ALLOC] = "allocation", [FAULT_SOCKETS] = "sockets", [FAULT_THREADS] = "threads",
        [FAULT_CURL] = "libcurl",     [FAULT_NATS] = "libnats",
    };
    static_assert(ARRAY_LEN(NAMES) == FAULT_CLASS_COUNT, "one name per class");
    return NAMES[class];
}

void fault_arm(enum fault_class class, long n, bool lasting)
{
    spared = false;
    atomic_store(&calls, 0);
    atomic_store(&hits, 0);
    atomic_store(&nth, n);
    atomic_store(&for_good, lasting);
    atomic_store(&armed, (int)class);
}

long fault_disarm(void)
{
    atomic_store(&armed, -1);
    return atomic_load(&calls);
}

bool fault_armed(void)
{
    return atomic_load(&armed) >= 0;
}

long fault_hits(void)
{
    return atomic_load(&hits);
}

void fault_spare_thread(bool spare)
{
    spared = spare;
}

bool fault_due(enum fault_class class)
{
    if (atomic_load(&armed) != (int)class || spared)
        return false;
    long n = atomic_fetch_add(&calls, 1) + 1;
    long fails = atomic_load(&nth);
    bool due = fails > 0 && (n == fails || (n > fails && atomic_load(&for_good)));
    if (due)
        atomic_fetch_add(&hits, 1);
    return due;
}

long fault_next(long n)
{
    const char *step = getenv("PAWL_TORTURE_STEP");
    long chosen = step != NULL ? strtol(step, NULL, 10) : STEP;
    return n < EVERY_ONE_UP_TO ? n + 1 : n + MAX(chosen, 1L);
}
