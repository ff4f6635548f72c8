/* The registry of metrics and its Prometheus text. */
#include "support.h"

#include "base/limits.h"
#include "base/metrics.h"

#include <pthread.h>

static struct metrics *new_registry(void)
{
    struct metrics *m = metrics_new();
    assert_non_null(m);
    return m;
}

static struct metric *declare(struct metrics *m, const struct metric_spec *spec)
{
    struct metric *metric = metrics_declare(m, spec);
    assert_non_null(metric);
    return metric;
}

static void put_text(struct metrics *m, struct buf *out)
{
    buf_init(out, 8 << 20);
    metrics_put_text(m, out);
    assert_true(buf_ok(out));
}

#define assert_text(m, wanted)                \
    do {                                      \
        struct buf out_;                      \
        put_text((m), &out_);                 \
        assert_str(buf_str(&out_), (wanted)); \
        buf_release(&out_);                   \
    } while (0)

/* How many lines of the text are exactly this one. */
static size_t lines_like(struct str text, const char *line)
{
    size_t found = 0;
    struct str head;
    struct str rest = text;
    while (str_cut(rest, '\n', &head, &rest))
        found += str_is(head, line);
    return found;
}

static size_t lines_in(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == '\n';
    return count;
}

static const struct metric_spec COUNTER = {
    .name = "pawl_things_total", .help = "Things.", .kind = METRIC_COUNTER};
static const struct metric_spec GAUGE = {
    .name = "pawl_level", .help = "The level.", .kind = METRIC_GAUGE, .labels = {"where"}};
static const struct metric_spec PAIRS = {.name = "pawl_pairs_total",
                                         .help = "Pairs.",
                                         .kind = METRIC_COUNTER,
                                         .labels = {"tenant", "outcome"}};
static const double BOUNDS[] = {0.1, 0.5, 1, 2.5, 0};
static const struct metric_spec HISTOGRAM = {.name = "pawl_wait_seconds",
                                             .help = "Waits.",
                                             .kind = METRIC_HISTOGRAM,
                                             .labels = {"tenant"},
                                             .buckets = BOUNDS};

static void an_empty_registry_writes_nothing(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    assert_text(m, "");
    metrics_free(m);
    metrics_free(NULL);
}

static void a_family_without_series_has_its_head_only(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    (void)declare(m, &COUNTER);
    (void)declare(m, &HISTOGRAM);
    assert_text(m, "# HELP pawl_things_total Things.\n# TYPE pawl_things_total counter\n"
                   "# HELP pawl_wait_seconds Waits.\n# TYPE pawl_wait_seconds histogram\n");
    metrics_free(m);
}

static void a_counter_adds_up(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *counter = declare(m, &COUNTER);
    assert_true(metric_value(counter, STR_NONE, STR_NONE) == 0);
    metric_add(counter, STR_NONE, STR_NONE, 1);
    metric_add(counter, STR_NONE, STR_NONE, 2.5);
    assert_true(metric_value(counter, STR_NONE, STR_NONE) == 3.5);
    assert_text(m, "# HELP pawl_things_total Things.\n"
                   "# TYPE pawl_things_total counter\n"
                   "pawl_things_total 3.5\n");
    metrics_free(m);
}

static void a_gauge_is_set_and_moved_both_ways(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    metric_set(gauge, STR("here"), STR_NONE, 10);
    metric_add(gauge, STR("here"), STR_NONE, -12);
    assert_text(m, "# HELP pawl_level The level.\n"
                   "# TYPE pawl_level gauge\n"
                   "pawl_level{where=\"here\"} -2\n");
    metric_set(gauge, STR("here"), STR_NONE, 1e21);
    assert_true(metric_value(gauge, STR("here"), STR_NONE) == 1e21);
    assert_text(m, "# HELP pawl_level The level.\n"
                   "# TYPE pawl_level gauge\n"
                   "pawl_level{where=\"here\"} 1e+21\n");
    metrics_free(m);
}

static void families_come_in_the_order_of_their_declaration(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    struct metric *counter = declare(m, &COUNTER);
    metric_add(counter, STR_NONE, STR_NONE, 1);
    metric_set(gauge, STR("a"), STR_NONE, 2);
    assert_text(m, "# HELP pawl_level The level.\n# TYPE pawl_level gauge\n"
                   "pawl_level{where=\"a\"} 2\n"
                   "# HELP pawl_things_total Things.\n# TYPE pawl_things_total counter\n"
                   "pawl_things_total 1\n");
    metrics_free(m);
}

