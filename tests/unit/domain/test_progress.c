/* How far a run is, as text: it comes back as it was written, and nothing else is taken for it. */
#include "base/support.h"

#include "domain/progress.h"

enum { COUNT_MAX = 12 };

static struct str text_of(const struct progress *p, struct buf *out)
{
    buf_clear(out);
    progress_put(out, p);
    assert_true(buf_ok(out));
    return buf_str(out);
}

static bool step_eq(const struct step_state *a, const struct step_state *b)
{
    return a->status == b->status && a->cut == b->cut && a->is_map == b->is_map &&
           a->first == b->first && a->items == b->items && a->begun == b->begun &&
           a->over == b->over && a->failed == b->failed && a->seq == b->seq && a->undo == b->undo &&
           a->undo_job == b->undo_job;
}

static void assert_comes_back(const struct progress *p)
{
    struct arena arena;
    struct buf text;
    arena_init(&arena, 1024 * 1024);
    buf_init(&text, 64 * 1024);
    struct progress back;
    if (progress_parse(text_of(p, &text), p->count, &arena, &back) != ERR_OK)
        fail_msg("refused: %s", text.ptr);
    assert_int_equal(back.count, p->count);
    assert_int_equal(back.jobs, p->jobs);
    assert_int_equal(back.settled, p->settled);
    assert_int_equal(back.order, p->order);
    assert_int_equal(back.stop, p->stop);
    assert_int_equal(back.cause, p->cause);
    for (size_t i = 0; i < p->count; i++) {
        if (!step_eq(&back.steps[i], &p->steps[i]))
            fail_msg("step %zu of %s", i, text.ptr);
    }
    buf_release(&text);
    arena_release(&arena);
}

static enum err try(const char *text, size_t count)
{
    struct arena arena;
    arena_init(&arena, 1024 * 1024);
    struct progress p;
    enum err e = progress_parse(str_of(text), count, &arena, &p);
    arena_release(&arena);
    return e;
}

/* --- round trips --- */

static void a_new_run_is_all_steps_waiting(void **state)
{
    (void)state;
    struct arena arena;
    struct buf text;
    arena_init(&arena, 1024 * 1024);
    buf_init(&text, 1024);
    struct progress p;
    assert_true(progress_init(&p, 3, &arena));
    assert_str(text_of(&p, &text), "0 0 0 0 0|w|w|w");
    assert_comes_back(&p);
    buf_release(&text);
    arena_release(&arena);
}

static void the_text_is_as_its_file_says(void **state)
{
    (void)state;
    struct step_state steps[] = {
        {.status = STEP_IS_SUCCEEDED, .first = 1, .items = 1, .begun = 1, .over = 1, .seq = 1},
        {.status = STEP_IS_ACTIVE,
         .is_map = true,
         .first = 2,
         .items = 100,
         .begun = 16,
         .over = 3},
        {.status = STEP_IS_WAITING},
        {.status = STEP_IS_SUCCEEDED,
         .first = 102,
         .items = 1,
         .begun = 1,
         .over = 1,
         .seq = 2,
         .undo = UNDO_OPEN,
         .undo_job = 103},
        {.status = STEP_IS_SKIPPED, .cut = true, .seq = 3},
        {.status = STEP_IS_ACTIVE, .first = 104, .items = 1, .begun = 1},
    };
    struct progress p = {.jobs = 104, .settled = 3, .order = 3, .steps = steps, .count = 6};
    struct buf text;
    buf_init(&text, 1024);
    assert_str(text_of(&p, &text), "104 3 3 0 0|s1#1|a2:100,16,3,0|w|s102#2+1.103|kx#3|a104");
    assert_comes_back(&p);
    buf_release(&text);
}

