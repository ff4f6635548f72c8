/* Any JSON as the answer of an entity's handler: what is taken keeps to its bounds, and what is
 * refused is refused with a reason. */
#include "domain/entity/entity_answer.h"
#include "domain/type_pattern.h"
#include "fuzz.h"

static const int64_t NOW = 1700000000000;

static void check_timers(const struct entity_answer *a)
{
    assert(a->timer_count <= ENTITY_TIMERS_MAX && a->cancelled_count <= ENTITY_TIMERS_MAX);
    for (size_t i = 0; i < a->timer_count; i++) {
        assert(str_is_name(a->timers[i].name) && a->timers[i].due_at >= 0);
        for (size_t j = 0; j < a->cancelled_count; j++)
            assert(!str_eq(a->timers[i].name, a->cancelled[j]));
    }
}

static void check_lists(const struct entity_answer *a)
{
    assert(a->emit_count <= ENTITY_EMITS_MAX && a->start_count <= ENTITY_EMITS_MAX);
    for (size_t i = 0; i < a->emit_count; i++)
        assert(type_own_prefix(a->emits[i].event) == NULL && str_is_name(a->emits[i].event));
    for (size_t i = 0; i < a->start_count; i++)
        assert(str_is_name(a->starts[i].workflow_id));
    for (size_t i = 0; i < a->result_count; i++) {
        assert(a->results[i].seq >= 1);
        assert(!a->results[i].rejected || json_is(a->results[i].outcome, JSON_KIND_OBJECT));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *json = fuzz_read(fuzz_text(data, size));
    if (json == NULL)
        return 0;
    struct arena arena;
    struct problem p;
    struct entity_answer answer;
    arena_init(&arena, 4 * MIB);
    problem_init(&p);
    enum err e = entity_answer_parse(json, NOW, &arena, &p, &answer);
    assert(e == ERR_OK || (e == ERR_ANSWER_INVALID && p.err == e));
    assert(e == ERR_OK || (p.detail[0] != '\0' && str_is_utf8(str_of(p.detail))));
    if (e == ERR_OK) {
        check_timers(&answer);
        check_lists(&answer);
    }
    problem_release(&p);
    arena_release(&arena);
    json_free(json);
    return 0;
}
