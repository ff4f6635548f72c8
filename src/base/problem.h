/* What went wrong with one request, told to people and programs: it becomes problem+json.
 * It lives on the request's context; functions that fail fill it and return its error. */
#ifndef PAWL_BASE_PROBLEM_H
#define PAWL_BASE_PROBLEM_H

#include "base/buf.h"
#include "base/err.h"

enum { PROBLEM_TEXTS_MAX = 4 * 1024 };
enum { PROBLEM_DETAIL_MAX = 384, PROBLEM_NUMBERS_MAX = 4, PROBLEM_FAULTS_MAX = 16 * 1024 };

struct problem {
    enum err err;
    char detail[PROBLEM_DETAIL_MAX];
    /* Extra members with whole numbers, as `current` and `limit`. Names are literals. */
    struct {
        const char *name;
        int64_t value;
    } numbers[PROBLEM_NUMBERS_MAX];
    size_t number_count;
    /* Which limit a 429 is about: the member `limited_by`, and its name in the RateLimit fields.
     * Literals, or NULL. */
    const char *limited_by;
    const char *limit_policy;
    /* Extra members with texts, as ready JSON without the braces: "decision":"approved",… */
    struct buf texts;
    /* 0: the table's default for the status. */
    int retry_after_s;
    /* A ready JSON array for the member `errors`: [{path, message}], or empty. */
    struct buf faults;
};

void problem_init(struct problem *p);
void problem_release(struct problem *p);
void problem_clear(struct problem *p);

/* Fills p and returns e, so that a function can `return problem_set(…)`. The detail is always
 * UTF-8. */
enum err problem_set(struct problem *p, enum err e, const char *fmt, ...) PRINTF_LIKE(3, 4);
void problem_add_number(struct problem *p, const char *name, int64_t value);
/* One that finds no room is left out. `name` is a literal. */
void problem_add_text(struct problem *p, const char *name, struct str value);
/* What a 429 says besides its detail: the limit's two names, `current` and `limit`. */
void problem_add_limit(struct problem *p, const char *limited_by, const char *limit_policy,
                       int64_t current, int64_t limit);

#endif
