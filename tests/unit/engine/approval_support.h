/* Deciding and reading approvals, for the tests about them. */
#ifndef PAWL_TESTS_APPROVAL_SUPPORT_H
#define PAWL_TESTS_APPROVAL_SUPPORT_H

#include "engine/actions.h"

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

static inline void said_release(struct said *s)
{
    json_decref(s->body);
}

struct words {
    const char *reason;
    const char *hash;
    const char *edited; /* ' for " */
    enum role role;     /* 0: an admin */
};

static inline struct said decide_with(struct fixture *fixture, struct uuid job, const char *who,
                                      bool approves, struct words words)
{
    struct decide_input in = {.job_id = job};
    if (words.reason != NULL)
        in.reason = str_of(words.reason);
    if (words.hash != NULL)
        in.expected_hash = str_of(words.hash);
    struct buf text;
    buf_init(&text, 4 * KIB);
    struct json *edited = json_value_of_tree(words.edited != NULL ? json_of(words.edited) : NULL);
    if (edited != NULL) {
        json_write_plain(&text, edited);
        in.edited = edited;
        in.edited_text = buf_str(&text);
    }
    struct call c;
    call_init(&c, fixture, approves ? &UC_APPROVE : &UC_REJECT);
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
    json_free(edited);
    buf_release(&text);
    return s;
}

static inline void assert_says_with(struct fixture *fixture, struct uuid job, const char *who,
                                    bool approves, struct words words, const char *status)
{
    struct said s = decide_with(fixture, job, who, approves, words);
    if (s.err != ERR_OK)
        fail_msg("%s is refused: %s", who, err_code(s.err));
    assert_string_equal(s.status, status);
    said_release(&s);
}

static inline void assert_refused_with(struct fixture *fixture, struct uuid job, const char *who,
                                       bool approves, struct words words, enum err why)
{
    struct said s = decide_with(fixture, job, who, approves, words);
    if (s.err != why)
        fail_msg("%s gets %s, not %s", who, err_code(s.err), err_code(why));
    said_release(&s);
}

#define NO_WORDS ((struct words){0})
#define approves(fixture, job, who, status) \
    assert_says_with(fixture, job, who, true, NO_WORDS, status)
#define rejects(fixture, job, who, status) \
    assert_says_with(fixture, job, who, false, NO_WORDS, status)
#define cannot_approve(fixture, job, who, why) \
    assert_refused_with(fixture, job, who, true, NO_WORDS, why)
#define cannot_reject(fixture, job, who, why) \
    assert_refused_with(fixture, job, who, false, NO_WORDS, why)

/* --- looking --- */

static inline struct uuid job_of(struct fixture *fixture, struct uuid run, const char *step)
{
    struct uuid id;
    json_t *shown = show_run(fixture, run);
    assert_true(uuid_parse(json_str(of_step(shown, step, "job_id")), &id));
    json_decref(shown);
    return id;
}

/* The caller owns it. */
static inline json_t *show_approval(struct fixture *fixture, struct uuid job)
{
    struct get_job_input in = {job};
    struct call c;
    call_init(&c, fixture, &UC_GET_APPROVAL);
    c.op.input = &in;
    must_perform(&c);
    json_t *approval = parsed_str(buf_str(&c.op.answer.body));
    call_release(&c);
    return approval;
}

static inline void assert_approval(struct fixture *fixture, struct uuid job, const char *member,
                                   const char *text)
{
    json_t *a = show_approval(fixture, job);
    const char *is = json_string_value(json_object_get(a, member));
    if (is == NULL || strcmp(is, text) != 0)
        fail_msg("%s is %s, not %s", member, is != NULL ? is : "nothing", text);
    json_decref(a);
}

/* How many events of this type there are. */
static inline int64_t event_count(struct fixture *fixture, const char *type)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM events WHERE type = '%s'", type);
    return in_file(fixture, sql);
}

#define GATED(gate) "{'steps':[" TASK_STEP("pay", ",'requires_approval':" gate) "]}"
#define ASKING(more) \
    "{'steps':[{'name':'ok','type':'approval','prompt':'ok?'" more "}," TASK_STEP("pay", "") "]}"

static inline struct uuid ask(struct fixture *fixture, const char *definition, const char *step,
                              struct uuid *ret_run)
{
    put_workflow(fixture, "w", definition);
    *ret_run = start_with(fixture, "w", "{'amount':120,'to':'ann'}");
    return job_of(fixture, *ret_run, step);
}

#endif
