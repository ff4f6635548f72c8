/* One history: what is done to the engine and to the model (admission_model.h), call by call, and
 * whether the answers agree. */
#ifndef PAWL_TESTS_ENGINE_ADMISSION_HISTORY_H
#define PAWL_TESTS_ENGINE_ADMISSION_HISTORY_H

#include "engine/admission_model.h"
#include "engine/fixture.h"

#include "base/log.h"

enum {
    ROUND_MAX = 30, /* calls of one round that are sure to be one batch */
    KEYS_MAX = 100,
    SLEEP_MS = 600 * 1000,
    DELAY_MS = 300 * 1000, /* of starts for later: due before any sleeper wakes */
};

enum { PLAIN, KEYED, BOTH, PAIR, NAP };
static const char *const WORKFLOWS[] = {"plain", "keyed", "both", "pair", "nap"};
static const char *const TENANTS[] = {"t0", "t1", "t2"};
static_assert(ARRAY_LEN(WORKFLOWS) == MODEL_WORKFLOWS && ARRAY_LEN(TENANTS) == MODEL_TENANTS,
              "one name each");

/* What the engine has told of a run of the model. */
struct known_run {
    struct uuid id;
    bool made;
    int64_t started_at;
    bool claimed;
    struct uuid job;
    char lease_token[64];
};

/* An idempotency key and what it was used for. */
struct used_key {
    char text[16];
    struct model_start start;
    bool kept; /* the answer was: a refusal leaves no key */
    size_t run;
};

/* One call with what must come of it. */
struct step {
    struct call call;
    union {
        struct control_run_input control;
        struct rerun_run_input rerun;
        struct rollback_tenant_input rollback;
    } input;
    json_t *json;
    struct json *value; /* the same, where a value is wanted */
    struct definition *definition;
    struct buf text;
    char summary[200];
    bool ends_batch; /* more begins than one call may start: the rest is the writer's */
    enum err err;
    bool is_start;
    bool is_rerun; /* a start whose answer has no outcome */
    bool unsure;   /* whether its run begins at once */
    bool replayed;
    struct model_answer answer;
};

/* What a history does where no policy is set for a limit, as a rule. */
enum mood { MOOD_MIXED, MOOD_QUEUES, MOOD_REPLACES };

struct history {
    uint64_t seed;
    struct rng rng;
    bool tells;
    int operation;
    char doing[64];
    struct fixture *fixture;
    struct raw raw; /* a second look at the file */
    sqlite3_stmt *runs, *tenants, *scopes, *lines;
    struct model model;
    struct model_settings before[MODEL_TENANTS]; /* the settings that a rollback goes back to */
    bool has_before[MODEL_TENANTS];
    struct known_run known[MODEL_RUNS_MAX];
    struct used_key keys[KEYS_MAX];
    size_t key_count;
    struct step steps[ROUND_MAX];
    size_t step_count;
    size_t calls; /* of the operation under way */

    /* What this history is like. */
    bool many_waiting;
    enum mood mood;
    int favourites[2];

    /* As the last look found it. */
    int64_t tenant_active[MODEL_TENANTS];
    int64_t scope_active[MODEL_SCOPES_MAX];
    int64_t scope_nums[MODEL_SCOPES_MAX];
    size_t order_checked[MODEL_TENANTS];
};

static struct history history; /* too large for a stack, and teardown must find it */

/* The file that every history begins with. */
static struct {
    char *bytes;
    size_t len;
} template;

/* --- telling --- */

static inline void tell_steps(const struct history *h)
{
    for (size_t i = 0; i < h->step_count; i++)
        print_message("%3d  %s\n", h->operation, h->steps[i].summary);
}

#define differs(h, ...)                                                                  \
    do {                                                                                 \
        char what_[1024];                                                                \
        (void)snprintf(what_, sizeof(what_), __VA_ARGS__);                               \
        tell_steps(h);                                                                   \
        fail_msg("PAWL_SEED=%llu, operation %d (%s): %s", (unsigned long long)(h)->seed, \
                 (h)->operation, (h)->doing, what_);                                     \
    } while (0)

