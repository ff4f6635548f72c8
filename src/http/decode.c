/* Percent-encoding and queries. */
#include "http/http.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f')
        return (c | 32) - 'a' + 10;
    return -1;
}

bool http_decode(struct http_request *req, struct str encoded, struct str *ret)
{
    if (encoded.len > 0 && memchr(encoded.ptr, '%', encoded.len) == NULL) {
        *ret = encoded;
        return memchr(encoded.ptr, '\0', encoded.len) == NULL && str_is_utf8(encoded);
    }
    char *out = arena_alloc(&req->arena, encoded.len + 1);
    if (out == NULL)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < encoded.len; i++) {
        char c = encoded.ptr[i];
        if (c == '%') {
            bool room = encoded.len - i > 2;
            int high = room ? hex(encoded.ptr[i + 1]) : -1;
            int low = room ? hex(encoded.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            return false;
        out[n++] = c;
    }
    *ret = (struct str){out, n};
    return str_is_utf8(*ret);
}

bool http_query_next(struct str *rest, struct http_param *ret)
{
    while (rest->len > 0) {
        struct str part;
        (void)str_cut(*rest, '&', &part, rest);
        if (part.len == 0)
            continue;
        (void)str_cut(part, '=', &ret->name, &ret->value);
        return true;
    }
    return false;
}
