/* Webhooks without I/O: how a message is signed, and what the answer to it means for the next
 * attempt. Pure.
 *
 * Messages are signed as https://www.standardwebhooks.com says: HMAC-SHA-256 with the webhook's
 * secret over `id.timestamp.body`. A secret is kept as bytes and shown as `whsec_` and base64. */
#ifndef PAWL_DOMAIN_WEBHOOK_H
#define PAWL_DOMAIN_WEBHOOK_H

#include "base/buf.h"

enum { WEBHOOK_SECRET_LEN = 32 };

struct webhook_secret {
    unsigned char bytes[WEBHOOK_SECRET_LEN];
};

/* --- signatures --- */

void webhook_put_secret(struct buf *out, const struct webhook_secret *secret);
/* One signature, as `v1,<base64>`. The secret is bytes, of any length. */
void webhook_put_signature(struct buf *out, struct str secret, struct str id, int64_t timestamp_s,
                           struct str body);

/* --- what an attempt came to --- */

struct attempt_end {
    int status;             /* of the answer; 0: there was none */
    int64_t attempts;       /* of this delivery since its schedule began, this one included */
    int64_t retry_after_ms; /* what the receiver asked for; -1: nothing */
    int64_t failing_ms;     /* for how long this webhook has had no success; 0: the last was one */
    uint64_t seed;          /* 64 random bits */
};

enum attempt_verdict {
    ATTEMPT_DELIVERED,
    ATTEMPT_AGAIN,  /* after a delay */
    ATTEMPT_FAILED, /* that was the last one */
    ATTEMPT_GONE,   /* the receiver wants no more, of anything */
    ATTEMPT_DEAD,   /* the receiver has not taken anything for days: no more either */
};

/* *ret_delay_ms is for ATTEMPT_AGAIN. */
enum attempt_verdict attempt_judge(const struct attempt_end *end, int64_t *ret_delay_ms);

#endif
