/* Counters, gauges and histograms, written out as Prometheus text.
 *
 * A family is declared once, at start-up; a series of it is found by its label values and created
 * on first use, up to a bound. Any thread may add; reading takes each family's lock in turn. */
#ifndef PAWL_BASE_METRICS_H
#define PAWL_BASE_METRICS_H

#include "base/buf.h"

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM,
    METRIC_GAUGE_LARGEST, /* of several parts the largest counts, not their sum */
};

enum { METRIC_LABELS_MAX = 2, METRIC_BUCKETS_MAX = 16 };

struct metrics;
struct metric;

struct metric_spec {
    const char *name;
    const char *help;
    enum metric_kind kind;
    const char *labels[METRIC_LABELS_MAX]; /* NULL where unused */
    const double *buckets;                 /* histograms: upper bounds, rising, ended by 0 */
};

/* Seconds from 100 microseconds to 10 seconds, seconds from 10 milliseconds to a day, and sizes
 * from 1 to 512. */
extern const double METRIC_SECONDS[];
extern const double METRIC_WAITS[];
extern const double METRIC_SIZES[];

/* NULL when memory ran out. The caller owns it. */
MUST_CHECK struct metrics *metrics_new(void);
/* A registry that is shown as a part of another one: families of the same name are shown as one,
 * and their series are added up. */
MUST_CHECK struct metrics *metrics_new_part(struct metrics *whole);
/* What a part has counted stays in the whole, which outlives it. NULL is fine. */
void metrics_free(struct metrics *m);

/* Lives as long as the registry. Asserts that the name is new. NULL when memory ran out. */
MUST_CHECK struct metric *metrics_declare(struct metrics *m, const struct metric_spec *spec);

/* Label values in the order of the spec; pass STR_NONE where unused. Past METRIC_SERIES_MAX series
 * new label values are counted under `other`. */
void metric_add(struct metric *metric, struct str label1, struct str label2, double amount);
void metric_set(struct metric *metric, struct str label1, struct str label2, double value);
void metric_observe(struct metric *metric, struct str label1, struct str label2, double value);
/* Drops every series: for gauges that are filled again before each scrape. */
void metric_clear(struct metric *metric);

/* The current value of a counter or gauge, 0 when it has no such series. */
double metric_value(struct metric *metric, struct str label1, struct str label2);

/* Of a part: all of the whole. */
void metrics_put_text(struct metrics *m, struct buf *out);

#endif
