/* The limits that apply to a start. */
#include "core/admission/run_limits.h"

#include "core/admission/dispatch_due.h"
#include "core/txn/release_rates.h"

enum err limits_find_scope(struct db *db, const struct limit_rule *rule, const struct json *input,
                           struct buf *key, struct limit_key_row *scope)
{
    buf_clear(key);
    if (rule->path.len > 0)
        limit_key(rule->path, input, key);
    scope->path = rule->path;
    scope->key = key->len > 0 ? buf_str(key) : STR("");
    return buf_ok(key) ? limit_keys_find(db, scope) : ERR_NO_MEMORY;
}

static enum err newest_definition(struct read_tx *tx, int64_t tenant, struct str workflow_id,
                                  struct problem *p, const struct definition **ret)
{
    struct workflow_newest newest;
    *ret = NULL;
    enum err e = read_tx_newest(tx, tenant, workflow_id, &newest);
    if (e != ERR_OK || !newest.found)
        return e;
    return read_tx_definition(tx, tenant, workflow_id, newest.version, p, ret);
}

static int64_t limit_by_path(const struct definition *newest, struct str path)
{
    for (size_t i = 0; newest != NULL && i < newest->limit_count; i++) {
        if (str_eq(newest->limits[i].path, path))
            return newest->limits[i].limit;
    }
    return -1;
}

enum err limit_in_force(struct read_tx *tx, const struct limit_key_row *scope, struct problem *p,
                        int64_t *ret)
{
    const struct definition *newest;
    enum err e = newest_definition(tx, scope->tenant, scope->workflow_id, p, &newest);
    *ret = e == ERR_OK ? limit_by_path(newest, scope->path) : -1;
    return e;
}

static enum err load_scope(struct limits_of_run *l, struct tx *tx, const struct tenant *tenant,
                           const struct definition *def, const struct limit_rule *rule,
                           const struct json *input)
{
    struct limit_key_row *scope = &l->scopes[l->scope_count++];
    struct buf key;
    buf_init(&key, LIMIT_KEY_MAX);
    *scope = (struct limit_key_row){.tenant = tenant->num, .workflow_id = def->id};
    enum err e = limits_find_scope(tx->db, rule, input, &key, scope);
    if (e == ERR_OK && !arena_keep(&tx->arena, &scope->key))
        e = ERR_NO_MEMORY;
    buf_release(&key);
    return e;
}

enum err limits_load(struct limits_of_run *l, struct tx *tx, const struct tenant *tenant,
                     const struct definition *def, const struct json *input, enum at_limit at_limit,
                     struct problem *p)
{
    assert(def->limit_count <= LIMITS_PER_RUN_MAX);
    bool queue_first = false;
    const struct definition *newest = def;
    enum err e = dispatch_concerns(tx, tenant, &queue_first);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the queue");
    if (def->limit_count > 0)
        e = newest_definition(&tx->read, tenant->num, def->id, p, &newest);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read the newest version of the workflow");
    l->scope_count = 0;
    for (size_t i = 0; i < def->limit_count; i++) {
        const struct limit_rule *rule = &def->limits[i];
        e = load_scope(l, tx, tenant, def, rule, input);
        if (e != ERR_OK)
            return problem_set(p, e, "Cannot read the limits of the workflow");
        enum at_limit own = rule->at_limit != AT_LIMIT_COUNT ? rule->at_limit : tenant->at_limit;
        l->states[i] = (struct limit_state){
            .current = l->scopes[i].active_runs,
            .max = limit_by_path(newest, rule->path),
            .ahead = queue_first ? l->scopes[i].queued_runs : 0,
            .at_limit = at_limit != AT_LIMIT_COUNT ? at_limit : own,
        };
    }
    l->states[def->limit_count] = (struct limit_state){
        .current = tenant->active_runs,
        .max = tenant->max_concurrent_runs,
        .ahead = queue_first ? tenant->queued_runs : 0,
        .at_limit = at_limit != AT_LIMIT_COUNT ? at_limit : tenant->at_limit,
    };
    return ERR_OK;
}

enum err limits_load_again(struct limits_of_run *l, struct tx *tx, const struct tenant *tenant,
                           const struct definition *def, const struct run *run,
                           enum at_limit at_limit, struct problem *p)
{
    struct json *input = NULL;
    enum err e = json_read_kept(run->input, &input);
    if (e != ERR_OK)
        return problem_set(p, e, "The run's stored input cannot be read");
    e = limits_load(l, tx, tenant, def, input, at_limit, p);
    json_free(input);
    return e;
}

struct admission limits_decide(const struct limits_of_run *l)
{
    return admission_decide(l->states, l->scope_count + 1);
}

enum err limits_reject(const struct limits_of_run *l, size_t which, struct tx *tx,
                       const struct tenant *tenant, struct problem *p)
{
    const struct limit_state *limit = &l->states[which];
    const struct limit_key_row *scope = which < l->scope_count ? &l->scopes[which] : NULL;
    /* Slots that queued runs are about to take are as good as taken. */
    int64_t current = MIN(limit->current + limit->ahead, MAX(limit->current, limit->max));
    static const char FORMAT[] =
        "%lld of %lld runs of %s %.*s%s%.*s%s%.*s%s are active. Try again when one has ended.";
    bool keyed = scope != NULL && scope->path.len > 0;
    struct str owner = scope != NULL ? scope->workflow_id : tenant->id;
    struct str path = keyed ? scope->path : STR("");
    struct str key = keyed ? scope->key : STR("");
    (void)problem_set(p, ERR_MAX_CONCURRENT_RUNS, FORMAT, (long long)current, (long long)limit->max,
                      scope != NULL ? "workflow" : "tenant", STR_ARG(owner), keyed ? " with " : "",
                      (int)MIN(path.len, (size_t)64), path.ptr, keyed ? " = \"" : "",
                      (int)MIN(key.len, (size_t)64), key.ptr, keyed ? "\"" : "");
    if (scope == NULL)
        problem_add_limit(p, "tenant", "concurrent-runs", current, limit->max);
    else if (!keyed)
        problem_add_limit(p, "workflow", "concurrent-runs-of-workflow", current, limit->max);
    else
        problem_add_limit(p, "key", "concurrent-runs-of-key", current, limit->max);
    p->retry_after_s = (int)release_rates_retry_after_s(tx->release_rates, tenant->num,
                                                        scope != NULL ? scope->num : 0, tx->now_ms);
    return p->err;
}

int64_t limits_first_full(const struct limits_of_run *l)
{
    for (size_t i = 0; i < l->scope_count; i++) {
        assert(l->scopes[i].num > 0);
        if (l->states[i].max >= 0 && l->states[i].current >= l->states[i].max)
            return l->scopes[i].num;
    }
    return 0;
}

enum err limits_store(struct limits_of_run *l, struct tx *tx, struct str *ret_list)
{
    struct limit_key_list list = {.count = 0};
    enum err e = ERR_OK;
    for (size_t i = 0; i < l->scope_count && e == ERR_OK; i++) {
        if (l->scopes[i].num == 0)
            e = limit_keys_insert(tx->db, &l->scopes[i]);
        if (e == ERR_OK)
            limit_key_list_add(&list, l->scopes[i].num);
    }
    *ret_list = STR_NONE;
    if (e != ERR_OK || list.count == 0)
        return e;
    char text[LIMIT_KEY_LIST_TEXT_MAX];
    *ret_list = arena_str(&tx->arena, limit_key_list_text(&list, text));
    return ret_list->ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}
