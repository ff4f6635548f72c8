/* Dialling: all hosts of the URL at once. libpq tries one after the other, and waits seconds for
 * each that does not answer: after a failover that would be the first one, for every connection. */
#include "store/postgres/postgres_db.h"

#include <poll.h>

enum {
    HOSTS_MAX = 8, /* those after them are not tried */
    DIAL_MS_MAX = 5 * 1000,
    HOST_LEN_MAX = 256,
};

struct host {
    char name[HOST_LEN_MAX];
    char address[HOST_LEN_MAX];
    char port[HOST_LEN_MAX];
};

struct call {
    PGconn *conn;
    PostgresPollingStatusType state;
};

/* --- the hosts of a URL --- */

static const char *value_of(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, name) == 0 && o->val != NULL)
            return o->val;
    }
    return "";
}

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (const char *c = list; (c = strchr(c, ',')) != NULL; c++)
        count++;
    return count;
}

/* Of a list with commas. A single item counts for all hosts. False: it is too long. */
static bool copy_item(const char *list, size_t n, char ret[static HOST_LEN_MAX])
{
    struct str rest = str_of(list);
    struct str item;
    bool more = str_cut(rest, ',', &item, &rest);
    for (size_t i = 0; i < n && more; i++)
        more = str_cut(rest, ',', &item, &rest);
    return snprintf(ret, HOST_LEN_MAX, "%.*s", STR_ARG(item)) < HOST_LEN_MAX;
}

/* 0: one host, or what libpq had better read by itself. */
static size_t list_hosts(const char *url, struct host hosts[static HOSTS_MAX])
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    if (options == NULL)
        return 0;
    const char *names = value_of(options, "host");
    const char *addresses = value_of(options, "hostaddr");
    size_t count = MAX(count_items(names), count_items(addresses));
    bool fits = count > 1 && count <= HOSTS_MAX;
    for (size_t i = 0; i < count && fits; i++)
        fits = copy_item(names, i, hosts[i].name) && copy_item(addresses, i, hosts[i].address) &&
               copy_item(value_of(options, "port"), i, hosts[i].port);
    PQconninfoFree(options);
    return fits ? count : 0;
}

/* --- calls --- */

static int dial_ms(const struct postgres_db *db)
{
    return db->patience_ms > 0 ? (int)MIN(db->patience_ms, (int64_t)DIAL_MS_MAX) : DIAL_MS_MAX;
}

/* What the URL does not say. The server may be one of several: only the one that takes writes is
 * the store. A peer that is gone is noticed within seconds, on both sides. With a host, only that
 * one of the URL is tried. */
static PGconn *begin(const struct postgres_db *db, const struct host *host)
{
    static const char *const NAMES[] = {"application_name",
                                        "connect_timeout",
                                        "keepalives_idle",
                                        "keepalives_interval",
                                        "keepalives_count",
                                        "tcp_user_timeout",
                                        "target_session_attrs",
                                        "dbname",
                                        "client_encoding",
                                        "host",
                                        "hostaddr",
                                        "port",
                                        NULL};
    static const struct host ALL = {0}; /* empty values are passed over */
    const struct host *only = host != NULL ? host : &ALL;
    char seconds[16];
    (void)snprintf(seconds, sizeof(seconds), "%d", (dial_ms(db) + 999) / 1000);
    const char *const values[] = {"pawl",        seconds,      "5",     "2",    "3",
                                  "10000",       "read-write", db->url, "UTF8", only->name,
                                  only->address, only->port,   NULL};
    return host != NULL ? PQconnectStartParams(NAMES, values, 1)
                        : PQconnectdbParams(NAMES, values, 1);
}

static bool is_waiting(const struct call *c)
{
    return c->state == PGRES_POLLING_READING || c->state == PGRES_POLLING_WRITING;
}

/* Waits until one of them can go on. False: none waits, or the time is up. */
static bool await_calls(struct call *calls, size_t count, int64_t ms, struct pollfd *fds)
{
    bool waits = false;
    for (size_t i = 0; i < count; i++) {
        bool waiting = is_waiting(&calls[i]);
        short events = calls[i].state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        fds[i] = (struct pollfd){waiting ? PQsocket(calls[i].conn) : -1, events, 0};
        waits |= waiting;
    }
    return waits && ms > 0 && poll(fds, count, (int)ms) > 0;
}

static struct call *go_on(struct call *calls, size_t count, const struct pollfd *fds)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i].revents == 0)
            continue;
        calls[i].state = PQconnectPoll(calls[i].conn);
        if (calls[i].state == PGRES_POLLING_OK)
            return &calls[i];
    }
    return NULL;
}

/* One that says why, if there is one. */
static struct call *worst_of(struct call *calls, size_t count)
{
    for (size_t i = count; i-- > 1;) {
        if (calls[i].state == PGRES_POLLING_FAILED)
            return &calls[i];
    }
    return &calls[0];
}

bool postgres_has_hosts(const struct postgres_db *db)
{
    struct host hosts[HOSTS_MAX];
    return list_hosts(db->url, hosts) > 0;
}

PGconn *postgres_dial(const struct postgres_db *db)
{
    struct host hosts[HOSTS_MAX];
    struct call calls[HOSTS_MAX];
    struct pollfd fds[HOSTS_MAX];
    size_t count = list_hosts(db->url, hosts);
    if (count == 0)
        return begin(db, NULL);
    for (size_t i = 0; i < count; i++) {
        PGconn *conn = begin(db, &hosts[i]);
        bool failed = PQstatus(conn) == CONNECTION_BAD;
        calls[i] = (struct call){conn, failed ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING};
    }
    int64_t until = env_mono_ms(db->env) + dial_ms(db);
    struct call *chosen = NULL;
    while (chosen == NULL && await_calls(calls, count, until - env_mono_ms(db->env), fds))
        chosen = go_on(calls, count, fds);
    if (chosen == NULL)
        chosen = worst_of(calls, count);
    for (size_t i = 0; i < count; i++) {
        if (&calls[i] != chosen)
            PQfinish(calls[i].conn);
    }
    return chosen->conn;
}
