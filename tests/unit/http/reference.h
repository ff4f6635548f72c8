/* A second parser for requests, slow and plain: the rules of RFC 9110, 9112 and 3986 one by one, as
 * recursive descent over all bytes from the beginning at each call. Shares nothing with src/http
 * but the limits. The tests and the fuzz program compare the two. */
#ifndef PAWL_TESTS_HTTP_REFERENCE_H
#define PAWL_TESTS_HTTP_REFERENCE_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

#include <arpa/inet.h>

enum ref_status { REF_MORE, REF_DONE, REF_REFUSED };

/* Where the reference reads. The first refusal, or the end of the bytes, stops it. */
struct ref_in {
    struct str all;
    size_t at;
    size_t line; /* where the line begins */
    bool in_fields;
    enum ref_status status; /* REF_DONE: nothing has stopped it yet */
    enum err err;
};

struct ref_field {
    struct str name, value;
};

struct ref_head {
    enum ref_status status;
    enum err err;
    size_t size;
    struct str method, path, query, host;
    struct ref_field fields[HTTP_FIELDS_MAX];
    size_t field_count;
    bool is_1_0, keep_alive, expects_100, has_length, chunked;
    size_t length;
    bool is_absolute, has_host, closes, keeps;
};

static inline bool ref_goes_on(const struct ref_in *in)
{
    return in->status == REF_DONE;
}

static inline void ref_refuse(struct ref_in *in, enum err err)
{
    if (ref_goes_on(in)) {
        in->status = REF_REFUSED;
        in->err = err;
    }
}

/* --- characters, as the RFCs write them --- */

static inline bool ref_among(int c, const char *set)
{
    return c > 0 && strchr(set, c) != NULL;
}

static inline bool ref_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool ref_digit(int c)
{
    return c >= '0' && c <= '9';
}

static inline bool ref_hexdig(int c)
{
    return ref_digit(c) || ref_among(c, "abcdefABCDEF");
}

static inline bool ref_tchar(int c)
{
    return ref_alpha(c) || ref_digit(c) || ref_among(c, "!#$%&'*+-.^_`|~");
}

static inline bool ref_unreserved(int c)
{
    return ref_alpha(c) || ref_digit(c) || ref_among(c, "-._~");
}

static inline bool ref_sub_delim(int c)
{
    return ref_among(c, "!$&'()*+,;=");
}

/* Of a path or query without its escapes; the last ones are what browsers do not escape. */
static inline bool ref_target_char(int c)
{
    return ref_unreserved(c) || ref_sub_delim(c) || ref_among(c, ":@/?") || ref_among(c, "[]^`{|}");
}

static inline bool ref_host_char(int c)
{
    return ref_unreserved(c) || ref_sub_delim(c);
}

static inline bool ref_blank(int c)
{
    return c == ' ' || c == '\t';
}

static inline bool ref_obs_text(int c)
{
    return c >= 0x80 && c <= 0xFF;
}

static inline bool ref_value_char(int c)
{
    return (c >= 0x21 && c <= 0x7E) || ref_obs_text(c) || ref_blank(c);
}

static inline bool ref_qdtext(int c)
{
    return ref_blank(c) || c == 0x21 || (c >= 0x23 && c <= 0x5B) || (c >= 0x5D && c <= 0x7E) ||
           ref_obs_text(c);
}

/* --- reading --- */

/* The next byte; -1 when the reference has stopped. */
static inline int ref_peek(struct ref_in *in)
{
    if (ref_goes_on(in) && in->at == in->all.len)
        in->status = REF_MORE;
    return ref_goes_on(in) ? (unsigned char)in->all.ptr[in->at] : -1;
}

static inline void ref_check_head_limit(struct ref_in *in)
{
    if (in->at == HTTP_HEAD_MAX)
        ref_refuse(in, ERR_HEADERS_TOO_LARGE);
}

