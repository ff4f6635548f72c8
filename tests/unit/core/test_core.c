/* The core has no state of its own: the same calls give the same answers and rows, and two cores
 * live side by side. Ops that come while a batch runs are part of it. What has joined a commit that
 * fails is decided again, and background work ends its turn by the clock that the core is given. */
#include "store/folder.h"

#include "base/limits.h"
#include "base/metrics.h"
#include "core/core.h"
#include "core/txn/replay_stats.h"
#include "core/usecase/use_cases.h"
#include "fault_support/memory.h"

#include <sqlite3.h>

enum { NOW_MS = 1800000000 };

struct fixture {
    const char *path;
    struct db *db;
    struct core *core;
    struct replay_stats *stats;
    struct metrics *registry;
    int64_t calls;
    struct buf answers; /* one line for each op */
};

static struct core_call next_call(struct fixture *f)
{
    struct core_call call = {.now_us = (NOW_MS + f->calls * 10) * INT64_C(1000),
                             .mono_ms = f->calls * 10};
    memset(call.seed.bytes, (int)(++f->calls & 0x7F), sizeof(call.seed.bytes));
    return call;
}

static int64_t stopped_ns(void *ctx)
{
    (void)ctx;
    return 0;
}

static const struct env METER = {.mono_ns = stopped_ns};

static void fixture_open_with(struct fixture *f, const char *path, const struct env *meter,
                              struct claim_source claims)
{
    static const struct metric_spec FAILURES = {
        "failures", "Failures.", METRIC_COUNTER, {"work", NULL}, NULL};
    *f = (struct fixture){.path = path};
    buf_init(&f->answers, MIB);
    f->db = open_writer(path);
    f->stats = replay_stats_new();
    f->registry = metrics_new();
    struct core_config config = {.db = f->db,
                                 .meter = meter,
                                 .claims = claims,
                                 .stats = f->stats,
                                 .cleanup_failures = metrics_declare(f->registry, &FAILURES)};
    struct core_call call = next_call(f);
    struct problem p;
    problem_init(&p);
    assert_ok(core_open(&config, &call, &p, &f->core));
    problem_release(&p);
}

static void fixture_open(struct fixture *f, const char *path)
{
    fixture_open_with(f, path, &METER, (struct claim_source){0});
}

static void fixture_close(struct fixture *f)
{
    core_close(f->core);
    replay_stats_free(f->stats);
    metrics_free(f->registry);
    db_close(f->db);
    buf_release(&f->answers);
}

static const struct caller CALLER = {.tenant = {"acme", 4},
                                     .actor = {"me", 2},
                                     .peer = {"here", 4},
                                     .role = ROLE_ADMIN,
                                     .creates_tenant = true};

static void apply(struct fixture *f, struct op *op)
{
    struct core_call call = next_call(f);
    op->caller = CALLER;
    assert_ok(core_apply(f->core, &call, op));
    buf_put(&f->answers, str_of(err_code(op->err)));
    buf_put_char(&f->answers, ' ');
    buf_put(&f->answers, buf_str(&op->answer.body));
    buf_put_char(&f->answers, '\n');
    effects_forget(core_effects(f->core));
}

static void put_workflow_of(struct fixture *f, const char *text)
{
    struct problem p;
    problem_init(&p);
    struct json *json = json_value_of(str_of(text));
    struct definition *def = NULL;
    assert_ok(definition_parse(json, STR("w"), &p, &def));
    struct op op;
    op_init(&op, &UC_PUT_WORKFLOW);
    struct put_workflow_input in = {STR("w"), def, str_of(text), sha256_of(str_of(text))};
    op.input = &in;
    apply(f, &op);
    op_release(&op);
    definition_free(def);
    json_free(json);
    problem_release(&p);
}

static void put_workflow(struct fixture *f)
{
    put_workflow_of(f, "{\"steps\":[{\"name\":\"s\",\"type\":\"sleep\",\"duration_ms\":15},"
                       "{\"name\":\"t\",\"type\":\"task\",\"handler\":\"h\",\"needs\":[\"s\"]}]}");
}

