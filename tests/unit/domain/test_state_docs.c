/* The tables of states against the enums of docs/openapi.yaml: a new state is documented too, and
 * none is documented that does not exist. */
#include "domain/doc_table.h"

#include "domain/job.h"
#include "domain/run.h"

enum { WORDS_MAX = 32 };

/* "enum: [a, b, c]" of a schema, as the comma-separated text between the brackets; the caller frees
 * it. */
static char *enum_of(const char *schema)
{
    char mark[64];
    (void)snprintf(mark, sizeof(mark), "\n    %s:\n", schema);
    char *text = doc_read("openapi.yaml");
    const char *from = strstr(text, mark);
    if (from == NULL)
        fail_msg("docs/openapi.yaml has no schema %s", schema);
    from = strstr(from, "enum: [");
    assert_non_null(from);
    from += strlen("enum: [");
    char *words = strndup(from, strcspn(from, "]"));
    free(text);
    return words;
}

static void check_enum(const char *schema, const char *const *names, size_t count)
{
    bool found[WORDS_MAX] = {false};
    char *words = enum_of(schema);
    char *rest = NULL;
    assert_true(count <= WORDS_MAX);
    for (char *word = strtok_r(words, " ,\n", &rest); word != NULL;
         word = strtok_r(NULL, " ,\n", &rest)) {
        size_t i = 0;
        while (i < count && strcmp(names[i], word) != 0)
            i++;
        if (i == count)
            fail_msg("%s of docs/openapi.yaml lists %s, which does not exist", schema, word);
        found[i] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!found[i])
            fail_msg("%s is missing from %s of docs/openapi.yaml", names[i], schema);
    }
    free(words);
}

static void openapi_lists_every_status_of_a_run(void **state UNUSED)
{
    const char *names[RUN_STATUS_COUNT];
    for (enum run_status s = 0; s < RUN_STATUS_COUNT; s++)
        names[s] = run_status_name(s);
    check_enum("RunStatus", names, RUN_STATUS_COUNT);
}

static void openapi_lists_every_state_of_a_job(void **state UNUSED)
{
    const char *names[JOB_STATE_COUNT];
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++)
        names[s] = job_state_name(s);
    check_enum("JobState", names, JOB_STATE_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openapi_lists_every_status_of_a_run),
        cmocka_unit_test(openapi_lists_every_state_of_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
