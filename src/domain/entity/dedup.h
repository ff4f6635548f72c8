/* The window in which a signal's key is known, and how well it fits the duplicates that come. Pure.
 *
 * Keys are numbered in the order of their arrival at their owner, without a gap:
 *
 *        gone     only hashes    text, outside       known
 *    ───────────┬─────────────┬───────────────┬──────────────────┐
 *           forgotten      emptied          first              last
 *
 * Keys leave the window when they are too old or too many, the oldest first. What is outside loses
 * its text and then its row, many at once: so a signal pays for one row in the long run. The clock
 * may go back: then a key is known longer, and the bound of the number of keys still holds. */
#ifndef PAWL_DOMAIN_ENTITY_DEDUP_H
#define PAWL_DOMAIN_ENTITY_DEDUP_H

#include "base/crypto.h"
#include "base/json.h"

/* What makes two signals the same: the name, and the payload however it is written. */
MUST_CHECK enum err dedup_request(struct str name, const struct json *payload, struct problem *p,
                                  struct sha256 *ret);

/* Three days, and as many keys as some hundred kilobytes hold: the default. */
enum { DEDUP_WINDOW_S_DEFAULT = 3 * 86400, DEDUP_MAX_KEYS_DEFAULT = 10 * 1000 };

struct dedup_limits {
    int64_t window_ms;
    int64_t max_keys;
};

/* first > last: none is known. */
struct dedup_window {
    int64_t first, last;
    int64_t emptied;
    int64_t forgotten;
};

struct dedup_window dedup_window_new(void);
bool dedup_window_is_sound(const struct dedup_window *w);

/* From the first arrival of a key until now; 0 when the clock went back in between. */
int64_t dedup_age_ms(int64_t at, int64_t now_ms);
bool dedup_knows(const struct dedup_window *w, const struct dedup_limits *limits, int64_t num,
                 int64_t at, int64_t now_ms);

enum dedup_leaving { DEDUP_STAYS, DEDUP_TOO_OLD, DEDUP_TOO_MANY };

/* What becomes of the oldest key of the window, which came at that time. */
enum dedup_leaving dedup_oldest_leaves(const struct dedup_window *w,
                                       const struct dedup_limits *limits, int64_t at,
                                       int64_t now_ms);
/* Whether the oldest row without text can go: it is kept for a further window. */
bool dedup_oldest_is_forgotten(const struct dedup_window *w, const struct dedup_limits *limits,
                               int64_t at, int64_t now_ms);
/* Enough has left, now and before, to be worth sweeping. */
bool dedup_sweep_is_due(const struct dedup_window *w, const struct dedup_limits *limits,
                        int64_t evicted_now);

/* --- how late duplicates come --- */

#define DEDUP_AGES(X)                \
    X(DEDUP_1_S, "≤ 1 s", 1)         \
    X(DEDUP_10_S, "≤ 10 s", 10)      \
    X(DEDUP_1_MIN, "≤ 1 min", 60)    \
    X(DEDUP_10_MIN, "≤ 10 min", 600) \
    X(DEDUP_1_H, "≤ 1 h", 3600)      \
    X(DEDUP_6_H, "≤ 6 h", 21600)     \
    X(DEDUP_1_D, "≤ 1 d", 86400)     \
    X(DEDUP_3_D, "≤ 3 d", 259200)    \
    X(DEDUP_7_D, "≤ 7 d", 604800)    \
    X(DEDUP_30_D, "≤ 30 d", 2592000) \
    X(DEDUP_OLDER, "> 30 d", INT64_MAX)

/* Kept in the store by its number: new ones go to the end. */
enum dedup_bucket {
#define X(symbol, name, up_to_s) symbol,
    DEDUP_AGES(X)
#undef X
        DEDUP_BUCKETS
};

enum dedup_bucket dedup_bucket_of(int64_t age_ms);
const char *dedup_bucket_name(enum dedup_bucket bucket);
/* -1: it has no end. */
int64_t dedup_bucket_up_to_s(enum dedup_bucket bucket);

struct dedup_counts {
    int64_t duplicates[DEDUP_BUCKETS]; /* found inside the window */
    int64_t late[DEDUP_BUCKETS];       /* taken for new */
    int64_t keyed;                     /* new keys, late ones among them */
    int64_t evicted_by_age;
    int64_t evicted_by_count;
};

int64_t dedup_duplicates(const struct dedup_counts *c);
int64_t dedup_late(const struct dedup_counts *c);
/* The bucket up to which a share of all duplicates, late or not, had come; DEDUP_BUCKETS when there
 * are none. */
enum dedup_bucket dedup_share_came_by(const struct dedup_counts *c, int percent);

#endif
