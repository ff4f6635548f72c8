/* Which network addresses may be called on behalf of others. */
#include "domain/address.h"

static const char *const NAMES[] = {
#define X(symbol, name) name,
    ADDRESS_KINDS(X)
#undef X
};

struct prefix {
    unsigned char bytes[16];
    int bits;
    enum address_kind kind;
};

/* IANA's registry of special-purpose addresses. The first that fits counts. */
// clang-format off
static const struct prefix V4[] = {
    {{0},             8,  ADDRESS_UNSPECIFIED}, /* 0.0.0.0 connects to this machine */
    {{10},            8,  ADDRESS_PRIVATE},
    {{100, 64},       10, ADDRESS_SHARED},
    {{127},           8,  ADDRESS_LOOPBACK},
    {{169, 254},      16, ADDRESS_LINK_LOCAL},
    {{172, 16},       12, ADDRESS_PRIVATE},
    {{192, 0, 0},     24, ADDRESS_RESERVED},    /* protocol assignments */
    {{192, 0, 2},     24, ADDRESS_RESERVED},    /* documentation */
    {{192, 88, 99},   24, ADDRESS_RESERVED},    /* relays of 6to4 */
    {{192, 168},      16, ADDRESS_PRIVATE},
    {{198, 18},       15, ADDRESS_RESERVED},    /* benchmarks of networks */
    {{198, 51, 100},  24, ADDRESS_RESERVED},    /* documentation */
    {{203, 0, 113},   24, ADDRESS_RESERVED},    /* documentation */
    {{224},           4,  ADDRESS_MULTICAST},
    {{240},           4,  ADDRESS_RESERVED},    /* and broadcast */
};

static const struct prefix V6[] = {
    {{[15] = 0},      128, ADDRESS_UNSPECIFIED},
    {{[15] = 1},      128, ADDRESS_LOOPBACK},
    {{0xfc},          7,   ADDRESS_PRIVATE},
    {{0xfe, 0x80},    10,  ADDRESS_LINK_LOCAL},
    {{0xfe, 0xc0},    10,  ADDRESS_PRIVATE},    /* site-local, of old */
    {{0xff},          8,   ADDRESS_MULTICAST},
    {{0x20, 0x01},    23,  ADDRESS_RESERVED},   /* Teredo, ORCHID, benchmarks */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_RESERVED}, /* documentation */
    {{0x3f, 0xff},    20,  ADDRESS_RESERVED},   /* documentation */
    {{0x20},          3,   ADDRESS_PUBLIC},
};

/* Prefixes of IPv6 addresses with an IPv4 address at this byte. */
static const struct embedding {
    unsigned char bytes[12];
    int bits;
    size_t at;
} EMBEDDINGS[] = {
    {{[10] = 0xff, [11] = 0xff},     96, 12}, /* mapped: the kernel connects by IPv4 */
    {{0x00, 0x64, 0xff, 0x9b},       96, 12}, /* NAT64 */
    {{0x20, 0x02},                   16, 2},  /* 6to4 */
};
// clang-format on

static_assert(ARRAY_LEN(NAMES) == ADDRESS_KIND_COUNT, "one name per kind");

const char *address_kind_name(enum address_kind kind)
{
    assert(kind < ADDRESS_KIND_COUNT);
    return NAMES[kind];
}

bool address_in_reach(enum address_kind kind, enum address_reach reach)
{
    return kind == ADDRESS_PUBLIC || reach == REACH_ALL ||
           (kind == ADDRESS_LOOPBACK && reach == REACH_LOOPBACK);
}

static bool begins_with(const unsigned char *bytes, const unsigned char *prefix, int bits)
{
    size_t whole = (size_t)bits / 8;
    int rest = bits % 8;
    return memcmp(bytes, prefix, whole) == 0 &&
           (rest == 0 || (bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0);
}

enum address_kind address_kind_v4(const unsigned char bytes[static 4])
{
    for (size_t i = 0; i < ARRAY_LEN(V4); i++) {
        if (begins_with(bytes, V4[i].bytes, V4[i].bits))
            return V4[i].kind;
    }
    return ADDRESS_PUBLIC;
}

/* The last half of an address of an ISATAP tunnel, whatever its network. */
static bool is_isatap(const unsigned char *bytes)
{
    return (bytes[8] & ~2u) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
}

enum address_kind address_kind_v6(const unsigned char bytes[static 16])
{
    for (size_t i = 0; i < ARRAY_LEN(EMBEDDINGS); i++) {
        if (begins_with(bytes, EMBEDDINGS[i].bytes, EMBEDDINGS[i].bits))
            return address_kind_v4(bytes + EMBEDDINGS[i].at);
    }
    for (size_t i = 0; i < ARRAY_LEN(V6); i++) {
        if (!begins_with(bytes, V6[i].bytes, V6[i].bits))
            continue;
        if (V6[i].kind == ADDRESS_PUBLIC && is_isatap(bytes))
            return address_kind_v4(bytes + 12);
        return V6[i].kind;
    }
    return ADDRESS_RESERVED;
}