static void every_status_has_a_letter_of_its_own_and_comes_back(void **state)
{
    (void)state;
    char seen[STEP_STATUS_COUNT];
    for (enum step_status s = 0; s < STEP_STATUS_COUNT; s++) {
        bool settled = step_is_settled(s);
        bool ran = s != STEP_IS_WAITING && s != STEP_IS_SKIPPED;
        struct step_state step = {.status = s,
                                  .first = ran,
                                  .items = ran,
                                  .begun = ran,
                                  .over = ran && settled,
                                  .seq = settled};
        struct progress p = {.jobs = 1, .settled = settled, .order = 1, .steps = &step, .count = 1};
        assert_comes_back(&p);
        struct buf text;
        buf_init(&text, 1024);
        seen[s] = strchr(text_of(&p, &text).ptr, '|')[1];
        buf_release(&text);
        for (enum step_status other = 0; other < s; other++)
            assert_int_not_equal(seen[s], seen[other]);
    }
}

static void why_a_run_stops_and_how_far_it_is_undone_come_back(void **state)
{
    (void)state;
    for (int stop = STOP_NO; stop < RUN_STOP_COUNT; stop++) {
        for (int undo = UNDO_NONE; undo < UNDO_STATUS_COUNT; undo++) {
            struct step_state steps[] = {
                {.status = STEP_IS_SUCCEEDED,
                 .first = 1,
                 .items = 1,
                 .begun = 1,
                 .over = 1,
                 .seq = 1,
                 .undo = (enum undo_status)undo,
                 .undo_job = undo == UNDO_NONE ? 0 : 3},
                {.status = STEP_IS_FAILED, .first = 2, .items = 1, .begun = 1, .over = 1, .seq = 2},
            };
            struct progress p = {.jobs = 3,
                                 .settled = 2,
                                 .order = 2,
                                 .stop = (enum run_stop)stop,
                                 .cause = stop == STOP_FAILED ? 1 : 0,
                                 .steps = steps,
                                 .count = 2};
            assert_comes_back(&p);
        }
    }
}

static void the_largest_numbers_come_back(void **state)
{
    (void)state;
    const int64_t huge = INT64_C(999999999999999999);
    struct step_state steps[] = {
        {.status = STEP_IS_SUCCEEDED,
         .is_map = true,
         .first = 1,
         .items = huge,
         .begun = huge,
         .over = huge,
         .failed = huge,
         .seq = huge,
         .undo = UNDO_FAILED,
         .undo_job = huge},
        {.status = STEP_IS_ACTIVE, .is_map = true, .first = huge, .items = 1},
        {.status = STEP_IS_SUCCEEDED, .is_map = true, .seq = 1}, /* a map of nothing */
    };
    struct progress p = {.jobs = huge, .settled = 2, .order = huge, .steps = steps, .count = 3};
    assert_comes_back(&p);
}

/* --- any progress --- */

static int64_t number(struct rng *r)
{
    static const int64_t CEILINGS[] = {1, 9, 99, 12345, 16777215, 999999999999};
    return 1 + (int64_t)rng_below(r, (uint64_t)CEILINGS[rng_below(r, ARRAY_LEN(CEILINGS))]);
}

static void random_step(struct rng *r, struct progress *p, struct step_state *s)
{
    *s = (struct step_state){.status = (enum step_status)rng_below(r, STEP_STATUS_COUNT)};
    bool settled = step_is_settled(s->status);
    if (settled) {
        s->seq = p->order += number(r);
        p->settled++;
    }
    s->cut = s->status == STEP_IS_SKIPPED && rng_below(r, 2) == 0;
    if (s->status == STEP_IS_WAITING || s->status == STEP_IS_SKIPPED)
        return;
    s->is_map = rng_below(r, 2) == 0;
    s->items = s->is_map ? number(r) - 1 : 1;
    s->first = s->items > 0 ? p->jobs + number(r) : 0;
    p->jobs = MAX(p->jobs, s->first + s->items);
    s->begun = s->is_map ? (int64_t)rng_below(r, (uint64_t)s->items + 1) : 1;
    s->over = s->is_map ? (int64_t)rng_below(r, (uint64_t)s->begun + 1) : settled;
    s->failed = s->is_map ? (int64_t)rng_below(r, (uint64_t)s->over + 1) : 0;
    s->asked = settled ? 0 : (int64_t)rng_below(r, (uint64_t)(s->begun - s->over) + 1);
    if (s->status == STEP_IS_SUCCEEDED && rng_below(r, 2) == 0) {
        s->undo = (enum undo_status)(1 + rng_below(r, UNDO_STATUS_COUNT - 1));
        s->undo_job = ++p->jobs;
    }
}

