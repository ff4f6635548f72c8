#include "http/parse_rules.h"

#include "http/authority.h"
#include "http/chars.h"

/* --- the target --- */

static struct slice slice_of(const char *bytes, struct str part)
{
    return (struct slice){(uint16_t)(part.ptr - bytes), (uint16_t)part.len};
}

static enum parse_fault take_path(struct head *h, const char *bytes, struct str rest)
{
    struct str path, query;
    h->query = str_cut(rest, '?', &path, &query) ? slice_of(bytes, query) : (struct slice){0, 0};
    h->path = slice_of(bytes, path);
    return PARSE_FINE;
}

/* The length of "http://" or "https://", or 0. */
static size_t scheme_of(struct str target)
{
    static const char HTTP[] = "http://", HTTPS[] = "https://";
    if (str_eq_nocase((struct str){target.ptr, MIN(target.len, sizeof(HTTP) - 1)}, STR("http://")))
        return sizeof(HTTP) - 1;
    if (str_eq_nocase((struct str){target.ptr, MIN(target.len, sizeof(HTTPS) - 1)},
                      STR("https://")))
        return sizeof(HTTPS) - 1;
    return 0;
}

static enum parse_fault take_url(struct head *h, const char *bytes, struct str target)
{
    size_t begin = scheme_of(target);
    if (begin == 0)
        return PARSE_TARGET_FORM;
    size_t end = begin;
    while (end < target.len && target.ptr[end] != '/' && target.ptr[end] != '?')
        end++;
    struct str authority = {target.ptr + begin, end - begin};
    if (!authority_ok(authority))
        return PARSE_HOST;
    h->absolute = true;
    h->host = slice_of(bytes, authority);
    return take_path(h, bytes, (struct str){target.ptr + end, target.len - end});
}

enum parse_fault rules_target(struct head *h, const char *bytes)
{
    struct str method = slice_str(bytes, h->method);
    struct str target = slice_str(bytes, h->path);
    if (str_is(method, "CONNECT"))
        return PARSE_CONNECT;
    if (target.ptr[0] == '/' || (str_is(target, "*") && str_is(method, "OPTIONS")))
        return take_path(h, bytes, target);
    return take_url(h, bytes, target);
}

/* --- fields --- */

static enum parse_fault take_host(struct head *h, const char *bytes, struct slice value)
{
    if (h->has_host)
        return PARSE_HOSTS;
    if (!authority_ok(slice_str(bytes, value)))
        return PARSE_HOST;
    h->has_host = true;
    h->host = h->absolute ? h->host : value;
    return PARSE_FINE;
}

static enum parse_fault take_length(struct head *h, struct str value)
{
    uint64_t length = 0;
    if (h->has_length)
        return PARSE_LENGTHS;
    h->has_length = true;
    if (value.len == 0)
        return PARSE_LENGTH;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = (unsigned char)value.ptr[i] - '0';
        if (digit > 9 || length > (UINT64_MAX - digit) / 10)
            return PARSE_LENGTH;
        length = length * 10 + digit;
    }
    if (length > HTTP_BODY_DISCARD_MAX)
        return PARSE_LENGTH_LARGE;
    h->length = (uint32_t)length;
    return PARSE_FINE;
}

static enum parse_fault take_encoding(struct head *h, struct str value)
{
    if (h->is_1_0)
        return PARSE_ENCODING_1_0;
    if (h->chunked || !str_eq_nocase(value, STR("chunked")))
        return PARSE_ENCODING;
    h->chunked = true;
    return PARSE_FINE;
}

static enum parse_fault take_connection(struct head *h, struct str value)
{
    for (bool more = true; more;) {
        struct str option;
        more = str_cut(value, ',', &option, &value);
        option = str_trim(option);
        h->says_close |= str_eq_nocase(option, STR("close"));
        h->says_keep_alive |= str_eq_nocase(option, STR("keep-alive"));
    }
    return PARSE_FINE;
}

/* RFC 9110 10.1.1: HTTP/1.0 has no expectations. */
static enum parse_fault take_expect(struct head *h, struct str value)
{
    if (h->is_1_0)
        return PARSE_FINE;
    h->expects_100 = str_eq_nocase(value, STR("100-continue"));
    return h->expects_100 ? PARSE_FINE : PARSE_EXPECT;
}

enum parse_fault rules_field(struct head *h, const char *bytes, const struct parse_field *field)
{
    struct str name = slice_str(bytes, field->name);
    struct str value = slice_str(bytes, field->value);
    switch (name.len) { /* most names have another length than these */
    case sizeof("Host") - 1:
        return str_eq_nocase(name, STR("Host")) ? take_host(h, bytes, field->value) : PARSE_FINE;
    case sizeof("Expect") - 1:
        return str_eq_nocase(name, STR("Expect")) ? take_expect(h, value) : PARSE_FINE;
    case sizeof("Connection") - 1:
        return str_eq_nocase(name, STR("Connection")) ? take_connection(h, value) : PARSE_FINE;
    case sizeof("Content-Length") - 1:
        return str_eq_nocase(name, STR("Content-Length")) ? take_length(h, value) : PARSE_FINE;
    case sizeof("Transfer-Encoding") - 1:
        return str_eq_nocase(name, STR("Transfer-Encoding")) ? take_encoding(h, value) : PARSE_FINE;
    default:
        return PARSE_FINE;
    }
}

enum parse_fault rules_head(struct head *h)
{
    if (!h->has_host && !h->is_1_0)
        return PARSE_HOSTS;
    if (h->chunked && h->has_length)
        return PARSE_LENGTH_AND_CODED;
    h->keep_alive = !h->says_close && (!h->is_1_0 || h->says_keep_alive);
    return PARSE_FINE;
}
