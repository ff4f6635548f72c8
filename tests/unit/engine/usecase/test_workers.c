/* Handing out jobs, taking results one by one and in batches, leases that are lost, and what is
 * shown of queues and workers. */
#include "engine/usecase/asking.h"

#define RETRIED                                                                               \
    "{'steps':[{'name':'a','type':'task','handler':'h','timeout_ms':3600000,'input':{'n':1}," \
    "'retry':{'max_attempts':2,'backoff_ms':1000}}]}"

static struct claim_input claim_of(const char *worker, const struct str *queue, int64_t max)
{
    return (struct claim_input){.worker_id = str_of(worker),
                                .queues = queue,
                                .queue_count = 1,
                                .max = max,
                                .lease_ms = 30000};
}

static const struct str DEFAULT = {"default", 7};

/* Claims as a worker for all tenants; how many jobs it was given. */
static size_t claim_for_all(struct fixture *fixture, int64_t max, char tenants[static 32])
{
    struct claim_input in = claim_of("everywhere", &DEFAULT, max);
    struct asked a = ask_as(fixture, "*", true, &UC_CLAIM_JOBS, &in);
    assert_int_equal(a.err, ERR_OK);
    const json_t *jobs = json_object_get(a.body, "jobs");
    size_t count = json_array_size(jobs);
    for (size_t i = 0; i < count; i++)
        tenants[i] = json_string_value(json_object_get(json_array_get(jobs, i), "tenant"))[0];
    tenants[count] = '\0';
    asked_release(&a);
    return count;
}

static void put_workflow_of(struct fixture *fixture, const char *tenant, int runs)
{
    struct problem p;
    struct definition *def = NULL;
    struct buf text;
    problem_init(&p);
    buf_init(&text, KIB);
    json_t *json = json_of(ONE_TASK);
    assert_int_equal(parse_tree(json, STR("w"), &p, &def), ERR_OK);
    json_put_plain(&text, json);
    struct put_workflow_input in = {STR("w"), def, buf_str(&text), sha256_of(buf_str(&text))};
    struct asked a = ask_as(fixture, tenant, true, &UC_PUT_WORKFLOW, &in);
    assert_int_equal(a.err, ERR_OK);
    asked_release(&a);
    struct start_run_input start_in = {.workflow_id = STR("w"),
                                       .input_text = STR("null"),
                                       .labels = STR("{}"),
                                       .at_limit = AT_LIMIT_COUNT,
                                       .start_at = -1};
    for (int i = 0; i < runs; i++) {
        a = ask_as(fixture, tenant, true, &UC_START_RUN, &start_in);
        assert_int_equal(a.err, ERR_OK);
        asked_release(&a);
    }
    buf_release(&text);
    definition_free(def);
    json_decref(json);
    problem_release(&p);
}

static void tenants_take_turns_at_a_worker_for_all(void **state)
{
    struct fixture *fixture = *state;
    put_workflow_of(fixture, "a", 3);
    put_workflow_of(fixture, "b", 2);
    char order[32];
    assert_int_equal(claim_for_all(fixture, 4, order), 4);
    assert_string_equal(order, "abab");
    assert_int_equal(claim_for_all(fixture, 4, order), 1);
    assert_string_equal(order, "a");
    assert_int_equal(claim_for_all(fixture, 4, order), 0);
}

/* More queues than turns are remembered for: none is lost by that. */
static void many_queues_have_their_turns(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < 3000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "q%d", i);
        struct str queue = str_of(name);
        struct claim_input in = claim_of("w", &queue, 1);
        struct asked a = ask_as(fixture, "*", true, &UC_CLAIM_JOBS, &in);
        assert_int_equal(a.err, ERR_OK);
        asked_release(&a);
    }
    put_workflow_of(fixture, "a", 1);
    char order[32];
    assert_int_equal(claim_for_all(fixture, 4, order), 1);
}

/* --- one job by its id --- */

static void a_job_is_claimed_by_its_id_once(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct uuid run = start(fixture, "w");
    json_t *shown = show_run(fixture, run);
    struct uuid job;
    assert_true(uuid_parse(json_str(of_step(shown, "a", "job_id")), &job));
    json_decref(shown);
    struct claim_job_input in = {job, claim_of("w", &DEFAULT, 1)};
    must_do(fixture, &UC_CLAIM_JOB, &in);
    assert_refuses(fixture, &UC_CLAIM_JOB, &in, ERR_JOB_NOT_CLAIMABLE);
    struct get_job_input get = {job};
    assert_text_in(answer_of(fixture, &UC_GET_JOB, &get), "state", "running");
    struct asked all = ask_as(fixture, "*", true, &UC_GET_JOB, &get);
    assert_int_equal(all.err, ERR_OK);
    asked_release(&all);
    all = ask_as(fixture, "other", true, &UC_GET_JOB, &get);
    assert_int_equal(all.err, ERR_JOB_NOT_FOUND);
}