#define now_doing(h, ...) ((void)snprintf((h)->doing, sizeof((h)->doing), __VA_ARGS__))
#define describe(s, ...) ((void)snprintf((s)->summary, sizeof((s)->summary), __VA_ARGS__))

static inline const char *outcome_name(enum model_outcome outcome)
{
    static const char *const NAMES[] = {
        [MODEL_ADMITTED] = "admitted",     [MODEL_WAITS] = "queued",
        [MODEL_PUT_OFF] = "delayed",       [MODEL_REPLACED_OLDEST] = "replaced_oldest",
        [MODEL_COALESCED] = "coalesced",   [MODEL_LIMITED] = "limited",
        [MODEL_QUEUE_FULL] = "queue_full",
    };
    return NAMES[outcome];
}

static inline const char *status_name(enum model_status status)
{
    static const char *const NAMES[] = {
        [MODEL_DELAYED] = "delayed",     [MODEL_QUEUED] = "queued", [MODEL_ACTIVE] = "active",
        [MODEL_SUCCEEDED] = "succeeded", [MODEL_FAILED] = "failed", [MODEL_CANCELLED] = "cancelled",
    };
    return NAMES[status];
}

static inline const char *policy_name(enum at_limit policy)
{
    return policy < AT_LIMIT_COUNT ? at_limit_name(policy) : "-";
}

/* --- steps: the model goes first --- */

static inline struct step *step_new(struct history *h, const struct use_case *use_case, int tenant)
{
    assert_true(h->step_count < ROUND_MAX);
    struct step *s = &h->steps[h->step_count++];
    memset(s, 0, sizeof(*s));
    call_init(&s->call, h->fixture, use_case);
    s->call.op.caller.tenant = str_of(TENANTS[tenant]);
    buf_init(&s->text, 64 * KIB);
    return s;
}

static inline void expect_begun(struct step *s, size_t begun)
{
    s->ends_batch |= begun >= DISPATCHED_PER_OP_MAX;
}

static inline struct step *step_of_start(struct history *h, const struct model_start *start)
{
    struct step *s = step_new(h, &UC_START_RUN, start->tenant);
    static const char *const NAMES[] = {NULL, "k", "g"};
    s->json = json_object();
    for (int path = MODEL_BY_K; path < MODEL_PATH_COUNT; path++) {
        if (start->keys[path][0] != '\0')
            (void)json_object_set_new(s->json, NAMES[path], json_string(start->keys[path]));
    }
    json_put_plain(&s->text, s->json);
    s->value = json_value_of(buf_str(&s->text));
    s->call.input.start =
        (struct start_run_input){.workflow_id = str_of(WORKFLOWS[start->workflow]),
                                 .start_at = -1,
                                 .input = s->value,
                                 .input_text = buf_str(&s->text),
                                 .labels = STR("{}"),
                                 .priority = start->priority,
                                 .at_limit = start->at_limit};
    describe(s, "start %s %s, k '%s', g '%s', priority %d, at_limit %s", TENANTS[start->tenant],
             WORKFLOWS[start->workflow], start->keys[MODEL_BY_K], start->keys[MODEL_BY_G],
             (int)start->priority, policy_name(start->at_limit));
    return s;
}

static inline enum err err_of(enum model_outcome outcome)
{
    switch (outcome) {
    case MODEL_ADMITTED:
    case MODEL_WAITS:
    case MODEL_PUT_OFF:
    case MODEL_REPLACED_OLDEST:
    case MODEL_COALESCED:
        return ERR_OK;
    case MODEL_LIMITED:
        return ERR_MAX_CONCURRENT_RUNS;
    case MODEL_QUEUE_FULL:
        return ERR_QUEUE_FULL;
    }
    fail_msg("an outcome that the test does not know");
    return ERR_INTERNAL;
}

