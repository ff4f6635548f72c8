/* Batches of spans: when they are sent, sent again and dropped. The clock and the http_caller are
 * the test's own. */
#include "base/support.h"

#include "base/limits.h"
#include "bus/http_caller.h"
#include "outbound/span_export.h"

/* --- a caller that the test answers for --- */

struct http_caller {
    struct http_call *under_way;
    struct http_call *ended;
    size_t submitted;
    bool refuses;
    bool aborted;
};

static struct http_caller caller;

struct http_caller *http_caller_new(const struct http_caller_config *config)
{
    assert_int_equal(config->reach, REACH_ALL);
    caller = (struct http_caller){0};
    return &caller;
}

void http_caller_free(struct http_caller *c)
{
    http_call_free(c->under_way);
    http_call_free(c->ended);
}

bool http_caller_submit(struct http_caller *c, struct http_call *call)
{
    if (c->refuses)
        return false;
    assert_null(c->under_way);
    c->under_way = call;
    c->submitted++;
    return true;
}

struct http_call *http_caller_collect(struct http_caller *c)
{
    struct http_call *call = c->ended;
    c->ended = NULL;
    return call;
}

void http_caller_abort(struct http_caller *c)
{
    c->aborted = true;
}

/* --- fixture --- */

static int64_t clock_ms;

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return INT64_C(1790000000000000);
}

static int64_t mono_ns(void *ctx)
{
    (void)ctx;
    return clock_ms * 1000000;
}

static const struct env ENV = {now_us, mono_ns, NULL, NULL};

struct fixture {
    struct metrics *registry;
    struct metric *exported, *dropped;
    struct span_export *x;
};

static void fixture_open(struct fixture *f)
{
    static const struct metric_spec EXPORTED = {
        "exported", "E.", METRIC_COUNTER, {NULL, NULL}, NULL};
    static const struct metric_spec DROPPED = {
        "dropped", "D.", METRIC_COUNTER, {"reason", NULL}, NULL};
    clock_ms = 1000000;
    f->registry = metrics_new();
    f->exported = metrics_declare(f->registry, &EXPORTED);
    f->dropped = metrics_declare(f->registry, &DROPPED);
    struct span_export_config config = {.url = STR("http://collector:4318/"),
                                        .env = &ENV,
                                        .event_fd = -1,
                                        .exported = f->exported,
                                        .dropped = f->dropped};
    f->x = span_export_new(&config);
    assert_non_null(f->x);
}

static void fixture_close(struct fixture *f)
{
    span_export_free(f->x);
    metrics_free(f->registry);
}

static void add(struct fixture *f, size_t count)
{
    struct span span = {.place = {.id = 1, .flags = 1}, .kind = SPAN_INTERNAL, .name = STR("s")};
    for (size_t i = 0; i < count; i++)
        span_export_add(f->x, &span);
}

static void pass(struct fixture *f, int64_t ms)
{
    clock_ms += ms;
    span_export_tick(f->x, clock_ms);
}

/* Ends the call that is under way. */
static void end_call(struct fixture *f, enum call_end end, int status, const char *head,
                     const char *body)
{
    struct http_call *call = caller.under_way;
    assert_non_null(call);
    caller.under_way = NULL;
    call->end = end;
    call->status = status;
    buf_put(&call->head, str_of(head));
    buf_put(&call->body, str_of(body));
    caller.ended = call;
    span_export_collect(f->x);
    span_export_tick(f->x, clock_ms);
}

static void answer(struct fixture *f, int status)
{
    end_call(f, CALL_ANSWERED, status, "", "");
}

static void assert_counts(struct fixture *f, double exported, const char *reason, double dropped)
{
    static const char *const REASONS[] = {"queue_full", "rejected", "unreachable", "stopped"};
    assert_true(metric_value(f->exported, STR_NONE, STR_NONE) == exported);
    for (size_t i = 0; i < ARRAY_LEN(REASONS); i++) {
        double expected = reason != NULL && strcmp(REASONS[i], reason) == 0 ? dropped : 0;
        assert_true(metric_value(f->dropped, str_of(REASONS[i]), STR_NONE) == expected);
    }
}

static size_t spans_sent(void)
{
    size_t count = 0;
    const char *at = caller.under_way->request.body.ptr;
    while ((at = strstr(at, "\"traceId\"")) != NULL) {
        at++;
        count++;
    }
    return count;
}

