/* A problem as problem+json. */
#ifndef PAWL_HTTP_PROBLEM_REPLY_H
#define PAWL_HTTP_PROBLEM_REPLY_H

#include "http/http.h"

void problem_put_json(struct buf *out, const struct problem *p, struct str trace_id);

#endif
