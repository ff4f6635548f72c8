/* Thousands of random histories of starts, ends, cancellations, changes of limits, rollbacks and
 * restarts against a simple model: never above a limit, never a slot lost, and the queue in the
 * order promised.
 *
 *   PAWL_SEED=17 engine_test_admission_model          one history, telling each call
 *   PAWL_HISTORIES=50000 engine_test_admission_model  more of them */
#include "engine/admission_history.h"

#include "base/log.h"
#include "engine/dispatch.h"

#include <sched.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HISTORIES = 1000 };
#else
enum { HISTORIES = 2500 };
#endif

enum {
    OPERATIONS = 40,
    CROWD_EVERY = 50, /* of so many histories one has long lines */
    CROWD_MAX = 330,
    BATCH_MAX = 6,
};

static struct history history; /* too large for a stack, and teardown must find it */

/* The file that every history begins with. */
static struct {
    char *bytes;
    size_t len;
} template;

/* --- the engine and its file --- */

/* Every look at the clock finds it later, so that what happens in one transaction is seen to be
 * before what happens in the next. */
static int64_t ticking_now_us(void *ctx)
{
    return atomic_fetch_add(&((struct rig *)ctx)->now_us, 1000);
}

/* As rig_setup(), but in memory where the machine has a folder for that: with commits that wait for
 * a disk there would be time for a hundred histories only. */
static struct rig *open_rig(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct folder *folder = calloc(1, sizeof(*folder));
    assert_true(rig != NULL && folder != NULL);
    (void)snprintf(folder->path, sizeof(folder->path), "%s/pawl-unit-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(folder->path));
    rig->folder = folder;
    rig->file = path_in(folder, "p.db");
    atomic_store(&rig->now_us, INT64_C(1700000000000000));
    atomic_store(&rig->mono_ns, INT64_C(1000000000000));
    rig->env = (struct env){ticking_now_us, rig_mono_ns, rig_random, rig};
    if (template.bytes != NULL)
        file_write(rig->file.text, template.bytes, template.len);
    rig_start(rig, 0);
    return rig;
}

static sqlite3_stmt *prepared(sqlite3 *raw, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(raw, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(raw));
    return stmt;
}

static void open_file(struct history *h)
{
    h->raw = raw_open(h->rig->file.text);
    h->runs =
        prepared(h->raw, "SELECT id, status, coalesce(started_at, -1) FROM runs ORDER BY num");
    h->tenants = prepared(h->raw, "SELECT id, active_runs, queued_runs FROM tenants ORDER BY id");
    h->scopes = prepared(h->raw, "SELECT t.id, s.workflow_id, s.path, s.key, s.active_runs,"
                                 " s.queued_runs FROM scopes s JOIN tenants t ON t.num = s.tenant");
}

static void close_file(struct history *h)
{
    if (h->raw == NULL)
        return;
    (void)sqlite3_finalize(h->runs);
    (void)sqlite3_finalize(h->tenants);
    (void)sqlite3_finalize(h->scopes);
    raw_close(h->raw);
    h->raw = NULL;
}

/* --- looking at what came of it --- */

static enum err look_whether_due(struct op *op, struct tx *tx)
{
    CONTAINER_OF(op, struct call, op)->runs = dispatch_is_due(tx);
    op->answer.changed_nothing = true;
    return ERR_OK;
}

static const struct use_case UC_IS_DUE = {
    .name = "is_due", .changes = true, .run = look_whether_due};

/* Returns when the writer has looked at all of the queue that it had to. */
static void wait_for_dispatch(struct history *h)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    bool due = true;
    while (due) {
        struct call c;
        call_init(&c, h->rig, &UC_IS_DUE);
        must_perform(&c);
        due = c.runs != 0;
        call_release(&c);
        if (due)
            (void)sched_yield();
        if (real_seconds() >= until)
            differs(h, "the writer does not come to an end with the queue");
    }
}

static enum model_status status_of(const char *text)
{
    if (strcmp(text, "queued") == 0)
        return MODEL_QUEUED;
    for (enum model_status s = MODEL_SUCCEEDED; s <= MODEL_CANCELLED; s++) {
        if (strcmp(text, status_name(s)) == 0)
            return s;
    }
    return MODEL_ACTIVE;
}

