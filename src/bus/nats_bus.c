/* NATS JetStream as a bus.
 *
 * The library can reconnect by itself and buffer messages meanwhile. Both are off: after a lost
 * connection a new one is made, so that every connection has its streams checked, and the relay
 * sends again what was not acknowledged. */
#include "bus/nats_bus.h"

#include "base/env.h"
#include "base/json.h"
#include "base/log.h"
#include "library/library.h"

#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CONNECT_MS = 2000,
    REQUEST_MS = 5000,   /* for requests about streams */
    ACK_MS = 5000,       /* for a batch: a healthy server takes milliseconds */
    LOOK_UP_MS = 100,    /* how soon an interrupt is noticed */
    PING_MS = 10 * 1000, /* two pings without an answer end the connection */
    URL_MAX = 512,
    NANOS = 1000 * 1000 * 1000,
};

/* A stream that must be there. */
struct stream {
    const char *name;
    const char *subjects;
    jsRetentionPolicy retention;
};

static const struct stream EVENTS = {"PAWL", "pawl.>", js_LimitsPolicy};
static const struct stream JOBS = {"PAWL_JOBS", "pawl-jobs.>", js_WorkQueuePolicy};

struct nats_bus {
    struct bus bus;
    natsOptions *options;
    bool jobs;

    /* For the thread that publishes. */
    natsConnection *conn;
    natsSubscription *acks;
    natsInbox *inbox;
    unsigned long long round; /* to recognise late acknowledgements of earlier rounds */
    bool checked;             /* the streams are there */
    bool stores_nothing;      /* it answered, but has stored none of the last messages */

    atomic_bool interrupted;
    pthread_mutex_t lock; /* guards the state */
    struct bus_state state;
};

static struct nats_bus *of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct nats_bus, bus);
}

/* --- state --- */

static void set_state(struct nats_bus *b, bool ok, const char *detail)
{
    pthread_mutex_lock(&b->lock);
    bool news = ok != b->state.ok || strcmp(detail, b->state.detail) != 0;
    b->state.ok = ok;
    (void)snprintf(b->state.detail, sizeof(b->state.detail), "%s", detail);
    pthread_mutex_unlock(&b->lock);
    if (news)
        LOG(ok ? LOG_INFO : LOG_WARN, ok ? "the bus is connected" : "the bus is not usable",
            LOG_Z("why", detail));
}

static void get_state(struct bus *bus, struct bus_state *ret)
{
    struct nats_bus *b = of(bus);
    pthread_mutex_lock(&b->lock);
    *ret = b->state;
    pthread_mutex_unlock(&b->lock);
}

/* Called on a thread of the library for errors such as a subject that is not permitted. */
static void on_error(natsConnection *conn, natsSubscription *sub, natsStatus status, void *ctx)
{
    (void)conn;
    (void)sub;
    (void)ctx;
    LOG(LOG_WARN, "the bus reported an error", LOG_Z("why", natsStatus_GetText(status)));
}

/* --- connecting --- */

static void disconnect(struct nats_bus *b)
{
    natsSubscription_Destroy(b->acks);
    natsInbox_Destroy(b->inbox);
    natsConnection_Destroy(b->conn);
    b->conn = NULL;
    b->acks = NULL;
    b->inbox = NULL;
    b->checked = b->stores_nothing = false;
}

static natsStatus subscribe_to_acks(struct nats_bus *b)
{
    char subject[128];
    natsStatus s = natsInbox_Create(&b->inbox);
    if (s != NATS_OK)
        return s;
    (void)snprintf(subject, sizeof(subject), "%s.*", b->inbox);
    return natsConnection_SubscribeSync(&b->acks, b->conn, subject);
}

static bool make_connection(struct nats_bus *b)
{
    natsStatus s = natsConnection_Connect(&b->conn, b->options);
    if (s == NATS_OK)
        s = subscribe_to_acks(b);
    if (s == NATS_OK)
        return true;
    char detail[BUS_WHY_MAX];
    (void)snprintf(detail, sizeof(detail), "not connected: %s", natsStatus_GetText(s));
    disconnect(b);
    set_state(b, false, detail);
    return false;
}

/* --- streams --- */

static bool takes(const jsStreamConfig *config, const char *subjects)
{
    for (int i = 0; i < config->SubjectsLen; i++) {
        if (strcmp(config->Subjects[i], subjects) == 0)
            return true;
    }
    return false;
}

/* NULL when the stream can be used; otherwise what is wrong with it. */
static const char *fault_of(const jsStreamConfig *config, const struct stream *want)
{
    if (!takes(config, want->subjects))
        return "takes other subjects";
    if (config->NoAck)
        return "acknowledges nothing (no_ack)";
    if (config->Sealed)
        return "is sealed";
    if (config->Retention != want->retention)
        return want->retention == js_WorkQueuePolicy ? "is not a work queue"
                                                     : "does not keep what was read";
    return NULL;
}

