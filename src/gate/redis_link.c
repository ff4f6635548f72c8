/* One connection to Redis. */
#include "gate/redis_link.h"

#include "base/buf.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stddef.h>

#define KEY_PREFIX "pawl:key:{"
#define LOCK_PREFIX "pawl:lock:{"

/* KEYS: the lock, and the reservation if there is one. ARGV: the token, the lock's time to live,
 * the reservation's. Safe to repeat: who has one of them keeps it as it is. */
static const char ENTER[] = "local function take(name, ttl)"
                            "  return redis.call('GET', name) == ARGV[1]"
                            "    or redis.call('SET', name, ARGV[1], 'NX', 'PX', ttl) ~= false "
                            "end "
                            "if KEYS[2] and not take(KEYS[2], ARGV[3]) then return 2 end "
                            "if not take(KEYS[1], ARGV[2]) then return 1 end "
                            "return 0";

/* Deletes what has this token and says whether the lock had it. */
static const char LEAVE[] = "local held = redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0 "
                            "for _, name in ipairs(KEYS) do"
                            "  if redis.call('GET', name) == ARGV[1] then"
                            "    redis.call('DEL', name)"
                            "  end "
                            "end "
                            "return held";

enum { NAME_ROOM = sizeof(LOCK_PREFIX) + TENANT_ID_MAX + IDEM_KEY_BYTES_MAX + 2, NUMBER_ROOM = 24 };

static struct timeval reply_time(void)
{
    return (struct timeval){GATE_REPLY_MS_MAX / 1000, (GATE_REPLY_MS_MAX % 1000) * 1000L};
}

/* --- the connection --- */

static void note_fault(struct redis_link *l, const char *what, const char *detail)
{
    (void)snprintf(l->fault, sizeof(l->fault), "%s: %s", what, detail);
    str_repair_utf8(l->fault, strlen(l->fault));
}

void redis_link_close(struct redis_link *l)
{
    if (l->redis != NULL)
        redisFree(l->redis);
    l->redis = NULL;
}

static const char *error_of(const struct redis_link *l, const redisReply *reply)
{
    if (reply == NULL && l->redis->err == REDIS_ERR_IO && errno == EAGAIN)
        return "no answer in time";
    if (reply == NULL)
        return l->redis->err != 0 ? l->redis->errstr : "no answer";
    return reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer that makes no sense";
}

/* A command whose answer is OK. */
static bool command(struct redis_link *l, const char *what, int argc, const char **argv)
{
    redisReply *reply = redisCommandArgv(l->redis, argc, argv, NULL);
    bool ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (!ok)
        note_fault(l, what, error_of(l, reply));
    freeReplyObject(reply);
    return ok;
}

static bool sign_in(struct redis_link *l)
{
    const struct redis_url *u = l->url;
    char database[NUMBER_ROOM];
    (void)snprintf(database, sizeof(database), "%d", u->database);
    const char *auth[] = {"AUTH", u->user[0] != '\0' ? u->user : u->password, u->password};
    const char *select[] = {"SELECT", database};
    if (u->password[0] != '\0' && !command(l, "Cannot sign in", u->user[0] != '\0' ? 3 : 2, auth))
        return false;
    return u->database == 0 || command(l, "Cannot select the database", 2, select);
}

bool redis_link_open(struct redis_link *l)
{
    if (l->redis != NULL)
        return true;
    l->redis = redisConnectWithTimeout(l->url->host, l->url->port, reply_time());
    if (l->redis == NULL) {
        note_fault(l, "Cannot connect", "out of memory");
        return false;
    }
    bool ok = l->redis->err == 0 && redisSetTimeout(l->redis, reply_time()) == REDIS_OK;
    if (!ok)
        note_fault(l, "Cannot connect", l->redis->errstr);
    ok = ok && sign_in(l);
    if (!ok)
        redis_link_close(l);
    return ok;
}

/* --- going in and out --- */

static size_t put_name(char *out, const char *prefix, const struct gate_request *r, bool key)
{
    int n =
        key ? snprintf(out, NAME_ROOM, "%s%.*s}:%.*s", prefix, STR_ARG(r->tenant), STR_ARG(r->key))
            : snprintf(out, NAME_ROOM, "%s%.*s}", prefix, STR_ARG(r->tenant));
    assert(n > 0 && n < NAME_ROOM);
    return (size_t)n;
}

/* Puts the command behind those that are sent next. */
static bool append(struct redis_link *l, const struct gate_request *r)
{
    char lock[NAME_ROOM];
    char key[NAME_ROOM];
    char numbers[2][NUMBER_ROOM];
    bool enters = r->ask == GATE_ENTER;
    bool has_key = r->key.len > 0;
    const char *argv[8] = {"EVAL", enters ? ENTER : LEAVE, has_key ? "2" : "1"};
    size_t lens[8] = {4, enters ? sizeof(ENTER) - 1 : sizeof(LEAVE) - 1, 1};
    int argc = 3;
    lens[argc] = put_name(lock, LOCK_PREFIX, r, false);
    argv[argc++] = lock;
    if (has_key) {
        lens[argc] = put_name(key, KEY_PREFIX, r, true);
        argv[argc++] = key;
    }
    lens[argc] = strlen(r->token);
    argv[argc++] = r->token;
    const int64_t ttls[] = {r->lock_ttl_ms, r->key_ttl_ms};
    for (size_t i = 0; i < ARRAY_LEN(ttls) && enters; i++) {
        lens[argc] = (size_t)snprintf(numbers[i], NUMBER_ROOM, "%lld", (long long)ttls[i]);
        argv[argc++] = numbers[i];
    }
    return redisAppendCommandArgv(l->redis, argc, argv, lens) == REDIS_OK;
}

