/* An event as it is published: its id, its type, and a CloudEvents body. */
#include "testing.h"

#include "base/json_tree.h"
#include "core/txn/event_json.h"
#include "fault_support/memory.h"

#include <stdlib.h>

#define RUN "01890a5d-ac96-774b-bcce-b302099a8057"
#define JOB "01890a5d-ac96-774b-8000-000000000001"

static struct event_source source(void)
{
    struct event_source s = {.tenant = STR("acme"), .owner = {.workflow_id = STR("refund")}};
    assert_true(uuid_parse(STR(RUN), &s.owner.id));
    return s;
}

static struct event_source entity_source(const char *type, const char *name)
{
    struct event_source s = {
        .tenant = STR("acme"),
        .owner = {.is_entity = true, .type = str_of(type), .name = str_of(name)}};
    assert_true(uuid_parse(STR(RUN), &s.owner.id));
    return s;
}

static struct event event_of(const char *type, const char *data, const char *published_as)
{
    return (struct event){.seq = 7,
                          .at = INT64_C(1700000000123),
                          .type = str_of(type),
                          .data = data != NULL ? str_of(data) : STR_NONE,
                          .job = -1,
                          .published_as = published_as != NULL ? str_of(published_as) : STR_NONE};
}

static enum err fill(struct event_json *out, const char *type, const char *data,
                     const char *published_as)
{
    struct event_source s = source();
    struct event e = event_of(type, data, published_as);
    event_json_init(out);
    return event_json_fill(out, &s, &e);
}

/* The whole body, as text. */
static void assert_named_body(const char *type, const char *data, const char *published_as,
                              const char *want_id, const char *want_type, const char *want_data)
{
    struct event_json out;
    struct buf want;
    assert_int_equal(fill(&out, type, data, published_as), ERR_OK);
    buf_init(&want, 4096);
    buf_printf(&want,
               "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/pawl/acme/runs/" RUN
               "\",\"type\":\"%s\",\"subject\":\"" RUN
               "\",\"time\":\"2023-11-14T22:13:20.123Z\",\"datacontenttype\":\"application/json\","
               "\"data\":{\"run_id\":\"" RUN "\",\"workflow_id\":\"refund\",\"seq\":7%s}}",
               want_id, want_type, want_data);
    assert_string_equal(out.body.ptr, want.ptr);
    assert_string_equal(out.id, want_id);
    assert_string_equal(out.type, want_type);
    buf_release(&want);
    event_json_release(&out);
}

static void assert_body(const char *type, const char *data, const char *want_data)
{
    assert_named_body(type, data, NULL, RUN ":7", type, want_data);
}

static void an_event_has_its_run_and_number_as_its_id(void **state)
{
    (void)state;
    assert_body("run.queued", NULL, "");
    assert_body("run.queued", "{}", "");
    assert_body("job.created", "{\"job_id\":\"x\",\"n\":1.0}", ",\"job_id\":\"x\",\"n\":1.0");
}

static void an_approved_job_has_an_id_of_its_own(void **state)
{
    (void)state;
    assert_named_body("job.approved", "{\"job_id\":\"" JOB "\",\"step\":\"pay\"}", JOB,
                      "approval:" JOB, "job.approved", ",\"job_id\":\"" JOB "\",\"step\":\"pay\"");
}

static void what_a_step_emits_goes_out_under_the_name_it_gives(void **state)
{
    (void)state;
    assert_named_body("event.emitted", "{\"event\":\"order.placed\",\"payload\":[1,{\"a\":null}]}",
                      "order.placed", RUN ":7", "order.placed",
                      ",\"event\":\"order.placed\",\"payload\":[1,{\"a\":null}]");
}

/* Its data says the workflow. */
static void a_new_run_names_its_workflow_once(void **state)
{
    (void)state;
    struct event_json out;
    assert_int_equal(fill(&out, "run.created", "{\"workflow_id\":\"refund\",\"n\":1}", NULL),
                     ERR_OK);
    assert_non_null(strstr(out.body.ptr, "\"data\":{\"run_id\":\"" RUN
                                         "\",\"seq\":7,\"workflow_id\":\"refund\",\"n\":1}}"));
    event_json_release(&out);
}

static void names_deeper_in_the_data_stay_as_they_are(void **state)
{
    (void)state;
    assert_body("run.failed", "{\"cause\":{\"run_id\":\"child\"},\"q\\\"\":\"run_id\"}",
                ",\"cause\":{\"run_id\":\"child\"},\"q\\\"\":\"run_id\"");
}

/* --- of entities --- */

