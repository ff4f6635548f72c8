/* Finds the verb that a command line names, runs it or prints its help. */
#include "cli/cli.h"

#include "cli/commands.h"

#include <errno.h>
#include <signal.h>

/* In the order of `pawl --help`. */
static const struct command *const COMMANDS[] = {
    &COMMAND_WORKFLOW, &COMMAND_RUN,   &COMMAND_APPROVAL, &COMMAND_ENTITY, &COMMAND_SCHEDULE,
    &COMMAND_WORKER,   &COMMAND_JOB,   &COMMAND_DEAD,     &COMMAND_EVENTS, &COMMAND_WEBHOOK,
    &COMMAND_TENANT,   &COMMAND_KEY,   &COMMAND_IDEM,     &COMMAND_AUDIT,  &COMMAND_DOCTOR,
    &COMMAND_BACKUP,   &COMMAND_BENCH,
};

enum { LINE_MAX_LEN = 96 };

static const struct command *find_command(const char *name);
static const struct verb *find_verb(const struct command *command, int argc, char **argv,
                                    int *ret_words);
static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv, int from);
static enum cli_exit no_verb(const struct command *command, int argc, char **argv);
static void print_usage(FILE *out, const struct command *command, const struct session *s);
static void print_help(FILE *out, const struct command *command, const struct session *s);

int cli_main(int argc, char **argv)
{
    assert(argc >= 2);
    const struct command *command = find_command(argv[1]);
    assert(command != NULL);
    int words;
    const struct verb *verb = find_verb(command, argc, argv, &words);
    if (verb == NULL)
        return (int)no_verb(command, argc, argv);
    return (int)run_verb(command, verb, argc, argv, 2 + words);
}

bool cli_knows(const char *name)
{
    return find_command(name) != NULL;
}

void cli_suggest(struct suggestion *s)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        suggest_consider(s, str_of(COMMANDS[i]->name));
}

static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv, int from)
{
    struct session session;
    /* When the reader of our output goes away, writes fail, and a private server is still stopped.
     */
    (void)signal(SIGPIPE, SIG_IGN);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fprintf(stderr, "pawl: Cannot initialize libcurl\n");
        return CLI_REFUSED;
    }
    enum cli_exit rc = session_open(&session, verb, argc, argv, from);
    if (rc == CLI_USAGE)
        print_usage(stderr, command, &session);
    else if (rc == CLI_DONE && session.opt.help)
        print_help(stdout, command, &session);
    else if (rc == CLI_DONE)
        rc = verb->run(&session);
    rc = session_close(&session, rc);
    curl_global_cleanup();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "pawl: Cannot write to standard output: %s\n", strerror(errno));
        rc = rc == CLI_DONE ? CLI_REFUSED : rc;
    }
    return rc;
}

/* --- finding --- */

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    return NULL;
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

void cli_print_commands(FILE *out)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++) {
        const struct command *command = COMMANDS[i];
        fprintf(out, "  %-10s %s\n", command->name, command->about);
        for (size_t v = 0; v < command->verb_count && command->verbs[v].name != NULL; v++)
            fprintf(out, "%s%s%s", v == 0 ? "             " : ", ", command->verbs[v].name,
                    v + 1 == command->verb_count ? "\n" : "");
    }
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

static void print_help(FILE *out, const struct command *command, const struct session *s)
{
    const struct verb *verb = s->verb;
    print_usage(out, command, s);
    fprintf(out, "\n%s\n\n", verb->about);
    options_print_help(out, verb->options);
    if (verb->options != NULL)
        fputs("\nCommon options:\n", out);
    options_print_help(out, verb->store ? SESSION_STORE_OPTIONS : NULL);
    options_print_help(out, SESSION_COMMON_OPTIONS);
    if (verb->notes != NULL)
        fprintf(out, "\n%s", verb->notes);
    if (verb->store)
        fputs("\nWith --store, the command starts a private server on the data file, with the role "
              "admin, and stops\nit at the end. No other server may use the file at that time.\n",
              out);
    fputs("\nThe name in brackets is the environment variable that sets the option; the command "
          "line overrides it.\nExit codes: 0 done, 1 refused by the server or failed, 2 wrong "
          "usage, 3 "
          "cannot reach the server\n",
          out);
}
