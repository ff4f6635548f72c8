/* A token bucket for each address that failed to log in lately. */
#include "runtime/login_throttle.h"

#include "domain/admission/rate.h"

#include <arpa/inet.h>

/* Not a base/hash_map: what is evicted is the address with the least to wait for, not the oldest.
 */
enum { PROBES = 8 }; /* places that one address may be in */

static const struct rate_limit LIMIT = {LOGIN_FAILURES_PER_S, LOGIN_FAILURES_BURST};

static void read_address(struct str peer, unsigned char *ret)
{
    static const unsigned char MAPPED[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    char text[INET6_ADDRSTRLEN] = "";
    memset(ret, 0, 16);
    if (peer.len < sizeof(text))
        (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(peer));
    if (inet_pton(AF_INET, text, ret + sizeof(MAPPED)) == 1) {
        memcpy(ret, MAPPED, sizeof(MAPPED));
        return;
    }
    if (inet_pton(AF_INET6, text, ret) == 1 && memcmp(ret, MAPPED, sizeof(MAPPED)) != 0)
        memset(ret + 8, 0, 8);
}

static size_t place_of(const unsigned char *address, size_t probe)
{
    return (str_hash((struct str){(const char *)address, 16}) + probe) % LOGIN_PEERS_MAX;
}

/* Its place, or NULL. */
static const struct login_peer *find(const struct login_throttle *t, const unsigned char *address)
{
    for (size_t i = 0; i < PROBES; i++) {
        const struct login_peer *p = &t->peers[place_of(address, i)];
        if (p->full_at_ns != 0 && memcmp(p->address, address, sizeof(p->address)) == 0)
            return p;
    }
    return NULL;
}

/* Its place, or the one whose address has the least to wait for. */
static struct login_peer *take_place(struct login_throttle *t, const unsigned char *address)
{
    struct login_peer *best = &t->peers[place_of(address, 0)];
    for (size_t i = 0; i < PROBES; i++) {
        struct login_peer *p = &t->peers[place_of(address, i)];
        if (p->full_at_ns != 0 && memcmp(p->address, address, sizeof(p->address)) == 0)
            return p;
        if (p->full_at_ns < best->full_at_ns)
            best = p;
    }
    memcpy(best->address, address, sizeof(best->address));
    best->full_at_ns = 0;
    return best;
}

int64_t login_throttle_wait_ms(const struct login_throttle *t, struct str peer, int64_t now_ms)
{
    unsigned char address[16];
    int64_t wait_ms = 0;
    read_address(peer, address);
    const struct login_peer *p = find(t, address);
    int64_t full_at_ns = p != NULL ? p->full_at_ns : 0;
    return p == NULL || rate_take(&LIMIT, now_ms, &full_at_ns, &wait_ms) ? 0 : wait_ms;
}

void login_throttle_failed(struct login_throttle *t, struct str peer, int64_t now_ms)
{
    unsigned char address[16];
    int64_t ignored;
    read_address(peer, address);
    (void)!rate_take(&LIMIT, now_ms, &take_place(t, address)->full_at_ns, &ignored);
}