/* --- results --- */

static enum err finish_as(struct fixture *fixture, const struct held *h, bool failed,
                          const char *text)
{
    return give(fixture, h,
                (struct finish_job_input){.failed = failed,
                                          .output = failed ? STR_NONE : str_of(text),
                                          .error = failed ? str_of(text) : STR_NONE,
                                          .code = STR("NO"),
                                          .retryable = true});
}

static void the_same_result_again_is_answered_and_another_is_not(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", RETRIED);
    (void)start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(finish_as(fixture, &h, true, "{\"code\":\"NO\"}"), ERR_OK);
    assert_int_equal(finish_as(fixture, &h, true, "{ \"code\":\"NO\"}"), ERR_OK); /* again */
    assert_int_equal(finish_as(fixture, &h, true, "{\"code\":\"YES\"}"), ERR_LEASE_LOST);
    assert_int_equal(finish_as(fixture, &h, false, "1"), ERR_LEASE_LOST);
    fixture_pass_ms(fixture, 5000);
    settle(fixture);
    assert_int_equal(finish_as(fixture, &h, true, "{\"code\":\"NO\"}"), ERR_OK); /* pending now */
    struct held second;
    must_claim(fixture, "a", &second);
    assert_int_equal(finish_as(fixture, &h, true, "{\"code\":\"NO\"}"), ERR_LEASE_LOST);
    assert_int_equal(finish_as(fixture, &second, true, "{\"code\":\"LAST\"}"), ERR_OK);
    assert_int_equal(finish_as(fixture, &second, true, "{\"code\":\"LAST\"}"), ERR_OK);
    assert_int_equal(finish_as(fixture, &second, true, "{\"code\":\"NO\"}"), ERR_LEASE_LOST);
    assert_int_equal(finish_as(fixture, &second, false, "1"), ERR_LEASE_LOST);
    (void)start(fixture, "w");
    must_claim(fixture, "a", &h);
    assert_int_equal(finish_as(fixture, &h, false, "{\"x\":1}"), ERR_OK);
    assert_int_equal(finish_as(fixture, &h, false, "{\"x\": 1}"), ERR_OK);
    assert_int_equal(finish_as(fixture, &h, false, "{\"x\":2}"), ERR_LEASE_LOST);
    assert_sound(fixture);
}

static void a_result_may_leave_a_state_for_the_run(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", RETRIED);
    struct uuid run = start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(give(fixture, &h,
                          (struct finish_job_input){.failed = true,
                                                    .error = STR("{\"code\":\"NO\"}"),
                                                    .code = STR("NO"),
                                                    .retryable = true,
                                                    .state = STR("{\"seen\":1}")}),
                     ERR_OK);
    json_t *shown = show_run(fixture, run);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(shown, "state"), "seen")),
                     1);
    json_decref(shown);
}

/* --- many results --- */

static json_t *finish_many(struct fixture *fixture, const struct finish_job_input *items,
                           size_t count, const struct claim_input *claim)
{
    struct finish_jobs_input in = {items, count, claim};
    return answer_of(fixture, &UC_FINISH_JOBS, &in);
}

static const char *status_at(const json_t *answer, size_t i)
{
    const json_t *item = json_array_get(json_object_get(answer, "results"), i);
    return json_string_value(json_object_get(item, "status"));
}

static struct finish_job_input item_of(const struct held *h)
{
    return (struct finish_job_input){
        .job_id = h->job, .lease_token = str_of(h->token), .output = STR("1")};
}

