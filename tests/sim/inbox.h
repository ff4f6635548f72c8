/* Signals to one owner, a run or an entity: what was sent, what was answered, and which number each
 * has. A dedup_key is a write-once register of the signal's number, within its window. */
#ifndef PAWL_TESTS_SIM_INBOX_H
#define PAWL_TESTS_SIM_INBOX_H

#include "sim/people.h"

enum { INBOX_MAX = 64, INBOX_KEYS = 5, INBOX_OWNER_MAX = 64, INBOX_KEYED_MARK = 1000 };

/* One that was sent; `seq` 0: it may have been taken or not. */
struct inbox_signal {
    int mark; /* its payload */
    int name;
    int64_t seq;
    bool refused;  /* surely not taken, or as another one */
    bool copied;   /* known from a duplicate: another one may turn out to be the first */
    bool learned;  /* its number is known only from what its owner got: may be another's */
    bool consumed; /* for checks */
};

struct inbox_key {
    struct once seq;
    int64_t first_ms; /* by the wall clock: it cannot be older; 0: not sent yet */
    int64_t newer;    /* keys that may have come since */
    int64_t open;     /* requests with it that may still arrive */
    bool forgotten;   /* perhaps: one request that is repeated may have become several signals */
};

struct inbox {
    char owner[INBOX_OWNER_MAX];
    int place;
    int64_t window_ms;
    int64_t keys_max;
    struct wall_clocks *clocks;
    int open; /* signals under way */
    int count;
    int64_t highest; /* number that was acknowledged */
    struct inbox_signal sent[INBOX_MAX];
    struct inbox_key keys[INBOX_KEYS];
};

struct inbox_call {
    struct inbox *inbox;
    int at;  /* of inbox->sent */
    int key; /* -1: none */
    int op;
    int variant;
    bool update;
    int64_t floor; /* numbers that were acknowledged before it was sent are lower */
};

/* The clocks stay the caller's. */
void inbox_init(struct inbox *b, struct wall_clocks *clocks, const char *owner, int place,
                int64_t window_ms, int64_t keys_max);
/* With what payload: each without a key has its own, those with one have that of key and variant.
 */
int inbox_mark(int key, int variant, int *marks);
/* A signal is about to be sent. There must be room. */
struct inbox_call *inbox_send(struct sim *w, struct inbox *b, const struct inbox_call *spec,
                              int mark, int name);
/* The answer, or that there is none. Returns the signal's number; 0: it has none that is known. */
int64_t inbox_answered(struct sim *w, const struct inbox_call *x, const struct call *c);

/* Each step: a request that is under way may arrive by the time that the server shows now. */
void inbox_watch(const struct sim *w, struct inbox *b);

/* The owner's handler or a step has got a signal with this payload, and this number if that is
 * known (else 0): there must be such a one that is not consumed yet. */
struct inbox_signal *inbox_consume(struct sim *w, struct inbox *b, int64_t mark, int64_t seq);
void inbox_consume_none(struct inbox *b);
/* A request with this payload that was repeated after its key had left the window is another
 * signal: there may be more of them than answers. */
bool inbox_may_be_repeated(struct sim *w, const struct inbox *b, int64_t mark);

/* Nothing more will be sent: counts how its keys were checked. */
void inbox_cover(struct sim *w, const struct inbox *b);

#endif