static const char *text_at(sqlite3_stmt *stmt, int column)
{
    return (const char *)sqlite3_column_text(stmt, column);
}

static void check_runs(struct history *h)
{
    size_t count = 0;
    sqlite3_stmt *rows = h->runs;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        if (count == h->model.run_count)
            differs(h, "there are more than %zu runs", count);
        struct known_run *known = &h->known[count];
        enum model_status is = status_of(text_at(rows, 1));
        enum model_status should = h->model.runs[count].status;
        if (sqlite3_column_bytes(rows, 0) != sizeof(known->id.bytes) ||
            memcmp(sqlite3_column_blob(rows, 0), known->id.bytes, sizeof(known->id.bytes)) != 0)
            differs(h, "run %zu has another id", count);
        if (is != should)
            differs(h, "run %zu is %s and should be %s", count, status_name(is),
                    status_name(should));
        known->started_at = sqlite3_column_int64(rows, 2);
        count++;
    }
    (void)sqlite3_reset(rows);
    if (count != h->model.run_count)
        differs(h, "there are %zu runs and should be %zu", count, h->model.run_count);
}

/* Whoever began later, by the model, did not begin in an earlier transaction. */
static void check_order(struct history *h)
{
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        const struct model_tenant *t = &h->model.tenants[tenant];
        for (size_t i = h->order_checked[tenant] + 1; i < t->begun_count; i++) {
            size_t sooner = t->begun[i - 1];
            size_t later = t->begun[i];
            if (h->known[later].started_at < h->known[sooner].started_at)
                differs(h, "run %zu began before run %zu", later, sooner);
        }
        h->order_checked[tenant] = t->begun_count > 0 ? t->begun_count - 1 : 0;
    }
}

/* Above a limit it only ever goes down: it is there because the limit was lowered. (Of several
 * calls in one go, one may have lowered it after others had filled it.) */
static void check_limit(struct history *h, const char *what, int64_t active, int64_t max,
                        int64_t *was)
{
    if (h->calls <= 1 && max >= 0 && active > max && active > *was)
        differs(h, "%s has %lld active runs, %lld before, at a limit of %lld", what,
                (long long)active, (long long)*was, (long long)max);
    *was = active;
}

static void check_counters(struct history *h, const char *what, int64_t active, int64_t queued,
                           int64_t active_should, int64_t queued_should)
{
    if (active != active_should || queued != queued_should)
        differs(h, "%s counts %lld active and %lld queued, and not %lld and %lld", what,
                (long long)active, (long long)queued, (long long)active_should,
                (long long)queued_should);
}

static void check_tenants(struct history *h)
{
    sqlite3_stmt *rows = h->tenants;
    for (int i = 0; i < MODEL_TENANTS; i++) {
        const struct model_tenant *t = &h->model.tenants[i];
        if (sqlite3_step(rows) != SQLITE_ROW || strcmp(text_at(rows, 0), TENANTS[i]) != 0)
            differs(h, "there is no %s", TENANTS[i]);
        int64_t active = sqlite3_column_int64(rows, 1);
        check_counters(h, TENANTS[i], active, sqlite3_column_int64(rows, 2), t->active, t->queued);
        check_limit(h, TENANTS[i], active, t->settings.max_concurrent_runs, &h->tenant_active[i]);
    }
    (void)sqlite3_reset(rows);
}

static int place_of(const char *name, const char *const *names, int count)
{
    int i = 0;
    while (i < count && strcmp(name, names[i]) != 0)
        i++;
    assert_true(i < count);
    return i;
}

