/* Counters, gauges and histograms in one registry. */
#include "base/metrics.h"

#include "base/hash_map.h"
#include "base/json.h"
#include "base/limits.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

const double METRIC_SECONDS[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                 0.05,   0.1,     0.25,   0.5,   1,      2.5,   10,   0};
const double METRIC_WAITS[] = {0.01, 0.05, 0.1, 0.5,  1,    5,     10,    30,
                               60,   300,  600, 1800, 3600, 14400, 86400, 0};
const double METRIC_SIZES[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 0};

struct series {
    struct hash_entry entry;
    struct str labels[METRIC_LABELS_MAX]; /* point behind this struct */
    double value;                         /* a histogram's sum */
    uint64_t count;
    uint64_t buckets[METRIC_BUCKETS_MAX];
};

struct metric {
    struct metric *next;
    struct metric_spec spec;
    size_t bucket_count;
    pthread_mutex_t lock;
    struct hash_map series; /* by labels, in the order in which they came up */
};

struct metrics {
    struct metric *first;
    struct metric **last;
};

struct metrics *metrics_new(void)
{
    struct metrics *m = calloc(1, sizeof(*m));
    if (m != NULL)
        m->last = &m->first;
    return m;
}

static struct series *series_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct series, entry);
}

static void series_free_all(struct metric *metric)
{
    HASH_MAP_WALK (&metric->series, e)
        free(series_of(e));
    hash_map_release(&metric->series);
}

void metrics_free(struct metrics *m)
{
    if (m == NULL)
        return;
    while (m->first != NULL) {
        struct metric *old = m->first;
        m->first = old->next;
        series_free_all(old);
        pthread_mutex_destroy(&old->lock);
        free(old);
    }
    free(m);
}

struct metric *metrics_declare(struct metrics *m, const struct metric_spec *spec)
{
    for (const struct metric *other = m->first; other != NULL; other = other->next)
        assert(strcmp(other->spec.name, spec->name) != 0);
    struct metric *metric = calloc(1, sizeof(*metric));
    if (metric == NULL)
        return NULL;
    metric->spec = *spec;
    if (spec->kind == METRIC_HISTOGRAM) {
        assert(spec->buckets != NULL);
        while (spec->buckets[metric->bucket_count] > 0)
            metric->bucket_count++;
        assert(metric->bucket_count <= METRIC_BUCKETS_MAX);
    }
    pthread_mutex_init(&metric->lock, NULL);
    *m->last = metric;
    m->last = &metric->next;
    return metric;
}

/* The lock is held. NULL when there is none. */
static struct series *series_find(struct metric *metric, const struct str *labels, uint64_t hash)
{
    struct hash_entry *e = hash_map_find(&metric->series, hash);
    while (e != NULL && !(str_eq(series_of(e)->labels[0], labels[0]) &&
                          str_eq(series_of(e)->labels[1], labels[1])))
        e = hash_map_find_next(e);
    return e != NULL ? series_of(e) : NULL;
}

static uint64_t labels_hash(const struct metric *metric, const struct str *labels)
{
    return hash_with(hash_text(&metric->series, labels[0]), hash_text(&metric->series, labels[1]));
}

/* The lock is held. NULL only when memory ran out: the sample is lost, the request is not. */
static struct series *series_get(struct metric *metric, struct str label1, struct str label2)
{
    struct str labels[METRIC_LABELS_MAX] = {label1, label2};
    uint64_t hash = labels_hash(metric, labels);
    struct series *s = series_find(metric, labels, hash);
    if (s != NULL)
        return s;
    if (metric->series.count >= METRIC_SERIES_MAX) {
        for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
            if (metric->spec.labels[i] != NULL)
                labels[i] = STR("other");
        }
        hash = labels_hash(metric, labels);
        s = series_find(metric, labels, hash);
        if (s != NULL)
            return s;
    }
    s = calloc(1, sizeof(*s) + labels[0].len + labels[1].len + 2);
    if (s == NULL)
        return NULL;
    char *text = (char *)(s + 1);
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        if (labels[i].len > 0)
            memcpy(text, labels[i].ptr, labels[i].len);
        s->labels[i] = (struct str){text, labels[i].len};
        text += labels[i].len;
    }
    hash_map_add(&metric->series, &s->entry, hash);
    return s;
}

void metric_add(struct metric *metric, struct str label1, struct str label2, double amount)
{
    assert(metric->spec.kind != METRIC_HISTOGRAM);
    pthread_mutex_lock(&metric->lock);
    struct series *s = series_get(metric, label1, label2);
    if (s != NULL)
        s->value += amount;
    pthread_mutex_unlock(&metric->lock);
}

