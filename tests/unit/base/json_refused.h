/* What the JSON reader refuses, asserted with its reason. */
#ifndef PAWL_TESTS_JSON_REFUSED_H
#define PAWL_TESTS_JSON_REFUSED_H

#include "support.h"

#include "base/limits.h"

#define assert_refused(text) assert_refused_((text), __LINE__)

/* Refused as JSON, with a reason that can itself be sent as JSON, and nothing handed out. */
static inline void assert_refused_(struct str text, int line)
{
    struct problem p;
    problem_init(&p);
    static struct json nothing;
    struct json *untouched = &nothing;
    struct json *value = untouched;
    enum err e = json_read(text, &p, &value);
    if (e != ERR_JSON_INVALID)
        fail_msg("line %d: <%.*s> gave %s", line, STR_ARG(text), err_code(e));
    assert_int_equal(p.err, ERR_JSON_INVALID);
    assert_ptr_equal(value, untouched);
    assert_true(strlen(p.detail) > 0);
    if (!str_is_utf8(str_of(p.detail)))
        fail_msg("line %d: the detail is not UTF-8: %s", line, p.detail);
    problem_release(&p);
}

static inline void refuse_each(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused(str_of(texts[i]));
}

#endif
