/* What a node shows of the cluster. */
#include "cluster/node_metrics.h"

#include <assert.h>
#include <stddef.h>

#define PLACE(member) offsetof(struct node_metrics, member)

/* A table is read by its columns. */
/* clang-format off */
static const struct {
    size_t place; /* of the family's pointer */
    struct metric_spec spec;
    const char *from_zero[4]; /* values of the label that are there from the start, as zero */
} FAMILIES[] = {
    {PLACE(owner), {"pawl_shard_owner", "1 for a shard that this node serves.", METRIC_GAUGE, {"shard", NULL}, NULL}, {NULL}},
    {PLACE(unowned), {"pawl_shards_unowned", "Shards that no living node owns.", METRIC_GAUGE, {NULL, NULL}, NULL}, {NULL}},
    {PLACE(taken), {"pawl_shards_taken_total", "Shards that this node has begun to serve, by what became of the owner before.", METRIC_COUNTER, {"from", NULL}, NULL}, {"free", "expired", "own"}},
    {PLACE(failures), {"pawl_shard_failures_total", "Shards of this node that could not be opened, or that failed while they were served.", METRIC_COUNTER, {"while", NULL}, NULL}, {"opening", "serving"}},
    {PLACE(read_at), {"pawl_directory_read_timestamp_seconds", "Time when the node last read the directory.", METRIC_GAUGE_LARGEST, {NULL, NULL}, NULL}, {NULL}},
    {PLACE(forwarded), {"pawl_forwarded_requests_total", "Requests that were sent on to the node that owns the tenant's shard.", METRIC_COUNTER, {"node", NULL}, NULL}, {NULL}},
    {PLACE(forward_failures), {"pawl_forward_failures_total", "Forwarded requests that the other node did not answer, by reason.", METRIC_COUNTER, {"reason", NULL}, NULL}, {"not_reached", "not_taken", "no_answer"}},
};
/* clang-format on */

bool node_metrics_declare(struct node_metrics *m, struct metrics *registry)
{
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        struct metric *metric = metrics_declare(registry, &FAMILIES[i].spec);
        if (metric == NULL)
            return false;
        *(struct metric **)(void *)((char *)m + FAMILIES[i].place) = metric;
        for (const char *const *value = FAMILIES[i].from_zero; *value != NULL; value++)
            metric_add(metric, str_of(*value), STR_NONE, 0);
    }
    metric_set(m->unowned, STR_NONE, STR_NONE, 0);
    return true;
}

void node_metrics_count_taken(struct node_metrics *m, enum shard_taken taken)
{
    static const char *const NAMES[] = {"free", "expired", "own"};
    static_assert(ARRAY_LEN(NAMES) == SHARD_TAKEN_COUNT, "each has a name");
    assert(taken < SHARD_TAKEN_COUNT);
    metric_add(m->taken, str_of(NAMES[taken]), STR_NONE, 1);
}
