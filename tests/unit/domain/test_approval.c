/* Decisions of people: every state met by every action of every kind of caller. */
#include "base/support.h"

#include "base/limits.h"
#include "domain/approval.h"

/* --- the table --- */

/* The contract's table of decisions, written down a second time as questions in their order. */
static enum approval_verdict expected(enum approval_status status, enum approval_action action,
                                      unsigned facts)
{
    bool approves = action == APPROVAL_APPROVE;
    if ((facts & APPROVAL_STRANGER) != 0)
        return VERDICT_STRANGER;
    switch (status) {
    case APPROVAL_APPROVED:
        return approves ? VERDICT_ALREADY_APPROVED : VERDICT_CONFLICT;
    case APPROVAL_REJECTED:
        return approves ? VERDICT_CONFLICT : VERDICT_ALREADY_REJECTED;
    case APPROVAL_EXPIRED:
        return VERDICT_EXPIRED;
    case APPROVAL_VOID:
        return VERDICT_NOT_AWAITING;
    case APPROVAL_PENDING:
        break;
    case APPROVAL_STATUS_COUNT:
        fail();
    }
    if (approves && (facts & APPROVAL_VOTED) != 0)
        return VERDICT_ALREADY_RECORDED;
    if (approves && (facts & APPROVAL_SELF) != 0)
        return VERDICT_SELF;
    if ((facts & APPROVAL_STALE) != 0)
        return VERDICT_STALE;
    if (!approves)
        return VERDICT_REJECTED;
    return (facts & APPROVAL_SHORT) != 0 ? VERDICT_RECORDED : VERDICT_APPROVED;
}

static void for_each_case(void (*check)(enum approval_status status, enum approval_action action,
                                        unsigned facts, enum approval_verdict verdict))
{
    for (enum approval_status s = 0; s < APPROVAL_STATUS_COUNT; s++) {
        for (enum approval_action a = 0; a < APPROVAL_ACTION_COUNT; a++) {
            for (unsigned facts = 0; facts < APPROVAL_FACTS_COUNT; facts++)
                check(s, a, facts, approval_decide(s, a, facts));
        }
    }
}

static void is_as_expected(enum approval_status status, enum approval_action action, unsigned facts,
                           enum approval_verdict verdict)
{
    if (verdict != expected(status, action, facts))
        fail_msg("%s, action %d, facts %u: verdict %d", approval_status_name(status), (int)action,
                 facts, (int)verdict);
}

static void every_state_action_and_caller_gets_the_contracts_answer(void **state)
{
    (void)state;
    for_each_case(is_as_expected);
}

static bool changes_something(enum approval_verdict verdict)
{
    return approval_verdict_err(verdict) == ERR_OK && !approval_verdict_is_replay(verdict);
}

static void only_pending_changes(enum approval_status status, enum approval_action action,
                                 unsigned facts, enum approval_verdict verdict)
{
    (void)action, (void)facts;
    if (status != APPROVAL_PENDING)
        assert_false(changes_something(verdict));
}

static void what_is_not_pending_never_changes_again(void **state)
{
    (void)state;
    for_each_case(only_pending_changes);
}

static void stranger_learns_nothing(enum approval_status status, enum approval_action action,
                                    unsigned facts, enum approval_verdict verdict)
{
    (void)status, (void)action;
    if ((facts & APPROVAL_STRANGER) != 0)
        assert_int_equal(approval_verdict_err(verdict), ERR_NOT_AN_APPROVER);
    else
        assert_int_not_equal(verdict, VERDICT_STRANGER);
}

static void a_person_who_may_not_decide_is_refused_before_a_replay(void **state)
{
    (void)state;
    for_each_case(stranger_learns_nothing);
}

static bool seen[APPROVAL_VERDICT_COUNT];

static void note_seen(enum approval_status status, enum approval_action action, unsigned facts,
                      enum approval_verdict verdict)
{
    (void)status, (void)action, (void)facts;
    seen[verdict] = true;
}

static void every_verdict_is_reached(void **state)
{
    (void)state;
    for_each_case(note_seen);
    for (size_t i = 0; i < APPROVAL_VERDICT_COUNT; i++)
        assert_true(seen[i]);
}

