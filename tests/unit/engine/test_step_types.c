/* Every type of step that this version runs, in a workflow of its own, to its end. A row of
 * domain/workflow/step_type.h without a parsed here fails. */
#include "engine/actions.h"
#include "engine/calling_fixture.h"

#include "domain/entity/dedup.h"

struct parsed_definition {
    const char *members; /* of the step, after name and type; ' for " */
    /* What others do for it; NULL: nothing. */
    void (*help)(struct fixture *fixture, struct uuid run);
};

static void claim_and_complete(struct fixture *fixture, struct uuid run UNUSED)
{
    work(fixture, "s");
}

static void let_time_pass(struct fixture *fixture, struct uuid run UNUSED)
{
    fixture_pass_ms(fixture, 1000);
}

static void send_signal(struct fixture *fixture, struct uuid run)
{
    struct problem p;
    problem_init(&p);
    struct signal_run_input in = {
        .run_id = run, .if_match = -1, .name = STR("go"), .payload = STR("1")};
    struct json *payload = json_value_of_tree(json_integer(1));
    assert_int_equal(dedup_request(in.name, payload, &p, &in.request), ERR_OK);
    struct call c;
    call_init(&c, fixture, &UC_SIGNAL_RUN);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    json_free(payload);
    problem_release(&p);
}

static void approve(struct fixture *fixture, struct uuid run)
{
    struct decide_input in = {0};
    json_t *shown = show_run(fixture, run);
    assert_true(uuid_parse(json_str(of_step(shown, "s", "job_id")), &in.job_id));
    json_decref(shown);
    struct call c;
    call_init(&c, fixture, &UC_APPROVE);
    c.op.input = &in;
    c.op.caller.role = ROLE_ADMIN;
    must_perform(&c);
    call_release(&c);
}

static const struct parsed_definition TRIALS[STEP_TYPE_COUNT] = {
    [STEP_TASK] = {",'handler':'h'", claim_and_complete},
    [STEP_SLEEP] = {",'duration_ms':1000", let_time_pass},
    [STEP_HTTP] = {",'request':{'method':'POST','url':'http://127.0.0.1:%d/ok','body':{}}", NULL},
    [STEP_APPROVAL] = {",'prompt':'Go on?'", approve},
    [STEP_WAIT_SIGNAL] = {",'signal':'go'", send_signal},
    [STEP_TRANSFORM] = {",'output':{'a':1}", NULL},
    [STEP_EMIT] = {",'event':'order.paid'", NULL},
    [STEP_WORKFLOW] = {",'workflow_id':'child'", NULL},
};

static void wait_until_over(struct fixture *fixture, struct uuid run, const char *type)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    char is[32];
    run_status_text(fixture, run, is);
    while (strcmp(is, "succeeded") != 0) {
        if (real_seconds() >= until)
            fail_msg("the run with a step of type %s is %s", type, is);
        fixture_round(fixture);
        run_status_text(fixture, run, is);
    }
}

static void run_step_of(struct calling_fixture *c, enum step_type type)
{
    const char *name = step_type_name(type);
    char members[256];
    char definition[512];
    if (TRIALS[type].members == NULL)
        fail_msg("no test runs a step of type %s: add a parsed", name);
    /* Only a URL has a place for the port. */
    const char *port = strstr(TRIALS[type].members, "%d");
    size_t before = port != NULL ? (size_t)(port - TRIALS[type].members) : 0;
    if (port != NULL)
        (void)snprintf(members, sizeof(members), "%.*s%d%s", (int)before, TRIALS[type].members,
                       c->receiver->port, port + 2);
    else
        (void)snprintf(members, sizeof(members), "%s", TRIALS[type].members);
    (void)snprintf(definition, sizeof(definition), "{'steps':[{'name':'s','type':'%s'%s}]}", name,
                   members);
    put_workflow(c->fixture, name, definition);
    struct uuid run = start(c->fixture, name);
    if (TRIALS[type].help != NULL)
        TRIALS[type].help(c->fixture, run);
    wait_until_over(c->fixture, run, name);
    assert_step_is(c->fixture, run, "s", "succeeded");
}

static void every_type_of_step_runs_to_its_end(void **state)
{
    struct calling_fixture *c = *state;
    put_workflow(c->fixture, "child", "{'steps':[{'name':'t','type':'transform','output':1}]}");
    for (enum step_type type = 0; type < STEP_TYPE_COUNT; type++) {
        if (step_type_is(type, STEP_RUNS))
            run_step_of(c, type);
    }
    assert_sound(c->fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        calling_test(every_type_of_step_runs_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
