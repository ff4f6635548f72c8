/* Sessions of people in browsers that were signed out before their time, as rows, until then. A
 * session that goes on has no row. */
#ifndef PAWL_STORE_ENDED_SESSIONS_H
#define PAWL_STORE_ENDED_SESSIONS_H

#include "base/env.h"
#include "store/db.h"

/* Does nothing when it has been ended already. */
MUST_CHECK enum err ended_sessions_add(struct db *db, struct uuid id, int64_t expires_at);
/* Those that would go on, `limit` at most, the ones that last longest first. */
MUST_CHECK enum err ended_sessions_list(struct db *db, int64_t now_ms, int64_t limit,
                                        void (*each)(void *ctx, struct uuid id, int64_t expires_at),
                                        void *ctx);
/* Removes up to `limit` of those whose time has come. */
MUST_CHECK enum err ended_sessions_drop(struct db *db, int64_t now_ms, int64_t limit,
                                        int64_t *ret_removed);

#endif