static void check_scopes(struct history *h)
{
    size_t stored = 0;
    size_t used = 0;
    sqlite3_stmt *rows = h->scopes;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        char what[64];
        (void)snprintf(what, sizeof(what), "%s %s '%s' = '%s'", text_at(rows, 0), text_at(rows, 1),
                       text_at(rows, 2), text_at(rows, 3));
        size_t at = model_scope(&h->model, place_of(text_at(rows, 0), TENANTS, MODEL_TENANTS),
                                place_of(text_at(rows, 1), WORKFLOWS, MODEL_WORKFLOWS),
                                place_of(text_at(rows, 2), MODEL_PATHS, MODEL_PATH_COUNT),
                                text_at(rows, 3));
        int64_t active = sqlite3_column_int64(rows, 4);
        check_counters(h, what, active, sqlite3_column_int64(rows, 5), h->model.scopes[at].active,
                       h->model.scopes[at].queued);
        check_limit(h, what, active, model_scope_max(&h->model, at), &h->scope_active[at]);
        stored++;
    }
    (void)sqlite3_reset(rows);
    for (size_t i = 0; i < h->model.scope_count; i++) {
        bool in_use = h->model.scopes[i].active + h->model.scopes[i].queued > 0;
        used += in_use;
        if (!in_use)
            h->scope_active[i] = 0;
    }
    if (stored != used)
        differs(h, "%zu scopes are kept and %zu are in use", stored, used);
}

#define HOLDS_SLOT "status IN ('pending', 'running', 'waiting', 'paused')"

/* What is kept besides, to find runs quickly: exactly what the runs say. */
static void check_lists(struct history *h)
{
    static const struct {
        const char *name;
        const char *kept;
        const char *should;
    } LISTS[] = {
        {"slots", "SELECT scope, run FROM slots",
         "SELECT j.value, r.num FROM runs r, json_each('[' || r.scopes || ']') j"
         " WHERE r.scopes IS NOT NULL AND r." HOLDS_SLOT},
        {"holding", "SELECT tenant, run FROM holding",
         "SELECT tenant, num FROM runs"
         " WHERE num <= (SELECT through FROM indexed WHERE name = 'runs') AND " HOLDS_SLOT},
        {"queue",
         "SELECT q.tenant, l.tenant, l.scopes, q.urgency, q.run"
         " FROM queue q JOIN lines l ON l.num = q.line",
         "SELECT tenant, tenant, coalesce(scopes, ''), -priority, num FROM runs"
         " WHERE status = 'queued'"},
        {"lines", "SELECT num, urgency, run FROM lines",
         "SELECT line, urgency, run FROM (SELECT line, urgency, run, row_number()"
         " OVER (PARTITION BY line ORDER BY urgency, run) AS place FROM queue) WHERE place = 1"},
        {"line_scopes", "SELECT scope, line FROM line_scopes",
         "SELECT j.value, l.num FROM lines l, json_each('[' || l.scopes || ']') j"},
    };
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        char sql[1000];
        (void)snprintf(sql, sizeof(sql),
                       "SELECT (SELECT count(*) FROM (%s EXCEPT %s)) +"
                       " (SELECT count(*) FROM (%s EXCEPT %s))",
                       LISTS[i].kept, LISTS[i].should, LISTS[i].should, LISTS[i].kept);
        int64_t wrong = raw_number(h->raw, sql);
        if (wrong != 0)
            differs(h, "%lld rows of %s are not as the runs say", (long long)wrong, LISTS[i].name);
    }
}

static void check_all(struct history *h)
{
    wait_for_dispatch(h);
    model_dispatch_all(&h->model);
    check_runs(h);
    check_order(h);
    check_tenants(h);
    check_scopes(h);
    h->calls = 0;
}

static void perform_and_check(struct history *h)
{
    perform_steps(h);
    check_all(h);
}

/* --- dice --- */

static size_t pick(struct history *h, size_t count)
{
    return (size_t)rng_below(&h->rng, count);
}

static bool one_in(struct history *h, size_t n)
{
    return pick(h, n) == 0;
}

static int64_t between(struct history *h, int64_t least, int64_t most)
{
    return least + (int64_t)pick(h, (size_t)(most - least + 1));
}

/* Most of a history is about one tenant and one or two of its workflows: that is where runs meet.
 */
static int pick_tenant(struct history *h)
{
    return one_in(h, 4) ? (int)pick(h, MODEL_TENANTS) : 0;
}

static int pick_workflow(struct history *h)
{
    return one_in(h, 4) ? (int)pick(h, MODEL_WORKFLOWS) : h->favourites[pick(h, 2)];
}

