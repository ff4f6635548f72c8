/* Approvals on the real engine, under a clock that the test moves: who is asked, what comes of the
 * answers, and what of none. */
#include "engine/acts.h"

/* --- people --- */

/* What an answer said, or why there was none. */
struct said {
    enum err err;
    char status[32];
    char by[32];
    bool replayed;
    int64_t approvals;
    json_t *body; /* NULL: refused */
};

static void said_release(struct said *s)
{
    json_decref(s->body);
}

struct words {
    const char *reason;
    const char *hash;
    const char *edited; /* ' for " */
    enum role role;     /* 0: an admin */
};

static struct said decide_with(struct rig *rig, struct uuid job, const char *who, bool approves,
                               struct words words)
{
    struct decide_input in = {.job_id = job};
    if (words.reason != NULL)
        in.reason = str_of(words.reason);
    if (words.hash != NULL)
        in.expected_hash = str_of(words.hash);
    struct buf text;
    buf_init(&text, 4 * KIB);
    json_t *edited = words.edited != NULL ? json_of(words.edited) : NULL;
    if (edited != NULL) {
        json_put_plain(&text, edited);
        in.edited = edited;
        in.edited_text = buf_str(&text);
    }
    struct call c;
    call_init(&c, rig, approves ? &UC_APPROVE : &UC_REJECT);
    c.op.input = &in;
    c.op.caller.actor = str_of(who);
    c.op.caller.role = words.role != 0 ? words.role : ROLE_ADMIN;
    struct said s = {.err = perform(&c), .replayed = c.op.answer.already_decided};
    if (s.err == ERR_OK) {
        s.body = parsed_str(buf_str(&c.op.answer.body));
        const json_t *by = json_object_get(s.body, "approved_by");
        if (by == NULL)
            by = json_object_get(s.body, "rejected_by");
        (void)snprintf(s.status, sizeof(s.status), "%s",
                       json_string_value(json_object_get(s.body, "status")));
        (void)snprintf(s.by, sizeof(s.by), "%s", by != NULL ? json_string_value(by) : "");
        s.approvals = json_integer_value(json_object_get(s.body, "approvals"));
    }
    call_release(&c);
    json_decref(edited);
    buf_release(&text);
    return s;
}

static void assert_says_with(struct rig *rig, struct uuid job, const char *who, bool approves,
                             struct words words, const char *status)
{
    struct said s = decide_with(rig, job, who, approves, words);
    if (s.err != ERR_OK)
        fail_msg("%s is refused: %s", who, err_code(s.err));
    assert_string_equal(s.status, status);
    said_release(&s);
}

static void assert_refused_with(struct rig *rig, struct uuid job, const char *who, bool approves,
                                struct words words, enum err why)
{
    struct said s = decide_with(rig, job, who, approves, words);
    if (s.err != why)
        fail_msg("%s gets %s, not %s", who, err_code(s.err), err_code(why));
    said_release(&s);
}

#define NO_WORDS ((struct words){0})
#define approves(rig, job, who, status) assert_says_with(rig, job, who, true, NO_WORDS, status)
#define rejects(rig, job, who, status) assert_says_with(rig, job, who, false, NO_WORDS, status)
#define cannot_approve(rig, job, who, why) assert_refused_with(rig, job, who, true, NO_WORDS, why)
#define cannot_reject(rig, job, who, why) assert_refused_with(rig, job, who, false, NO_WORDS, why)

/* --- looking --- */

static struct uuid job_of(struct rig *rig, struct uuid run, const char *step)
{
    struct uuid id;
    json_t *shown = show_run(rig, run);
    assert_true(uuid_parse(json_str(of_step(shown, step, "job_id")), &id));
    json_decref(shown);
    return id;
}

/* The caller owns it. */
static json_t *show_approval(struct rig *rig, struct uuid job)
{
    struct get_job_input in = {job};
    struct call c;
    call_init(&c, rig, &UC_GET_APPROVAL);
    c.op.input = &in;
    must_perform(&c);
    json_t *approval = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return approval;
}

