/* A way out for messages: the contract of a bus that stores what it is given and says so.
 *
 * A message has an id that stays the same however often it is sent; a bus that has seen the id not
 * long ago takes the second for the first. So what is not known to be stored is sent again.
 *
 * One thread connects and publishes; any thread may ask for the state or interrupt. */
#ifndef PAWL_BUS_BUS_H
#define PAWL_BUS_BUS_H

#include "base/str.h"

enum bus_result {
    BUS_STORED,  /* acknowledged: it is there, now or from an earlier time */
    BUS_REFUSED, /* it will never be taken as it is */
    BUS_UNKNOWN, /* not acknowledged: send it again, it may have been stored */
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
    /* Connected, with all that is needed at the other side; makes it so if it can. False otherwise,
     * and the state says why. May take some seconds. */
    bool (*connect)(struct bus *bus);
    /* Sends them in this order without waiting in between, then waits for what becomes of each. One
     * that fails does not stop those behind it: who needs an order sends one of them at a time. */
    void (*publish)(struct bus *bus, struct bus_message *messages, size_t count);
    void (*state)(struct bus *bus, struct bus_state *ret);
    /* What is under way ends soon, and nothing is sent any more: before the end. */
    void (*interrupt)(struct bus *bus);
    void (*free)(struct bus *bus);
};

#endif
