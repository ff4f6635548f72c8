/* Histories of write-once registers: could one place, changed by one request at a time, have given
 * all these answers?
 *
 * A register holds nothing or one value. The first write sets it; later writes find it. It may be
 * cleared, and set again. A key and the run that it started, an approval and its decision, a
 * dedup_key and the number of its signal are such registers.
 *
 * What a write would set has a class, which the client chooses (which body, which decision), and an
 * identity, which only the server knows (the run's id, the signal's number). The checker looks for
 * an order of all operations that explains every answer, in which an operation that was answered
 * before another was sent comes first (linearizability). Requests whose answer was lost may have
 * been done or not. */
#ifndef PAWL_TESTS_SIM_ONCE_H
#define PAWL_TESTS_SIM_ONCE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ONCE_NOTHING = 0, /* the class of an empty register; those of values are 1 to 15 */
    ONCE_READS = -1,
    ONCE_CLEARS = -2,

    ONCE_OPS_MAX = 40,
    ONCE_IDS_MAX = 16,
    ONCE_ID_LEN_MAX = 63,
    ONCE_STATES_MAX = 24,
};

struct once_op {
    int number;    /* for once_answered() */
    int does;      /* the class that it writes, ONCE_READS or ONCE_CLEARS */
    int64_t sent;  /* by sim.clock */
    int64_t until; /* when it was answered or lost; INT64_MAX: not yet */
    bool open;     /* an answer may come */
    bool answered; /* it has been done; else perhaps */
    bool won;      /* it has made the change itself */
    unsigned seen; /* else: bits of the classes that it may have found */
    int id;        /* the identity that it was shown; 0: none */
};

/* What the register may be. */
struct once_state {
    uint64_t done; /* bits of ops */
    unsigned dead; /* bits of identities that were cleared */
    int cls;
    int id; /* 0: not shown yet */
};

struct once {
    int op_count;
    int state_count; /* what it may have been before all ops */
    int id_count;
    int next_number;
    bool retired; /* it has grown too large to be checked: everything is believed */
    struct once_op ops[ONCE_OPS_MAX];
    struct once_state states[ONCE_STATES_MAX];
    char ids[ONCE_IDS_MAX][ONCE_ID_LEN_MAX + 1];
};

/* An empty register. */
void once_init(struct once *o);
/* Nobody has sent anything to it. */
bool once_is_unused(const struct once *o);

/* Somebody sends a request. Returns the operation's number. */
int once_sent(struct once *o, int64_t sent, int does);
/* Somebody else, such as a clock, may do this at any time from now on, once, or never. */
void once_may(struct once *o, int64_t from, int does);

/* The answer: it has made the change; `id`: the identity of what it set or cleared, "" when that
 * was not shown. False: no order of the operations explains all the answers. */
bool once_won(struct once *o, int number, int64_t at, const char *id);
/* The answer: it has changed nothing, and found one of these classes: bits 1 << class. */
bool once_found(struct once *o, int number, int64_t at, unsigned classes, const char *id);
/* It was sent or delivered more than once: the same may have been done once more before `until`.
 * Comes before its answer. */
void once_repeated(struct once *o, int number, int64_t until);
/* No answer: it was done before `at`, or never will be. */
void once_lost(struct once *o, int number, int64_t at);

#endif
