/* Any bytes as the value of Idempotency-Key: an accepted key is short and printable, and names the
 * same request however it is written. */
#include "domain/idempotency.h"
#include "fuzz.h"

static enum err parse(struct str header, struct arena *arena, struct str *ret)
{
    struct problem p;
    problem_init(&p);
    enum err e = idem_key_parse(header, arena, &p, ret);
    assert(e == ERR_OK || (e == ERR_IDEM_KEY_INVALID && p.err == e));
    assert(e == ERR_OK || (p.detail[0] != '\0' && str_is_utf8(str_of(p.detail))));
    problem_release(&p);
    return e;
}

static bool is_key(struct str key)
{
    struct problem p;
    problem_init(&p);
    bool ok = idem_key_check(key, &p) == ERR_OK;
    problem_release(&p);
    return ok;
}

static void check_names(struct buf *header, struct arena *arena, struct str key)
{
    struct str again = STR_NONE;
    enum err e = parse(buf_str(header), arena, &again);
    assert(buf_ok(header) && e == ERR_OK && str_eq(again, key));
}

static void check_written_otherwise(struct str key, struct arena *arena)
{
    struct buf quoted;
    buf_init(&quoted, 4 * IDEM_KEY_MAX);
    buf_put_char(&quoted, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '"' || key.ptr[i] == '\\')
            buf_put_char(&quoted, '\\');
        buf_put_char(&quoted, key.ptr[i]);
    }
    buf_put_char(&quoted, '"');
    check_names(&quoted, arena, key);
    buf_put(&quoted, STR(";a; b=1;c=\"x\" \t"));
    check_names(&quoted, arena, key);
    buf_release(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str header = fuzz_text(data, size);
    struct arena arena;
    arena_init(&arena, 64 * KIB);
    struct str key = STR_NONE;
    if (parse(header, &arena, &key) == ERR_OK) {
        assert(key.len >= 1 && key.len <= 255);
        for (size_t i = 0; i < key.len; i++)
            assert(key.ptr[i] >= (str_trim(header).ptr[0] == '"' ? ' ' : '!') && key.ptr[i] <= '~');
        assert(is_key(key));
        assert(header.ptr[0] != '"' || key.len + 2 <= header.len);
        check_written_otherwise(key, &arena);
    }
    if (is_key(header)) /* any text may be a key in a body */
        assert(size >= 1 && size <= 4 * 255 && str_is_utf8(header));
    arena_release(&arena);
    return 0;
}
