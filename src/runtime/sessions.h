/* Sessions of people in browsers (domain/session.h): made, checked and ended here. There is no row
 * for a session. Those that were ended before their time are remembered until then, at most
 * SESSIONS_ENDED_MAX of them. On the HTTP loop's thread only. */
#ifndef PAWL_RUNTIME_SESSIONS_H
#define PAWL_RUNTIME_SESSIONS_H

#include "domain/session.h"
#include "store/secrets.h"

struct sessions;

MUST_CHECK struct sessions *sessions_new(const struct env *env);
void sessions_free(struct sessions *s);
/* Before anything else: the secret of the store. */
void sessions_use_secret(struct sessions *s, const struct secret *secret);
struct str sessions_secret(const struct sessions *s);

/* Gives it an id and puts its text; ask buf_ok(). */
void sessions_put_new(struct sessions *s, struct session *session, struct buf *out);
/* False when it was not made here, or is over. */
MUST_CHECK bool sessions_read(struct sessions *s, struct str text, struct session *ret);
/* False when memory ran out or too many have ended: it goes on until its time. */
MUST_CHECK bool sessions_end(struct sessions *s, const struct session *session);

#endif
