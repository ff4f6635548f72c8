/* The real engine on a file of its own, under a clock that the test moves, driven by the test's
 * thread as the HTTP loop drives it. */
#ifndef PAWL_TESTS_ENGINE_FIXTURE_H
#define PAWL_TESTS_ENGINE_FIXTURE_H

#include "store/folder.h"

#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"
#include "fault_support/sweep.h"
#include "runtime/engine.h"

#include <poll.h>
#include <stdatomic.h>

/* First jobs get rows of their own, to be changed past the writer. */
#define OWN_JOB_ROWS "INSERT INTO jobs SELECT * FROM first_job_rows; DELETE FROM first_jobs;"

enum { GIVE_UP_S = 120 }; /* a test that waits longer has failed */
/* So few calls that the loop hands them over before its round ends: they are one batch. */
enum { ONE_BATCH = 12 };

struct fixture {
    struct folder *folder;
    struct path file;
    atomic_llong now_us;
    atomic_llong mono_ns;
    struct env env;
    struct metrics *metrics;
    struct gate *gate; /* NULL: the store's own; set before fixture_start() */
    struct bus *bus;   /* NULL: none; likewise */
    bool keeps_all;
    struct str bus_queue; /* whose jobs are offered there; ptr NULL: none */
    struct engine *engine;
    int finished; /* calls that are over, for their order */
};

static inline int64_t fixture_now_us(void *ctx)
{
    return atomic_load(&((struct fixture *)ctx)->now_us);
}

static inline int64_t fixture_mono_ns(void *ctx)
{
    return atomic_load(&((struct fixture *)ctx)->mono_ns);
}

static inline void fixture_random(void *ctx, void *out, size_t len)
{
    (void)ctx;
    env_random(&ENV_SYSTEM, out, len);
}

static inline int64_t fixture_now_ms(struct fixture *fixture)
{
    return fixture_now_us(fixture) / 1000;
}

/* Both clocks go on together. */
static inline void fixture_pass_ms(struct fixture *fixture, int64_t ms)
{
    atomic_fetch_add(&fixture->now_us, ms * 1000);
    atomic_fetch_add(&fixture->mono_ns, ms * 1000000);
}

/* The wall clock is set; time itself does not jump. */
static inline void fixture_set_wall_ms(struct fixture *fixture, int64_t ms)
{
    atomic_store(&fixture->now_us, ms * 1000);
}

static inline void fixture_start(struct fixture *fixture, int64_t log_bytes_max)
{
    char url[160];
    test_store_url(fixture->file.text, url, sizeof(url));
    fixture->metrics = metrics_new();
    assert_non_null(fixture->metrics);
    struct engine_config config = {.store_url = str_of(url),
                                   .root_key = STR(""),
                                   .env = &fixture->env,
                                   .metrics = fixture->metrics,
                                   .log_bytes_max = log_bytes_max,
                                   .gate = fixture->gate,
                                   .bus = fixture->bus,
                                   .keeps_all = fixture->keeps_all,
                                   .bus_queues = &fixture->bus_queue,
                                   .bus_queue_count = fixture->bus_queue.ptr != NULL};
    struct problem p;
    problem_init(&p);
    if (engine_open(&config, &p, &fixture->engine) != ERR_OK)
        fail_msg("the engine does not open: %s", p.detail);
    problem_release(&p);
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    void *folder = NULL;
    (void)folder_setup(&folder);
    fixture->folder = folder;
    fixture->file = path_in(fixture->folder, "p.db");
    atomic_store(&fixture->now_us, INT64_C(1700000000000000));
    atomic_store(&fixture->mono_ns, INT64_C(1000000000000));
    fixture->env = (struct env){fixture_now_us, fixture_mono_ns, fixture_random, fixture};
    fixture_start(fixture, 0);
    *state = fixture;
    return 0;
}

/* One round of the loop; sleeps until there is something, for a moment at most. */
static inline void fixture_round(struct fixture *fixture)
{
    engine_round_end(fixture->engine);
    struct pollfd fd = {engine_event_fd(fixture->engine), POLLIN, 0};
    (void)poll(&fd, 1, 5);
    engine_poll(fixture->engine, (fd.revents & POLLIN) != 0);
}

static inline int64_t real_seconds(void)
{
    return env_mono_ms(&ENV_SYSTEM) / 1000;
}

/* The engine has work of its own now and then, which ends without anybody's help. */
static inline void fixture_until_idle(struct fixture *fixture)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (!engine_idle(fixture->engine)) {
        assert_true(real_seconds() < until);
        fixture_round(fixture);
    }
}

static inline void fixture_stop(struct fixture *fixture)
{
    engine_drain(fixture->engine);
    fixture_until_idle(fixture);
    engine_close(fixture->engine);
    metrics_free(fixture->metrics);
    fixture->engine = NULL;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->engine != NULL)
        fixture_stop(fixture);
    void *folder = fixture->folder;
    (void)folder_teardown(&folder);
    free(fixture);
    return 0;
}