static void label_values_tell_series_apart(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *pairs = declare(m, &PAIRS);
    metric_add(pairs, STR("ab"), STR("c"), 1);
    metric_add(pairs, STR("a"), STR("bc"), 2);
    metric_add(pairs, STR("abc"), STR(""), 3);
    metric_add(pairs, STR(""), STR("abc"), 4);
    metric_add(pairs, STR("c"), STR("ab"), 5);
    metric_add(pairs, STR("ab"), STR("c"), 10);
    assert_true(metric_value(pairs, STR("ab"), STR("c")) == 11);
    assert_true(metric_value(pairs, STR("never"), STR("seen")) == 0);
    struct buf out;
    put_text(m, &out);
    assert_int_equal(lines_in(buf_str(&out)), 2 + 5);
    static const char *const LINES[] = {
        "pawl_pairs_total{tenant=\"ab\",outcome=\"c\"} 11",
        "pawl_pairs_total{tenant=\"a\",outcome=\"bc\"} 2",
        "pawl_pairs_total{tenant=\"abc\",outcome=\"\"} 3",
        "pawl_pairs_total{tenant=\"\",outcome=\"abc\"} 4",
        "pawl_pairs_total{tenant=\"c\",outcome=\"ab\"} 5",
    };
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++)
        assert_int_equal(lines_like(buf_str(&out), LINES[i]), 1);
    buf_release(&out);
    metrics_free(m);
}

static void label_values_are_copied(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    char label[] = "before";
    metric_set(gauge, str_of(label), STR_NONE, 1);
    memset(label, 'x', sizeof(label) - 1);
    assert_true(metric_value(gauge, STR("before"), STR_NONE) == 1);
    assert_true(metric_value(gauge, STR("xxxxxx"), STR_NONE) == 0);
    metrics_free(m);
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    metric_set(gauge, STR("a\\b\"c\nd caf\xC3\xA9 {}=,"), STR_NONE, 1);
    assert_text(m, "# HELP pawl_level The level.\n"
                   "# TYPE pawl_level gauge\n"
                   "pawl_level{where=\"a\\\\b\\\"c\\nd caf\xC3\xA9 {}=,\"} 1\n");
    metrics_free(m);
}

static void histogram_buckets_are_cumulative_and_include_their_bound(void **state)
{
    (void)state;
    static const double SAMPLES[] = {0, 0.1, 0.10000000000000002, 0.5, 0.75, 2.5, 2.6, 1000};
    struct metrics *m = new_registry();
    struct metric *histogram = declare(m, &HISTOGRAM);
    for (size_t i = 0; i < ARRAY_LEN(SAMPLES); i++)
        metric_observe(histogram, STR("t\"1"), STR_NONE, SAMPLES[i]);
    assert_text(m, "# HELP pawl_wait_seconds Waits.\n"
                   "# TYPE pawl_wait_seconds histogram\n"
                   "pawl_wait_seconds_bucket{tenant=\"t\\\"1\",le=\"0.1\"} 2\n"
                   "pawl_wait_seconds_bucket{tenant=\"t\\\"1\",le=\"0.5\"} 4\n"
                   "pawl_wait_seconds_bucket{tenant=\"t\\\"1\",le=\"1\"} 5\n"
                   "pawl_wait_seconds_bucket{tenant=\"t\\\"1\",le=\"2.5\"} 6\n"
                   "pawl_wait_seconds_bucket{tenant=\"t\\\"1\",le=\"+Inf\"} 8\n"
                   "pawl_wait_seconds_sum{tenant=\"t\\\"1\"} 1006.55\n"
                   "pawl_wait_seconds_count{tenant=\"t\\\"1\"} 8\n");
    metrics_free(m);
}

