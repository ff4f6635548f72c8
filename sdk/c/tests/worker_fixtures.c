/* The fixtures of workers, durable functions and entities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "entity.h"
#include "error.h"
#include "script.h"

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

/* --- worker.json: the lanes on a virtual clock, with a script as the server --- */

struct machine_lane {
    struct lane *lane;
    struct lane_wish wish;
    const json_t *reply; /* the answer that comes at `reply_ms` */
    double reply_ms;
    bool claims, ended;
};

struct machine {
    struct script clock;
    struct pawl_worker *worker;
    struct machine_lane lanes[LANES];
    json_t *answers, *inputs; /* what is left of the script */
    json_t *seen;             /* {"at_ms", what the worker did} */
    struct held *jobs[16];
    size_t job_count;
    bool stopped;
};

static void see(struct machine *machine, const char *what, json_t *value)
{
    json_array_append_new(machine->seen,
                          json_pack("{s:f, s:o}", "at_ms", machine->clock.now_ms, what, value));
}

static void on_spawn(void *at, struct held *held)
{
    struct machine *machine = at;
    machine->jobs[machine->job_count++] = held;
    see(machine, "begins", json_string(held->job_id));
}

static void on_cancelled(void *at, struct held *held)
{
    see(at, "cancelled", json_string(held->job_id));
}

static void no_rest(void *at, struct held *held, double ms)
{
    (void)at;
    (void)held;
    (void)ms;
}

static bool is_wanted(const json_t *out, const json_t *sent)
{
    const char *op = member_text(out, "op"), *job_id = member_text(out, "job_id");
    char *path = strcmp(op, "claimJobs") == 0      ? path_of("/jobs/claim", NULL)
                 : strcmp(op, "completeJobs") == 0 ? path_of("/jobs:complete", NULL)
                 : strcmp(op, "heartbeatJob") == 0 ? path_of("/jobs/", job_id, "/heartbeat", NULL)
                                                   : path_of("/jobs/", job_id, "/release", NULL);
    bool wanted = strcmp(path, member_text(sent, "path")) == 0 &&
                  json_equal(json_object_get(out, "body"), json_object_get(sent, "body"));
    free(path);
    return wanted;
}

/* Finds the script's entry for what a lane sends now. */
static void send_it(struct machine *machine, struct machine_lane *lane)
{
    json_t *sent = request_json(&lane->wish.request), *entry;
    size_t i;
    lane->claims = strcmp(lane->wish.request.path, "/api/v1/jobs/claim") == 0;
    request_free(&lane->wish.request);
    json_array_foreach (machine->answers, i, entry) {
        if (fabs(number(entry, "at_ms") - machine->clock.now_ms) > 1e-6 ||
            !is_wanted(json_object_get(entry, "out"), sent))
            continue;
        lane->reply = json_object_get(entry, "answer");
        lane->reply_ms = machine->clock.now_ms + number(lane->reply, "took_ms");
        json_array_remove(machine->answers, i);
        json_decref(sent);
        return;
    }
    json_t *now = json_real(machine->clock.now_ms);
    expect(false, "the worker sends this, at", sent, now);
    json_decref(now);
    json_decref(sent);
    lane->ended = true;
}

static void go_on(struct machine *machine, struct machine_lane *lane)
{
    lane->wish = lane_next(lane->lane);
    lane->ended = lane->wish.kind == LANE_END;
    if (lane->wish.kind == LANE_SEND)
        send_it(machine, lane);
}

static bool advance(struct machine *machine, struct machine_lane *lane)
{
    if (lane->ended)
        return false;
    if (lane->reply) {
        if (lane->reply_ms > machine->clock.now_ms)
            return false;
        struct pawl_error error = {0};
        bool lost = json_object_get(lane->reply, "lost") != NULL;
        struct response response = response_of(lane->reply);
        error_set(&error, PAWL_ERR_NO_ANSWER, "lost");
        lane->reply = NULL;
        lane_answer(lane->lane, lost ? NULL : &response, &error);
        response_free(&response);
        pawl_error_clear(&error);
    } else if (lane->wish.version == machine->worker->state.version &&
               !(lane->wish.until_ms > 0 && lane->wish.until_ms <= machine->clock.now_ms)) {
        return false;
    }
    go_on(machine, lane);
    return true;
}

