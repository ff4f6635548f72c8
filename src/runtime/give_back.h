/* Jobs that were handed to a caller that never got the answer: each lease is released at once,
 * which counts no attempt, instead of being waited out. */
#ifndef PAWL_RUNTIME_GIVE_BACK_H
#define PAWL_RUNTIME_GIVE_BACK_H

#include "core/txn/op.h"

/* Releases what the op's answer has handed out, by ops of their own, and forgets the list. A job
 * that there is no memory for is released when its lease ends. */
void give_back_jobs(struct op *from, void (*submit)(void *ctx, struct op *op), void *ctx);

#endif