static void assert_approval(struct rig *rig, struct uuid job, const char *member, const char *text)
{
    json_t *a = show_approval(rig, job);
    const char *is = json_string_value(json_object_get(a, member));
    if (is == NULL || strcmp(is, text) != 0)
        fail_msg("%s is %s, not %s", member, is != NULL ? is : "nothing", text);
    json_decref(a);
}

/* How often the run's timeline tells of it. */
static int64_t told(struct rig *rig, const char *type)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE type = '%s'", type);
    return in_file(rig, sql);
}

static void assert_output(struct rig *rig, struct uuid run, const char *step, const char *json)
{
    json_t *shown = show_run(rig, run);
    json_t *wanted = json_of(json);
    json_t *is = (json_t *)(uintptr_t)of_step(shown, step, "output");
    if (!json_equal(is, wanted)) {
        char *text = json_dumps(is, JSON_ENCODE_ANY);
        fail_msg("the output is %s", text);
    }
    json_decref(wanted);
    json_decref(shown);
}

#define GATED(gate) "{'steps':[" TASK_STEP("pay", ",'requires_approval':" gate) "]}"
#define ASKING(more) \
    "{'steps':[{'name':'ok','type':'approval','prompt':'ok?'" more "}," TASK_STEP("pay", "") "]}"

static struct uuid ask(struct rig *rig, const char *definition, const char *step,
                       struct uuid *ret_run)
{
    put_workflow(rig, "w", definition);
    *ret_run = start_with(rig, "w", "{'amount':120,'to':'ann'}");
    return job_of(rig, *ret_run, step);
}

/* --- a gated task --- */

static void a_gated_task_is_handed_out_after_it_is_approved_and_once(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_step_is(rig, run, "pay", "approval");
    assert_run_is(rig, run, "waiting");
    assert_nothing_to_claim(rig);
    approves(rig, job, "ann", "approved");
    assert_run_is(rig, run, "running");
    struct held h;
    must_claim(rig, "pay", &h);
    assert_true(uuid_eq(h.job, job)); /* under its own id */
    assert_int_equal(h.attempt, 1);
    assert_nothing_to_claim(rig);
    assert_int_equal(complete(rig, &h), ERR_OK);
    assert_run_is(rig, run, "succeeded");
    approves(rig, job, "bob", "already_approved");
    assert_int_equal(told(rig, "job.approved"), 1);
    assert_int_equal(told(rig, "approval.requested"), 1);
    assert_int_equal(told(rig, "approval.decided"), 1);
    assert_sound(rig);
}

static void a_rejected_task_is_denied_and_so_is_its_run(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_says_with(rig, job, "ann", false, (struct words){.reason = "too much"}, "rejected");
    assert_run_is(rig, run, "denied");
    assert_step_is(rig, run, "pay", "denied");
    assert_error_code(rig, run, "STEP_DENIED");
    assert_nothing_to_claim(rig);
    assert_approval(rig, job, "reason", "too much");
    assert_int_equal(in_file(rig, "SELECT active_runs FROM tenants WHERE id = 'acme'"), 0);
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_RUN_IS_OVER); /* no means no */
    assert_int_equal(told(rig, "job.approved"), 0);
    assert_sound(rig);
}

static void a_denial_that_is_dealt_with_does_not_end_the_run(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job =
        ask(rig,
            "{'steps':[" TASK_STEP("pay", ",'requires_approval':true,"
                                          "'on_error':'sorry'") "," TASK_STEP("sorry", "") "]}",
            "pay", &run);
    rejects(rig, job, "ann", "rejected");
    assert_run_is(rig, run, "running");
    work(rig, "sorry");
    assert_run_is(rig, run, "succeeded");
    assert_step_is(rig, run, "pay", "denied");
    assert_sound(rig);
}

