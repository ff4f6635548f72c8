/* How fast a tenant's slots have been freeing lately, and from that when it is worth asking for one
 * again. Pure. */
#ifndef PAWL_DOMAIN_ADMISSION_RELEASE_RATE_H
#define PAWL_DOMAIN_ADMISSION_RELEASE_RATE_H

#include "base/macros.h"

/* A minute: longer advice would leave a slot that frees early unused, and the past says little
 * about the time after it. */
enum { RETRY_AFTER_S_MAX = 60 };

/* Made by release_rate_unknown() and changed by release_rate_note() alone. */
struct release_rate {
    int64_t last_freed_ms; /* -1: never yet */
    int64_t interval_ms;   /* smoothed time between releases, at most a minute; -1: not known */
};

struct release_rate release_rate_unknown(void);

/* A slot was freed at now_ms, which is not negative. From the second release on the interval is
 * known; each later one counts a quarter, all before it three. A clock that went back counts as no
 * time. A silence longer than RETRY_AFTER_S_MAX counts as that long: it was a pause, not a pace,
 * and would drown the releases after it. */
void release_rate_note(struct release_rate *p, int64_t now_ms);

/* Seconds until a slot is likely to be free, rounded up, 1 … RETRY_AFTER_S_MAX. The rest of the
 * interval; when a release is overdue, as long again as it is late, so that callers ask ever more
 * seldom. 1 while the pace is not known. */
int64_t release_rate_retry_after_s(const struct release_rate *p, int64_t now_ms);

#endif
