/* May one more run start? Every limit that applies to it is looked at together, and what happens
 * at a limit is one verdict for the whole start. Pure. */
#ifndef PAWL_DOMAIN_ADMISSION_ADMISSION_H
#define PAWL_DOMAIN_ADMISSION_ADMISSION_H

#include "base/buf.h"
#include "base/json/value.h"

#define AT_LIMITS(X)                           \
    X(AT_LIMIT_REJECT, "reject")               \
    X(AT_LIMIT_QUEUE, "queue")                 \
    X(AT_LIMIT_CANCEL_OLDEST, "cancel_oldest") \
    X(AT_LIMIT_COALESCE, "coalesce")

enum at_limit {
#define X(symbol, name) symbol,
    AT_LIMITS(X)
#undef X
        AT_LIMIT_COUNT
};

const char *at_limit_name(enum at_limit policy);
/* AT_LIMIT_COUNT when there is no such policy. */
enum at_limit at_limit_of(struct str name);

/* One limit as a start finds it. */
struct limit_state {
    int64_t current; /* runs that hold a slot under it */
    int64_t max;     /* -1: no limit */
    int64_t ahead;   /* queued runs that its free slots are already meant for */
    enum at_limit at_limit;
};

enum admission_verdict {
    ADMISSION_ADMIT,
    ADMISSION_REJECT,
    ADMISSION_QUEUE,
    ADMISSION_CANCEL_OLDEST, /* of each limit that is reached */
    ADMISSION_COALESCE,
};

struct admission {
    enum admission_verdict verdict;
    size_t by; /* the limit that decided; meaningless for ADMISSION_ADMIT */
};

bool limit_is_reached(const struct limit_state *limit);
/* How many of its runs must end before one more fits. */
int64_t limit_excess(const struct limit_state *limit);

/* Where limits with different policies are reached, the most careful one counts: reject, then
 * coalesce, then queue, then cancel_oldest. Cancelling cannot make room under a limit of 0: that
 * is a rejection. */
struct admission admission_decide(const struct limit_state *limits, size_t count);

/* --- keys of limits --- */

enum { LIMIT_KEY_MAX = 256 };

/* A plain path: `input`, or `input` and names or array indexes behind dots. */
bool limit_path_ok(struct str path);
/* The value that the path leads to, as the text that names the limit: text as it is, anything else
 * as canonical JSON, and what is longer than LIMIT_KEY_MAX by its hash. Nothing there, or null, is
 * the empty text: runs without a key share one limit. `input` may be NULL. Ask buf_ok(). */
void limit_key(struct str path, const struct json *input, struct buf *out);

#endif
