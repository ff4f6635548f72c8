/* Finds the verb that a command line names, runs it or prints its help. */
#include "cli/cli.h"

#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/names.h"

#include <errno.h>
#include <signal.h>

enum { LINE_MAX_LEN = 96 };

static const char STORE_NOTE[] =
    "With --store, the command starts a private server on the data file, with the role admin, and "
    "stops it at the end. No other server may use the file at that time.";
static const char VARIABLES_NOTE[] = "The name in brackets is the environment variable that sets "
                                     "the option; the command line overrides it.";
static const char EXIT_CODES_NOTE[] = "Exit codes: 0 done, 1 refused by the server or failed, 2 "
                                      "wrong usage, 3 cannot reach the server";

static const struct {
    const char *alias;
    const char *command;
} ALIASES[] = {{"-h", "help"}, {"--help", "help"}, {"-V", "version"}, {"--version", "version"}};

static int run_command(int argc, char **argv);
static const struct verb *find_verb(const struct command *command, int argc, char **argv,
                                    int *ret_words);
static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv, int from);
static int unknown_command(const char *name);
static enum cli_exit no_verb(const struct command *command, int argc, char **argv);
static void print_overview(FILE *out);
static void print_usage(FILE *out, const struct command *command, const struct session *s);
static void print_help(FILE *out, const struct command *command, const struct session *s);

int cli_main(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    return run_command(argc, argv);
}

static int run_command(int argc, char **argv)
{
    const char *name = argv[1];
    for (size_t i = 0; i < ARRAY_LEN(ALIASES); i++)
        name = strcmp(argv[1], ALIASES[i].alias) == 0 ? ALIASES[i].command : name;
    const struct command *command = command_find(name);
    if (command == NULL)
        return unknown_command(name);
    int words;
    const struct verb *verb = find_verb(command, argc, argv, &words);
    if (verb == NULL)
        return (int)no_verb(command, argc, argv);
    if (verb->standalone != NULL)
        return verb->standalone(argc, argv);
    return (int)run_verb(command, verb, argc, argv, 2 + words);
}

/* --- help as a command --- */

/* `pawl help run start` is `pawl run start --help`. */
static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    if (argc == 2 || argv[2][0] == '-') {
        print_overview(stdout);
        return CLI_DONE;
    }
    for (int i = 1; i + 1 < argc; i++)
        argv[i] = argv[i + 1];
    argv[argc - 1] = help;
    return run_command(argc, argv);
}

static const struct verb HELP_VERBS[] = {
    {.arguments = "[COMMAND] [VERB]",
     .about = "Print help: `pawl help COMMAND` or `pawl help COMMAND VERB`",
     .standalone = run_help},
};

const struct command COMMAND_HELP = {"help",
                                     "Print help: `pawl help COMMAND` or `pawl help COMMAND VERB`",
                                     HELP_VERBS, ARRAY_LEN(HELP_VERBS)};

/* --- running --- */

static enum cli_exit call_verb(struct session *s)
{
    enum cli_exit rc = s->verb->ids != NULL ? names_resolve(s, s->verb->ids) : CLI_DONE;
    if (rc == CLI_DONE)
        rc = s->verb->run(s);
    if (rc == CLI_REFUSED && !s->verb->local)
        names_suggest(s);
    return rc;
}

static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv, int from)
{
    struct session session;
    /* When the reader of our output goes away, writes fail, and a private server is still stopped.
     */
    (void)signal(SIGPIPE, SIG_IGN);
    enum cli_exit rc = session_open(&session, verb, argc, argv, from);
    if (rc == CLI_USAGE)
        print_usage(stderr, command, &session);
    else if (rc == CLI_DONE && session.opt.help)
        print_help(stdout, command, &session);
    else if (rc == CLI_DONE)
        rc = call_verb(&session);
    rc = session_close(&session, rc);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "pawl: Cannot write to standard output: %s\n", strerror(errno));
        rc = rc == CLI_DONE ? CLI_REFUSED : rc;
    }
    return rc;
}

/* --- finding --- */

static int unknown_command(const char *name)
{
    struct suggestion s = suggest_for(str_of(name));
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)) != NULL; i++)
        suggest_consider(&s, str_of(command->name));
    fprintf(stderr, "pawl: Unknown command: %s.", name);
    if (s.best.len > 0)
        fprintf(stderr, " Did you mean \"%.*s\"?", STR_ARG(s.best));
    fputs(" Run `pawl --help` for a list.\n", stderr);
    return CLI_USAGE;
}

/* How many of the words from argv[2] on are the verb's name; -1: they are not. */
static int match_words(const char *name, int argc, char **argv)
{
    struct str rest = str_of(name), word;
    int count = 0;
    for (bool more = rest.len > 0; more; count++) {
        more = str_cut(rest, ' ', &word, &rest);
        if (2 + count >= argc || !str_is(word, argv[2 + count]))
            return -1;
    }
    return count;
}

static const struct verb *find_verb(const struct command *command, int argc, char **argv,
                                    int *ret_words)
{
    for (size_t i = 0; i < command->verb_count; i++) {
        int words = match_words(command->verbs[i].name, argc, argv);
        if (words < 0)
            continue;
        *ret_words = words;
        return &command->verbs[i];
    }
    return NULL;
}

/* "pawl run signal ID NAME" */
static void put_line(const struct command *command, const struct verb *verb,
                     char line[static LINE_MAX_LEN])
{
    const char *const words[] = {verb->name, verb->arguments};
    size_t len = (size_t)snprintf(line, LINE_MAX_LEN, "pawl %s", command->name);
    for (size_t i = 0; i < ARRAY_LEN(words) && len < LINE_MAX_LEN; i++)
        if (words[i] != NULL)
            len += (size_t)snprintf(line + len, LINE_MAX_LEN - len, " %s", words[i]);
    assert(len < LINE_MAX_LEN);
}

