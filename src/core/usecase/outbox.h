/* What the relay asks of the writer (outbound/relay.h): to store how far it has come and which
 * messages it has parked, in one transaction. */
#ifndef PAWL_CORE_USECASE_OUTBOX_H
#define PAWL_CORE_USECASE_OUTBOX_H

#include "core/txn/event_json.h"
#include "core/txn/op.h"
#include "store/outbox/parked.h"

/* A message to park, or one that was parked and is stored now. */
struct relay_note {
    struct relay_note *next;
    bool stored;
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
