/* The table of timeline events against the pages that document it. */
#include "base/support.h"
#include "domain/doc_table.h"

#include "domain/timeline.h"

struct listed {
    bool types[EVENT_TYPE_COUNT];
};

static void note_type(struct listed *listed, struct str name)
{
    enum event_type type = event_type_of(name);
    if (type == EVENT_TYPE_COUNT)
        fail_msg("%.*s is documented, but domain/timeline.h has no such row", STR_ARG(name));
    listed->types[type] = true;
}

/* The first cell of a row names one type or several, each between back quotes; the outermost are
 * cut off already. */
static void note_row(void *ctx, const struct doc_row *row)
{
    struct str rest = row->cells[0];
    struct str name;
    bool more = true;
    while (more) {
        more = str_cut(rest, '`', &name, &rest);
        if (memchr(name.ptr, '.', name.len) != NULL)
            note_type(ctx, name);
    }
}

static void check_listed(const struct listed *listed, unsigned whose, const char *page)
{
    for (enum event_type type = 0; type < EVENT_TYPE_COUNT; type++) {
        bool wanted = (event_type_flags(type) & whose) != 0;
        if (wanted != listed->types[type])
            fail_msg("%.*s %s", STR_ARG(event_type_name(type)), page);
    }
}

static void the_tables_of_the_api_page_list_every_event(void **state UNUSED)
{
    char *text = doc_read("api.md");
    struct listed of_runs = {0};
    struct listed of_entities = {0};
    (void)doc_each_row(doc_marked(text, "<!-- table: events of runs -->"), note_row, &of_runs);
    (void)doc_each_row(doc_marked(text, "<!-- table: events of entities -->"), note_row,
                       &of_entities);
    check_listed(&of_runs, EVENT_OF_RUN, "is missing from, or wrongly in, the runs of docs/api.md");
    check_listed(&of_entities, EVENT_OF_ENTITY,
                 "is missing from, or wrongly in, the entities of docs/api.md");
    free(text);
}

/* The list in brackets of the first enum in a schema, over several lines. */
static void check_enum(char *text, const char *schema, unsigned whose)
{
    struct listed listed = {0};
    char *from = strstr(strstr(text, schema), "enum: [");
    assert_non_null(from);
    char *rest = NULL;
    from += strlen("enum: [");
    char *list = strndup(from, strcspn(from, "]"));
    for (char *name = strtok_r(list, " ,\n", &rest); name != NULL;
         name = strtok_r(NULL, " ,\n", &rest))
        note_type(&listed, str_of(name));
    free(list);
    check_listed(&listed, whose, "is missing from, or wrongly in, an enum of docs/openapi.yaml");
}

static void the_enums_of_openapi_list_every_event(void **state UNUSED)
{
    char *text = doc_read("openapi.yaml");
    check_enum(text, "\n    Event:\n", EVENT_OF_RUN);
    check_enum(text, "\n    EntityEvent:\n", EVENT_OF_ENTITY);
    free(text);
}

static void a_name_leads_back_to_its_type(void **state UNUSED)
{
    for (enum event_type type = 0; type < EVENT_TYPE_COUNT; type++)
        assert_int_equal(event_type_of(event_type_name(type)), type);
    assert_int_equal(event_type_of(STR("run.unheard_of")), EVENT_TYPE_COUNT);
}

static void every_end_of_a_run_has_the_event_of_its_status(void **state UNUSED)
{
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        if (!run_has_ended(status))
            continue;
        char name[64];
        (void)snprintf(name, sizeof(name), "run.%s", run_status_name(status));
        assert_true(str_is(event_type_name(event_of_run_end(status)), name));
    }
}

static void a_job_is_offered_only_by_an_event_that_names_it(void **state UNUSED)
{
    for (enum event_type type = 0; type < EVENT_TYPE_COUNT; type++) {
        unsigned flags = event_type_flags(type);
        assert_true((flags & (EVENT_OF_RUN | EVENT_OF_ENTITY)) != 0);
        if ((flags & (EVENT_OFFERS_JOB | EVENT_NAMED_BY_JOB)) != 0)
            assert_true((flags & EVENT_NAMES_JOB) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_of_the_api_page_list_every_event),
        cmocka_unit_test(the_enums_of_openapi_list_every_event),
        cmocka_unit_test(a_name_leads_back_to_its_type),
        cmocka_unit_test(every_end_of_a_run_has_the_event_of_its_status),
        cmocka_unit_test(a_job_is_offered_only_by_an_event_that_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
