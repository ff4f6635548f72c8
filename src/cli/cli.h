/* The command-line client: every command but serve, dev, version and help. It talks to a server
 * over HTTP, so it needs nothing of pawl but the base layer. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include "base/suggest.h"

/* argv[1] is the command. Returns the exit code. Ignores SIGPIPE for the whole process. */
int cli_main(int argc, char **argv);

bool cli_knows(const char *name);

/* The commands and their verbs, for `pawl --help`. */
void cli_print_commands(FILE *out);
/* Feeds the names of the commands to a suggestion. */
void cli_suggest(struct suggestion *s);

#endif
