/* The commands: a row for each verb, in the file that is named after the command. Help, "did you
 * mean", completion and manual pages come from these rows. */
#ifndef PAWL_CLI_COMMANDS_H
#define PAWL_CLI_COMMANDS_H

#include "cli/session.h"

struct command {
    const char *name;
    const char *about; /* one line without a full stop */
    const struct verb *verbs;
    size_t verb_count;
};

/* Adds the commands that main.c knows, once, before the others below. */
void commands_add(const struct command *first, size_t count);
/* All of them, in the order of `pawl --help`: first those that call no server. NULL at the end. */
const struct command *command_at(size_t i);
/* NULL: there is none. */
const struct command *command_find(const char *name);
/* True when no verb of it calls a server. */
bool command_is_local(const struct command *command);

extern const struct command COMMAND_HELP;
extern const struct command COMMAND_CONTEXT;
extern const struct command COMMAND_COMPLETION;
extern const struct command COMMAND_MAN;
extern const struct command COMMAND_DEMO;
extern const struct command COMMAND_NEW;

extern const struct command COMMAND_WORKFLOW;
extern const struct command COMMAND_RUN;
extern const struct command COMMAND_APPROVAL;
extern const struct command COMMAND_ENTITY;
extern const struct command COMMAND_SCHEDULE;
extern const struct command COMMAND_WEBHOOK;
extern const struct command COMMAND_JOB;
extern const struct command COMMAND_DEAD;
extern const struct command COMMAND_WORKER;
extern const struct command COMMAND_IDEM;
extern const struct command COMMAND_TENANT;
extern const struct command COMMAND_KEY;
extern const struct command COMMAND_AUDIT;
extern const struct command COMMAND_EVENTS;
extern const struct command COMMAND_DOCTOR;
extern const struct command COMMAND_BACKUP;
extern const struct command COMMAND_BENCH;

/* Verbs of commands that main.c puts together. */
enum cli_exit cluster_status(struct session *s);

#endif