static enum at_limit pick_policy(struct history *h)
{
    static const enum at_limit POLICIES[] = {
        AT_LIMIT_QUEUE,         AT_LIMIT_QUEUE,         AT_LIMIT_QUEUE,  AT_LIMIT_QUEUE,
        AT_LIMIT_CANCEL_OLDEST, AT_LIMIT_CANCEL_OLDEST, AT_LIMIT_REJECT, AT_LIMIT_COALESCE};
    if (h->queues && !one_in(h, 8))
        return AT_LIMIT_QUEUE;
    return POLICIES[pick(h, ARRAY_LEN(POLICIES))];
}

/* A run that the engine has told of: an active one, unless `any`. False: there is none. */
static bool pick_run(struct history *h, bool any, size_t *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < h->model.run_count; i++) {
        if (!h->known[i].made || !(any || h->model.runs[i].status == MODEL_ACTIVE))
            continue;
        if (one_in(h, ++found))
            *ret = i;
    }
    return found > 0;
}

static int64_t pick_max_runs(struct history *h)
{
    if (one_in(h, 6))
        return -1;
    if (h->crowded && one_in(h, 3))
        return between(h, 10, 200);
    return one_in(h, 16) ? 0 : between(h, 1, 6);
}

static struct model_rule pick_rule(struct history *h, int path)
{
    int64_t limit = h->crowded && one_in(h, 2) ? between(h, 1, 200) : between(h, 1, 3);
    return (struct model_rule){path, limit, one_in(h, 2) ? AT_LIMIT_COUNT : pick_policy(h)};
}

/* --- calls at random --- */

static void plan_start(struct history *h)
{
    static const char *const KEYS[] = {"a", "b", ""};
    if (h->key_count > 0 && one_in(h, 8)) {
        struct used_key *used = &h->keys[pick(h, h->key_count)];
        if (used->kept && one_in(h, 5))
            make_mismatch(h, used);
        else
            (void)make_start(h, &used->start, used);
        return;
    }
    struct model_start start = {.tenant = pick_tenant(h),
                                .workflow = pick_workflow(h),
                                .priority = between(h, -1, 1),
                                .at_limit = one_in(h, 2) ? AT_LIMIT_COUNT : pick_policy(h)};
    for (int path = MODEL_BY_K; path < MODEL_PATH_COUNT; path++)
        (void)snprintf(start.keys[path], MODEL_KEY_MAX, "%s", KEYS[pick(h, ARRAY_LEN(KEYS))]);
    struct used_key *used = NULL;
    if (h->key_count < KEYS_MAX && one_in(h, 5)) {
        used = &h->keys[h->key_count++];
        used->start = start;
        (void)snprintf(used->text, sizeof(used->text), "key-%zu", h->key_count);
    }
    (void)make_start(h, &start, used);
}

static void plan_settings(struct history *h)
{
    int tenant = pick_tenant(h);
    struct model_settings settings = h->model.tenants[tenant].settings;
    if (!one_in(h, 4))
        settings.max_concurrent_runs = pick_max_runs(h);
    if (one_in(h, 4))
        settings.max_queued_runs = one_in(h, 2) ? -1 : between(h, 0, 8);
    if (one_in(h, 4))
        settings.at_limit = pick_policy(h);
    if (one_in(h, 4))
        settings.weight = between(h, 1, 3);
    make_settings(h, tenant, settings);
}

/* Other limits, and now and then other rules. */
static void plan_version(struct history *h)
{
    int tenant = pick_tenant(h);
    int workflow = pick_workflow(h);
    struct model_workflow w = h->model.tenants[tenant].workflows[workflow];
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i] = pick_rule(h, w.rules[i].path);
    if (one_in(h, 2)) {
        bool used[MODEL_PATH_COUNT] = {false};
        size_t count = pick(h, MODEL_RULES_MAX + 1);
        w.rule_count = 0;
        while (w.rule_count < count) {
            int path = (int)pick(h, MODEL_PATH_COUNT);
            if (!used[path])
                w.rules[w.rule_count++] = pick_rule(h, path);
            used[path] = true;
        }
    }
    make_version(h, tenant, workflow, w);
}

