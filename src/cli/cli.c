/* The dispatch table of the client's subcommands, and their help. */
#include "cli/cli.h"

#include "cli/commands.h"

#include <errno.h>
#include <signal.h>

static const struct command *const COMMANDS[] = {
    &COMMAND_WORKFLOW, &COMMAND_RUN,   &COMMAND_APPROVAL, &COMMAND_ENTITY,  &COMMAND_SCHEDULE,
    &COMMAND_JOB,      &COMMAND_DEAD,  &COMMAND_WORKER,   &COMMAND_IDEM,    &COMMAND_TENANT,
    &COMMAND_KEY,      &COMMAND_AUDIT, &COMMAND_EVENTS,   &COMMAND_WEBHOOK, &COMMAND_DOCTOR,
    &COMMAND_BACKUP,   &COMMAND_BENCH,
};

static const struct command *find_command(const char *name);
static const struct verb *find_verb(const struct command *command, int argc, char **argv);
static int words_of(const struct verb *verb);
static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv);
static void command_help(FILE *out, const struct command *command);
static void verb_usage(FILE *out, const struct command *command, const struct verb *verb);
static void verb_help(FILE *out, const struct command *command, const struct verb *verb);

int cli_main(int argc, char **argv)
{
    assert(argc >= 2);
    const struct command *command = find_command(argv[1]);
    if (command == NULL) {
        fprintf(stderr, "pawl: unknown command %s; see pawl --help\n", argv[1]);
        return CLI_USAGE;
    }
    const struct verb *verb = find_verb(command, argc, argv);
    if (verb != NULL)
        return (int)run_verb(command, verb, argc, argv);
    const char *word = argc > 2 ? argv[2] : NULL;
    const char *last = argv[argc - 1]; /* behind a group of verbs, perhaps */
    bool asked = word != NULL && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0);
    if (word != NULL && !asked)
        fprintf(stderr, "pawl: unknown command %s %s\n", command->name, word);
    fputs("usage:\n", asked ? stdout : stderr);
    command_help(asked ? stdout : stderr, command);
    return asked ? CLI_DONE : CLI_USAGE;
}

bool cli_knows(const char *name)
{
    return find_command(name) != NULL;
}

void cli_help(FILE *out)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        command_help(out, COMMANDS[i]);
}

static enum cli_exit run_verb(const struct command *command, const struct verb *verb, int argc,
                              char **argv)
{
    struct session session;
    /* A reader that went away is an error of writing, not the end of us and of a private server. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fprintf(stderr, "pawl: libcurl cannot be used\n");
        return CLI_REFUSED;
    }
    enum cli_exit rc = session_open(&session, verb, argc, argv, 2 + words_of(verb));
    if (rc == CLI_USAGE)
        verb_usage(stderr, command, verb);
    else if (rc == CLI_DONE && session.opt.help)
        verb_help(stdout, command, verb);
    else if (rc == CLI_DONE)
        rc = verb->run(&session);
    rc = session_close(&session, rc);
    curl_global_cleanup();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "pawl: cannot write to standard output: %s\n", strerror(errno));
        rc = rc == CLI_DONE ? CLI_REFUSED : rc;
    }
    return rc;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    return NULL;
}

static int words_of(const struct verb *verb)
{
    return (verb->group != NULL) + (verb->name != NULL);
}

/* A command whose only verb has no name needs none. */
static const struct verb *find_verb(const struct command *command, int argc, char **argv)
{
    for (size_t i = 0; i < command->verb_count; i++) {
        const struct verb *verb = &command->verbs[i];
        const char *const words[] = {verb->group, verb->name};
        int at = 2;
        bool fits = argc >= at + words_of(verb);
        for (size_t w = 0; w < ARRAY_LEN(words) && fits; w++)
            fits = words[w] == NULL || strcmp(words[w], argv[at++]) == 0;
        if (fits)
            return verb;
    }
    return NULL;
}

/* --- help --- */

/* "pawl run signal ID NAME", and how many characters that is. */
static int verb_line(FILE *out, const struct command *command, const struct verb *verb)
{
    const char *const words[] = {verb->group, verb->name, verb->arg,
                                 verb->arg2,  verb->arg3, verb->arg4};
    int width = fprintf(out, "pawl %s", command->name);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i] != NULL)
            width += fprintf(out, " %s", words[i]);
    return width;
}

static void command_help(FILE *out, const struct command *command)
{
    for (size_t i = 0; i < command->verb_count; i++) {
        fputs("  ", out);
        int width = 2 + verb_line(out, command, &command->verbs[i]);
        fprintf(out, "%*s%s\n", MAX(2, 34 - width), "", command->verbs[i].about);
    }
}

static void verb_usage(FILE *out, const struct command *command, const struct verb *verb)
{
    fputs("usage: ", out);
    (void)verb_line(out, command, verb);
    flags_usage(out, verb->flags);
    flags_usage(out, verb->store ? SESSION_STORE_FLAGS : NULL);
    fputs(" [--url URL] [--json] ...", out);
    if (verb->command != NULL)
        fprintf(out, " -- %s", verb->command);
    fputs("; see --help\n", out);
}

static void verb_help(FILE *out, const struct command *command, const struct verb *verb)
{
    verb_usage(out, command, verb);
    fprintf(out, "\n%s\n\n", verb->about);
    flags_help(out, verb->flags);
    if (verb->store)
        flags_help(out, SESSION_STORE_FLAGS);
    flags_help(out, SESSION_COMMON_FLAGS);
    if (verb->notes != NULL)
        fprintf(out, "\n%s", verb->notes);
    if (verb->store)
        fprintf(out,
                "\nWith --store, or with PAWL_STORE and no URL, a private server works on that "
                "file for the time of this\ncommand, as its administrator; no other server may "
                "use the file meanwhile. With neither a store nor a URL\nthe server at "
                "http://127.0.0.1:7295 is asked.\n");
    fprintf(out, "\nexit code: 0 done, 1 refused, 2 usage, 3 cannot reach the server\n");
}
