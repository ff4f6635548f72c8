/* Opens the listening socket. */
#include "http/listen.h"

#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* HOST:PORT, [HOST]:PORT or :PORT. */
static bool split(const char *address, char *host, size_t host_size, char *port, size_t port_size)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) >= port_size)
        return false;
    struct str h = {address, (size_t)(colon - address)};
    if (h.len >= 2 && h.ptr[0] == '[' && h.ptr[h.len - 1] == ']')
        h = (struct str){h.ptr + 1, h.len - 2};
    else if (h.len > 0 && memchr(h.ptr, ':', h.len) != NULL)
        return false;
    if (h.len >= host_size)
        return false;
    (void)snprintf(host, host_size, "%.*s", STR_ARG(h));
    (void)snprintf(port, port_size, "%s", colon + 1);
    int64_t number;
    return str_to_i64(str_of(port), &number) && number >= 0 && number <= 65535;
}

static struct addrinfo *resolve(const char *address, struct problem *p, char *host,
                                size_t host_size)
{
    char port[8];
    if (!split(address, host, host_size, port, sizeof(port))) {
        (void)problem_set(p, ERR_BAD_REQUEST, "\"%.200s\" is not a valid HOST:PORT", address);
        return NULL;
    }
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
    if (rc != 0) {
        (void)problem_set(p, ERR_BAD_REQUEST, "Cannot resolve %s: %s", address, gai_strerror(rc));
        return NULL;
    }
    return found;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

bool http_is_loopback(const char *listen_address)
{
    char host[128];
    struct problem p;
    problem_init(&p);
    struct addrinfo *found = resolve(listen_address, &p, host, sizeof(host));
    bool all = found != NULL;
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
        all &= is_loopback(a->ai_addr);
    if (found != NULL)
        freeaddrinfo(found);
    problem_release(&p);
    return all;
}

static bool find_port(int fd, int *ret)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0)
        return false;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &bound, sizeof(in));
    memcpy(&in6, &bound, sizeof(in6));
    *ret = ntohs(bound.ss_family == AF_INET ? in.sin_port : in6.sin6_port);
    return true;
}

enum err listen_open(const char *address, struct problem *p, int *ret_fd, char *ret_host,
                     size_t host_size, int *ret_port)
{
    struct addrinfo *found = resolve(address, p, ret_host, host_size);
    if (found == NULL)
        return p->err;
    int one = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
              bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 &&
              find_port(fd, ret_port);
    int why = errno;
    freeaddrinfo(found);
    if (!ok) {
        if (fd >= 0)
            close(fd);
        return problem_set(p, ERR_BAD_REQUEST, "Cannot listen on %s: %s", address, strerror(why));
    }
    *ret_fd = fd;
    return ERR_OK;
}
