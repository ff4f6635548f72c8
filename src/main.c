/* pawl: joins the server to the command line. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "migrate/migrate.h"
#include "serve/serve.h"

static int run_serve(int argc, char **argv)
{
    return serve_main(argc, argv, false);
}

static int run_dev(int argc, char **argv)
{
    return serve_main(argc, argv, true);
}

/* With the storage engines in this binary. */
static enum cli_exit run_version(struct session *s)
{
    (void)s;
    printf("pawl %s (", PAWL_VERSION);
    for (size_t i = 0; serve_store_name_at(i) != NULL; i++)
        printf("%s%s", i > 0 ? ", " : "", serve_store_name_at(i));
    printf(")\n");
    return CLI_DONE;
}

static enum cli_exit run_cluster_init(struct session *s)
{
    return (enum cli_exit)serve_cluster_init(
        options_text(&s->opt, "store"), options_number(&s->opt, "shards", CLUSTER_SHARDS_DEFAULT),
        options_number(&s->opt, "spare", 0));
}

static enum cli_exit run_cluster_move_tenant(struct session *s)
{
    return (enum cli_exit)serve_cluster_move_tenant(options_text(&s->opt, "store"), s->args[0],
                                                    options_number(&s->opt, "to", 0));
}

static enum cli_exit run_cluster_place(struct session *s)
{
    int64_t shard = -1;
    if (!str_to_i64(str_of(s->args[0]), &shard) || shard < 0 || shard >= CLUSTER_SHARDS_MAX) {
        fprintf(stderr, "pawl: SHARD must be a number from 0 to %d\n", CLUSTER_SHARDS_MAX - 1);
        return CLI_USAGE;
    }
    return (enum cli_exit)serve_cluster_place(options_text(&s->opt, "store"), shard,
                                              options_text(&s->opt, "at"));
}

static enum cli_exit run_cluster_drain(struct session *s)
{
    return (enum cli_exit)serve_cluster_drain(options_text(&s->opt, "store"), s->args[0],
                                              options_has(&s->opt, "undo"));
}

#define STORE_OPTION                                                                           \
    {                                                                                          \
        .name = "store", .value = "postgres://…", .help = "The database that the nodes share", \
        .variable = "PAWL_STORE", .required = true                                             \
    }

static const struct option INIT_OPTIONS[] = {
    STORE_OPTION,
    {.name = "shards",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CLUSTER_SHARDS_MAX,
     .help = "How many shards it gets; the number never changes",
     .fallback = "16"},
    {.name = "spare",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = CLUSTER_SHARDS_MAX - 1,
     .help = "How many more it has, to which only tenants come that are moved"},
    {.name = NULL},
};
static const struct option MOVE_OPTIONS[] = {
    STORE_OPTION,
    {.name = "to",
     .kind = OPTION_NUMBER,
     .value = "SHARD",
     .min = 0,
     .max = CLUSTER_SHARDS_MAX - 1,
     .help = "Any shard but 0",
     .required = true},
    {.name = NULL},
};
static const struct option PLACE_OPTIONS[] = {
    STORE_OPTION,
    {.name = "at",
     .value = "postgres://…",
     .help = "The database that gets the shard's tables; every node must reach it",
     .required = true},
    {.name = NULL},
};
static const struct option DRAIN_OPTIONS[] = {
    STORE_OPTION,
    {.name = "undo", .kind = OPTION_SWITCH, .help = "Let the node take shards again"},
    {.name = NULL},
};

static const struct verb CLUSTER[] = {
    {.name = "status", .about = "Show the nodes, and who owns which shard", .run = cluster_status},
    {.name = "init",
     .about = "Make an empty PostgreSQL database a cluster",
     .notes = "`pawl serve` does so by itself.\n",
     .options = INIT_OPTIONS,
     .local = true,
     .run = run_cluster_init},
    {.name = "move-tenant",
     .arguments = "TENANT",
     .about = "Move a tenant to another shard while the nodes run",
     .notes = "Requests of the tenant, and of others in the two shards, are answered 503 until the "
              "rows are moved. If the command is interrupted, nothing has changed, or all "
              "is done: run it again to see.\n",
     .options = MOVE_OPTIONS,
     .local = true,
     .run = run_cluster_move_tenant},
    {.name = "place",
     .arguments = "SHARD",
     .about = "Keep the tables of a shard in another PostgreSQL database",
     .notes = "After `pawl cluster init` and before the first node starts: a shard that has tables "
              "stays where it is, and so does shard 0.\n",
     .options = PLACE_OPTIONS,
     .local = true,
     .run = run_cluster_place},
    {.name = "drain",
     .arguments = "NODE",
     .about = "Let a node hand its shards to the others and take none, until --undo",
     .options = DRAIN_OPTIONS,
     .local = true,
     .run = run_cluster_drain},
};
static const struct verb SERVE[] = {
    {.about = "Run the server", .options = SERVE_OPTIONS, .standalone = run_serve}};
static const struct verb DEV[] = {
    {.about = "Run a development server without API keys, and log its requests",
     .options = DEV_OPTIONS,
     .more_options = SERVE_OPTIONS,
     .standalone = run_dev}};
static const struct verb VERSION[] = {
    {.about = "Print the version", .local = true, .run = run_version}};

static const struct command COMMANDS[] = {
    {"serve", "Run the server", SERVE, ARRAY_LEN(SERVE)},
    {"dev", "Run a development server without API keys, and log its requests", DEV, ARRAY_LEN(DEV)},
    {"cluster", "Look after several servers on one database", CLUSTER, ARRAY_LEN(CLUSTER)},
    {"migrate", "Copy a store into another one, of any kind", MIGRATE_VERBS, MIGRATE_VERB_COUNT},
    {"version", "Print the version", VERSION, ARRAY_LEN(VERSION)},
};

int main(int argc, char **argv)
{
    commands_add(COMMANDS, ARRAY_LEN(COMMANDS));
    return cli_main(argc, argv);
}
