/* What senders and handlers of entities do, one call each. */
#ifndef PAWL_TESTS_ENGINE_ENTITY_ACTIONS_H
#define PAWL_TESTS_ENGINE_ENTITY_ACTIONS_H

#include "engine/fixture.h"

#include "domain/entity/dedup.h"

#define COUNTER STR("counter")

/* Rules as in a request's body; ' is written for ". */
static inline enum err put_entity_type(struct fixture *fixture, const char *body)
{
    struct problem p;
    problem_init(&p);
    struct json *json = json_value_of_tree(json_of(body));
    struct put_entity_type_input in = {.type = COUNTER, .version = -1};
    if (entity_rules_parse(json, NULL, &p, &in.rules, &in.version) != ERR_OK)
        fail_msg("the rules are wrong: %s", p.detail);
    struct call c;
    call_init(&c, fixture, &UC_PUT_ENTITY_TYPE);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    json_free(json);
    problem_release(&p);
    return e;
}

static inline void count_with(struct fixture *fixture, const char *more)
{
    char body[512];
    (void)snprintf(body, sizeof(body), "{'queue':'default','handler':'count'%s}", more);
    assert_int_equal(put_entity_type(fixture, body), ERR_OK);
}

struct sent {
    enum err err;
    int64_t seq;
    bool duplicate;
};

/* A number to be added; key NULL: none. */
static inline struct sent send_signal(struct fixture *fixture, const char *id, const char *key,
                                      int number)
{
    struct call c;
    call_init(&c, fixture, &UC_SIGNAL_ENTITY);
    char payload[32];
    (void)snprintf(payload, sizeof(payload), "%d", number);
    struct signal_entity_input in = {
        .type = COUNTER, .id = str_of(id), .name = STR("add"), .payload = str_of(payload)};
    struct json *json = json_value_of_tree(json_integer(number));
    assert_int_equal(dedup_request(in.name, json, &c.op.problem, &in.request), ERR_OK);
    json_free(json);
    if (key != NULL)
        in.dedup_key = str_of(key);
    c.op.input = &in;
    struct sent sent = {.err = perform(&c)};
    if (sent.err == ERR_OK) {
        json_t *body = parsed_str(buf_str(&c.op.answer.body));
        sent.seq = json_integer_value(json_object_get(body, "seq"));
        sent.duplicate = json_is_true(json_object_get(body, "duplicate"));
        json_decref(body);
    }
    call_release(&c);
    return sent;
}

static inline struct sent must_send(struct fixture *fixture, const char *id, const char *key,
                                    int number)
{
    struct sent sent = send_signal(fixture, id, key, number);
    assert_int_equal(sent.err, ERR_OK);
    return sent;
}

/* --- handlers --- */

/* One call; the caller owns `job` (NULL: there was none). */
struct handed {
    json_t *job;
    const json_t *input; /* borrowed from it */
    struct uuid id;
    char token[64];
};

static inline struct handed claim_call(struct fixture *fixture, int64_t lease_ms)
{
    struct call c;
    claim_init(&c, fixture, "h", lease_ms);
    must_perform(&c);
    json_t *jobs = jobs_of(&c);
    struct handed h = {0};
    if (json_array_size(jobs) > 0) {
        h.job = json_incref(json_array_get(jobs, 0));
        h.input = json_object_get(h.job, "input");
        assert_true(uuid_parse(json_str(json_object_get(h.job, "job_id")), &h.id));
        (void)snprintf(h.token, sizeof(h.token), "%s",
                       json_string_value(json_object_get(h.job, "lease_token")));
    }
    json_decref(jobs);
    call_release(&c);
    return h;
}

/* `output` is plain JSON; NULL: it failed, and may be tried again or not. */
static inline enum err finish_call(struct fixture *fixture, const struct handed *h,
                                   const char *output, bool retryable)
{
    struct call c;
    call_init(&c, fixture, &UC_FINISH_JOB);
    c.input.finish = (struct finish_job_input){
        .job_id = h->id,
        .lease_token = str_of(h->token),
        .failed = output == NULL,
        .output = output != NULL ? str_of(output) : STR_NONE,
        .error = STR("{\"code\":\"NO\"}"),
        .code = STR("NO"),
        .retryable = retryable,
    };
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

/* The answer of a handler that adds up what it is sent; `more` are further members. */
static inline void sum_up(const struct handed *h, const char *more, char out[static 512])
{
    const json_t *state = json_object_get(h->input, "state");
    int64_t sum = json_integer_value(json_object_get(state, "sum"));
    int64_t count = json_integer_value(json_object_get(state, "count"));
    int64_t last = json_integer_value(json_object_get(state, "last"));
    const json_t *signals = json_object_get(h->input, "signals");
    for (size_t i = 0; i < json_array_size(signals); i++) {
        const json_t *s = json_array_get(signals, i);
        int64_t seq = json_integer_value(json_object_get(s, "seq"));
        assert_true(seq > last); /* in their order, none twice */
        last = seq;
        sum += json_integer_value(json_object_get(s, "payload"));
        count++;
    }
    int len = snprintf(out, 512, "{\"state\":{\"sum\":%lld,\"count\":%lld,\"last\":%lld}%s}",
                       (long long)sum, (long long)count, (long long)last, more);
    assert_true(len > 0 && len < 512);
}

/* Claims and answers until nothing is left; how many calls that were. */
static inline int handle_all(struct fixture *fixture, const char *more)
{
    int calls = 0;
    for (;;) {
        struct handed h = claim_call(fixture, 30000);
        if (h.job == NULL)
            return calls;
        char answer[512];
        sum_up(&h, more, answer);
        assert_int_equal(finish_call(fixture, &h, answer, true), ERR_OK);
        json_decref(h.job);
        calls++;
    }
}

/* --- looking --- */

/* The caller owns it; NULL: there is none. */
static inline json_t *show_entity(struct fixture *fixture, const char *id)
{
    struct call c;
    call_init(&c, fixture, &UC_GET_ENTITY);
    struct entity_input in = {COUNTER, str_of(id)};
    c.op.input = &in;
    json_t *shown = perform(&c) == ERR_OK ? parsed_str(buf_str(&c.op.answer.body)) : NULL;
    call_release(&c);
    return shown;
}

static inline int64_t entity_number(struct fixture *fixture, const char *id, const char *member)
{
    json_t *shown = show_entity(fixture, id);
    assert_non_null(shown);
    int64_t number = json_integer_value(json_object_get(shown, member));
    json_decref(shown);
    return number;
}

static inline int64_t state_number(struct fixture *fixture, const char *id, const char *member)
{
    json_t *shown = show_entity(fixture, id);
    assert_non_null(shown);
    int64_t number = json_integer_value(json_object_get(json_object_get(shown, "state"), member));
    json_decref(shown);
    return number;
}

static inline void assert_entity_is(struct fixture *fixture, const char *id, const char *status)
{
    json_t *shown = show_entity(fixture, id);
    assert_non_null(shown);
    const char *is = json_string_value(json_object_get(shown, "status"));
    if (is == NULL || strcmp(is, status) != 0)
        fail_msg("the entity is %s, not %s", is != NULL ? is : "nothing", status);
    json_decref(shown);
}

#endif