/* The verbs whose names start with `prefix`. */
static size_t print_verbs(FILE *out, const struct command *command, struct str prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < command->verb_count; i++) {
        const struct verb *verb = &command->verbs[i];
        char line[LINE_MAX_LEN];
        if (!str_starts_with(str_of(verb->name), prefix))
            continue;
        put_line(command, verb, line);
        int column = fprintf(out, "  %s", line);
        options_print_description(out, column, verb->about);
        count++;
    }
    return count;
}

static void print_command_help(FILE *out, const struct command *command, struct str prefix)
{
    fprintf(out, "usage: pawl %s VERB [ARGUMENTS] [OPTIONS]\n\n%s\n\n", command->name,
            command->about);
    if (print_verbs(out, command, prefix) == 0)
        (void)print_verbs(out, command, STR(""));
    fprintf(out, "\nRun `pawl %s VERB --help` for the options of a verb.\n", command->name);
}

static void report_unknown_verb(const struct command *command, int argc, char **argv)
{
    struct str typed = str_of(argv[2]);
    struct suggestion s = suggest_for(typed);
    char both[SUGGEST_WORD_MAX] = ""; /* a name of two words */
    if (argc > 3)
        (void)snprintf(both, sizeof(both), "%s %s", argv[2], argv[3]);
    struct suggestion two = suggest_for(str_of(both));
    for (size_t i = 0; i < command->verb_count; i++) {
        suggest_consider(&s, str_of(command->verbs[i].name));
        suggest_consider(&two, str_of(command->verbs[i].name));
    }
    struct str best = s.best.len > 0 ? s.best : two.best;
    fprintf(stderr, "pawl: Unknown command: %s %s.", command->name, argv[2]);
    if (best.len > 0)
        fprintf(stderr, " Did you mean \"%s %.*s\"?", command->name, STR_ARG(best));
    fprintf(stderr, " Run `pawl %s --help` for a list.\n", command->name);
}

static enum cli_exit no_verb(const struct command *command, int argc, char **argv)
{
    const char *last = argv[argc - 1];
    if (argc > 2 && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0)) {
        print_command_help(stdout, command, argc > 3 ? str_of(argv[2]) : STR(""));
        return CLI_DONE;
    }
    if (argc > 2) {
        report_unknown_verb(command, argc, argv);
        return CLI_USAGE;
    }
    fprintf(stderr, "pawl: Missing verb: pawl %s VERB\n", command->name);
    print_command_help(stderr, command, STR(""));
    return CLI_USAGE;
}

/* --- help --- */

static void print_commands(FILE *out, bool local)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
        if (command_is_local(command) != local)
            continue;
        fprintf(out, "  %-10s %s\n", command->name, command->about);
        int column = 0;
        for (size_t v = 0; v < command->verb_count && command->verbs[v].name != NULL; v++) {
            bool last = v + 1 == command->verb_count;
            int width = (int)strlen(command->verbs[v].name) + 2;
            if (column > 0 && column + width > OPTIONS_HELP_WIDTH)
                column = fprintf(out, "\n") - 1;
            if (column == 0)
                column = fprintf(out, "             ");
            column += fprintf(out, "%s%s", command->verbs[v].name, last ? "\n" : ", ");
        }
    }
}

static void print_overview(FILE *out)
{
    fprintf(out,
            "pawl %s: a durable workflow control plane in which every retry is safe\n\n"
            "usage: pawl COMMAND [VERB] [ARGUMENTS] [OPTIONS]\n\n",
            PAWL_VERSION);
    print_commands(out, true);
    fputs("\nCommands that call a server:\n", out);
    print_commands(out, false);
    fputs("\nNew here? Start a server with `pawl dev`, then see `pawl help workflow apply`\nand "
          "`pawl help run start`.\n",
          out);
}

static void put_name(const struct command *command, const struct verb *verb, char *out, size_t size)
{
    (void)snprintf(out, size, "pawl %s%s%s", command->name, verb->name != NULL ? " " : "",
                   verb->name != NULL ? verb->name : "");
}

static void print_usage(FILE *out, const struct command *command, const struct session *s)
{
    char name[LINE_MAX_LEN];
    put_name(command, s->verb, name, sizeof(name));
    fprintf(out, "usage: %s", name);
    options_print_usage(out, &s->opt);
    if (!s->opt.help)
        fprintf(out, "Run `%s --help` for the options.\n", name);
}

static void print_note(FILE *out, const char *note)
{
    if (note == NULL)
        return;
    fputc('\n', out);
    options_print_text(out, note);
}

static void print_help(FILE *out, const struct command *command, const struct session *s)
{
    const struct verb *verb = s->verb;
    print_usage(out, command, s);
    fprintf(out, "\n%s\n%s", verb->about, verb->local && verb->options == NULL ? "" : "\n");
    options_print_help(out, verb->options);
    if (verb->options != NULL && !verb->local)
        fputs("\nCommon options:\n", out);
    options_print_help(out, verb->store ? SESSION_STORE_OPTIONS : NULL);
    options_print_help(out, verb->local ? NULL : SESSION_COMMON_OPTIONS);
    print_note(out, verb->notes);
    if (verb->store)
        print_note(out, STORE_NOTE);
    if (!verb->local)
        print_note(out, VARIABLES_NOTE);
    print_note(out, EXIT_CODES_NOTE);
}