static void what_was_done_before_a_denial_is_undone(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[" TASK_STEP("hold", ",'compensate':{'handler':'free'}") "," TASK_STEP(
                     "pay", ",'requires_approval':true") "]}");
    struct uuid run = start(rig, "w");
    work(rig, "hold");
    struct uuid job = job_of(rig, run, "pay");
    rejects(rig, job, "ann", "rejected");
    assert_run_is(rig, run, "running");
    struct held h;
    must_claim(rig, "hold", &h);
    assert_true(h.compensates);
    assert_int_equal(complete(rig, &h), ERR_OK);
    assert_run_is(rig, run, "denied");
}

static void an_edited_input_is_what_the_worker_gets(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    json_t *a = show_approval(rig, job); /* without a content of its own it shows the input */
    assert_int_equal(json_integer_value(json_object_get(json_object_get(a, "content"), "amount")),
                     120);
    json_decref(a);
    assert_says_with(rig, job, "ann", true, (struct words){.edited = "{'amount':80}"}, "approved");
    struct held h;
    must_claim(rig, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":80}");
}

static void content_that_is_sent_back_as_it_was_is_not_edited(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_says_with(rig, job, "ann", true, (struct words){.edited = "{'to':'ann','amount':120}"},
                     "approved");
    json_t *a = show_approval(rig, job);
    assert_true(json_is_null(json_object_get(a, "edited")));
    json_decref(a);
    struct held h;
    must_claim(rig, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":120,\"to\":\"ann\"}");
}

static void an_approved_task_that_failed_is_tried_again_without_asking(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    approves(rig, job, "ann", "approved");
    work_badly(rig, "pay");
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    struct held h;
    must_claim(rig, "pay", &h);
    assert_true(uuid_eq(h.job, job));
    assert_int_equal(told(rig, "job.approved"), 1);
    assert_sound(rig);
}

/* --- an approval step --- */

static void an_approvals_output_is_what_was_approved(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, ASKING(",'content':{'pay':'${input.amount}'}"), "ok", &run);
    assert_run_is(rig, run, "waiting");
    approves(rig, job, "ann", "approved");
    assert_output(rig, run, "ok", "{'pay':120}");
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_int_equal(told(rig, "job.approved"), 1);
    assert_sound(rig);
}

static void the_next_steps_see_what_the_person_made_of_it(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[{'name':'ok','type':'approval','prompt':'ok?','content':1},"
                 "{'name':'pay','type':'task','handler':'h','input':'${steps.ok.output.n}'}]}");
    struct uuid run = start(rig, "w");
    assert_says_with(rig, job_of(rig, run, "ok"), "ann", true, (struct words){.edited = "{'n':7}"},
                     "approved");
    struct held h;
    must_claim(rig, "pay", &h);
    assert_string_equal(h.input, "7");
}

static void a_prompt_is_filled_in_and_hashed_with_its_content(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig,
                          "{'steps':[{'name':'ok','type':'approval','content':[1.0,'é'],"
                          "'prompt':'Pay ${input.amount} to ${input.to}?'}]}",
                          "ok", &run);
    assert_approval(rig, job, "prompt", "Pay 120 to ann?");
    struct sha256 hash = sha256_of(STR("{\"content\":[1,\"é\"],\"prompt\":\"Pay 120 to ann?\"}"));
    struct buf hex;
    buf_init(&hex, 64);
    buf_put_hex(&hex, hash.bytes, SHA256_LEN);
    assert_approval(rig, job, "content_hash", hex.ptr);
    buf_release(&hex);
}

static void a_prompt_that_cannot_be_filled_fails_the_step(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", GATED("{'prompt':'${input.amount + input.to}'}"));
    struct uuid run = start_with(rig, "w", "{'amount':120,'to':'ann'}");
    assert_run_is(rig, run, "failed");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM approvals"), 0);
    assert_sound(rig);
}

