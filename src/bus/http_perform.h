/* Makes one outgoing HTTP call on the calling thread, which waits for it. The same rules as those
 * of an http_caller. For threads that have nothing else to do. */
#ifndef PAWL_BUS_HTTP_PERFORM_H
#define PAWL_BUS_HTTP_PERFORM_H

#include "bus/http_call.h"
#include "domain/address.h"

/* Returns when the call has ended. */
void http_call_perform(struct http_call *call, enum address_reach reach);

#endif
