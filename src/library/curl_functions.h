/* The functions of libcurl that pawl uses: X(type, name, parameters, arguments), C for those that
 * clean up, V for those with a variable argument, which curl.c defines by hand. */
#ifndef PAWL_LIBRARY_CURL_FUNCTIONS_H
#define PAWL_LIBRARY_CURL_FUNCTIONS_H

#include <curl/curl.h>

/* Macros of the same names check the types of callers. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

/* clang-format off */

/* Newer versions of libcurl promise not to change the URL. */
typedef __typeof__(_Generic(&curl_url_get,
    CURLUcode (*)(const CURLU *, CURLUPart, char **, unsigned): (const CURLU *)NULL,
    default: (CURLU *)NULL)) curl_url_to_read;

#define CURL_FUNCTIONS(X, C, V)                                                                    \
    X(CURLcode, curl_global_init, (long flags), (flags))                                           \
    C(void, curl_global_cleanup, (void), ())                                                       \
    C(void, curl_free, (void *p), (p))                                                             \
    X(struct curl_slist *, curl_slist_append, (struct curl_slist *list, const char *line), (list, line)) \
    C(void, curl_slist_free_all, (struct curl_slist *list), (list))                                \
    X(CURL *, curl_easy_init, (void), ())                                                          \
    C(void, curl_easy_cleanup, (CURL *easy), (easy))                                               \
    V(CURLcode, curl_easy_setopt, , )                                                              \
    V(CURLcode, curl_easy_getinfo, , )                                                             \
    X(CURLcode, curl_easy_perform, (CURL *easy), (easy))                                           \
    X(CURLcode, curl_easy_pause, (CURL *easy, int flags), (easy, flags))                           \
    X(CURLHcode, curl_easy_header, (CURL *easy, const char *name, size_t index, unsigned origin, int request, struct curl_header **ret), (easy, name, index, origin, request, ret)) \
    X(const char *, curl_easy_strerror, (CURLcode code), (code))                                   \
    X(CURLM *, curl_multi_init, (void), ())                                                        \
    X(CURLMcode, curl_multi_cleanup, (CURLM *multi), (multi))                                      \
    V(CURLMcode, curl_multi_setopt, , )                                                            \
    X(CURLMcode, curl_multi_add_handle, (CURLM *multi, CURL *easy), (multi, easy))                 \
    X(CURLMcode, curl_multi_remove_handle, (CURLM *multi, CURL *easy), (multi, easy))              \
    X(CURLMcode, curl_multi_perform, (CURLM *multi, int *running), (multi, running))               \
    X(CURLMcode, curl_multi_poll, (CURLM *multi, struct curl_waitfd *fds, unsigned count, int ms, int *ret), (multi, fds, count, ms, ret)) \
    X(CURLMcode, curl_multi_wakeup, (CURLM *multi), (multi))                                       \
    X(CURLMcode, curl_multi_assign, (CURLM *multi, curl_socket_t fd, void *of), (multi, fd, of))   \
    X(CURLMcode, curl_multi_socket_action, (CURLM *multi, curl_socket_t fd, int events, int *running), (multi, fd, events, running)) \
    X(CURLMsg *, curl_multi_info_read, (CURLM *multi, int *left), (multi, left))                   \
    X(const char *, curl_multi_strerror, (CURLMcode code), (code))                                 \
    X(CURLU *, curl_url, (void), ())                                                               \
    C(void, curl_url_cleanup, (CURLU *url), (url))                                                 \
    X(CURLUcode, curl_url_set, (CURLU *url, CURLUPart part, const char *text, unsigned flags), (url, part, text, flags)) \
    X(CURLUcode, curl_url_get, (curl_url_to_read url, CURLUPart part, char **ret, unsigned flags), (url, part, ret, flags))
/* clang-format on */

#endif