/* The whole body, as text. */
static void assert_entity_body(const char *type, const char *data, const char *published_as,
                               const char *want_data)
{
    struct event_source s = entity_source("member", "ann");
    struct event e = event_of(type, data, published_as);
    const char *want_type = published_as != NULL ? published_as : type;
    struct event_json out;
    struct buf want;
    event_json_init(&out);
    assert_int_equal(event_json_fill(&out, &s, &e), ERR_OK);
    buf_init(&want, 4096);
    buf_printf(&want,
               "{\"specversion\":\"1.0\",\"id\":\"" RUN
               ":7\",\"source\":\"/pawl/acme/entities/member/ann\",\"type\":\"%s\","
               "\"subject\":\"member/ann\",\"time\":\"2023-11-14T22:13:20.123Z\","
               "\"datacontenttype\":\"application/json\",\"data\":{\"entity_type\":\"member\","
               "\"entity_id\":\"ann\",\"seq\":7%s}}",
               want_type, want_data);
    assert_string_equal(out.body.ptr, want.ptr);
    assert_string_equal(out.id, RUN ":7");
    assert_string_equal(out.type, want_type);
    buf_release(&want);
    event_json_release(&out);
}

static void an_event_of_an_entity_names_its_type_and_its_id(void **state)
{
    (void)state;
    assert_entity_body("entity.created", NULL, NULL, "");
    assert_entity_body("entity.called", "{\"attempt\":1}", NULL, ",\"attempt\":1");
    assert_entity_body("event.emitted", "{\"event\":\"tier.reached\",\"payload\":{\"n\":2}}",
                       "tier.reached", ",\"event\":\"tier.reached\",\"payload\":{\"n\":2}");
}

static void names_of_runs_are_an_entitys_own(void **state)
{
    (void)state;
    assert_entity_body("entity.run_started", "{\"run_id\":\"r\",\"workflow_id\":\"refund\"}", NULL,
                       ",\"run_id\":\"r\",\"workflow_id\":\"refund\"");
}

static void any_name_of_an_entity_gives_a_uri(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *source;
        const char *subject;
    } NAMES[] = {
        {"ann@mail.test", "ann%40mail.test", "ann@mail.test"},
        {"a/b c", "a%2Fb%20c", "a/b c"},
        {"100%", "100%25", "100%"},
        {"\xc3\xa9\"~_-.", "%C3%A9%22~_-.", "\xc3\xa9\"~_-."},
    };
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        struct event_source s = entity_source("member", NAMES[i].name);
        struct event e = {.seq = 1, .type = STR("entity.created")};
        struct event_json out;
        struct problem p;
        char want[128];
        json_t *body = NULL;
        problem_init(&p);
        event_json_init(&out);
        assert_int_equal(event_json_fill(&out, &s, &e), ERR_OK);
        assert_int_equal(json_parse(buf_str(&out.body), &p, &body), ERR_OK);
        (void)snprintf(want, sizeof(want), "/pawl/acme/entities/member/%s", NAMES[i].source);
        assert_string_equal(json_string_value(json_object_get(body, "source")), want);
        (void)snprintf(want, sizeof(want), "member/%s", NAMES[i].subject);
        assert_string_equal(json_string_value(json_object_get(body, "subject")), want);
        json_decref(body);
        event_json_release(&out);
        problem_release(&p);
    }
}

static void the_longest_names_fit(void **state)
{
    (void)state;
    char tenant[TENANT_ID_MAX + 1];
    char type[NAME_MAX_LEN + 1];
    char name[ENTITY_ID_MAX + 1];
    memset(tenant, 't', TENANT_ID_MAX);
    memset(type, 'y', NAME_MAX_LEN);
    memset(name, '"', ENTITY_ID_MAX); /* three characters in the URI, two in JSON */
    tenant[TENANT_ID_MAX] = type[NAME_MAX_LEN] = name[ENTITY_ID_MAX] = '\0';
    struct event_source s = entity_source(type, name);
    s.tenant = str_of(tenant);
    struct event e = {.seq = INT64_MAX, .type = STR("entity.created")};
    struct event_json out;
    event_json_init(&out);
    assert_int_equal(event_json_fill(&out, &s, &e), ERR_OK);
    assert_string_equal(out.id, RUN ":9223372036854775807");
    event_json_release(&out);
}