static void random_progress(struct rng *r, struct progress *p, struct step_state *steps)
{
    *p = (struct progress){.steps = steps, .count = 1 + rng_below(r, COUNT_MAX)};
    for (size_t i = 0; i < p->count; i++)
        random_step(r, p, &steps[i]);
    p->stop = (enum run_stop)rng_below(r, RUN_STOP_COUNT);
    p->cause = p->stop == STOP_FAILED ? (int64_t)rng_below(r, p->count) : 0;
}

static void any_progress_comes_back(void **state)
{
    (void)state;
    struct rng r = {71};
    struct step_state steps[COUNT_MAX];
    for (int i = 0; i < 5000; i++) {
        struct progress p;
        random_progress(&r, &p, steps);
        assert_comes_back(&p);
    }
}

/* --- any other text --- */

static void text_that_is_no_progress_is_refused(void **state)
{
    (void)state;
    assert_int_equal(try("2 1 1 0 0|s1#1|a2", 2), ERR_OK);
    static const char *const TEXTS[] = {
        "",
        "0",
        "2 1 1 0 0",
        "2 1 1 0 0|s1#1",
        "2 1 1 0 0|s1#1|",
        "2 1 1 0 0|s1#1|a2|w",
        "2 1 1 0 0|s1#1|a2 ",
        " 2 1 1 0 0|s1#1|a2",
        "2  1 1 0 0|s1#1|a2",
        "-2 1 1 0 0|s1#1|a2",
        "+2 1 1 0 0|s1#1|a2",
        "02 1 1 0 0|s1#1|a2",
        "2 1 1 0 0|s01#1|a2",
        "2 1 1 0 0|s1#01|a2",
        "2 1 1 0 0|s1#|a2",
        "2 1 1 0 0|s1|a2",     /* settled, and nobody knows when */
        "2 1 1 0 0|s1#1|a2#1", /* not settled, and yet in the order */
        "2 1 1 0 0|s1#2|a2",   /* later than the last */
        "2 2 1 0 0|s1#1|a2",   /* more are settled than are */
        "2 0 1 0 0|s1#1|a2",   /* fewer */
        "2 1 1 3 0|s1#1|a2",   /* no such reason to stop */
        "2 1 1 1 2|s1#1|a2",   /* no such step */
        "2 1 1 2 1|s1#1|a2",   /* out of time, by a step? */
        "2 1 1 0 1|s1#1|a2",   /* not stopped, by a step? */
        "1 1 1 0 0|s1#1|a2",   /* an ordinal that was never given out */
        "2 1 1 0 0|s1#1|a0",
        "2 1 1 0 0|s1#1|a",   /* active without a job */
        "2 1 1 0 0|s1#1|w2",  /* waiting with one */
        "2 1 1 0 0|k1#1|a2",  /* skipped with one */
        "2 1 1 0 0|s1#1|ax2", /* cut off and active */
        "2 1 1 0 0|s1#1|z2",
        "2 1 1 0 0|S1#1|a2",
        "2 1 1 0 0|s1#1+0.2|a2", /* undone, and not */
        "2 1 1 0 0|s1#1+4.2|a2",
        "2 1 1 0 0|s1#1+1.3|a2", /* by a job that does not exist */
        "2 1 1 0 0|s1#1+1.0|a2",
        "2 1 1 0 0|s1#1+1|a2",
        "2 1 1 0 0|f1#1+1.2|a2", /* what failed is not undone */
        "2 1 1 0 0|s1#1|a2:1,1,0",
        "2 1 1 0 0|s1#1|a2:1,1,0,0,0",
        "2 1 1 0 0|s1#1|a2:2,1,0,0", /* more items than ordinals */
        "2 1 1 0 0|s1#1|a2:1,2,0,0", /* more begun than there are */
        "2 1 1 0 0|s1#1|a2:1,0,1,0", /* over before they began */
        "2 1 1 0 0|s1#1|a2:1,1,0,1", /* failed and not over */
        "2 1 1 0 0|s1#1|a2:0,0,0,0", /* an ordinal for nothing */
        "2 1 1 0 0|s1#1|a:1,0,0,0",  /* an item without one */
        "2 1 1 0 0|s1:1,1,1,0#1|a2",
        "1000000000000000000 1 1 0 0|s1#1|a2",
        "99999999999999999999999 1 1 0 0|s1#1|a2",
    };
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        if (try(TEXTS[i], 2) != ERR_DAMAGED)
            fail_msg("taken: %s", TEXTS[i]);
    }
}

