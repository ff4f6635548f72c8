/* The table of all commands. */
#include "cli/commands.h"

static const struct command *const COMMANDS[] = {
    &COMMAND_HELP,     &COMMAND_NEW,      &COMMAND_CONTEXT, &COMMAND_COMPLETION, &COMMAND_MAN,
    &COMMAND_DEMO,     &COMMAND_WORKFLOW, &COMMAND_RUN,     &COMMAND_APPROVAL,   &COMMAND_ENTITY,
    &COMMAND_SCHEDULE, &COMMAND_WORKER,   &COMMAND_JOB,     &COMMAND_DEAD,       &COMMAND_EVENTS,
    &COMMAND_WEBHOOK,  &COMMAND_TENANT,   &COMMAND_KEY,     &COMMAND_IDEM,       &COMMAND_AUDIT,
    &COMMAND_DOCTOR,   &COMMAND_BACKUP,   &COMMAND_BENCH,
};

static struct {
    const struct command *list;
    size_t count;
} first_commands;

void commands_add(const struct command *first, size_t count)
{
    assert(first_commands.list == NULL);
    first_commands.list = first;
    first_commands.count = count;
}

const struct command *command_at(size_t i)
{
    if (i < first_commands.count)
        return &first_commands.list[i];
    i -= first_commands.count;
    return i < ARRAY_LEN(COMMANDS) ? COMMANDS[i] : NULL;
}

const struct command *command_find(const char *name)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)) != NULL; i++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

bool command_is_local(const struct command *command)
{
    assert(command->verb_count > 0);
    return command->verbs[0].local || command->verbs[0].standalone != NULL;
}
