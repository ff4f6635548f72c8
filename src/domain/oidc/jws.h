/* Signatures of JSON Web Tokens: RS256 and ES256, which the token's header names and a key of the
 * provider proves. Everything else, `none` first of all, is refused. Without I/O; the signature is
 * checked by OpenSSL. */
#ifndef PAWL_DOMAIN_OIDC_JWS_H
#define PAWL_DOMAIN_OIDC_JWS_H

#include "base/json_tree.h"

enum jws_verdict {
    JWS_OK,
    JWS_UNKNOWN_KEY, /* the set has no key that may have signed it: it may be an old one */
    JWS_REFUSED,
};

/* Is `token`, in the compact form, signed by a key of the set (RFC 7517)? *ret_payload is the
 * payload, an object, which the caller owns; otherwise *ret_why says why not. */
MUST_CHECK enum jws_verdict jws_verify(struct str token, const json_t *keys, json_t **ret_payload,
                                       const char **ret_why);

#endif
