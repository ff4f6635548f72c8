/* An errand's members, and the parts of it (errand.h) that have files of their own. */
#ifndef PAWL_CLUSTER_ERRAND_PARTS_H
#define PAWL_CLUSTER_ERRAND_PARTS_H

#include "api/call.h"
#include "cluster/front_config.h"

struct shard_page;

/* What the next shard is sent; ptr NULL: as it came. */
struct errand_step {
    size_t shard;
    struct str query;
    struct str body;
};

/* A claim asks in rounds: in each, every shard that may have more is asked for an equal share of
 * what is still missing. When none has any, it waits a little at one after the other. A shard that
 * is away costs it as much time as one that has no jobs. */
struct claim_errand {
    int64_t until_ms; /* how long it may wait */
    struct str body;  /* without the members max and wait_ms; ptr NULL: it is sent as it came */
    bool has_key;     /* an idempotency key: the first shard that has jobs gives all */
    int64_t most;     /* jobs that it wants */
    int64_t share;    /* of each shard in this round; 0: it is over */
    bool *is_empty;   /* of each shard in `order`: it has no more */
    bool answered;    /* some shard has */
    bool is_away;     /* the shard that was asked last: it has not waited */
    bool waits;
    size_t at;       /* in `order`: who is next */
    size_t asked_at; /* and who was asked last, */
    int64_t asked;   /* for so many */
    struct buf jobs; /* so far: an answer, but for its end, */
    bool is_whole;   /* or with it: nothing is added any more */
    int64_t count;   /* of them */
};

struct errand {
    enum route_join join; /* JOIN_NONE: the request is for one shard */
    const struct route *route;
    const struct front_cluster *cluster;
    uint16_t *order; /* of the shards that are asked */
    size_t count;
    size_t steps;     /* so far */
    struct str query; /* without a cursor; ptr NULL: it is sent as it came */
    struct claim_errand claim;
    /* Of a batch. */
    struct str items;    /* the body without a claim; ptr NULL: it is sent as it came */
    struct str *results; /* as JSON; ptr NULL: not known yet */
    size_t result_count;
    /* Of a list. */
    size_t shard;             /* whose page is asked for, with JOIN_PAGES */
    struct str cursor;        /* in its list; ptr NULL: from the beginning */
    struct shard_page *pages; /* with JOIN_ORDER: of each shard */
    size_t limit;             /* of items */
    bool newest_first;
    /* Of a sum. */
    struct buf sum; /* of the answers so far */
    bool asked;     /* the client itself sent the route's `fold_query` */
    size_t bytes;   /* of the answers that are kept */
};

/* Has the request an idempotency key in a header? */
bool errand_has_key(const struct http_request *req);

/* --- errand_claim.c: jobs of all tenants --- */

/* False when memory ran out. */
MUST_CHECK bool errand_read_claim(struct errand *e, struct http_request *req, int64_t now_ms);
MUST_CHECK bool errand_next_claim(struct errand *e, struct arena *arena, int64_t now_ms,
                                  struct errand_step *ret);
/* True: the client gets this answer as it is. */
bool errand_take_jobs(struct errand *e, const struct http_reply *reply);

/* --- errand_list.c: queries with cursors --- */

/* Takes the query apart. False when memory ran out. */
MUST_CHECK bool errand_read_query(struct errand *e, struct http_request *req);
/* The query with this cursor; ptr NULL when memory ran out. */
struct str errand_query_at(const struct errand *e, struct arena *arena, struct str cursor);
/* What the shard is asked; ptr NULL when memory ran out. */
struct str errand_shard_query(const struct errand *e, struct arena *arena, size_t step);
/* JOIN_PAGES. True: the client gets this page. */
bool errand_take_page(struct errand *e, struct http_request *req, struct http_reply *reply,
                      struct buf *body);
/* The header Link; no cursor: there is no next page. */
void errand_set_link(const struct errand *e, struct http_request *req, struct http_reply *reply,
                     struct str cursor);

/* --- errand_merge.c: answers of all shards in one --- */

/* Takes the cursor of a merged list apart. */
MUST_CHECK bool errand_read_places(struct errand *e, struct arena *arena, struct str cursor);
/* JOIN_ORDER and JOIN_FOLD. True: that was the last one, and the client gets the whole, or a
 * problem. */
bool errand_merge(struct errand *e, struct http_request *req, struct http_reply *reply,
                  struct buf *body);
/* Where the shard's list goes on; ptr NULL: at its beginning. */
struct str errand_place_at(const struct errand *e, size_t step);
void errand_free_pages(struct errand *e);

#endif
