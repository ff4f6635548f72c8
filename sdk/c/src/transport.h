/* Requests over libcurl, from any thread. Connections are kept and used again. */
#ifndef PAWL_TRANSPORT_H
#define PAWL_TRANSPORT_H

#include "ports.h"

struct transport;

/* The URL has no slash at its end. NULL without memory. */
struct transport *transport_new(const char *url);
void transport_free(struct transport *transport);

/* The real ports; their `at` is the transport. */
struct ports transport_ports(struct transport *transport);

struct abort *abort_new(void);
void abort_free(struct abort *abort);

/* Ends the exchange that uses it, and all later ones. */
void abort_now(struct abort *abort);

#endif
