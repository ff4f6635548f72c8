/* The call of a webhook delivery: a signed POST, and the response as the delivery's result. */
#ifndef PAWL_OUTBOUND_WEBHOOK_CALL_H
#define PAWL_OUTBOUND_WEBHOOK_CALL_H

#include "outbound/outgoing_kind.h"

extern const struct outgoing_kind WEBHOOK_DELIVERIES;

#endif
