/* The table of step types against the pages that document it. */
#include "base/support.h"
#include "domain/doc_table.h"

#include "domain/workflow/step_type.h"

struct listed {
    bool types[STEP_TYPE_COUNT];
};

static void note_type(struct listed *listed, struct str name)
{
    enum step_type type;
    if (!step_type_parse(name, &type))
        fail_msg("%.*s is documented, but domain/workflow/step_type.h has no such row",
                 STR_ARG(name));
    listed->types[type] = true;
}

/* The name stands between the first back quotes of the row. */
static void note_row(void *ctx, const struct doc_row *row)
{
    struct str before;
    struct str rest = row->cells[0];
    struct str name = rest;
    if (str_cut(rest, '`', &before, &rest))
        (void)str_cut(rest, '`', &name, &rest);
    note_type(ctx, name);
}

static void check_listed(const struct listed *listed, bool only_runs, const char *where)
{
    for (enum step_type type = 0; type < STEP_TYPE_COUNT; type++) {
        bool wanted = !only_runs || step_type_is(type, STEP_RUNS);
        if (wanted != listed->types[type])
            fail_msg("%s is missing from, or wrongly in, %s", step_type_name(type), where);
    }
}

static void check_table(const char *page, const char *mark)
{
    char *text = doc_read(page);
    struct listed listed = {0};
    (void)doc_each_row(doc_marked(text, mark), note_row, &listed);
    check_listed(&listed, true, page);
    free(text);
}

static void the_page_about_workflows_lists_every_type(void **state UNUSED)
{
    check_table("workflows.md", "<!-- table: step types -->");
}

static void the_api_page_lists_the_members_of_every_type(void **state UNUSED)
{
    check_table("api.md", "<!-- table: members of step types -->");
}

static void the_enum_of_openapi_lists_every_type(void **state UNUSED)
{
    char *text = doc_read("openapi.yaml");
    struct listed listed = {0};
    char *from = strstr(strstr(text, "\n    StepType:\n"), "enum: [") + strlen("enum: [");
    char *rest = NULL;
    char *list = strndup(from, strcspn(from, "]"));
    for (char *name = strtok_r(list, " ,\n", &rest); name != NULL;
         name = strtok_r(NULL, " ,\n", &rest))
        note_type(&listed, str_of(name));
    check_listed(&listed, false, "the enum StepType of docs/openapi.yaml");
    free(list);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_about_workflows_lists_every_type),
        cmocka_unit_test(the_api_page_lists_the_members_of_every_type),
        cmocka_unit_test(the_enum_of_openapi_lists_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
