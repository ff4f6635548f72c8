/* A question to an OpenID provider, and what must be known of it to ask one. */
#ifndef PAWL_OUTBOUND_OIDC_QUESTION_H
#define PAWL_OUTBOUND_OIDC_QUESTION_H

#include "base/env.h"
#include "base/problem.h"
#include "domain/address.h"
#include "domain/oidc/claims.h"
#include "domain/oidc/flow.h"

/* What a redirect URI ends with. */
#define OIDC_CALLBACK_PATH "/api/v1/oidc-callback"

/* Texts outlive it. */
struct oidc_config {
    struct str issuer;
    struct str client_id;
    struct str client_secret; /* ptr NULL: none, the client is a public one */
    struct str redirect_uri;
    struct str scope;
    struct oidc_rules rules;
    enum address_reach reach;
    const struct env *env;
    int event_fd; /* written when oidc_collect() has something to do */
};

/* One question to it. Everything belongs to the caller and stays valid until done(). */
struct oidc_question {
    /* Set: exchange this code. ptr NULL: where are people sent to? */
    struct str code;
    struct str verifier;
    struct str nonce;
    void (*done)(struct oidc_question *q);
    void *owner;

    /* The answer. */
    enum err err;
    struct problem problem;
    struct session person; /* of a code: tenant, role, actor */
    struct buf endpoint;   /* otherwise: the authorization endpoint */

    struct oidc_question *next;
};

void oidc_question_init(struct oidc_question *q);
void oidc_question_release(struct oidc_question *q);

#endif
