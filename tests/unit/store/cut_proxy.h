/* A proxy before a PostgreSQL server that can lose a commit, or the answer to it. */
#ifndef PAWL_TESTS_STORE_CUT_PROXY_H
#define PAWL_TESTS_STORE_CUT_PROXY_H

#include "store/folder.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

enum cut {
    CUT_NOTHING,
    CUT_COMMIT, /* the server never sees it */
    CUT_ANSWER, /* the server has committed, the client does not hear of it */
    CUT_SERVER, /* the server crashes before it sees it */
    CUT_FENCES, /* not a commit: the server never sees the fences of a common one */
    CUT_SENSE,  /* nor that: the server does not understand which commit it is asked for */
};

enum { CUT_SESSIONS_MAX = 512 };

struct cut_proxy;

struct cut_session {
    struct cut_proxy *proxy;
    int client;
    pthread_t thread;
};

struct cut_proxy {
    struct path folder; /* where it listens, as PostgreSQL does */
    struct path server; /* the server's socket */
    int listener;
    pthread_t thread;
    _Atomic enum cut cut; /* of the next commit */
    atomic_int spared;    /* commits that pass before that */
    pid_t victim;         /* a process of the server: with it all of the server's memory is gone */
    atomic_bool stopping;
    struct cut_session sessions[CUT_SESSIONS_MAX];
    int session_count;
};

static inline struct sockaddr_un socket_in(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/.s.PGSQL.5432", folder);
    return address;
}

/* What the next cut waits for. */
static inline const char *words_of(enum cut cut)
{
    return cut == CUT_FENCES  ? "EXECUTE fences"
           : cut == CUT_SENSE ? "SELECT num FROM commits"
                              : "COMMIT";
}

static inline char *find_words(char *bytes, size_t len, const char *words)
{
    size_t size = strlen(words);
    for (size_t i = 0; i + size <= len; i++) {
        if (memcmp(bytes + i, words, size) == 0)
            return bytes + i;
    }
    return NULL;
}

/* Passes on what has come; false: the session is over. */
static inline bool pass_on(struct cut_proxy *p, int client, int server)
{
    char bytes[65536];
    struct pollfd fds[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(fds, 2, 50) <= 0)
        return true;
    bool from_client = fds[0].revents != 0;
    ssize_t got = read(from_client ? client : server, bytes, sizeof(bytes));
    if (got <= 0)
        return false;
    const char *words = words_of(atomic_load(&p->cut));
    char *found = from_client ? find_words(bytes, (size_t)got, words) : NULL;
    bool commits = found != NULL;
    if (commits && atomic_load(&p->spared) > 0) {
        (void)atomic_fetch_sub(&p->spared, 1);
        commits = false;
    }
    enum cut cut = commits ? atomic_exchange(&p->cut, CUT_NOTHING) : CUT_NOTHING;
    if (cut == CUT_SERVER) {
        (void)kill(p->victim, SIGKILL);
        while (read(server, bytes, sizeof(bytes)) > 0)
            continue; /* until all its sessions end, a server takes new ones as if it were well */
    }
    if (cut == CUT_COMMIT || cut == CUT_SERVER || cut == CUT_FENCES)
        return false;
    if (cut == CUT_SENSE)
        found[0] = '?';
    if (write(from_client ? server : client, bytes, (size_t)got) != got)
        return false;
    if (cut == CUT_ANSWER)
        (void)!read(server, bytes, sizeof(bytes)); /* it has answered */
    return cut == CUT_NOTHING || cut == CUT_SENSE;
}

static inline void *cut_session_main(void *ctx)
{
    struct cut_session *s = ctx;
    struct sockaddr_un address = socket_in(s->proxy->server.text);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    bool open = connect(server, (struct sockaddr *)&address, sizeof(address)) == 0;
    while (open && !atomic_load(&s->proxy->stopping))
        open = pass_on(s->proxy, s->client, server);
    close(server);
    close(s->client);
    return NULL;
}

static inline void *cut_proxy_main(void *ctx)
{
    struct cut_proxy *p = ctx;
    while (!atomic_load(&p->stopping)) {
        struct pollfd fd = {p->listener, POLLIN, 0};
        if (poll(&fd, 1, 50) <= 0)
            continue;
        struct cut_session *s = &p->sessions[p->session_count];
        *s = (struct cut_session){.proxy = p, .client = accept(p->listener, NULL, NULL)};
        if (s->client < 0)
            continue;
        if (++p->session_count == CUT_SESSIONS_MAX ||
            pthread_create(&s->thread, NULL, cut_session_main, s) != 0)
            abort();
    }
    for (int i = 0; i < p->session_count; i++)
        (void)pthread_join(p->sessions[i].thread, NULL);
    return NULL;
}

static inline void cut_proxy_start(struct cut_proxy *p, const struct folder *f)
{
    const char *host = strstr(getenv("PAWL_TEST_POSTGRES"), "host=");
    assert_non_null(host);
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->server.text, sizeof(p->server.text), "%.*s", (int)strcspn(host + 5, "&"),
                   host + 5);
    (void)snprintf(p->folder.text, sizeof(p->folder.text), "%s", f->path);
    struct sockaddr_un address = socket_in(p->folder.text);
    p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, cut_proxy_main, p), 0);
}

static inline void cut_proxy_stop(struct cut_proxy *p)
{
    atomic_store(&p->stopping, true);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    close(p->listener);
    (void)unlink(socket_in(p->folder.text).sun_path);
}

#endif
