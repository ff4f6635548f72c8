/* Checks API keys and sessions, with a cache of the most recent keys. */
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
    struct sha256 hash; /* of its text, or of its id: see hash_of_id() */
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
    struct sessions *sessions;
    struct session person; /* whose session was checked last */
    struct login_throttle throttle;
    struct hash_map known; /* keys that were checked lately, by the hash of the key */
    struct key_use uses[USES_MAX];
    size_t use_count;
};

struct auth *auth_new(const struct env *env, struct str root_key, struct sessions *sessions)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    if (auth == NULL)
        return NULL;
    auth->env = env;
    auth->sessions = sessions;
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
    bool by_id;
    struct known_key *found; /* owned until it is put into the cache */
    bool no_memory;
};

static void take_row(void *ctx, const struct api_key *row)
{
    struct lookup *l = ctx;
    if (row->revoked_at >= 0 || (!l->by_id && !sha256_eq(&row->hash, l->hash)))
        return;
    struct known_key *k = calloc(1, sizeof(*k));
    l->no_memory = k == NULL;
    if (k == NULL)
        return;
    k->hash = *l->hash;
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

/* *ret stays as it is when nothing was found. */
static enum err keep(struct auth *auth, const struct lookup *l, uint64_t epoch,
                     struct known_key **ret)
{
    if (l->found == NULL)
        return l->no_memory ? ERR_NO_MEMORY : ERR_OK;
    if (auth->known.count == AUTH_CACHE_MAX)
        forget(auth, known_of(auth->known.oldest));
    l->found->epoch = epoch;
    hash_map_add(&auth->known, &l->found->entry, short_hash(l->hash));
    *ret = l->found;
    return ERR_OK;
}

static enum err load(struct auth *auth, const struct auth_question *q, const struct sha256 *hash,
                     struct known_key **ret)
{
    struct lookup l = {.hash = hash};
    struct str prefix;
    if (!api_key_prefix(q->key, &prefix))
        return ERR_OK;
    enum err e = keys_find_prefix(q->reader(q->reader_ctx), prefix, take_row, &l);
    return e == ERR_OK ? keep(auth, &l, q->epoch, ret) : e;
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
    enum err e = load(auth, q, hash, ret);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot check the API key");
    if (*ret == NULL && q->peer.ptr != NULL)
        login_throttle_failed(&auth->throttle, q->peer, now_ms);
    return *ret != NULL ? ERR_OK : problem_set(p, ERR_UNAUTHENTICATED, "The API key is not valid");
}

/* A session of the root key names it by this instead of an id: it ends when the key is another. */
static struct uuid root_id(const struct auth *auth)
{
    const struct str parts[] = {STR("root"),
                                {(const char *)auth->root_hash.bytes, sizeof(auth->root_hash)}};
    struct sha256 mac = hmac_sha256(sessions_secret(auth->sessions), parts, ARRAY_LEN(parts));
    struct uuid id;
    memcpy(id.bytes, mac.bytes, sizeof(id.bytes));
    return id;
}

static struct auth_identity root_identity(const struct auth *auth)
{
    return (struct auth_identity){STR("*"), ROLE_ADMIN, STR("root"), root_id(auth), INT64_MAX};
}

static struct auth_identity identity_of(struct auth *auth, struct known_key *k)
{
    note_use(auth, k);
    return (struct auth_identity){str_of(k->tenant), k->role, str_of(k->actor), k->id, INT64_MAX};
}

enum err auth_check(struct auth *auth, const struct auth_question *q, struct problem *p,
                    struct auth_identity *ret)
{
    if (q->key.len == 0 || q->key.len >= API_KEY_TEXT_MAX)
        return problem_set(p, ERR_UNAUTHENTICATED, "The API key is not valid");
    struct sha256 hash = sha256_of(q->key);
    if (auth->has_root && sha256_eq(&hash, &auth->root_hash)) {
        *ret = root_identity(auth);
        return ERR_OK;
    }
    struct known_key *k = NULL;
    enum err e = find_key(auth, q, &hash, p, &k);
    if (e != ERR_OK || k == NULL)
        return e;
    *ret = identity_of(auth, k);
    return ERR_OK;
}

/* --- sessions --- */

/* Where the cache has a key that was looked up by its id. No text of a key has this hash. */
static struct sha256 hash_of_id(struct uuid id)
{
    const struct str parts[] = {STR("id of a key"), {(const char *)id.bytes, sizeof(id.bytes)}};
    return sha256_of_parts(parts, ARRAY_LEN(parts));
}

static enum err find_by_id(struct auth *auth, const struct auth_question *q, struct uuid id,
                           struct known_key **ret)
{
    struct sha256 hash = hash_of_id(id);
    struct known_key *known = cached(auth, &hash);
    if (known != NULL && known->epoch == q->epoch) {
        hash_map_touch(&auth->known, &known->entry);
        *ret = known;
        return ERR_OK;
    }
    if (known != NULL)
        forget(auth, known);
    struct lookup l = {.hash = &hash, .by_id = true};
    enum err e = keys_find_id(q->reader(q->reader_ctx), id, take_row, &l);
    return e == ERR_OK ? keep(auth, &l, q->epoch, ret) : e;
}

static enum err check_key_of_session(struct auth *auth, const struct auth_question *q,
                                     struct uuid id, struct problem *p, struct auth_identity *ret)
{
    struct known_key *k = NULL;
    if (auth->has_root && uuid_eq(id, root_id(auth))) {
        *ret = root_identity(auth);
        return ERR_OK;
    }
    enum err e = find_by_id(auth, q, id, &k);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot check the session");
    if (k == NULL)
        return problem_set(p, ERR_UNAUTHENTICATED,
                           "The API key of this session is not valid any more. Sign in again.");
    *ret = identity_of(auth, k);
    return ERR_OK;
}

enum err auth_check_session(struct auth *auth, const struct auth_question *q, struct problem *p,
                            struct auth_identity *ret)
{
    struct session session;
    enum err e = ERR_OK;
    if (q->key.len > SESSION_TEXT_MAX || !sessions_read(auth->sessions, q->key, &session))
        return problem_set(p, ERR_UNAUTHENTICATED, "The session has ended. Sign in again.");
    if (session.kind == SESSION_OF_KEY) {
        e = check_key_of_session(auth, q, session.key_id, p, ret);
    } else {
        auth->person = session;
        *ret = (struct auth_identity){.tenant = str_of(auth->person.tenant),
                                      .role = session.role,
                                      .actor = str_of(auth->person.actor)};
    }
    if (e == ERR_OK)
        ret->expires_at = session.expires_at;
    return e;
}

size_t auth_take_uses(struct auth *auth, struct key_use *out, size_t max)
{
    size_t count = MIN(auth->use_count, max);
    memcpy(out, auth->uses, count * sizeof(*out));
    memmove(auth->uses, auth->uses + count, (auth->use_count - count) * sizeof(*out));
    auth->use_count -= count;
    return count;
}

void auth_add_uses(struct auth *auth, const struct key_use *uses, size_t count)
{
    size_t room = MIN(count, USES_MAX - auth->use_count);
    memcpy(auth->uses + auth->use_count, uses, room * sizeof(*uses));
    auth->use_count += room;
}