static void each_item_of_a_map_is_asked_for_by_itself(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w",
                 "{'steps':[{'name':'ok','type':'approval','for_each':[10,20],"
                 "'prompt':'${item}?','content':'${item}','on_error':'continue'}]}");
    struct uuid run = start(rig, "w");
    assert_run_is(rig, run, "waiting");
    assert_int_equal(in_file(rig, "SELECT count(*) FROM approvals WHERE status = 'pending'"), 2);
    struct list_approvals_input in = {.status = APPROVAL_PENDING, .limit = 10};
    struct call c;
    call_init(&c, rig, &UC_LIST_APPROVALS);
    c.op.input = &in;
    must_perform(&c);
    json_t *page = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    for (size_t i = 0; i < 2; i++) {
        const json_t *a = json_array_get(json_object_get(page, "items"), i);
        struct uuid job;
        assert_true(uuid_parse(json_str(json_object_get(a, "job_id")), &job));
        bool first = json_integer_value(json_object_get(a, "item")) == 0;
        assert_string_equal(json_string_value(json_object_get(a, "prompt")), first ? "10?" : "20?");
        if (first)
            approves(rig, job, "ann", "approved");
        else
            rejects(rig, job, "ann", "rejected");
    }
    json_decref(page);
    assert_run_is(rig, run, "succeeded");
    assert_output(rig, run, "ok", "[10,null]");
    assert_sound(rig);
}

/* --- who --- */

static void the_requester_may_not_approve_but_may_withdraw(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'approvers':{'forbid_requester':true}}"), "pay", &run);
    cannot_approve(rig, job, "tester", ERR_SELF_APPROVAL);
    assert_step_is(rig, run, "pay", "approval");
    rejects(rig, job, "tester", "rejected");
}

static void only_those_who_are_asked_may_decide(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job =
        ask(rig, GATED("{'approvers':{'users':['ann'],'roles':['approver']}}"), "pay", &run);
    cannot_approve(rig, job, "bob", ERR_NOT_AN_APPROVER);
    cannot_reject(rig, job, "bob", ERR_NOT_AN_APPROVER);
    assert_says_with(rig, job, "bob", true, (struct words){.role = ROLE_APPROVER}, "approved");
    cannot_approve(rig, job, "eve", ERR_NOT_AN_APPROVER); /* and is told nothing */
    cannot_reject(rig, job, "eve", ERR_NOT_AN_APPROVER);
    approves(rig, job, "ann", "already_approved");
    cannot_reject(rig, job, "ann", ERR_APPROVAL_CONFLICT);
}

static void the_first_decision_is_what_everybody_hears_of(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    approves(rig, job, "ann", "approved");
    rig_pass_ms(rig, 5000);
    struct said again = decide_with(rig, job, "bob", true, NO_WORDS);
    assert_string_equal(again.status, "already_approved");
    assert_string_equal(again.by, "ann");
    assert_true(again.replayed);
    said_release(&again);
    cannot_reject(rig, job, "bob", ERR_APPROVAL_CONFLICT);
    assert_int_equal(in_file(rig, "SELECT replays * 10 + conflicts FROM approvals"), 11);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM audit WHERE action LIKE 'approval.%'"), 1);
}

/* --- quorum --- */

static void as_many_as_are_needed_decide_and_nobody_counts_twice(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'approvers':{'count':3}}"), "pay", &run);
    struct said s = decide_with(rig, job, "ann", true, NO_WORDS);
    assert_string_equal(s.status, "recorded");
    assert_int_equal(s.approvals, 1);
    said_release(&s);
    s = decide_with(rig, job, "ann", true, NO_WORDS);
    assert_string_equal(s.status, "already_recorded");
    assert_int_equal(s.approvals, 1);
    assert_true(s.replayed);
    said_release(&s);
    approves(rig, job, "bob", "recorded");
    assert_nothing_to_claim(rig);
    s = decide_with(rig, job, "eve", true, NO_WORDS);
    assert_string_equal(s.status, "approved");
    assert_string_equal(s.by, "eve");
    assert_int_equal(s.approvals, 3);
    said_release(&s);
    approves(rig, job, "ann", "already_approved");
    work(rig, "pay");
    assert_int_equal(told(rig, "approval.voted"), 2);
    assert_sound(rig);
}

