/* pawl man: manual pages in mdoc, written from the table of commands: one for pawl, and one for
 * each command. */
#include "cli/commands.h"

#include <errno.h>
#include <sys/stat.h>

static enum cli_exit man_page(struct session *s);

static const struct option OPTIONS[] = {
    {.name = "to", .value = "DIR", .help = "Write the pages of all commands into this folder"},
    {.name = NULL},
};

static const struct verb VERBS[] = {
    {.arguments = "[COMMAND]",
     .about = "Print the manual page of pawl or of a command",
     .notes = "Read one with: pawl man run | man -l -",
     .options = OPTIONS,
     .local = true,
     .run = man_page},
};

const struct command COMMAND_MAN = {"man", "Print a manual page", VERBS, ARRAY_LEN(VERBS)};

/* --- text --- */

/* A line of text: backslashes and leading control characters mean something to roff. */
static void put_text(FILE *out, const char *text)
{
    bool at_start = true;
    for (const char *p = text; *p != '\0'; p++) {
        if (at_start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else if (*p == '`')
            fputs("\\(ga", out);
        else if (*p == '.' && p[1] == ' ') { /* a sentence ends its line */
            fputs(".\n", out);
            p++;
            at_start = true;
            continue;
        } else
            putc(*p, out);
        at_start = *p == '\n';
    }
    putc('\n', out);
}

/* Paragraphs of a note; an empty line begins the next. */
static void put_note(FILE *out, const char *note)
{
    struct str rest = str_of(note), line;
    char text[1024];
    for (bool more = note != NULL; more;) {
        more = str_cut(rest, '\n', &line, &rest);
        line = str_trim(line);
        if (line.len == 0) {
            if (more && rest.len > 0)
                fputs(".Pp\n", out);
            continue;
        }
        (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
        put_text(out, text);
    }
}

/* The value of an option as one argument of a macro. */
static void put_value(FILE *out, const struct option *option)
{
    const char *value = option->value != NULL ? option->value : option->choices;
    if (option->kind != OPTION_SWITCH)
        fprintf(out, " Ar \"%s\"", value);
}

/* "(one of a, b, c)" */
static void put_choices(FILE *out, const char *choices)
{
    fputs("(one of ", out);
    for (const char *p = choices; *p != '\0'; p++) {
        if (*p == '|')
            fputs(", ", out);
        else
            putc(*p, out);
    }
    fputs(")\n", out);
}

static void put_options(FILE *out, const struct option *list)
{
    if (list == NULL || list->name == NULL)
        return;
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct option *o = list; o->name != NULL; o++) {
        fprintf(out, ".It Fl \\-%s", o->name);
        put_value(out, o);
        putc('\n', out);
        put_text(out, o->help);
        if (o->kind == OPTION_CHOICE && o->value != NULL)
            put_choices(out, o->choices);
        if (o->fallback != NULL)
            fprintf(out, "(default: %s)\n", o->fallback);
        if (o->variable != NULL)
            fprintf(out, ".Ev %s\nsets it too.\n", o->variable);
    }
    fputs(".El\n", out);
}

/* --- pages --- */

static void begin_page(FILE *out, const char *name, const char *about)
{
    fprintf(out, ".Dd November 1, 2026\n.Dt %s 1\n.Os pawl %s\n.Sh NAME\n.Nm %s\n.Nd ", name,
            PAWL_VERSION, name);
    put_text(out, about);
}

static void put_synopsis(FILE *out, const struct command *command, const struct verb *verb)
{
    fprintf(out, ".Nm pawl %s", command->name);
    if (verb->name != NULL)
        fprintf(out, " %s", verb->name);
    if (verb->arguments != NULL)
        fprintf(out, " Ar %s", verb->arguments);
    fputs(" Op Ar OPTIONS", out);
    if (verb->command != NULL)
        fprintf(out, " \\-\\- Ar %s", verb->command);
    putc('\n', out);
}

static void put_verb(FILE *out, const struct command *command, const struct verb *verb)
{
    if (verb->name != NULL)
        fprintf(out, ".Ss pawl %s %s\n", command->name, verb->name);
    put_text(out, verb->about);
    put_options(out, verb->options);
    put_options(out, verb->more_options);
    if (verb->store)
        put_options(out, SESSION_STORE_OPTIONS);
    if (verb->notes != NULL) {
        fputs(".Pp\n", out);
        put_note(out, verb->notes);
    }
}

static void put_ends(FILE *out)
{
    fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds -compact\n.It 0\ndone\n.It 1\nrefused by the server "
          "or "
          "failed\n.It 2\nwrong usage\n.It 3\ncannot reach the server\n.El\n",
          out);
}

static void put_command_page(FILE *out, const struct command *command)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "pawl-%s", command->name);
    begin_page(out, name, command->about);
    fputs(".Sh SYNOPSIS\n", out);
    for (size_t v = 0; v < command->verb_count; v++)
        put_synopsis(out, command, &command->verbs[v]);
    fputs(".Sh DESCRIPTION\n", out);
    for (size_t v = 0; v < command->verb_count; v++)
        put_verb(out, command, &command->verbs[v]);
    if (!command_is_local(command)) {
        fputs(".Sh COMMON OPTIONS\n", out);
        put_options(out, SESSION_COMMON_OPTIONS);
    }
    put_ends(out);
    fputs(".Sh SEE ALSO\n.Xr pawl 1\n", out);
}

static void put_main_page(FILE *out)
{
    const struct command *command;
    begin_page(out, "pawl", "a durable workflow control plane in which every retry is safe");
    fputs(".Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n.Op Ar VERB\n.Op Ar ARGUMENTS\n.Op Ar OPTIONS\n"
          ".Sh DESCRIPTION\nEach command has a page of its own.\n.Bl -tag -width Ds\n",
          out);
    for (size_t c = 0; (command = command_at(c)) != NULL; c++) {
        fprintf(out, ".It Xr pawl-%s 1\n", command->name);
        put_text(out, command->about);
    }
    fputs(".El\n.Sh COMMON OPTIONS\nOf the commands that call a server:\n", out);
    put_options(out, SESSION_COMMON_OPTIONS);
    put_ends(out);
}

static bool write_page(const char *folder, const struct command *command)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/pawl%s%s.1", folder, command != NULL ? "-" : "",
                   command != NULL ? command->name : "");
    FILE *out = fopen(path, "we");
    if (out == NULL) {
        fprintf(stderr, "pawl: %s: %s\n", path, strerror(errno));
        return false;
    }
    if (command != NULL)
        put_command_page(out, command);
    else
        put_main_page(out);
    return fclose(out) == 0;
}

static enum cli_exit man_page(struct session *s)
{
    const char *folder = options_text(&s->opt, "to");
    const struct command *command = s->args[0] != NULL ? command_find(s->args[0]) : NULL;
    if (s->args[0] != NULL && command == NULL) {
        fprintf(stderr, "pawl: Unknown command: %s. Run `pawl --help` for a list.\n", s->args[0]);
        return CLI_USAGE;
    }
    if (folder == NULL) {
        if (command != NULL)
            put_command_page(stdout, command);
        else
            put_main_page(stdout);
        return CLI_DONE;
    }
    (void)mkdir(folder, 0755); /* fopen says what is wrong */
    bool ok = write_page(folder, NULL);
    for (size_t c = 0; ok && (command = command_at(c)) != NULL; c++)
        ok = write_page(folder, command);
    return ok ? CLI_DONE : CLI_REFUSED;
}