#define fixture_test(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

/* --- calls --- */

struct call {
    struct op op;
    struct fixture *fixture;
    struct swept_read swept;
    bool done;
    int place;       /* the how-manieth it was */
    int runs;        /* of the tests' own use cases */
    int64_t changes; /* likewise: what db_changes() said */
    union {
        struct start_run_input start;
        struct claim_input claim;
        struct finish_job_input finish;
        struct put_workflow_input workflow;
        struct put_tenant_input tenant;
        struct run_input run;
        struct list_events_input events;
    } input;
    struct str queue;
    char text[512]; /* what inputs may point to */
};

static inline void call_done(struct op *op)
{
    struct call *c = CONTAINER_OF(op, struct call, op);
    assert_false(c->done);
    c->done = true;
    if (op->use_case == &c->swept.use_case)
        op->use_case = c->swept.original;
    c->place = ++c->fixture->finished;
    if (op->is_there != NULL && !op->is_there(op)) /* as the API does */
        engine_give_back(c->fixture->engine, op);
}

static inline void call_init(struct call *c, struct fixture *fixture,
                             const struct use_case *use_case)
{
    memset(c, 0, sizeof(*c));
    op_init(&c->op, use_case);
    c->fixture = fixture;
    c->op.caller = (struct caller){.tenant = STR("acme"),
                                   .actor = STR("tester"),
                                   .peer = STR("here"),
                                   .role = ROLE_ADMIN,
                                   .creates_tenant = true,
                                   .all_tenants = true};
    c->op.input = &c->input;
    c->op.done = call_done;
    c->op.bytes = 100;
}

static inline void call_key(struct call *c, const char *key, const char *body)
{
    c->op.idem.key = str_of(key);
    c->op.idem.route = STR("POST /api/v1/test");
    c->op.idem.raw_hash = idem_raw_hash((struct siphash_key){1, 2}, c->op.idem.route, str_of(body));
    c->op.idem.fingerprint = sha256_of(str_of(body));
    c->op.idem.has_fingerprint = true;
}

static inline void call_release(struct call *c)
{
    op_release(&c->op);
}

static inline void submit(struct call *c)
{
    c->done = false;
    if (sweep_wants_read(&c->op)) {
        swept_read_init(&c->swept, c->op.use_case);
        c->op.use_case = &c->swept.use_case;
    }
    engine_submit(c->fixture->engine, &c->op);
}

static inline void wait_done(struct call *c)
{
    int64_t until = real_seconds() + GIVE_UP_S;
    while (!c->done) {
        if (real_seconds() >= until)
            fail_msg("%s does not come back", c->op.use_case->name);
        fixture_round(c->fixture);
    }
}

static inline enum err perform(struct call *c)
{
    submit(c);
    wait_done(c);
    return c->op.err;
}

static inline void must_perform(struct call *c)
{
    if (perform(c) != ERR_OK)
        fail_msg("%s: %s: %s", c->op.use_case->name, err_code(c->op.err), c->op.problem.detail);
}

/* --- use cases of the tests' own --- */

/* Changes nothing, and notes what the connection has changed so far. */
static inline enum err run_probe(struct op *op, struct tx *tx)
{
    struct call *c = CONTAINER_OF(op, struct call, op);
    c->runs++;
    c->changes = db_changes(tx->db);
    op->answer.changed_nothing = true;
    return ERR_OK;
}

static const struct use_case UC_PROBE = {.name = "test_probe", .write = run_probe};

/* Has the writer take three whole turns, the second of which may find what a fold in the first has
 * brought to light: what is due has been done when it returns. */