/* Takes a byte that does not end its line. */
static inline void ref_take(struct ref_in *in)
{
    in->at++;
    if (in->at - in->line == HTTP_LINE_MAX)
        ref_refuse(in, in->in_fields ? ERR_HEADERS_TOO_LARGE : ERR_URI_TOO_LONG);
    ref_check_head_limit(in);
}

static inline struct str ref_since(const struct ref_in *in, size_t begin)
{
    return (struct str){in->all.ptr + begin, in->at - begin};
}

static inline struct str ref_run(struct ref_in *in, bool (*is)(int))
{
    size_t begin = in->at;
    while (is(ref_peek(in)))
        ref_take(in);
    return ref_since(in, begin);
}

static inline void ref_one(struct ref_in *in, char wanted, enum err otherwise)
{
    int c = ref_peek(in);
    if (c == wanted)
        ref_take(in);
    else if (c >= 0)
        ref_refuse(in, otherwise);
}

/* CR LF. What the line says is judged before the limit of the head. */
static inline bool ref_crlf(struct ref_in *in)
{
    ref_one(in, '\r', ERR_BAD_REQUEST);
    int c = ref_peek(in);
    if (c != '\n') {
        if (c >= 0)
            ref_refuse(in, ERR_BAD_REQUEST);
        return false;
    }
    in->at++;
    in->line = in->at;
    return true;
}

/* --- the host --- */

static inline bool ref_all(struct str s, bool (*is)(int))
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is((unsigned char)s.ptr[i]))
            return false;
    }
    return true;
}

static inline bool ref_future_char(int c)
{
    return ref_host_char(c) || c == ':';
}

static inline bool ref_ip_literal(struct str s)
{
    char text[64];
    struct in6_addr address;
    if (s.len > 0 && (s.ptr[0] == 'v' || s.ptr[0] == 'V')) {
        struct str version, rest;
        bool dot = str_cut(s, '.', &version, &rest);
        return dot && version.len > 1 &&
               ref_all((struct str){version.ptr + 1, version.len - 1}, ref_hexdig) &&
               rest.len > 0 && ref_all(rest, ref_future_char);
    }
    if (s.len >= sizeof(text) || memchr(s.ptr, '\0', s.len) != NULL)
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(s));
    return inet_pton(AF_INET6, text, &address) == 1;
}

static inline bool ref_reg_name(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.ptr[i];
        bool escape = c == '%' && i + 2 < s.len && ref_hexdig((unsigned char)s.ptr[i + 1]) &&
                      ref_hexdig((unsigned char)s.ptr[i + 2]);
        if (!escape && !ref_host_char(c))
            return false;
        i += escape ? 2 : 0;
    }
    return s.len > 0; /* RFC 9110 4.2.1: a host must not be empty */
}

static inline bool ref_port(struct str s)
{
    double number = 0;
    for (size_t i = 0; i < s.len; i++)
        number = number * 10 + (s.ptr[i] - '0');
    return ref_all(s, ref_digit) && number < 65536;
}

/* uri-host [ ":" port ] */
static inline bool ref_authority(struct str s)
{
    size_t host = 0;
    if (s.len > 0 && s.ptr[0] == '[') {
        while (host < s.len && s.ptr[host] != ']')
            host++;
        if (host == s.len || !ref_ip_literal((struct str){s.ptr + 1, host - 1}))
            return false;
        host++;
    } else {
        while (host < s.len && s.ptr[host] != ':')
            host++;
        if (!ref_reg_name((struct str){s.ptr, host}))
            return false;
    }
    if (host == s.len)
        return true;
    return s.ptr[host] == ':' && ref_port((struct str){s.ptr + host + 1, s.len - host - 1});
}

/* --- the request line --- */

static inline void ref_method(struct ref_in *in, struct ref_head *h)
{
    size_t begin = in->at;
    while (ref_tchar(ref_peek(in))) {
        ref_take(in);
        if (in->at - begin > HTTP_METHOD_MAX)
            ref_refuse(in, ERR_BAD_REQUEST);
    }
    h->method = ref_since(in, begin);
    if (h->method.len == 0 && ref_goes_on(in))
        ref_refuse(in, ERR_BAD_REQUEST);
    ref_one(in, ' ', ERR_BAD_REQUEST);
}

