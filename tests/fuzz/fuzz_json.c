/* Any bytes as JSON: what is read can be written and read again, and its canonical text is one. */
#include "fuzz.h"

/* The caller releases it. */
static struct buf written(const struct json *value, bool canonical)
{
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    if (canonical)
        json_write_canonical(&text, value);
    else
        json_write_plain(&text, value);
    assert(buf_ok(&text) && str_is_utf8(buf_str(&text)));
    return text;
}

static void check_canonical_is(const struct json *value, const struct buf *wanted)
{
    struct buf text = written(value, true);
    assert(str_eq(buf_str(&text), buf_str(wanted)));
    buf_release(&text);
}

/* A tree of the text has the same plain text, and the members of it the other way round have the
 * same canonical text. */
static void check_tree(const struct buf *plain, const struct buf *canonical)
{
    json_t *tree = fuzz_parse(buf_str(plain));
    struct buf text;
    buf_init(&text, JSON_WRITTEN_MAX);
    json_put_plain(&text, tree);
    assert(str_eq(buf_str(&text), buf_str(plain)));
    json_t *reversed = fuzz_reversed(tree);
    buf_clear(&text);
    json_put_plain(&text, reversed);
    struct json *again = fuzz_read(buf_str(&text));
    assert(again != NULL);
    check_canonical_is(again, canonical);
    json_free(again);
    buf_release(&text);
    json_decref(reversed);
    json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *value = fuzz_read(fuzz_text(data, size));
    if (value == NULL)
        return 0;
    assert(str_is_utf8(fuzz_text(data, size)));
    struct buf plain = written(value, false);
    struct buf canonical = written(value, true);
    /* JSON_WRITTEN_MAX relies on it; a number alone lacks the comma that evens it out. */
    assert(plain.len <= 5 * (size + 1) && canonical.len <= 5 * (size + 1));

    struct json *again = fuzz_read(buf_str(&plain));
    assert(again != NULL && json_same(value, again));
    check_canonical_is(again, &canonical);
    struct buf plain_again = written(again, false);
    assert(str_eq(buf_str(&plain), buf_str(&plain_again)));
    check_tree(&plain, &canonical);

    /* 1e19 becomes an integer beyond 64 bits, which reading refuses. */
    struct json *from_canonical = fuzz_read(buf_str(&canonical));
    if (from_canonical != NULL)
        check_canonical_is(from_canonical, &canonical);

    json_free(from_canonical);
    json_free(again);
    json_free(value);
    buf_release(&plain_again);
    buf_release(&canonical);
    buf_release(&plain);
    return 0;
}