static void one_no_is_enough(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'approvers':{'count':2}}"), "pay", &run);
    approves(rig, job, "ann", "recorded");
    rejects(rig, job, "ann", "rejected"); /* who has thought better of it */
    assert_run_is(rig, run, "denied");
    cannot_approve(rig, job, "bob", ERR_APPROVAL_CONFLICT);
    assert_sound(rig);
}

static void who_edits_begins_the_count_anew(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'approvers':{'count':2}}"), "pay", &run);
    json_t *before = show_approval(rig, job);
    const char *seen = json_string_value(json_object_get(before, "content_hash"));
    approves(rig, job, "ann", "recorded");
    struct said s = decide_with(rig, job, "bob", true, (struct words){.edited = "{'amount':1}"});
    assert_string_equal(s.status, "recorded");
    assert_int_equal(s.approvals, 1);
    said_release(&s);
    json_t *after = show_approval(rig, job);
    json_t *content = json_object_get(after, "content");
    assert_int_equal(json_integer_value(json_object_get(content, "amount")), 1);
    assert_string_not_equal(json_string_value(json_object_get(after, "content_hash")), seen);
    json_decref(after);
    /* Ann has voted, but not for this. */
    assert_refused_with(rig, job, "ann", true, (struct words){.hash = seen}, ERR_APPROVAL_STALE);
    approves(rig, job, "ann", "approved");
    struct held h;
    must_claim(rig, "pay", &h);
    assert_string_equal(h.input, "{\"amount\":1}");
    json_decref(before);
    assert_sound(rig);
}

static void what_was_not_seen_is_neither_approved_nor_rejected(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    struct words other = {.hash = "0000"};
    assert_refused_with(rig, job, "ann", true, other, ERR_APPROVAL_STALE);
    assert_refused_with(rig, job, "ann", false, other, ERR_APPROVAL_STALE);
    json_t *a = show_approval(rig, job);
    struct words right = {.hash = json_string_value(json_object_get(a, "content_hash"))};
    assert_says_with(rig, job, "ann", true, right, "approved");
    json_decref(a);
}

/* --- time --- */

static void pass_s(struct rig *rig, int64_t seconds)
{
    rig_pass_ms(rig, seconds * 1000);
    settle(rig);
}

static void nobody_in_time_means_no_unless_the_definition_says_else(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60}"), "pay", &run);
    pass_s(rig, 59);
    assert_run_is(rig, run, "waiting");
    pass_s(rig, 1);
    assert_run_is(rig, run, "denied");
    assert_approval(rig, job, "status", "expired");
    assert_approval(rig, job, "decided_by", "pawl");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM audit WHERE action = 'approval.expire'"),
                     1);
    assert_sound(rig);
}

static void nobody_in_time_may_mean_yes(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'on_expire':'approve'}"), "pay", &run);
    pass_s(rig, 60);
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_int_equal(told(rig, "job.approved"), 1);
    assert_sound(rig);
}