static void each_refusal_has_a_code_of_its_own_and_none_is_worth_repeating(void **state)
{
    (void)state;
    for (enum approval_verdict v = 0; v < APPROVAL_VERDICT_COUNT; v++) {
        enum err e = approval_verdict_err(v);
        if (e == ERR_OK) {
            assert_true(strlen(approval_verdict_word(v)) > 0);
            continue;
        }
        assert_string_equal(approval_verdict_word(v), "");
        assert_false(err_retryable(e));
        assert_true(err_http_status(e) == 409 || err_http_status(e) == 403);
        for (enum approval_verdict other = 0; other < v; other++)
            assert_int_not_equal(approval_verdict_err(other), e);
    }
    assert_true(err_retryable(ERR_CONCURRENT_APPROVAL)); /* a lost race is */
}

static void an_answer_that_repeats_one_says_so(void **state)
{
    (void)state;
    for (enum approval_verdict v = 0; v < APPROVAL_VERDICT_COUNT; v++)
        assert_int_equal(approval_verdict_is_replay(v),
                         strncmp(approval_verdict_word(v), "already_", 8) == 0);
}

static void names_round_trip(void **state)
{
    (void)state;
    for (enum approval_status s = 0; s < APPROVAL_STATUS_COUNT; s++)
        assert_int_equal(approval_status_of(str_of(approval_status_name(s))), s);
    for (enum on_expire x = 0; x < ON_EXPIRE_COUNT; x++)
        assert_int_equal(on_expire_of(str_of(on_expire_name(x))), x);
    assert_int_equal(approval_status_of(STR("decided")), APPROVAL_STATUS_COUNT);
    assert_int_equal(on_expire_of(STR("")), ON_EXPIRE_COUNT);
}

/* --- who --- */

struct asked {
    struct json *json;
    struct approval_ask ask;
};

static struct asked asked(const char *roles, const char *users, const char *escalated)
{
    json_t *tree = json_object();
    if (roles != NULL)
        (void)json_object_set_new(tree, "roles", json_pack("[s]", roles));
    if (users != NULL)
        (void)json_object_set_new(tree, "users", json_pack("[s]", users));
    if (escalated != NULL)
        (void)json_object_set_new(tree, "escalated", json_pack("[s]", escalated));
    struct asked a = {.json = json_value_of_tree(tree)};
    a.ask = (struct approval_ask){
        .approvers = {json_member(a.json, STR("roles")), json_member(a.json, STR("users"))},
        .escalated = {.users = json_member(a.json, STR("escalated"))},
    };
    return a;
}

static void without_a_list_every_role_that_may_decide_does(void **state)
{
    (void)state;
    struct asked a = asked(NULL, NULL, NULL);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        assert_int_equal(approval_may_decide(&a.ask, false, STR("ann"), role),
                         role_may(role, false, MAY_DECIDE));
    json_free(a.json);
}

static void a_list_of_roles_or_of_names_is_the_only_way_in(void **state)
{
    (void)state;
    struct asked a = asked("approver", "ann", NULL);
    assert_true(approval_may_decide(&a.ask, false, STR("bob"), ROLE_APPROVER));
    assert_true(approval_may_decide(&a.ask, false, STR("ann"), ROLE_OPERATOR));
    assert_false(approval_may_decide(&a.ask, false, STR("bob"), ROLE_OPERATOR));
    assert_false(approval_may_decide(&a.ask, false, STR("bob"), ROLE_ADMIN));
    assert_false(approval_may_decide(&a.ask, false, STR("an"), ROLE_ADMIN));
    json_free(a.json);
}

static void a_name_on_the_list_does_not_make_a_viewer_an_approver(void **state)
{
    (void)state;
    struct asked a = asked(NULL, "ann", NULL);
    assert_false(approval_may_decide(&a.ask, false, STR("ann"), ROLE_VIEWER));
    assert_false(approval_may_decide(&a.ask, true, STR("ann"), ROLE_WORKER));
    json_free(a.json);
}

static void an_escalation_lets_others_in_and_keeps_those_who_were(void **state)
{
    (void)state;
    struct asked a = asked(NULL, "ann", "boss");
    assert_false(approval_may_decide(&a.ask, false, STR("boss"), ROLE_ADMIN));
    assert_true(approval_may_decide(&a.ask, true, STR("boss"), ROLE_ADMIN));
    assert_true(approval_may_decide(&a.ask, true, STR("ann"), ROLE_ADMIN));
    assert_false(approval_may_decide(&a.ask, true, STR("bob"), ROLE_ADMIN));
    json_free(a.json);
}

