/* Runs, their timelines, jobs and timers as rows. */
#include "store/folder.h"
#include "store/rows.h"

#include "store/run/jobs.h"
#include "store/run/late_index.h"
#include "store/run/runs.h"

/* --- numbers --- */

static struct uuid id_at(int64_t time)
{
    struct uuid id = env_new_id(&ENV_SYSTEM);
    uuid_set_time(&id, time);
    return id;
}

static void append(struct db *db, int64_t run, int64_t seq, const char *type)
{
    struct event event = {.seq = seq, .at = 100, .type = str_of(type), .job = -1};
    assert_ok(events_append(db, run, &event));
}

static void numbers_rise_even_when_the_clock_does_not(void **state)
{
    (void)state;
    struct rng r = {5};
    int64_t last = 0;
    int64_t clock = INT64_C(7000000000000);
    for (int i = 0; i < 10000; i++) {
        switch (rng_below(&r, 4)) {
        case 0:
            clock += (int64_t)rng_below(&r, 5000);
            break;
        case 1:
            clock -= (int64_t)rng_below(&r, 5000);
            break;
        default:
            break; /* the same moment again */
        }
        struct uuid id = id_at(clock);
        struct uuid before = id;
        int64_t num = runs_new_num(&id, last);
        assert_true(num > last);
        assert_true(num >= clock);
        assert_int_equal(uuid_time(id), num);
        assert_memory_equal(id.bytes + 8, before.bytes + 8, 8); /* chance stays */
        if (clock > last)
            assert_true(uuid_eq(id, before));
        last = num;
    }
}

/* --- rows --- */

static struct run run_at(int64_t tenant, int64_t time, int64_t last)
{
    struct uuid id = id_at(time);
    int64_t num = runs_new_num(&id, last);
    return plain_run(tenant, id, num);
}

static void a_run_comes_back_as_it_was_written(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    int64_t last = -1;
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, 0);
    struct run run = run_at(4, 5000, 0);
    run.priority = -7;
    run.input = STR("{\"a\":1}");
    run.labels = STR("{\"env\":\"x\"}");
    run.traceparent = STR("00-1-2-01");
    assert_ok(runs_insert(db, &run));
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, run.num);
    struct run back;
    bool found = false;
    assert_ok(runs_find(db, 4, run.id, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.num, run.num);
    assert_true(uuid_eq(back.id, run.id));
    assert_int_equal(back.status, RUN_PENDING);
    assert_int_equal(back.priority, -7);
    assert_str(back.input, "{\"a\":1}");
    assert_str(back.labels, "{\"env\":\"x\"}");
    assert_str(back.traceparent, "00-1-2-01");
    assert_null(back.output.ptr);
    assert_null(back.error.ptr);
    assert_int_equal(back.started_at, -1);
    assert_int_equal(back.finished_at, -1);
    assert_ok(runs_find(db, 5, run.id, &arena, &found, &back));
    assert_false(found); /* another tenant's */
    struct uuid other = run.id;
    other.bytes[15] ^= 1;
    assert_ok(runs_find(db, 4, other, &arena, &found, &back));
    assert_false(found); /* the same moment is not the same run */
    arena_release(&arena);
    db_close(db);
}

struct seen_versions {
    int64_t versions[4];
    size_t count;
};

static bool note_version(void *ctx, const struct run *run)
{
    struct seen_versions *seen = ctx;
    seen->versions[seen->count++] = run->version;
    return true;
}

static void the_version_of_a_run_is_the_number_of_its_last_event(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct run run = run_at(1, 5000, 0);
    struct run other = run_at(1, 5000, run.num);
    assert_ok(runs_insert(db, &run));
    assert_ok(runs_insert(db, &other));
    struct run back;
    bool found = false;
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_int_equal(back.version, 0);
    append(db, other.num, 1, "run.created");
    for (int64_t seq = 1; seq <= 3; seq++)
        append(db, run.num, seq, "more");
    assert_ok(runs_update(db, &run)); /* the row's own number is another */
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_int_equal(back.version, 3);
    assert_ok(runs_find(db, 1, run.id, &arena, &found, &back));
    assert_int_equal(back.version, 3);
    struct run_filter all = {
        .tenant = 1, .status = RUN_STATUS_COUNT, .created_after = -1, .created_before = -1};
    struct seen_versions seen = {.count = 0};
    int64_t next = 0;
    assert_ok(runs_list(db, &all, INT64_MAX, note_version, &seen, &next));
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.versions[0], 1);
    assert_int_equal(seen.versions[1], 3);
    arena_release(&arena);
    db_close(db);
}