/* Lets everything happen that can happen now. */
static void settle(struct machine *machine)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < LANES; i++)
            moved |= advance(machine, &machine->lanes[i]);
    }
    bool ended = machine->lanes[0].ended && machine->lanes[1].ended && machine->lanes[2].ended;
    if (ended && !machine->stopped) {
        machine->stopped = true;
        see(machine, "stopped", json_true());
    }
}

static struct held *job_of(const struct machine *machine, const char *job_id)
{
    for (size_t i = machine->job_count; i-- > 0;)
        if (strcmp(machine->jobs[i]->job_id, job_id) == 0)
            return machine->jobs[i];
    abort();
}

static void stop(struct machine *machine)
{
    static json_t *lost;
    lost = lost ? lost : json_pack("{s:b}", "lost", 1);
    pawl_worker_stop(machine->worker);
    for (int i = 0; i < LANES; i++)
        if (machine->lanes[i].reply && machine->lanes[i].claims) {
            machine->lanes[i].reply = lost;
            machine->lanes[i].reply_ms = machine->clock.now_ms;
        }
}

static void input(struct machine *machine, const json_t *entry)
{
    const json_t *progress = json_object_get(entry, "progress"),
                 *ends = json_object_get(entry, "ends");
    if (json_object_get(entry, "stop"))
        stop(machine);
    if (progress)
        job_of(machine, member_text(progress, "job_id"))->progress =
            json_incref(json_object_get(progress, "value"));
    if (ends) {
        json_t *result = json_deep_copy(ends);
        struct held *held = job_of(machine, member_text(ends, "job_id"));
        json_object_del(result, "job_id");
        state_finish(&machine->worker->state, held, result);
    }
}

/* The next time at which something happens, or INFINITY. */
static double next_time(const struct machine *machine)
{
    double next = json_array_size(machine->inputs)
                      ? number(json_array_get(machine->inputs, 0), "at_ms")
                      : INFINITY;
    for (int i = 0; i < LANES; i++) {
        const struct machine_lane *lane = &machine->lanes[i];
        if (!lane->ended && lane->reply)
            next = fmin(next, lane->reply_ms);
        else if (!lane->ended && lane->wish.until_ms > 0)
            next = fmin(next, lane->wish.until_ms);
    }
    return next;
}

static void run_machine(struct machine *machine)
{
    for (int i = 0; i < LANES; i++)
        go_on(machine, &machine->lanes[i]);
    for (;;) {
        settle(machine);
        double next = next_time(machine);
        if (machine->stopped || isinf(next))
            return;
        machine->clock.now_ms = fmax(machine->clock.now_ms, next);
        settle(machine);
        while (json_array_size(machine->inputs) &&
               number(json_array_get(machine->inputs, 0), "at_ms") <= machine->clock.now_ms) {
            input(machine, json_array_get(machine->inputs, 0));
            json_array_remove(machine->inputs, 0);
        }
    }
}

/* Whether each entry of one list is in the other. */
static bool all_in(const json_t *some, const json_t *others)
{
    for (size_t i = 0; i < json_array_size(some); i++) {
        bool found = false;
        for (size_t j = 0; j < json_array_size(others); j++)
            found |= contains(json_array_get(others, j), json_array_get(some, i));
        if (!found)
            return false;
    }
    return true;
}

/* Sorts the script into what the worker sends, what happens to it and what it does. */
static json_t *sort_script(struct machine *machine, const json_t *script)
{
    json_t *wanted = json_array();
    for (size_t i = 0; i < json_array_size(script); i++) {
        json_t *entry = json_array_get(script, i);
        bool does = json_object_get(entry, "begins") || json_object_get(entry, "cancelled") ||
                    json_object_get(entry, "stopped");
        json_array_append(json_object_get(entry, "out") ? machine->answers
                          : does                        ? wanted
                                                        : machine->inputs,
                          entry);
    }
    return wanted;
}