/* GATE_DOWN unless the reply is one of those that the script gives. */
static enum gate_answer answer_of(enum gate_ask ask, const redisReply *reply)
{
    static const enum gate_answer ENTERED[] = {GATE_DONE, GATE_BUSY, GATE_RESERVED};
    static const enum gate_answer LEFT[] = {GATE_LOST, GATE_DONE};
    size_t count = ask == GATE_ENTER ? ARRAY_LEN(ENTERED) : ARRAY_LEN(LEFT);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 ||
        (size_t)reply->integer >= count)
        return GATE_DOWN;
    return ask == GATE_ENTER ? ENTERED[reply->integer] : LEFT[reply->integer];
}

/* The next reply, to be freed; NULL: there is none. */
static redisReply *next_reply(struct redis_link *l)
{
    void *reply = NULL;
    return redisGetReply(l->redis, &reply) == REDIS_OK ? reply : NULL;
}

/* False when the link is to be closed. */
static bool ask_all(struct redis_link *l, struct gate_request *first)
{
    bool ok = true;
    for (struct gate_request *r = first; r != NULL && ok; r = r->next)
        ok = r->ask == GATE_LIST || append(l, r);
    for (struct gate_request *r = first; r != NULL && ok; r = r->next) {
        if (r->ask == GATE_LIST)
            continue;
        redisReply *reply = next_reply(l);
        r->answer = answer_of(r->ask, reply);
        ok = reply != NULL;
        if (r->answer == GATE_DOWN)
            note_fault(l, "Redis failed", error_of(l, reply));
        freeReplyObject(reply);
    }
    return ok && l->fault[0] == '\0';
}

/* --- listing --- */

/* KEY_PREFIX TENANT "}:" KEY */
static bool read_name(const redisReply *name, const redisReply *token, struct gate_found *ret)
{
    size_t prefix = sizeof(KEY_PREFIX) - 1;
    if (name->type != REDIS_REPLY_STRING || token->type != REDIS_REPLY_STRING ||
        name->len < prefix || memchr(name->str, '\0', name->len) != NULL ||
        memchr(token->str, '\0', token->len) != NULL)
        return false;
    struct str tenant;
    struct str key;
    if (!str_cut((struct str){name->str + prefix, name->len - prefix}, '}', &tenant, &key) ||
        key.len < 2 || key.ptr[0] != ':')
        return false;
    int t = snprintf(ret->tenant, sizeof(ret->tenant), "%.*s", STR_ARG(tenant));
    int k = snprintf(ret->key, sizeof(ret->key), "%.*s", (int)key.len - 1, key.ptr + 1);
    int n = snprintf(ret->token, sizeof(ret->token), "%.*s", (int)token->len, token->str);
    return t < (int)sizeof(ret->tenant) && k < (int)sizeof(ret->key) && n < (int)sizeof(ret->token);
}

/* The tokens of the names that a SCAN has found, in one round trip. */
static bool list_names(struct redis_link *l, struct gate_list *list, const redisReply *names)
{
    size_t count = MIN(names->elements, (size_t)GATE_FOUND_MAX);
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++) {
        const redisReply *name = names->element[i];
        const char *argv[] = {"GET", name->str};
        const size_t lens[] = {3, name->len};
        ok = name->type == REDIS_REPLY_STRING &&
             redisAppendCommandArgv(l->redis, 2, argv, lens) == REDIS_OK;
    }
    for (size_t i = 0; i < count && ok; i++) {
        redisReply *token = next_reply(l);
        ok = token != NULL;
        if (ok)
            list->count += read_name(names->element[i], token, &list->found[list->count]);
        freeReplyObject(token);
    }
    if (!ok)
        note_fault(l, "Cannot list reservations", error_of(l, NULL));
    return ok;
}

/* [cursor, [name, …]] */
static bool is_scan(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           reply->element[1]->type == REDIS_REPLY_ARRAY;
}

static bool ask_list(struct redis_link *l, struct gate_list *list)
{
    char cursor[NUMBER_ROOM];
    char count[NUMBER_ROOM];
    (void)snprintf(cursor, sizeof(cursor), "%llu", (unsigned long long)list->cursor);
    (void)snprintf(count, sizeof(count), "%d", GATE_SWEEP_KEYS);
    static const char PATTERN[] = KEY_PREFIX "*";
    const char *argv[] = {"SCAN", cursor, "MATCH", PATTERN, "COUNT", count};
    redisReply *reply = redisCommandArgv(l->redis, (int)ARRAY_LEN(argv), argv, NULL);
    list->count = 0;
    bool ok = is_scan(reply);
    if (!ok)
        note_fault(l, "Cannot list reservations", error_of(l, reply));
    ok = ok && list_names(l, list, reply->element[1]);
    if (ok)
        list->cursor = strtoull(reply->element[0]->str, NULL, 10);
    list->request.answer = ok ? GATE_DONE : GATE_DOWN;
    freeReplyObject(reply);
    return ok;
}

void redis_link_ask(struct redis_link *l, struct gate_request *first)
{
    assert(l->redis != NULL);
    l->fault[0] = '\0';
    for (struct gate_request *r = first; r != NULL; r = r->next)
        r->answer = GATE_DOWN;
    bool ok = ask_all(l, first);
    for (struct gate_request *r = first; r != NULL && ok; r = r->next) {
        if (r->ask == GATE_LIST)
            ok = ask_list(l, CONTAINER_OF(r, struct gate_list, request));
    }
    if (!ok)
        redis_link_close(l);
}
