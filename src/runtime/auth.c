/* Checks API keys, with a cache of the most recent ones. */
#include "runtime/auth.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "domain/api_key.h"
#include "runtime/login_throttle.h"

enum { USES_MAX = 256 };

/* The same few characters again and again, from the first on. */
static bool repeats(struct str key)
{
    for (size_t period = 1; period <= key.len / 2; period++) {
        if (memcmp(key.ptr, key.ptr + period, key.len - period) == 0)
            return true;
    }
    return false;
}

const char *auth_root_key_fault(struct str key)
{
    bool seen[256] = {false};
    size_t distinct = 0;
    if (key.len < ROOT_KEY_MIN)
        return "is too short: use at least 32 random characters";
    if (key.len >= API_KEY_TEXT_MAX)
        return "is too long: use at most 127 characters";
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        if (c <= ' ' || c > '~')
            return "contains a character that is not visible ASCII";
        distinct += !seen[c];
        seen[c] = true;
    }
    if (distinct < ROOT_KEY_DISTINCT_MIN || repeats(key))
        return "is not random enough: it is easy to guess";
    return NULL;
}

struct known_key {
    struct hash_entry entry;
    struct sha256 hash;
    struct uuid id;
    uint64_t epoch; /* when it was read: another one means that it may have been revoked */
    enum role role;
    char tenant[TENANT_ID_MAX + 1];
    char actor[API_KEY_PREFIX_LEN + 8]; /* "key:PREFIX" */
    int64_t last_noted_ms;
};

struct auth {
    const struct env *env;
    bool has_root;
    struct sha256 root_hash;
    struct login_throttle throttle;
    struct hash_map known; /* keys that were checked lately, by the hash of the key */
    struct key_use uses[USES_MAX];
    size_t use_count;
};

struct auth *auth_new(const struct env *env, struct str root_key)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    if (auth == NULL)
        return NULL;
    auth->env = env;
    auth->has_root = root_key.len > 0;
    if (auth->has_root)
        auth->root_hash = sha256_of(root_key);
    return auth;
}

static struct known_key *known_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct known_key, entry);
}

static void forget(struct auth *auth, struct known_key *k)
{
    hash_map_remove(&auth->known, &k->entry);
    free(k);
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    HASH_MAP_WALK (&auth->known, e)
        forget(auth, known_of(e));
    hash_map_release(&auth->known);
    free(auth);
}

/* Any eight bytes of a hash are a hash. */
static uint64_t short_hash(const struct sha256 *hash)
{
    uint64_t head;
    memcpy(&head, hash->bytes, sizeof(head));
    return head;
}

struct lookup {
    const struct sha256 *hash;
    struct known_key *found; /* owned until it is put into the cache */
    bool no_memory;
};

static void take_row(void *ctx, const struct api_key *row)
{
    struct lookup *l = ctx;
    if (!sha256_eq(&row->hash, l->hash) || row->revoked_at >= 0)
        return;
    struct known_key *k = calloc(1, sizeof(*k));
    l->no_memory = k == NULL;
    if (k == NULL)
        return;
    k->hash = row->hash;
    k->id = row->id;
    k->role = row->role;
    k->last_noted_ms = row->last_used_at;
    (void)snprintf(k->tenant, sizeof(k->tenant), "%.*s", STR_ARG(row->tenant_id));
    (void)snprintf(k->actor, sizeof(k->actor), "key:%.*s", STR_ARG(row->prefix));
    l->found = k;
}

static void note_use(struct auth *auth, struct known_key *k)
{
    int64_t now = env_now_ms(auth->env);
    if (now - k->last_noted_ms < LAST_USED_GRAIN_MS || auth->use_count == USES_MAX)
        return;
    k->last_noted_ms = now;
    auth->uses[auth->use_count++] = (struct key_use){k->id, now};
}

static struct known_key *cached(struct auth *auth, const struct sha256 *hash)
{
    struct hash_entry *e = hash_map_find(&auth->known, short_hash(hash));
    while (e != NULL && !sha256_eq(&known_of(e)->hash, hash))
        e = hash_map_find_next(e);
    return e != NULL ? known_of(e) : NULL;
}

static enum err load(struct auth *auth, struct db *reader, uint64_t epoch, struct str key,
                     const struct sha256 *hash, struct known_key **ret)
{
    struct lookup l = {.hash = hash};
    struct str prefix;
    if (!api_key_prefix(key, &prefix))
        return ERR_OK;
    enum err e = keys_find_prefix(reader, prefix, take_row, &l);
    if (e != ERR_OK)
        return e;
    if (l.found == NULL)
        return l.no_memory ? ERR_NO_MEMORY : ERR_OK;
    if (auth->known.count == AUTH_CACHE_MAX)
        forget(auth, known_of(auth->known.oldest));
    l.found->epoch = epoch;
    hash_map_add(&auth->known, &l.found->entry, short_hash(hash));
    *ret = l.found;
    return ERR_OK;
}

/* A key that was somebody's a moment ago is looked up whatever its address has sent: where many
 * share one address, none of them can lock out the others. */
static enum err find_key(struct auth *auth, const struct auth_question *q,
                         const struct sha256 *hash, struct problem *p, struct known_key **ret)
{
    struct known_key *known = cached(auth, hash);
    bool was_known = known != NULL;
    if (was_known && known->epoch == q->epoch) {
        hash_map_touch(&auth->known, &known->entry);
        *ret = known;
        return ERR_OK;
    }
    if (was_known)
        forget(auth, known);
    int64_t now_ms = env_now_ms(auth->env);
    int64_t wait_ms = 0;
    if (!was_known && q->peer.ptr != NULL)
        wait_ms = login_throttle_wait_ms(&auth->throttle, q->peer, now_ms);
    if (wait_ms > 0) {
        p->retry_after_s = (int)((wait_ms + 999) / 1000);
        return problem_set(p, ERR_LOGIN_THROTTLED,
                           "Wait before you try another API key from this address.");
    }
    enum err e = load(auth, q->reader(q->reader_ctx), q->epoch, q->key, hash, ret);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot check the API key");
    if (*ret == NULL && q->peer.ptr != NULL)
        login_throttle_failed(&auth->throttle, q->peer, now_ms);
    return *ret != NULL ? ERR_OK : problem_set(p, ERR_UNAUTHENTICATED, "The API key is not valid");
}

enum err auth_check(struct auth *auth, const struct auth_question *q, struct problem *p,
                    struct auth_identity *ret)
{
    if (q->key.len == 0 || q->key.len >= API_KEY_TEXT_MAX)
        return problem_set(p, ERR_UNAUTHENTICATED, "The API key is not valid");
    struct sha256 hash = sha256_of(q->key);
    if (auth->has_root && sha256_eq(&hash, &auth->root_hash)) {
        *ret = (struct auth_identity){STR("*"), ROLE_ADMIN, STR("root")};
        return ERR_OK;
    }
    struct known_key *k = NULL;
    enum err e = find_key(auth, q, &hash, p, &k);
    if (e != ERR_OK || k == NULL)
        return e;
    note_use(auth, k);
    *ret = (struct auth_identity){str_of(k->tenant), k->role, str_of(k->actor)};
    return ERR_OK;
}

size_t auth_take_uses(struct auth *auth, struct key_use *out, size_t max)
{
    size_t count = MIN(auth->use_count, max);
    memcpy(out, auth->uses, count * sizeof(*out));
    memmove(auth->uses, auth->uses + count, (auth->use_count - count) * sizeof(*out));
    auth->use_count -= count;
    return count;
}