static natsStatus make_stream(jsCtx *js, const struct stream *want, jsErrCode *ret_code)
{
    jsStreamConfig config;
    const char *subjects[] = {want->subjects};
    natsStatus s = jsStreamConfig_Init(&config);
    if (s != NATS_OK)
        return s;
    config.Name = want->name;
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Retention = want->retention;
    config.Storage = js_FileStorage;
    config.Duplicates = (int64_t)NATS_DUPLICATES_S * NANOS;
    return js_AddStream(NULL, js, &config, NULL, ret_code);
}

static bool check_stream(struct nats_bus *b, jsCtx *js, const struct stream *want)
{
    jsStreamInfo *info = NULL;
    jsErrCode code = 0;
    char detail[BUS_WHY_MAX];
    natsStatus s = js_GetStreamInfo(&info, js, want->name, NULL, &code);
    const char *fault = s == NATS_OK ? fault_of(info->Config, want) : NULL;
    if (s == NATS_OK && info->Config->Duplicates < (int64_t)NATS_DUPLICATES_S * NANOS)
        LOG(LOG_WARN, "a stream forgets ids sooner than pawl's own would",
            LOG_Z("stream", want->name), LOG_N("window_s", info->Config->Duplicates / NANOS));
    jsStreamInfo_Destroy(info);
    if (s == NATS_NOT_FOUND)
        s = make_stream(js, want, &code);
    if (s == NATS_OK && fault == NULL)
        return true;
    if (fault != NULL)
        (void)snprintf(detail, sizeof(detail), "the stream %s is there, but %s", want->name, fault);
    else if (code == JSStreamSubjectOverlapErr)
        (void)snprintf(detail, sizeof(detail),
                       "the stream %s cannot be made: another stream takes its subjects",
                       want->name);
    else
        (void)snprintf(detail, sizeof(detail), "the stream %s cannot be had: %s (%d)", want->name,
                       natsStatus_GetText(s), (int)code);
    set_state(b, false, detail);
    return false;
}

static bool check_streams(struct nats_bus *b)
{
    jsCtx *js = NULL;
    jsOptions options;
    natsStatus s = jsOptions_Init(&options);
    options.Wait = REQUEST_MS;
    if (s == NATS_OK)
        s = natsConnection_JetStream(&js, b->conn, &options);
    if (s != NATS_OK) {
        set_state(b, false, natsStatus_GetText(s));
        return false;
    }
    bool ok = check_stream(b, js, &EVENTS) && (!b->jobs || check_stream(b, js, &JOBS));
    jsCtx_Destroy(js);
    return ok;
}

static bool be_connected(struct bus *bus)
{
    struct nats_bus *b = of(bus);
    if (atomic_load(&b->interrupted))
        return false;
    if (b->conn != NULL && natsConnection_IsClosed(b->conn)) {
        disconnect(b);
        set_state(b, false, "not connected: the connection was lost");
    }
    if (b->conn == NULL && !make_connection(b))
        return false;
    if (!b->checked && !check_streams(b)) {
        disconnect(b); /* the next connection may reach a healthier server */
        return false;
    }
    if (!b->checked && !b->stores_nothing)
        set_state(b, true, "");
    b->checked = true;
    return true;
}

/* --- publishing --- */

static const char NOT_ACKNOWLEDGED[] = "not acknowledged";

static void say_why(struct bus_message *m, enum bus_result result, const char *why)
{
    m->result = result;
    (void)snprintf(m->why, sizeof(m->why), "%s", why);
}

static natsStatus send_one(struct nats_bus *b, const struct bus_message *m, size_t index)
{
    char reply[128];
    char subject[URL_MAX];
    char id[128];
    (void)snprintf(reply, sizeof(reply), "%s.%llu-%zu", b->inbox, b->round, index);
    (void)snprintf(subject, sizeof(subject), "%.*s", STR_ARG(m->subject));
    (void)snprintf(id, sizeof(id), "%.*s", STR_ARG(m->id));
    assert(m->subject.len < sizeof(subject) && m->id.len < sizeof(id));
    natsMsg *msg = NULL;
    natsStatus s = natsMsg_Create(&msg, subject, reply, m->body.ptr, (int)m->body.len);
    if (s == NATS_OK)
        s = natsMsgHeader_Set(msg, "Nats-Msg-Id", id);
    if (s == NATS_OK)
        s = natsConnection_PublishMsg(b->conn, msg);
    natsMsg_Destroy(msg);
    return s;
}

/* A retry cannot help. Other errors may pass: a full disk, a stream at its limit, a cluster without
 * a leader. */
static bool is_permanent(int64_t code)
{
    return code == JSStreamMessageExceedsMaximumErr;
}

