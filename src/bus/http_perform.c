/* Makes one outgoing HTTP call on the calling thread. */
#include "bus/http_perform.h"

#include "base/env.h"
#include "bus/transfer.h"
#include "library/library.h"

void http_call_perform(struct http_call *call, enum address_reach reach)
{
    struct transfer t;
    char why[LIBRARY_WHY_MAX];
    if (!library_load(&LIBCURL, why)) {
        http_call_end(call, CALL_FAILED, "%s", why);
        return;
    }
    call->deadline_ms = env_mono_ms(&ENV_SYSTEM) + call->request.timeout_ms;
    bool goes_on = transfer_begin(&t, call, reach);
    while (goes_on)
        goes_on = transfer_goes_on(&t, curl_easy_perform(t.easy));
    (void)transfer_release(&t);
}