static inline struct str ref_target(struct ref_in *in)
{
    size_t begin = in->at;
    for (int c; (c = ref_peek(in)) == '%' || ref_target_char(c);) {
        ref_take(in);
        for (int digits = c == '%' ? 2 : 0; digits > 0; digits--) {
            if (ref_hexdig(ref_peek(in)))
                ref_take(in);
            else
                ref_refuse(in, ERR_BAD_REQUEST);
        }
    }
    struct str target = ref_since(in, begin);
    if (target.len == 0 && ref_goes_on(in))
        ref_refuse(in, ERR_BAD_REQUEST);
    ref_one(in, ' ', ERR_BAD_REQUEST);
    return target;
}

static inline void ref_one_digit(struct ref_in *in, char *ret)
{
    int c = ref_peek(in);
    if (!ref_digit(c)) {
        if (c >= 0)
            ref_refuse(in, ERR_BAD_REQUEST);
        return;
    }
    *ret = (char)c;
    ref_take(in);
}

static inline void ref_split_path(struct ref_head *h, struct str rest)
{
    if (!str_cut(rest, '?', &h->path, &h->query))
        h->query = STR("");
}

static inline bool ref_prefix(struct str s, const char *prefix)
{
    return s.len >= strlen(prefix) &&
           str_eq_nocase((struct str){s.ptr, strlen(prefix)}, str_of(prefix));
}

/* origin-form, absolute-form or asterisk-form. */
static inline bool ref_forms(struct ref_head *h, struct str target)
{
    if (str_is(h->method, "CONNECT"))
        return false;
    if (target.ptr[0] == '/') {
        ref_split_path(h, target);
        return true;
    }
    if (str_is(target, "*") && str_is(h->method, "OPTIONS")) {
        ref_split_path(h, target);
        return true;
    }
    size_t scheme = ref_prefix(target, "http://") ? 7 : ref_prefix(target, "https://") ? 8 : 0;
    if (scheme == 0)
        return false;
    size_t end = scheme;
    while (end < target.len && !ref_among(target.ptr[end], "/?"))
        end++;
    h->host = (struct str){target.ptr + scheme, end - scheme};
    h->is_absolute = true;
    ref_split_path(h, (struct str){target.ptr + end, target.len - end});
    return ref_authority(h->host);
}

static inline void ref_request_line(struct ref_in *in, struct ref_head *h)
{
    char major = 0, minor = 0;
    ref_method(in, h);
    struct str target = ref_target(in);
    for (const char *at = "HTTP/"; *at != '\0'; at++)
        ref_one(in, *at, ERR_BAD_REQUEST);
    ref_one_digit(in, &major);
    ref_one(in, '.', ERR_BAD_REQUEST);
    ref_one_digit(in, &minor);
    if (!ref_crlf(in))
        return;
    h->is_1_0 = minor == '0';
    if (major != '1')
        ref_refuse(in, ERR_HTTP_VERSION);
    if (ref_goes_on(in) && !ref_forms(h, target))
        ref_refuse(in, ERR_BAD_REQUEST);
    ref_check_head_limit(in);
}

/* --- fields --- */

static inline enum err ref_content_length(struct ref_head *h, struct str value)
{
    if (h->has_length || value.len == 0 || !ref_all(value, ref_digit))
        return ERR_BAD_REQUEST;
    struct str most = STR("18446744073709551615");
    struct str number = value;
    while (number.len > most.len && number.ptr[0] == '0')
        number = (struct str){number.ptr + 1, number.len - 1};
    if (number.len > most.len ||
        (number.len == most.len && memcmp(number.ptr, most.ptr, most.len) > 0))
        return ERR_BAD_REQUEST;
    double length = 0;
    for (size_t i = 0; i < value.len; i++)
        length = length * 10 + (value.ptr[i] - '0');
    if (length > HTTP_BODY_DISCARD_MAX)
        return ERR_BODY_TOO_LARGE;
    h->has_length = true;
    h->length = (size_t)length;
    return ERR_OK;
}

