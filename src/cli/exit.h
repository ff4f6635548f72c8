/* Exit codes of the client. Scripts rely on them. */
#ifndef PAWL_CLI_EXIT_H
#define PAWL_CLI_EXIT_H

enum cli_exit {
    CLI_DONE = 0,
    CLI_REFUSED = 1,
    CLI_USAGE = 2,
    CLI_UNREACHABLE = 3,
};

#endif
