/* One sign-in at an OpenID provider, from the redirect there to the redirect back, as text that the
 * browser keeps in a cookie meanwhile. Pure.
 *
 * The text is signed as a session's is (domain/session.h). What must not be guessed or must stay
 * secret is made of the flow's random id under the server's secret, so it is not in the cookie:
 * state (the answer belongs to this browser), nonce (the token belongs to this sign-in), and the
 * code verifier of PKCE (the code is worth nothing to anybody else). */
#ifndef PAWL_DOMAIN_OIDC_FLOW_H
#define PAWL_DOMAIN_OIDC_FLOW_H

#include "base/buf.h"
#include "base/limits.h"

enum {
    FLOW_ID_LEN = 16,
    FLOW_WORD_LEN = 43, /* 32 bytes in base64url */
};

struct oidc_flow {
    unsigned char id[FLOW_ID_LEN]; /* random */
    int64_t expires_at;
    char return_to[OIDC_RETURN_MAX + 1]; /* below /console/ */
};

/* "runs/0190…?tab=x": a place below /console/, and nothing that could lead elsewhere. */
bool oidc_return_ok(struct str text);

/* Signs it; ask buf_ok(). */
void oidc_flow_put(struct buf *out, const struct oidc_flow *flow, struct str secret);
/* False when the text was not made by oidc_flow_put() with this secret. It may have expired. */
MUST_CHECK bool oidc_flow_read(struct str text, struct str secret, struct oidc_flow *ret);

/* What belongs to the flow, of FLOW_WORD_LEN characters. */
struct oidc_words {
    char state[FLOW_WORD_LEN + 1];
    char nonce[FLOW_WORD_LEN + 1];
    char verifier[FLOW_WORD_LEN + 1];
    char challenge[FLOW_WORD_LEN + 1]; /* of the verifier: S256 */
};
void oidc_flow_words(const struct oidc_flow *flow, struct str secret, struct oidc_words *ret);

#endif