static void a_change_that_read_an_older_revision_is_refused(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct run run = run_at(1, 5000, 0);
    assert_ok(runs_insert(db, &run));
    struct run late = run;
    run.status = RUN_RUNNING;
    run.started_at = 2000;
    assert_ok(runs_update(db, &run));
    assert_int_equal(run.revision, 2);
    late.status = RUN_CANCELLED;
    assert_int_equal(runs_update(db, &late), ERR_CONCURRENCY);
    assert_int_equal(late.revision, 1);
    struct run back;
    bool found = false;
    assert_ok(runs_find_num(db, run.num, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.status, RUN_RUNNING);
    assert_int_equal(back.revision, 2);
    assert_int_equal(back.started_at, 2000);
    arena_release(&arena);
    db_close(db);
}

static void the_statuses_that_hold_a_slot_are_the_same_in_sql(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t last = 0;
    int64_t holders = 0;
    for (enum run_status s = 0; s < RUN_STATUS_COUNT; s++) {
        struct run run = run_at(1, 5000, last);
        last = run.num;
        run.status = s;
        assert_ok(runs_insert(db, &run));
        int64_t now = number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT);
        if (now - holders != run_holds_slot(s))
            fail_msg("%s: %lld more in SQL", run_status_name(s), (long long)(now - holders));
        holders = now;
        struct run part = run_at(1, 5000, last);
        last = part.num;
        part.status = s;
        part.parent_run = run.num;
        assert_ok(runs_insert(db, &part)); /* which is in its parent's slot */
        assert_int_equal(number_of(db, "SELECT count(*) FROM runs WHERE " RUN_HOLDS_SLOT), holders);
    }
    db_close(db);
}

/* --- lists --- */

enum { MODEL_MAX = 3000, TENANTS = 3, LABELS = 4 };

struct model_run {
    int64_t num;
    int64_t tenant;
    int64_t version;
    enum run_status status;
    size_t label;
    int64_t created_at;
    bool long_name; /* its workflow is "other" */
};

struct model {
    struct model_run runs[MODEL_MAX]; /* oldest first */
    size_t count;
    int64_t clock;
};

static const char *const LABEL_TEXTS[LABELS] = {"{}", "{\"env\":\"a\"}",
                                                "{\"env\":\"b\",\"x\":\"a\"}", "{\"ENV\":\"a\"}"};

static void model_insert(struct model *m, struct db *db, struct rng *r)
{
    assert_true(m->count < MODEL_MAX);
    int64_t last = m->count > 0 ? m->runs[m->count - 1].num : 0;
    m->clock += (int64_t)rng_below(r, 9) - 3;
    struct run run = run_at(1 + (int64_t)rng_below(r, TENANTS), m->clock, last);
    struct model_run *mine = &m->runs[m->count++];
    *mine = (struct model_run){
        .num = run.num,
        .tenant = run.tenant,
        .version = 1,
        .status = (enum run_status)rng_below(r, RUN_STATUS_COUNT),
        .label = rng_below(r, LABELS),
        .created_at = (int64_t)(m->count / 10),
        .long_name = rng_below(r, 4) == 0,
    };
    run.status = mine->status;
    run.labels = str_of(LABEL_TEXTS[mine->label]);
    run.created_at = mine->created_at;
    run.workflow_id = mine->long_name ? STR("other") : STR("w");
    assert_ok(runs_insert(db, &run));
}

