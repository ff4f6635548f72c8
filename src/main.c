/* pawl: picks the command. */
#include "base/macros.h"
#include "cli/cli.h"
#include "cli/exit.h"
#include "runtime/engine.h"
#include "serve/serve.h"

#include <stdio.h>
#include <string.h>

static void print_help(FILE *out)
{
    fprintf(out,
            "pawl %s: a durable workflow control plane in which every retry is safe\n\n"
            "usage: pawl COMMAND …          pawl COMMAND --help says more\n\n"
            "  serve      run the server\n"
            "  dev        the same as `serve --dev`\n"
            "  version    print the version\n",
            PAWL_VERSION);
    cli_help(out);
}

/* With the storage engines in this binary. */
static void print_version(void)
{
    printf("pawl %s (", PAWL_VERSION);
    for (size_t i = 0; engine_store_name_at(i) != NULL; i++)
        printf("%s%s", i > 0 ? ", " : "", engine_store_name_at(i));
    printf(")\n");
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "--help";
    if (strcmp(command, "serve") == 0 || strcmp(command, "dev") == 0)
        return serve_main(argc, argv, strcmp(command, "dev") == 0);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        print_version();
        return CLI_DONE;
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 ||
        strcmp(command, "-h") == 0) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? CLI_DONE : CLI_USAGE;
    }
    if (cli_knows(command))
        return cli_main(argc, argv);
    fprintf(stderr, "pawl: there is no command \"%s\" (see pawl --help)\n", command);
    return CLI_USAGE;
}
