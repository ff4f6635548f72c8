/* What the answer to an outbound call means for whoever made it. Pure. */
#ifndef PAWL_DOMAIN_CALL_VERDICT_H
#define PAWL_DOMAIN_CALL_VERDICT_H

#include "base/str.h"

enum call_verdict {
    CALL_IS_DONE,  /* 2xx */
    CALL_IS_LOST,  /* the same request may succeed later */
    CALL_IS_WRONG, /* it will not */
};

enum call_verdict call_verdict_of(int status);

/* A Retry-After field, a number of seconds or a date, as a delay from `now_ms`: 0 …
 * RETRY_AFTER_MS_MAX; 0 for a time that is past. -1 when it is neither, or absent. */
int64_t retry_after_ms(struct str value, int64_t now_ms);

#endif
