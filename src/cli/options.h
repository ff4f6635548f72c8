/* Flags and arguments of one subcommand, read against lists of the flags it knows.
 * Long flags only, as `--name value` or `--name=value`; `--` ends them. The last one given wins.
 * Where a command is taken, it is all that stands behind `--`. */
#ifndef PAWL_CLI_OPTIONS_H
#define PAWL_CLI_OPTIONS_H

#include "base/str.h"

#include <stdio.h>

enum { OPTIONS_GIVEN_MAX = 64, OPTIONS_LISTS_MAX = 3, OPTIONS_ARGS_MAX = 4 };

/* A list of these ends with one whose name is NULL. */
struct flag {
    const char *name;  /* without its dashes */
    const char *value; /* what the usage calls its value; NULL: a switch */
    const char *help;
    bool required;
    bool many;   /* may be given again and again */
    bool number; /* a whole number from min to max; max 0: no upper bound */
    int64_t min;
    int64_t max;
    const char *word; /* of a number: also taken, and means null */
};

struct options {
    const struct flag *lists[OPTIONS_LISTS_MAX]; /* set by the caller; NULL where unused */
    bool takes_command;                          /* likewise */
    struct {
        const struct flag *flag;
        const char *value;
    } given[OPTIONS_GIVEN_MAX];
    size_t given_count;
    const char *args[OPTIONS_ARGS_MAX];
    size_t arg_count;
    char *const *command; /* ended by NULL; NULL: none was given */
    bool help;            /* --help or -h was there: nothing else counts */
};

/* Reads argv[from…], which must outlive o. False after saying on standard error what is wrong. */
MUST_CHECK bool options_parse(struct options *o, int argc, char **argv, int from);

/* The value given, or NULL. A switch that was given has the value "". Names a flag of the lists. */
const char *options_text(const struct options *o, const char *name);
bool options_has(const struct options *o, const char *name);
int64_t options_number(const struct options *o, const char *name, int64_t fallback);
/* The flag, else the environment variable, else NULL; an empty variable counts as none. */
const char *options_text_or_env(const struct options *o, const char *name, const char *variable);
/* The values of a flag that may be given many times: start with *at = 0; NULL ends it. */
const char *options_next(const struct options *o, const char *name, size_t *at);
/* The flag's description; asserts that there is one. */
const struct flag *options_flag(const struct options *o, const char *name);

/* One line of help for each flag of the list. */
void flags_help(FILE *out, const struct flag *list);
/* " --role ROLE [--label TEXT] …" */
void flags_usage(FILE *out, const struct flag *list);

#endif
