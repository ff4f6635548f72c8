/* The engine: takes ops from the HTTP loop, has them decided and made durable, and gives them back.
 * Everything here is called on the HTTP loop's thread. */
#ifndef PAWL_RUNTIME_ENGINE_H
#define PAWL_RUNTIME_ENGINE_H

#include "core/txn/op.h"
#include "outbound/subscriptions.h"
#include "runtime/auth.h"
#include "runtime/body_thread.h"
#include "runtime/engine_config.h"

struct engine;

/* Opens and migrates the store, starts the writer and the readers. The caller owns *ret. */
MUST_CHECK enum err engine_open(const struct engine_config *config, struct problem *p,
                                struct engine **ret);
/* No op may be under way: drain first. */
void engine_close(struct engine *engine);

/* --- one request --- */

/* Whose API key it is. */
MUST_CHECK enum err engine_identify(struct engine *engine, struct str key, struct str peer,
                                    struct problem *p, struct auth_identity *ret);
/* Rises with every change of any key: what engine_identify() said before may be wrong by now. */
uint64_t engine_auth_epoch(const struct engine *engine);
/* Is the key of this request known, and do its bytes alone tell the answer? Then op holds it, and
 * true. Costs one look-up; the body need not be parsed. The op must still be submitted, to wait and
 * to be counted. */
MUST_CHECK bool engine_replay(struct engine *engine, struct op *op);
/* op->done() follows, perhaps before this returns. The request and all that op points to stay until
 * then. */
void engine_submit(struct engine *engine, struct op *op);

/* For an op whose request is too large to be read on this thread: task->run() reads it on another
 * one, task->done() follows and submits the op. When too much waits, the op is refused instead as
 * by engine_submit(). The request and all that the task points to stay until then. */
void engine_read_body(struct engine *engine, struct op *op, struct body_task *task);
/* Has task->run() called there, which frees what was read, and the task. */
void engine_free_body(struct engine *engine, struct body_task *task);

/* The answer of this op did not reach its caller: jobs that it was handed are released at once. Not
 * if it has an idempotency key, under which the caller is given the same answer again. */
void engine_give_back(struct engine *engine, struct op *op);

/* The subscriber is told what is committed, from where it wants to begin; see subscriptions.h. */
void engine_subscribe(struct engine *engine, struct subscriber *subscriber);
void engine_unsubscribe(struct engine *engine, struct subscriber *subscriber);

/* --- the loop --- */

/* Readable when engine_poll() has something to do. */
int engine_event_fd(const struct engine *engine);
/* True right after a single client's request: its next one is likely to follow at once. */
bool engine_expects_more(const struct engine *engine);
/* At the end of each round of the loop: hands over what it brought. */
void engine_round_end(struct engine *engine);
/* Gives back what is over if the descriptor is readable, wakes who waits, times out what takes too
 * long. */
void engine_poll(struct engine *engine, bool readable);
/* How long the loop may sleep. */
int engine_timeout_ms(const struct engine *engine);

/* --- the end --- */

/* From now on new ops are refused and nobody waits any longer. */
void engine_drain(struct engine *engine);
/* Nothing is under way. */
bool engine_idle(const struct engine *engine);
/* The store could not prove a commit: stop the process. */
bool engine_failed(const struct engine *engine);

/* --- for operators --- */

/* ERR_OK when it takes work; otherwise why not. */
MUST_CHECK enum err engine_ready(const struct engine *engine, struct problem *p);
/* Writes all metrics out: op->done() follows, with their text as answer.body. One at a time. Sets
 * the op's use case and input. */
void engine_read_metrics(struct engine *engine, struct op *op);
/* The storage engine that runs. */
const char *engine_store_name(const struct engine *engine);
/* Those in this binary, by number; NULL after the last. */
const char *engine_store_name_at(size_t i);
const char *engine_gate_name(const struct engine *engine);

/* How far the bus has been told. */
struct engine_outbox {
    const char *bus;    /* its kind; NULL: there is none */
    const char *status; /* ok, failing or none */
    char detail[160];
    int64_t depth;  /* events that are not acknowledged yet */
    int64_t lag_ms; /* since the oldest of them happened */
};
void engine_outbox(struct engine *engine, struct engine_outbox *ret);

#endif
