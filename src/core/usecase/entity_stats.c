/* How the window in which a type's keys are known fits the duplicates that come: from these numbers
 * an operator can choose it. They are at most a second behind. */
#include "core/entity/entity_txn.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"
#include "store/entity/dedup.h"

struct shown_type {
    struct entity_type type;
    struct entity_version newest;
    struct dedup_counts counts;
    int64_t since;
};

static enum err load(struct op *op, struct read_tx *tx, struct shown_type *ret)
{
    const struct entity_type_input *in = op->input;
    struct tenant *tenant;
    bool found = false;
    enum err e = entity_type_load(op, tx, in->type, &tenant, &ret->type);
    if (e != ERR_OK)
        return e;
    e = entity_versions_find(tx->db, ret->type.num, ret->type.latest_version, &tx->arena, &found,
                             &ret->newest);
    if (e == ERR_OK)
        e = found ? dedup_counts_find(tx->db, ret->type.num, &ret->counts, &ret->since)
                  : ERR_INTERNAL;
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot read the statistics");
}

static void show_bucket(struct json_out *o, enum dedup_bucket bucket)
{
    int64_t up_to_s = dedup_bucket_up_to_s(bucket);
    json_add_text(o, "age", str_of(dedup_bucket_name(bucket)));
    if (up_to_s >= 0)
        json_add_int(o, "up_to_s", up_to_s);
    else
        json_add_null(o, "up_to_s");
}

static void show_histogram(struct json_out *o, const struct dedup_counts *c)
{
    json_open(o, "histogram", '[');
    for (enum dedup_bucket bucket = 0; bucket < DEDUP_BUCKETS; bucket++) {
        json_open(o, NULL, '{');
        show_bucket(o, bucket);
        json_add_int(o, "duplicates", c->duplicates[bucket]);
        json_add_int(o, "late", c->late[bucket]);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* By what age that share of the duplicates had come. */
static void show_share(struct json_out *o, const char *name, const struct dedup_counts *c,
                       int percent)
{
    enum dedup_bucket bucket = dedup_share_came_by(c, percent);
    if (bucket == DEDUP_BUCKETS) {
        json_add_null(o, name);
        return;
    }
    json_open(o, name, '{');
    show_bucket(o, bucket);
    json_close(o, '}');
}

static enum err entity_stats(struct op *op, struct read_tx *tx)
{
    struct shown_type t = {.since = -1};
    enum err e = load(op, tx, &t);
    if (e != ERR_OK)
        return e;
    const struct dedup_counts *c = &t.counts;
    int64_t duplicates = dedup_duplicates(c);
    int64_t late = dedup_late(c);
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_text(&o, "type", t.type.id);
    json_add_time(&o, "since", t.since);
    json_add_int(&o, "window_s", t.newest.rules.dedup_window_ms / 1000);
    json_add_int(&o, "max_keys", t.newest.rules.dedup_max_keys);
    json_add_int(&o, "signals_with_key", c->keyed + duplicates);
    json_add_int(&o, "duplicates", duplicates);
    json_add_int(&o, "late_duplicates", late);
    json_add_name(&o, "late_share");
    json_put_double(o.buf, late > 0 ? (double)late / (double)(duplicates + late) : 0);
    o.comma = true;
    json_add_int(&o, "evicted_by_age", c->evicted_by_age);
    json_add_int(&o, "evicted_by_count", c->evicted_by_count);
    json_open(&o, "duplicates_came_within", '{');
    show_share(&o, "p50", c, 50);
    show_share(&o, "p99", c, 99);
    show_share(&o, "max", c, 100);
    json_close(&o, '}');
    show_histogram(&o, c);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_ENTITY_STATS = {.name = "entity_stats", .read = entity_stats};
