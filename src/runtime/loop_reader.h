/* The HTTP loop's own read connection. It answers two questions without leaving the thread: is this
 * idempotency key known, and whose is this API key. Used on the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_LOOP_READER_H
#define PAWL_RUNTIME_LOOP_READER_H

#include "base/metrics.h"
#include "core/txn/op.h"
#include "core/txn/replay_stats.h"
#include "core/txn/stats/minute_stats.h"
#include "runtime/auth.h"
#include "runtime/durability.h"

struct idem_keys;
struct loop_reader;

/* Everything it points to outlives the reader. */
struct loop_reader_config {
    struct str store_url;
    const struct env *env;
    struct replay_stats *stats; /* counts the replays that are answered here */
    struct minute_stats *minutes;
    struct auth *auth;
    struct metric *auth_failures;
    struct durability *durability; /* says what a replay may have seen */
};

/* Opens the connection. The caller owns *ret. */
MUST_CHECK enum err loop_reader_open(const struct loop_reader_config *config, struct problem *p,
                                     struct loop_reader **ret);
void loop_reader_close(struct loop_reader *reader);

/* The writer's keys, which outlive the reader. Without them nothing is replayed here. */
void loop_reader_set_keys(struct loop_reader *reader, struct idem_keys *keys);
/* Looks up the op's idempotency key. True when its record answers the op, which then holds the
 * answer; the record may not be on disk yet: op->seen. False when the writer has to decide: the key
 * is new, the bytes alone do not tell, or the record could not be read. */
MUST_CHECK bool loop_reader_replay(struct loop_reader *reader, struct op *op);

/* Has the store decided a request with this key? False also when it cannot be read. */
bool loop_reader_knows_key(struct loop_reader *reader, struct str tenant, struct str key);

/* Whose key it is, as auth_check() says; `epoch` is that of struct auth_question. Counts refused
 * keys of a known peer and logs them at a bounded rate. */
MUST_CHECK enum err loop_reader_identify(struct loop_reader *reader, struct str key,
                                         struct str peer, uint64_t epoch, struct problem *p,
                                         struct auth_identity *ret);

/* Whose session it is, as auth_check_session() says. */
MUST_CHECK enum err loop_reader_identify_session(struct loop_reader *reader, struct str text,
                                                 uint64_t epoch, struct problem *p,
                                                 struct auth_identity *ret);

/* At the end of each round of the loop: the next look-up sees what was committed by then. */
void loop_reader_round_end(struct loop_reader *reader);

#endif