static void model_update(struct model *m, struct db *db, struct rng *r)
{
    struct model_run *mine = &m->runs[rng_below(r, m->count)];
    mine->status = (enum run_status)rng_below(r, RUN_STATUS_COUNT);
    struct run run = plain_run(mine->tenant, (struct uuid){{0}}, mine->num);
    run.revision = mine->version;
    run.status = mine->status;
    assert_ok(runs_update(db, &run));
    mine->version = run.revision;
}

static void fill_index(struct db *db, int64_t last)
{
    assert_ok(db_begin(db));
    assert_ok(late_index_fill(db, LATE_RUNS, last));
    assert_ok(db_commit(db));
}

/* Otherwise a new run would lie below the mark of the index, and never get into it. */
static void a_number_is_not_given_out_again_when_its_run_is_gone(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct run run = run_at(1, 5000, 0);
    assert_ok(runs_insert(db, &run));
    fill_index(db, run.num);
    run_sql(db, "DELETE FROM runs");
    int64_t last = 0;
    assert_ok(runs_last_num(db, &last));
    assert_int_equal(last, run.num);
    struct run next = run_at(1, 10, last); /* the clock was set back */
    assert_true(next.num > run.num);
    db_close(db);
}

static bool model_matches(const struct model_run *run, const struct run_filter *f)
{
    if (run->tenant != f->tenant || (f->status != RUN_STATUS_COUNT && f->status != run->status))
        return false;
    if (f->workflow_id.ptr != NULL && str_is(f->workflow_id, "other") != run->long_name)
        return false;
    if (f->created_after >= 0 && run->created_at <= f->created_after)
        return false;
    if (f->created_before >= 0 && run->created_at >= f->created_before)
        return false;
    if (f->label_name.ptr == NULL)
        return true;
    return (str_is(f->label_value, "a") && run->label == 1) ||
           (str_is(f->label_value, "b") && run->label == 2);
}

struct page {
    size_t room;
    int64_t nums[MODEL_MAX + 1];
    size_t count;
};

static bool take_run(void *ctx, const struct run *run)
{
    struct page *page = ctx;
    if (page->room == 0)
        return false;
    page->room--;
    assert_true(page->count < MODEL_MAX);
    page->nums[page->count++] = run->num;
    return true;
}

/* Page by page; the index may be filled on in between, as it is in a server. */
static void list_all(struct db *db, const struct run_filter *f, struct model *m, struct rng *r,
                     struct page *ret)
{
    ret->count = 0;
    int64_t before = INT64_MAX;
    size_t page_size = 1 + rng_below(r, rng_below(r, 2) == 0 ? 5 : 300);
    for (size_t pages = 0; before >= 0; pages++) {
        assert_true(pages <= MODEL_MAX + 2);
        ret->room = page_size;
        size_t had = ret->count;
        int64_t next = -2;
        assert_ok(runs_list(db, f, before, take_run, ret, &next));
        assert_true(next >= -1);
        /* A page that is not the last is full: the scan is far below its bound. */
        assert_true(next < 0 || ret->count == had + page_size);
        before = next;
        if (rng_below(r, 20) == 0)
            fill_index(db, m->runs[rng_below(r, m->count)].num);
    }
}

static void check_list(struct db *db, const struct run_filter *f, struct model *m, struct rng *r)
{
    static struct page page;
    list_all(db, f, m, r, &page);
    size_t at = 0;
    for (size_t i = m->count; i > 0; i--) {
        if (!model_matches(&m->runs[i - 1], f))
            continue;
        if (at >= page.count || page.nums[at] != m->runs[i - 1].num)
            fail_msg("tenant %d, status %d: place %zu of %zu is not run %lld", (int)f->tenant,
                     (int)f->status, at, page.count, (long long)m->runs[i - 1].num);
        at++;
    }
    assert_int_equal(page.count, at);
}

