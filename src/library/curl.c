/* libcurl, loaded when it is first needed. */
#include "library/curl_functions.h"
#include "library/stub.h"

#include <stdarg.h>

static struct {
    CURL_FUNCTIONS(LIBRARY_SLOT, LIBRARY_SLOT, LIBRARY_SLOT)
} loaded;

static const struct library_function FUNCTIONS[] = {
    CURL_FUNCTIONS(LIBRARY_ROW, LIBRARY_ROW, LIBRARY_ROW)};

LIBRARY_DEFINE(LIBCURL, FUNCTIONS);

#define BY_HAND(type, name, params, args)
CURL_FUNCTIONS(LIBRARY_FUNCTION, LIBRARY_CLEANUP, BY_HAND)

/* What an option takes is told by its number: a long, an offset, or else a pointer. */
#define SET_OPTION(function, handle, option, args)                                           \
    ((option) < CURLOPTTYPE_OBJECTPOINT ? (function)((handle), (option), va_arg(args, long)) \
     : (option) >= CURLOPTTYPE_OFF_T && (option) < CURLOPTTYPE_BLOB                          \
         ? (function)((handle), (option), va_arg(args, curl_off_t))                          \
         : (function)((handle), (option), va_arg(args, void *)))

LIBRARY_STUB CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;
    va_start(args, option);
    assert(loaded.curl_easy_setopt != NULL);
    CURLcode code = SET_OPTION(loaded.curl_easy_setopt, easy, option, args);
    va_end(args);
    return code;
}

LIBRARY_STUB CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    va_list args;
    va_start(args, option);
    assert(loaded.curl_multi_setopt != NULL);
    CURLMcode code = SET_OPTION(loaded.curl_multi_setopt, multi, option, args);
    va_end(args);
    return code;
}

LIBRARY_STUB CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list args;
    va_start(args, info);
    void *ret = va_arg(args, void *);
    va_end(args);
    assert(loaded.curl_easy_getinfo != NULL);
    return loaded.curl_easy_getinfo(easy, info, ret);
}
