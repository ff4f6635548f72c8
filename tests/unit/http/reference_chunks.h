/* The reference for chunked bodies: RFC 9112 7.1, rule by rule. */
#ifndef PAWL_TESTS_HTTP_REFERENCE_CHUNKS_H
#define PAWL_TESTS_HTTP_REFERENCE_CHUNKS_H

#include "http/reference.h"

struct ref_chunks {
    enum ref_status status;
    enum err err;
    size_t used;
    size_t data; /* bytes written */
    char *out;
    size_t total;
    size_t line;       /* bytes of the chunk's line */
    size_t extensions; /* of all chunks */
    size_t trailers;
};

/* Another byte of a chunk's line is about to be looked at. */
static inline int ref_chunk_peek(struct ref_in *in, struct ref_chunks *c, bool in_ext)
{
    int byte = ref_peek(in);
    if (byte >= 0 && (c->line + 1 > HTTP_CHUNK_LINE_MAX ||
                      (in_ext && c->extensions + 1 > HTTP_CHUNK_EXTENSIONS_MAX)))
        ref_refuse(in, ERR_BAD_REQUEST);
    return ref_goes_on(in) ? byte : -1;
}

static inline void ref_chunk_take(struct ref_in *in, struct ref_chunks *c, bool in_ext)
{
    in->at++;
    c->line++;
    c->extensions += in_ext;
}

static inline bool ref_ext_run(struct ref_in *in, struct ref_chunks *c, bool (*is)(int))
{
    bool any = false;
    while (is(ref_chunk_peek(in, c, true))) {
        ref_chunk_take(in, c, true);
        any = true;
    }
    return any;
}

static inline void ref_quoted_string(struct ref_in *in, struct ref_chunks *c)
{
    ref_chunk_take(in, c, true);
    for (int byte; (byte = ref_chunk_peek(in, c, true)) != '"' && byte >= 0;) {
        if (byte == '\\') {
            ref_chunk_take(in, c, true);
            byte = ref_chunk_peek(in, c, true);
            if (byte >= 0 && !ref_value_char(byte))
                ref_refuse(in, ERR_BAD_REQUEST);
        } else if (!ref_qdtext(byte)) {
            ref_refuse(in, ERR_BAD_REQUEST);
        }
        if (ref_goes_on(in))
            ref_chunk_take(in, c, true);
    }
    if (ref_goes_on(in))
        ref_chunk_take(in, c, true);
}

/* BWS ";" BWS name [ BWS "=" BWS value ], any number of them. True if there is one. */
static inline bool ref_chunk_ext(struct ref_in *in, struct ref_chunks *c)
{
    int byte = ref_chunk_peek(in, c, false);
    bool first = true;
    while (byte == ';' || ref_blank(byte)) {
        ref_chunk_take(in, c, !first);
        if (byte != ';') {
            (void)ref_ext_run(in, c, ref_blank);
            byte = ref_chunk_peek(in, c, true);
            if (byte >= 0 && byte != ';')
                ref_refuse(in, ERR_BAD_REQUEST);
            if (byte == ';')
                ref_chunk_take(in, c, true);
        }
        first = false;
        (void)ref_ext_run(in, c, ref_blank);
        if (!ref_ext_run(in, c, ref_tchar))
            ref_refuse(in, ERR_BAD_REQUEST);
        bool blanks = ref_ext_run(in, c, ref_blank);
        byte = ref_chunk_peek(in, c, true);
        if (byte == '=') {
            ref_chunk_take(in, c, true);
            (void)ref_ext_run(in, c, ref_blank);
            byte = ref_chunk_peek(in, c, true);
            if (byte == '"')
                ref_quoted_string(in, c);
            else if (byte >= 0 && !ref_ext_run(in, c, ref_tchar))
                ref_refuse(in, ERR_BAD_REQUEST);
            byte = ref_chunk_peek(in, c, true);
        } else if (blanks && byte >= 0 && byte != ';') {
            ref_refuse(in, ERR_BAD_REQUEST);
        }
    }
    return !first;
}

