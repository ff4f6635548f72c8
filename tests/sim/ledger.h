/* What somebody outside has received of the events: each under one id, each owner's in order. */
#ifndef PAWL_TESTS_SIM_LEDGER_H
#define PAWL_TESTS_SIM_LEDGER_H

#include "sim/sim.h"

enum { LEDGER_ID_MAX = 64, OWNER_LEN = 36 };

struct ledger_event {
    char id[LEDGER_ID_MAX];
    uint64_t digest; /* of the whole object */
};

struct ledger_owner {
    char owner[OWNER_LEN + 1]; /* the UUID of a run or an entity */
    int64_t last;              /* the highest number; of an ordered ledger: without a gap */
    int64_t count;             /* different events */
    bool has_gap;              /* events are missing: it must turn out to be a deleted entity */
    int64_t gap_ms;            /* the ledger's resumed_ms at that time */
};

struct ledger {
    const char *name;
    bool whole;   /* it began before anything happened: every owner begins with 1 */
    bool once;    /* an event that comes twice is an error */
    bool ordered; /* an owner's events come in order, without gaps */
    /* By sim_now_ms(): its reader was away or slow until then; 0: never. A deleted entity's events
     * are kept for five seconds; whoever reads later may miss them. */
    int64_t resumed_ms;
    struct ledger_event *events;
    size_t event_count, event_room;
    struct ledger_owner *owners;
    size_t owner_count, owner_room;
};

void ledger_release(struct ledger *l);
/* Everything so far is forgotten, and gaps before what comes next are allowed. */
void ledger_reset(struct ledger *l);
/* An event as CloudEvents JSON under this id. */
void ledger_take(struct sim *w, struct ledger *l, struct str id, struct str body);
/* At the end: what is missing was allowed to be. */
void ledger_check_gaps(struct sim *w, const struct ledger *l);
/* The number of the owner's last event that was received; 0: none. */
int64_t ledger_last(const struct ledger *l, const char *owner);
/* How many different events of the owner were received. */
int64_t ledger_count(const struct ledger *l, const char *owner);

#endif
