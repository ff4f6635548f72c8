/* Addresses and tenants that are connected. */
#include "base/hash_map.h"
#include "base/limits.h"
#include "http/internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct peer {
    struct hash_entry entry;
    size_t count;
    char text[TENANT_ID_MAX + 1];
};

static_assert(PEER_TEXT_MAX == INET6_ADDRSTRLEN, "any address fits");
static_assert(PEER_TEXT_MAX <= TENANT_ID_MAX + 1, "a tenant's room is enough for an address");

struct peers {
    struct hash_map map;
};

struct peers *peers_new(void)
{
    return calloc(1, sizeof(struct peers));
}

void peers_free(struct peers *peers)
{
    if (peers == NULL)
        return;
    assert(peers->map.count == 0);
    hash_map_release(&peers->map);
    free(peers);
}

static void put_text(const struct sockaddr_storage *address, char *out, socklen_t size)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    out[0] = '\0';
    if (address->ss_family == AF_INET) {
        memcpy(&in, address, sizeof(in));
        (void)inet_ntop(AF_INET, &in.sin_addr, out, size);
    } else if (address->ss_family == AF_INET6) {
        memcpy(&in6, address, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, out, size);
    }
}

static struct peer *join(struct peers *peers, struct str text)
{
    uint64_t hash = hash_text(&peers->map, text);
    struct hash_entry *e = hash_map_find(&peers->map, hash);
    while (e != NULL && !str_is(text, CONTAINER_OF(e, struct peer, entry)->text))
        e = hash_map_find_next(e);
    struct peer *peer = e != NULL ? CONTAINER_OF(e, struct peer, entry) : NULL;
    if (peer == NULL) {
        peer = calloc(1, sizeof(*peer));
        if (peer == NULL)
            return NULL;
        memcpy(peer->text, text.ptr, text.len);
        hash_map_add(&peers->map, &peer->entry, hash);
    }
    peer->count++;
    return peer;
}

struct peer *peers_join(struct peers *peers, const struct sockaddr_storage *address)
{
    char text[PEER_TEXT_MAX];
    put_text(address, text, sizeof(text));
    return join(peers, str_of(text));
}

struct peer *peers_join_tenant(struct peers *peers, struct str tenant)
{
    assert(tenant.len <= TENANT_ID_MAX);
    return join(peers, tenant);
}

void peers_leave(struct peers *peers, struct peer *peer)
{
    assert(peer->count > 0);
    if (--peer->count > 0)
        return;
    hash_map_remove(&peers->map, &peer->entry);
    free(peer);
}

size_t peer_count(const struct peer *peer)
{
    return peer->count;
}

const char *peer_text(const struct peer *peer)
{
    return peer->text;
}
