/* From the bytes of a request to what the engine is asked: its idempotency key, its body, its
 * fingerprint. The body is parsed once; input and fingerprint come from the same parse. */
#ifndef PAWL_API_BODY_H
#define PAWL_API_BODY_H

#include "api/call.h"

/* Reads all that the engine needs and calls then(): at once, or later if the body is large. When
 * the engine refuses to take a large body, op.done() is called instead. */
typedef void body_read_fn(struct call *c, enum err e);
void body_read(struct call *c, body_read_fn *then);
void body_free(struct call *c);

#endif
