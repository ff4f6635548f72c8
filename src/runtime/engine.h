/* The engine takes ops from the HTTP loop, has them decided and made durable, and answers them. All
 * functions are called on the HTTP loop's thread. */
#ifndef PAWL_RUNTIME_ENGINE_H
#define PAWL_RUNTIME_ENGINE_H

#include "base/trace/span.h"
#include "core/txn/op.h"
#include "outbound/subscriptions.h"
#include "runtime/auth.h"
#include "runtime/body_thread.h"
#include "runtime/engine_config.h"

struct engine;
struct oidc;

/* Opens and migrates the store, starts the writer and the readers. The caller owns *ret. */
MUST_CHECK enum err engine_open(const struct engine_config *config, struct problem *p,
                                struct engine **ret);
/* No op may be under way: call engine_drain() first and wait for engine_idle(). */
void engine_close(struct engine *engine);

/* --- one request --- */

/* Finds the owner of an API key; see auth_check(). */
MUST_CHECK enum err engine_identify(struct engine *engine, struct str key, struct str peer,
                                    struct problem *p, struct auth_identity *ret);
/* Finds the owner of a session; see auth_check_session(). */
MUST_CHECK enum err engine_identify_session(struct engine *engine, struct str text,
                                            struct problem *p, struct auth_identity *ret);
/* Uses of keys that other nodes have seen: their rows will tell. */
void engine_note_key_uses(struct engine *engine, const struct key_use *uses, size_t count);
/* Gives the session an id and puts its text; ask buf_ok(). */
void engine_begin_session(struct engine *engine, struct session *session, struct buf *out);
/* Ends it at once, in memory: the caller stores that. False when there is no such session. */
bool engine_end_session(struct engine *e, struct str text, struct session *ret);
/* The secret of this store that sessions are signed with. */
struct str engine_session_secret(const struct engine *engine);
/* Where people sign in; NULL: nowhere. */
struct oidc *engine_oidc(const struct engine *engine);
/* Grows with every change of any key and the early end of any session. After a change, an earlier
 * answer of engine_identify() may be wrong. */
uint64_t engine_auth_epoch(const struct engine *engine);
/* For struct idem_claim; on any thread. */
uint64_t engine_raw_hash(const struct engine *engine, struct str route, struct str body);
/* True when the request's idempotency key is known and its raw bytes are enough to answer it: the
 * op then holds the answer. Costs one look-up; the body need not be parsed. Submit the op in both
 * cases: it may still have to wait, and it is counted. */
MUST_CHECK bool engine_replay(struct engine *engine, struct op *op);
/* Calls op->done() later, or before this returns. The request and everything that the op points to
 * must stay valid until then. */
void engine_submit(struct engine *engine, struct op *op);

/* For an op whose request is too large to be read on this thread: task->run() reads it on another
 * thread, then task->done() submits the op. When too many bodies wait, the op is refused as by
 * engine_submit(). The request and everything that the task points to must stay valid until then.
 */
void engine_read_body(struct engine *engine, struct op *op, struct body_task *task);
/* Calls task->run() on that thread; it frees the body that was read, and the task. */
void engine_free_body(struct engine *engine, struct body_task *task);

/* The caller of an op that is not answered yet has disconnected: if it waits for something, it is
 * answered at once, for nobody. */
void engine_caller_left(struct engine *engine, const struct op *op);
/* For an op whose answer did not reach its caller: releases the claimed jobs at once. An op with an
 * idempotency key keeps its jobs, because a retry gets the same answer. */
void engine_give_back(struct engine *engine, struct op *op);

/* The subscriber receives committed events from its starting point on; see subscriptions.h. */
void engine_subscribe(struct engine *engine, struct subscriber *subscriber);
void engine_unsubscribe(struct engine *engine, struct subscriber *subscriber);

/* Are spans exported? If not, none need be made. */
bool engine_exports_spans(const struct engine *engine);
/* Takes a copy; spans that cannot be exported are dropped and counted. */
void engine_export_span(struct engine *engine, const struct span *span);

/* --- the loop --- */

/* Readable when engine_poll() has something to do. */
int engine_event_fd(const struct engine *engine);
/* True right after a single client's request: its next one is likely to follow at once. */
bool engine_expects_more(const struct engine *engine);
/* Call it at the end of each round of the loop: hands the round's ops to the writer. */
void engine_round_end(struct engine *engine);
/* Answers finished ops if the descriptor is readable, wakes waiting callers, and times out slow
 * ops. */
void engine_poll(struct engine *engine, bool readable);
/* How long the loop may sleep. */
int engine_timeout_ms(const struct engine *engine);

/* --- the end --- */

/* Begins no more outgoing calls; everything else goes on. Called before engine_drain() by whoever
 * can wait, so that nothing is refused while calls that are under way end. */
void engine_end_calls(struct engine *engine);
bool engine_calls_ended(const struct engine *engine);
/* Refuses new writes from now on and ends all waits. */
void engine_drain(struct engine *engine);
/* True when no op is under way. */
bool engine_idle(const struct engine *engine);
/* One thing that is under way, for people; NULL: nothing is. */
const char *engine_busy_with(const struct engine *engine);
/* True when the store could not prove a commit: stop the process. */
bool engine_failed(const struct engine *engine);

/* --- for operators --- */

/* ERR_OK when the engine takes work; otherwise the reason why not. */
MUST_CHECK enum err engine_ready(const struct engine *engine, struct problem *p);
/* Reads what the store knows, and renders all metrics unless another engine does so: calls
 * op->done() later, with the text as answer.body. Only one such op may be under way. Sets the op's
 * use case and input. */
void engine_read_metrics(struct engine *engine, struct op *op, bool renders);
/* The storage engine in use. */
const char *engine_store_name(const struct engine *engine);
/* The storage engines of this binary, by number; NULL after the last. */
const char *engine_store_name_at(size_t i);
/* The gate outside the store, or "store". */
const char *engine_gate_name(const struct engine *engine);

/* How the gate outside the store does. */
struct engine_gate {
    bool exists;
    bool ok; /* it answered the last request */
    char detail[160];
};
void engine_gate(const struct engine *engine, struct engine_gate *ret);

/* How far events have been published to the bus. */
struct engine_outbox {
    const char *bus;    /* its kind; NULL: no bus */
    const char *status; /* ok, failing or none */
    char detail[160];
    int64_t depth;  /* events that the bus has not acknowledged yet */
    int64_t lag_ms; /* the age of the oldest of them */
};
void engine_outbox(struct engine *engine, struct engine_outbox *ret);

#endif
