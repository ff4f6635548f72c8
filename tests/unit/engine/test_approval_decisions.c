/* Decisions on approvals: who may make them, how many are needed, what is refused, and what is
 * counted. */
#include "engine/approval_support.h"

/* --- who --- */

static void the_requester_may_not_approve_but_may_withdraw(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'approvers':{'forbid_requester':true}}"), "pay", &run);
    cannot_approve(fixture, job, "tester", ERR_SELF_APPROVAL);
    assert_step_is(fixture, run, "pay", "approval");
    rejects(fixture, job, "tester", "rejected");
}

static void only_those_who_are_asked_may_decide(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job =
        ask(fixture, GATED("{'approvers':{'users':['ann'],'roles':['approver']}}"), "pay", &run);
    cannot_approve(fixture, job, "bob", ERR_NOT_AN_APPROVER);
    cannot_reject(fixture, job, "bob", ERR_NOT_AN_APPROVER);
    assert_says_with(fixture, job, "bob", true, (struct words){.role = ROLE_APPROVER}, "approved");
    cannot_approve(fixture, job, "eve", ERR_NOT_AN_APPROVER); /* and is told nothing */
    cannot_reject(fixture, job, "eve", ERR_NOT_AN_APPROVER);
    approves(fixture, job, "ann", "already_approved");
    cannot_reject(fixture, job, "ann", ERR_APPROVAL_CONFLICT);
}

static void the_first_decision_is_what_everybody_hears_of(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    approves(fixture, job, "ann", "approved");
    fixture_pass_ms(fixture, 5000);
    struct said again = decide_with(fixture, job, "bob", true, NO_WORDS);
    assert_string_equal(again.status, "already_approved");
    assert_string_equal(again.by, "ann");
    assert_true(again.replayed);
    said_release(&again);
    cannot_reject(fixture, job, "bob", ERR_APPROVAL_CONFLICT);
    assert_int_equal(in_file(fixture, "SELECT replays * 10 + conflicts FROM approvals"), 11);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM audit WHERE action LIKE 'approval.%'"),
                     1);
}

/* --- quorum --- */

static void as_many_as_are_needed_decide_and_nobody_counts_twice(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'approvers':{'count':3}}"), "pay", &run);
    struct said s = decide_with(fixture, job, "ann", true, NO_WORDS);
    assert_string_equal(s.status, "recorded");
    assert_int_equal(s.approvals, 1);
    said_release(&s);
    s = decide_with(fixture, job, "ann", true, NO_WORDS);
    assert_string_equal(s.status, "already_recorded");
    assert_int_equal(s.approvals, 1);
    assert_true(s.replayed);
    said_release(&s);
    approves(fixture, job, "bob", "recorded");
    assert_nothing_to_claim(fixture);
    s = decide_with(fixture, job, "eve", true, NO_WORDS);
    assert_string_equal(s.status, "approved");
    assert_string_equal(s.by, "eve");
    assert_int_equal(s.approvals, 3);
    said_release(&s);
    approves(fixture, job, "ann", "already_approved");
    work(fixture, "pay");
    assert_int_equal(event_count(fixture, "approval.voted"), 2);
    assert_sound(fixture);
}

static void one_no_is_enough(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'approvers':{'count':2}}"), "pay", &run);
    approves(fixture, job, "ann", "recorded");
    rejects(fixture, job, "ann", "rejected"); /* who has thought better of it */
    assert_run_is(fixture, run, "denied");
    cannot_approve(fixture, job, "bob", ERR_APPROVAL_CONFLICT);
    assert_sound(fixture);
}

static void an_edit_restarts_the_count(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("{'approvers':{'count':2}}"), "pay", &run);
    json_t *before = show_approval(fixture, job);
    const char *seen = json_string_value(json_object_get(before, "content_hash"));
    approves(fixture, job, "ann", "recorded");
    struct said s =
        decide_with(fixture, job, "bob", true, (struct words){.edited = "{'amount':1}"});
    assert_string_equal(s.status, "recorded");
    assert_int_equal(s.approvals, 1);
    said_release(&s);
    json_t *after = show_approval(fixture, job);
    json_t *content = json_object_get(after, "content");
    assert_int_equal(json_integer_value(json_object_get(content, "amount")), 1);
    assert_string_not_equal(json_string_value(json_object_get(after, "content_hash")), seen);
    json_decref(after);
    /* Ann has voted, but not for this. */
    assert_refused_with(fixture, job, "ann", true, (struct words){.hash = seen},
                        ERR_APPROVAL_STALE);
    approves(fixture, job, "ann", "approved");
    struct held h;
    must_claim(fixture, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":1}");
    json_decref(before);
    assert_sound(fixture);
}

static void what_was_not_seen_is_neither_approved_nor_rejected(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    struct words other = {.hash = "0000"};
    assert_refused_with(fixture, job, "ann", true, other, ERR_APPROVAL_STALE);
    assert_refused_with(fixture, job, "ann", false, other, ERR_APPROVAL_STALE);
    json_t *a = show_approval(fixture, job);
    struct words right = {.hash = json_string_value(json_object_get(a, "content_hash"))};
    assert_says_with(fixture, job, "ann", true, right, "approved");
    json_decref(a);
}

/* --- what there is not --- */

static void a_job_that_nobody_was_asked_about_awaits_nothing(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    cannot_approve(fixture, job_of(fixture, run, "a"), "ann", ERR_NOT_AWAITING_APPROVAL);
    cannot_approve(fixture, env_new_id(&ENV_SYSTEM), "ann", ERR_APPROVAL_NOT_FOUND);
}

