/* What an ID token says, and who that is here. Pure. */
#ifndef PAWL_DOMAIN_OIDC_CLAIMS_H
#define PAWL_DOMAIN_OIDC_CLAIMS_H

#include "base/json_tree.h"
#include "domain/session.h"

/* Names of claims may be paths: realm_access.roles. */
struct oidc_rules {
    struct str actor_claim;
    struct str role_claim;
    struct str role_map;     /* GROUP=ROLE,GROUP=ROLE; ptr NULL: groups have the names of roles */
    struct str tenant_claim; /* ptr NULL: `tenant` for all */
    struct str tenant;
};

/* What must be in the token. */
struct oidc_expected {
    struct str issuer;
    struct str client_id;
    struct str nonce;
    int64_t now_s;
};

/* A fault of the rules, for the command line; NULL: they are right. */
const char *oidc_rules_fault(const struct oidc_rules *rules);

/* ERR_UNAUTHENTICATED when the token is for another, of another time or of another sign-in. */
MUST_CHECK enum err oidc_claims_check(const json_t *claims, const struct oidc_expected *expected,
                                      struct problem *p);
/* Role, tenant and actor. ERR_FORBIDDEN when the claims give no role or no valid tenant. */
MUST_CHECK enum err oidc_claims_person(const json_t *claims, const struct oidc_rules *rules,
                                       struct problem *p, struct session *ret);

#endif