/* `used`: NULL for a start without a key. The run that it is about; none when it is refused. */
static inline size_t make_start(struct history *h, const struct model_start *start,
                                struct used_key *used)
{
    struct step *s = step_of_start(h, start);
    s->is_start = true;
    if (used != NULL) {
        call_key(&s->call, used->text, s->summary);
        s->replayed = used->kept;
    }
    if (used != NULL && used->kept)
        s->answer.run = used->run;
    else
        s->answer = model_start(&h->model, start);
    s->err = s->replayed ? ERR_OK : err_of(s->answer.outcome);
    if (used != NULL && s->err == ERR_OK) {
        used->kept = true;
        used->run = s->answer.run;
    }
    expect_begun(s, s->answer.begun);
    size_t len = strlen(s->summary);
    (void)snprintf(s->summary + len, sizeof(s->summary) - len, "%s%s: %s, run %zu",
                   used != NULL ? ", " : "", used != NULL ? used->text : "",
                   s->replayed ? "replayed" : outcome_name(s->answer.outcome), s->answer.run);
    return s->answer.run;
}

static inline void make_delayed_start(struct history *h, const struct model_start *start)
{
    struct step *s = step_of_start(h, start);
    int64_t start_at = atomic_load(&h->fixture->now_us) / 1000 + DELAY_MS;
    s->is_start = true;
    s->call.input.start.start_at = start_at;
    s->answer = model_put_off(&h->model, start, start_at);
    size_t len = strlen(s->summary);
    (void)snprintf(s->summary + len, sizeof(s->summary) - len, ", later: run %zu", s->answer.run);
}

/* Makes a run for certain, which begins or waits: the model is told later. */
static inline void make_unsure_start(struct history *h, const struct model_start *start)
{
    struct step *s = step_of_start(h, start);
    struct model_limits limits = model_limits_of(&h->model, start);
    s->is_start = s->unsure = true;
    s->answer.run = model_make_run(&h->model, start, &limits, MODEL_QUEUED);
}

/* A key that is kept, with another request. */
static inline void make_mismatch(struct history *h, struct used_key *used)
{
    struct model_start other = used->start;
    other.priority += 10;
    struct step *s = step_of_start(h, &other);
    describe(s, "%s of %s again, for another request", used->text, TENANTS[other.tenant]);
    call_key(&s->call, used->text, s->summary);
    s->err = ERR_IDEM_KEY_REUSED;
}

/* Has every job of the tenant that can be had, and notes the leases. */
static inline void claim_all(struct history *h, int tenant)
{
    size_t count = CLAIM_MAX;
    while (count == CLAIM_MAX) {
        struct call c;
        claim_init(&c, h->fixture, "worker", LEASE_MS_MAX);
        c.op.caller.tenant = str_of(TENANTS[tenant]);
        c.input.claim.max = CLAIM_MAX;
        must_perform(&c);
        json_t *jobs = jobs_of(&c);
        count = json_array_size(jobs);
        for (size_t i = 0; i < count; i++) {
            const json_t *job = json_array_get(jobs, i);
            struct uuid run;
            assert_true(uuid_parse(json_str(json_object_get(job, "run_id")), &run));
            size_t at = 0;
            while (at < h->model.run_count &&
                   memcmp(h->known[at].id.bytes, run.bytes, sizeof(run.bytes)) != 0)
                at++;
            if (at == h->model.run_count)
                differs(h, "a job is handed out of a run that nobody started");
            struct known_run *known = &h->known[at];
            known->claimed = uuid_parse(json_str(json_object_get(job, "job_id")), &known->job);
            (void)snprintf(known->lease_token, sizeof(known->lease_token), "%s",
                           json_string_value(json_object_get(job, "lease_token")));
        }
        json_decref(jobs);
        call_release(&c);
    }
}

