/* The parser's errors as problem+json.
 *
 * libmicrohttpd answers malformed requests with its own HTML pages and has no setting for that. One
 * place in it creates these pages, through MHD_create_response_from_buffer(); the linker (--wrap,
 * see CMakeLists.txt) redirects that call to this file. Just before, the library logs the status
 * that it will send. Everything happens on one thread; a test sends every kind of malformed request
 * and reads the answer. */
#include "http/mhd/internal.h"
#include "http/problem_reply.h"

static int status_of_next_error = 400;
static bool next_error_is_garbled;

struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t size, void *buffer,
                                                            enum MHD_ResponseMemoryMode mode);

void parser_error_log(void *ctx, const char *fmt, va_list args)
{
    (void)ctx;
    static const char MARK[] = "Error processing request (HTTP response code is %u";
    static const char EMPTY_LENGTH[] = "Failed to parse `Content-Length'";
    if (strncmp(fmt, MARK, sizeof(MARK) - 1) == 0)
        status_of_next_error = (int)va_arg(args, unsigned);
    else
        next_error_is_garbled = strncmp(fmt, EMPTY_LENGTH, sizeof(EMPTY_LENGTH) - 1) == 0;
}

/* libmicrohttpd 0.9.75 writes the head of its answer to a bad Content-Length twice. So its number
 * parser, used for nothing else, accepts every value, and on_head() refuses the bad ones. */
size_t __wrap_MHD_str_to_uint64_n_(const char *text, size_t len, uint64_t *ret)
{
    size_t digits = __real_MHD_str_to_uint64_n_(text, len, ret);
    if (digits == 0 || str_trim((struct str){text, len}).len != digits)
        *ret = 0;
    return len;
}

static const char *detail_of(enum err e)
{
    switch ((int)e) {
    case ERR_BODY_TOO_LARGE:
        return "The Content-Length or a chunk is too large";
    case ERR_URI_TOO_LONG:
        return "The request target does not fit into 8 KiB";
    case ERR_HEADERS_TOO_LARGE:
        return "The request line and headers do not fit into 8 KiB";
    case ERR_HTTP_VERSION:
        return "Only HTTP/1.0 and HTTP/1.1 are supported";
    default:
        return "The request is not well-formed HTTP/1.1";
    }
}

struct MHD_Response *__wrap_MHD_create_response_from_buffer(size_t size, void *buffer,
                                                            enum MHD_ResponseMemoryMode mode)
{
    (void)size;
    (void)buffer;
    (void)mode;
    if (next_error_is_garbled) {
        next_error_is_garbled = false;
        return NULL; /* an empty Content-Length: no answer, the connection is closed */
    }
    struct problem p;
    problem_init(&p);
    enum err e = err_of_http_status(status_of_next_error);
    (void)problem_set(&p, e, "%s", detail_of(e));
    char trace[33];
    unsigned char random[16];
    env_random(&ENV_SYSTEM, random, sizeof(random));
    struct buf text;
    buf_init(&text, 64);
    buf_put_hex(&text, random, sizeof(random));
    (void)snprintf(trace, sizeof(trace), "%s", text.ptr != NULL ? text.ptr : "");
    buf_release(&text);
    buf_init(&text, 4 * KIB);
    problem_put_json(&text, &p, str_of(trace));
    struct MHD_Response *response =
        __real_MHD_create_response_from_buffer(text.len, text.ptr, MHD_RESPMEM_MUST_COPY);
    if (response != NULL) {
        (void)MHD_add_response_header(response, "Content-Type", "application/problem+json");
        (void)MHD_add_response_header(response, "X-Trace-Id", trace);
        reply_add_constants(response);
    }
    buf_release(&text);
    problem_release(&p);
    return response;
}

/* --- NUL bytes --- */

/* The library keeps headers as C strings: a NUL would cut a value short and make two different
 * keys, tenants or secrets equal. No valid request contains one, not even in its JSON body.
 * Received NULs are replaced by another control character, which http/head.c and the JSON parser
 * refuse. */
static void replace_nuls(char *bytes, ssize_t len)
{
    char *end = bytes + (len > 0 ? len : 0);
    for (char *at = bytes; at < end && (at = memchr(at, '\0', (size_t)(end - at))) != NULL; at++)
        *at = '\1';
}

ssize_t __real_recv(int fd, void *buffer, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t len, int flags);
ssize_t __real_gnutls_record_recv(void *session, void *buffer, size_t len);
ssize_t __wrap_gnutls_record_recv(void *session, void *buffer, size_t len);

ssize_t __wrap_recv(int fd, void *buffer, size_t len, int flags)
{
    ssize_t got = __real_recv(fd, buffer, len, flags);
    replace_nuls(buffer, got);
    return got;
}

ssize_t __wrap_gnutls_record_recv(void *session, void *buffer, size_t len)
{
    ssize_t got = __real_gnutls_record_recv(session, buffer, len);
    replace_nuls(buffer, got);
    return got;
}
