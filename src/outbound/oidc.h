/* The client of an OpenID provider (OpenID Connect Core 1.0, code flow with PKCE): finds out where
 * to send people, exchanges the code that they come back with, and says who they are.
 *
 *   oidc_submit() ──▶ at most OIDC_WAITING_MAX ──▶ a thread of its own ──▶ oidc_collect() ──▶
 * done()
 *
 * The thread waits for the provider, one request at a time, and checks signatures; nothing else in
 * the server waits for it. Endpoints and keys are kept for OIDC_KEPT_MS; keys are also read again
 * when a token names one that is not known, at most every OIDC_KEYS_REST_MS.
 *
 * On the HTTP loop's thread only. */
#ifndef PAWL_OUTBOUND_OIDC_H
#define PAWL_OUTBOUND_OIDC_H

#include "outbound/oidc_question.h"

struct oidc;

/* The thread starts with the first question. NULL: out of memory. */
MUST_CHECK struct oidc *oidc_new(const struct oidc_config *config);
/* No question may be under way. */
void oidc_free(struct oidc *o);

/* False when too many wait, or the thread could not be started: done() is not called. */
MUST_CHECK bool oidc_submit(struct oidc *o, struct oidc_question *q);
/* Calls done() of the questions that are answered. Accepts NULL. */
void oidc_collect(struct oidc *o);
/* From now on questions that the provider was not asked yet are refused. Accepts NULL. */
void oidc_drain(struct oidc *o);
/* No question is under way. Accepts NULL. */
bool oidc_idle(const struct oidc *o);

/* Puts the URL at the authorization endpoint that a person is sent to. */
void oidc_put_request(const struct oidc *o, struct str endpoint, const struct oidc_words *words,
                      struct buf *out);

const struct oidc_config *oidc_config_of(const struct oidc *o);

#endif