/* --- batches --- */

static void spans_wait_for_others_before_they_are_sent(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, 1);
    pass(&f, SPAN_BATCH_DELAY_MS - 1);
    add(&f, 2);
    assert_int_equal(caller.submitted, 0);
    pass(&f, 1);
    assert_int_equal(caller.submitted, 1);
    assert_str(caller.under_way->request.url, "http://collector:4318/v1/traces");
    assert_str(caller.under_way->request.method, "POST");
    assert_int_equal(spans_sent(), 3);
    assert_false(span_export_idle(f.x));
    answer(&f, 200);
    assert_true(span_export_idle(f.x));
    assert_counts(&f, 3, NULL, 0);
    pass(&f, 10 * SPAN_BATCH_DELAY_MS);
    assert_int_equal(caller.submitted, 1);
    fixture_close(&f);
}

static void a_full_batch_is_sent_at_once(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, SPANS_PER_BATCH_MAX + 1);
    pass(&f, 0);
    assert_int_equal(caller.submitted, 1);
    assert_int_equal(spans_sent(), SPANS_PER_BATCH_MAX);
    add(&f, 1); /* not to the one that is under way */
    answer(&f, 200);
    assert_int_equal(caller.submitted, 1); /* the rest waits for others */
    pass(&f, SPAN_BATCH_DELAY_MS);
    assert_int_equal(spans_sent(), 2);
    answer(&f, 202);
    assert_counts(&f, SPANS_PER_BATCH_MAX + 2, NULL, 0);
    fixture_close(&f);
}

static void what_does_not_fit_is_dropped(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, SPAN_BATCHES_MAX * SPANS_PER_BATCH_MAX);
    assert_counts(&f, 0, NULL, 0);
    add(&f, 3);
    assert_counts(&f, 0, "queue_full", 3);
    pass(&f, 0);
    for (size_t i = 0; i < SPAN_BATCHES_MAX; i++)
        answer(&f, 200);
    assert_true(span_export_idle(f.x));
    assert_counts(&f, SPAN_BATCHES_MAX * SPANS_PER_BATCH_MAX, "queue_full", 3);
    fixture_close(&f);
}

static void a_caller_that_takes_nothing_is_asked_again(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    caller.refuses = true;
    add(&f, 1);
    pass(&f, SPAN_BATCH_DELAY_MS);
    assert_int_equal(caller.submitted, 0);
    caller.refuses = false;
    pass(&f, 0);
    assert_int_equal(caller.submitted, 1);
    answer(&f, 200);
    assert_counts(&f, 1, NULL, 0);
    fixture_close(&f);
}

/* --- a collector that does not take them --- */

static void a_batch_is_sent_again_with_growing_delays(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, 2);
    pass(&f, SPAN_BATCH_DELAY_MS);
    int64_t delay = SPAN_RETRY_MS;
    for (int i = 1; i < SPAN_ATTEMPTS_MAX; i++, delay *= 2) {
        if (i % 2 == 0)
            answer(&f, 503);
        else
            end_call(&f, CALL_CONNECT_FAILED, 0, "", "");
        pass(&f, delay - 1);
        assert_int_equal(caller.submitted, i);
        pass(&f, 1);
        assert_int_equal(caller.submitted, i + 1);
    }
    assert_counts(&f, 0, NULL, 0);
    answer(&f, 503);
    assert_counts(&f, 0, "unreachable", 2);
    assert_true(span_export_idle(f.x));
    add(&f, 1); /* begins again with as many attempts */
    pass(&f, SPAN_BATCH_DELAY_MS);
    answer(&f, 503);
    pass(&f, SPAN_RETRY_MS);
    answer(&f, 200);
    assert_counts(&f, 1, "unreachable", 2);
    fixture_close(&f);
}

static void the_collector_may_ask_for_a_longer_delay_within_a_bound(void **state)
{
    static const struct {
        const char *head;
        int64_t delay_ms;
    } CASES[] = {
        {"retry-after: 7\n", 7000},
        {"retry-after: 86400\n", SPAN_RETRY_MS_MAX},
        {"retry-after: 0\n", SPAN_RETRY_MS},
        {"retry-after: soon\n", SPAN_RETRY_MS},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct fixture f;
        fixture_open(&f);
        add(&f, 1);
        pass(&f, SPAN_BATCH_DELAY_MS);
        end_call(&f, CALL_ANSWERED, 429, CASES[i].head, "");
        pass(&f, CASES[i].delay_ms - 1);
        assert_int_equal(caller.submitted, 1);
        pass(&f, 1);
        assert_int_equal(caller.submitted, 2);
        fixture_close(&f);
    }
}

