/* pawl cluster status: nodes, and who owns which shard. */
#include "cli/commands.h"

static const struct column NODES[] = {
    {"NODE", "name"},         {"STATE", "state"}, {"SHARDS", "shards"},
    {"LEASE MS", "lease_ms"}, {"URL", "url"},
};
static const struct column SHARDS[] = {
    {"SHARD", "shard"}, {"OWNER", "owner"},       {"STATE", "state"},
    {"EPOCH", "epoch"}, {"DATABASE", "database"}, {"TENANT", "tenant"},
};

static void print_list(const struct column *columns, size_t count, const json_t *items)
{
    struct table t;
    table_init(&t, columns, count);
    table_add(&t, items);
    if (!table_print(&t, stdout))
        fputs("pawl: no memory for the table\n", stderr);
    table_release(&t);
}

static void show_cluster(struct session *s, json_t *answer)
{
    (void)s;
    print_list(NODES, ARRAY_LEN(NODES), json_object_get(answer, "nodes"));
    putchar('\n');
    print_list(SHARDS, ARRAY_LEN(SHARDS), json_object_get(answer, "shards"));
}

enum cli_exit cluster_status(struct session *s)
{
    session_path(s, "/api/v1/cluster", "", "");
    return session_call(s, "GET", show_cluster);
}
