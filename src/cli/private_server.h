/* A private server that lives as long as one command, to work on a data file that no other server
 * uses: this same binary, on a free loopback port, with a random API key. */
#ifndef PAWL_CLI_PRIVATE_SERVER_H
#define PAWL_CLI_PRIVATE_SERVER_H

#include "cli/exit.h"

#include <sys/types.h>

struct private_server {
    pid_t pid;  /* 0: not running */
    int out_fd; /* its standard output */
    int log_fd; /* its standard error */
    char url[64];
    char key[65]; /* role admin; only this process knows it */
};

/* Starts it and waits until it answers at server->url. On failure it prints what the server logged
 * and leaves nothing running. */
enum cli_exit private_server_start(struct private_server *server, const char *store);

/* Kills it with SIGKILL, as a crash would. */
void private_server_kill(struct private_server *server);

/* Stops it. CLI_REFUSED when it failed to stop cleanly; then it prints what the server logged. Does
 * nothing when it is not running. */
enum cli_exit private_server_stop(struct private_server *server);

#endif