static void start(struct fixture *f, const char *key)
{
    struct op op;
    op_init(&op, &UC_START_RUN);
    struct start_run_input in = {.workflow_id = STR("w"),
                                 .input_text = STR("null"),
                                 .labels = STR("{}"),
                                 .at_limit = AT_LIMIT_COUNT,
                                 .start_at = -1};
    op.input = &in;
    op.idem.key = str_of(key);
    op.idem.route = STR("POST /v1/runs");
    op.idem.fingerprint = sha256_of(op.idem.key);
    op.idem.has_fingerprint = true;
    apply(f, &op);
    op_release(&op);
}

static void background(struct fixture *f)
{
    struct core_call call = next_call(f);
    assert_ok(core_background(f->core, &call));
    assert_true(core_background_wait_ms(f->core, call.now_us / 1000, call.mono_ms) >= 0);
    effects_forget(core_effects(f->core));
}

/* One step of a history in which runs start, are replayed, sleep and get jobs. */
static void history_step(struct fixture *f, int step)
{
    static const char *const KEYS[] = {"a", "b", "a", "c"};
    if (step == 0)
        put_workflow(f);
    else if (step % 2 == 1)
        start(f, KEYS[(size_t)step / 2 % ARRAY_LEN(KEYS)]);
    else
        background(f);
}

enum { STEPS = 16 };

/* --- the contents of a store --- */

static void put_table(sqlite3 *conn, const char *table, struct buf *out)
{
    char sql[256];
    sqlite3_stmt *rows = NULL;
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\"", table);
    assert_int_equal(sqlite3_prepare_v2(conn, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        buf_put(out, str_of(table));
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const unsigned char *bytes = sqlite3_column_blob(rows, i);
            buf_put_char(out, '|');
            for (int n = 0; n < sqlite3_column_bytes(rows, i); n++)
                buf_printf(out, "%02x", bytes[n]);
        }
        buf_put_char(out, '\n');
    }
    (void)sqlite3_finalize(rows);
}