static void a_histogram_without_labels_has_le_alone(void **state)
{
    (void)state;
    struct metric_spec spec = HISTOGRAM;
    spec.labels[0] = NULL;
    struct metrics *m = new_registry();
    struct metric *histogram = declare(m, &spec);
    metric_observe(histogram, STR_NONE, STR_NONE, 0.25);
    assert_text(m, "# HELP pawl_wait_seconds Waits.\n"
                   "# TYPE pawl_wait_seconds histogram\n"
                   "pawl_wait_seconds_bucket{le=\"0.1\"} 0\n"
                   "pawl_wait_seconds_bucket{le=\"0.5\"} 1\n"
                   "pawl_wait_seconds_bucket{le=\"1\"} 1\n"
                   "pawl_wait_seconds_bucket{le=\"2.5\"} 1\n"
                   "pawl_wait_seconds_bucket{le=\"+Inf\"} 1\n"
                   "pawl_wait_seconds_sum 0.25\n"
                   "pawl_wait_seconds_count 1\n");
    metrics_free(m);
}

static void ready_made_buckets_rise_and_fit(void **state)
{
    (void)state;
    static const double *const LADDERS[] = {METRIC_SECONDS, METRIC_SIZES};
    for (size_t i = 0; i < ARRAY_LEN(LADDERS); i++) {
        size_t count = 0;
        for (; LADDERS[i][count] > 0; count++) {
            if (count > 0)
                assert_true(LADDERS[i][count] > LADDERS[i][count - 1]);
        }
        assert_in_range(count, 1, METRIC_BUCKETS_MAX);
        /* From 100 microseconds to 10 seconds, and from 1 to 512. */
        assert_true(LADDERS[i][0] == (i == 0 ? 0.0001 : 1));
        assert_true(LADDERS[i][count - 1] == (i == 0 ? 10 : 512));
    }
}

static void as_many_buckets_as_allowed_all_count(void **state)
{
    (void)state;
    double bounds[METRIC_BUCKETS_MAX + 1] = {0};
    for (size_t i = 0; i < METRIC_BUCKETS_MAX; i++)
        bounds[i] = (double)(i + 1);
    struct metric_spec spec = HISTOGRAM;
    spec.buckets = bounds;
    struct metrics *m = new_registry();
    struct metric *histogram = declare(m, &spec);
    for (size_t i = 0; i <= METRIC_BUCKETS_MAX; i++)
        metric_observe(histogram, STR("t"), STR_NONE, (double)i + 0.5);
    struct buf out;
    put_text(m, &out);
    for (size_t i = 0; i < METRIC_BUCKETS_MAX; i++) {
        char line[80];
        (void)snprintf(line, sizeof(line), "pawl_wait_seconds_bucket{tenant=\"t\",le=\"%zu\"} %zu",
                       i + 1, i + 1);
        assert_int_equal(lines_like(buf_str(&out), line), 1);
    }
    assert_int_equal(
        lines_like(buf_str(&out), "pawl_wait_seconds_bucket{tenant=\"t\",le=\"+Inf\"} 17"), 1);
    buf_release(&out);
    metrics_free(m);
}

static void clearing_drops_every_series_and_keeps_the_family(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    metric_set(gauge, STR("old"), STR_NONE, 1);
    metric_clear(gauge);
    assert_true(metric_value(gauge, STR("old"), STR_NONE) == 0);
    metric_set(gauge, STR("new"), STR_NONE, 2);
    assert_text(m, "# HELP pawl_level The level.\n# TYPE pawl_level gauge\n"
                   "pawl_level{where=\"new\"} 2\n");
    metrics_free(m);
}

static struct str numbered(char text[static 16], int number)
{
    (void)snprintf(text, 16, "t%d", number);
    return str_of(text);
}

static void new_label_values_past_the_bound_share_other(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *pairs = declare(m, &PAIRS);
    char text[16];
    for (int i = 0; i < METRIC_SERIES_MAX; i++)
        metric_add(pairs, numbered(text, i), STR("ok"), 1);
    assert_true(metric_value(pairs, STR("other"), STR("other")) == 0);
    for (int i = 0; i < 100; i++)
        metric_add(pairs, numbered(text, METRIC_SERIES_MAX + i), STR("ok"), 2);
    assert_true(metric_value(pairs, STR("other"), STR("other")) == 200);
    assert_true(metric_value(pairs, numbered(text, METRIC_SERIES_MAX), STR("ok")) == 0);
    /* Those that were there before still count for themselves. */
    metric_add(pairs, numbered(text, METRIC_SERIES_MAX - 1), STR("ok"), 5);
    assert_true(metric_value(pairs, numbered(text, METRIC_SERIES_MAX - 1), STR("ok")) == 6);
    struct buf out;
    put_text(m, &out);
    assert_int_equal(lines_in(buf_str(&out)), 2 + METRIC_SERIES_MAX + 1);
    assert_int_equal(
        lines_like(buf_str(&out), "pawl_pairs_total{tenant=\"other\",outcome=\"other\"} 200"), 1);
    assert_int_equal(lines_like(buf_str(&out), "pawl_pairs_total{tenant=\"t0\",outcome=\"ok\"} 1"),
                     1);
    buf_release(&out);
    metrics_free(m);
}

