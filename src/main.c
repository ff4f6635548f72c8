/* pawl: picks the command. */
#include "cli/cli.h"
#include "cli/exit.h"
#include "runtime/engine.h"
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
static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("pawl %s (", PAWL_VERSION);
    for (size_t i = 0; engine_store_name_at(i) != NULL; i++)
        printf("%s%s", i > 0 ? ", " : "", engine_store_name_at(i));
    printf(")\n");
    return CLI_DONE;
}

static int run_help(int argc, char **argv);

/* All others are the client's. */
static const struct {
    const char *name;
    const char *alias; /* NULL: none */
    const char *about;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {"serve", NULL, "Run the server", run_serve},
    {"dev", NULL, "Run a development server without API keys, as `serve --dev` does", run_dev},
    {"version", "--version", "Print the version", run_version},
    {"help", "--help", "Print help: `pawl help COMMAND` or `pawl help COMMAND VERB`", run_help},
};

static void print_help(FILE *out)
{
    fprintf(out,
            "pawl %s: a durable workflow control plane in which every retry is safe\n\n"
            "usage: pawl COMMAND [VERB] [ARGUMENTS] [OPTIONS]\n\n",
            PAWL_VERSION);
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        fprintf(out, "  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].about);
    fputs("\nCommands that call a server:\n", out);
    cli_print_commands(out);
    fputs("\nNew here? Start a server with `pawl dev`, then see `pawl help workflow apply` and "
          "`pawl help run start`.\n",
          out);
}

static int unknown(const char *command)
{
    struct suggestion s = suggest_for(str_of(command));
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        suggest_consider(&s, str_of(COMMANDS[i].name));
    cli_suggest(&s);
    fprintf(stderr, "pawl: Unknown command: %s.", command);
    if (s.best.len > 0)
        fprintf(stderr, " Did you mean \"%.*s\"?", STR_ARG(s.best));
    fputs(" Run `pawl --help` for a list.\n", stderr);
    return CLI_USAGE;
}

static int run(int argc, char **argv)
{
    const char *command = argv[1];
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(command, COMMANDS[i].name) == 0 ||
            (COMMANDS[i].alias != NULL && strcmp(command, COMMANDS[i].alias) == 0))
            return COMMANDS[i].run(argc, argv);
    return cli_knows(command) ? cli_main(argc, argv) : unknown(command);
}

/* `pawl help run start` is `pawl run start --help`. */
static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    if (argc == 2 || argv[2][0] == '-') {
        print_help(stdout);
        return CLI_DONE;
    }
    for (int i = 1; i + 1 < argc; i++)
        argv[i] = argv[i + 1];
    argv[argc - 1] = help;
    return run(argc, argv);
}

int main(int argc, char **argv)
{
    static char help[] = "help";
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "-h") == 0)
        argv[1] = help;
    return run(argc, argv);
}