static struct run_filter random_filter(struct rng *r, size_t count)
{
    struct run_filter f = {
        .tenant = 1 + (int64_t)rng_below(r, TENANTS),
        .status = (enum run_status)rng_below(r, RUN_STATUS_COUNT + 1),
        .created_after = -1,
        .created_before = -1,
    };
    if (rng_below(r, 2) == 0)
        f.status = RUN_STATUS_COUNT;
    if (rng_below(r, 3) == 0)
        f.workflow_id = rng_below(r, 2) == 0 ? STR("w") : STR("other");
    if (rng_below(r, 3) == 0) {
        f.label_name = STR("env");
        f.label_value = rng_below(r, 2) == 0 ? STR("a") : STR("b");
    }
    if (rng_below(r, 4) == 0)
        f.created_after = (int64_t)rng_below(r, count / 10 + 1);
    if (rng_below(r, 4) == 0)
        f.created_before = (int64_t)rng_below(r, count / 10 + 1);
    return f;
}

static void lists_agree_with_a_model_wherever_the_index_ends(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.clock = INT64_C(1000000)};
    struct rng r = {99};
    for (int round = 0; round < 40; round++) {
        assert_ok(db_begin(db));
        for (uint64_t n = 1 + rng_below(&r, 70); n > 0; n--)
            model_insert(&m, db, &r);
        for (int n = 0; n < 10; n++)
            model_update(&m, db, &r);
        assert_ok(db_commit(db));
        if (rng_below(&r, 3) == 0)
            fill_index(db, m.runs[rng_below(&r, m.count)].num);
        for (int n = 0; n < 8; n++) {
            struct run_filter f = random_filter(&r, m.count);
            check_list(db, &f, &m, &r);
        }
    }
    db_close(db);
}

static void every_status_is_listed_whole_at_every_state_of_the_index(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static struct model m;
    m = (struct model){.clock = INT64_C(1000000)};
    struct rng r = {123};
    assert_ok(db_begin(db));
    for (int n = 0; n < 200; n++)
        model_insert(&m, db, &r);
    assert_ok(db_commit(db));
    for (size_t through = 0; through < m.count; through += 40) {
        if (through > 0)
            fill_index(db, m.runs[through].num);
        for (enum run_status s = 0; s <= RUN_STATUS_COUNT; s++) {
            struct run_filter f = {
                .tenant = 1, .status = s, .created_after = -1, .created_before = -1};
            check_list(db, &f, &m, &r);
        }
    }
    db_close(db);
}

static void a_rare_match_is_found_in_the_end(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t last = 0;
    int64_t first = 0;
    assert_ok(db_begin(db));
    for (int i = 0; i < PAGE_SCAN_MAX + 1000; i++) {
        struct run run = run_at(1, 5000, last);
        last = run.num;
        if (i == 0) {
            first = run.num;
            run.workflow_id = STR("rare");
        }
        assert_ok(runs_insert(db, &run));
    }
    assert_ok(late_index_fill(db, LATE_RUNS, last - 5000));
    assert_ok(db_commit(db));
    struct run_filter f = {.tenant = 1,
                           .status = RUN_STATUS_COUNT,
                           .workflow_id = STR("rare"),
                           .created_after = -1,
                           .created_before = -1};
    static struct page page;
    page = (struct page){.room = 10};
    int64_t next = -1;
    assert_ok(runs_list(db, &f, INT64_MAX, take_run, &page, &next));
    assert_int_equal(page.count, 0); /* the scan took a break */
    assert_true(next > first);
    assert_ok(runs_list(db, &f, next, take_run, &page, &next));
    assert_int_equal(page.count, 1);
    assert_int_equal(page.nums[0], first);
    assert_int_equal(next, -1);
    db_close(db);
}

static void an_empty_store_has_an_empty_list(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (enum run_status s = 0; s <= RUN_STATUS_COUNT; s++) {
        struct run_filter f = {.tenant = 1, .status = s, .created_after = -1, .created_before = -1};
        static struct page page;
        page = (struct page){.room = 10};
        int64_t next = 5;
        assert_ok(runs_list(db, &f, INT64_MAX, take_run, &page, &next));
        assert_int_equal(page.count, 0);
        assert_int_equal(next, -1);
    }
    db_close(db);
}

