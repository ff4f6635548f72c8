/* The listening socket. */
#ifndef PAWL_HTTP_LISTEN_H
#define PAWL_HTTP_LISTEN_H

#include "base/problem.h"

/* HOST:PORT, [HOST]:PORT or :PORT; port 0 picks one. Fails with a reason for people. */
MUST_CHECK enum err listen_open(const char *address, struct problem *p, int *ret_fd, char *ret_host,
                                size_t host_size, int *ret_port);

#endif
