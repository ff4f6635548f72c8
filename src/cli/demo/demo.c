/* pawl demo: its verbs. */
#include "cli/demo/demo.h"

#include "cli/commands.h"

static const struct verb VERBS[] = {
    {.name = "crash",
     .about = "Kill a server under load several times, and check what it kept",
     .notes = "It starts a server of its own in a temporary folder, starts runs and works on them, "
              "kills the server with SIGKILL again and again, and compares what the server has at "
              "the end with what it had acknowledged. Exit code 0 if nothing was lost or doubled.",
     .options = OPTIONS_DEMO_CRASH,
     .local = true,
     .run = demo_crash},
    {.name = "orders",
     .about = "Play a shop on a development server: start orders and do their work",
     .notes =
         "`pawl dev --demo` runs it. Some cards are declined and tried again, large orders wait "
         "for your approval, and some parcels are lost, so that the payment is undone. Look at "
         "them with `pawl run list`, `pawl run watch ID` and `pawl approval list`.",
     .options = OPTIONS_DEMO_ORDERS,
     .run = demo_orders},
};

const struct command COMMAND_DEMO = {"demo", "Watch pawl at work", VERBS, ARRAY_LEN(VERBS)};
