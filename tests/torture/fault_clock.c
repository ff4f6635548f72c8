/* The server's monotonic clock runs faster while something fails, so that a test need not sit out
 * time limits. Linked with --wrap=env_mono_ms. */
#include "fault.h"

#include "base/env.h"

#include <pthread.h>

enum { TIMES_FASTER = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_real_ms;
static int64_t gained_ms;

int64_t __real_env_mono_ms(const struct env *e);
int64_t __wrap_env_mono_ms(const struct env *e);

int64_t __wrap_env_mono_ms(const struct env *e)
{
    pthread_mutex_lock(&lock);
    int64_t real = __real_env_mono_ms(e);
    if (fault_armed() && last_real_ms != 0)
        gained_ms += (real - last_real_ms) * (TIMES_FASTER - 1);
    last_real_ms = real;
    int64_t now = real + gained_ms;
    pthread_mutex_unlock(&lock);
    return now;
}