/* --- jobs --- */

static struct job job_of(int64_t run, int64_t ordinal)
{
    return (struct job){
        .run = run,
        .ordinal = ordinal,
        .id = jobs_new_id(&ENV_SYSTEM, run, ordinal),
        .tenant = 1,
        .state = JOB_PENDING,
        .queue = STR("default"),
        .due_at = -1,
        .created_at = 1000,
        .started_at = -1,
        .finished_at = -1,
    };
}

static void a_job_is_found_by_its_id_alone(void **state)
{
    static const int64_t ORDINALS[] = {
        1, 2, 3, 4, 255, 256, 1023, 1024, 262143, 262144, JOB_ORDINAL_MAX - 1, JOB_ORDINAL_MAX};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    int64_t run = uuid_time(env_new_id(&ENV_SYSTEM));
    struct uuid ids[ARRAY_LEN(ORDINALS)];
    for (size_t i = 0; i < ARRAY_LEN(ORDINALS); i++) {
        struct job job = job_of(run, ORDINALS[i]);
        ids[i] = job.id;
        assert_int_equal(job.id.bytes[6] >> 4, 7); /* still a UUIDv7 */
        assert_int_equal(job.id.bytes[8] >> 6, 2);
        assert_ok(jobs_insert(db, &job));
    }
    for (size_t i = 0; i < ARRAY_LEN(ORDINALS); i++) {
        struct job back;
        bool found = false;
        assert_ok(jobs_find(db, 1, ids[i], &arena, &found, &back));
        assert_true(found);
        assert_int_equal(back.ordinal, ORDINALS[i]);
        assert_int_equal(back.run, run);
        assert_ok(jobs_find(db, 0, ids[i], &arena, &found, &back));
        assert_true(found);
        assert_ok(jobs_find(db, 2, ids[i], &arena, &found, &back));
        assert_false(found);
        for (size_t byte = 0; byte < sizeof(ids[i].bytes); byte++) {
            struct uuid guess = ids[i];
            guess.bytes[byte] ^= 1;
            assert_ok(jobs_find(db, 1, guess, &arena, &found, &back));
            assert_false(found);
        }
    }
    arena_release(&arena);
    db_close(db);
}

static void a_job_changes_only_from_the_state_and_epoch_that_were_read(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    struct job job = job_of(10, 1);
    assert_ok(jobs_insert(db, &job));
    job.state = JOB_RUNNING;
    job.lease_epoch = 1;
    job.worker = STR("w1");
    job.due_at = 5000;
    assert_int_equal(jobs_update(db, &job, JOB_RUNNING, 0), ERR_CONCURRENCY);
    assert_int_equal(jobs_update(db, &job, JOB_PENDING, 1), ERR_CONCURRENCY);
    assert_ok(jobs_update(db, &job, JOB_PENDING, 0));
    assert_int_equal(jobs_update(db, &job, JOB_PENDING, 0), ERR_CONCURRENCY);
    struct job back;
    bool found = false;
    assert_ok(jobs_find_at(db, 10, 1, &arena, &found, &back));
    assert_true(found);
    assert_int_equal(back.state, JOB_RUNNING);
    assert_str(back.worker, "w1");
    assert_int_equal(back.due_at, 5000);
    arena_release(&arena);
    db_close(db);
}

static void the_most_urgent_then_the_oldest_job_is_next(void **state)
{
    static const struct {
        int64_t run, ordinal, urgency;
    } JOBS[] = {{30, 1, 0}, {20, 2, 0}, {20, 1, 0}, {40, 1, -5}, {10, 1, 5}, {50, 1, -5}};
    static const size_t ORDER[] = {3, 5, 2, 1, 0, 4};
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct arena arena;
    arena_init(&arena, MIB);
    for (size_t i = 0; i < ARRAY_LEN(JOBS); i++) {
        struct job job = job_of(JOBS[i].run, JOBS[i].ordinal);
        job.urgency = JOBS[i].urgency;
        assert_ok(jobs_insert(db, &job));
    }
    struct job other = job_of(1, 1);
    other.queue = STR("other");
    other.urgency = -100;
    assert_ok(jobs_insert(db, &other));
    bool found = false;
    struct job next;
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
        assert_true(found);
        assert_int_equal(next.run, JOBS[ORDER[i]].run);
        assert_int_equal(next.ordinal, JOBS[ORDER[i]].ordinal);
        next.state = JOB_RUNNING;
        assert_ok(jobs_update(db, &next, JOB_PENDING, 0));
    }
    assert_ok(jobs_next(db, 1, STR("default"), &arena, &found, &next));
    assert_false(found);
    arena_release(&arena);
    db_close(db);
}

