/* pawl doctor: has the server check its own data. */
#include "cli/commands.h"

enum { DOCTOR_TIMEOUT_S = 600 }; /* it reads everything */

static const struct column COLUMNS[] = {
    {"CHECK", "name"},
    {"OK", "ok"},
    {"CHECKED", "checked"},
    {"DETAIL", "detail"},
};

static enum cli_exit doctor(struct session *s);

static const struct verb VERBS[] = {
    {.about = "check the data; exit code 1 when something is wrong",
     .run = doctor,
     .store = true,
     .timeout_s = DOCTOR_TIMEOUT_S},
};

const struct command COMMAND_DOCTOR = {"doctor", VERBS, ARRAY_LEN(VERBS)};

static void show_checks(struct session *s, json_t *answer)
{
    (void)s;
    size_t i, j;
    json_t *check, *found;
    json_t *checks = json_object_get(answer, "checks");
    struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    table_add(&table, checks);
    if (!table_print(&table, stdout))
        fprintf(stderr, "pawl: the checks do not fit into a table: use --json\n");
    table_release(&table);
    json_array_foreach (checks, i, check) {
        json_array_foreach (json_object_get(check, "found"), j, found) {
            value_print(stdout, json_object_get(check, "name"));
            fputs(": ", stdout);
            value_print(stdout, found);
            putchar('\n');
        }
    }
}

static enum cli_exit doctor(struct session *s)
{
    session_path(s, "/api/v1/doctor", "", "");
    enum cli_exit rc = session_call(s, "GET", show_checks);
    if (rc == CLI_DONE && !json_is_true(json_object_get(s->answer, "ok")))
        rc = CLI_REFUSED;
    return rc;
}