static inline enum err ref_host(struct ref_head *h, struct str value)
{
    if (h->has_host || !ref_authority(value))
        return ERR_BAD_REQUEST;
    h->has_host = true;
    h->host = h->is_absolute ? h->host : value;
    return ERR_OK;
}

static inline enum err ref_meaning(struct ref_head *h, struct str name, struct str value)
{
    if (str_eq_nocase(name, STR("content-length")))
        return ref_content_length(h, value);
    if (str_eq_nocase(name, STR("host")))
        return ref_host(h, value);
    if (str_eq_nocase(name, STR("transfer-encoding"))) {
        bool ok = !h->chunked && !h->is_1_0 && str_eq_nocase(value, STR("chunked"));
        h->chunked |= ok;
        return ok ? ERR_OK : ERR_BAD_REQUEST;
    }
    if (str_eq_nocase(name, STR("expect")) && !h->is_1_0) {
        h->expects_100 = str_eq_nocase(value, STR("100-continue"));
        return h->expects_100 ? ERR_OK : ERR_EXPECTATION;
    }
    if (str_eq_nocase(name, STR("connection"))) {
        struct str option;
        for (bool more = true; more;) {
            more = str_cut(value, ',', &option, &value);
            h->closes |= str_eq_nocase(str_trim(option), STR("close"));
            h->keeps |= str_eq_nocase(str_trim(option), STR("keep-alive"));
        }
    }
    return ERR_OK;
}

/* field-name ":" OWS field-value OWS */
static inline void ref_field_line(struct ref_in *in, struct ref_head *h)
{
    if (h->field_count == HTTP_FIELDS_MAX)
        ref_refuse(in, ref_blank(ref_peek(in)) || ref_peek(in) == '\n' ? ERR_BAD_REQUEST
                                                                       : ERR_HEADERS_TOO_LARGE);
    struct str name = ref_run(in, ref_tchar);
    if (name.len == 0 && ref_goes_on(in))
        ref_refuse(in, ERR_BAD_REQUEST);
    ref_one(in, ':', ERR_BAD_REQUEST);
    struct str value = str_trim(ref_run(in, ref_value_char));
    if (!ref_crlf(in))
        return;
    enum err e = ref_meaning(h, name, value);
    if (e != ERR_OK)
        ref_refuse(in, e);
    else
        h->fields[h->field_count++] = (struct ref_field){name, value};
    ref_check_head_limit(in);
}

static inline void ref_empty_lines(struct ref_in *in)
{
    for (int lines = 0; ref_peek(in) == '\r'; lines++) {
        if (lines == HTTP_EMPTY_LINES_MAX)
            ref_refuse(in, ERR_BAD_REQUEST);
        (void)ref_crlf(in);
    }
}

static inline void ref_end(struct ref_in *in, struct ref_head *h)
{
    if (!ref_crlf(in))
        return;
    bool hostless = !h->has_host && !h->is_1_0;
    if (hostless || (h->chunked && h->has_length))
        ref_refuse(in, ERR_BAD_REQUEST);
    h->keep_alive = !h->closes && (h->keeps || !h->is_1_0);
}

static inline void ref_parse_head(struct str bytes, struct ref_head *h)
{
    memset(h, 0, sizeof(*h));
    struct ref_in in = {.all = bytes, .status = REF_DONE};
    ref_empty_lines(&in);
    ref_request_line(&in, h);
    in.in_fields = true;
    while (ref_goes_on(&in) && ref_peek(&in) != '\r' && ref_goes_on(&in))
        ref_field_line(&in, h);
    if (ref_goes_on(&in))
        ref_end(&in, h);
    h->status = in.status;
    h->err = in.err;
    h->size = in.at;
}

#endif
