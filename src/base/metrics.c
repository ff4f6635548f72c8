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
    struct series *last;    /* that was counted; most samples are of it again. NULL: none */
};

struct metrics {
    struct metric *first;
    struct metric **last;
    struct metrics *whole; /* that this is a part of; NULL: none */
    struct metrics *next;  /* part of the same whole */

    pthread_mutex_t lock; /* of a whole: its parts, and families that come with them */
    struct metrics *parts;
};

struct metrics *metrics_new(void)
{
    struct metrics *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return NULL;
    m->last = &m->first;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

struct metrics *metrics_new_part(struct metrics *whole)
{
    struct metrics *m = metrics_new();
    if (m == NULL)
        return NULL;
    m->whole = whole;
    pthread_mutex_lock(&whole->lock);
    m->next = whole->parts;
    whole->parts = m;
    pthread_mutex_unlock(&whole->lock);
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
    metric->last = NULL;
}

static void family_free(struct metric *metric)
{
    series_free_all(metric);
    pthread_mutex_destroy(&metric->lock);
    free(metric);
}

static void leave_whole(struct metrics *part);

void metrics_free(struct metrics *m)
{
    if (m == NULL)
        return;
    assert(m->parts == NULL);
    if (m->whole != NULL)
        leave_whole(m);
    while (m->first != NULL) {
        struct metric *old = m->first;
        m->first = old->next;
        family_free(old);
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static struct metric *family_named(const struct metrics *m, const char *name)
{
    struct metric *metric = m->first;
    while (metric != NULL && strcmp(metric->spec.name, name) != 0)
        metric = metric->next;
    return metric;
}

static struct metric *family_new(const struct metric_spec *spec)
{
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
    return metric;
}

struct metric *metrics_declare(struct metrics *m, const struct metric_spec *spec)
{
    assert(family_named(m, spec->name) == NULL);
    struct metric *metric = family_new(spec);
    if (metric == NULL)
        return NULL;
    if (m->whole != NULL)
        pthread_mutex_lock(&m->whole->lock);
    *m->last = metric;
    m->last = &metric->next;
    if (m->whole != NULL)
        pthread_mutex_unlock(&m->whole->lock);
    return metric;
}

static bool has_labels(const struct series *s, const struct str *labels)
{
    return str_eq(s->labels[0], labels[0]) && str_eq(s->labels[1], labels[1]);
}

/* The lock is held. NULL when there is none. */
static struct series *series_find(struct metric *metric, const struct str *labels, uint64_t hash)
{
    struct hash_entry *e = hash_map_find(&metric->series, hash);
    while (e != NULL && !has_labels(series_of(e), labels))
        e = hash_map_find_next(e);
    return e != NULL ? series_of(e) : NULL;
}

static uint64_t labels_hash(const struct metric *metric, const struct str *labels)
{
    return hash_with(hash_text(&metric->series, labels[0]), hash_text(&metric->series, labels[1]));
}

/* The lock is held. NULL only when memory ran out: the sample is lost, the request is not. */
static struct series *series_look_up(struct metric *metric, struct str label1, struct str label2)
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

/* The same. */
static struct series *series_get(struct metric *metric, struct str label1, struct str label2)
{
    const struct str labels[METRIC_LABELS_MAX] = {label1, label2};
    if (metric->last == NULL || !has_labels(metric->last, labels))
        metric->last = series_look_up(metric, label1, label2);
    return metric->last;
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
    assert(metric->spec.kind == METRIC_GAUGE || metric->spec.kind == METRIC_GAUGE_LARGEST);
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

/* --- parts --- */

static void series_merge(struct metric *into, const struct series *from)
{
    struct series *s = series_get(into, from->labels[0], from->labels[1]);
    if (s == NULL)
        return;
    bool largest = into->spec.kind == METRIC_GAUGE_LARGEST;
    s->value = largest ? MAX(s->value, from->value) : s->value + from->value;
    s->count += from->count;
    for (size_t i = 0; i < into->bucket_count; i++)
        s->buckets[i] += from->buckets[i];
}

static void family_merge(struct metric *into, struct metric *from)
{
    pthread_mutex_lock(&into->lock);
    pthread_mutex_lock(&from->lock);
    HASH_MAP_WALK (&from->series, e)
        series_merge(into, series_of(e));
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_unlock(&into->lock);
}

/* What was counted stays; what was measured is gone with the part. */
static void keep_counts(struct metrics *whole, struct metric *from)
{
    if (from->spec.kind == METRIC_GAUGE || from->spec.kind == METRIC_GAUGE_LARGEST)
        return;
    struct metric *into = family_named(whole, from->spec.name);
    if (into == NULL)
        into = metrics_declare(whole, &from->spec);
    if (into != NULL)
        family_merge(into, from);
}

static void leave_whole(struct metrics *part)
{
    struct metrics *whole = part->whole;
    pthread_mutex_lock(&whole->lock);
    for (struct metric *m = part->first; m != NULL; m = m->next)
        keep_counts(whole, m);
    struct metrics **at = &whole->parts;
    while (*at != part)
        at = &(*at)->next;
    *at = part->next;
    pthread_mutex_unlock(&whole->lock);
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
    static const char *const KINDS[] = {"counter", "gauge", "histogram", "gauge"};
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->spec.name, metric->spec.help,
               metric->spec.name, KINDS[metric->spec.kind]);
    pthread_mutex_lock(&metric->lock);
    HASH_MAP_WALK (&metric->series, e)
        put_series(out, metric, series_of(e));
    pthread_mutex_unlock(&metric->lock);
}

/* One family of the whole and of those parts that have it too. */
static void put_merged(struct buf *out, const struct metrics *from, struct metric *first)
{
    struct metric *all = family_new(&first->spec);
    if (all == NULL) {
        put_family(out, first);
        return;
    }
    family_merge(all, first);
    for (; from != NULL; from = from->next) {
        struct metric *other = family_named(from, first->spec.name);
        if (other != NULL && other != first)
            family_merge(all, other);
    }
    put_family(out, all);
    family_free(all);
}

/* Each family once, where it comes up first. */
static void put_whole(struct buf *out, const struct metrics *whole)
{
    for (struct metric *m = whole->first; m != NULL; m = m->next)
        put_merged(out, whole->parts, m);
    for (const struct metrics *part = whole->parts; part != NULL; part = part->next) {
        for (struct metric *m = part->first; m != NULL; m = m->next) {
            bool shown = family_named(whole, m->spec.name) != NULL;
            for (const struct metrics *o = whole->parts; o != part && !shown; o = o->next)
                shown = family_named(o, m->spec.name) != NULL;
            if (!shown)
                put_merged(out, part, m);
        }
    }
}

void metrics_put_text(struct metrics *m, struct buf *out)
{
    struct metrics *whole = m->whole != NULL ? m->whole : m;
    pthread_mutex_lock(&whole->lock);
    if (whole->parts != NULL) {
        put_whole(out, whole);
    } else {
        for (struct metric *metric = whole->first; metric != NULL; metric = metric->next)
            put_family(out, metric);
    }
    pthread_mutex_unlock(&whole->lock);
}