/* The worker is done with a run, maybe too late. False: no worker ever had it. */
static inline bool make_finish(struct history *h, size_t run, bool fails)
{
    struct model_run *of = &h->model.runs[run];
    struct known_run *known = &h->known[run];
    if (!known->claimed && of->status == MODEL_ACTIVE && of->workflow != NAP)
        claim_all(h, of->tenant);
    if (!known->claimed)
        return false;
    struct step *s = step_new(h, &UC_FINISH_JOB, of->tenant);
    s->call.input.finish = (struct finish_job_input){.job_id = known->job,
                                                     .lease_token = str_of(known->lease_token),
                                                     .failed = fails,
                                                     .output = STR("1"),
                                                     .error = STR("{\"code\":\"X\"}")};
    describe(s, "run %zu %s, it is %s", run, fails ? "fails" : "is done", status_name(of->status));
    enum model_status to = fails ? MODEL_FAILED : MODEL_SUCCEEDED;
    if (of->status == MODEL_ACTIVE)
        expect_begun(s, model_end(&h->model, run, to));
    else if (of->status != to)
        s->err = ERR_LEASE_LOST;
    return true;
}

static inline void make_cancel(struct history *h, size_t run)
{
    const struct model_run *of = &h->model.runs[run];
    struct step *s = step_new(h, &UC_CONTROL_RUN, of->tenant);
    s->input.control = (struct control_run_input){
        .run_id = h->known[run].id, .action = CONTROL_CANCEL, .if_match = -1};
    s->call.op.input = &s->input.control;
    describe(s, "run %zu is cancelled, it is %s", run, status_name(of->status));
    if (!model_is_over(&h->model, run))
        expect_begun(s, model_end(&h->model, run, MODEL_CANCELLED));
    else if (of->status != MODEL_CANCELLED)
        s->err = ERR_RUN_IS_OVER;
}

static inline void make_retry(struct history *h, size_t run)
{
    const struct model_run *of = &h->model.runs[run];
    struct step *s = step_new(h, &UC_CONTROL_RUN, of->tenant);
    s->input.control = (struct control_run_input){
        .run_id = h->known[run].id, .action = CONTROL_RETRY, .if_match = -1};
    s->call.op.input = &s->input.control;
    describe(s, "run %zu is retried, it is %s", run, status_name(of->status));
    if (!model_is_over(&h->model, run))
        return;
    if (of->status != MODEL_FAILED) {
        s->err = ERR_RUN_IS_OVER;
        return;
    }
    s->answer = model_retry(&h->model, run);
    s->err = err_of(s->answer.outcome);
    if (s->err == ERR_OK)
        h->known[run].claimed = false; /* its job is handed out under another lease */
}

static inline void make_rerun(struct history *h, size_t run)
{
    const struct model_run *of = &h->model.runs[run];
    struct step *s = step_new(h, &UC_RERUN_RUN, of->tenant);
    s->input.rerun = (struct rerun_run_input){.run_id = h->known[run].id, .if_match = -1};
    s->call.op.input = &s->input.rerun;
    describe(s, "run %zu is run again, it is %s", run, status_name(of->status));
    if (!model_is_over(&h->model, run)) {
        s->err = ERR_RUN_NOT_OVER;
        return;
    }
    s->is_start = s->is_rerun = true;
    s->answer = model_rerun(&h->model, run);
    s->err = err_of(s->answer.outcome);
}

static inline void settings_change(struct history *h, struct step *s, int tenant,
                                   struct model_settings settings)
{
    struct model_settings *now = &h->model.tenants[tenant].settings;
    bool same = now->max_concurrent_runs == settings.max_concurrent_runs &&
                now->max_queued_runs == settings.max_queued_runs &&
                now->at_limit == settings.at_limit && now->weight == settings.weight;
    if (!same) {
        h->before[tenant] = *now;
        h->has_before[tenant] = true;
        *now = settings;
    }
    expect_begun(s, model_dispatch(&h->model, tenant));
}

