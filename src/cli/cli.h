/* The command line client: every subcommand but serve, dev and version. It speaks to a server over
 * HTTP like any other client, so it needs nothing of pawl but the base layer. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

/* argv[1] is the subcommand. Returns the exit code. Ignores SIGPIPE for the whole process. */
int cli_main(int argc, char **argv);

bool cli_knows(const char *name);

/* The list of client subcommands for `pawl --help`. */
void cli_help(FILE *out);

#endif