static void only_the_labels_a_family_has_become_other(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    char text[16];
    for (int i = 0; i < METRIC_SERIES_MAX + 3; i++)
        metric_set(gauge, numbered(text, i), STR_NONE, i);
    assert_true(metric_value(gauge, STR("other"), STR_NONE) == METRIC_SERIES_MAX + 2);
    struct buf out;
    put_text(m, &out);
    assert_int_equal(lines_like(buf_str(&out), "pawl_level{where=\"other\"} 8194"), 1);
    buf_release(&out);
    metrics_free(m);
}

static void clearing_makes_room_for_new_label_values(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *gauge = declare(m, &GAUGE);
    char text[16];
    for (int i = 0; i <= METRIC_SERIES_MAX; i++)
        metric_set(gauge, numbered(text, i), STR_NONE, 1);
    metric_clear(gauge);
    metric_set(gauge, STR("fresh"), STR_NONE, 9);
    assert_true(metric_value(gauge, STR("fresh"), STR_NONE) == 9);
    assert_true(metric_value(gauge, STR("other"), STR_NONE) == 0);
    metrics_free(m);
}

static void a_reading_that_does_not_fit_says_so(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct metric *histogram = declare(m, &HISTOGRAM);
    metric_observe(histogram, STR("t"), STR_NONE, 0.3);
    struct buf whole;
    put_text(m, &whole);
    for (size_t max = 0; max <= whole.len; max++) {
        struct buf out;
        buf_init(&out, max);
        metrics_put_text(m, &out);
        assert_true(buf_ok(&out) == (max == whole.len));
        buf_release(&out);
    }
    buf_release(&whole);
    metrics_free(m);
}

/* --- threads --- */

enum { THREADS = 4, ROUNDS = 20000 };

struct shared {
    struct metric *counter;
    struct metric *histogram;
    pthread_barrier_t start;
};

static void *count_and_observe(void *arg)
{
    struct shared *shared = arg;
    char text[16];
    (void)pthread_barrier_wait(&shared->start);
    for (int i = 0; i < ROUNDS; i++) {
        metric_add(shared->counter, numbered(text, i % 10), STR("ok"), 1);
        metric_observe(shared->histogram, STR("t"), STR_NONE, 0.25);
    }
    return NULL;
}

static void no_sample_is_lost_between_threads(void **state)
{
    (void)state;
    struct metrics *m = new_registry();
    struct shared shared = {.counter = declare(m, &PAIRS), .histogram = declare(m, &HISTOGRAM)};
    assert_int_equal(pthread_barrier_init(&shared.start, NULL, THREADS), 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_and_observe, &shared), 0);
    /* Reading meanwhile must neither tear nor lock up. */
    for (int i = 0; i < 20; i++) {
        struct buf out;
        put_text(m, &out);
        buf_release(&out);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&shared.start);
    double total = 0;
    char text[16];
    for (int i = 0; i < 10; i++)
        total += metric_value(shared.counter, numbered(text, i), STR("ok"));
    assert_true(total == THREADS * ROUNDS);
    struct buf out;
    put_text(m, &out);
    assert_int_equal(lines_like(buf_str(&out), "pawl_wait_seconds_count{tenant=\"t\"} 80000"), 1);
    assert_int_equal(lines_like(buf_str(&out), "pawl_wait_seconds_sum{tenant=\"t\"} 20000"), 1);
    buf_release(&out);
    metrics_free(m);
}

/* --- contracts --- */

static void declare_twice(void)
{
    struct metrics *m = metrics_new();
    struct metric_spec again = GAUGE;
    again.name = COUNTER.name;
    struct metric *first = metrics_declare(m, &COUNTER);
    struct metric *second = metrics_declare(m, &again);
    (void)first;
    (void)second;
}

static void set_a_counter(void)
{
    struct metrics *m = metrics_new();
    metric_set(metrics_declare(m, &COUNTER), STR_NONE, STR_NONE, 1);
}

