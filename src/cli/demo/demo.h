/* pawl demo: examples that need nothing but the binary. */
#ifndef PAWL_CLI_DEMO_DEMO_H
#define PAWL_CLI_DEMO_DEMO_H

#include "cli/session.h"

/* Starts an order every few seconds and does the work of its steps, until it is stopped. */
enum cli_exit demo_orders(struct session *s);
/* Kills a server under load, and checks that nothing was lost or doubled. */
enum cli_exit demo_crash(struct session *s);

extern const struct option OPTIONS_DEMO_ORDERS[];
extern const struct option OPTIONS_DEMO_CRASH[];

#endif