static inline size_t ref_chunk_size(struct ref_in *in, struct ref_chunks *c)
{
    double size = 0;
    int digits = 0, significant = 0, byte;
    for (; ref_hexdig(byte = ref_chunk_peek(in, c, false)); digits++) {
        significant += significant > 0 || byte != '0';
        size = size * 16 + (ref_digit(byte) ? byte - '0' : (byte | 32) - 'a' + 10);
        ref_chunk_take(in, c, false);
        if (significant > 16)
            ref_refuse(in, ERR_BAD_REQUEST);
    }
    if (digits == 0)
        ref_refuse(in, ERR_BAD_REQUEST);
    if (byte >= 0 && size + (double)c->total > HTTP_BODY_DISCARD_MAX)
        ref_refuse(in, ERR_BODY_TOO_LARGE);
    return ref_goes_on(in) ? (size_t)size : 0;
}

/* chunk-size [ chunk-ext ] CRLF */
static inline size_t ref_chunk_line(struct ref_in *in, struct ref_chunks *c)
{
    c->line = 0;
    size_t size = ref_chunk_size(in, c);
    bool has_ext = ref_chunk_ext(in, c);
    for (const char *end = "\r\n"; *end != '\0'; end++) {
        bool counts = has_ext && *end == '\r';
        int byte = ref_chunk_peek(in, c, counts);
        if (byte == *end)
            ref_chunk_take(in, c, counts);
        else if (byte >= 0)
            ref_refuse(in, ERR_BAD_REQUEST);
    }
    return size;
}

static inline void ref_chunk_data(struct ref_in *in, struct ref_chunks *c, size_t size)
{
    c->total += size;
    for (; size > 0 && ref_peek(in) >= 0; size--)
        c->out[c->data++] = in->all.ptr[in->at++];
    for (const char *end = "\r\n"; *end != '\0' && ref_goes_on(in); end++) {
        int byte = ref_peek(in);
        if (byte == *end)
            in->at++;
        else if (byte >= 0)
            ref_refuse(in, ERR_BAD_REQUEST);
    }
}

static inline int ref_trailer_peek(struct ref_in *in, struct ref_chunks *c)
{
    int byte = ref_peek(in);
    if (byte >= 0 && c->trailers == HTTP_TRAILERS_MAX)
        ref_refuse(in, ERR_HEADERS_TOO_LARGE);
    return ref_goes_on(in) ? byte : -1;
}

static inline size_t ref_trailer_run(struct ref_in *in, struct ref_chunks *c, bool (*is)(int))
{
    size_t count = 0;
    for (; is(ref_trailer_peek(in, c)); count++) {
        in->at++;
        c->trailers++;
    }
    return count;
}

static inline void ref_trailer_one(struct ref_in *in, struct ref_chunks *c, char wanted)
{
    int byte = ref_trailer_peek(in, c);
    if (byte >= 0 && byte != wanted)
        ref_refuse(in, ERR_BAD_REQUEST);
    if (byte == wanted) {
        in->at++;
        c->trailers++;
    }
}

/* *( field-line CRLF ) CRLF */
static inline void ref_trailer_section(struct ref_in *in, struct ref_chunks *c)
{
    while (ref_trailer_peek(in, c) != '\r' && ref_goes_on(in)) {
        if (ref_trailer_run(in, c, ref_tchar) == 0)
            ref_refuse(in, ERR_BAD_REQUEST);
        ref_trailer_one(in, c, ':');
        (void)ref_trailer_run(in, c, ref_value_char);
        ref_trailer_one(in, c, '\r');
        ref_trailer_one(in, c, '\n');
    }
    ref_trailer_one(in, c, '\r');
    ref_trailer_one(in, c, '\n');
}

/* `out` has room for bytes.len. */
static inline void ref_parse_chunks(struct str bytes, char *out, struct ref_chunks *c)
{
    *c = (struct ref_chunks){.out = out};
    struct ref_in in = {.all = bytes, .status = REF_DONE};
    size_t size;
    while ((size = ref_chunk_line(&in, c)) > 0 && ref_goes_on(&in))
        ref_chunk_data(&in, c, size);
    if (ref_goes_on(&in))
        ref_trailer_section(&in, c);
    c->status = in.status;
    c->err = in.err;
    c->used = in.at;
}

#endif
