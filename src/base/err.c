/* The error table as functions. */
#include "base/err.h"

static const struct {
    const char *code;
    const char *title;
    int http;
    bool retryable;
    enum err_class class;
} ROWS[] = {
#define X(symbol, code, http, retry, class, title) {code, title, http, retry, ERR_CLASS_##class},
    ERR_TABLE(X)
#undef X
};

static_assert(ARRAY_LEN(ROWS) == ERR_COUNT, "one row per error");

const char *err_code(enum err e)
{
    assert(e < ERR_COUNT);
    return ROWS[e].code;
}

const char *err_title(enum err e)
{
    assert(e < ERR_COUNT);
    return ROWS[e].title;
}

int err_http_status(enum err e)
{
    assert(e < ERR_COUNT);
    return ROWS[e].http;
}

bool err_retryable(enum err e)
{
    assert(e < ERR_COUNT);
    return ROWS[e].retryable;
}

enum err_class err_class(enum err e)
{
    assert(e < ERR_COUNT);
    return ROWS[e].class;
}

bool err_is_refusal(enum err e)
{
    return err_class(e) == ERR_CLASS_REFUSAL;
}

bool err_rolls_back(enum err e)
{
    return err_class(e) > ERR_CLASS_REFUSAL;
}

bool err_is_outage(enum err e)
{
    return err_class(e) == ERR_CLASS_FAILURE && err_retryable(e);
}

enum err err_of_other(enum err e)
{
    return err_is_refusal(e) ? ERR_DAMAGED : e;
}

enum err err_after_change(enum err e)
{
    return err_is_refusal(e) ? ERR_INTERNAL : e;
}
