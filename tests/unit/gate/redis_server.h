/* A real redis-server on a loopback port, in a folder of its own. */
#ifndef PAWL_TESTS_REDIS_SERVER_H
#define PAWL_TESTS_REDIS_SERVER_H

#include "testing.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVER_TRIES = 3000, SERVER_TRY_MS = 10 };

struct redis_server {
    pid_t pid; /* 0: it does not run */
    int port;
    const char *password; /* NULL: none */
    redisContext *client; /* the test's own */
};

static inline void short_pause(void)
{
    (void)nanosleep(&(struct timespec){0, SERVER_TRY_MS * 1000000L}, NULL);
}

/* A listening socket on a free port. */
static inline int listen_anywhere(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* A command of the test's own; the caller frees the reply. */
#define REDIS(server, ...) ((redisReply *)redisCommand((server)->client, __VA_ARGS__))

static inline bool server_answers(struct redis_server *s)
{
    s->client = redisConnect("127.0.0.1", s->port);
    assert_non_null(s->client);
    redisReply *reply = s->client->err != 0   ? NULL
                        : s->password != NULL ? REDIS(s, "AUTH %s", s->password)
                                              : REDIS(s, "PING");
    bool ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (!ok)
        redisFree(s->client);
    return ok;
}

/* On the port that it had before, if it had one. */
static inline void server_start(struct redis_server *s)
{
    char port[16];
    if (s->port == 0)
        close(listen_anywhere(&s->port));
    (void)snprintf(port, sizeof(port), "%d", s->port);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDOUT_FILENO);
        (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1",
                     "--save", "", "--appendonly", "no", "--dir", "/tmp", "--requirepass",
                     s->password != NULL ? s->password : "", (char *)NULL);
        _exit(127);
    }
    int tries = SERVER_TRIES;
    while (!server_answers(s)) {
        assert_true(--tries > 0);
        assert_int_equal(waitpid(s->pid, NULL, WNOHANG), 0); /* redis-server must be installed */
        short_pause();
    }
}

static inline void server_kill(struct redis_server *s)
{
    redisFree(s->client);
    assert_int_equal(kill(s->pid, SIGKILL), 0);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    s->pid = 0;
}

/* --- what is in it --- */

static inline bool server_has(struct redis_server *s, const char *name, const char *value)
{
    redisReply *reply = REDIS(s, "GET %s", name);
    assert_non_null(reply);
    bool same = value == NULL ? reply->type == REDIS_REPLY_NIL
                              : reply->type == REDIS_REPLY_STRING && strcmp(reply->str, value) == 0;
    freeReplyObject(reply);
    return same;
}

static inline long long server_number(struct redis_server *s, const char *command, const char *name)
{
    redisReply *reply = REDIS(s, "%s %s", command, name);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

static inline void server_do(struct redis_server *s, const char *command)
{
    redisReply *reply = REDIS(s, command);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

#endif
