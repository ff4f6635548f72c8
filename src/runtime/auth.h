/* Whose API key it is (domain/api_key.h), and whose session (domain/session.h).
 *
 * The key's prefix finds its row; its SHA-256 is compared in constant time. Keys that were found
 * are cached, and looked up again when any key has changed. Used by the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_AUTH_H
#define PAWL_RUNTIME_AUTH_H

#include "core/txn/op.h"
#include "runtime/sessions.h"
#include "store/keys.h"

struct auth;

/* Why this cannot be the root key, which nothing but its length and its chance protect; NULL: it
 * can. */
const char *auth_root_key_fault(struct str key);

/* `root_key` may be empty; it is an admin of all tenants that is kept nowhere. `sessions` outlives
 * it. */
MUST_CHECK struct auth *auth_new(const struct env *env, struct str root_key,
                                 struct sessions *sessions);
void auth_free(struct auth *auth);

/* Gives a connection whose next query sees all that is committed by then; asked for only when the
 * cache does not know. */
typedef struct db *auth_reader(void *ctx);

struct auth_question {
    struct str key;  /* or the text of a session */
    struct str peer; /* whose failures count, see login_throttle.h; ptr NULL: nobody's */
    uint64_t epoch;  /* rises with every change of any key; read it first */
    auth_reader *reader;
    void *reader_ctx;
};

struct auth_identity {
    struct str tenant; /* "*": all */
    enum role role;
    struct str actor;   /* "key:PREFIX", "root", or the name of a person */
    struct uuid key_id; /* all zero: it is a person's session, and no key's */
    int64_t expires_at; /* of a session; INT64_MAX: of a key */
};

/* Whose key it is; `ret` borrows from the cache until the next call. ERR_UNAUTHENTICATED when it is
 * nobody's or revoked, ERR_LOGIN_THROTTLED when too many from that peer were and this one is not
 * known yet. */
MUST_CHECK enum err auth_check(struct auth *auth, const struct auth_question *q, struct problem *p,
                               struct auth_identity *ret);

/* The same of a session. Failures count for no peer: a signature cannot be guessed. */
MUST_CHECK enum err auth_check_session(struct auth *auth, const struct auth_question *q,
                                       struct problem *p, struct auth_identity *ret);

/* Takes up to `max` uses of keys that their rows do not know yet. */
size_t auth_take_uses(struct auth *auth, struct key_use *out, size_t max);
/* Adds uses that others have noted; those past what it keeps are forgotten. */
void auth_add_uses(struct auth *auth, const struct key_use *uses, size_t count);

#endif
