/* pawl doctor: has the server check its data, and rebuild what it derives from the runs. */
#include "cli/commands.h"

enum { DOCTOR_TIMEOUT_S = 600 }; /* the server reads all data */

static const struct option OPTIONS[] = {
    {.name = "repair", .kind = OPTION_SWITCH, .help = "Rebuild derived data, then check again"},
    {.name = NULL},
};

static const struct column COLUMNS[] = {
    {"CHECK", "name"},
    {"OK", "ok"},
    {"CHECKED", "checked"},
    {"DETAIL", "detail"},
};

static enum cli_exit doctor(struct session *s);

static const struct verb VERBS[] = {
    {.about = "Check the data; exit code 1 if something is wrong",
     .options = OPTIONS,
     .run = doctor,
     .store = true,
     .timeout_s = DOCTOR_TIMEOUT_S},
};

const struct command COMMAND_DOCTOR = {"doctor", "Check the data, and rebuild derived data", VERBS,
                                       ARRAY_LEN(VERBS)};

/* "slots: active_runs of the tenant is not …, tenant acme, kept 3, counted 2" */
static void show_finding(const json_t *check, json_t *finding)
{
    static const char *const MEMBERS[] = {"tenant", "run_id", "entity_type", "entity_id",
                                          "seq",    "kept",   "counted",     "shard"};
    value_print(stdout, json_object_get(check, "name"));
    fputs(": ", stdout);
    value_print(stdout, json_object_get(finding, "what"));
    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        const json_t *value = json_object_get(finding, MEMBERS[i]);
        if (value == NULL)
            continue;
        printf(", %s ", MEMBERS[i]);
        value_print(stdout, value);
    }
    putchar('\n');
}

static void show_findings(json_t *answer)
{
    size_t i, j;
    json_t *check, *finding;
    json_array_foreach (json_object_get(answer, "checks"), i, check) {
        json_array_foreach (json_object_get(check, "found"), j, finding)
            show_finding(check, finding);
    }
}

static void show_checks(struct session *s, json_t *answer)
{
    (void)s;
    rows_print(stdout, COLUMNS, ARRAY_LEN(COLUMNS), json_object_get(answer, "checks"));
    show_findings(answer);
}

static void show_repair(struct session *s, json_t *answer)
{
    (void)s;
    show_findings(answer);
    fputs("repaired: ", stdout);
    value_print(stdout, json_object_get(answer, "repaired"));
    fputs("\n\n", stdout);
}

static enum cli_exit doctor(struct session *s)
{
    if (options_has(&s->opt, "repair")) {
        session_path(s, "/api/v1/doctor/repair", "", "");
        enum cli_exit repaired = session_call(s, "POST", show_repair);
        if (repaired != CLI_DONE)
            return repaired;
    }
    session_path(s, "/api/v1/doctor", "", "");
    enum cli_exit rc = session_call(s, "GET", show_checks);
    if (rc == CLI_DONE && !json_is_true(json_object_get(s->answer, "ok")))
        rc = CLI_REFUSED;
    return rc;
}