static inline void settle(struct fixture *fixture)
{
    for (int turn = 0; turn < 3; turn++) {
        struct call probes[2]; /* two in one round, so that one goes to the writer's thread */
        for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
            call_init(&probes[i], fixture, &UC_PROBE);
            submit(&probes[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
            wait_done(&probes[i]);
            call_release(&probes[i]);
        }
    }
    engine_poll(fixture->engine, true);
}

/* --- the usual calls --- */

/* ' is written for ". */
static inline json_t *json_of(const char *quoted_singly)
{
    char text[16 * KIB];
    size_t len = strlen(quoted_singly);
    assert_true(len < sizeof(text));
    for (size_t i = 0; i <= len; i++)
        text[i] = (char)(quoted_singly[i] == '\'' ? '"' : quoted_singly[i]);
    return parsed(text);
}

/* definition_parse() for a tree. */
static inline enum err parse_tree(const json_t *tree, struct str id, struct problem *p,
                                  struct definition **ret)
{
    struct json *source = json_value_like(tree);
    enum err e = definition_parse(source, id, p, ret);
    json_free(source);
    return e;
}

static inline void put_workflow(struct fixture *fixture, const char *id, const char *definition)
{
    struct problem p;
    problem_init(&p);
    json_t *json = json_of(definition);
    struct definition *def = NULL;
    if (parse_tree(json, str_of(id), &p, &def) != ERR_OK)
        fail_msg("%s: %.*s", p.detail, (int)p.faults.len, p.faults.ptr);
    struct buf text;
    buf_init(&text, 64 * KIB);
    json_put_plain(&text, json);
    struct call c;
    call_init(&c, fixture, &UC_PUT_WORKFLOW);
    c.input.workflow =
        (struct put_workflow_input){str_of(id), def, buf_str(&text), sha256_of(buf_str(&text))};
    must_perform(&c);
    call_release(&c);
    buf_release(&text);
    definition_free(def);
    json_decref(json);
    problem_release(&p);
}

static inline void put_tenant(struct fixture *fixture, const char *body)
{
    struct json *json = json_value_of_tree(json_of(body));
    struct call c;
    call_init(&c, fixture, &UC_PUT_TENANT);
    c.input.tenant = (struct put_tenant_input){STR("acme"), json};
    must_perform(&c);
    call_release(&c);
    json_free(json);
}

#define ONE_TASK "{'steps':[{'name':'a','type':'task','handler':'h'}]}"

static inline void start_init(struct call *c, struct fixture *fixture, const char *workflow)
{
    call_init(c, fixture, &UC_START_RUN);
    c->input.start = (struct start_run_input){.workflow_id = str_of(workflow),
                                              .input_text = STR("null"),
                                              .labels = STR("{}"),
                                              .at_limit = AT_LIMIT_COUNT,
                                              .start_at = -1};
}

static inline struct uuid start(struct fixture *fixture, const char *workflow)
{
    struct call c;
    start_init(&c, fixture, workflow);
    must_perform(&c);
    struct uuid id = c.op.answer.run_id;
    call_release(&c);
    return id;
}

static inline void claim_init(struct call *c, struct fixture *fixture, const char *worker,
                              int64_t lease_ms)
{
    call_init(c, fixture, &UC_CLAIM_JOBS);
    c->queue = STR("default");
    c->input.claim = (struct claim_input){.worker_id = str_of(worker),
                                          .queues = &c->queue,
                                          .queue_count = 1,
                                          .max = 1,
                                          .lease_ms = lease_ms};
}

/* The caller owns the array of jobs. */
static inline json_t *jobs_of(const struct call *c)
{
    json_t *body = parsed_str(buf_str(&c->op.answer.body));
    json_t *jobs = json_incref(json_object_get(body, "jobs"));
    json_decref(body);
    assert_non_null(jobs);
    return jobs;
}

/* To finish the first job that `claim` got. */
static inline void finish_init(struct call *c, struct fixture *fixture, const struct call *claim)
{
    json_t *jobs = jobs_of(claim);
    assert_int_equal(json_array_size(jobs), 1);
    const json_t *job = json_array_get(jobs, 0);
    call_init(c, fixture, &UC_FINISH_JOB);
    (void)snprintf(c->text, sizeof(c->text), "%s",
                   json_string_value(json_object_get(job, "lease_token")));
    c->input.finish =
        (struct finish_job_input){.lease_token = str_of(c->text), .output = STR("{\"ok\":true}")};
    assert_true(uuid_parse(json_str(json_object_get(job, "job_id")), &c->input.finish.job_id));
    json_decref(jobs);
}

/* The run's status, copied to `out`. */
static inline void run_status_text(struct fixture *fixture, struct uuid id, char out[static 32])
{
    struct call c;
    call_init(&c, fixture, &UC_GET_RUN);
    c.input.run.run_id = id;
    must_perform(&c);
    json_t *run = parsed_str(buf_str(&c.op.answer.body));
    (void)snprintf(out, 32, "%s", json_string_value(json_object_get(run, "status")));
    json_decref(run);
    call_release(&c);
}

#define assert_run_is(fixture, id, status)     \
    do {                                       \
        char is_[32];                          \
        run_status_text((fixture), (id), is_); \
        assert_string_equal(is_, (status));    \
    } while (0)

/* Before the counters in the rows of tenants are changed past the writer, or packs of the feed are
 * removed: the log of counters, which is in these packs, is newer than the rows. */
#define FOLD_COUNTERS                                                                          \
    "UPDATE tenants SET active_runs = c.active_runs, queued_runs = c.queued_runs,"             \
    " rate_full_at = c.rate_full_at FROM logged_counters AS c WHERE c.tenant = tenants.num;"   \
    "UPDATE indexed SET through = (SELECT COALESCE(max(num), 0) FROM (SELECT max(num) AS num"  \
    " FROM feed_packs UNION ALL SELECT through FROM feed_marks WHERE name = 'swept') AS ends)" \
    " WHERE name = 'counters'"

/* What the file says, by SQLite alone. */
static inline int64_t in_file(struct fixture *fixture, const char *sql)
{
    struct raw raw = raw_open(fixture->file.text);
    int64_t number = raw_number(&raw, sql);
    raw_close(&raw);
    return number;
}

#endif
