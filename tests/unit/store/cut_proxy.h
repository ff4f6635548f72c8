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
};

struct cut_proxy {
    struct path folder; /* where it listens, as PostgreSQL does */
    struct path server; /* the server's socket */
    int listener;
    pthread_t thread;
    _Atomic enum cut cut; /* of the next commit */
    pid_t victim;         /* a process of the server: with it all of the server's memory is gone */
    atomic_bool stopping;
};

static inline struct sockaddr_un socket_in(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/.s.PGSQL.5432", folder);
    return address;
}

static inline bool has_commit(const char *bytes, size_t len)
{
    for (size_t i = 0; i + 6 <= len; i++) {
        if (memcmp(bytes + i, "COMMIT", 6) == 0)
            return true;
    }
    return false;
}

/* Passes on what has come; false: the session is over. */
static inline bool pass_on(struct cut_proxy *p, int client, int server)
{
    static char bytes[65536];
    struct pollfd fds[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(fds, 2, 50) <= 0)
        return true;
    bool from_client = fds[0].revents != 0;
    ssize_t got = read(from_client ? client : server, bytes, sizeof(bytes));
    if (got <= 0)
        return false;
    bool commits = from_client && has_commit(bytes, (size_t)got);
    enum cut cut = commits ? atomic_exchange(&p->cut, CUT_NOTHING) : CUT_NOTHING;
    if (cut == CUT_SERVER) {
        (void)kill(p->victim, SIGKILL);
        while (read(server, bytes, sizeof(bytes)) > 0)
            continue; /* until all its sessions end, a server takes new ones as if it were well */
    }
    if (cut == CUT_COMMIT || cut == CUT_SERVER)
        return false;
    if (write(from_client ? server : client, bytes, (size_t)got) != got)
        return false;
    if (cut == CUT_ANSWER)
        (void)!read(server, bytes, sizeof(bytes)); /* it has answered */
    return cut == CUT_NOTHING;
}

static inline void serve_one(struct cut_proxy *p, int client)
{
    struct sockaddr_un address = socket_in(p->server.text);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    bool open = connect(server, (struct sockaddr *)&address, sizeof(address)) == 0;
    while (open && !atomic_load(&p->stopping))
        open = pass_on(p, client, server);
    close(server);
    close(client);
}

static inline void *cut_proxy_main(void *ctx)
{
    struct cut_proxy *p = ctx;
    while (!atomic_load(&p->stopping)) {
        struct pollfd fd = {p->listener, POLLIN, 0};
        if (poll(&fd, 1, 50) <= 0)
            continue;
        int client = accept(p->listener, NULL, NULL);
        if (client >= 0)
            serve_one(p, client);
    }
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