static void each_result_of_a_batch_counts_by_itself(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 4; i++)
        (void)start(fixture, "w");
    struct held h[3];
    assert_int_equal(claim_many(fixture, 60000, 3, h), 3);
    struct finish_job_input items[4] = {item_of(&h[0]), item_of(&h[1]), item_of(&h[2]),
                                        item_of(&h[0])};
    items[1].lease_token = STR("not mine");
    items[2].job_id = (struct uuid){{1, 2, 3}};
    struct claim_input next = claim_of("w", &DEFAULT, 5);
    json_t *answer = finish_many(fixture, items, ARRAY_LEN(items), &next);
    assert_string_equal(status_at(answer, 0), "completed");
    assert_string_equal(status_at(answer, 1), "refused");
    assert_string_equal(status_at(answer, 2), "refused");
    assert_string_equal(status_at(answer, 3), "already_completed");
    assert_int_equal(json_array_size(json_object_get(answer, "jobs")), 1);
    json_decref(answer);
    answer = finish_many(fixture, items, 1, NULL); /* nothing new */
    assert_string_equal(status_at(answer, 0), "already_completed");
    json_decref(answer);
    assert_sound(fixture);
}

static void a_result_whose_run_is_damaged_is_refused_alone(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    for (int i = 0; i < 2; i++)
        (void)start(fixture, "w");
    struct held h[2];
    assert_int_equal(claim_many(fixture, 60000, 2, h), 2);
    tamper(fixture, "UPDATE runs SET progress = 'odd' WHERE num = (SELECT min(num) FROM runs)");
    struct finish_job_input items[2] = {item_of(&h[0]), item_of(&h[1])};
    json_t *answer = finish_many(fixture, items, 2, NULL);
    assert_string_equal(status_at(answer, 0), "refused");
    assert_string_equal(status_at(answer, 1), "completed");
    json_decref(answer);
}

/* --- leases --- */

static enum err beat(struct fixture *fixture, const struct use_case *use_case, const struct held *h)
{
    struct heartbeat_input in = {
        .job_id = h->job, .lease_token = str_of(h->token), .note = STR("{\"done\":1}")};
    return error_of(fixture, use_case, &in);
}

static void a_lease_is_renewed_released_and_lost(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", RETRIED);
    struct uuid run = start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(beat(fixture, &UC_HEARTBEAT, &h), ERR_OK);
    struct held stranger = h;
    (void)snprintf(stranger.token, sizeof(stranger.token), "x%.100s", h.token + 1);
    assert_int_equal(beat(fixture, &UC_HEARTBEAT, &stranger), ERR_LEASE_LOST);
    assert_int_equal(beat(fixture, &UC_RELEASE_JOB, &stranger), ERR_LEASE_LOST);
    assert_int_equal(beat(fixture, &UC_RELEASE_JOB, &h), ERR_OK);
    assert_int_equal(beat(fixture, &UC_RELEASE_JOB, &h), ERR_OK); /* again */
    assert_int_equal(beat(fixture, &UC_HEARTBEAT, &h), ERR_LEASE_LOST);
    must_claim(fixture, "a", &h);
    assert_int_equal(control(fixture, run, CONTROL_PAUSE), ERR_OK);
    assert_int_equal(beat(fixture, &UC_RELEASE_JOB, &h), ERR_OK); /* it is held back */
    assert_nothing_to_claim(fixture);
    assert_int_equal(control(fixture, run, CONTROL_RESUME), ERR_OK);
    must_claim(fixture, "a", &h);
    assert_int_equal(control(fixture, run, CONTROL_CANCEL), ERR_OK);
    assert_int_equal(beat(fixture, &UC_HEARTBEAT, &h), ERR_OK); /* it is told to stop */
    assert_int_equal(beat(fixture, &UC_RELEASE_JOB, &h), ERR_LEASE_LOST);
    assert_sound(fixture);
}

/* --- dead letters --- */

static void a_dead_letter_is_dropped_or_retried_and_nothing_else_is(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", ONE_TASK);
    struct held h;
    (void)start(fixture, "w");
    must_claim(fixture, "a", &h);
    struct get_job_input in = {h.job};
    must_do(fixture, &UC_RETRY_DEAD, &in); /* it is under way */
    assert_int_equal(fail_job(fixture, &h, false), ERR_OK);
    must_do(fixture, &UC_RETRY_DEAD, &in);
    must_claim(fixture, "a", &h);
    assert_int_equal(fail_job(fixture, &h, false), ERR_OK);
    must_do(fixture, &UC_DROP_DEAD, &in);
    must_do(fixture, &UC_DROP_DEAD, &in); /* again */
    assert_refuses(fixture, &UC_RETRY_DEAD, &in, ERR_NOT_A_DEAD_LETTER);
    assert_sound(fixture);
}

/* --- queues and workers --- */

