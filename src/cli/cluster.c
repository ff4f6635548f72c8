/* pawl cluster status: nodes, and who owns which shard. */
#include "cli/commands.h"

#include "base/limits.h"

static const struct column NODES[] = {
    {"NODE", "name"},         {"STATE", "state"}, {"SHARDS", "shards"},
    {"LEASE MS", "lease_ms"}, {"URL", "url"},
};
static const struct column SHARDS[] = {
    {"SHARD", "shard"}, {"OWNER", "owner"},       {"STATE", "state"},
    {"EPOCH", "epoch"}, {"DATABASE", "database"}, {"MOVED TENANTS", "moved"},
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

enum { NAMES_SHOWN = 3 };

/* The tenants that were moved to a shard, as one text. */
static void name_moved(json_t *shard)
{
    struct buf text;
    size_t i;
    const json_t *tenants = json_object_get(shard, "tenants");
    size_t count = json_array_size(tenants);
    size_t shown = count <= NAMES_SHOWN + 1 ? count : NAMES_SHOWN;
    buf_init(&text, KIB);
    for (i = 0; i < shown; i++)
        buf_printf(&text, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(tenants, i)));
    if (shown < count)
        buf_printf(&text, " and %zu more", count - shown);
    if (count > 0 && buf_ok(&text))
        (void)json_object_set_new(shard, "moved", json_stringn(text.ptr, text.len));
    buf_release(&text);
}

static void show_cluster(struct session *s, json_t *answer)
{
    size_t i;
    json_t *shard;
    (void)s;
    json_array_foreach (json_object_get(answer, "shards"), i, shard)
        name_moved(shard);
    print_list(NODES, ARRAY_LEN(NODES), json_object_get(answer, "nodes"));
    putchar('\n');
    print_list(SHARDS, ARRAY_LEN(SHARDS), json_object_get(answer, "shards"));
}

enum cli_exit cluster_status(struct session *s)
{
    session_path(s, "/api/v1/cluster", "", "");
    return session_call(s, "GET", show_cluster);
}