static void nobody_in_time_may_mean_a_failure_and_a_retry_asks_again(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'on_expire':'fail'}"), "pay", &run);
    pass_s(rig, 60);
    assert_run_is(rig, run, "failed");
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(rig);
    struct uuid again = job_of(rig, run, "pay");
    assert_false(uuid_eq(job, again));
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    approves(rig, again, "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

/* The timer is there to act; the answer does not wait for it. Here it never comes. */
static void a_decision_after_the_end_comes_too_late_even_before_the_timer_fires(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60}"), "pay", &run);
    tamper(rig, "DELETE FROM timers");
    rig_pass_ms(rig, 59 * 1000);
    assert_refused_with(rig, job, "ann", true, (struct words){.hash = "0"}, ERR_APPROVAL_STALE);
    rig_pass_ms(rig, 1000);
    cannot_approve(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    cannot_reject(rig, job, "ann", ERR_APPROVAL_EXPIRED);
    assert_approval(rig, job, "status", "pending");
}

static void an_approval_step_may_run_out_of_its_own_time(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, ASKING(",'timeout_ms':5000"), "ok", &run);
    pass_s(rig, 5);
    assert_run_is(rig, run, "failed");
    assert_step_is(rig, run, "ok", "timed_out");
    assert_approval(rig, job, "status", "void");
    cannot_approve(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    assert_sound(rig);
}

static void reminders_come_again_and_again_and_stop_with_the_decision(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'remind_every_s':60,'expires_s':600}"), "pay", &run);
    pass_s(rig, 59);
    assert_int_equal(told(rig, "approval.reminded"), 0);
    pass_s(rig, 1);
    assert_int_equal(told(rig, "approval.reminded"), 1);
    pass_s(rig, 60);
    assert_int_equal(told(rig, "approval.reminded"), 2);
    pass_s(rig, 200); /* three were missed: one is told */
    assert_int_equal(told(rig, "approval.reminded"), 3);
    json_t *a = show_approval(rig, job);
    assert_int_equal(json_integer_value(json_object_get(a, "reminded")), 5);
    json_decref(a);
    assert_sound(rig);
    approves(rig, job, "ann", "approved");
    pass_s(rig, 300);
    assert_int_equal(told(rig, "approval.reminded"), 3);
    assert_int_equal(in_file(rig, "SELECT count(*) FROM timers"), 0);
}

static void after_a_time_others_may_decide_too(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig,
                          GATED("{'approvers':{'users':['ann']},'expires_s':600,"
                                "'escalation':{'after_s':60,'approvers':{'users':['boss']}}}"),
                          "pay", &run);
    cannot_approve(rig, job, "boss", ERR_NOT_AN_APPROVER);
    pass_s(rig, 60);
    assert_int_equal(told(rig, "approval.escalated"), 1);
    cannot_approve(rig, job, "bob", ERR_NOT_AN_APPROVER);
    pass_s(rig, 60);
    assert_int_equal(told(rig, "approval.escalated"), 1);
    approves(rig, job, "boss", "approved");
    assert_sound(rig);
}

static void what_is_due_survives_a_restart(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'remind_every_s':60,'expires_s':90}"), "pay", &run);
    rig_stop(rig);
    rig_pass_ms(rig, 70 * 1000);
    rig_start(rig, 0);
    settle(rig);
    assert_int_equal(told(rig, "approval.reminded"), 1);
    rig_stop(rig);
    rig_pass_ms(rig, 70 * 1000);
    rig_start(rig, 0);
    settle(rig);
    assert_approval(rig, job, "status", "expired");
    assert_run_is(rig, run, "denied");
}

/* --- the run --- */

static void an_approval_ends_with_its_run(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("{'expires_s':60,'remind_every_s':5}"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_CANCEL), ERR_OK);
    assert_approval(rig, job, "status", "void");
    cannot_approve(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    cannot_reject(rig, job, "ann", ERR_NOT_AWAITING_APPROVAL);
    pass_s(rig, 100);
    assert_int_equal(told(rig, "approval.reminded"), 0);
    assert_approval(rig, job, "status", "void");
    assert_sound(rig);
}

static void a_run_out_of_time_ends_its_approvals(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job =
        ask(rig, "{'timeout_s':5,'steps':[" TASK_STEP("pay", ",'requires_approval':true") "]}",
            "pay", &run);
    pass_s(rig, 5);
    assert_run_is(rig, run, "timed_out");
    assert_approval(rig, job, "status", "void");
    /* A retry must not let it go unasked. */
    assert_int_equal(control(rig, run, CONTROL_RETRY), ERR_OK);
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "waiting");
    approves(rig, job_of(rig, run, "pay"), "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void a_paused_run_takes_decisions_and_goes_on_when_resumed(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    approves(rig, job, "ann", "approved");
    assert_run_is(rig, run, "paused");
    assert_nothing_to_claim(rig);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    work(rig, "pay");
    assert_run_is(rig, run, "succeeded");
    assert_sound(rig);
}