static struct pawl_worker *machine_worker(struct pawl_client *client, const json_t *options)
{
    const char *queues[8] = {NULL};
    const json_t *list = json_object_get(options, "queues");
    for (size_t i = 0; i < json_array_size(list); i++)
        queues[i] = json_string_value(json_array_get(list, i));
    struct pawl_worker_options made = {.queues = queues,
                                       .concurrency = (int)number(options, "concurrency"),
                                       .lease_ms = (int64_t)number(options, "lease_ms"),
                                       .worker_id = member_text(options, "worker_id")};
    struct pawl_worker *worker = NULL;
    if (pawl_worker_new(client, &made, &worker, NULL) != PAWL_OK)
        abort();
    return worker;
}

static void test_worker(const json_t *test)
{
    struct machine machine = {
        .answers = json_array(), .inputs = json_array(), .seen = json_array()};
    script_begin(&machine.clock, NULL);
    struct pawl_client *client = script_client(&machine.clock, NULL);
    machine.worker = machine_worker(client, json_object_get(test, "worker"));
    machine.worker->state.wait_ms = (int64_t)number(json_object_get(test, "worker"), "wait_ms");
    machine.worker->ports = (struct worker_ports){
        .at = &machine, .spawn = on_spawn, .cancelled = on_cancelled, .rest = no_rest};
    for (int i = 0; i < LANES; i++)
        machine.lanes[i].lane = &machine.worker->lanes[i];
    json_t *wanted = sort_script(&machine, json_object_get(test, "script"));
    run_machine(&machine);
    expect(json_array_size(wanted) == json_array_size(machine.seen) &&
               all_in(wanted, machine.seen) && all_in(machine.seen, wanted),
           "seen", machine.seen, wanted);
    expect(json_array_size(machine.answers) == 0, "not sent", NULL, machine.answers);
    for (size_t i = 0; i < machine.job_count; i++)
        held_drop(machine.jobs[i]);
    pawl_worker_free(machine.worker);
    pawl_client_free(client);
    script_end(&machine.clock);
    json_decref(machine.answers);
    json_decref(machine.inputs);
    json_decref(machine.seen);
    json_decref(wanted);
}

/* --- durable.json --- */

struct program {
    const json_t *ops;
    json_t *ran;
};

struct step_data {
    struct program *program;
    const json_t *op;
};

static enum pawl_err run_step(struct pawl_ctx *ctx, void *data, json_t **ret_output)
{
    const struct step_data *step = data;
    json_t *raises = json_object_get(step->op, "raises");
    json_array_append(step->program->ran, json_object_get(step->op, "step"));
    char *key = format("j:%s", member_text(step->op, "step"));
    expect(strncmp(pawl_ctx_key(ctx), key, strlen(key)) == 0, pawl_ctx_key(ctx), NULL, step->op);
    free(key);
    if (raises)
        return pawl_ctx_fail(ctx, member_text(raises, "code"), member_text(raises, "message"),
                             json_is_true(json_object_get(raises, "retryable")));
    *ret_output = json_incref(json_object_get(step->op, "returns"));
    return PAWL_OK;
}

/* The name under which an operation is stored; the caller frees it. */
static char *name_of(const json_t *op)
{
    if (json_object_get(op, "wait_signal"))
        return format("signal:%s", member_text(op, "wait_signal"));
    const char *const kinds[] = {"step", "sleep", "approval", "run_workflow"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(op, kinds[i]))
            return format("%s", member_text(op, kinds[i]));
    return NULL;
}

static enum pawl_err run_sleep(struct pawl_ctx *ctx, const json_t *op)
{
    int64_t until_ms = 0;
    if (!json_object_get(op, "until"))
        return pawl_ctx_sleep(ctx, member_text(op, "sleep"), (int64_t)number(op, "ms"));
    time_parse(member_text(op, "until"), &until_ms);
    return pawl_ctx_sleep_until(ctx, member_text(op, "sleep"), until_ms);
}

