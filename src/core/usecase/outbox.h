/* What the relay to the bus asks of the writer (relay.h): how far it has come, and what it had to
 * put aside, in one transaction. */
#ifndef PAWL_CORE_USECASE_OUTBOX_H
#define PAWL_CORE_USECASE_OUTBOX_H

#include "core/txn/event_json.h"
#include "core/txn/op.h"
#include "store/outbox/parked.h"

/* A message that is parked, or was and is no more. */
struct relay_note {
    struct relay_note *next;
    bool stored; /* it came through after all */
    struct parked parked;
    char id[EVENT_MESSAGE_ID_MAX + 1];
    char type[NAME_MAX_LEN + 1];
    char reason[160];
};

struct mark_relayed_input {
    int64_t through; /* every row of the feed up to here is acknowledged or parked */
    const struct relay_note *notes;
};
extern const struct use_case UC_MARK_RELAYED;

#endif
