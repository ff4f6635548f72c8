/* Any text as how far a run is: it is refused, or it is what would be written for it, and advancing
 * looks at it without harm.
 * The input: the number of steps, then the text. */
#include "domain/workflow/advance.h"
#include "fuzz.h"

enum { COUNT_MAX = 9 };

/* Steps that need, handle and undo, so that advancing looks at every part. */
static struct definition definition_of(size_t count, struct step_def *steps, size_t *needs)
{
    for (size_t i = 0; i < count; i++) {
        needs[i] = i > 0 ? i - 1 : 0;
        steps[i] = (struct step_def){
            .type = (enum step_type)(i % STEP_TYPE_COUNT),
            .needs = &needs[i],
            .need_count = i > 0,
            .max_parallel = 1 + (int64_t)i,
            .on_error = (enum on_error)(i % 3),
            .error_step = i + 1 < count ? i + 1 : 0,
            .handles_errors = i % 3 == 0 && i > 0,
            .has_undo = i % 2 == 0,
        };
    }
    return (struct definition){.steps = steps, .step_count = count};
}

static void check_advance(const struct progress *p)
{
    struct step_def steps[COUNT_MAX];
    size_t needs[COUNT_MAX];
    struct definition def = definition_of(p->count, steps, needs);
    for (enum run_status status = 0; status < RUN_STATUS_COUNT; status++) {
        struct next next = advance_next(&def, p, status);
        assert(next.kind <= NEXT_RUN && next.step < p->count);
        assert(next.kind != NEXT_ITEMS || next.count > 0);
        assert(next.kind == NEXT_NOTHING || !run_has_ended(status));
    }
    for (size_t i = 0; i < p->count; i++) {
        (void)advance_may_retry(&def, p, i);
        int64_t item = advance_item(&p->steps[i], p->jobs);
        assert(item >= -1 && item < MAX(p->steps[i].items, (int64_t)1));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t count = 1 + data[0] % COUNT_MAX;
    struct str text = fuzz_text(data + 1, size - 1);
    struct arena arena;
    struct buf again;
    arena_init(&arena, MIB);
    buf_init(&again, MIB);
    struct progress p;
    enum err e = progress_parse(text, count, &arena, &p);
    assert(e == ERR_OK || e == ERR_DAMAGED);
    if (e == ERR_OK) {
        progress_put(&again, &p);
        assert(buf_ok(&again) && str_eq(buf_str(&again), text));
        check_advance(&p);
    }
    buf_release(&again);
    arena_release(&arena);
    return 0;
}