static inline void make_settings(struct history *h, int tenant, struct model_settings settings)
{
    struct step *s = step_new(h, &UC_PUT_TENANT, tenant);
    s->json = json_pack("{s:s,s:I}", "at_limit", at_limit_name(settings.at_limit), "weight",
                        (json_int_t)settings.weight);
    const struct {
        const char *name;
        int64_t limit;
    } limits[] = {{"max_concurrent_runs", settings.max_concurrent_runs},
                  {"max_queued_runs", settings.max_queued_runs}};
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        (void)json_object_set_new(s->json, limits[i].name,
                                  limits[i].limit < 0 ? json_null()
                                                      : json_integer(limits[i].limit));
    s->value = json_value_of_tree(json_incref(s->json));
    s->call.input.tenant = (struct put_tenant_input){str_of(TENANTS[tenant]), s->value};
    describe(s, "%s: %lld runs, %lld queued, %s, weight %lld", TENANTS[tenant],
             (long long)settings.max_concurrent_runs, (long long)settings.max_queued_runs,
             policy_name(settings.at_limit), (long long)settings.weight);
    settings_change(h, s, tenant, settings);
}

/* Back to the settings before the last change; that is a change too. */
static inline void make_rollback(struct history *h, int tenant)
{
    assert_true(h->has_before[tenant]);
    struct step *s = step_new(h, &UC_ROLLBACK_TENANT, tenant);
    s->input.rollback = (struct rollback_tenant_input){str_of(TENANTS[tenant]), -1};
    s->call.op.input = &s->input.rollback;
    struct model_settings settings = h->before[tenant];
    describe(s, "%s: back to %lld runs, %lld queued, %s", TENANTS[tenant],
             (long long)settings.max_concurrent_runs, (long long)settings.max_queued_runs,
             policy_name(settings.at_limit));
    settings_change(h, s, tenant, settings);
}

/* `concurrency` of a definition: one rule may stand without an array. */
static inline void put_rules(struct buf *out, const struct model_workflow *w)
{
    if (w->rule_count == 0)
        return;
    buf_put(out, w->rule_count > 1 ? STR(",'concurrency':[") : STR(",'concurrency':"));
    for (size_t i = 0; i < w->rule_count; i++) {
        const struct model_rule *rule = &w->rules[i];
        buf_printf(out, "%s{'limit':%lld", i > 0 ? "," : "", (long long)rule->limit);
        if (rule->path != MODEL_WHOLE)
            buf_printf(out, ",'key':'%s'", MODEL_PATHS[rule->path]);
        if (rule->at_limit != AT_LIMIT_COUNT)
            buf_printf(out, ",'at_limit':'%s'", at_limit_name(rule->at_limit));
        buf_put(out, STR("}"));
    }
    if (w->rule_count > 1)
        buf_put(out, STR("]"));
}

static inline void make_version(struct history *h, int tenant, int workflow,
                                struct model_workflow rules)
{
    struct step *s = step_new(h, &UC_PUT_WORKFLOW, tenant);
    struct buf quoted;
    buf_init(&quoted, 4 * KIB);
    if (workflow == NAP)
        buf_printf(&quoted, "{'steps':[{'name':'s','type':'sleep','duration_ms':%d}]", SLEEP_MS);
    else
        buf_put(&quoted, STR("{'steps':[{'name':'a','type':'task','handler':'h'}]"));
    put_rules(&quoted, &rules);
    buf_put(&quoted, STR("}"));
    buf_put_char(&quoted, '\0');
    assert_true(buf_ok(&quoted));
    s->json = json_of(quoted.ptr);
    struct problem p;
    problem_init(&p);
    if (parse_tree(s->json, str_of(WORKFLOWS[workflow]), &p, &s->definition) != ERR_OK)
        fail_msg("%s: %.*s", p.detail, (int)p.faults.len, p.faults.ptr);
    problem_release(&p);
    json_put_plain(&s->text, s->json);
    s->call.input.workflow =
        (struct put_workflow_input){str_of(WORKFLOWS[workflow]), s->definition, buf_str(&s->text),
                                    sha256_of(buf_str(&s->text))};
    describe(s, "%s %s: %s", TENANTS[tenant], WORKFLOWS[workflow], strchr(quoted.ptr, ']') + 1);
    buf_release(&quoted);
    struct model_workflow *now = &h->model.tenants[tenant].workflows[workflow];
    if (now->stored && !model_same_rules(now, &rules))
        model_expect_look(&h->model, tenant, tenant);
    *now = rules;
    now->stored = true;
}

