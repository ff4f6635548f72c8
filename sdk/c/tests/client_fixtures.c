/* The fixtures of the client: requests, answers, errors, keys, retries, streams, webhooks,
 * definitions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definition.h"
#include "error.h"
#include "script.h"
#include "sse.h"

void client_fixtures(const char *folder);

/* The call of a case. putWorkflow's definition may be missing. */
static enum pawl_err make_call(struct pawl_client *client, const json_t *call, json_t **ret_result,
                               struct pawl_error *error)
{
    json_t *args = json_deep_copy(json_object_get(call, "args"));
    return pawl_call(client, member_text(call, "op"), args, ret_result, error);
}

static void expect_error(const struct pawl_error *error, const json_t *wanted)
{
    json_t *actual =
        json_pack("{s:s, s:s, s:i, s:b, s:f, s:O?}", "class", pawl_err_name(error->kind), "code",
                  error->code, "status", error->status, "retryable", error->retryable,
                  "retry_after_s", error->retry_after_s, "details", error->details);
    expect(contains(actual, wanted), "error", actual, wanted);
    json_decref(actual);
}

static void test_request(const json_t *test)
{
    struct script script;
    json_t *lost = json_pack("[{s:b}]", "lost", 1);
    script_begin(&script, lost);
    script.keys = json_object_get(test, "new_keys");
    struct pawl_client *client = script_client(&script, json_object_get(test, "client"));
    client->retry.max_attempts = 1;
    enum pawl_err result = make_call(client, json_object_get(test, "call"), NULL, NULL);
    expect(result == PAWL_ERR_NO_ANSWER, pawl_err_name(result), NULL, NULL);
    expect_request(json_array_get(script.sent, 0), json_object_get(test, "request"));
    pawl_client_free(client);
    script_end(&script);
    json_decref(lost);
}

static void test_answer(const json_t *test)
{
    struct script script;
    json_t *answers = json_pack("[O]", json_object_get(test, "answer")), *result = NULL;
    script_begin(&script, answers);
    struct pawl_client *client = script_client(&script, NULL);
    client->retry.max_attempts = 1;
    struct pawl_error error = {0};
    enum pawl_err err = make_call(client, json_object_get(test, "call"), &result, &error);
    const json_t *wanted = json_object_get(test, "result");
    if (wanted)
        expect(err == PAWL_OK && contains(result, wanted), "result", result, wanted);
    else
        expect_error(&error, json_object_get(test, "error"));
    json_decref(result);
    pawl_error_clear(&error);
    pawl_client_free(client);
    script_end(&script);
    json_decref(answers);
}

static void test_error(const json_t *test)
{
    struct pawl_error error = {0};
    json_t *problem = json_pack("{s:O}", "code", json_object_get(test, "code"));
    error_refused(&error, (int)json_integer_value(json_object_get(test, "status")), problem, "", 0);
    expect(strcmp(pawl_err_name(error.kind), member_text(test, "class")) == 0,
           pawl_err_name(error.kind), NULL, test);
    expect(strcmp(error.code, member_text(test, "code")) == 0, error.code, NULL, test);
    json_decref(problem);
    pawl_error_clear(&error);
}

static void test_key(const json_t *test)
{
    char *header = NULL;
    const char *wanted = json_string_value(json_object_get(test, "header"));
    enum pawl_err result = key_header(member_text(test, "key"), &header, NULL);
    if (json_is_true(json_object_get(test, "refused")))
        expect(result == PAWL_ERR_BAD_ARGUMENT, "is not refused", NULL, test);
    else
        expect(result == PAWL_OK && (wanted ? header && strcmp(header, wanted) == 0 : !header),
               header ? header : "no header", NULL, test);
    free(header);
}

static double number(const json_t *object, const char *name, double missing)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_null(value))
        return 0;
    return value ? json_number_value(value) : missing;
}

static struct pawl_retry policy_of(const json_t *wire)
{
    static const char *const names[] = {"full", "equal", "decorrelated", "none"};
    struct pawl_retry retry = PAWL_RETRY_DEFAULT;
    for (enum pawl_jitter jitter = PAWL_JITTER_FULL; jitter <= PAWL_JITTER_NONE; jitter++)
        if (strcmp(member_text(wire, "jitter"), names[jitter]) == 0)
            retry.jitter = jitter;
    retry.base_ms = number(wire, "base_ms", retry.base_ms);
    retry.max_ms = number(wire, "max_ms", retry.max_ms);
    retry.multiplier = number(wire, "multiplier", retry.multiplier);
    retry.max_attempts = (int)number(wire, "max_attempts", 0);
    retry.deadline_ms = number(wire, "deadline_ms", retry.deadline_ms);
    return retry;
}

