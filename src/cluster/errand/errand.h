/* A request that concerns several shards: it is sent to one after the other, and their answers
 * become one, in the way that its route's row tells (api/route.h). */
#ifndef PAWL_CLUSTER_ERRAND_H
#define PAWL_CLUSTER_ERRAND_H

#include "cluster/errand/errand_parts.h"

/* JOIN_NONE when the request is for one shard. */
enum route_join errand_join_of(const struct call *c, const struct front_cluster *cluster);
/* False when memory ran out. `turn` says where to begin, so that shards take turns. */
MUST_CHECK bool errand_begin(struct errand *e, const struct call *c,
                             const struct front_cluster *cluster, size_t turn, int64_t now_ms);
void errand_end(struct errand *e);

/* False: nothing is left, or memory ran out. */
MUST_CHECK bool errand_next(struct errand *e, struct arena *arena, int64_t now_ms,
                            struct errand_step *ret);
/* Does it need whole answers, however long they are? */
bool errand_collects(const struct errand *e);
/* Is this the answer to the request? Otherwise the next shard is asked. May change the reply: its
 * body to `body`, which holds the shard's answer, and its headers to texts in the request's
 * memory. */
bool errand_is_answer(struct errand *e, struct http_request *req, struct http_reply *reply,
                      struct buf *body);

/* Of a claim: the shard that was asked last has not answered. */
void errand_shard_is_away(struct errand *e);
/* Of a claim: how long to wait before the next shard is asked. */
int64_t errand_rest_ms(const struct errand *e, int64_t now_ms);
/* Of a claim: it waits for jobs no longer. */
void errand_wait_is_over(struct errand *e);
/* Of a claim, when nothing is left: has any shard answered? */
bool errand_has_answer(const struct errand *e);
/* Of a claim, when nothing is left: the answer, with the jobs of all shards. It stays valid until
 * errand_end(). ptr NULL when memory ran out. */
struct str errand_jobs(struct errand *e);

#endif
