/* libnats as the server calls it (linked with --wrap). While something fails, streams are waited
 * for more briefly than the server does, so that a test need not sit it out. */
#include "fault.h"

#include <nats/nats.h>

enum { WAIT_MS = 300 };

#define WRAP(failure, name, params, args) \
    natsStatus __real_##name params;      \
    natsStatus __wrap_##name params;      \
    natsStatus __wrap_##name params       \
    {                                     \
        if (fault_due(FAULT_NATS))        \
            return failure;               \
        return __real_##name args;        \
    }

WRAP(NATS_NO_MEMORY, natsOptions_Create, (natsOptions * *ret), (ret))
WRAP(NATS_NO_MEMORY, natsOptions_SetServers,
     (natsOptions * options, const char **servers, int count), (options, servers, count))
WRAP(NATS_NO_MEMORY, natsOptions_SetName, (natsOptions * options, const char *name),
     (options, name))
WRAP(NATS_INVALID_ARG, natsOptions_SetAllowReconnect, (natsOptions * options, bool allow),
     (options, allow))
WRAP(NATS_INVALID_ARG, natsOptions_SetPingInterval, (natsOptions * options, int64_t ms),
     (options, ms))
WRAP(NATS_INVALID_ARG, natsOptions_SetSendAsap, (natsOptions * options, bool asap), (options, asap))
WRAP(NATS_NO_MEMORY, natsOptions_SetErrorHandler,
     (natsOptions * options, natsErrHandler on_error, void *ctx), (options, on_error, ctx))
WRAP(NATS_NO_SERVER, natsConnection_Connect, (natsConnection * *ret, natsOptions *options),
     (ret, options))
WRAP(NATS_NO_MEMORY, natsConnection_SubscribeSync,
     (natsSubscription * *ret, natsConnection *conn, const char *subject), (ret, conn, subject))
WRAP(NATS_IO_ERROR, natsConnection_PublishMsg, (natsConnection * conn, natsMsg *msg), (conn, msg))
WRAP(NATS_NO_MEMORY, natsInbox_Create, (natsInbox * *ret), (ret))
WRAP(NATS_NO_MEMORY, natsMsg_Create,
     (natsMsg * *ret, const char *subject, const char *reply, const char *data, int len),
     (ret, subject, reply, data, len))
WRAP(NATS_NO_MEMORY, natsMsgHeader_Set, (natsMsg * msg, const char *key, const char *value),
     (msg, key, value))
WRAP(NATS_SLOW_CONSUMER, natsSubscription_NextMsg,
     (natsMsg * *ret, natsSubscription *sub, int64_t ms), (ret, sub, ms))
WRAP(NATS_TIMEOUT, js_GetStreamInfo,
     (jsStreamInfo * *ret, jsCtx *js, const char *stream, jsOptions *options, jsErrCode *code),
     (ret, js, stream, options, code))
WRAP(NATS_TIMEOUT, js_AddStream,
     (jsStreamInfo * *ret, jsCtx *js, jsStreamConfig *config, jsOptions *options, jsErrCode *code),
     (ret, js, config, options, code))

WRAP(NATS_INVALID_ARG, natsOptions_SetTimeout, (natsOptions * options, int64_t ms), (options, ms))

natsStatus __real_natsConnection_JetStream(jsCtx **ret, natsConnection *conn, jsOptions *options);
natsStatus __wrap_natsConnection_JetStream(jsCtx **ret, natsConnection *conn, jsOptions *options);
natsStatus __wrap_natsConnection_JetStream(jsCtx **ret, natsConnection *conn, jsOptions *options)
{
    if (fault_armed())
        options->Wait = WAIT_MS;
    return fault_due(FAULT_NATS) ? NATS_NO_MEMORY
                                 : __real_natsConnection_JetStream(ret, conn, options);
}