static void pausing_does_not_let_a_task_go(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    assert_int_equal(control(rig, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(control(rig, run, CONTROL_RESUME), ERR_OK);
    assert_nothing_to_claim(rig);
    assert_run_is(rig, run, "waiting");
    approves(rig, job, "ann", "approved");
    work(rig, "pay");
}

static void work_beside_an_approval_keeps_the_run_running(void **state)
{
    struct rig *rig = *state;
    put_workflow(
        rig, "w",
        "{'steps':[" TASK_STEP("pay", ",'needs':[],'requires_approval':true") "," TASK_STEP(
            "pack", ",'needs':[]") "]}");
    struct uuid run = start(rig, "w");
    assert_run_is(rig, run, "running");
    work(rig, "pack");
    assert_run_is(rig, run, "waiting");
    rejects(rig, job_of(rig, run, "pay"), "ann", "rejected");
    assert_run_is(rig, run, "denied");
    assert_sound(rig);
}

static void a_rerun_asks_again(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    rejects(rig, job, "ann", "rejected");
    struct rerun_run_input in = {.run_id = run, .if_match = -1};
    struct call c;
    call_init(&c, rig, &UC_RERUN_RUN);
    c.op.input = &in;
    must_perform(&c);
    struct uuid again = c.op.answer.run_id;
    call_release(&c);
    approves(rig, job_of(rig, again, "pay"), "ann", "approved");
    work(rig, "pay");
    assert_run_is(rig, again, "succeeded");
    cannot_approve(rig, job, "ann", ERR_APPROVAL_CONFLICT);
}

/* --- what there is not --- */

static void a_job_that_nobody_was_asked_about_awaits_nothing(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", ONE_TASK);
    struct uuid run = start(rig, "w");
    cannot_approve(rig, job_of(rig, run, "a"), "ann", ERR_NOT_AWAITING_APPROVAL);
    cannot_approve(rig, env_new_id(&ENV_SYSTEM), "ann", ERR_APPROVAL_NOT_FOUND);
}

static void another_tenants_approval_is_not_there(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    struct decide_input in = {.job_id = job};
    struct call c;
    call_init(&c, rig, &UC_APPROVE);
    c.op.input = &in;
    c.op.caller.tenant = STR("other");
    assert_int_equal(perform(&c), ERR_APPROVAL_NOT_FOUND);
    call_release(&c);
    assert_step_is(rig, run, "pay", "approval");
}

static void a_decision_under_a_key_is_answered_with_the_first_answer(void **state)
{
    struct rig *rig = *state;
    struct uuid run;
    struct uuid job = ask(rig, GATED("true"), "pay", &run);
    for (int turn = 0; turn < 2; turn++) {
        struct decide_input in = {.job_id = job};
        struct call c;
        call_init(&c, rig, &UC_APPROVE);
        c.op.input = &in;
        call_key(&c, "k", "{}");
        must_perform(&c);
        json_t *body = parsed_str(buf_str(&c.op.answer.body));
        assert_string_equal(json_string_value(json_object_get(body, "status")), "approved");
        assert_int_equal(c.op.answer.replayed, turn == 1);
        json_decref(body);
        call_release(&c);
    }
    assert_int_equal(told(rig, "approval.decided"), 1);
}

/* --- statistics --- */

static void statistics_tell_how_long_it_took_and_what_was_said_twice(void **state)
{
    struct rig *rig = *state;
    put_workflow(rig, "w", GATED("true"));
    put_workflow(rig, "v", GATED("{'expires_s':3600}"));
    for (int i = 1; i <= 20; i++) {
        struct uuid job = job_of(rig, start(rig, "w"), "pay");
        rig_pass_ms(rig, i * 1000);
        approves(rig, job, "ann", "approved");
        if (i % 2 == 0)
            approves(rig, job, "bob", "already_approved");
        if (i % 4 == 0)
            cannot_reject(rig, job, "bob", ERR_APPROVAL_CONFLICT);
    }
    (void)start(rig, "v");
    rejects(rig, job_of(rig, start(rig, "v"), "pay"), "ann", "rejected");
    struct approval_stats_input in = {.days = 1};
    struct call c;
    call_init(&c, rig, &UC_APPROVAL_STATS);
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
    struct rig *rig = *state;
    for (int i = 0; i <= APPROVAL_STATS_WORKFLOWS_MAX; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "w%d", i);
        put_workflow(rig, id, GATED("true"));
        approves(rig, job_of(rig, start(rig, id), "pay"), "ann", "approved");
    }
    struct approval_stats_input in = {.days = 1};
    struct call c;
    call_init(&c, rig, &UC_APPROVAL_STATS);
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
        rig_test(a_gated_task_is_handed_out_after_it_is_approved_and_once),
        rig_test(a_rejected_task_is_denied_and_so_is_its_run),
        rig_test(a_denial_that_is_dealt_with_does_not_end_the_run),
        rig_test(what_was_done_before_a_denial_is_undone),
        rig_test(an_edited_input_is_what_the_worker_gets),
        rig_test(content_that_is_sent_back_as_it_was_is_not_edited),
        rig_test(an_approved_task_that_failed_is_tried_again_without_asking),
        rig_test(an_approvals_output_is_what_was_approved),
        rig_test(the_next_steps_see_what_the_person_made_of_it),
        rig_test(a_prompt_is_filled_in_and_hashed_with_its_content),
        rig_test(a_prompt_that_cannot_be_filled_fails_the_step),
        rig_test(each_item_of_a_map_is_asked_for_by_itself),
        rig_test(the_requester_may_not_approve_but_may_withdraw),
        rig_test(only_those_who_are_asked_may_decide),
        rig_test(the_first_decision_is_what_everybody_hears_of),
        rig_test(as_many_as_are_needed_decide_and_nobody_counts_twice),
        rig_test(one_no_is_enough),
        rig_test(who_edits_begins_the_count_anew),
        rig_test(what_was_not_seen_is_neither_approved_nor_rejected),
        rig_test(nobody_in_time_means_no_unless_the_definition_says_else),
        rig_test(nobody_in_time_may_mean_yes),
        rig_test(nobody_in_time_may_mean_a_failure_and_a_retry_asks_again),
        rig_test(a_decision_after_the_end_comes_too_late_even_before_the_timer_fires),
        rig_test(an_approval_step_may_run_out_of_its_own_time),
        rig_test(reminders_come_again_and_again_and_stop_with_the_decision),
        rig_test(after_a_time_others_may_decide_too),
        rig_test(what_is_due_survives_a_restart),
        rig_test(an_approval_ends_with_its_run),
        rig_test(a_run_out_of_time_ends_its_approvals),
        rig_test(a_paused_run_takes_decisions_and_goes_on_when_resumed),
        rig_test(pausing_does_not_let_a_task_go),
        rig_test(work_beside_an_approval_keeps_the_run_running),
        rig_test(a_rerun_asks_again),
        rig_test(a_job_that_nobody_was_asked_about_awaits_nothing),
        rig_test(another_tenants_approval_is_not_there),
        rig_test(a_decision_under_a_key_is_answered_with_the_first_answer),
        rig_test(statistics_tell_how_long_it_took_and_what_was_said_twice),
        rig_test(more_workflows_than_are_shown_are_in_the_sum),
    };
    return cmocka_run_group_tests_name("approvals", tests, NULL, NULL);
}