static void the_same_event_is_written_the_same_way_each_time(void **state)
{
    (void)state;
    struct event_json one;
    struct event_json two;
    assert_int_equal(fill(&one, "run.failed", "{\"s\":1.50,\"b\":1e20,\"a\":\"\\u00e9\"}", NULL),
                     ERR_OK);
    assert_int_equal(fill(&two, "run.failed", "{\"s\":1.50,\"b\":1e20,\"a\":\"\\u00e9\"}", NULL),
                     ERR_OK);
    assert_string_equal(one.body.ptr, two.body.ptr);
    event_json_release(&one);
    event_json_release(&two);
}

static void one_that_was_filled_before_holds_only_the_new_event(void **state)
{
    (void)state;
    struct event_json out;
    struct event_source s = source();
    struct event e = {.seq = 8, .type = STR("run.resumed")};
    assert_int_equal(fill(&out, "job.created", "{\"long\":\"enough to be longer\"}", NULL), ERR_OK);
    assert_int_equal(event_json_fill(&out, &s, &e), ERR_OK);
    assert_string_equal(out.id, RUN ":8");
    struct problem p;
    problem_init(&p);
    json_t *body = NULL;
    assert_int_equal(json_parse(buf_str(&out.body), &p, &body), ERR_OK);
    assert_null(json_object_get(json_object_get(body, "data"), "long"));
    json_decref(body);
    problem_release(&p);
    event_json_release(&out);
}

static void rows_that_the_timeline_never_writes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        const char *data;
        const char *published_as;
    } BAD[] = {{"run.failed", "[1]", NULL},
               {"run.failed", "text", NULL},
               {"event.emitted", "{\"event\":\"x\"}", NULL},
               {"event.emitted", "{\"event\":\"x\"}", ""},
               {"job.approved", NULL, NULL},
               {"job.approved", NULL, "short"}};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct event_json out;
        assert_int_equal(fill(&out, BAD[i].type, BAD[i].data, BAD[i].published_as), ERR_INTERNAL);
        event_json_release(&out);
    }
}

/* A damaged event is skipped for good; one for which memory is wanting is tried again. */
static void an_event_is_never_called_damaged_for_want_of_memory(void **state)
{
    (void)state;
    bool met = true;
    for (int64_t nth = 1; met; nth++) {
        struct event_json out;
        memory_arm(nth);
        enum err e = fill(&out, "job.approved", "{\"n\":1}", JOB);
        met = memory_disarm();
        assert_int_equal(e, met ? ERR_NO_MEMORY : ERR_OK);
        event_json_release(&out);
    }
}

/* --- rows that pawl did not write --- */

static void a_row_that_cannot_be_published_is_refused(void **state)
{
    (void)state;
    static char long_name[2000];
    memset(long_name, 'x', sizeof(long_name) - 1);
    static const char *const ROWS[][3] = {
        {"run.queued", "[1]", NULL},        {"run.queued", "{\"a\":1", NULL},
        {"job.approved", "{}", "no uuid"},  {"event.emitted", "{}", ""},
        {"event.emitted", "{}", long_name}, {long_name, "{}", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct event_json out;
        assert_int_equal(fill(&out, ROWS[i][0], ROWS[i][1], ROWS[i][2]), ERR_INTERNAL);
        event_json_release(&out);
    }
    struct event_json out;
    struct event_source s = source();
    struct event e = event_of("run.queued", "{}", NULL);
    s.tenant = str_of(long_name);
    event_json_init(&out);
    assert_int_equal(event_json_fill(&out, &s, &e), ERR_INTERNAL);
    event_json_release(&out);
}

static void a_type_of_a_later_version_is_published_as_it_is(void **state)
{
    (void)state;
    assert_body("run.teleported", "{\"n\":1}", ",\"n\":1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_has_its_run_and_number_as_its_id),
        cmocka_unit_test(an_approved_job_has_an_id_of_its_own),
        cmocka_unit_test(what_a_step_emits_goes_out_under_the_name_it_gives),
        cmocka_unit_test(a_new_run_names_its_workflow_once),
        cmocka_unit_test(names_deeper_in_the_data_stay_as_they_are),
        cmocka_unit_test(an_event_of_an_entity_names_its_type_and_its_id),
        cmocka_unit_test(names_of_runs_are_an_entitys_own),
        cmocka_unit_test(any_name_of_an_entity_gives_a_uri),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(the_same_event_is_written_the_same_way_each_time),
        cmocka_unit_test(one_that_was_filled_before_holds_only_the_new_event),
        cmocka_unit_test(rows_that_the_timeline_never_writes_are_refused),
        cmocka_unit_test(an_event_is_never_called_damaged_for_want_of_memory),
        cmocka_unit_test(a_row_that_cannot_be_published_is_refused),
        cmocka_unit_test(a_type_of_a_later_version_is_published_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
