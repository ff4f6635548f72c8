/* The admission gate: who counts a tenant's slots and takes one is alone in doing so.
 *
 * * A start goes in, counts, writes its run, commits and goes out. Where every start of a tenant
 * goes through one transaction of one store, the transaction is the gate, and nobody ever waits
 * (gate_store). A gate outside the store is a lock that can be held by another node or by one
 * that died; then the start gets "busy" and tries again after a delay given by the tenant's
 * policy, for as long as its budget lasts. Starts of one tenant that share a transaction share
 * one visit. Queued runs that begin later do so in the transaction that freed their slots and do
 * not ask the gate: a gate outside the store must be backed by the store's own counters, as they
 * are here. */
#ifndef PAWL_GATE_GATE_H
#define PAWL_GATE_GATE_H

#include "base/str.h"
#include "domain/tenant.h"

enum gate_answer {
    GATE_ENTERED, /* until gate_leave() with the ticket, or the policy's lock_ttl_ms have passed */
    GATE_BUSY,    /* somebody else is inside: try again */
    GATE_DOWN,    /* it cannot be asked: nobody may start a run */
};

enum { GATE_TOKEN_LEN = 16 };

/* Who is inside. A gate that keeps nothing outside the transaction sets `held` to false, and is not
 * told when the holder leaves. */
struct gate_ticket {
    bool held;
    struct str tenant;                   /* set by who enters */
    unsigned char token[GATE_TOKEN_LEN]; /* only its owner may open the lock */
};

struct gate {
    const char *name; /* for people */
    /* Tries once and does not wait. `tenant` outlives the ticket. */
    enum gate_answer (*enter)(struct gate *gate, struct str tenant,
                              const struct gate_policy *policy, struct gate_ticket *ret);
    /* After the commit or the rollback, for tickets that are held. A gate that cannot be reached
     * now gives the lock back later, or lets it expire. */
    void (*leave)(struct gate *gate, const struct gate_ticket *ticket);
    bool never_waits; /* a tenant's gate_policy has no effect here */
};

/* The gate of a store that one writer serves: its transaction. */
struct gate *gate_store(void);

#endif
