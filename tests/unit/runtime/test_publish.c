/* Effects reach their receivers on the writer's thread, or travel to the loop in a parcel. */
#include "base/support.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "base/trace/span.h"
#include "core/txn/tenant_labels.h"
#include "runtime/publish.h"

#include <sys/eventfd.h>
#include <unistd.h>

struct fixture {
    struct effects fx;
    struct metrics *registry;
    atomic_int waiting, subscribers;
    atomic_ullong auth_epoch;
    atomic_bool has_calls, has_deliveries;
    atomic_llong unpublished;
    struct receivers to;
};

static void fixture_open(struct fixture *f)
{
    static const struct metric_spec CALLS = {
        "calls", "Calls.", METRIC_COUNTER, {"outcome", NULL}, NULL};
    static const struct metric_spec ADMISSIONS = {
        "admissions", "Admissions.", METRIC_COUNTER, {"tenant", "outcome"}, NULL};
    const struct metric_spec wait = {
        "wait", "Waits.", METRIC_HISTOGRAM, {"tenant", "endpoint"}, METRIC_SECONDS};
    const struct metric_spec queued = {
        "queued", "Waits.", METRIC_HISTOGRAM, {"tenant", NULL}, METRIC_SECONDS};
    memset(f, 0, sizeof(*f));
    effects_init(&f->fx);
    f->registry = metrics_new();
    f->to = (struct receivers){
        .event_fd = eventfd(0, EFD_NONBLOCK),
        .waiting = &f->waiting,
        .subscribers = &f->subscribers,
        .auth_epoch = &f->auth_epoch,
        .has_calls = &f->has_calls,
        .has_deliveries = &f->has_deliveries,
        .unpublished_events = &f->unpublished,
        .entity_calls = metrics_declare(f->registry, &CALLS),
        .queue_waits = metrics_declare(f->registry, &queued),
        .admissions = metrics_declare(f->registry, &ADMISSIONS),
        .admission_wait = metrics_declare(f->registry, &wait),
        .labels = tenant_labels_new(),
    };
}

static void fixture_close(struct fixture *f)
{
    close(f->to.event_fd);
    tenant_labels_free(f->to.labels);
    metrics_free(f->registry);
    effects_release(&f->fx);
}

static struct effect_parcel *commit_and_publish(struct fixture *f)
{
    effects_commit(&f->fx);
    struct effect_parcel *parcel = publish_committed(&f->to, effects_take(&f->fx));
    assert_true(effects_are_empty(&f->fx));
    return parcel;
}

static void add_admission(struct fixture *f, struct str outcome, int64_t wait_ms)
{
    struct effect *x = effects_add(&f->fx, EFFECT_ADMISSION);
    x->admission.tenant = STR("acme");
    x->admission.endpoint = "schedule";
    x->admission.outcome = outcome;
    x->admission.wait_ms = wait_ms;
}

static bool loop_was_woken(struct fixture *f)
{
    uint64_t count;
    return read(f->to.event_fd, &count, sizeof(count)) > 0;
}

static void receivers_on_the_writers_thread_get_their_effects_at_once(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    effects_begin(&f.fx);
    effects_once(&f.fx, EFFECT_CALLS_READY);
    effects_once(&f.fx, EFFECT_DELIVERIES_READY);
    effects_once(&f.fx, EFFECT_KEYS_CHANGED);
    effects_timer(&f.fx, 1234); /* of the core itself */
    effects_add(&f.fx, EFFECT_ENTITY_CALL_ENDED)->call_end = ENTITY_CALL_APPLIED;
    add_admission(&f, STR("admitted"), 1500);
    add_admission(&f, STR("limited"), -1);
    assert_null(commit_and_publish(&f));
    assert_true(f.has_calls && f.has_deliveries);
    assert_int_equal(f.auth_epoch, 1);
    assert_true(loop_was_woken(&f));
    assert_true(metric_value(f.to.entity_calls, STR("applied"), STR_NONE) == 1);
    assert_true(metric_value(f.to.admissions, STR("acme"), STR("admitted")) == 1);
    assert_true(metric_value(f.to.admissions, STR("acme"), STR("limited")) == 1);
    fixture_close(&f);
}

static void assert_shown(struct fixture *f, const char *line)
{
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(f->registry, &text);
    assert_true(buf_ok(&text));
    if (strstr(text.ptr, line) == NULL)
        fail_msg("<%s> is not in <%s>", line, text.ptr);
    buf_release(&text);
}

static void waits_are_measured_in_seconds(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    effects_begin(&f.fx);
    add_admission(&f, STR("admitted"), 1500);
    struct effect *x = effects_add(&f.fx, EFFECT_QUEUE_WAIT);
    x->admission.tenant = STR("acme");
    x->admission.wait_ms = 250;
    assert_null(commit_and_publish(&f));
    assert_shown(&f, "wait_sum{tenant=\"acme\",endpoint=\"schedule\"} 1.5\n");
    assert_shown(&f, "queued_sum{tenant=\"acme\"} 0.25\n");
    fixture_close(&f);
}

static void what_nobody_waits_for_does_not_travel(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    effects_begin(&f.fx);
    (void)effects_add(&f.fx, EFFECT_JOB_READY);
    f.subscribers = 1; /* not to jobs */
    assert_null(commit_and_publish(&f));
    effects_begin(&f.fx);
    effects_event(&f.fx, 1, 2, 1);
    f.fx.unfed->events.feed = 1;
    f.subscribers = 0;
    f.waiting = 1; /* not for events */
    assert_null(commit_and_publish(&f));
    fixture_close(&f);
}

static void what_somebody_waits_for_travels_to_the_loop(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    effects_begin(&f.fx);
    effects_event(&f.fx, 1, 2, 1);
    f.fx.unfed->events.feed = 9;
    f.subscribers = 1;
    struct effect_parcel *parcel = commit_and_publish(&f);
    assert_non_null(parcel);
    assert_int_equal(parcel->first->events.feed, 9);
    assert_null(parcel->next);
    effects_begin(&f.fx); /* the next commit has memory of its own */
    effects_once(&f.fx, EFFECT_CALLS_READY);
    assert_null(commit_and_publish(&f));
    assert_int_equal(parcel->first->events.feed, 9);
    effect_parcel_free(parcel);
    fixture_close(&f);
}

static void a_span_travels_although_nobody_waits(void **state)
{
    struct fixture f;
    struct span span = {.place = {.id = 3}};
    (void)state;
    fixture_open(&f);
    effects_begin(&f.fx);
    effects_add(&f.fx, EFFECT_SPAN)->span = &span;
    struct effect_parcel *parcel = commit_and_publish(&f);
    assert_non_null(parcel);
    assert_ptr_equal(parcel->first->span, &span);
    effect_parcel_free(parcel);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receivers_on_the_writers_thread_get_their_effects_at_once),
        cmocka_unit_test(waits_are_measured_in_seconds),
        cmocka_unit_test(what_nobody_waits_for_does_not_travel),
        cmocka_unit_test(what_somebody_waits_for_travels_to_the_loop),
        cmocka_unit_test(a_span_travels_although_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
