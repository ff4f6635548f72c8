/* The engine's threads without threads: the writer, the readers, the body thread and the makers of
 * outgoing calls do their work when it is handed to them, before the function returns. They take
 * the place of runtime/writer.c, readers.c, body_thread.c and bus/http_caller.c at link time, so an
 * input always gives the same execution. */
#ifndef PAWL_FUZZ_INLINE_THREADS_H
#define PAWL_FUZZ_INLINE_THREADS_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

struct db;
struct http_call;

/* Of the one engine that is open. */
struct db *inline_writer_db(void);
/* One turn of the writer's own work: background, checkpoints. */
void inline_writer_background(void);
/* How long none is due; 0: some is. */
int64_t inline_writer_wait_ms(void);

/* Answers an outgoing call: sets its status, head and body, or how it failed (http_call_end()).
 * NULL: every call is answered by 200 and {"ok":true}. */
extern void (*inline_receiver)(struct http_call *call);

#endif