static void a_progress_of_another_number_of_steps_is_refused(void **state)
{
    (void)state;
    for (size_t count = 0; count < 6; count++)
        assert_int_equal(try("0 0 0 0 0|w|w|w", count), count == 3 ? ERR_OK : ERR_DAMAGED);
}

/* One byte of a valid text is another one, is gone, or is there twice: it is refused, or it is
 * exactly what some other progress is written as. */
static void damaged_text_is_refused_or_is_another_progress(void **state)
{
    (void)state;
    static const char LIKELY[] = "0123456789wasfkctdx#:,+.| -";
    struct rng r = {72};
    struct step_state steps[COUNT_MAX];
    struct buf text;
    struct buf again;
    struct arena arena;
    buf_init(&text, 64 * 1024);
    buf_init(&again, 64 * 1024);
    arena_init(&arena, 1024 * 1024);
    int refused = 0;
    int taken = 0;
    for (int i = 0; i < 40000; i++) {
        struct progress p;
        random_progress(&r, &p, steps);
        struct str whole = text_of(&p, &text);
        char damaged[2048];
        size_t at = rng_below(&r, whole.len);
        size_t len = whole.len;
        assert_true(len + 1 < sizeof(damaged));
        memcpy(damaged, whole.ptr, len);
        switch (rng_below(&r, 4)) {
        case 0:
            damaged[at] = (char)rng_below(&r, 256);
            break;
        case 1:
            damaged[at] = LIKELY[rng_below(&r, sizeof(LIKELY) - 1)];
            break;
        case 2:
            memmove(damaged + at, damaged + at + 1, --len - at);
            break;
        default:
            memmove(damaged + at + 1, damaged + at, len++ - at);
        }
        struct str broken = {damaged, len};
        struct progress back;
        if (progress_parse(broken, p.count, &arena, &back) == ERR_OK) {
            assert_true(str_eq(text_of(&back, &again), broken));
            taken++;
        } else {
            refused++;
        }
        arena_clear(&arena);
    }
    assert_true(refused > 20000 && taken > 100);
    buf_release(&text);
    buf_release(&again);
    arena_release(&arena);
}

static void without_memory_there_is_no_progress(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 16);
    struct progress p = {.count = 77};
    assert_int_equal(progress_parse(STR("0 0 0 0 0|w|w"), 2, &arena, &p), ERR_NO_MEMORY);
    assert_int_equal(p.count, 77);
    assert_false(progress_init(&p, 2, &arena));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_run_is_all_steps_waiting),
        cmocka_unit_test(the_text_is_as_its_file_says),
        cmocka_unit_test(every_status_has_a_letter_of_its_own_and_comes_back),
        cmocka_unit_test(why_a_run_stops_and_how_far_it_is_undone_come_back),
        cmocka_unit_test(the_largest_numbers_come_back),
        cmocka_unit_test(any_progress_comes_back),
        cmocka_unit_test(text_that_is_no_progress_is_refused),
        cmocka_unit_test(a_progress_of_another_number_of_steps_is_refused),
        cmocka_unit_test(damaged_text_is_refused_or_is_another_progress),
        cmocka_unit_test(without_memory_there_is_no_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