static void expect_sent_with(const json_t *sent, const char *key)
{
    size_t i;
    json_t *request;
    json_array_foreach ((json_t *)(uintptr_t)sent, i, request)
        expect(strcmp(member_text(json_object_get(request, "headers"), "idempotency-key"), key) ==
                   0,
               "key", request, NULL);
}

static void test_retries(const json_t *test)
{
    struct script script;
    script_begin(&script, json_object_get(test, "exchanges"));
    json_t *keys = json_pack("[s]", "k"), *none = json_array(),
           *start = json_pack("{s:s, s:{s:s}}", "op", "startRun", "args", "workflow_id", "w");
    script.keys = keys;
    script.numbers = json_object_get(test, "random") ? json_object_get(test, "random") : none;
    struct pawl_client *client = script_client(&script, NULL);
    const json_t *budget = json_object_get(test, "budget"), *call = json_object_get(test, "call");
    client->retry = policy_of(json_object_get(test, "policy"));
    client->budget = (struct pawl_budget){number(budget, "tokens", 10), number(budget, "max", 10),
                                          number(budget, "per_success", 0.1)};
    struct pawl_error error = {0};
    enum pawl_err result = make_call(client, call ? call : start, NULL, &error);
    const json_t *wanted = json_object_get(json_object_get(test, "outcome"), "error");
    if (wanted)
        expect_error(&error, wanted);
    else
        expect(result == PAWL_OK, pawl_err_name(result), NULL, NULL);
    expect(same(script.pauses, json_object_get(test, "pauses_ms")), "pauses", script.pauses,
           json_object_get(test, "pauses_ms"));
    expect(script.answered == json_array_size(script.answers), "not all exchanges were made", NULL,
           NULL);
    expect(script.drawn == json_array_size(script.numbers), "not all numbers were drawn", NULL,
           NULL);
    expect_sent_with(script.sent, "k");
    expect(fabs(client->budget.tokens - number(test, "tokens_after", client->budget.tokens)) < 1e-9,
           "tokens", NULL, test);
    pawl_error_clear(&error);
    pawl_client_free(client);
    script_end(&script);
    json_decref(keys);
    json_decref(none);
    json_decref(start);
}

static bool note_event(const struct sse_event *event, void *events)
{
    json_array_append_new(events, json_pack("{s:s?, s:s, s:s}", "id", event->id, "event",
                                            event->event, "data", event->data));
    return true;
}

static void feed(const json_t *test, size_t step)
{
    struct sse sse;
    sse_begin(&sse, NULL);
    json_t *events = json_array(), *chunk;
    size_t i;
    json_array_foreach (json_object_get(test, "chunks"), i, chunk) {
        const char *text = json_string_value(chunk);
        size_t size = strlen(text);
        for (size_t at = 0; at < size; at += step)
            sse_feed(&sse, text + at, size - at < step ? size - at : step, note_event, events);
    }
    const char *last = json_string_value(json_object_get(test, "last_id"));
    expect(same(events, json_object_get(test, "events")), "events", events,
           json_object_get(test, "events"));
    expect(last ? sse.last_id && strcmp(sse.last_id, last) == 0 : !sse.last_id, "last_id", NULL,
           test);
    json_decref(events);
    sse_end(&sse);
}

static void test_sse(const json_t *test)
{
    feed(test, SIZE_MAX / 2);
    feed(test, 1);
}

struct seen {
    json_t *events;
    size_t take;
};

static bool see(json_t *event, void *at)
{
    struct seen *seen = at;
    json_array_append(seen->events, event);
    return json_array_size(seen->events) != seen->take;
}

/* The list of types as the client takes it. */
static char *joined(const json_t *types)
{
    struct buffer text = {0};
    for (size_t i = 0; i < json_array_size(types); i++) {
        buffer_text(&text, i ? "," : "");
        buffer_text(&text, json_string_value(json_array_get(types, i)));
    }
    return text.data;
}

static void test_watch(const json_t *test)
{
    struct script script;
    script_begin(&script, json_object_get(test, "connections"));
    struct pawl_client *client = script_client(&script, NULL);
    struct seen seen = {.events = json_array(), .take = (size_t)number(test, "take", 0)};
    struct pawl_error error = {0};
    const json_t *call = json_object_get(test, "call"), *args = json_object_get(call, "args"),
                 *wanted = json_object_get(test, "error");
    enum pawl_err result;
    if (strcmp(member_text(call, "op"), "watchRun") == 0) {
        result = pawl_watch(client, member_text(args, "run_id"),
                            json_integer_value(json_object_get(args, "after")), see, &seen, &error);
    } else {
        char *types = joined(json_object_get(args, "types"));
        result = pawl_events(client, types, json_string_value(json_object_get(args, "after")), see,
                             &seen, &error);
        free(types);
    }
    if (wanted)
        expect_error(&error, wanted);
    else
        expect(result == PAWL_OK, pawl_err_name(result), NULL, NULL);
    expect(contains(seen.events, json_object_get(test, "events")), "events", seen.events,
           json_object_get(test, "events"));
    expect(script.answered == json_array_size(script.answers), "not all connections were made",
           NULL, NULL);
    json_decref(seen.events);
    pawl_error_clear(&error);
    pawl_client_free(client);
    script_end(&script);
}