static enum pawl_err run_op(struct pawl_ctx *ctx, struct program *program, const json_t *op,
                            json_t **ret_output)
{
    if (json_object_get(op, "step")) {
        struct step_data step = {.program = program, .op = op};
        struct pawl_step_retry retry = {.max_attempts = (int)number(op, "max_attempts")};
        return pawl_ctx_step(ctx, member_text(op, "step"), run_step, &step,
                             retry.max_attempts ? &retry : NULL, ret_output);
    }
    if (json_object_get(op, "sleep"))
        return run_sleep(ctx, op);
    if (json_object_get(op, "wait_signal"))
        return pawl_ctx_wait_signal(ctx, member_text(op, "wait_signal"),
                                    (int64_t)number(op, "timeout_ms"), ret_output);
    if (json_object_get(op, "approval")) {
        json_t *options = json_deep_copy(op);
        json_object_del(options, "approval");
        enum pawl_err result = pawl_ctx_approval(
            ctx, member_text(op, "approval"), member_text(op, "prompt"), ret_output, "O", options);
        json_decref(options);
        return result;
    }
    json_t *given = json_object_get(op, "input");
    return pawl_ctx_run_workflow(ctx, member_text(op, "workflow_id"),
                                 given ? json_incref(given) : json_null(), ret_output);
}

static enum pawl_err run_program(struct pawl_ctx *ctx, json_t *given, void *user,
                                 json_t **ret_output)
{
    struct program *program = user;
    json_t *outputs = json_object();
    enum pawl_err result = PAWL_OK;
    (void)given;
    for (size_t i = 0; result == PAWL_OK && i < json_array_size(program->ops); i++) {
        const json_t *op = json_array_get(program->ops, i);
        char *name = name_of(op);
        json_t *output = NULL;
        if (name)
            result = run_op(ctx, program, op, &output);
        else if (json_object_get(op, "return"))
            *ret_output = json_incref(json_object_get(op, "return"));
        else
            *ret_output = json_incref(json_object_get(outputs, member_text(op, "return_step")));
        if (name && result == PAWL_OK)
            json_object_set_new(outputs, name, output ? json_incref(output) : json_null());
        json_decref(output);
        free(name);
    }
    json_decref(outputs);
    return result;
}

static void expect_outcome(const struct worker_state *state, const json_t *wanted)
{
    const json_t *result = json_array_get(state->results, 0);
    if (json_object_get(wanted, "suspended") || json_object_get(wanted, "lost"))
        expect(!result && !state->held, "something is reported", result, wanted);
    else if (json_object_get(wanted, "output"))
        expect(same(json_object_get(result, "output"), json_object_get(wanted, "output")),
               "outcome", result, wanted);
    else
        expect(contains(json_object_get(result, "error"), json_object_get(wanted, "error")),
               "outcome", result, wanted);
}

static void test_durable(const json_t *test)
{
    struct script script;
    script_begin(&script, json_object_get(test, "exchanges"));
    struct pawl_client *client = script_client(&script, NULL);
    struct pawl_worker *worker = NULL;
    if (pawl_worker_new(client, &(struct pawl_worker_options){.lease_ms = 30000}, &worker, NULL) !=
        PAWL_OK)
        abort();
    worker->ports.rest = no_rest;
    struct program program = {.ops = json_object_get(test, "program"), .ran = json_array()};
    pawl_worker_task(worker, "h", run_program, &program);
    struct held *held = state_take(&worker->state, json_object_get(test, "job"), 0);
    worker_run_job(worker, held);
    held_drop(held);
    expect(json_equal(program.ran, json_object_get(test, "ran")), "ran", program.ran,
           json_object_get(test, "ran"));
    expect(script.answered == json_array_size(script.answers), "not all exchanges were made",
           script.sent, script.answers);
    expect_outcome(&worker->state, json_object_get(test, "outcome"));
    json_decref(program.ran);
    pawl_worker_free(worker);
    pawl_client_free(client);
    script_end(&script);
}

/* --- entities.json --- */

