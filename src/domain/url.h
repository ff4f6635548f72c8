/* Which URLs the server may call, whatever their host resolves to. Pure. */
#ifndef PAWL_DOMAIN_URL_H
#define PAWL_DOMAIN_URL_H

#include "base/str.h"

/* Why the server does not call this URL, as the end of a sentence that begins with the URL; NULL:
 * it may be called. Accepts no URL that libcurl refuses for its form. */
const char *url_fault(struct str url);

#endif