static void settle(struct bus_message *m, natsMsg *answer)
{
    struct json *json = NULL;
    struct str reply = {natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer)};
    if (json_read_kept(reply, &json) != ERR_OK)
        return;
    const struct json *error = json_member(json, STR("error"));
    if (error != NULL) {
        const char *text = json_text_of(json_member(error, STR("description"))).ptr;
        int64_t code = 0;
        (void)json_whole_of(json_member(error, STR("err_code")), &code);
        say_why(m, is_permanent(code) ? BUS_REFUSED : BUS_UNKNOWN, text != NULL ? text : "refused");
    } else if (json_is(json_member(json, STR("seq")), JSON_KIND_INTEGER)) {
        say_why(m, BUS_STORED, "");
    }
    json_free(json);
}

/* Which message of this round the reply is for; false: none. */
static bool index_of(const struct nats_bus *b, natsMsg *answer, size_t count, size_t *ret)
{
    const char *last = strrchr(natsMsg_GetSubject(answer), '.');
    unsigned long long round = 0;
    if (last == NULL || sscanf(last, ".%llu-%zu", &round, ret) != 2)
        return false;
    return round == b->round && *ret < count;
}

/* True when at least one reply came. */
static bool collect(struct nats_bus *b, struct bus_message *messages, size_t count, size_t sent)
{
    int64_t until = env_mono_ms(&ENV_SYSTEM) + ACK_MS;
    bool any = false;
    while (sent > 0 && !atomic_load(&b->interrupted)) {
        int64_t left = until - env_mono_ms(&ENV_SYSTEM);
        natsMsg *answer = NULL;
        if (left <= 0)
            break;
        natsStatus s = natsSubscription_NextMsg(&answer, b->acks, MIN(left, (int64_t)LOOK_UP_MS));
        size_t index = 0;
        if (s == NATS_OK && index_of(b, answer, count, &index)) {
            settle(&messages[index], answer);
            any = true;
            sent--;
        }
        natsMsg_Destroy(answer);
        if (s == NATS_NO_RESPONDERS) { /* it does not say for which message */
            b->checked = false;        /* the stream or JetStream itself is gone */
            any = true;
            sent--;
        } else if (s != NATS_OK && s != NATS_TIMEOUT) {
            break;
        }
    }
    return any;
}

/* A full disk, a stream at its limit: the messages wait, and somebody has to know why. */
static void note_flow(struct nats_bus *b, const struct bus_message *messages, size_t count)
{
    bool flows = false;
    const char *why = NOT_ACKNOWLEDGED;
    char detail[BUS_WHY_MAX];
    for (size_t i = 0; i < count; i++) {
        flows |= messages[i].result != BUS_UNKNOWN;
        if (strcmp(why, NOT_ACKNOWLEDGED) == 0)
            why = messages[i].why;
    }
    if (!flows) {
        (void)snprintf(detail, sizeof(detail), "nothing is stored: %s", why);
        set_state(b, false, detail);
    } else if (b->stores_nothing) {
        set_state(b, true, "");
    }
    b->stores_nothing = !flows;
}

static void publish(struct bus *bus, struct bus_message *messages, size_t count)
{
    struct nats_bus *b = of(bus);
    size_t sent = 0;
    natsStatus s = b->conn != NULL ? NATS_OK : NATS_CONNECTION_CLOSED;
    b->round++;
    for (size_t i = 0; i < count; i++)
        say_why(&messages[i], BUS_UNKNOWN, NOT_ACKNOWLEDGED);
    for (size_t i = 0; i < count && s == NATS_OK && !atomic_load(&b->interrupted); i++) {
        s = send_one(b, &messages[i], i);
        sent += s == NATS_OK;
        if (s == NATS_MAX_PAYLOAD) {
            say_why(&messages[i], BUS_REFUSED, "larger than the server's max_payload");
            s = NATS_OK;
        }
    }
    bool any = b->conn != NULL && collect(b, messages, count, sent);
    if (b->conn != NULL && sent > 0 && !any) {
        disconnect(b); /* nothing was acknowledged: the connection is of no use */
        set_state(b, false, "not connected: nothing was acknowledged");
    } else if (any) {
        note_flow(b, messages, count);
    }
}

/* --- life --- */

/* The library belongs to the process, and closing it waits until no connection is left: only the
 * last bus may do so, or one shard would wait for the others. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t library_users;

static void open_library(void)
{
    pthread_mutex_lock(&library_lock); /* waits until the last one before has closed it */
    library_users++;
    pthread_mutex_unlock(&library_lock);
}

static void close_library(void)
{
    pthread_mutex_lock(&library_lock);
    assert(library_users > 0);
    if (--library_users == 0)
        nats_CloseAndWait(0);
    pthread_mutex_unlock(&library_lock);
}