static void add_to_a_histogram(void)
{
    struct metrics *m = metrics_new();
    metric_add(metrics_declare(m, &HISTOGRAM), STR("t"), STR_NONE, 1);
}

static void observe_a_counter(void)
{
    struct metrics *m = metrics_new();
    metric_observe(metrics_declare(m, &COUNTER), STR_NONE, STR_NONE, 1);
}

static void misuse_stops_the_program(void **state)
{
    (void)state;
    assert_true(aborts(declare_twice));
    assert_true(aborts(set_a_counter));
    assert_true(aborts(add_to_a_histogram));
    assert_true(aborts(observe_a_counter));
}

/* --- parts --- */

static struct metrics *new_part(struct metrics *whole)
{
    struct metrics *part = metrics_new_part(whole);
    assert_non_null(part);
    return part;
}

static void parts_are_shown_as_one(void **state)
{
    (void)state;
    static const struct metric_spec AGE = {
        .name = "pawl_age", .help = "The age.", .kind = METRIC_GAUGE_LARGEST};
    struct metrics *whole = new_registry();
    struct metrics *one = new_part(whole);
    struct metrics *other = new_part(whole);
    metric_add(declare(one, &COUNTER), STR_NONE, STR_NONE, 2);
    metric_add(declare(other, &COUNTER), STR_NONE, STR_NONE, 3);
    metric_set(declare(one, &GAUGE), STR("here"), STR_NONE, 4);
    struct metric *gauge = declare(other, &GAUGE);
    metric_set(gauge, STR("here"), STR_NONE, 5);
    metric_set(gauge, STR("there"), STR_NONE, 6);
    metric_set(declare(one, &AGE), STR_NONE, STR_NONE, 7);
    metric_set(declare(other, &AGE), STR_NONE, STR_NONE, 1);
    struct buf out;
    put_text(one, &out);
    assert_int_equal(lines_like(buf_str(&out), "pawl_things_total 5"), 1);
    assert_int_equal(lines_like(buf_str(&out), "pawl_level{where=\"here\"} 9"), 1);
    assert_int_equal(lines_like(buf_str(&out), "pawl_level{where=\"there\"} 6"), 1);
    assert_int_equal(lines_like(buf_str(&out), "pawl_age 7"), 1);
    assert_int_equal(lines_in(buf_str(&out)), 10); /* two of each family's head, and these */
    buf_release(&out);
    metrics_free(one);
    metrics_free(other);
    metrics_free(whole);
}

static void counts_of_a_part_stay_when_it_is_gone(void **state)
{
    (void)state;
    struct metrics *whole = new_registry();
    for (int i = 0; i < 2; i++) {
        struct metrics *part = new_part(whole);
        metric_add(declare(part, &COUNTER), STR_NONE, STR_NONE, 2);
        metric_set(declare(part, &GAUGE), STR("here"), STR_NONE, 4);
        metrics_free(part);
    }
    assert_text(whole, "# HELP pawl_things_total Things.\n# TYPE pawl_things_total counter\n"
                       "pawl_things_total 4\n");
    metrics_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_registry_writes_nothing),
        cmocka_unit_test(a_family_without_series_has_its_head_only),
        cmocka_unit_test(a_counter_adds_up),
        cmocka_unit_test(a_gauge_is_set_and_moved_both_ways),
        cmocka_unit_test(families_come_in_the_order_of_their_declaration),
        cmocka_unit_test(label_values_tell_series_apart),
        cmocka_unit_test(label_values_are_copied),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(histogram_buckets_are_cumulative_and_include_their_bound),
        cmocka_unit_test(a_histogram_without_labels_has_le_alone),
        cmocka_unit_test(ready_made_buckets_rise_and_fit),
        cmocka_unit_test(as_many_buckets_as_allowed_all_count),
        cmocka_unit_test(clearing_drops_every_series_and_keeps_the_family),
        cmocka_unit_test(new_label_values_past_the_bound_share_other),
        cmocka_unit_test(only_the_labels_a_family_has_become_other),
        cmocka_unit_test(clearing_makes_room_for_new_label_values),
        cmocka_unit_test(a_reading_that_does_not_fit_says_so),
        cmocka_unit_test(no_sample_is_lost_between_threads),
        cmocka_unit_test(misuse_stops_the_program),
        cmocka_unit_test(parts_are_shown_as_one),
        cmocka_unit_test(counts_of_a_part_stay_when_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
