/* Which network addresses may be called on behalf of others. Who writes a workflow or a webhook
 * chooses where the server connects to; addresses that mean the server itself, its neighbours or
 * nobody in particular would let them reach what only the server can reach. Pure. */
#ifndef PAWL_DOMAIN_ADDRESS_H
#define PAWL_DOMAIN_ADDRESS_H

#include "base/macros.h"

#include <stdbool.h>

/* A table is read by its columns. */
/* clang-format off */
#define ADDRESS_KINDS(X)                                                                           \
    /* symbol               for people */                                                          \
    X(ADDRESS_PUBLIC,       "public")                                                              \
    X(ADDRESS_UNSPECIFIED,  "unspecified")                                                         \
    X(ADDRESS_LOOPBACK,     "loopback")                                                            \
    X(ADDRESS_PRIVATE,      "private")                                                             \
    X(ADDRESS_LINK_LOCAL,   "link-local")  /* with the metadata services of clouds */              \
    X(ADDRESS_SHARED,       "carrier-grade NAT")                                                   \
    X(ADDRESS_MULTICAST,    "multicast")                                                           \
    X(ADDRESS_RESERVED,     "reserved")
/* clang-format on */

enum address_kind {
#define X(symbol, name) symbol,
    ADDRESS_KINDS(X)
#undef X
        ADDRESS_KIND_COUNT
};

const char *address_kind_name(enum address_kind kind);

/* What may be called. */
enum address_reach {
    REACH_PUBLIC,   /* public addresses only */
    REACH_LOOPBACK, /* and this machine's own: for development */
    REACH_ALL,
};
bool address_in_reach(enum address_kind kind, enum address_reach reach);

/* Bytes in network order. An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4,
 * ISATAP) is of the kind of that one; what no registry has given out is reserved. */
enum address_kind address_kind_v4(const unsigned char bytes[static 4]);
enum address_kind address_kind_v6(const unsigned char bytes[static 16]);

#endif
