/* What the HTTP interface works with. */
#ifndef PAWL_API_CONFIG_H
#define PAWL_API_CONFIG_H

#include "base/err.h"
#include "base/str.h"

struct auth_identity;
struct engine;
struct env;
struct key_use;
struct metrics;
struct problem;

/* Knows API keys and sessions; as engine_identify() and its like, which say what each answers. */
struct api_auth {
    void *ctx;
    enum err (*identify)(void *ctx, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret);
    enum err (*identify_session)(void *ctx, struct str text, struct problem *p,
                                 struct auth_identity *ret);
    uint64_t (*epoch)(void *ctx);
    /* Has the tenant got keys? They are made in another shard than its own, which may not know it
     * yet. */
    bool (*knows_tenant)(void *ctx, struct str tenant);
    /* Uses of keys that this node has seen and their rows do not know yet: takes some that the
     * owner of the keys is to be told of, and takes what other nodes tell. */
    size_t (*take_uses)(void *ctx, struct key_use *out, size_t max);
    void (*note_uses)(void *ctx, const struct key_use *uses, size_t count);
};

struct api_node;

struct api_config {
    struct engine *engine;       /* NULL: only what is about the server itself is served */
    const struct api_auth *auth; /* NULL: the engine knows them */
    /* What a server with several engines knows of itself; NULL: it has only this one. */
    const struct api_node *node;
    const char *node_name; /* of the server; NULL: it has none */
    struct metrics *metrics;
    const struct env *env;
    /* Not NULL: no keys are needed, the headers name the caller. Then it is the server's own
     * HOST:PORT, and domain/dev_guard.h says which requests are allowed. */
    const char *dev_listen;
    bool tls; /* the server speaks TLS itself */
    bool log_requests;
    bool export_spans;
};

#endif
