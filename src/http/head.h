/* What the parser finds in the head of a request, or what is wrong with it. */
#ifndef PAWL_HTTP_HEAD_H
#define PAWL_HTTP_HEAD_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

/* A table is read by its columns. */
/* clang-format off */
#define PARSE_FAULTS(X)                                                                            \
    X(PARSE_FINE,             ERR_OK,                "")                                           \
    X(PARSE_EMPTY_LINES,      ERR_BAD_REQUEST,       "Too many empty lines before the request")    \
    X(PARSE_REQUEST_LINE,     ERR_BAD_REQUEST,       "The request line must be METHOD TARGET HTTP/1.1, with single spaces") \
    X(PARSE_METHOD_LONG,      ERR_BAD_REQUEST,       "The method is longer than any known method") \
    X(PARSE_CONNECT,          ERR_BAD_REQUEST,       "CONNECT is for proxies; this is not one")    \
    X(PARSE_TARGET,           ERR_BAD_REQUEST,       "The request target contains a character that must be percent-encoded") \
    X(PARSE_TARGET_FORM,      ERR_BAD_REQUEST,       "The request target must be a path, or an http or https URL") \
    X(PARSE_TARGET_LONG,      ERR_URI_TOO_LONG,      "The request line does not fit into 8 KiB")   \
    X(PARSE_VERSION,          ERR_HTTP_VERSION,      "Only HTTP/1.0 and HTTP/1.1 are supported")   \
    X(PARSE_LINE_END,         ERR_BAD_REQUEST,       "Each line of the head must end with CR LF")  \
    X(PARSE_FOLDED,           ERR_BAD_REQUEST,       "A header must not continue on the next line") \
    X(PARSE_FIELD_NAME,       ERR_BAD_REQUEST,       "A header must be a name, a colon directly after it, and a value") \
    X(PARSE_FIELD_VALUE,      ERR_BAD_REQUEST,       "A header value contains a control character") \
    X(PARSE_FIELD_LONG,       ERR_HEADERS_TOO_LARGE, "A header does not fit into 8 KiB")           \
    X(PARSE_HEAD_LONG,        ERR_HEADERS_TOO_LARGE, "The request line and headers do not fit into 16 KiB") \
    X(PARSE_FIELDS,           ERR_HEADERS_TOO_LARGE, "There are more than 100 headers")            \
    X(PARSE_HOSTS,            ERR_BAD_REQUEST,       "Send exactly one Host header")               \
    X(PARSE_HOST,             ERR_BAD_REQUEST,       "Host must be a host name or address, with an optional port") \
    X(PARSE_LENGTHS,          ERR_BAD_REQUEST,       "Send at most one Content-Length")            \
    X(PARSE_LENGTH,           ERR_BAD_REQUEST,       "Content-Length must be a decimal number of at most 64 bits") \
    X(PARSE_LENGTH_LARGE,     ERR_BODY_TOO_LARGE,    "The body must not exceed 1 MiB")             \
    X(PARSE_ENCODING,         ERR_BAD_REQUEST,       "The only Transfer-Encoding allowed is chunked, once") \
    X(PARSE_ENCODING_1_0,     ERR_BAD_REQUEST,       "HTTP/1.0 has no Transfer-Encoding")          \
    X(PARSE_LENGTH_AND_CODED, ERR_BAD_REQUEST,       "Send Content-Length or Transfer-Encoding, not both") \
    X(PARSE_EXPECT,           ERR_EXPECTATION,       "The only expectation supported is 100-continue") \
    X(PARSE_CHUNK_SIZE,       ERR_BAD_REQUEST,       "A chunk must begin with its size, a hexadecimal number of at most 64 bits") \
    X(PARSE_CHUNK_LARGE,      ERR_BODY_TOO_LARGE,    "The body must not exceed 1 MiB")             \
    X(PARSE_CHUNK_EXTENSION,  ERR_BAD_REQUEST,       "A chunk extension is malformed")             \
    X(PARSE_CHUNK_LINE_LONG,  ERR_BAD_REQUEST,       "The chunk extensions are too long")          \
    X(PARSE_CHUNK_END,        ERR_BAD_REQUEST,       "A chunk must end with CR LF after as many bytes as its size says") \
    X(PARSE_TRAILERS_LONG,    ERR_HEADERS_TOO_LARGE, "The trailers do not fit into 4 KiB")
/* clang-format on */

enum parse_fault {
#define X(symbol, err, detail) symbol,
    PARSE_FAULTS(X)
#undef X
        PARSE_FAULT_COUNT
};

/* A part of the buffer. */
struct slice {
    uint16_t at;
    uint16_t len;
};

struct parse_field {
    struct slice name;
    struct slice value; /* without the blanks around it */
};

struct head {
    /* The result: the parts are in the bytes given to head_parse(). */
    struct slice method;
    struct slice path;  /* not decoded; empty when an absolute URL has none */
    struct slice query; /* not decoded, without its '?' */
    struct slice host;  /* the target's if it has one, else the field's; HTTP/1.0: may be empty */
    uint16_t field_count;
    uint16_t size;    /* where the body begins */
    bool is_1_0;      /* else 1.1 or a later 1.x */
    bool keep_alive;  /* the connection may be used for another request */
    bool expects_100; /* the client waits for 100 Continue before it sends the body */
    bool has_length;
    bool chunked;    /* the body is chunked; never with a length */
    uint32_t length; /* of the body; at most HTTP_BODY_DISCARD_MAX */
    enum parse_fault fault;

    /* The parser's own. */
    uint16_t at;   /* the next byte */
    uint16_t line; /* where its line begins */
    uint16_t mark; /* where the present part begins */
    uint8_t state;
    uint8_t count; /* empty lines; characters of the version */
    char major, minor;
    bool absolute; /* the target has a host */
    bool has_host;
    bool says_close, says_keep_alive;
    struct parse_field fields[HTTP_FIELDS_MAX];
};

static inline struct str slice_str(const char *bytes, struct slice slice)
{
    return (struct str){bytes + slice.at, slice.len};
}

#endif
