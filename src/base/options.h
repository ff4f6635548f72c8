/* Command-line options, read from tables that also make the help. The server and the client use it.
 *
 * Long options only: `--name value` or `--name=value`; the last one given wins, `--` ends them. An
 * option that is not given takes its environment variable, then its default. Every value is checked
 * against its option, wherever it comes from. */
#ifndef PAWL_BASE_OPTIONS_H
#define PAWL_BASE_OPTIONS_H

#include "base/problem.h"

#include <stdio.h>

enum {
    OPTIONS_VALUES_MAX = 64, /* more than any command line that a person writes */
    OPTIONS_LISTS_MAX = 3,
    OPTIONS_ARGUMENTS_MAX = 4,
    OPTIONS_HELP_COLUMN = 34, /* where descriptions start */
    OPTIONS_HELP_WIDTH = 80,
};

enum option_kind {
    OPTION_TEXT,
    OPTION_SWITCH, /* takes no value; "0" in its variable is off */
    OPTION_NUMBER, /* a whole number */
    OPTION_CHOICE, /* one of a few words */
};

/* A list of options ends with one whose name is NULL. */
struct option {
    const char *name; /* without dashes */
    enum option_kind kind;
    const char *value;    /* what the help calls its value; NULL for a choice: its words */
    const char *help;     /* one sentence without a full stop */
    const char *variable; /* the environment variable that sets it; NULL: none */
    const char *fallback; /* the default; NULL: none */
    bool required;
    bool many; /* may be given several times */
    /* Of a number: */
    int64_t min;
    int64_t max;      /* 0: no upper bound */
    const char *unit; /* "milliseconds"; NULL: none */
    const char *word; /* is allowed too, and means null; NULL: none */
    /* Of a choice: "text|json" */
    const char *choices;
};

struct options {
    /* Set by the caller; all may be NULL. Lists are searched in this order. */
    const struct option *lists[OPTIONS_LISTS_MAX];
    const char *arguments; /* "ID NAME [PAYLOAD]": the last ones may be optional */
    const char *command;   /* "COMMAND [ARG...]": it follows `--` and must be there */
    /* Read from the command line: */
    const char *args[OPTIONS_ARGUMENTS_MAX]; /* NULL: left out */
    char *const *argv;                       /* of the command, ended by NULL */
    bool help;                               /* --help or -h: nothing was checked */
    struct {
        const struct option *option;
        const char *value;
        bool is_given; /* on the command line; otherwise by its variable */
    } values[OPTIONS_VALUES_MAX];
    size_t value_count;
};

/* Reads argv[from…], which must outlive o. ERR_FIELD_INVALID with a message for people. */
MUST_CHECK enum err options_parse(struct options *o, int argc, char **argv, int from,
                                  struct problem *p);

/* The functions below assert that one of the lists has the name. */

/* The value from the command line, the environment or the table; NULL: none. A switch that is on
 * has the value "1". */
const char *options_text(const struct options *o, const char *name);
bool options_has(const struct options *o, const char *name);
/* Of a number; `otherwise` when there is none. */
int64_t options_number(const struct options *o, const char *name, int64_t otherwise);
/* The option is on the command line. */
bool options_is_given(const struct options *o, const char *name);
/* The values of an option that may be given several times. Start with *at = 0; NULL ends them. */
const char *options_next(const struct options *o, const char *name, size_t *at);

const struct option *options_find(const struct options *o, const char *name);
/* As options_text, of an option that another list may hide. */
const char *options_value(const struct options *o, const struct option *option);

/* " ID NAME --role ROLE [options] -- COMMAND", for the usage line. */
void options_print_usage(FILE *out, const struct options *o);
/* One entry for each option of a list. */
void options_print_help(FILE *out, const struct option *list);
/* `text` in the help's right column, on as many lines as it needs; `column`: where the line is now.
 */
void options_print_description(FILE *out, int column, const char *text);
/* Paragraphs, filled to the help's width; a line that begins with two blanks is an item of a list,
 * its word is followed by the text: "  0      The job is done". */
void options_print_text(FILE *out, const char *text);

#endif
