/* Who sends a request, and whether they may. */
#ifndef PAWL_API_CALLER_H
#define PAWL_API_CALLER_H

#include "api/call.h"

/* With --dev: refuses requests that another web site may have made a browser send. */
MUST_CHECK enum err caller_check_origin(struct call *c);
/* Fills op.caller from the API key and the headers, unless the route is open to everybody. */
MUST_CHECK enum err caller_identify(struct call *c);
/* Checks what the route asks of op.caller. */
MUST_CHECK enum err caller_authorize(struct call *c);

/* For a sign-in: refuses a page of another site. */
MUST_CHECK enum err caller_check_sign_in(struct call *c);
/* Fills op.caller with the owner of an API key, as if the request had been sent with it. */
MUST_CHECK enum err caller_identify_key(struct call *c, struct str key, struct auth_identity *ret);

/* Grows with every change of any key, as engine_auth_epoch(). */
uint64_t caller_epoch(const struct api *api);
/* False: the key was revoked, or the session ended, after the request came. Ask before a request
 * that waits, or an answer that goes on, is given anything. */
bool caller_key_holds(struct call *c);
/* Sets the problem that such a request is answered with. */
enum err caller_revoked(struct call *c);

#endif
