/* The command line: finds the command and the verb, runs it or prints its help. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

/* Runs the command that argv[1] names, or its alias. Returns the exit code. Ignores SIGPIPE for the
 * whole process, except in commands that read their command line themselves. */
int cli_main(int argc, char **argv);

#endif
