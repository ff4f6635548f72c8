/* Rows of several shards in one store. */
#include "store/copy/merge.h"

#include "store/columns.h"
#include "store/copy/merge_feed.h"
#include "store/copy/merge_numbers.h"
#include "store/run/late_index.h"
#include "store/run/slot_holders.h"

#include <stdlib.h>

enum which_rows {
    ALL_ROWS,
    OWN_ROWS,   /* not those that a tenant has where it does not live */
    CHAIN_ROWS, /* of the audit trail */
    FEED_ROWS,  /* `column` is a number of the feed */
    KEY_ROWS,   /* not those that a move has copied from shard 0 */
    FIRST_ROWS, /* of shard 0 */
    NO_ROWS,    /* they are made by merge_finish(), or by the server from other rows */
};

/* Every table, by name: one that nobody has thought of here must not be left behind. */
static const struct rule {
    const char *table;
    enum which_rows which;
    const char *column; /* with the number that is changed; NULL: none but the tenant's */
    bool gets_more;     /* when the merge is finished */
} RULES[] = {
    {.table = "api_keys"},
    {.table = "approval_votes"},
    {.table = "approvals"},
    {.table = "audit", .which = CHAIN_ROWS},
    {.table = "audit_chains", .gets_more = true},
    {.table = "audit_heads", .which = CHAIN_ROWS},
    {.table = "checkpoints"},
    {.table = "dedup"},
    {.table = "dedup_stats"},
    {.table = "dedup_totals"},
    {.table = "dedup_windows"},
    {.table = "deliveries"},
    {.table = "ended_sessions"},
    {.table = "entities"},
    {.table = "entity_generations"},
    {.table = "entity_starts"},
    {.table = "entity_states"},
    {.table = "entity_sweeps"},
    {.table = "entity_timers"},
    {.table = "entity_type_versions"},
    {.table = "entity_types"},
    {.table = "entity_updates"},
    {.table = "feed_marks", .which = NO_ROWS},
    {.table = "feed_packs", .which = FEED_ROWS, .column = "num"},
    {.table = "first_jobs"},
    {.table = "holding", .gets_more = true},
    {.table = "inbox"},
    {.table = "indexed", .which = NO_ROWS},
    {.table = "jobs"},
    {.table = "key_blocks", .which = NO_ROWS},
    {.table = "key_filters", .which = NO_ROWS},
    {.table = "key_records", .which = KEY_ROWS, .column = "num"},
    {.table = "key_segments", .which = NO_ROWS},
    {.table = "line_scopes"},
    {.table = "lines"},
    {.table = "map_items"},
    {.table = "minutes", .which = OWN_ROWS, .column = "tenant"},
    {.table = "moved_feeds", .which = NO_ROWS},
    {.table = "parked", .which = FEED_ROWS, .column = "feed"},
    {.table = "queue"},
    {.table = "run_blocks", .gets_more = true},
    {.table = "run_children"},
    {.table = "run_reruns"},
    {.table = "run_signals"},
    {.table = "runs"},
    {.table = "schedules"},
    {.table = "scopes"},
    {.table = "secrets", .which = FIRST_ROWS, .gets_more = true},
    {.table = "slots"},
    {.table = "suspensions"},
    {.table = "tenant_settings", .which = OWN_ROWS, .column = "tenant"},
    {.table = "tenants", .which = OWN_ROWS, .column = "num"},
    {.table = "timeline"},
    {.table = "timers"},
    {.table = "webhooks", .which = FEED_ROWS, .column = "feed_from"},
    {.table = "workflow_versions"},
    {.table = "workflows"},
};

enum { NOWHERE = COPY_COLUMNS_MAX };

struct places {
    size_t column; /* of the rule, in a row; NOWHERE: it has none */
    size_t tenant;
    size_t route;
    size_t counters;
};

struct merge {
    struct db *const *shards;
    size_t count;
    const struct copy_tables *tables;
    struct places places[ARRAY_LEN(RULES)];
    struct merge_tenants tenants;
    struct merge_feed *feeds; /* of each shard */
    int64_t highest;          /* no number above it was given */
};

/* --- tables --- */

static size_t place_of(const struct copy_table *t, const char *column)
{
    for (size_t i = 0; column != NULL && i < t->column_count; i++) {
        if (str_is(t->columns[i].name, column))
            return i;
    }
    return NOWHERE;
}

static enum err match_tables(struct merge *m, struct problem *p)
{
    for (size_t i = 0; i < m->tables->count; i++) {
        const struct copy_table *t = &m->tables->list[i];
        if (i >= ARRAY_LEN(RULES) || !str_is(t->name, RULES[i].table))
            return problem_set(p, ERR_INTERNAL, "The table %.*s cannot be merged",
                               STR_ARG(t->name));
        m->places[i] = (struct places){place_of(t, RULES[i].column), place_of(t, "tenant"),
                                       place_of(t, "route"), place_of(t, "counters")};
        if (RULES[i].column != NULL && m->places[i].column == NOWHERE)
            return problem_set(p, ERR_INTERNAL, "The table %s has no column %s", RULES[i].table,
                               RULES[i].column);
    }
    return ERR_OK;
}