void metric_set(struct metric *metric, struct str label1, struct str label2, double value)
{
    assert(metric->spec.kind == METRIC_GAUGE);
    pthread_mutex_lock(&metric->lock);
    struct series *s = series_get(metric, label1, label2);
    if (s != NULL)
        s->value = value;
    pthread_mutex_unlock(&metric->lock);
}

void metric_observe(struct metric *metric, struct str label1, struct str label2, double value)
{
    assert(metric->spec.kind == METRIC_HISTOGRAM);
    pthread_mutex_lock(&metric->lock);
    struct series *s = series_get(metric, label1, label2);
    if (s != NULL) {
        s->value += value;
        s->count++;
        for (size_t i = 0; i < metric->bucket_count; i++) {
            if (value <= metric->spec.buckets[i]) {
                s->buckets[i]++;
                break;
            }
        }
    }
    pthread_mutex_unlock(&metric->lock);
}

void metric_clear(struct metric *metric)
{
    pthread_mutex_lock(&metric->lock);
    series_free_all(metric);
    pthread_mutex_unlock(&metric->lock);
}

double metric_value(struct metric *metric, struct str label1, struct str label2)
{
    struct str labels[METRIC_LABELS_MAX] = {label1, label2};
    pthread_mutex_lock(&metric->lock);
    const struct series *s = series_find(metric, labels, labels_hash(metric, labels));
    double value = s != NULL ? s->value : 0;
    pthread_mutex_unlock(&metric->lock);
    return value;
}

/* --- Prometheus text --- */

static void put_label_value(struct buf *out, struct str value)
{
    buf_put_char(out, '"');
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c == '\n') {
            buf_put(out, STR("\\n"));
            continue;
        }
        if (c == '"' || c == '\\')
            buf_put_char(out, '\\');
        buf_put_char(out, c);
    }
    buf_put_char(out, '"');
}

/* `{a="x",b="y",le="0.1"}`, or nothing when there is no label at all. */
static void put_labels(struct buf *out, const struct metric *metric, const struct series *s,
                       const double *le)
{
    bool any = false;
    for (size_t i = 0; i < METRIC_LABELS_MAX && metric->spec.labels[i] != NULL; i++) {
        buf_put_char(out, any ? ',' : '{');
        any = true;
        buf_printf(out, "%s=", metric->spec.labels[i]);
        put_label_value(out, s->labels[i]);
    }
    if (le != NULL) {
        buf_printf(out, "%cle=\"", any ? ',' : '{');
        any = true;
        if (isfinite(*le))
            json_put_double(out, *le);
        else
            buf_put(out, STR("+Inf"));
        buf_put_char(out, '"');
    }
    if (any)
        buf_put_char(out, '}');
}

static void put_histogram(struct buf *out, const struct metric *metric, const struct series *s)
{
    const char *name = metric->spec.name;
    uint64_t total = 0;
    for (size_t i = 0; i < metric->bucket_count; i++) {
        total += s->buckets[i];
        buf_printf(out, "%s_bucket", name);
        put_labels(out, metric, s, &metric->spec.buckets[i]);
        buf_printf(out, " %llu\n", (unsigned long long)total);
    }
    buf_printf(out, "%s_bucket", name);
    put_labels(out, metric, s, &(double){INFINITY});
    buf_printf(out, " %llu\n%s_sum", (unsigned long long)s->count, name);
    put_labels(out, metric, s, NULL);
    buf_put_char(out, ' ');
    json_put_double(out, s->value);
    buf_printf(out, "\n%s_count", name);
    put_labels(out, metric, s, NULL);
    buf_printf(out, " %llu\n", (unsigned long long)s->count);
}

static void put_series(struct buf *out, const struct metric *metric, const struct series *s)
{
    if (metric->spec.kind == METRIC_HISTOGRAM) {
        put_histogram(out, metric, s);
        return;
    }
    buf_put(out, str_of(metric->spec.name));
    put_labels(out, metric, s, NULL);
    buf_put_char(out, ' ');
    json_put_double(out, s->value);
    buf_put_char(out, '\n');
}

static void put_family(struct buf *out, struct metric *metric)
{
    static const char *const KINDS[] = {"counter", "gauge", "histogram"};
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->spec.name, metric->spec.help,
               metric->spec.name, KINDS[metric->spec.kind]);
    pthread_mutex_lock(&metric->lock);
    HASH_MAP_WALK (&metric->series, e)
        put_series(out, metric, series_of(e));
    pthread_mutex_unlock(&metric->lock);
}

void metrics_put_text(struct metrics *m, struct buf *out)
{
    for (struct metric *metric = m->first; metric != NULL; metric = metric->next)
        put_family(out, metric);
}
