/* The one reader of requests: checks what a route's table of parameters declares, and fills the
 * route's input. Anything that the table does not name is refused. */
#ifndef PAWL_API_PARAMS_H
#define PAWL_API_PARAMS_H

#include "api/call.h"

/* The query: on the loop, before anything else. */
MUST_CHECK enum err params_read_query(struct call *c);
/* Path, headers, and the body that was parsed. On the loop or, for a large body, on its thread. */
MUST_CHECK enum err params_read_path(struct call *c);
MUST_CHECK enum err params_read_headers(struct call *c);
MUST_CHECK enum err params_read_body(struct call *c);

/* For take functions: the members of an object that is inside the body, into a struct of its own.
 * `object` must be one. */
void params_read_members(struct call *c, struct fields *f, const struct json *object,
                         const struct param *params, size_t count, void *input);
/* The member of the body, as it is, says no more than its absence would. */
void params_is_default(struct call *c, const char *name);

#endif
