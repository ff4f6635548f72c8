/* The provider itself, as its documents describe it: endpoints, keys, and the exchange of a code.
 * Waits for the network; used by one thread (oidc.c). */
#ifndef PAWL_OUTBOUND_OIDC_PROVIDER_H
#define PAWL_OUTBOUND_OIDC_PROVIDER_H

#include "outbound/oidc_question.h"

struct oidc_provider {
    const struct oidc_config *config;
    json_t *document; /* its discovery document; NULL: not read yet */
    json_t *keys;     /* its JWK set; NULL: not read yet */
    int64_t document_until_ms;
    int64_t keys_until_ms;
    int64_t deadline_ms;        /* of the question that is being answered */
    int64_t keys_rest_until_ms; /* unknown keys are no reason to read them again before */
};

void oidc_provider_release(struct oidc_provider *provider);
/* Answers one question. */
void oidc_provider_answer(struct oidc_provider *provider, struct oidc_question *q);

#endif
