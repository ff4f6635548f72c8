/* The contract of a message bus that stores messages and acknowledges them.
 *
 * A message keeps its id however often it is sent, and the bus ignores an id that it has stored
 * recently. So a message that is not acknowledged is sent again.
 *
 * One thread connects and publishes; any thread may ask for the state or interrupt. */
#ifndef PAWL_BUS_BUS_H
#define PAWL_BUS_BUS_H

#include "base/str.h"

enum bus_result {
    BUS_STORED,  /* acknowledged: stored now or earlier */
    BUS_REFUSED, /* the bus will never store it as it is */
    BUS_UNKNOWN, /* not acknowledged: it may have been stored; send it again */
};

enum { BUS_WHY_MAX = 160 };

struct bus_message {
    struct str id;
    struct str subject;
    struct str body;
    /* Filled by the bus. */
    enum bus_result result;
    char why[BUS_WHY_MAX]; /* for people; "" when it is stored */
};

struct bus_state {
    bool ok; /* messages can be sent */
    char detail[BUS_WHY_MAX];
};

struct bus {
    const char *name; /* for people */
    /* Connects unless it is connected, and creates what the server lacks. False when it cannot; the
     * state says why. May take some seconds. */
    bool (*connect)(struct bus *bus);
    /* Sends them in this order without waiting in between, then waits for the result of each. A
     * failure does not stop those after it: a caller that needs an order sends one at a time. */
    void (*publish)(struct bus *bus, struct bus_message *messages, size_t count);
    void (*state)(struct bus *bus, struct bus_state *ret);
    /* Ends what is under way; nothing is sent after that. For the shutdown. */
    void (*interrupt)(struct bus *bus);
    void (*free)(struct bus *bus);
};

#endif