static void tenants_with_work_are_found_one_after_the_other(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static const int64_t TENANTS_WITH_WORK[] = {9, 2, 5};
    for (size_t i = 0; i < ARRAY_LEN(TENANTS_WITH_WORK); i++) {
        struct job job = job_of(10 + (int64_t)i, 1);
        job.tenant = TENANTS_WITH_WORK[i];
        assert_ok(jobs_insert(db, &job));
    }
    static const int64_t AFTER[] = {0, 2, 5};
    static const int64_t NEXT[] = {2, 5, 9};
    bool found = false;
    int64_t tenant = 0;
    for (size_t i = 0; i < ARRAY_LEN(AFTER); i++) {
        assert_ok(jobs_next_tenant(db, STR("default"), AFTER[i], &found, &tenant));
        assert_true(found);
        assert_int_equal(tenant, NEXT[i]);
    }
    assert_ok(jobs_next_tenant(db, STR("default"), 9, &found, &tenant));
    assert_false(found);
    assert_ok(jobs_next_tenant(db, STR("other"), 0, &found, &tenant));
    assert_false(found);
    db_close(db);
}

static void note_ordinal(void *ctx, const struct job *job)
{
    int64_t *last = ctx;
    assert_int_equal(job->ordinal, *last + 1);
    *last = job->ordinal;
}

static void jobs_of_a_run_come_in_the_order_of_their_making(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    static const int64_t ORDER[] = {3, 1, 5, 2, 4};
    for (size_t i = 0; i < ARRAY_LEN(ORDER); i++) {
        struct job mine = job_of(20, ORDER[i]);
        struct job other = job_of(21, ORDER[i]);
        assert_ok(jobs_insert(db, &mine));
        assert_ok(jobs_insert(db, &other));
    }
    int64_t last = 0;
    assert_ok(jobs_of_run(db, 20, note_ordinal, &last));
    assert_int_equal(last, 5);
    db_close(db);
}

static bool note_open(void *ctx, const struct job *job)
{
    note_ordinal(ctx, job);
    return job->ordinal < 2 * ROWS_PER_SLICE;
}

static void open_jobs_of_a_run_are_listed_across_slices(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    for (int64_t i = 1; i <= 3 * ROWS_PER_SLICE; i++) {
        struct job job = job_of(20, i);
        assert_ok(jobs_insert(db, &job));
    }
    int64_t last = 0;
    assert_ok(jobs_open(db, 20, 1, ROWS_PER_SLICE + 1, note_open, &last));
    assert_int_equal(last, ROWS_PER_SLICE); /* the whole range, which is one slice */
    last = 0;
    assert_ok(jobs_open(db, 20, 1, 1000, note_open, &last));
    assert_int_equal(last, 2 * ROWS_PER_SLICE); /* as far as it was wanted */
    db_close(db);
}

/* --- events --- */

struct seen_events {
    int64_t seqs[16];
    size_t count;
};

static void note_event(void *ctx, const struct event *event)
{
    struct seen_events *seen = ctx;
    assert_true(seen->count < ARRAY_LEN(seen->seqs));
    seen->seqs[seen->count++] = event->seq;
}

