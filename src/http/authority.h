/* The syntax of Host and of the authority in a request target: RFC 9110 7.2, RFC 3986 3.2. */
#ifndef PAWL_HTTP_AUTHORITY_H
#define PAWL_HTTP_AUTHORITY_H

#include "base/str.h"

/* uri-host [":" port], with a host that is not empty, without user information, and a port that a
 * socket can have. */
bool authority_ok(struct str text);

#endif
