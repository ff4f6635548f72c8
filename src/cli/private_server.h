/* A private server for the time of one command, so that a data file can be worked on while no
 * server runs, or before the first one did: this same binary, on a port of its own, with a key of
 * its own. */
#ifndef PAWL_CLI_PRIVATE_SERVER_H
#define PAWL_CLI_PRIVATE_SERVER_H

#include "cli/exit.h"

#include <sys/types.h>

struct private_server {
    pid_t pid;  /* 0: none runs */
    int out_fd; /* its standard output */
    int log_fd; /* what it wrote to standard error */
    char url[64];
    char key[65]; /* admin of everything, known to this process alone */
};

/* Ready to answer at server->url when this returns CLI_DONE. Otherwise what the server said has
 * been passed on, and nothing is left running. */
enum cli_exit private_server_start(struct private_server *server, const char *store);

/* Ends it in good order. CLI_REFUSED, with its words passed on, when it did not end well.
 * Does nothing when none runs. */
enum cli_exit private_server_stop(struct private_server *server);

#endif
