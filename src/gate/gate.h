/* The admission gate outside the store, for tenants whose limit is shared with another system.
 *
 * The gate holds a lock for each tenant and a reservation for each idempotency key that a start is
 * using. A start takes both before the writer decides it, and gives both back afterwards. Each has
 * a token, so that nobody removes what another has taken, and a time to live, so that a holder
 * that died blocks nobody for long.
 *
 * The gate decides nothing. The store counts and takes slots in its own transaction, as it does
 * for tenants without such a gate: a gate that loses, delays or invents answers costs time and
 * never breaks a limit.
 *
 * Requests are submitted and collected on the HTTP loop's thread; the gate answers them on a
 * thread of its own. */
#ifndef PAWL_GATE_GATE_H
#define PAWL_GATE_GATE_H

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

enum gate_ask {
    GATE_ENTER, /* take the reservation and the lock; one that has them already keeps them */
    GATE_LEAVE, /* give back what this token has, and nothing else */
    GATE_LIST,  /* reservations of anybody, a slice at a time: struct gate_list */
};

enum gate_answer {
    GATE_DONE,
    GATE_BUSY,     /* GATE_ENTER: another has the lock; the reservation is taken */
    GATE_RESERVED, /* GATE_ENTER: another start has reserved the key; nothing is taken */
    GATE_LOST,     /* GATE_LEAVE: the lock had expired, or was removed */
    GATE_DOWN,     /* no answer, or none that makes sense: it may have been done or not */
};

enum { GATE_TOKEN_MAX = 64 }; /* ours have half of it; other systems may use their own */

struct gate_request {
    enum gate_ask ask;
    /* Set by the caller; the texts outlive the request. */
    struct str tenant;
    struct str key; /* empty: the start has none, and nothing is reserved */
    char token[GATE_TOKEN_MAX + 1];
    int64_t lock_ttl_ms;
    int64_t key_ttl_ms;
    /* Set by the gate. */
    enum gate_answer answer;
    struct gate_request *next;
};

struct gate_found {
    char tenant[TENANT_ID_MAX + 1];
    char key[IDEM_KEY_BYTES_MAX + 1];
    char token[GATE_TOKEN_MAX + 1];
};

/* The first member of a GATE_LIST. `cursor` is 0 at first, and again when all were listed. */
struct gate_list {
    struct gate_request request;
    uint64_t cursor;
    size_t count;
    struct gate_found found[GATE_FOUND_MAX];
};

struct gate_state {
    bool ok; /* the last request was answered; true before the first */
    char detail[160];
};

struct gate {
    const char *name; /* for people */
    /* Begins to answer; `event_fd` is written to when there is something to collect. */
    MUST_CHECK enum err (*start)(struct gate *gate, int event_fd);
    /* The gate has the request until it is collected. */
    void (*submit)(struct gate *gate, struct gate_request *request);
    /* Requests that were answered, linked by `next`; NULL: none. */
    struct gate_request *(*collect)(struct gate *gate);
    void (*state)(struct gate *gate, struct gate_state *ret);
    /* Answers what was submitted, then ends. */
    void (*stop)(struct gate *gate);
    void (*free)(struct gate *gate);
};

#endif
