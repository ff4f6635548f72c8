/* What the writer remembers of rows is what the file has. */
#include "store/event_support.h"
#include "store/run_support.h"

#include "base/limits.h"
#include "store/row_cache.h"
#include "store/run/retention.h"

enum { RUNS = 6, JOBS = 3, ROUNDS = 4000 };

struct pair {
    struct db *writer;
    struct db *reader; /* has no cache */
    struct arena arena;
    struct rng rng;
    struct run runs[RUNS];
};

static int64_t job_owner(const struct pair *p, size_t run)
{
    return p->runs[run].num;
}

/* --- comparing --- */

static void assert_text(struct str a, struct str b)
{
    assert_int_equal(a.ptr == NULL, b.ptr == NULL);
    if (a.ptr != NULL && b.ptr != NULL)
        assert_true(str_eq(a, b));
}

static void assert_same_run(const struct run *a, const struct run *b)
{
    assert_int_equal(a->num, b->num);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->revision, b->revision);
    assert_int_equal(a->started_at, b->started_at);
    assert_int_equal(a->finished_at, b->finished_at);
    assert_int_equal(a->deadline_at, b->deadline_at);
    assert_int_equal(a->start_at, b->start_at);
    assert_int_equal(a->key_num, b->key_num);
    assert_text(a->input, b->input);
    assert_text(a->state, b->state);
    assert_text(a->output, b->output);
    assert_text(a->error, b->error);
    assert_text(a->progress, b->progress);
    assert_text(a->scopes, b->scopes);
    assert_text(a->tracestate, b->tracestate);
}

static void assert_same_job(const struct job *a, const struct job *b)
{
    assert_int_equal(a->owner, b->owner);
    assert_int_equal(a->ordinal, b->ordinal);
    assert_true(uuid_eq(a->id, b->id) && uuid_eq(a->child, b->child));
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->lease_epoch, b->lease_epoch);
    assert_int_equal(a->due_at, b->due_at);
    assert_int_equal(a->armed_at, b->armed_at);
    assert_int_equal(a->started_at, b->started_at);
    assert_int_equal(a->finished_at, b->finished_at);
    assert_int_equal(a->lease_ms, b->lease_ms);
    assert_int_equal(a->dead_at, b->dead_at);
    assert_int_equal(a->stale_epoch, b->stale_epoch);
    assert_text(a->queue, b->queue);
    assert_text(a->worker, b->worker);
    assert_text(a->output, b->output);
    assert_text(a->error, b->error);
    assert_text(a->input, b->input);
    assert_text(a->note, b->note);
}

static void compare_all(struct pair *p)
{
    for (size_t i = 0; i < RUNS; i++) {
        struct run a, b;
        bool found_a = false, found_b = false;
        assert_ok(runs_find_num(p->writer, p->runs[i].num, &p->arena, &found_a, &a));
        assert_ok(runs_find_num(p->reader, p->runs[i].num, &p->arena, &found_b, &b));
        assert_int_equal(found_a, found_b);
        if (found_a)
            assert_same_run(&a, &b);
        for (int64_t ordinal = 1; ordinal <= JOBS; ordinal++) {
            struct job j, k;
            assert_ok(jobs_find_at(p->writer, job_owner(p, i), ordinal, &p->arena, &found_a, &j));
            assert_ok(jobs_find_at(p->reader, job_owner(p, i), ordinal, &p->arena, &found_b, &k));
            assert_int_equal(found_a, found_b);
            if (found_a)
                assert_same_job(&j, &k);
        }
    }
    arena_clear(&p->arena);
}

/* --- changing --- */

static struct str any_text(struct pair *p)
{
    static const struct str TEXTS[] = {{NULL, 0}, {"", 0}, {"{}", 2}, {"{\"a\":\"longer\"}", 14}};
    return TEXTS[rng_below(&p->rng, ARRAY_LEN(TEXTS))];
}

static int64_t any_time(struct pair *p)
{
    return (int64_t)rng_below(&p->rng, 4) * 1000 - 1;
}

static void change_run(struct pair *p, size_t i)
{
    struct run run;
    bool found = false;
    assert_ok(runs_find_num(p->writer, p->runs[i].num, &p->arena, &found, &run));
    if (!found) {
        assert_ok(runs_insert(p->writer, &p->runs[i]));
        return;
    }
    run.status = rng_below(&p->rng, 2) == 0 ? RUN_RUNNING : RUN_SUCCEEDED;
    run.state = STR("{\"n\":2}");
    run.output = any_text(p);
    run.error = any_text(p);
    run.progress = any_text(p);
    run.scopes = any_text(p);
    run.started_at = any_time(p);
    run.finished_at = any_time(p);
    run.deadline_at = any_time(p);
    run.start_at = any_time(p);
    run.input = STR("changed in memory only");
    assert_ok(runs_update(p->writer, &run));
}

