/* The outside world as a struct: clock, monotonic clock, randomness. Nothing else in pawl reads the
 * time or rolls dice, so a simulator can put its own world under the real code. */
#ifndef PAWL_BASE_ENV_H
#define PAWL_BASE_ENV_H

#include "base/buf.h"

#include <time.h>

struct env {
    int64_t (*now_us)(void *ctx);  /* wall clock, microseconds since 1970 UTC */
    int64_t (*mono_ns)(void *ctx); /* never goes back; for durations and time-outs only */
    void (*random)(void *ctx, void *out, size_t len);
    void *ctx;
};

/* The machine's own clocks and kernel randomness. Any thread may use it. */
extern const struct env ENV_SYSTEM;

int64_t env_now_ms(const struct env *e);
int64_t env_mono_ns(const struct env *e);
int64_t env_mono_ms(const struct env *e);
/* So many milliseconds from now on the system's monotonic clock, for pthread_cond_timedwait(). */
struct timespec env_wait_until(int64_t ms);
void env_random(const struct env *e, void *out, size_t len);

/* --- ids: UUIDv7, 16 bytes, in the order of time to a quarter of a microsecond --- */

struct uuid {
    unsigned char bytes[16];
};

enum { UUID_TEXT_LEN = 36 };

struct uuid env_new_id(const struct env *e);
void uuid_put(char at[static UUID_TEXT_LEN], struct uuid id);
void buf_put_uuid(struct buf *b, struct uuid id);
/* The canonical text only: lower or upper case hex with its four hyphens. */
MUST_CHECK bool uuid_parse(struct str text, struct uuid *ret);
/* The first letters of an id, hyphens included: the least and the greatest id that begin so. */
MUST_CHECK bool uuid_parse_prefix(struct str text, struct uuid *ret_low, struct uuid *ret_high);
bool uuid_eq(struct uuid a, struct uuid b);

/* The time in an id as a number that sorts as the id does: milliseconds and a twelve-bit fraction.
 */
int64_t uuid_time(struct uuid id);
bool uuid_is_nil(struct uuid id);
/* Gives an id another time; the random half stays. */
void uuid_set_time(struct uuid *id, int64_t time);

/* --- times: RFC 3339 UTC with milliseconds --- */

enum { TIME_TEXT_LEN = 24 };

/* The first and the last millisecond of the years 1 to 9999. */
#define TIME_MS_MIN INT64_C(-62135596800000)
#define TIME_MS_MAX INT64_C(253402300799999)

/* For years 1 to 9999. */
void buf_put_time(struct buf *b, int64_t ms);
/* Any RFC 3339 date-time, with an offset or Z, with or without a fraction, that lies in the years
 * 1 to 9999 of UTC: buf_put_time can write it. A leap second is read as the second after it. */
MUST_CHECK bool time_parse(struct str text, int64_t *ret_ms);

#endif
