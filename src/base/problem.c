/* What went wrong with one request. */
#include "base/problem.h"

#include "base/json_out.h"

#include <stdarg.h>
#include <stdio.h>

void problem_init(struct problem *p)
{
    p->err = ERR_OK;
    p->detail[0] = '\0';
    p->number_count = 0;
    p->limited_by = p->limit_policy = NULL;
    p->retry_after_s = 0;
    buf_init(&p->faults, PROBLEM_FAULTS_MAX);
    buf_init(&p->texts, PROBLEM_TEXTS_MAX);
}

void problem_release(struct problem *p)
{
    buf_release(&p->faults);
    buf_release(&p->texts);
}

void problem_clear(struct problem *p)
{
    p->err = ERR_OK;
    p->detail[0] = '\0';
    p->number_count = 0;
    p->limited_by = p->limit_policy = NULL;
    p->retry_after_s = 0;
    buf_clear(&p->faults);
    buf_clear(&p->texts);
}

enum err problem_set(struct problem *p, enum err e, const char *fmt, ...)
{
    assert(e != ERR_OK);
    va_list args;
    va_start(args, fmt);
    p->err = e;
    (void)vsnprintf(p->detail, sizeof(p->detail), fmt, args);
    va_end(args);
    /* It may quote a caller's bytes, or have been cut in the middle of a character. */
    str_repair_utf8(p->detail, strlen(p->detail));
    return e;
}

void problem_add_number(struct problem *p, const char *name, int64_t value)
{
    assert(p->number_count < PROBLEM_NUMBERS_MAX);
    p->numbers[p->number_count].name = name;
    p->numbers[p->number_count].value = value;
    p->number_count++;
}

void problem_add_text(struct problem *p, const char *name, struct str value)
{
    struct buf one;
    buf_init(&one, PROBLEM_TEXTS_MAX);
    struct json_out o = {&one, p->texts.len > 0};
    json_add_text(&o, name, value);
    if (buf_ok(&one) && p->texts.len + one.len <= PROBLEM_TEXTS_MAX)
        buf_put(&p->texts, buf_str(&one));
    buf_release(&one);
}

void problem_add_limit(struct problem *p, const char *limited_by, const char *limit_policy,
                       int64_t current, int64_t limit)
{
    p->limited_by = limited_by;
    p->limit_policy = limit_policy;
    problem_add_number(p, "current", current);
    problem_add_number(p, "limit", limit);
}