bool merge_copies(const struct merge *m, size_t shard, size_t table)
{
    assert(table < m->tables->count);
    return RULES[table].which != NO_ROWS && (shard == 0 || RULES[table].which != FIRST_ROWS);
}

bool merge_is_exact(const struct merge *m, size_t table)
{
    assert(table < m->tables->count);
    return !RULES[table].gets_more && RULES[table].which != NO_ROWS;
}

/* --- what is known of the shards --- */

static enum err read_shards(struct merge *m, struct problem *p)
{
    enum err e = merge_tenants_read(m->shards, m->count, p, &m->tenants);
    if (e == ERR_OK)
        e = merge_numbers_check(m->shards, m->count, &m->tenants, p, &m->highest);
    if (e != ERR_OK)
        return e;
    m->highest = merge_tenants_number_chains(&m->tenants, m->highest);
    e = merge_feeds_read(m->shards, m->count, m->feeds);
    return e == ERR_OK ? e
                       : problem_set(p, e, "Cannot read the marks of the shards: %s", err_title(e));
}

enum err merge_new(struct db *const *shards, size_t count, const struct copy_tables *tables,
                   struct problem *p, struct merge **ret)
{
    struct merge *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return problem_set(p, ERR_NO_MEMORY, "Out of memory");
    m->shards = shards;
    m->count = count;
    m->tables = tables;
    m->feeds = calloc(count, sizeof(*m->feeds));
    enum err e =
        m->feeds != NULL ? match_tables(m, p) : problem_set(p, ERR_NO_MEMORY, "Out of memory");
    if (e == ERR_OK)
        e = read_shards(m, p);
    if (e == ERR_OK)
        *ret = m;
    else
        merge_free(m);
    return e;
}

void merge_free(struct merge *m)
{
    if (m == NULL)
        return;
    merge_tenants_release(&m->tenants);
    free(m->feeds);
    free(m);
}

/* --- a row --- */

static const struct merge_alias *alias_in(const struct merge *m, size_t shard,
                                          const struct db_value *value)
{
    return value->kind == DB_INT ? merge_tenants_find(&m->tenants, shard, value->number) : NULL;
}

static enum err was_copied(const struct merge *m, int64_t num, bool *ret)
{
    static const char SQL[] = "SELECT 1 FROM key_records WHERE num = $1";
    struct db_rows *rows = DB_QUERY(m->shards[0], SQL, DB_I(num));
    *ret = db_next(rows);
    return db_rows_end(rows);
}

static void add(struct db_value *value, int64_t shift)
{
    if (value->kind == DB_INT)
        value->number += shift;
}

enum err merge_row(const struct merge *m, size_t shard, size_t table, struct db_value *values,
                   bool *ret_keep)
{
    const struct rule *rule = &RULES[table];
    const struct places *at = &m->places[table];
    struct db_value none = DB_N();
    struct db_value *column = at->column != NOWHERE ? &values[at->column] : &none;
    const struct merge_alias *alias =
        at->tenant != NOWHERE ? alias_in(m, shard, &values[at->tenant]) : NULL;
    enum err e = ERR_OK;
    bool copied = false;
    *ret_keep = rule->which != OWN_ROWS || alias_in(m, shard, column) == NULL;
    if (rule->which == FEED_ROWS && at->counters != NOWHERE &&
        column->number <= m->feeds[shard].counters)
        values[at->counters] = DB_N(); /* they are folded in their shard, not in the target */
    if (rule->which == FEED_ROWS)
        add(column, m->feeds[shard].shift);
    if (rule->which == KEY_ROWS && shard > 0 && merge_is_of_shard_0(values[at->route].bytes)) {
        e = was_copied(m, column->number, &copied);
        *ret_keep = !copied;
    }
    if (alias != NULL)
        values[at->tenant].number = rule->which == CHAIN_ROWS ? alias->chain : alias->tenant;
    return e;
}

/* --- the end --- */

static enum err put_chains(const struct merge *m, struct db *target)
{
    static const char SQL[] = "INSERT INTO audit_chains (chain, tenant, hashed_as)"
                              " SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT)"
                              " WHERE EXISTS (SELECT 1 FROM audit WHERE tenant = $1)"
                              " OR EXISTS (SELECT 1 FROM audit_heads WHERE tenant = $1)";
    enum err e = ERR_OK;
    for (size_t i = 0; i < m->tenants.count && e == ERR_OK; i++) {
        const struct merge_alias *a = &m->tenants.list[i];
        e = DB_EXEC(target, SQL, NULL, DB_I(a->chain), DB_I(a->tenant), DB_I(a->num));
    }
    return e;
}