static json_t *shown_queue(struct fixture *fixture, const char *tenant, const char *name,
                           struct asked *page)
{
    struct list_queues_input in = {.limit = 100};
    *page = ask_as(fixture, tenant, true, &UC_LIST_QUEUES, &in);
    assert_int_equal(page->err, ERR_OK);
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(page->body, "items"), i, item) {
        if (strcmp(json_string_value(json_object_get(item, "queue")), name) == 0)
            return item;
    }
    return NULL;
}

static void a_queue_shows_its_jobs_and_those_who_poll_it(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", RETRIED);
    for (int i = 0; i < 4; i++)
        (void)start(fixture, "w");
    struct held h[2];
    assert_int_equal(claim_many(fixture, 60000, 2, h), 2);
    assert_int_equal(fail_job(fixture, &h[0], true), ERR_OK);
    char order[32];
    (void)claim_for_all(fixture, 1, order); /* a worker for all tenants */
    struct asked page;
    const json_t *queue = shown_queue(fixture, "acme", "default", &page);
    assert_non_null(queue);
    assert_int_equal(json_integer_value(json_object_get(queue, "ready")), 1);
    assert_int_equal(json_integer_value(json_object_get(queue, "running")), 2);
    assert_int_equal(json_integer_value(json_object_get(queue, "delayed")), 1);
    assert_int_equal(json_integer_value(json_object_get(queue, "workers")), 2);
    asked_release(&page);
    fixture_pass_ms(fixture, POLLED_LATELY_MS + 1000);
    queue = shown_queue(fixture, "acme", "default", &page);
    assert_int_equal(json_integer_value(json_object_get(queue, "workers")), 0);
    asked_release(&page);
}

/* What a worker for all tenants polls is shown to those who have jobs there, and to no others. */
static void a_shared_worker_is_shown_where_it_has_work(void **state)
{
    struct fixture *fixture = *state;
    put_workflow_of(fixture, "acme", 1);
    put_workflow_of(fixture, "idle", 0);
    put_workflow_of(fixture, "zeta", 2);
    char order[32];
    assert_int_equal(claim_for_all(fixture, 2, order), 2);
    struct str other = STR("elsewhere");
    struct claim_input in = claim_of("everywhere", &other, 1);
    struct asked a = ask_as(fixture, "*", true, &UC_CLAIM_JOBS, &in);
    asked_release(&a);
    static const struct {
        const char *tenant;
        size_t workers;
    } SHOWN[] = {{"acme", 1}, {"idle", 0}, {"zeta", 1}};
    for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++) {
        struct list_dead_input list = {.limit = 10};
        a = ask_as(fixture, SHOWN[i].tenant, true, &UC_LIST_WORKERS, &list);
        assert_int_equal(a.err, ERR_OK);
        assert_int_equal(items_in(a.body), SHOWN[i].workers);
        asked_release(&a);
        struct asked page;
        assert_null(shown_queue(fixture, SHOWN[i].tenant, "elsewhere", &page));
        asked_release(&page);
    }
}

static void many_workers_on_many_queues_are_all_shown(void **state)
{
    struct fixture *fixture = *state;
    enum { QUEUES = 40 };
    for (int i = 0; i < 2 * QUEUES; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "q%02d", i / 2);
        struct str queue = str_of(name);
        struct claim_input in = claim_of(i % 2 == 0 ? "one" : "two", &queue, 1);
        must_do(fixture, &UC_CLAIM_JOBS, &in);
    }
    struct str shared = STR("q07"); /* the same worker for all tenants too: it counts once */
    struct claim_input in = claim_of("one", &shared, 1);
    struct asked a = ask_as(fixture, "*", true, &UC_CLAIM_JOBS, &in);
    assert_int_equal(a.err, ERR_OK);
    asked_release(&a);
    struct asked page;
    const json_t *queue = shown_queue(fixture, "acme", "q07", &page);
    assert_int_equal(json_integer_value(json_object_get(queue, "workers")), 2);
    assert_int_equal(items_in(page.body), QUEUES);
    asked_release(&page);
    struct list_dead_input list = {.limit = 1};
    a = ask_as(fixture, "acme", true, &UC_LIST_WORKERS, &list);
    assert_int_equal(items_in(a.body), 1);
    list.cursor = str_of(a.next_cursor);
    page = ask_as(fixture, "acme", true, &UC_LIST_WORKERS, &list);
    assert_int_equal(items_in(page.body), 1);
    assert_string_equal(page.next_cursor, "");
    asked_release(&page);
    asked_release(&a);
}