static void interrupt(struct bus *bus)
{
    atomic_store(&of(bus)->interrupted, true);
}

static void bus_free(struct bus *bus)
{
    struct nats_bus *b = of(bus);
    disconnect(b);
    natsOptions_Destroy(b->options);
    close_library();
    pthread_mutex_destroy(&b->lock);
    free(b);
}

struct server_list {
    char urls[NATS_SERVERS_MAX][URL_MAX];
    const char *each[NATS_SERVERS_MAX];
    int count;
    bool secure;
};

static enum err add_server(struct server_list *list, struct str url, struct problem *p)
{
    bool secure = str_starts_with(url, STR("tls://"));
    if (!secure && !str_starts_with(url, STR("nats://")))
        return problem_set(p, ERR_FIELD_INVALID,
                           "The bus must be nats://HOST:PORT or tls://HOST:PORT");
    if (list->count == NATS_SERVERS_MAX || url.len >= URL_MAX - 1)
        return problem_set(p, ERR_FIELD_INVALID,
                           "The bus has too many servers, or its name is too long");
    char *own = list->urls[list->count];
    struct str rest = {url.ptr + (secure ? 6 : 7), url.len - (secure ? 6 : 7)};
    if (rest.len == 0)
        return problem_set(p, ERR_FIELD_INVALID, "A bus server has no host name");
    (void)snprintf(own, URL_MAX, "nats://%.*s", STR_ARG(rest));
    list->each[list->count++] = own;
    list->secure |= secure;
    return ERR_OK;
}

static enum err list_servers(struct server_list *list, const char *urls, struct problem *p)
{
    struct str rest = str_of(urls);
    enum err e = ERR_OK;
    for (bool more = true; more && e == ERR_OK;) {
        struct str url;
        more = str_cut(rest, ',', &url, &rest);
        e = add_server(list, str_trim(url), p);
    }
    return e;
}

static natsStatus set_options(struct nats_bus *b, const struct nats_bus_config *config,
                              struct server_list *list)
{
    natsStatus s = natsOptions_Create(&b->options);
    if (s == NATS_OK)
        s = natsOptions_SetServers(b->options, list->each, list->count);
    if (s == NATS_OK)
        s = natsOptions_SetName(b->options, "pawl");
    if (s == NATS_OK)
        s = natsOptions_SetTimeout(b->options, CONNECT_MS);
    if (s == NATS_OK)
        s = natsOptions_SetAllowReconnect(b->options, false);
    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(b->options, PING_MS);
    if (s == NATS_OK)
        s = natsOptions_SetSendAsap(b->options, true);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(b->options, on_error, NULL);
    if (s == NATS_OK && (list->secure || config->ca != NULL))
        s = natsOptions_SetSecure(b->options, true);
    return s;
}

static enum err load_files(struct nats_bus *b, const struct nats_bus_config *config,
                           struct problem *p)
{
    if (config->ca != NULL &&
        natsOptions_LoadCATrustedCertificates(b->options, config->ca) != NATS_OK)
        return problem_set(p, ERR_NOT_FOUND, "Cannot read certificates from %s", config->ca);
    if (config->creds != NULL &&
        (access(config->creds, R_OK) != 0 || /* the library reads it at each connect */
         natsOptions_SetUserCredentialsFromFiles(b->options, config->creds, NULL) != NATS_OK))
        return problem_set(p, ERR_NOT_FOUND, "Cannot read credentials from %s", config->creds);
    return ERR_OK;
}

enum err nats_bus_new(const struct nats_bus_config *config, struct problem *p, struct bus **ret)
{
    char why[LIBRARY_WHY_MAX];
    if (!library_load(&LIBNATS, why))
        return problem_set(p, ERR_NOT_FOUND, "%s", why);
    struct server_list *list = calloc(1, sizeof(*list));
    struct nats_bus *b = calloc(1, sizeof(*b));
    if (list == NULL || b == NULL) {
        free(list);
        free(b);
        return problem_set(p, ERR_NO_MEMORY, "No memory for the bus");
    }
    enum err e = list_servers(list, config->urls, p);
    if (e != ERR_OK) {
        free(list);
        free(b);
        return e;
    }
    b->bus = (struct bus){"nats", be_connected, publish, get_state, interrupt, bus_free};
    b->jobs = config->jobs;
    b->state = (struct bus_state){false, "not connected yet"};
    pthread_mutex_init(&b->lock, NULL);
    open_library();
    natsStatus s = set_options(b, config, list);
    if (s != NATS_OK)
        e = problem_set(p, ERR_FIELD_INVALID, "Cannot use the bus: %s", natsStatus_GetText(s));
    if (e == ERR_OK)
        e = load_files(b, config, p);
    free(list);
    if (e != ERR_OK) {
        bus_free(&b->bus);
        return e;
    }
    *ret = &b->bus;
    return ERR_OK;
}