static void add_members(json_t *state, const json_t *numbers)
{
    json_t *copy = json_deep_copy(numbers), *value;
    const char *name;
    json_object_foreach (copy, name, value)
        json_object_set_new(state, name,
                            json_integer(json_integer_value(json_object_get(state, name)) +
                                         json_integer_value(value)));
    json_decref(copy);
}

static void set_timer(struct pawl_entity *entity, const json_t *timer)
{
    json_t *payload = json_incref(json_object_get(timer, "payload"));
    int64_t at_ms = 0;
    if (time_parse(member_text(timer, "at"), &at_ms))
        pawl_entity_set_timer_at(entity, member_text(timer, "name"), at_ms, payload);
    else
        pawl_entity_set_timer(entity, member_text(timer, "name"), (int64_t)number(timer, "in_ms"),
                              payload);
}

static void start_run(struct pawl_entity *entity, const json_t *run)
{
    struct pawl_start_options options = {
        .key = json_string_value(json_object_get(run, "idempotency_key")),
        .labels = json_incref(json_object_get(run, "labels"))};
    pawl_entity_start(entity, member_text(run, "workflow_id"),
                      json_incref(json_object_get(run, "input")), &options);
}

static enum pawl_err act(struct pawl_entity *entity, const char *verb, json_t *value,
                         json_t **ret_result)
{
    if (strcmp(verb, "set") == 0)
        json_object_update(pawl_entity_state(entity), value);
    else if (strcmp(verb, "add") == 0)
        add_members(pawl_entity_state(entity), value);
    else if (strcmp(verb, "set_timer") == 0)
        set_timer(entity, value);
    else if (strcmp(verb, "cancel_timer") == 0)
        pawl_entity_cancel_timer(entity, json_string_value(value));
    else if (strcmp(verb, "emit") == 0)
        pawl_entity_emit(entity, member_text(value, "event"),
                         json_incref(json_object_get(value, "payload")));
    else if (strcmp(verb, "start") == 0)
        start_run(entity, value);
    else if (strcmp(verb, "finish") == 0)
        pawl_entity_finish(entity);
    else if (strcmp(verb, "reject") == 0)
        return pawl_entity_reject(entity, member_text(value, "code"),
                                  member_text(value, "message"));
    else
        *ret_result = json_incref(value);
    return PAWL_OK;
}

static enum pawl_err run_actions(struct pawl_entity *entity, json_t *payload, void *actions,
                                 json_t **ret_result)
{
    enum pawl_err result = PAWL_OK;
    size_t i;
    json_t *action, *value;
    const char *verb;
    (void)payload;
    json_array_foreach ((json_t *)actions, i, action)
        json_object_foreach (action, verb, value)
            if (result == PAWL_OK)
                result = act(entity, verb, value, ret_result);
    return result;
}

static void test_entity(const json_t *test)
{
    struct pawl_entity_type *type =
        entity_type_new("rewards", json_deep_copy(json_object_get(test, "initial")), json_object());
    const char *name;
    json_t *actions, *answer = NULL;
    json_object_foreach (json_object_get(test, "handlers"), name, actions)
        pawl_entity_on(type, name, run_actions, actions);
    json_object_foreach (json_object_get(test, "timers"), name, actions)
        pawl_entity_on_timer(type, name, run_actions, actions);
    struct pawl_error error = {0};
    enum pawl_err result =
        entity_handle(type, json_object_get(test, "call"), "job-1", &answer, &error);
    const json_t *fails = json_object_get(test, "fails");
    if (fails)
        expect(result != PAWL_OK && strcmp(error.code, member_text(fails, "code")) == 0 &&
                   !error.retryable,
               error.code, NULL, fails);
    else
        expect(result == PAWL_OK && json_equal(answer, json_object_get(test, "output")), "output",
               answer, json_object_get(test, "output"));
    json_decref(answer);
    pawl_error_clear(&error);
    entity_type_free(type);
}

void worker_fixtures(const char *folder)
{
    each_case(folder, "worker.json", test_worker);
    each_case(folder, "durable.json", test_durable);
    each_case(folder, "entities.json", test_entity);
}