/* --- performing --- */

static inline int64_t number_named(const struct problem *p, const char *name)
{
    for (size_t i = 0; i < p->number_count; i++) {
        if (strcmp(p->numbers[i].name, name) == 0)
            return p->numbers[i].value;
    }
    return -1;
}

static inline void check_refusal(struct history *h, const struct step *s)
{
    const struct problem *p = &s->call.op.problem;
    int64_t current = number_named(p, "current");
    int64_t limit = number_named(p, "limit");
    const char *by = p->limited_by != NULL ? p->limited_by : "nothing";
    if (strcmp(by, s->answer.limited_by) != 0 || current != s->answer.current ||
        limit != s->answer.limit)
        differs(h, "%s: refused by %s, %lld of %lld, and not by %s, %lld of %lld", s->summary, by,
                (long long)current, (long long)limit, s->answer.limited_by,
                (long long)s->answer.current, (long long)s->answer.limit);
}

static inline void check_start(struct history *h, struct step *s)
{
    const struct answer *a = &s->call.op.answer;
    if (s->err != ERR_OK) {
        check_refusal(h, s);
        return;
    }
    struct known_run *known = &h->known[s->answer.run];
    bool creates = !s->replayed && s->answer.outcome != MODEL_COALESCED;
    if (a->replayed != s->replayed)
        differs(h, "%s: %s", s->summary, a->replayed ? "replayed" : "not replayed");
    if (a->created != (creates ? CREATED_YES : CREATED_NO))
        differs(h, "%s: %s", s->summary, creates ? "no run was made" : "a run was made");
    if (!s->replayed && !s->unsure && !s->is_rerun &&
        strcmp(a->outcome, outcome_name(s->answer.outcome)) != 0)
        differs(h, "%s: %s", s->summary, a->outcome);
    if (creates)
        *known = (struct known_run){.id = a->run_id, .made = true};
    if (memcmp(known->id.bytes, a->run_id.bytes, sizeof(known->id.bytes)) != 0)
        differs(h, "%s: it is another run", s->summary);
}

static inline void check_answer(struct history *h, struct step *s)
{
    const struct op *op = &s->call.op;
    if (op->err != s->err)
        differs(h, "%s: %s (%s) and not %s", s->summary, err_code(op->err), op->problem.detail,
                err_code(s->err));
    if (s->is_start)
        check_start(h, s);
    else if (s->answer.limited_by != NULL)
        check_refusal(h, s);
}

static inline void release_steps(struct history *h)
{
    for (size_t i = 0; i < h->step_count; i++) {
        struct step *s = &h->steps[i];
        call_release(&s->call);
        json_decref(s->json);
        json_free(s->value);
        definition_free(s->definition);
        buf_release(&s->text);
    }
    h->step_count = 0;
}

/* All that is planned, in one round and one batch. */
static inline void perform_steps(struct history *h)
{
    if (h->tells)
        tell_steps(h);
    h->calls += h->step_count;
    struct call first; /* the first call of a round may be made at once, before the others */
    call_init(&first, h->fixture, &UC_PROBE);
    if (h->step_count > 1)
        submit(&first);
    for (size_t i = 0; i < h->step_count; i++)
        submit(&h->steps[i].call);
    for (size_t i = 0; i < h->step_count; i++)
        wait_done(&h->steps[i].call);
    assert_true(first.done || h->step_count <= 1);
    call_release(&first);
    for (size_t i = 0; i < h->step_count; i++)
        check_answer(h, &h->steps[i]);
    release_steps(h);
}

/* --- the engine and its file --- */

