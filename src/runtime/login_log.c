/* Counts and logs API keys that were refused. */
#include "runtime/login_log.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"

void login_log_note(struct login_log *l, struct str peer, enum err e, int64_t mono_ms)
{
    bool throttled = e == ERR_LOGIN_THROTTLED;
    if (peer.ptr == NULL || (e != ERR_UNAUTHENTICATED && !throttled))
        return;
    metric_add(l->failures, throttled ? STR("throttled") : STR("invalid"), STR_NONE, 1);
    l->unlogged++;
    if (mono_ms < l->next_at_ms)
        return;
    LOG(LOG_WARN, "API keys were refused", LOG_S("peer", peer),
        LOG_N("since_last_line", l->unlogged), LOG_N("throttled", throttled));
    l->unlogged = 0;
    l->next_at_ms = mono_ms + LOGIN_LOG_MS;
}