static void events_are_numbered_within_their_run(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    append(db, 1, 1, "run.created");
    append(db, 1, 2, "job.created");
    append(db, 2, 1, "run.created");
    for (int i = 0; i < 5; i++)
        append(db, 1, 3 + i, "more");
    append(db, 2, 2, "more");
    struct seen_events seen = {.count = 0};
    assert_ok(events_list(db, 1, 0, 100, note_event, &seen));
    assert_int_equal(seen.count, 7);
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(seen.seqs[i], i + 1);
    seen.count = 0;
    assert_ok(events_list(db, 1, 3, 2, note_event, &seen));
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.seqs[0], 4);
    seen.count = 0;
    assert_ok(events_list(db, 2, 0, 100, note_event, &seen));
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.seqs[1], 2);
    seen.count = 0;
    assert_ok(events_list(db, 3, 0, 100, note_event, &seen));
    assert_int_equal(seen.count, 0);
    db_close(db);
}

/* --- timers --- */

static void timers_come_earliest_first(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    int64_t due = 0;
    assert_ok(timers_next(db, &due));
    assert_int_equal(due, -1);
    struct rng r = {11};
    for (int64_t i = 0; i < 50; i++) {
        struct timer t = {100 + (int64_t)rng_below(&r, 30), i, 1, 0, 1};
        assert_ok(timers_insert(db, &t));
    }
    struct timer out[64];
    size_t count = 0;
    assert_ok(timers_due(db, 99, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 0);
    assert_ok(timers_due(db, 1000, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 50);
    for (size_t i = 1; i < count; i++) {
        assert_true(out[i - 1].due_at < out[i].due_at ||
                    (out[i - 1].due_at == out[i].due_at && out[i - 1].run < out[i].run));
    }
    assert_ok(timers_next(db, &due));
    assert_int_equal(due, out[0].due_at);
    struct timer few[5];
    assert_ok(timers_due(db, 1000, ARRAY_LEN(few), few, &count));
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(few[i].run, out[i].run);
    assert_ok(timers_due(db, out[20].due_at, ARRAY_LEN(out), out, &count));
    assert_true(count >= 21); /* at its time a timer is due */
    db_close(db);
}

static void a_timer_is_deleted_by_its_generation_only(void **state)
{
    struct db *db = open_writer(path_in(*state, "p.db").text);
    struct timer t = {100, 1, 1, 1, 1};
    struct timer older = {100, 1, 1, 0, 1};
    assert_ok(timers_insert(db, &older));
    assert_ok(timers_insert(db, &t)); /* takes its place */
    assert_ok(timers_delete(db, &older));
    struct timer out[4];
    size_t count = 0;
    assert_ok(timers_due(db, 100, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 1);
    assert_int_equal(out[0].generation, 1);
    assert_ok(timers_delete(db, &t));
    assert_ok(timers_due(db, 100, ARRAY_LEN(out), out, &count));
    assert_int_equal(count, 0);
    db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_rise_even_when_the_clock_does_not),
        folder_test(a_run_comes_back_as_it_was_written),
        folder_test(the_version_of_a_run_is_the_number_of_its_last_event),
        folder_test(a_change_that_read_an_older_revision_is_refused),
        folder_test(a_number_is_not_given_out_again_when_its_run_is_gone),
        folder_test(the_statuses_that_hold_a_slot_are_the_same_in_sql),
        folder_test(lists_agree_with_a_model_wherever_the_index_ends),
        folder_test(every_status_is_listed_whole_at_every_state_of_the_index),
        folder_test(a_rare_match_is_found_in_the_end),
        folder_test(an_empty_store_has_an_empty_list),
        folder_test(a_job_is_found_by_its_id_alone),
        folder_test(a_job_changes_only_from_the_state_and_epoch_that_were_read),
        folder_test(the_most_urgent_then_the_oldest_job_is_next),
        folder_test(tenants_with_work_are_found_one_after_the_other),
        folder_test(jobs_of_a_run_come_in_the_order_of_their_making),
        folder_test(open_jobs_of_a_run_are_listed_across_slices),
        folder_test(events_are_numbered_within_their_run),
        folder_test(timers_come_earliest_first),
        folder_test(a_timer_is_deleted_by_its_generation_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
