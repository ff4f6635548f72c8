/* Failed logins by the address that they come from. An address that sends too many API keys that
 * are nobody's is asked to wait, so that guessing costs the server little. Bounded: a table of
 * LOGIN_PEERS_MAX addresses, in which one that has waited long enough makes room for another. On
 * the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_LOGIN_THROTTLE_H
#define PAWL_RUNTIME_LOGIN_THROTTLE_H

#include "base/limits.h"
#include "base/str.h"

struct login_peer {
    unsigned char
        address[16];    /* IPv4 as mapped; of IPv6 the network of 64 bits, which is one client's */
    int64_t full_at_ns; /* see domain/rate.h; 0: the place is free */
};

struct login_throttle {
    struct login_peer peers[LOGIN_PEERS_MAX];
};

/* 0: a key of this address may be looked up. Otherwise for how long not. */
int64_t login_throttle_wait_ms(const struct login_throttle *t, struct str peer, int64_t now_ms);
/* A key from there was nobody's. */
void login_throttle_failed(struct login_throttle *t, struct str peer, int64_t now_ms);

#endif
