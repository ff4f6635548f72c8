/* How people decide: how long it takes them, what they say, how often it is said again or against
 * itself; all together and by workflow. Looks at so many of the newest approvals and no more. */
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "store/run/approvals.h"

#include <stdlib.h>

/* How long one decision of a person took. */
struct sample {
    size_t group;
    int64_t ms;
};

struct group {
    struct str workflow_id;
    int64_t by_status[APPROVAL_STATUS_COUNT];
    int64_t replays;
    int64_t conflicts;
};

struct stats {
    const struct approval_stats_input *in;
    struct read_tx *tx;
    int64_t looked_at;
    struct group all;
    struct group groups[APPROVAL_STATS_WORKFLOWS_MAX + 1]; /* the last: of no group of its own */
    size_t group_count;
    struct sample *samples;
    size_t sample_count;
    bool truncated; /* there are more approvals or workflows than are looked at */
    bool full;
};

/* --- collecting --- */

/* Workflows past the bound are in the sum only. */
static size_t group_of(struct stats *s, struct str workflow_id)
{
    size_t i = 0;
    while (i < s->group_count && !str_eq(s->groups[i].workflow_id, workflow_id))
        i++;
    s->truncated |= i == APPROVAL_STATS_WORKFLOWS_MAX;
    if (i < s->group_count || i == APPROVAL_STATS_WORKFLOWS_MAX)
        return i;
    s->groups[i].workflow_id = workflow_id;
    s->full |= !arena_keep(&s->tx->arena, &s->groups[i].workflow_id);
    s->group_count++;
    return i;
}

static void add_to(struct group *g, const struct approval_fact *fact)
{
    g->by_status[fact->status]++;
    g->replays += fact->replays;
    g->conflicts += fact->conflicts;
}

static void add_fact(void *ctx, const struct approval_fact *fact)
{
    struct stats *s = ctx;
    s->truncated |= s->looked_at == APPROVAL_STATS_ROWS_MAX;
    if (s->looked_at == APPROVAL_STATS_ROWS_MAX)
        return;
    s->looked_at++;
    if (s->in->workflow_id.ptr != NULL && !str_eq(s->in->workflow_id, fact->workflow_id))
        return;
    size_t group = group_of(s, fact->workflow_id);
    add_to(&s->all, fact);
    add_to(&s->groups[group], fact);
    bool by_person = fact->status == APPROVAL_APPROVED || fact->status == APPROVAL_REJECTED;
    if (by_person)
        s->samples[s->sample_count++] =
            (struct sample){group, fact->decided_at - fact->requested_at};
}

static int by_length(const void *a, const void *b)
{
    const struct sample *x = a;
    const struct sample *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

/* --- showing --- */

static void add_seconds(struct json_out *o, const char *name, double ms, bool known)
{
    json_add_name(o, name);
    if (known)
        json_put_double(o->buf, ms / 1e3);
    else
        buf_put(o->buf, STR("null"));
}

/* The nearest rank: a time that somebody took. Samples are in order; `group` SIZE_MAX: all. */
static int64_t ranked(const struct stats *s, size_t group, int64_t rank)
{
    int64_t seen = 0;
    for (size_t i = 0; i < s->sample_count; i++) {
        if (group != SIZE_MAX && s->samples[i].group != group)
            continue;
        if (++seen == rank)
            return s->samples[i].ms;
    }
    return 0;
}

static void show_times(struct json_out *o, const struct stats *s, size_t group)
{
    int64_t count = 0;
    double sum = 0;
    for (size_t i = 0; i < s->sample_count; i++) {
        if (group != SIZE_MAX && s->samples[i].group != group)
            continue;
        count++;
        sum += (double)s->samples[i].ms;
    }
    json_open(o, "decision_seconds", '{');
    json_add_int(o, "count", count);
    add_seconds(o, "mean", count > 0 ? sum / (double)count : 0, count > 0);
    add_seconds(o, "p50", (double)ranked(s, group, (count * 50 + 99) / 100), count > 0);
    add_seconds(o, "p95", (double)ranked(s, group, (count * 95 + 99) / 100), count > 0);
    json_close(o, '}');
}

static void add_rate(struct json_out *o, const char *name, int64_t part, int64_t whole)
{
    json_add_name(o, name);
    json_put_double(o->buf, whole > 0 ? (double)part / (double)whole : 0);
}

/* The members of an object that is open. */
static void show_group(struct json_out *o, const struct stats *s, const struct group *g,
                       size_t group)
{
    int64_t requested = 0;
    int64_t made = g->by_status[APPROVAL_APPROVED] + g->by_status[APPROVAL_REJECTED];
    int64_t asked = made + g->replays + g->conflicts;
    for (size_t i = 0; i < APPROVAL_STATUS_COUNT; i++)
        requested += g->by_status[i];
    json_add_int(o, "requested", requested);
    for (size_t i = 0; i < APPROVAL_STATUS_COUNT; i++)
        json_add_int(o, approval_status_name((enum approval_status)i), g->by_status[i]);
    show_times(o, s, group);
    json_add_int(o, "replays", g->replays);
    json_add_int(o, "conflicts", g->conflicts);
    add_rate(o, "replay_rate", g->replays, asked);
    add_rate(o, "conflict_rate", g->conflicts, asked);
}

static void show(struct op *op, const struct stats *s, int64_t since)
{
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_time(&o, "since", since);
    json_add_bool(&o, "truncated", s->truncated);
    json_open(&o, "total", '{');
    show_group(&o, s, &s->all, SIZE_MAX);
    json_close(&o, '}');
    json_open(&o, "workflows", '[');
    for (size_t i = 0; i < s->group_count; i++) {
        json_open(&o, NULL, '{');
        json_add_text(&o, "workflow_id", s->groups[i].workflow_id);
        show_group(&o, s, &s->groups[i], i);
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
}

static enum err approval_stats(struct op *op, struct read_tx *tx)
{
    const struct approval_stats_input *in = op->input;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e != ERR_OK)
        return e;
    struct stats *s = arena_alloc(&tx->arena, sizeof(*s));
    struct sample *samples = arena_alloc(&tx->arena, APPROVAL_STATS_ROWS_MAX * sizeof(*samples));
    if (s == NULL || samples == NULL)
        return problem_set(&op->problem, ERR_NO_MEMORY, "No memory for the approvals");
    s->in = in;
    s->tx = tx;
    s->samples = samples;
    int64_t since = tx->now_ms - in->days * 24 * 3600 * 1000;
    e = approvals_facts(tx->db, tenant->num, since, APPROVAL_STATS_ROWS_MAX + 1, add_fact, s);
    if (e == ERR_OK && s->full)
        e = ERR_NO_MEMORY;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the approvals");
    qsort(s->samples, s->sample_count, sizeof(*s->samples), by_length);
    show(op, s, since);
    return ERR_OK;
}

const struct use_case UC_APPROVAL_STATS = {.name = "approval_stats", .read = approval_stats};
