/* Reads a JSON text as a request's body is read, again and again: parse, the plain form that is
 * kept and the canonical form with its SHA-256. `base` is src/base/json, `jansson` what pawl 0.1.0
 * did.
 *
 *     json_cost base|jansson BYTES TIMES
 *
 * json_cost.py counts the instructions. The text is an order of about BYTES bytes, with names,
 * amounts, times and flags; 45 bytes are the body of the other benchmarks. */
#include "../tests/fuzz/json_reference.h"

#include "base/crypto.h"
#include "base/json/read.h"
#include "base/json/write.h"

static void put_order(struct buf *out, size_t bytes)
{
    if (bytes <= 45) {
        buf_put(out, STR("{\"input\":{\"orderId\":\"order_789\",\"n\":12345}}"));
        return;
    }
    buf_put(out, STR("{\"input\":{\"order_id\":\"order_789\",\"customer\":{\"name\":\"Zo\xC3\xAB "
                     "Example\",\"email\":\"zoe@example.com\",\"vip\":false},\"items\":["));
    for (int i = 0; out->len + 40 < bytes; i++) {
        buf_put(out, i > 0 ? STR(",") : STR(""));
        buf_printf(out,
                   "{\"sku\":\"SKU-%06d\",\"title\":\"A \\\"useful\\\" thing, size %d\","
                   "\"quantity\":%d,\"price\":%d.%02d,\"tax\":0.19,\"gift\":%s,\"note\":null,"
                   "\"added_at\":\"2026-01-31T12:%02d:00Z\"}",
                   i, i % 7, 1 + i % 5, 10 + i % 90, i % 100 | 1, i % 2 ? "true" : "false", i % 60);
    }
    buf_put(out, STR("]},\"priority\":5}"));
}

static struct sha256 digest_of(const struct buf *canonical)
{
    struct str parts[] = {STR("POST /api/v1/workflows/park/runs"), buf_str(canonical)};
    assert(buf_ok(canonical));
    return sha256_of_parts(parts, ARRAY_LEN(parts));
}

static struct sha256 by_base(struct str text, struct buf *plain, struct buf *canonical)
{
    struct problem p;
    problem_init(&p);
    struct json *value = NULL;
    enum err e = json_read(text, &p, &value);
    assert(e == ERR_OK);
    if (json_plain_source(value, 0, text).ptr == NULL) /* `input` is kept as it stands there */
        json_write_plain(plain, json_value_at(value, 0));
    json_write_canonical(canonical, value);
    json_free(value);
    problem_release(&p);
    return digest_of(canonical);
}

static struct sha256 by_jansson(struct str text, struct buf *plain, struct buf *canonical)
{
    json_t *value = ref_parse(text);
    assert(value != NULL);
    ref_write(plain, json_object_get(value, "input"), false, NULL);
    ref_write(canonical, value, true, NULL);
    json_decref(value);
    return digest_of(canonical);
}

int main(int argc, char **argv)
{
    bool is_base = argc == 4 && strcmp(argv[1], "base") == 0;
    if (argc != 4 || (!is_base && strcmp(argv[1], "jansson") != 0)) {
        (void)fprintf(stderr, "usage: json_cost base|jansson BYTES TIMES\n");
        return 2;
    }
    struct buf text;
    struct buf plain;
    struct buf canonical;
    buf_init(&text, JSON_TEXT_MAX);
    buf_init(&plain, JSON_WRITTEN_MAX);
    buf_init(&canonical, JSON_WRITTEN_MAX);
    put_order(&text, strtoul(argv[2], NULL, 10));
    struct sha256 digest = {{0}};
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--) {
        buf_clear(&plain);
        buf_clear(&canonical);
        digest = (is_base ? by_base : by_jansson)(buf_str(&text), &plain, &canonical);
    }
    struct buf hex;
    buf_init(&hex, 2 * SHA256_LEN);
    buf_put_hex(&hex, digest.bytes, SHA256_LEN);
    printf("%zu bytes, %s\n", text.len, hex.ptr);
    buf_release(&hex);
    buf_release(&canonical);
    buf_release(&plain);
    buf_release(&text);
    return 0;
}
