/* pawl idem: what the server remembers about an idempotency key. */
#include "cli/commands.h"

static const char KEYS[] = "/api/v1/idempotency-keys/";

static enum cli_exit idem_show(struct session *s);
static enum cli_exit idem_release(struct session *s);

static const struct verb VERBS[] = {
    {.name = "show", .arg = "KEY", .about = "the first request of a key", .run = idem_show},
    {.name = "release",
     .arg = "KEY",
     .about = "forget a key, so that it may be used anew",
     .run = idem_release},
};

const struct command COMMAND_IDEM = {"idem", VERBS, ARRAY_LEN(VERBS)};

static enum cli_exit idem_show(struct session *s)
{
    session_path(s, KEYS, s->arg, "");
    return session_call(s, "GET", session_show_object);
}

static void show_released(struct session *s, json_t *answer)
{
    (void)answer;
    printf("%s released\n", s->arg);
}

static enum cli_exit idem_release(struct session *s)
{
    session_path(s, KEYS, s->arg, "");
    return session_call(s, "DELETE", show_released);
}
