/* Any bytes as JSON: what is read can be written and read again, and its canonical text is one. */
#include "fuzz.h"

/* The caller releases it. */
static struct buf written(const json_t *value, bool canonical)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    if (canonical)
        json_put_canonical(&text, value);
    else
        json_put_plain(&text, value);
    assert(buf_ok(&text) && str_is_utf8(buf_str(&text)));
    return text;
}

static void check_canonical_is(const json_t *value, const struct buf *wanted)
{
    struct buf text = written(value, true);
    assert(str_eq(buf_str(&text), buf_str(wanted)));
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = fuzz_parse(fuzz_text(data, size));
    if (value == NULL)
        return 0;
    assert(str_is_utf8(fuzz_text(data, size)));
    struct buf plain = written(value, false);
    struct buf canonical = written(value, true);
    /* JSON_WRITTEN_MAX relies on it; a number alone lacks the comma that evens it out. */
    assert(plain.len <= 5 * (size + 1) && canonical.len <= 5 * (size + 1));

    json_t *again = fuzz_parse(buf_str(&plain));
    assert(again != NULL && json_equal(value, again));
    check_canonical_is(again, &canonical);
    struct buf plain_again = written(again, false);
    assert(str_eq(buf_str(&plain), buf_str(&plain_again)));

    json_t *reversed = fuzz_reversed(value);
    check_canonical_is(reversed, &canonical);

    /* 1e19 becomes an integer beyond 64 bits, which reading refuses. */
    json_t *from_canonical = fuzz_parse(buf_str(&canonical));
    if (from_canonical != NULL)
        check_canonical_is(from_canonical, &canonical);

    json_decref(from_canonical);
    json_decref(reversed);
    json_decref(again);
    json_decref(value);
    buf_release(&plain_again);
    buf_release(&canonical);
    buf_release(&plain);
    return 0;
}