static void a_cursor_of_workers_is_hexadecimal(void **state)
{
    struct fixture *fixture = *state;
    char long_one[2 * NAME_MAX_LEN + 3];
    memset(long_one, 'a', sizeof(long_one) - 1);
    long_one[sizeof(long_one) - 1] = '\0';
    const char *const CURSORS[] = {"a", "zz", "a!", "!a", "aG", "G0", long_one};
    for (size_t i = 0; i < ARRAY_LEN(CURSORS); i++) {
        struct list_dead_input in = {10, str_of(CURSORS[i])};
        assert_refuses(fixture, &UC_LIST_WORKERS, &in, ERR_CURSOR_INVALID);
    }
}

/* Jobs between two attempts have no worker, and those of HTTP calls are pawl's own. */
static void jobs_without_a_worker_show_no_worker(void **state)
{
    struct fixture *fixture = *state;
    put_workflow(fixture, "w", RETRIED);
    (void)start(fixture, "w");
    struct held h;
    must_claim(fixture, "a", &h);
    assert_int_equal(fail_job(fixture, &h, true), ERR_OK);
    put_workflow(fixture, "h",
                 "{'steps':[{'name':'c','type':'http','request':{'method':'GET','url':"
                 "'http://127.0.0.1:9/'},'retry':{'max_attempts':2,'backoff_ms':60000}}]}");
    (void)start(fixture, "h");
    fixture_pass_ms(fixture, POLLED_LATELY_MS + 1000);
    struct asked page;
    assert_null(shown_queue(fixture, "acme", "pawl:http", &page));
    assert_int_equal(items_in(page.body), 1);
    asked_release(&page);
    struct list_dead_input list = {.limit = 10};
    struct asked a = ask_as(fixture, "acme", true, &UC_LIST_WORKERS, &list);
    for (size_t i = 0; i < items_in(a.body); i++) {
        const json_t *item = json_array_get(json_object_get(a.body, "items"), i);
        assert_string_equal(json_string_value(json_object_get(item, "worker_id")), "worker");
    }
    asked_release(&a);
}

/* The queues of others are passed over, so many at a time. */
static void queues_of_others_are_passed_over(void **state)
{
    struct fixture *fixture = *state;
    put_workflow_of(fixture, "acme", 1);
    put_workflow_of(fixture, "other", 1);
    static const char SQL[] =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
        " INSERT INTO jobs (run, ordinal, id, tenant, step, state, queue, urgency, attempt,"
        " lease_epoch, created_at)"
        " SELECT j.run, 1000 + i, randomblob(16), j.tenant, 0, 'pending',"
        " 'b' || printf('%05d', i), 0, 0, 0, j.created_at FROM job_rows j, n"
        " WHERE j.tenant = (SELECT num FROM tenants WHERE id = 'other')";
    tamper(fixture, SQL);
    char cursor[CURSOR_MAX] = "";
    bool found = false;
    int pages = 0;
    do {
        struct list_queues_input in = {false, 10, pages == 0 ? STR_NONE : str_of(cursor)};
        struct asked page = ask_as(fixture, "acme", true, &UC_LIST_QUEUES, &in);
        assert_int_equal(page.err, ERR_OK);
        found |= items_in(page.body) > 0;
        memcpy(cursor, page.next_cursor, sizeof(cursor));
        asked_release(&page);
        assert_true(++pages < 50);
    } while (cursor[0] != '\0');
    assert_true(found && pages > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fixture_test(tenants_take_turns_at_a_worker_for_all),
        fixture_test(many_queues_have_their_turns),
        fixture_test(a_job_is_claimed_by_its_id_once),
        fixture_test(the_same_result_again_is_answered_and_another_is_not),
        fixture_test(a_result_may_leave_a_state_for_the_run),
        fixture_test(each_result_of_a_batch_counts_by_itself),
        fixture_test(a_result_whose_run_is_damaged_is_refused_alone),
        fixture_test(a_lease_is_renewed_released_and_lost),
        fixture_test(a_dead_letter_is_dropped_or_retried_and_nothing_else_is),
        fixture_test(a_queue_shows_its_jobs_and_those_who_poll_it),
        fixture_test(a_shared_worker_is_shown_where_it_has_work),
        fixture_test(queues_of_others_are_passed_over),
        fixture_test(many_workers_on_many_queues_are_all_shown),
        fixture_test(a_cursor_of_workers_is_hexadecimal),
        fixture_test(jobs_without_a_worker_show_no_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
