/* Compares the parser with itself (the same bytes in one piece, byte by byte and split by chance)
 * and with the reference. A difference is a failed assertion. */
#ifndef PAWL_TESTS_HTTP_COMPARE_H
#define PAWL_TESTS_HTTP_COMPARE_H

#include "http/parse.h"
#include "http/reference_chunks.h"

#include <stdlib.h>

/* A literal as a constant, with the NULs in it. */
#define BYTES(literal)                  \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

enum split { SPLIT_NOT, SPLIT_BYTES, SPLIT_CHANCE, SPLIT_COUNT };

/* The length of the next piece. */
static inline size_t compare_piece(enum split split, uint64_t *chance, size_t left)
{
    if (split == SPLIT_NOT)
        return left;
    if (split == SPLIT_BYTES)
        return 1;
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    size_t most = (*chance >> 60) == 0 ? left : 1 + (size_t)(*chance >> 40) % 40;
    return MIN(left, most);
}

/* --- heads --- */

/* Each piece is read from a copy of its own: a sanitizer sees a byte read too far, and the bytes
 * move. */
static inline enum parse_status compare_run_head(struct str bytes, enum split split,
                                                 uint64_t chance, struct head *h)
{
    enum parse_status got = PARSE_MORE;
    head_begin(h);
    for (size_t len = 0; len < bytes.len && got == PARSE_MORE;) {
        len += compare_piece(split, &chance, bytes.len - len);
        char *copy = NULL;
        if (split != SPLIT_BYTES) {
            copy = malloc(len);
            assert(copy != NULL);
            memcpy(copy, bytes.ptr, len);
        }
        got = head_parse(h, copy != NULL ? copy : bytes.ptr, len);
        assert((got == PARSE_REFUSED) == (h->fault != PARSE_FINE));
        assert(got != PARSE_MORE || h->at == len);
        free(copy);
    }
    return got;
}

static inline void compare_slices(const char *bytes, struct slice slice, struct str wanted)
{
    assert(str_eq(slice_str(bytes, slice), wanted));
}

static inline void compare_results(struct str bytes, const struct head *h,
                                   const struct ref_head *ref)
{
    assert(h->size == ref->size && h->field_count == ref->field_count);
    assert(h->is_1_0 == ref->is_1_0 && h->keep_alive == ref->keep_alive);
    assert(h->expects_100 == ref->expects_100);
    assert(h->has_length == ref->has_length && h->length == ref->length);
    assert(h->chunked == ref->chunked && !(h->chunked && h->has_length));
    compare_slices(bytes.ptr, h->method, ref->method);
    compare_slices(bytes.ptr, h->path, ref->path);
    compare_slices(bytes.ptr, h->query, ref->query);
    compare_slices(bytes.ptr, h->host, ref->host);
    for (size_t i = 0; i < ref->field_count; i++) {
        compare_slices(bytes.ptr, h->fields[i].name, ref->fields[i].name);
        compare_slices(bytes.ptr, h->fields[i].value, ref->fields[i].value);
    }
}

static inline bool compare_same_spans(const struct head *a, const struct head *b)
{
    return memcmp(a, b, offsetof(struct head, fields)) == 0 &&
           memcmp(a->fields, b->fields, a->field_count * sizeof(a->fields[0])) == 0;
}

/* Parses in all ways; the result of the first is returned. */
static inline enum parse_status compare_head(struct str bytes, uint64_t chance, struct head *ret)
{
    enum parse_status whole = compare_run_head(bytes, SPLIT_NOT, 0, ret);
    for (enum split split = SPLIT_BYTES; split < SPLIT_COUNT; split++) {
        struct head other;
        enum parse_status got = compare_run_head(bytes, split, chance, &other);
        assert(got == whole && compare_same_spans(ret, &other));
    }
    struct ref_head ref;
    ref_parse_head(bytes, &ref);
    assert((enum parse_status)ref.status == whole);
    if (whole == PARSE_REFUSED)
        assert(parse_fault_err(ret->fault) == ref.err && ret->at <= bytes.len);
    if (whole == PARSE_DONE)
        compare_results(bytes, ret, &ref);
    return whole;
}

/* --- chunked bodies --- */

struct compare_body {
    enum parse_status status;
    enum parse_fault fault;
    size_t used;
    size_t data;
    char *out;
};

static inline struct compare_body compare_run_chunks(struct str bytes, enum split split,
                                                     uint64_t chance)
{
    struct chunks c;
    struct compare_body body = {.status = PARSE_MORE, .out = malloc(bytes.len + 1)};
    assert(body.out != NULL);
    chunks_begin(&c);
    while (body.used < bytes.len && body.status == PARSE_MORE) {
        size_t len = compare_piece(split, &chance, bytes.len - body.used);
        char *piece = malloc(len);
        size_t used, data;
        assert(piece != NULL);
        memcpy(piece, bytes.ptr + body.used, len);
        body.status = chunks_parse(&c, piece, len, &used, &data);
        assert(used <= len && data <= used && (used == len || body.status != PARSE_MORE));
        memcpy(body.out + body.data, piece, data);
        body.used += used;
        body.data += data;
        free(piece);
    }
    assert((body.status == PARSE_REFUSED) == (c.fault != PARSE_FINE));
    body.fault = c.fault;
    return body;
}

static inline void compare_same_body(const struct compare_body *a, const struct compare_body *b)
{
    assert(a->status == b->status && a->fault == b->fault && a->data == b->data);
    assert(memcmp(a->out, b->out, a->data) == 0);
    assert(a->status == PARSE_REFUSED || a->used == b->used);
}

/* Returns how many bytes the body takes, if it ends. */
static inline enum parse_status compare_chunks(struct str bytes, uint64_t chance, size_t *ret_used)
{
    struct compare_body whole = compare_run_chunks(bytes, SPLIT_NOT, 0);
    for (enum split split = SPLIT_BYTES; split < SPLIT_COUNT; split++) {
        struct compare_body other = compare_run_chunks(bytes, split, chance);
        compare_same_body(&whole, &other);
        free(other.out);
    }
    struct ref_chunks ref;
    char *out = malloc(bytes.len + 1);
    assert(out != NULL);
    ref_parse_chunks(bytes, out, &ref);
    assert((enum parse_status)ref.status == whole.status);
    assert(ref.data == whole.data && memcmp(out, whole.out, ref.data) == 0);
    if (whole.status == PARSE_REFUSED)
        assert(parse_fault_err(whole.fault) == ref.err);
    if (whole.status == PARSE_DONE)
        assert(ref.used == whole.used);
    *ret_used = whole.used;
    free(whole.out);
    free(out);
    return whole.status;
}

/* --- a connection --- */

/* Request after request, as a connection carries them. Returns how many were complete. */
static inline size_t compare_connection(struct str bytes, uint64_t chance)
{
    for (size_t requests = 0;; requests++) {
        struct head h;
        if (bytes.len == 0 || compare_head(bytes, chance + requests, &h) != PARSE_DONE)
            return requests;
        size_t body = h.length;
        bytes = (struct str){bytes.ptr + h.size, bytes.len - h.size};
        if (h.chunked && compare_chunks(bytes, chance - requests, &body) != PARSE_DONE)
            return requests;
        if (body > bytes.len)
            return requests;
        bytes = (struct str){bytes.ptr + body, bytes.len - body};
    }
}

#endif
