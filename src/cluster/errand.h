/* What a caller of all tenants asks of one shard after the other: jobs to work on, from whichever
 * shard has some, or something about jobs whose ids do not tell their shards. */
#ifndef PAWL_CLUSTER_ERRAND_H
#define PAWL_CLUSTER_ERRAND_H

#include "api/call.h"
#include "cluster/front_config.h"

enum errand_kind {
    ERRAND_ONE,   /* the request is for one shard */
    ERRAND_FIND,  /* until one does not answer 404 */
    ERRAND_CLAIM, /* until one has jobs; then once more in turn, waiting a little at each */
    ERRAND_BATCH, /* until each of the jobs is known to one */
    ERRAND_LIST,  /* page by page, in the order of their numbers: the cursor says which shard */
};

struct errand {
    enum errand_kind kind;
    size_t shard_count;
    uint16_t *order;  /* of the shards: those of this node first */
    size_t steps;     /* so far */
    int64_t until_ms; /* of a claim: how long it may wait */
    struct str claim; /* its body up to the member wait_ms; ptr NULL: it is sent as it came */
    /* Of a batch. */
    struct str items;    /* the body without a claim; ptr NULL: it is sent as it came */
    struct str *results; /* as JSON; ptr NULL: not known yet */
    size_t result_count;
    /* Of a list. */
    const struct front_cluster *cluster;
    size_t shard;      /* whose page is asked for */
    struct str cursor; /* in its list; ptr NULL: from the beginning */
    struct str query;  /* without a cursor */
};

enum errand_kind errand_kind_of(const struct call *c);
/* False when memory ran out. `turn` says where to begin, so that shards take turns. */
MUST_CHECK bool errand_begin(struct errand *e, const struct call *c,
                             const struct front_cluster *cluster, size_t turn, int64_t now_ms);
/* What the next shard is sent; ptr NULL: as it came. */
struct errand_step {
    size_t shard;
    struct str query;
    struct str body;
};

/* False: nothing is left, or memory ran out. */
MUST_CHECK bool errand_next(struct errand *e, struct arena *arena, int64_t now_ms,
                            struct errand_step *ret);
/* Is this the answer to the request? Otherwise the next shard is asked. May change the reply, with
 * texts in the request's memory. */
bool errand_is_answer(struct errand *e, struct http_request *req, struct http_reply *reply);

#endif
