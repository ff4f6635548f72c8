#define _GNU_SOURCE /* memmem */
#include "http/authority.h"

#include "http/chars.h"

enum { PORT_MAX = 65535, IPV6_GROUPS = 8, IPV4_GROUPS = 2 };

static bool port_ok(struct str port)
{
    unsigned number = 0;
    for (size_t i = 0; i < port.len; i++) {
        if (!char_is(port.ptr[i], CHAR_DIGIT))
            return false;
        number = number * 10 + (unsigned)(port.ptr[i] - '0');
        if (number > PORT_MAX)
            return false;
    }
    return true; /* RFC 3986: the digits may be missing */
}

static size_t count_of(struct str s, unsigned classes)
{
    size_t count = 0;
    while (count < s.len && char_is(s.ptr[count], classes))
        count++;
    return count;
}

/* dec-octet: 0 to 255 without leading zeros. */
static bool octet_ok(struct str s)
{
    if (s.len == 0 || s.len > 3 || count_of(s, CHAR_DIGIT) != s.len)
        return false;
    if (s.ptr[0] == '0')
        return s.len == 1;
    return s.len < 3 || memcmp(s.ptr, "255", 3) <= 0;
}

static bool ipv4_ok(struct str s)
{
    for (int dots = 0; dots < 3; dots++) {
        struct str octet;
        if (!str_cut(s, '.', &octet, &s) || !octet_ok(octet))
            return false;
    }
    return octet_ok(s);
}

/* The groups of one side of "::", separated by colons; -1: not well-formed. */
static int groups_of(struct str s, bool is_last)
{
    int count = 0;
    for (bool more = s.len > 0; more; count++) {
        struct str group;
        more = str_cut(s, ':', &group, &s);
        if (!more && is_last && ipv4_ok(group))
            return count + IPV4_GROUPS;
        if (group.len == 0 || group.len > 4 || count_of(group, CHAR_HEX) != group.len)
            return -1;
    }
    return count;
}

static bool ipv6_ok(struct str s)
{
    const char *gap = memmem(s.ptr, s.len, "::", 2);
    if (gap == NULL)
        return groups_of(s, true) == IPV6_GROUPS;
    struct str head = {s.ptr, (size_t)(gap - s.ptr)};
    struct str tail = {gap + 2, s.len - head.len - 2};
    int before = groups_of(head, false);
    int after = groups_of(tail, true);
    return before >= 0 && after >= 0 && before + after < IPV6_GROUPS;
}

/* "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ) */
static bool ip_future_ok(struct str s)
{
    struct str version, address;
    if (!str_cut(s, '.', &version, &address) || version.len < 2 || address.len == 0)
        return false;
    struct str digits = {version.ptr + 1, version.len - 1};
    if (count_of(digits, CHAR_HEX) != digits.len)
        return false;
    for (size_t i = 0; i < address.len; i++) {
        if (!char_is(address.ptr[i], CHAR_HOST) && address.ptr[i] != ':')
            return false;
    }
    return true;
}

static bool literal_ok(struct str s)
{
    return s.len > 0 && (s.ptr[0] | 32) == 'v' ? ip_future_ok(s) : ipv6_ok(s);
}

/* reg-name, or an IPv4 address, which looks like one. */
static bool name_ok(struct str s)
{
    size_t i = 0;
    while (i < s.len) {
        if (char_is(s.ptr[i], CHAR_HOST))
            i++;
        else if (s.ptr[i] == '%' && s.len - i > 2 && char_is(s.ptr[i + 1], CHAR_HEX) &&
                 char_is(s.ptr[i + 2], CHAR_HEX))
            i += 3;
        else
            return false;
    }
    return s.len > 0;
}

/* What follows the bracket of a literal: nothing, or a colon and a port. */
static bool after_literal_ok(struct str s)
{
    return s.len == 0 || (s.ptr[0] == ':' && port_ok((struct str){s.ptr + 1, s.len - 1}));
}

bool authority_ok(struct str text)
{
    struct str host, rest;
    if (text.len > 0 && text.ptr[0] == '[') {
        struct str opened = {text.ptr + 1, text.len - 1};
        return str_cut(opened, ']', &host, &rest) && literal_ok(host) && after_literal_ok(rest);
    }
    (void)str_cut(text, ':', &host, &rest);
    return name_ok(host) && port_ok(rest);
}
