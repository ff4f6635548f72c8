/* pawl: joins the server to the command line. */
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
    {"migrate", "Copy a store into another one, of any kind", MIGRATE_VERBS, MIGRATE_VERB_COUNT},
    {"version", "Print the version", VERSION, ARRAY_LEN(VERSION)},
};

int main(int argc, char **argv)
{
    commands_add(COMMANDS, ARRAY_LEN(COMMANDS));
    return cli_main(argc, argv);
}