static void another_tenants_approval_is_not_there(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    struct decide_input in = {.job_id = job};
    struct call c;
    call_init(&c, fixture, &UC_APPROVE);
    c.op.input = &in;
    c.op.caller.tenant = STR("other");
    assert_int_equal(perform(&c), ERR_APPROVAL_NOT_FOUND);
    call_release(&c);
    assert_step_is(fixture, run, "pay", "approval");
}

static void a_decision_under_a_key_is_answered_with_the_first_answer(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run;
    struct uuid job = ask(fixture, GATED("true"), "pay", &run);
    for (int turn = 0; turn < 2; turn++) {
        struct decide_input in = {.job_id = job};
        struct call c;
        call_init(&c, fixture, &UC_APPROVE);
        c.op.input = &in;
        call_key(&c, "k", "{}");
        must_perform(&c);
        json_t *body = parsed_str(buf_str(&c.op.answer.body));
        assert_string_equal(json_string_value(json_object_get(body, "status")), "approved");
        assert_int_equal(c.op.answer.replayed, turn == 1);
        json_decref(body);
        call_release(&c);
    }
    assert_int_equal(event_count(fixture, "approval.decided"), 1);
}

/* --- statistics --- */

static void statistics_tell_how_long_it_took_and_what_was_said_twice(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", GATED("true"));
    put_workflow(fixture, "v", GATED("{'expires_s':3600}"));
    for (int i = 1; i <= 20; i++) {
        struct uuid job = job_of(fixture, start(fixture, "w"), "pay");
        fixture_pass_ms(fixture, i * 1000);
        approves(fixture, job, "ann", "approved");
        if (i % 2 == 0)
            approves(fixture, job, "bob", "already_approved");
        if (i % 4 == 0)
            cannot_reject(fixture, job, "bob", ERR_APPROVAL_CONFLICT);
    }
    (void)start(fixture, "v");
    rejects(fixture, job_of(fixture, start(fixture, "v"), "pay"), "ann", "rejected");
    struct approval_stats_input in = {.days = 1};
    struct call c;
    call_init(&c, fixture, &UC_APPROVAL_STATS);
    c.op.input = &in;
    must_perform(&c);
    json_t *stats = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    json_t *total = json_object_get(stats, "total");
    assert_true(json_is_false(json_object_get(stats, "truncated")));
    assert_int_equal(json_integer_value(json_object_get(total, "requested")), 22);
    assert_int_equal(json_integer_value(json_object_get(total, "approved")), 20);
    assert_int_equal(json_integer_value(json_object_get(total, "rejected")), 1);
    assert_int_equal(json_integer_value(json_object_get(total, "pending")), 1);
    assert_int_equal(json_integer_value(json_object_get(total, "replays")), 10);
    assert_int_equal(json_integer_value(json_object_get(total, "conflicts")), 5);
    json_t *workflows = json_object_get(stats, "workflows");
    assert_int_equal(json_array_size(workflows), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *w = json_array_get(workflows, i);
        if (strcmp(json_string_value(json_object_get(w, "workflow_id")), "w") != 0)
            continue;
        json_t *times = json_object_get(w, "decision_seconds");
        assert_true(json_number_value(json_object_get(times, "p50")) == 10);
        assert_true(json_number_value(json_object_get(times, "p95")) == 19);
        assert_true(json_number_value(json_object_get(times, "mean")) == 10.5);
        assert_true(json_number_value(json_object_get(w, "replay_rate")) == 10.0 / 35);
        assert_true(json_number_value(json_object_get(w, "conflict_rate")) == 5.0 / 35);
    }
    json_decref(stats);
}

static void more_workflows_than_are_shown_are_in_the_sum(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i <= APPROVAL_STATS_WORKFLOWS_MAX; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "w%d", i);
        put_workflow(fixture, id, GATED("true"));
        approves(fixture, job_of(fixture, start(fixture, id), "pay"), "ann", "approved");
    }
    struct approval_stats_input in = {.days = 1};
    struct call c;
    call_init(&c, fixture, &UC_APPROVAL_STATS);
    c.op.input = &in;
    must_perform(&c);
    json_t *stats = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    json_t *total = json_object_get(stats, "total");
    assert_true(json_is_true(json_object_get(stats, "truncated")));
    assert_int_equal(json_integer_value(json_object_get(total, "approved")),
                     APPROVAL_STATS_WORKFLOWS_MAX + 1);
    assert_int_equal(json_array_size(json_object_get(stats, "workflows")),
                     APPROVAL_STATS_WORKFLOWS_MAX);
    json_decref(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(the_requester_may_not_approve_but_may_withdraw),
        fixture_test(only_those_who_are_asked_may_decide),
        fixture_test(the_first_decision_is_what_everybody_hears_of),
        fixture_test(as_many_as_are_needed_decide_and_nobody_counts_twice),
        fixture_test(one_no_is_enough),
        fixture_test(an_edit_restarts_the_count),
        fixture_test(what_was_not_seen_is_neither_approved_nor_rejected),
        fixture_test(a_job_that_nobody_was_asked_about_awaits_nothing),
        fixture_test(another_tenants_approval_is_not_there),
        fixture_test(a_decision_under_a_key_is_answered_with_the_first_answer),
        fixture_test(statistics_tell_how_long_it_took_and_what_was_said_twice),
        fixture_test(more_workflows_than_are_shown_are_in_the_sum),
    };
    return cmocka_run_group_tests_name("approval decisions", tests, NULL, NULL);
}