static void add_event(struct pair *p, size_t i)
{
    struct run run;
    bool found = false;
    assert_ok(runs_find_num(p->writer, p->runs[i].num, &p->arena, &found, &run));
    if (found)
        assert_ok(events_append(p->writer, run.num, run.version + 2, 1, STR("[[\"a\"],[\"b\"]]")));
}

static void add_job(struct pair *p, size_t i, int64_t ordinal)
{
    struct job job = {.owner = job_owner(p, i),
                      .ordinal = ordinal,
                      .id = jobs_new_id(&ENV_SYSTEM, job_owner(p, i), ordinal),
                      .tenant = 1,
                      .queue = STR("q"),
                      .created_at = 1,
                      .due_at = any_time(p),
                      .input = any_text(p),
                      .started_at = -1,
                      .finished_at = -1,
                      .lease_ms = -1,
                      .dead_at = -1};
    assert_ok(jobs_insert(p->writer, &job));
}

static void change_job(struct pair *p, size_t i, int64_t ordinal)
{
    struct job job;
    bool found = false;
    assert_ok(jobs_find_at(p->writer, job_owner(p, i), ordinal, &p->arena, &found, &job));
    if (!found) {
        add_job(p, i, ordinal);
        return;
    }
    struct job old = job;
    job.state = rng_below(&p->rng, 2) == 0 ? JOB_RUNNING : JOB_PENDING;
    job.attempt++;
    job.lease_epoch++;
    job.worker = any_text(p);
    job.due_at = any_time(p);
    job.output = any_text(p);
    job.error = any_text(p);
    job.started_at = any_time(p);
    job.finished_at = any_time(p);
    job.lease_ms = any_time(p);
    job.note = any_text(p);
    job.dead_at = any_time(p);
    job.child = rng_below(&p->rng, 2) == 0 ? job.id : (struct uuid){{0}};
    job.stale_epoch++;
    job.queue = STR("changed in memory only");
    assert_ok(jobs_update(p->writer, &job, old.state, old.lease_epoch));
}

static void change_something(struct pair *p)
{
    size_t i = rng_below(&p->rng, RUNS);
    int64_t ordinal = 1 + (int64_t)rng_below(&p->rng, JOBS);
    int64_t removed;
    bool gone;
    switch (rng_below(&p->rng, 12)) {
    case 0:
        assert_ok(jobs_remove(p->writer, job_owner(p, i), ordinal));
        break;
    case 1:
        assert_ok(jobs_set_queue(p->writer, job_owner(p, i), ordinal, STR("other")));
        break;
    case 2:
        assert_ok(jobs_set_input(p->writer, job_owner(p, i), ordinal, STR("[7]")));
        break;
    case 3:
        assert_ok(retention_remove(p->writer, 1, p->runs[i].num, 3, &removed, &gone));
        break;
    case 4:
    case 5:
        add_event(p, i);
        break;
    case 6:
    case 7:
    case 8:
        change_run(p, i);
        break;
    default:
        change_job(p, i, ordinal);
    }
}

static void the_writer_reads_what_the_file_has(void **state)
{
    struct path path = path_in(*state, "p.db");
    struct pair p = {.writer = open_writer(path.text), .rng = {11}};
    p.reader = open_reader(path.text);
    arena_init(&p.arena, MIB);
    for (size_t i = 0; i < RUNS; i++)
        p.runs[i] = run_at(1, 5000 + (int64_t)i, 0);
    assert_non_null(db_row_cache(p.writer));
    assert_null(db_row_cache(p.reader));
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(db_begin(p.writer));
        for (size_t n = rng_below(&p.rng, 4); n > 0; n--)
            change_something(&p);
        if (rng_below(&p.rng, 5) == 0)
            db_rollback(p.writer);
        else
            assert_ok(db_commit(p.writer));
        compare_all(&p);
    }
    arena_release(&p.arena);
    db_close(p.reader);
    db_close(p.writer);
}

/* --- the cache alone --- */

struct note {
    int64_t number;
    struct str text;
};

static const size_t NOTE_TEXTS[] = {NO_TEXT, offsetof(struct note, text)};
static const struct row_shape NOTE = {sizeof(struct note), NOTE_TEXTS, ARRAY_LEN(NOTE_TEXTS)};
static const struct row_shape OTHER = {sizeof(struct note), NOTE_TEXTS, ARRAY_LEN(NOTE_TEXTS)};

static bool has(const struct row_cache *c, int64_t owner, int64_t part)
{
    return row_cache_peek(c, &NOTE, owner, part) != NULL;
}

