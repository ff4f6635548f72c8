/* Webhooks without I/O. */
#include "domain/webhook.h"

#include "base/crypto.h"
#include "base/limits.h"

/* --- signatures --- */

void webhook_put_secret(struct buf *out, const struct webhook_secret *secret)
{
    buf_put(out, STR("whsec_"));
    buf_put_base64(out, secret->bytes, WEBHOOK_SECRET_LEN);
}

void webhook_put_signature(struct buf *out, struct str secret, struct str id, int64_t timestamp_s,
                           struct str body)
{
    char time[24];
    int len = snprintf(time, sizeof(time), "%lld", (long long)timestamp_s);
    assert(len > 0 && (size_t)len < sizeof(time));
    struct str parts[] = {id, STR("."), {time, (size_t)len}, STR("."), body};
    struct sha256 signature = hmac_sha256(secret, parts, ARRAY_LEN(parts));
    buf_put(out, STR("v1,"));
    buf_put_base64(out, signature.bytes, SHA256_LEN);
}

/* --- what an attempt came to --- */

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };

/* What is waited after each attempt but the last: three days in all. */
static const int64_t SCHEDULE_MS[] = {
    5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR,  5 * HOUR,
    10 * HOUR,  14 * HOUR,  20 * HOUR,   24 * HOUR,
};

/* Up to a tenth more, so that what failed together does not come again together. */
static int64_t with_jitter(int64_t ms, uint64_t seed)
{
    return ms + (int64_t)(seed % (uint64_t)(ms / 10 + 1));
}

enum attempt_verdict attempt_judge(const struct attempt_end *end, int64_t *ret_delay_ms)
{
    assert(end->attempts >= 1);
    if (end->status >= 200 && end->status < 300)
        return ATTEMPT_DELIVERED;
    if (end->status == 410)
        return ATTEMPT_GONE;
    if (end->failing_ms >= WEBHOOK_FAILING_MS_MAX)
        return ATTEMPT_DEAD;
    if (end->attempts > (int64_t)ARRAY_LEN(SCHEDULE_MS))
        return ATTEMPT_FAILED;
    int64_t delay = with_jitter(SCHEDULE_MS[end->attempts - 1], end->seed);
    bool asked = end->status == 429 || end->status == 503;
    if (asked)
        delay = MAX(delay, MIN(end->retry_after_ms, (int64_t)RETRY_AFTER_MS_MAX));
    *ret_delay_ms = delay;
    return ATTEMPT_AGAIN;
}
