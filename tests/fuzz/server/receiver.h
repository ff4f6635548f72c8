/* The other side of http steps and webhooks: answers by the decisions of an input. */
#ifndef PAWL_FUZZ_RECEIVER_H
#define PAWL_FUZZ_RECEIVER_H

#include "../taker.h"

/* NULL: every call succeeds again. */
void receiver_decides(struct taker *from);

#endif
