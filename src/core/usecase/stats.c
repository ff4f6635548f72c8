/* What happened in the last minutes, of a tenant or of all of them. Minutes that are over are rows;
 * the present one is still in memory. */
#include "core/usecase/stats.h"

#include "core/txn/render.h"
#include "core/txn/stats/minute_stats.h"
#include "core/usecase/use_cases.h"
#include "store/minutes.h"

struct series {
    struct arena *arena;
    int64_t from;
    int64_t length;
    struct minute_counts *minutes[MINUTES_OF_DAY]; /* NULL: without traffic */
    struct minute_counts total;
    bool full; /* no memory */
};

/* --- reading --- */

/* NULL: it is not one of them, or there is no memory. */
static struct minute_counts *counts_at(struct series *s, int64_t minute, bool *ret_known)
{
    if (minute < s->from || minute >= s->from + s->length)
        return NULL;
    struct minute_counts **place = &s->minutes[minute - s->from];
    *ret_known = *place != NULL;
    if (*place == NULL)
        *place = arena_alloc(s->arena, sizeof(**place));
    if (*place == NULL)
        s->full = true;
    else if (!*ret_known)
        **place = (struct minute_counts){0};
    return *place;
}

static void add_row(void *ctx, int64_t minute, const struct minute_counts *counts)
{
    bool known;
    struct minute_counts *c = counts_at(ctx, minute, &known);
    if (c != NULL)
        minute_counts_add(c, counts);
}

static void add_counted(void *ctx, int64_t minute, const struct minute_counts *counts, bool adds)
{
    bool known;
    struct minute_counts *c = counts_at(ctx, minute, &known);
    if (c != NULL && (adds || !known))
        minute_counts_add(c, counts);
}

static enum err series_read(struct series *s, struct read_tx *tx, int64_t tenant, int64_t length)
{
    *s = (struct series){
        .arena = &tx->arena, .from = tx->now_ms / MINUTE_MS - length + 1, .length = length};
    assert(length <= MINUTES_OF_DAY);
    enum err e = minutes_list(tx->db, tenant, s->from, add_row, s);
    if (e != ERR_OK)
        return e;
    minute_stats_read(tx->minutes, tenant, add_counted, s);
    for (int64_t i = 0; i < length; i++) {
        if (s->minutes[i] != NULL)
            minute_counts_add(&s->total, s->minutes[i]);
    }
    return s->full ? ERR_NO_MEMORY : ERR_OK;
}

enum err stats_total(struct read_tx *tx, int64_t tenant, int64_t minutes, struct minute_counts *ret)
{
    struct series series;
    enum err e = series_read(&series, tx, tenant, minutes);
    if (e == ERR_OK)
        *ret = series.total;
    return e;
}

/* --- showing --- */

static void add_percentile(struct json_out *o, const char *name, const struct minute_counts *c,
                           int64_t percent)
{
    int64_t ms = minute_counts_percentile(c, percent);
    if (ms < 0)
        json_add_null(o, name);
    else
        json_add_int(o, name, ms);
}

static void add_buckets(struct json_out *o, const struct minute_counts *c)
{
    size_t count = WAIT_BUCKETS;
    while (count > 0 && c->waits[count - 1] == 0)
        count--;
    json_open(o, "buckets", '[');
    for (size_t i = 0; i < count; i++)
        json_add_int(o, NULL, c->waits[i]);
    json_close(o, ']');
}

void render_waits(struct json_out *o, const struct minute_counts *c, bool buckets)
{
    json_open(o, "waits", '{');
    json_add_int(o, "count", minute_counts_waits(c));
    add_percentile(o, "p50_ms", c, 50);
    add_percentile(o, "p95_ms", c, 95);
    add_percentile(o, "p99_ms", c, 99);
    if (buckets)
        add_buckets(o, c);
    json_close(o, '}');
}

void render_figures(struct json_out *o, const struct minute_counts *c, bool buckets)
{
    json_add_int(o, "starts", c->figures[MINUTE_STARTS]);
    json_open(o, "outcomes", '{');
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        if (run_has_ended(status))
            json_add_int(o, run_status_name(status), c->figures[minute_figure_of_end(status)]);
    }
    json_close(o, '}');
    json_add_int(o, "replays", c->figures[MINUTE_REPLAYS]);
    json_add_int(o, "mismatches", c->figures[MINUTE_MISMATCHES]);
    json_add_int(o, "refused", c->figures[MINUTE_REFUSED]);
    render_waits(o, c, buckets);
}

static void render_series(struct json_out *o, const struct series *s, int64_t now_ms, bool buckets)
{
    json_open(o, NULL, '{');
    json_add_time(o, "from", s->from * MINUTE_MS);
    json_add_time(o, "to", now_ms);
    json_open(o, "total", '{');
    render_figures(o, &s->total, buckets);
    json_close(o, '}');
    json_open(o, "minutes", '[');
    for (int64_t i = 0; i < s->length; i++) {
        if (s->minutes[i] == NULL)
            continue;
        json_open(o, NULL, '{');
        json_add_time(o, "at", (s->from + i) * MINUTE_MS);
        render_figures(o, s->minutes[i], buckets);
        json_close(o, '}');
    }
    json_close(o, ']');
    json_close(o, '}');
}

static enum err get_stats(struct op *op, struct read_tx *tx)
{
    const struct get_stats_input *in = op->input;
    int64_t num = MINUTES_OF_ALL;
    if (!str_is(op->caller.tenant, "*")) {
        struct tenant *tenant;
        enum err e = read_tx_tenant(tx, op, &tenant);
        if (e != ERR_OK)
            return e;
        num = tenant->num != 0 ? tenant->num : -1; /* one that is not stored has nothing */
    }
    struct series series;
    enum err e = series_read(&series, tx, num, in->minutes);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the counts");
    struct json_out o = json_out_to(&op->answer.body);
    render_series(&o, &series, tx->now_ms, in->buckets);
    return ERR_OK;
}

const struct use_case UC_GET_STATS = {.name = "get_stats", .read = get_stats};