static void plan_step(struct history *h)
{
    size_t planned = h->step_count;
    size_t dice = pick(h, 100);
    size_t run;
    int tenant = pick_tenant(h);
    if (dice < 22 && pick_run(h, one_in(h, 8), &run))
        (void)make_finish(h, run, one_in(h, 4));
    else if (dice >= 22 && dice < 30 && pick_run(h, true, &run))
        make_cancel(h, run);
    else if (dice >= 30 && dice < 33 && h->has_before[tenant])
        make_rollback(h, tenant);
    else if (dice >= 33 && dice < 43)
        plan_settings(h);
    else if (dice >= 43 && dice < 48)
        plan_version(h);
    if (h->step_count == planned)
        plan_start(h);
}

/* --- operations --- */

/* A batch with this in it is rolled back, and its calls are made one by one. */
static enum err break_batch(struct op *op, struct tx *tx)
{
    (void)tx;
    return problem_set(&op->problem, ERR_INTERNAL, "broken on purpose");
}

static const struct use_case UC_BREAK = {.name = "break", .changes = true, .run = break_batch};

static void do_calls(struct history *h)
{
    bool breaks = !h->crowded && one_in(h, 20);
    size_t most = h->crowded || !(breaks || one_in(h, 4)) ? 1 : 2 + pick(h, BATCH_MAX - 1);
    now_doing(h, "%s", breaks ? "a batch that breaks" : "calls");
    h->model.queue_first = breaks;
    bool ended = false;
    while (h->step_count < most && !ended) {
        plan_step(h);
        ended = h->steps[h->step_count - 1].ends_batch;
    }
    if (breaks) {
        struct step *s = step_new(h, &UC_BREAK, 0);
        tell(s, "break");
        s->err = ERR_INTERNAL;
    }
    perform_steps(h);
}

/* The sleepers end one after the other, those that began first before the others. */
static void wake_sleepers(struct history *h)
{
    size_t sleepers[MODEL_RUNS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < h->model.run_count; i++) {
        if (h->model.runs[i].workflow != NAP || h->model.runs[i].status != MODEL_ACTIVE)
            continue;
        size_t at = count++;
        while (at > 0 && h->known[sleepers[at - 1]].started_at > h->known[i].started_at) {
            sleepers[at] = sleepers[at - 1];
            at--;
        }
        sleepers[at] = i;
    }
    for (size_t i = 0; i < count; i++)
        (void)model_end(&h->model, sleepers[i], MODEL_SUCCEEDED);
}

/* A second: the indexes are filled. Longer: whoever sleeps wakes up. */
static void do_time(struct history *h)
{
    bool sleepers_wake = one_in(h, 2);
    int64_t ms = sleepers_wake ? SLEEP_MS : 1000;
    now_doing(h, "%lld ms pass", (long long)ms);
    rig_pass_ms(h->rig, ms);
    if (sleepers_wake)
        wake_sleepers(h);
    settle(h->rig);
}

static void do_restart(struct history *h)
{
    now_doing(h, "a restart");
    close_file(h);
    rig_stop(h->rig);
    rig_start(h->rig, 0);
    open_file(h);
}

static void do_operation(struct history *h)
{
    size_t dice = pick(h, 100);
    if (dice < 6)
        do_time(h);
    else if (dice < 7)
        do_restart(h);
    else
        do_calls(h);
    if (h->tells && strcmp(h->doing, "calls") != 0)
        print_message("%3d  %s\n", h->operation, h->doing);
    check_all(h);
}

/* --- histories --- */

static struct history *begin_history(uint64_t seed)
{
    struct history *h = &history;
    memset(h, 0, sizeof(*h));
    h->seed = seed;
    h->rng.state = seed;
    h->rig = open_rig();
    open_file(h);
    now_doing(h, "at first");
    return h;
}

static int end_history(void **state)
{
    (void)state;
    struct history *h = &history;
    if (h->rig == NULL)
        return 0;
    close_file(h);
    void *rig = h->rig;
    h->rig = NULL;
    (void)rig_teardown(&rig);
    release_steps(h);
    return 0;
}