static void put_contents(const char *path, struct buf *out)
{
    sqlite3 *conn = NULL;
    sqlite3_stmt *tables = NULL;
    assert_int_equal(sqlite3_open_v2(path, &conn, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    static const char SQL[] = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    assert_int_equal(sqlite3_prepare_v2(conn, SQL, -1, &tables, NULL), SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW)
        put_table(conn, (const char *)sqlite3_column_text(tables, 0), out);
    (void)sqlite3_finalize(tables);
    (void)sqlite3_close(conn);
}

/* Closes both and compares what they have answered and kept. */
static void assert_same(struct fixture *a, struct fixture *b)
{
    struct buf kept[2];
    struct fixture *const both[] = {a, b};
    assert_true(buf_ok(&a->answers) && buf_ok(&b->answers));
    buf_put_char(&a->answers, '\0');
    buf_put_char(&b->answers, '\0');
    assert_non_null(strstr(a->answers.ptr, "\"created\":true"));
    assert_non_null(strstr(a->answers.ptr, "\"created\":false"));
    assert_string_equal(a->answers.ptr, b->answers.ptr);
    for (size_t i = 0; i < 2; i++) {
        fixture_close(both[i]);
        buf_init(&kept[i], 16 * MIB);
        put_contents(both[i]->path, &kept[i]);
        buf_put_char(&kept[i], '\0');
        assert_true(buf_ok(&kept[i]));
    }
    assert_non_null(strstr(kept[0].ptr, "jobs|"));
    assert_string_equal(kept[0].ptr, kept[1].ptr);
    buf_release(&kept[0]);
    buf_release(&kept[1]);
}

static void the_same_history_gives_the_same_answers_and_rows(void **state)
{
    struct path paths[] = {path_in(*state, "a.db"), path_in(*state, "b.db")};
    struct fixture f[2];
    for (size_t i = 0; i < 2; i++) {
        fixture_open(&f[i], paths[i].text);
        for (int step = 0; step < STEPS; step++)
            history_step(&f[i], step);
    }
    assert_same(&f[0], &f[1]);
}

static void two_cores_in_one_process_do_not_touch_each_other(void **state)
{
    struct path paths[] = {path_in(*state, "a.db"), path_in(*state, "b.db")};
    struct fixture f[2];
    for (size_t i = 0; i < 2; i++)
        fixture_open(&f[i], paths[i].text);
    for (int step = 0; step < STEPS; step++) {
        history_step(&f[0], step);
        history_step(&f[1], step);
    }
    assert_same(&f[0], &f[1]);
}

/* A checkpoint whose sync failed is no commit of ours, and yet nothing may be acknowledged. */
static void after_a_failure_between_calls_nothing_is_acknowledged(void **state)
{
    struct path path = path_in(*state, "a.db");
    struct fixture f;
    fixture_open(&f, path.text);
    put_workflow(&f);
    start(&f, "before");
    core_note_failure(f.core, ERR_STORE_FAILED);
    assert_true(core_failed(f.core));
    buf_clear(&f.answers);
    start(&f, "after");
    start(&f, "before");
    assert_string_equal(f.answers.ptr, "STORE_FAILED \nSTORE_FAILED \n");
    assert_true(core_failed(f.core));
    fixture_close(&f);
}

/* --- claims that join --- */

/* One that waits, and after whose first job a call of the store fails. */
struct claimer {
    struct op op;
    struct claim_input in;
    struct str queue;
    atomic_size_t waiting;
    int64_t fails_at; /* of the calls that follow, from 1 */
    int runs;
};

static enum err claim_then_fail(struct op *op, struct tx *tx)
{
    struct claimer *c = op->owner;
    enum err e = UC_CLAIM_JOBS.write(op, tx);
    if (++c->runs == 1)
        failing_arm(
            &(struct fault){.nth = c->fails_at, .err = ERR_STORE_BUSY, .access = DB_WRITER});
    return e;
}

static const struct use_case UC_CLAIM_THEN_FAIL = {.name = "test_claim", .write = claim_then_fail};

static struct op *take_claimer(void *ctx, int64_t tenant, struct str queue)
{
    struct claimer *c = ctx;
    (void)tenant;
    assert_true(str_eq(queue, c->queue));
    return atomic_exchange(&c->waiting, 0) > 0 ? &c->op : NULL;
}

static void claimer_wait(struct claimer *c, int64_t fails_at)
{
    c->queue = STR("default");
    c->in = (struct claim_input){.worker_id = STR("worker"),
                                 .queues = &c->queue,
                                 .queue_count = 1,
                                 .max = 1,
                                 .lease_ms = 60000};
    op_init(&c->op, &UC_CLAIM_THEN_FAIL);
    c->op.caller = CALLER;
    c->op.input = &c->in;
    c->op.owner = c;
    c->runs = 0;
    c->fails_at = fails_at;
    atomic_store(&c->waiting, 1);
}

static int64_t jobs_in(struct fixture *f, const char *state)
{
    static const char SQL[] = "SELECT count(*) FROM job_rows WHERE state = $1";
    assert_ok(db_begin(f->db));
    struct db_rows *rows = DB_QUERY(f->db, SQL, DB_T(str_of(state)));
    assert_true(db_next(rows));
    int64_t count = db_int(rows, 0);
    assert_ok(db_rows_end(rows));
    db_rollback(f->db);
    return count;
}

/* As many runs as there are ops, in one batch that the claim joins. */
static void start_together(struct fixture *f, struct op *ops, size_t count)
{
    static const struct start_run_input IN = {.workflow_id = {"w", 1},
                                              .input_text = {"null", 4},
                                              .labels = {"{}", 2},
                                              .at_limit = AT_LIMIT_COUNT,
                                              .start_at = -1};
    struct core_call call = next_call(f);
    call.claims_join = true;
    for (size_t i = 0; i < count; i++) {
        op_init(&ops[i], &UC_START_RUN);
        ops[i].caller = CALLER;
        ops[i].input = &IN;
        ops[i].next = i + 1 < count ? &ops[i + 1] : NULL;
    }
    (void)core_apply(f->core, &call, ops);
    effects_forget(core_effects(f->core));
}

/* Every call between the claim and the end of the commit fails once. A start alone is refused then,
 * and one of several is made in a commit of its own. */
static void joined_claims_are_decided_again(void **state, size_t starts)
{
    struct fixture f;
    struct claimer claimer = {0};
    struct op ops[2];
    struct path path = path_in(*state, "a.db");
    const struct claim_source source = {&claimer, take_claimer, &claimer.waiting};
    const char *store = test_store();
    int64_t given = 0;
    int64_t nth = 0;
    bool fired = true;
    assert_int_equal(setenv("PAWL_TEST_STORE", "failing", 1), 0);
    fixture_open_with(&f, path.text, &METER, source);
    put_workflow_of(&f, "{\"steps\":[{\"name\":\"t\",\"type\":\"task\",\"handler\":\"h\"}]}");
    while (fired) {
        claimer_wait(&claimer, ++nth);
        start_together(&f, ops, starts);
        fired = failing_has_fired();
        failing_disarm();
        assert_ptr_equal(core_take_claims(f.core), &claimer.op);
        assert_int_equal(claimer.runs, fired ? 2 : 1);
        assert_ok(claimer.op.err);
        bool refused = fired && starts == 1;
        for (size_t i = 0; i < starts; i++) {
            assert_int_equal(ops[i].err, refused ? ERR_STORE_BUSY : ERR_OK);
            op_release(&ops[i]);
        }
        assert_true(claimer.op.answer.keep_waiting == refused);
        assert_true((claimer.op.answer.handed.len > 0) == !refused);
        given += !refused;
        assert_int_equal(jobs_in(&f, "running"), given);
        op_release(&claimer.op);
    }
    assert_true(nth > 2);
    fixture_close(&f);
    assert_int_equal(setenv("PAWL_TEST_STORE", store, 1), 0);
}

static void a_claim_that_joined_a_commit_that_failed_waits_again(void **state)
{
    joined_claims_are_decided_again(state, 1);
}

static void a_claim_that_joined_a_commit_that_failed_gets_a_job_that_is_made_after_it(void **state)
{
    joined_claims_are_decided_again(state, 2);
}

/* --- ops that come while a batch runs --- */

enum { COMERS = 3 };

/* Each comes when the last op before it has run. */
struct comers {
    struct op ops[COMERS + 1]; /* the first one is there when the batch begins */
    int runs[COMERS + 1];
    size_t come;
    size_t breaks; /* the one that breaks its transaction */
};

static enum err start_or_break(struct op *op, struct tx *tx)
{
    struct comers *c = op->owner;
    size_t i = (size_t)(op - c->ops);
    c->runs[i]++;
    return i == c->breaks ? ERR_INTERNAL : UC_START_RUN.write(op, tx);
}

static const struct use_case UC_START_OR_BREAK = {.name = "test_start", .write = start_or_break};

static struct op *next_comer(void *ctx)
{
    struct comers *c = ctx;
    return c->come < COMERS ? &c->ops[++c->come] : NULL;
}

static void apply_with_comers(struct fixture *f, struct comers *c, size_t breaks)
{
    static const struct start_run_input IN = {.workflow_id = {"w", 1},
                                              .input_text = {"null", 4},
                                              .labels = {"{}", 2},
                                              .at_limit = AT_LIMIT_COUNT,
                                              .start_at = -1};
    *c = (struct comers){.breaks = breaks};
    for (size_t i = 0; i <= COMERS; i++) {
        op_init(&c->ops[i], &UC_START_OR_BREAK);
        c->ops[i].caller = CALLER;
        c->ops[i].input = &IN;
        c->ops[i].owner = c;
    }
    struct core_call call = next_call(f);
    call.more = (struct op_source){c, next_comer};
    assert_ok(core_apply(f->core, &call, c->ops));
    effects_forget(core_effects(f->core));
}

static void comers_release(struct comers *c)
{
    for (size_t i = 0; i <= COMERS; i++)
        op_release(&c->ops[i]);
}

static void ops_that_come_while_a_batch_runs_are_decided_with_it(void **state)
{
    struct path path = path_in(*state, "a.db");
    struct fixture f;
    struct comers c;
    fixture_open(&f, path.text);
    put_workflow(&f);
    apply_with_comers(&f, &c, SIZE_MAX);
    for (size_t i = 0; i <= COMERS; i++) {
        assert_int_equal(c.runs[i], 1);
        assert_ok(c.ops[i].err);
        assert_ptr_equal(c.ops[i].next, i < COMERS ? &c.ops[i + 1] : NULL);
    }
    assert_int_equal(jobs_in(&f, "scheduled"), COMERS + 1);
    comers_release(&c);
    fixture_close(&f);
}

/* They are of one transaction: it is rolled back whole, and each op is decided again. */
static void an_op_that_comes_and_breaks_the_batch_fails_alone(void **state)
{
    struct path path = path_in(*state, "a.db");
    struct fixture f;
    struct comers c;
    fixture_open(&f, path.text);
    put_workflow(&f);
    apply_with_comers(&f, &c, COMERS);
    for (size_t i = 0; i <= COMERS; i++) {
        assert_int_equal(c.runs[i], 2);
        assert_int_equal(c.ops[i].err, i == COMERS ? ERR_INTERNAL : ERR_OK);
    }
    assert_int_equal(jobs_in(&f, "scheduled"), COMERS);
    comers_release(&c);
    fixture_close(&f);
}

/* --- turns of background work --- */

/* Moves on by `step_ms` whenever somebody looks. */
struct moving_clock {
    int64_t ms, step_ms;
};

static int64_t moving_ns(void *ctx)
{
    struct moving_clock *clock = ctx;
    clock->ms += clock->step_ms;
    return clock->ms * 1000000;
}

enum { SLEEPERS = 40, STEP_MS = BACKGROUND_MS_MAX / 10 };

static void a_turn_of_background_work_ends_after_half_a_second(void **state)
{
    struct moving_clock clock = {0};
    const struct env meter = {.mono_ns = moving_ns, .ctx = &clock};
    struct path path = path_in(*state, "a.db");
    struct fixture f;
    fixture_open_with(&f, path.text, &meter, (struct claim_source){0});
    put_workflow(&f);
    for (int i = 0; i < SLEEPERS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        start(&f, key);
    }
    f.calls += 100; /* all are due */
    clock.step_ms = STEP_MS;
    int64_t awake = 0;
    int turns = 0;
    for (; awake < SLEEPERS; turns++) {
        int64_t begun = clock.ms;
        assert_true(turns < 10 * SLEEPERS);
        struct core_call call = next_call(&f);
        assert_ok(core_background(f.core, &call));
        effects_forget(core_effects(f.core));
        /* The item under way, and what looks at the clock beside it. */
        assert_in_range(clock.ms - begun, BACKGROUND_MS_MAX, BACKGROUND_MS_MAX + 10 * STEP_MS);
        awake = jobs_in(&f, "pending");
    }
    assert_true(turns > 4);
    fixture_close(&f);
}

static void a_turn_of_background_work_that_takes_no_time_does_all_of_it(void **state)
{
    struct path path = path_in(*state, "a.db");
    struct fixture f;
    fixture_open(&f, path.text);
    put_workflow(&f);
    for (int i = 0; i < SLEEPERS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i);
        start(&f, key);
    }
    f.calls += 100;
    background(&f);
    assert_int_equal(jobs_in(&f, "pending"), SLEEPERS);
    fixture_close(&f);
}

/* --- opening --- */

static void a_core_without_memory_does_not_open_and_leaves_nothing_behind(void **state)
{
    static const struct metric_spec FAILURES = {
        "failures", "Failures.", METRIC_COUNTER, {"work", NULL}, NULL};
    if (test_store_is_eager())
        return; /* it has no memory of its own: its allocations would fail too */
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct metrics *registry = metrics_new();
    struct core_config config = {
        .db = db, .meter = &METER, .cleanup_failures = metrics_declare(registry, &FAILURES)};
    bool failed = true;
    for (int64_t nth = 1; failed; nth++) {
        struct core_call call = {.now_us = NOW_MS * INT64_C(1000)};
        struct core *core = NULL;
        struct problem p;
        problem_init(&p);
        memory_arm(nth);
        config.stats = replay_stats_new();
        enum err e = config.stats != NULL ? core_open(&config, &call, &p, &core) : ERR_NO_MEMORY;
        failed = memory_disarm();
        assert_int_equal(e, core != NULL ? ERR_OK : ERR_NO_MEMORY);
        assert_true(core != NULL || failed);
        core_close(core);
        replay_stats_free(config.stats);
        problem_release(&p);
    }
    metrics_free(registry);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_same_history_gives_the_same_answers_and_rows),
        folder_test(two_cores_in_one_process_do_not_touch_each_other),
        folder_test(after_a_failure_between_calls_nothing_is_acknowledged),
        folder_test(a_claim_that_joined_a_commit_that_failed_waits_again),
        folder_test(a_claim_that_joined_a_commit_that_failed_gets_a_job_that_is_made_after_it),
        folder_test(ops_that_come_while_a_batch_runs_are_decided_with_it),
        folder_test(an_op_that_comes_and_breaks_the_batch_fails_alone),
        folder_test(a_turn_of_background_work_ends_after_half_a_second),
        folder_test(a_turn_of_background_work_that_takes_no_time_does_all_of_it),
        folder_test(a_core_without_memory_does_not_open_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
