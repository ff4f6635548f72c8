/* The functions of libnats that pawl uses: X(type, name, parameters, arguments), C for those that
 * clean up. */
#ifndef PAWL_LIBRARY_NATS_FUNCTIONS_H
#define PAWL_LIBRARY_NATS_FUNCTIONS_H

#include <nats/nats.h>

/* clang-format off */
#define NATS_FUNCTIONS(X, C)                                                                       \
    X(natsStatus, nats_CloseAndWait, (int64_t ms), (ms))                                           \
    X(const char *, natsStatus_GetText, (natsStatus status), (status))                             \
    X(natsStatus, natsOptions_Create, (natsOptions **ret), (ret))                                  \
    C(void, natsOptions_Destroy, (natsOptions *options), (options))                                \
    X(natsStatus, natsOptions_SetServers, (natsOptions *options, const char **urls, int count), (options, urls, count)) \
    X(natsStatus, natsOptions_SetName, (natsOptions *options, const char *name), (options, name))  \
    X(natsStatus, natsOptions_SetTimeout, (natsOptions *options, int64_t ms), (options, ms))       \
    X(natsStatus, natsOptions_SetAllowReconnect, (natsOptions *options, bool on), (options, on))   \
    X(natsStatus, natsOptions_SetPingInterval, (natsOptions *options, int64_t ms), (options, ms))  \
    X(natsStatus, natsOptions_SetSendAsap, (natsOptions *options, bool on), (options, on))         \
    X(natsStatus, natsOptions_SetErrorHandler, (natsOptions *options, natsErrHandler handler, void *ctx), (options, handler, ctx)) \
    X(natsStatus, natsOptions_SetSecure, (natsOptions *options, bool on), (options, on))           \
    X(natsStatus, natsOptions_LoadCATrustedCertificates, (natsOptions *options, const char *path), (options, path)) \
    X(natsStatus, natsOptions_SetUserCredentialsFromFiles, (natsOptions *options, const char *path, const char *seed), (options, path, seed)) \
    X(natsStatus, natsConnection_Connect, (natsConnection **ret, natsOptions *options), (ret, options)) \
    C(void, natsConnection_Destroy, (natsConnection *conn), (conn))                                \
    X(bool, natsConnection_IsClosed, (natsConnection *conn), (conn))                               \
    X(natsStatus, natsConnection_SubscribeSync, (natsSubscription **ret, natsConnection *conn, const char *subject), (ret, conn, subject)) \
    X(natsStatus, natsConnection_PublishMsg, (natsConnection *conn, natsMsg *message), (conn, message)) \
    X(natsStatus, natsConnection_JetStream, (jsCtx **ret, natsConnection *conn, jsOptions *options), (ret, conn, options)) \
    C(void, natsSubscription_Destroy, (natsSubscription *sub), (sub))                              \
    X(natsStatus, natsSubscription_NextMsg, (natsMsg **ret, natsSubscription *sub, int64_t ms), (ret, sub, ms)) \
    X(natsStatus, natsInbox_Create, (natsInbox **ret), (ret))                                      \
    C(void, natsInbox_Destroy, (natsInbox *inbox), (inbox))                                        \
    X(natsStatus, natsMsg_Create, (natsMsg **ret, const char *subject, const char *reply, const char *data, int len), (ret, subject, reply, data, len)) \
    C(void, natsMsg_Destroy, (natsMsg *message), (message))                                        \
    X(natsStatus, natsMsgHeader_Set, (natsMsg *message, const char *key, const char *value), (message, key, value)) \
    X(const char *, natsMsg_GetSubject, (const natsMsg *message), (message))                       \
    X(const char *, natsMsg_GetData, (const natsMsg *message), (message))                          \
    X(int, natsMsg_GetDataLength, (const natsMsg *message), (message))                             \
    X(natsStatus, jsOptions_Init, (jsOptions *options), (options))                                 \
    X(natsStatus, jsStreamConfig_Init, (jsStreamConfig *config), (config))                         \
    X(natsStatus, js_AddStream, (jsStreamInfo **ret, jsCtx *js, jsStreamConfig *config, jsOptions *options, jsErrCode *ret_code), (ret, js, config, options, ret_code)) \
    X(natsStatus, js_GetStreamInfo, (jsStreamInfo **ret, jsCtx *js, const char *stream, jsOptions *options, jsErrCode *ret_code), (ret, js, stream, options, ret_code)) \
    C(void, jsStreamInfo_Destroy, (jsStreamInfo *info), (info))                                    \
    C(void, jsCtx_Destroy, (jsCtx *js), (js))
/* clang-format on */

#endif