static void test_webhook(const json_t *test)
{
    struct pawl_header headers[8] = {{NULL, NULL}};
    size_t count = 0;
    const char *name, *body = member_text(test, "body");
    json_t *value, *event = NULL;
    json_object_foreach (json_object_get(test, "headers"), name, value)
        headers[count++] = (struct pawl_header){name, json_string_value(value)};
    struct pawl_error error = {0};
    enum pawl_err result = pawl_webhook_verify(
        member_text(test, "secret"), headers, body, strlen(body), (int64_t)number(test, "now_s", 0),
        (int64_t)number(test, "tolerance_s", 0), &event, &error);
    const json_t *wanted = json_object_get(test, "event");
    if (wanted)
        expect(result == PAWL_OK && contains(event, wanted), "event", event, wanted);
    else
        expect(result == PAWL_ERR_WEBHOOK_INVALID &&
                   strcmp(error.code, member_text(test, "invalid")) == 0,
               error.code, NULL, test);
    json_decref(event);
    pawl_error_clear(&error);
}

/* A fixture's value with the library's own references in it. */
static json_t *built(const json_t *value)
{
    const char *reference = json_string_value(json_object_get(value, "$ref"));
    json_t *undo = json_object_get(value, "$compensate");
    if (reference) {
        char *names[8] = {NULL}, *text = format("%s", reference), *rest = text;
        for (size_t i = 0; (names[i] = strtok_r(rest, ".", &rest)) != NULL; i++)
            continue;
        json_t *made = pawl_ref((const char *const *)names);
        free(text);
        return made;
    }
    if (undo)
        return json_incref(undo);
    json_t *copy = json_deep_copy(value), *member;
    const char *name;
    size_t i;
    json_object_foreach (copy, name, member)
        json_object_set_new(copy, name, built(json_object_get(value, name)));
    json_array_foreach (copy, i, member)
        json_array_set_new(copy, i, built(json_array_get(value, i)));
    return copy;
}

/* Takes a member out of an object; the caller frees it. */
static char *take_text(json_t *object, const char *name)
{
    char *text = format("%s", member_text(object, name));
    json_object_del(object, name);
    return text;
}

static void build_step(struct pawl_workflow *workflow, const json_t *step)
{
    json_t *members = built(step);
    char *call = take_text(members, "call"), *name = take_text(members, "name");
    char *first = NULL, *second = NULL;
    if (strcmp(call, "task") == 0) {
        first = take_text(members, "handler");
        pawl_workflow_task(workflow, name, first, "O", members);
    } else if (strcmp(call, "http") == 0) {
        first = take_text(members, "method");
        second = take_text(members, "url");
        pawl_workflow_http(workflow, name, first, second, "O", members);
    } else if (strcmp(call, "approval") == 0) {
        first = take_text(members, "prompt");
        pawl_workflow_approval(workflow, name, first, "O", members);
    } else {
        pawl_workflow_step(workflow, call, name, "O", members);
    }
    free(first);
    free(second);
    free(call);
    free(name);
    json_decref(members);
}

static void test_definition(const json_t *test)
{
    json_t *head = json_deep_copy(json_object_get(test, "workflow")), *step, *definition = NULL;
    char *id = take_text(head, "id");
    struct pawl_workflow *workflow = pawl_workflow_new(id, "O", head);
    struct pawl_error error = {0};
    size_t i;
    json_array_foreach (json_object_get(test, "steps"), i, step)
        build_step(workflow, step);
    enum pawl_err result = pawl_workflow_json(workflow, &definition, &error);
    expect(result == PAWL_OK, error.message, NULL, NULL);
    expect(json_equal(definition, json_object_get(test, "definition")), "definition", definition,
           json_object_get(test, "definition"));
    json_decref(definition);
    json_decref(head);
    pawl_workflow_free(workflow);
    pawl_error_clear(&error);
    free(id);
}

void client_fixtures(const char *folder)
{
    each_case(folder, "requests.json", test_request);
    each_case(folder, "answers.json", test_answer);
    each_case(folder, "errors.json", test_error);
    each_case(folder, "keys.json", test_key);
    each_case(folder, "retries.json", test_retries);
    each_case(folder, "sse.json", test_sse);
    each_case(folder, "watch.json", test_watch);
    each_case(folder, "webhooks.json", test_webhook);
    each_case(folder, "definitions.json", test_definition);
}
