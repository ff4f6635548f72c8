/* pawl idem: idempotency keys and the requests that used them. */
#include "cli/commands.h"

static const char KEYS[] = "/api/v1/idempotency-keys/";

static enum cli_exit idem_show(struct session *s);
static enum cli_exit idem_release(struct session *s);

static const struct verb VERBS[] = {
    {.name = "show",
     .arguments = "KEY",
     .about = "Show the first request with an idempotency key, and its repeats",
     .run = idem_show},
    {.name = "release",
     .arguments = "KEY",
     .about = "Forget an idempotency key, so that it can be used again",
     .run = idem_release},
};

const struct command COMMAND_IDEM = {"idem", "Inspect and release idempotency keys", VERBS,
                                     ARRAY_LEN(VERBS)};

static enum cli_exit idem_show(struct session *s)
{
    session_path(s, KEYS, s->args[0], "");
    return session_call(s, "GET", session_show_object);
}

static void show_released(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s released\n", s->args[0]);
}

static enum cli_exit idem_release(struct session *s)
{
    session_path(s, KEYS, s->args[0], "");
    return session_call(s, "DELETE", show_released);
}