/* Workers hold leases that were signed with the keys of all shards. */
static enum err put_lease_key(struct db *target, struct str value)
{
    static const char SQL[] = "INSERT INTO secrets (name, value) VALUES ($1, $2)"
                              " ON CONFLICT (name) DO NOTHING";
    struct sha256 hash = sha256_of(value);
    struct buf name;
    buf_init(&name, 128);
    buf_put(&name, STR("lease."));
    buf_put_hex(&name, hash.bytes, SHA256_LEN);
    enum err e = buf_ok(&name)
                     ? DB_EXEC(target, SQL, NULL, DB_T(buf_str(&name)), DB_B(value.ptr, value.len))
                     : ERR_NO_MEMORY;
    buf_release(&name);
    return e;
}

static enum err put_lease_keys(const struct merge *m, struct db *target)
{
    static const char SQL[] = "SELECT value FROM secrets WHERE name = 'lease'"
                              " OR substr(name, 1, 6) = 'lease.' ORDER BY name";
    enum err e = ERR_OK;
    for (size_t i = 1; i < m->count && e == ERR_OK; i++) {
        struct db_rows *rows = db_query_values(m->shards[i], SQL, NULL, 0);
        while (e == ERR_OK && db_next(rows))
            e = put_lease_key(target, db_str(rows, 0));
        enum err ended = db_rows_end(rows);
        e = e == ERR_OK ? ended : e;
    }
    return e;
}

enum { RUNS_AT_ONCE = 1024 };

static enum err read_late_runs(struct db *db, int64_t after,
                               struct indexed_run ret[static RUNS_AT_ONCE], size_t *ret_count)
{
    static const char SQL[] = "SELECT tenant, num, CASE WHEN " RUN_HOLDS_SLOT " THEN 1 ELSE 0 END"
                              " FROM runs WHERE num > $1 ORDER BY num LIMIT $2";
    struct db_rows *rows = DB_QUERY(db, SQL, DB_I(after), DB_I(RUNS_AT_ONCE));
    size_t count = 0;
    while (db_next(rows))
        ret[count++] =
            (struct indexed_run){db_int(rows, 0), db_count(rows, 1), db_int(rows, 2) == 1};
    *ret_count = count;
    return db_rows_end(rows);
}

/* The index of a shard ends before its last runs; that of the store cannot end in several places.
 */
static enum err index_late_runs(struct db *db, struct db *target)
{
    struct indexed_run runs[RUNS_AT_ONCE];
    int64_t after = 0;
    size_t count = 0;
    enum err e = late_index_through(db, &after);
    do {
        if (e == ERR_OK)
            e = read_late_runs(db, after, runs, &count);
        if (e != ERR_OK || count == 0)
            return e;
        after = runs[count - 1].num;
        indexed_runs_sort(runs, count);
        e = late_index_add(target, runs, count, after);
    } while (count == RUNS_AT_ONCE);
    return e;
}

static enum err put_indexed(const struct merge *m, struct db *target)
{
    static const char SQL[] = "INSERT INTO indexed (name, through) VALUES ('idempotency', 0),"
                              " ('run_keys', 0), ('runs', 0), ('" NUMBERS_MARK "', $1)";
    static const char SQL_RUNS[] =
        "UPDATE indexed SET through = (SELECT COALESCE(MAX(num), 0) FROM runs)"
        " WHERE name = 'runs'";
    enum err e = DB_EXEC(target, SQL, NULL, DB_I(m->highest));
    for (size_t i = 0; i < m->count && e == ERR_OK; i++)
        e = index_late_runs(m->shards[i], target);
    return e == ERR_OK ? db_exec_values(target, SQL_RUNS, NULL, 0, NULL) : e;
}

static enum err check_keys(struct db *target, struct problem *p)
{
    static const char SQL[] = "SELECT t.id, i.key FROM idempotency i JOIN tenants t"
                              " ON t.num = i.tenant GROUP BY t.id, i.key HAVING count(*) > 1"
                              " LIMIT 1";
    struct db_rows *rows = db_query_values(target, SQL, NULL, 0);
    bool found = db_next(rows);
    if (found)
        (void)problem_set(p, ERR_STORE_FAILED,
                          "The tenant %.*s has used the idempotency key %.*s for two requests, one "
                          "of them about API keys or sign-in. One store keeps one. Release the key "
                          "on the source, remove the target, and start again.",
                          STR_ARG(db_str(rows, 0)), STR_ARG(db_str(rows, 1)));
    enum err e = db_rows_end(rows);
    return e == ERR_OK && found ? p->err : e;
}

enum err merge_finish(const struct merge *m, struct db *target, struct problem *p)
{
    enum err e = put_indexed(m, target);
    if (e == ERR_OK)
        e = merge_feeds_finish(m->shards, m->count, m->feeds, &m->tenants, target);
    if (e == ERR_OK)
        e = put_chains(m, target);
    if (e == ERR_OK)
        e = put_lease_keys(m, target);
    if (e == ERR_OK)
        e = check_keys(target, p);
    return e == ERR_OK || p->err != ERR_OK
               ? e
               : problem_set(p, e, "Cannot finish the target: %s", err_title(e));
}