static void a_refusal_is_final(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, 2);
    pass(&f, SPAN_BATCH_DELAY_MS);
    answer(&f, 500);
    assert_counts(&f, 0, "rejected", 2);
    add(&f, 2);
    pass(&f, SPAN_BATCH_DELAY_MS);
    answer(&f, 302);
    assert_counts(&f, 0, "rejected", 4);
    assert_true(span_export_idle(f.x));
    fixture_close(&f);
}

static void a_part_may_be_refused(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, 3);
    pass(&f, SPAN_BATCH_DELAY_MS);
    end_call(&f, CALL_ANSWERED, 200, "", "{\"partialSuccess\":{\"rejectedSpans\":\"2\"}}");
    assert_counts(&f, 1, "rejected", 2);
    add(&f, 3);
    pass(&f, SPAN_BATCH_DELAY_MS);
    end_call(&f, CALL_ANSWERED, 200, "", "{\"partialSuccess\":{\"rejectedSpans\":\"99\"}}");
    assert_counts(&f, 1, "rejected", 5);
    fixture_close(&f);
}

/* --- the end --- */

static void a_stopping_server_sends_everything_at_once(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, SPANS_PER_BATCH_MAX + 1);
    span_export_drain(f.x, clock_ms);
    pass(&f, 0);
    answer(&f, 200);
    add(&f, 1);
    answer(&f, 200);
    pass(&f, 0);
    answer(&f, 200);
    assert_true(span_export_idle(f.x));
    assert_counts(&f, SPANS_PER_BATCH_MAX + 2, NULL, 0);
    fixture_close(&f);
}

static void a_stopping_server_waits_for_no_second_attempt(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, 2);
    span_export_drain(f.x, clock_ms);
    pass(&f, 0);
    answer(&f, 503);
    assert_true(span_export_idle(f.x));
    assert_counts(&f, 0, "stopped", 2);
    fixture_close(&f);
}

static void a_stopping_server_gives_up_after_a_while(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    add(&f, SPANS_PER_BATCH_MAX + 1);
    span_export_drain(f.x, clock_ms);
    pass(&f, SPAN_DRAIN_MS - 1);
    assert_false(caller.aborted);
    pass(&f, 1);
    assert_true(caller.aborted);
    end_call(&f, CALL_ABORTED, 0, "", "");
    assert_true(span_export_idle(f.x));
    add(&f, 1);
    assert_true(span_export_idle(f.x));
    assert_counts(&f, 0, "stopped", SPANS_PER_BATCH_MAX + 2);
    fixture_close(&f);
}

static void effects_of_other_kinds_are_left_alone(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    struct span span = {.place = {.id = 1}, .kind = SPAN_INTERNAL, .name = STR("s")};
    struct effect last = {.kind = EFFECT_SPAN, .span = &span};
    struct effect first = {.kind = EFFECT_JOB_READY, .next = &last};
    span_export_committed(f.x, &first);
    pass(&f, SPAN_BATCH_DELAY_MS);
    assert_int_equal(spans_sent(), 1);
    span_export_committed(NULL, &first); /* nothing is exported: nothing happens */
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_wait_for_others_before_they_are_sent),
        cmocka_unit_test(a_full_batch_is_sent_at_once),
        cmocka_unit_test(what_does_not_fit_is_dropped),
        cmocka_unit_test(a_caller_that_takes_nothing_is_asked_again),
        cmocka_unit_test(a_batch_is_sent_again_with_growing_delays),
        cmocka_unit_test(the_collector_may_ask_for_a_longer_delay_within_a_bound),
        cmocka_unit_test(a_refusal_is_final),
        cmocka_unit_test(a_part_may_be_refused),
        cmocka_unit_test(a_stopping_server_sends_everything_at_once),
        cmocka_unit_test(a_stopping_server_waits_for_no_second_attempt),
        cmocka_unit_test(a_stopping_server_gives_up_after_a_while),
        cmocka_unit_test(effects_of_other_kinds_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