static struct model_workflow first_rules(struct history *h, int workflow)
{
    static const struct {
        size_t count;
        int paths[MODEL_RULES_MAX];
    } SHAPES[] = {
        [PLAIN] = {0, {0}},
        [KEYED] = {1, {MODEL_BY_K}},
        [BOTH] = {2, {MODEL_BY_K, MODEL_WHOLE}},
        [PAIR] = {2, {MODEL_BY_G, MODEL_BY_K}},
        [NAP] = {1, {MODEL_WHOLE}},
    };
    struct model_workflow w = {.rule_count = SHAPES[workflow].count};
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i] = pick_rule(h, SHAPES[workflow].paths[i]);
    return w;
}

static void prepare(struct history *h)
{
    h->queues = one_in(h, 2);
    for (size_t i = 0; i < ARRAY_LEN(h->favourites); i++)
        h->favourites[i] = (int)pick(h, MODEL_WORKFLOWS);
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        struct model_settings settings = {pick_max_runs(h), -1, pick_policy(h), 1};
        make_settings(h, tenant, settings);
        h->has_before[tenant] = false; /* these are its first */
        for (int workflow = 0; workflow < MODEL_WORKFLOWS; workflow++)
            make_version(h, tenant, workflow, first_rules(h, workflow));
    }
    perform_and_check(h);
}

/* Several hundred runs wait, in one line, in many lines for one limit, or for a limit each: more
 * than the writer starts or looks at in one go. */
static void gather_crowd(struct history *h)
{
    enum { ONE_LINE, ONE_LIMIT, MANY_LIMITS, KINDS };
    static const char *const NAMES[] = {"in one line", "for one limit", "for many limits"};
    size_t kind = pick(h, KINDS);
    now_doing(h, "a crowd gathers %s", NAMES[kind]);
    int workflow = kind == ONE_LIMIT ? BOTH : KEYED;
    struct model_workflow w = first_rules(h, workflow);
    for (size_t i = 0; i < w.rule_count; i++)
        w.rules[i].limit = kind == MANY_LIMITS ? 1 : between(h, 1, 3);
    int64_t max = kind == MANY_LIMITS ? -1 : between(h, 1, 20);
    make_settings(h, 0, (struct model_settings){max, -1, AT_LIMIT_QUEUE, 1});
    make_version(h, 0, workflow, w);
    perform_and_check(h);
    size_t count = CROWD_MAX - pick(h, 100);
    for (size_t i = 0; i < (kind == MANY_LIMITS ? 2 * count : count); i++) {
        struct model_start start = {
            .workflow = workflow, .priority = between(h, -1, 1), .at_limit = AT_LIMIT_QUEUE};
        (void)snprintf(start.keys[MODEL_BY_K], MODEL_KEY_MAX, "k%d",
                       kind == ONE_LINE ? 0 : (int)(i % count));
        (void)make_start(h, &start, NULL);
        if (h->step_count == ROUND_MAX)
            perform_steps(h);
    }
    perform_and_check(h);
}

static void live_through(uint64_t seed, bool tells)
{
    struct history *h = begin_history(seed);
    h->tells = tells;
    h->crowded = seed % CROWD_EVERY == 0;
    prepare(h);
    if (h->crowded)
        gather_crowd(h);
    for (h->operation = 1; h->operation <= OPERATIONS; h->operation++)
        do_operation(h);
    now_doing(h, "in the end");
    check_lists(h);
    (void)end_history(NULL);
}

static uint64_t number_from(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static void random_histories_go_as_the_model_says(void **state)
{
    (void)state;
    uint64_t only = number_from("PAWL_SEED");
    uint64_t last = number_from("PAWL_HISTORIES");
    if (last == 0)
        last = HISTORIES;
    for (uint64_t seed = only > 0 ? only : 1; seed <= (only > 0 ? only : last); seed++)
        live_through(seed, only > 0);
}

/* --- all of it --- */

static int make_template(void **state)
{
    (void)state;
    log_setup(LOG_TEXT, LOG_ERROR, &ENV_SYSTEM);
    struct rig *rig = open_rig();
    rig_stop(rig);
    template.bytes = file_read(rig->file.text, &template.len);
    void *over = rig;
    (void)rig_teardown(&over);
    return 0;
}

static int free_template(void **state)
{
    (void)state;
    free(template.bytes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_histories_go_as_the_model_says, end_history),
    };
    return cmocka_run_group_tests(tests, make_template, free_template);
}