/* Every look at the clock finds it later, so that what happens in one transaction is seen to be
 * before what happens in the next. */
static inline int64_t ticking_now_us(void *ctx)
{
    return atomic_fetch_add(&((struct fixture *)ctx)->now_us, 1000);
}

/* As fixture_setup(), with a clock that ticks, and with a copy of an empty store. */
static inline struct fixture *open_fixture(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct folder *folder = calloc(1, sizeof(*folder));
    assert_true(fixture != NULL && folder != NULL);
    (void)snprintf(folder->path, sizeof(folder->path), "%s/pawl-unit-XXXXXX", test_folder());
    assert_non_null(mkdtemp(folder->path));
    fixture->folder = folder;
    fixture->file = path_in(folder, "p.db");
    atomic_store(&fixture->now_us, INT64_C(1700000000000000));
    atomic_store(&fixture->mono_ns, INT64_C(1000000000000));
    fixture->env = (struct env){ticking_now_us, fixture_mono_ns, fixture_random, fixture};
    if (template.bytes != NULL)
        file_write(fixture->file.text, template.bytes, template.len);
    fixture_start(fixture, 0);
    return fixture;
}

static inline sqlite3_stmt *prepared(sqlite3 *raw, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(raw, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(raw));
    return stmt;
}

static inline void open_file(struct history *h)
{
    h->raw = raw_open(h->fixture->file.text);
    h->runs =
        prepared(h->raw.file, "SELECT id, CASE WHEN status = 'queued' AND start_at IS NOT NULL"
                              " THEN 'delayed' ELSE status END, coalesce(started_at, -1)"
                              " FROM runs ORDER BY num");
    h->tenants = prepared(h->raw.file,
                          "SELECT id, active_runs, queued_runs FROM tenant_counters ORDER BY id");
    h->scopes = prepared(h->raw.file, "SELECT t.id, s.workflow_id, s.path, s.key, s.active_runs,"
                                      " s.queued_runs, s.num FROM scopes s"
                                      " JOIN tenants t ON t.num = s.tenant");
    h->lines =
        prepared(h->raw.file, "SELECT t.id, l.scopes, l.waits_for, l.urgency, l.run FROM lines l"
                              " JOIN tenants t ON t.num = l.tenant");
}

static inline void close_file(struct history *h)
{
    if (h->raw.file == NULL)
        return;
    (void)sqlite3_finalize(h->runs);
    (void)sqlite3_finalize(h->tenants);
    (void)sqlite3_finalize(h->scopes);
    (void)sqlite3_finalize(h->lines);
    raw_close(&h->raw);
    h->raw.file = NULL;
}

static inline struct history *begin_history(uint64_t seed)
{
    struct history *h = &history;
    memset(h, 0, sizeof(*h));
    h->seed = seed;
    h->rng.state = seed;
    h->fixture = open_fixture();
    open_file(h);
    now_doing(h, "at first");
    return h;
}

static inline int end_history(void **state)
{
    (void)state;
    struct history *h = &history;
    if (h->fixture == NULL)
        return 0;
    close_file(h);
    void *fixture = h->fixture;
    h->fixture = NULL;
    (void)fixture_teardown(&fixture);
    release_steps(h);
    return 0;
}

/* Group setup: an engine makes the file once. */
static inline int make_template(void **state)
{
    (void)state;
    log_setup(LOG_TEXT, LOG_ERROR, &ENV_SYSTEM);
    struct fixture *fixture = open_fixture();
    fixture_stop(fixture);
    template.bytes = file_read(fixture->file.text, &template.len);
    void *over = fixture;
    (void)fixture_teardown(&over);
    return 0;
}

static inline int free_template(void **state)
{
    (void)state;
    free(template.bytes);
    return 0;
}

/* Without a moment for the writer to end what it was doing. */
static inline void restart(struct history *h)
{
    close_file(h);
    fixture_stop(h->fixture);
    fixture_start(h->fixture, 0);
    open_file(h);
}

#endif