static void what_is_asked_is_read_with_its_defaults(void **state)
{
    (void)state;
    struct json *bare = json_value_of(STR("{\"prompt\":\"p\"}"));
    struct approval_ask ask = approval_ask_of(bare);
    assert_string_equal(json_text_of(ask.prompt).ptr, "p");
    assert_true(ask.content == NULL && ask.count == 1 && !ask.forbid_requester);
    assert_true(ask.approvers.roles == NULL && ask.approvers.users == NULL);
    assert_true(ask.expires_ms == -1 && ask.remind_ms == -1 && ask.escalate_ms == -1);
    assert_int_equal(ask.on_expire, ON_EXPIRE_REJECT);
    json_free(bare);
    struct json *full = json_value_of_tree(json_pack(
        "{s:{s:i,s:b,s:[s]},s:i,s:s,s:i,s:{s:i,s:{s:[s]}}}", "approvers", "count", 2,
        "forbid_requester", 1, "users", "ann", "expires_s", 60, "on_expire", "fail",
        "remind_every_s", 20, "escalation", "after_s", 30, "approvers", "roles", "admin"));
    ask = approval_ask_of(full);
    assert_true(ask.count == 2 && ask.forbid_requester && ask.expires_ms == 60000);
    assert_true(ask.remind_ms == 20000 && ask.escalate_ms == 30000);
    assert_int_equal(json_length(ask.approvers.users), 1);
    assert_int_equal(json_length(ask.escalated.roles), 1);
    assert_int_equal(ask.on_expire, ON_EXPIRE_FAIL);
    json_free(full);
}

/* --- when --- */

static void the_next_time_is_the_earliest_of_those_that_are_set(void **state)
{
    (void)state;
    struct approval_ask ask = {.remind_ms = -1, .escalate_ms = -1};
    assert_int_equal(approval_next_due(&ask, 1000, -1, 0, false), -1);
    assert_int_equal(approval_next_due(&ask, 1000, 5000, 0, false), 5000);
    ask.remind_ms = 300;
    assert_int_equal(approval_next_due(&ask, 1000, 5000, 0, false), 1300);
    assert_int_equal(approval_next_due(&ask, 1000, 5000, 2, false), 1900);
    ask.escalate_ms = 800;
    assert_int_equal(approval_next_due(&ask, 1000, 5000, 2, false), 1800);
    assert_int_equal(approval_next_due(&ask, 1000, 5000, 2, true), 1900);
    assert_int_equal(approval_next_due(&ask, 1000, 1500, 2, false), 1500);
}

static void reminders_come_to_an_end(void **state)
{
    (void)state;
    struct approval_ask ask = {.remind_ms = 10, .escalate_ms = -1};
    assert_int_equal(approval_next_due(&ask, 0, -1, REMINDERS_MAX - 1, false), 10 * REMINDERS_MAX);
    assert_int_equal(approval_next_due(&ask, 0, -1, REMINDERS_MAX, false), -1);
    assert_int_equal(approval_reminders_by(&ask, 0, INT64_C(1) << 40), REMINDERS_MAX);
}

static void reminders_that_were_missed_are_counted_together(void **state)
{
    (void)state;
    struct approval_ask ask = {.remind_ms = 100};
    assert_int_equal(approval_reminders_by(&ask, 1000, 1099), 0);
    assert_int_equal(approval_reminders_by(&ask, 1000, 1100), 1);
    assert_int_equal(approval_reminders_by(&ask, 1000, 1750), 7);
    assert_int_equal(approval_reminders_by(&ask, 1000, 900), 0);
    ask.remind_ms = -1;
    assert_int_equal(approval_reminders_by(&ask, 1000, 1750), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_action_and_caller_gets_the_contracts_answer),
        cmocka_unit_test(what_is_not_pending_never_changes_again),
        cmocka_unit_test(a_person_who_may_not_decide_is_refused_before_a_replay),
        cmocka_unit_test(every_verdict_is_reached),
        cmocka_unit_test(each_refusal_has_a_code_of_its_own_and_none_is_worth_repeating),
        cmocka_unit_test(an_answer_that_repeats_one_says_so),
        cmocka_unit_test(names_round_trip),
        cmocka_unit_test(without_a_list_every_role_that_may_decide_does),
        cmocka_unit_test(a_list_of_roles_or_of_names_is_the_only_way_in),
        cmocka_unit_test(a_name_on_the_list_does_not_make_a_viewer_an_approver),
        cmocka_unit_test(an_escalation_lets_others_in_and_keeps_those_who_were),
        cmocka_unit_test(what_is_asked_is_read_with_its_defaults),
        cmocka_unit_test(the_next_time_is_the_earliest_of_those_that_are_set),
        cmocka_unit_test(reminders_come_to_an_end),
        cmocka_unit_test(reminders_that_were_missed_are_counted_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
