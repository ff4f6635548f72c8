/* libcurl as the server calls it (linked with --wrap). Left out are calls that cannot fail with the
 * arguments they get: clean-ups, curl_easy_getinfo(), curl_multi_remove_handle(). */
#include "fault.h"

#include <curl/curl.h>
#include <stdarg.h>

#undef curl_easy_setopt
#undef curl_multi_setopt

#define WRAP(type, failure, name, params, args) \
    type __real_##name params;                  \
    type __wrap_##name params;                  \
    type __wrap_##name params                   \
    {                                           \
        if (fault_due(FAULT_CURL))              \
            return failure;                     \
        return __real_##name args;              \
    }

/* The third argument is a long, an offset or a pointer: one machine word in each case. */
#define WRAP_OPTION(type, failure, name, handle, option)                     \
    type __real_##name(handle *h, option o, void *value);                    \
    type __wrap_##name(handle *h, option o, ...);                            \
    type __wrap_##name(handle *h, option o, ...)                             \
    {                                                                        \
        va_list args;                                                        \
        va_start(args, o);                                                   \
        void *value = va_arg(args, void *);                                  \
        va_end(args);                                                        \
        return fault_due(FAULT_CURL) ? failure : __real_##name(h, o, value); \
    }

WRAP(CURLcode, CURLE_FAILED_INIT, curl_global_init, (long flags), (flags))
WRAP(CURLM *, NULL, curl_multi_init, (void), ())
WRAP_OPTION(CURLMcode, CURLM_OUT_OF_MEMORY, curl_multi_setopt, CURLM, CURLMoption)
WRAP(CURLMcode, CURLM_OUT_OF_MEMORY, curl_multi_add_handle, (CURLM * multi, CURL *easy),
     (multi, easy))
WRAP(CURLMcode, CURLM_OUT_OF_MEMORY, curl_multi_perform, (CURLM * multi, int *running),
     (multi, running))
WRAP(CURLMcode, CURLM_OUT_OF_MEMORY, curl_multi_poll,
     (CURLM * multi, struct curl_waitfd *fds, unsigned count, int ms, int *ret),
     (multi, fds, count, ms, ret))
WRAP(CURL *, NULL, curl_easy_init, (void), ())
WRAP_OPTION(CURLcode, CURLE_OUT_OF_MEMORY, curl_easy_setopt, CURL, CURLoption)
WRAP(CURLU *, NULL, curl_url, (void), ())
WRAP(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_set,
     (CURLU * url, CURLUPart part, const char *text, unsigned flags), (url, part, text, flags))
WRAP(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_get,
     (const CURLU *url, CURLUPart part, char **ret, unsigned flags), (url, part, ret, flags))
WRAP(struct curl_slist *, NULL, curl_slist_append, (struct curl_slist * list, const char *line),
     (list, line))
