/* Checks of a request's head that libmicrohttpd does not make. A head about whose end or headers
 * two readers could disagree is refused (RFC 9112, 3.2, 5.1, 6.1 and 6.3). */
#include "http/mhd/internal.h"

struct head {
    bool malformed;
    size_t hosts, lengths, encodings;
    struct str length, encoding;
};

/* RFC 9110: the characters of a token. Not by strspn(), which makes a table of them every time. */
static bool is_token_char(char c)
{
    static const char MARKS[] = {'-',  '_', '.', '!', '#', '$', '%', '&',
                                 '\'', '*', '+', '^', '`', '|', '~'};
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           memchr(MARKS, c, sizeof(MARKS)) != NULL;
}

static bool is_token(struct str s)
{
    size_t i = 0;
    while (i < s.len && is_token_char(s.ptr[i]))
        i++;
    return s.len > 0 && i == s.len;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return true;
    }
    return false;
}

static void look_at(struct head *h, struct str name, struct str text)
{
    h->malformed |= !is_token(name) || has_control(text);
    if (str_eq_nocase(name, STR("Host"))) {
        h->hosts++;
    } else if (str_eq_nocase(name, STR("Content-Length"))) {
        h->lengths++;
        h->length = str_trim(text);
    } else if (str_eq_nocase(name, STR("Transfer-Encoding"))) {
        h->encodings++;
        h->encoding = str_trim(text);
    }
}

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

const char *head_fault(const struct request *r, const char *version)
{
    struct head h = {.malformed = false};
    for (size_t i = 0; i < r->header_count; i++)
        look_at(&h, r->headers[i].name, r->headers[i].value);
    if (h.malformed)
        return "A header is malformed";
    if (h.hosts > 1 || (h.hosts == 0 && strcmp(version, "HTTP/1.0") != 0))
        return "Send exactly one Host header";
    if (h.lengths > 1 || (h.lengths == 1 && !is_digits(h.length)))
        return "Send at most one Content-Length, as a number";
    if (h.encodings > 1 || (h.encodings == 1 && !str_eq_nocase(h.encoding, STR("chunked"))))
        return "The only Transfer-Encoding allowed is chunked";
    if (h.encodings == 1 && h.lengths == 1)
        return "Send Content-Length or Transfer-Encoding, not both";
    return NULL;
}