static void rows_are_told_apart_by_kind_and_numbers(void **state)
{
    (void)state;
    struct row_cache *c = row_cache_new();
    struct note note = {5, STR("five")};
    row_cache_put(c, &NOTE, 1, 2, &note);
    assert_true(has(c, 1, 2));
    assert_false(has(c, 2, 1));
    assert_null(row_cache_peek(c, &OTHER, 1, 2));
    row_cache_drop(c, &OTHER, 1, 2);
    assert_true(has(c, 1, 2));
    row_cache_drop(c, &NOTE, 1, 2);
    assert_false(has(c, 1, 2));
    row_cache_free(c);
}

static void texts_are_copies_in_both_directions(void **state)
{
    (void)state;
    struct row_cache *c = row_cache_new();
    struct arena arena;
    arena_init(&arena, KIB);
    char text[] = "one";
    struct note note = {1, {text, 3}};
    row_cache_put(c, &NOTE, 1, 1, &note);
    text[0] = 'x';
    struct note back;
    assert_true(row_cache_find(c, &NOTE, 1, 1, &arena, &back));
    row_cache_clear(c);
    assert_str(back.text, "one");
    assert_int_equal(back.text.ptr[3], '\0');
    assert_false(row_cache_find(c, &NOTE, 1, 1, &arena, &back));
    arena_release(&arena);
    row_cache_free(c);
}

static void a_large_row_is_not_kept_and_all_of_them_have_a_bound(void **state)
{
    (void)state;
    static char text[ROW_CACHE_TEXT_MAX];
    struct row_cache *c = row_cache_new();
    struct note small = {1, {text, 1}};
    struct note large = {1, {text, sizeof(text)}};
    row_cache_put(c, &NOTE, 1, 1, &small);
    row_cache_put(c, &NOTE, 1, 1, &large);
    assert_false(has(c, 1, 1)); /* what was kept is out of date */
    struct note medium = {1, {text, sizeof(text) / 2}};
    int64_t kept = 0;
    for (int64_t i = 1; i <= ROW_CACHE_ROWS; i++)
        row_cache_put(c, &NOTE, i, 1, &medium);
    for (int64_t i = 1; i <= ROW_CACHE_ROWS; i++)
        kept += has(c, i, 1);
    assert_in_range(kept, 1, ROW_CACHE_BYTES_MAX / (int64_t)(sizeof(text) / 2));
    assert_true(has(c, ROW_CACHE_ROWS, 1));
    row_cache_free(c);
}

static void a_held_row_can_be_kept_without_another_copy(void **state)
{
    (void)state;
    static char text[ROW_CACHE_TEXT_MAX];
    struct row_cache *c = row_cache_new();
    struct note old = {1, STR("old")};
    struct note note = {2, STR("new")};
    struct note large = {3, {text, sizeof(text)}};
    row_cache_put(c, &NOTE, 1, 1, &old);
    for (int64_t i = 1; i <= 3; i++) {
        assert_true(row_cache_hold(c, &NOTE, &note));
        struct note *kept = row_cache_put_held(c, i, 1);
        kept->number += i;
        assert_null(row_cache_held(c, &NOTE));
    }
    for (int64_t i = 1; i <= 3; i++) {
        const struct note *kept = row_cache_peek(c, &NOTE, i, 1);
        assert_non_null(kept);
        assert_int_equal(kept->number, 2 + i);
        assert_str(kept->text, "new");
    }
    assert_true(row_cache_hold(c, &NOTE, &large));
    const struct note *readable = row_cache_put_held(c, 1, 1);
    assert_int_equal(readable->number, 3);
    assert_false(has(c, 1, 1)); /* what was kept is out of date */
    assert_true(row_cache_hold(c, &NOTE, &note));
    row_cache_free(c);
}

static void without_memory_nothing_is_kept(void **state)
{
    (void)state;
    struct note note = {1, STR("x")};
    struct arena arena;
    arena_init(&arena, KIB);
    row_cache_put(NULL, &NOTE, 1, 1, &note);
    row_cache_drop(NULL, &NOTE, 1, 1);
    row_cache_clear(NULL);
    assert_false(has(NULL, 1, 1));
    assert_false(row_cache_find(NULL, &NOTE, 1, 1, &arena, &note));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(the_writer_reads_what_the_file_has),
        cmocka_unit_test(rows_are_told_apart_by_kind_and_numbers),
        cmocka_unit_test(texts_are_copies_in_both_directions),
        cmocka_unit_test(a_large_row_is_not_kept_and_all_of_them_have_a_bound),
        cmocka_unit_test(a_held_row_can_be_kept_without_another_copy),
        cmocka_unit_test(without_memory_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
