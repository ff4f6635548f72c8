/* The session of a person in a browser, as text that the browser keeps in a cookie. Pure.
 *
 * The text holds everything and is signed, so there is no row for a session: it is
 * base64url(BODY).base64url(HMAC-SHA-256 of BODY), under a random key that stays in the store. A
 * session stands for an API key, and is worth what that key is worth when it is used; or for a
 * person whom an OpenID provider has named. */
#ifndef PAWL_DOMAIN_SESSION_H
#define PAWL_DOMAIN_SESSION_H

#include "base/buf.h"
#include "base/env.h"
#include "base/limits.h"
#include "domain/role.h"

enum session_kind {
    SESSION_OF_KEY = 'k',    /* key_id; of the root key: what its hash makes of it */
    SESSION_OF_PERSON = 'p', /* tenant, role and actor */
};

struct session {
    enum session_kind kind;
    struct uuid id; /* its own, by which it is ended early */
    int64_t expires_at;
    struct uuid key_id;
    enum role role;
    char tenant[TENANT_ID_MAX + 1]; /* "*": all */
    char actor[ACTOR_MAX + 1];
};

/* Signs it; ask buf_ok(). */
void session_put(struct buf *out, const struct session *session, struct str secret);
/* False when the text was not made by session_put() with this secret. It may have expired. */
MUST_CHECK bool session_read(struct str text, struct str secret, struct session *ret);

#endif
