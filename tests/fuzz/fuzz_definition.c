/* Any JSON as a workflow definition: faults that say where, or a definition that can be stored,
 * read back and run to its end, whether its steps succeed or fail. */
#include "domain/expr/expr.h"
#include "domain/workflow/definition.h"
#include "drive.h"

/* NULL when it is refused, which it is with faults and with nothing else. */
static struct definition *parse(const struct json *source)
{
    struct problem p;
    problem_init(&p);
    struct definition *def = NULL;
    enum err e = definition_parse(source, STR("fuzz"), &p, &def);
    if (e == ERR_OK) {
        assert(def != NULL && p.faults.len == 0);
    } else {
        assert(e == ERR_DEFINITION_INVALID && def == NULL);
        assert(fuzz_check_faults(buf_str(&p.faults)) > 0);
    }
    problem_release(&p);
    return def;
}

/* What was accepted can be evaluated: to a value, or to an error of the step's own. */
static enum err nothing(void *ctx, struct str root, struct str name, const struct json **ret)
{
    (void)ctx;
    (void)root;
    (void)name;
    (void)ret;
    return ERR_OK;
}

static void check_expressions(const struct step_def *step)
{
    static struct expr *x;
    x = x != NULL ? x : expr_new();
    assert(x != NULL);
    const struct expr_vars vars = {NULL, nothing};
    struct problem p;
    problem_init(&p);
    bool truth;
    if (step->when.len > 0) {
        enum err e = expr_truth(x, step->when, &vars, &p, &truth);
        assert(e == ERR_OK || e == ERR_EXPRESSION);
    }
    if (step->input != NULL) {
        struct json *filled = NULL;
        enum err e = expr_fill(x, step->input, &vars, &p, &filled);
        assert(e == ERR_EXPRESSION || (e == ERR_OK && filled != NULL));
        json_free(filled);
    }
    problem_release(&p);
}

static void check_step(const struct definition *def, size_t index)
{
    const struct step_def *step = &def->steps[index];
    assert(step->type < STEP_TYPE_COUNT && str_is_name(step->name));
    assert(definition_find_step(def, step->name) == index);
    assert(step->need_count < def->step_count);
    for (size_t n = 0; n < step->need_count; n++)
        assert(step->needs[n] < def->step_count && step->needs[n] != index);
    if (step->type == STEP_TASK)
        assert(str_is_name(step->queue) && str_is_name(step->handler));
    if (step->type == STEP_SLEEP)
        assert((step->duration_ms >= 0) + (step->until_ms >= 0) + (step->until.len > 0) == 1);
    assert(step->max_parallel > 0 && step->retry.multiplier >= 1);
    assert(step->on_error != ON_ERROR_STEP || step->error_step < def->step_count);
    assert(step->on_error != ON_ERROR_STEP || def->steps[step->error_step].handles_errors);
    check_expressions(step);
}

/* A definition is kept as text and read again by the next server. */
static void check_survives_storing(const struct definition *def)
{
    struct buf text;
    buf_init(&text, 4 * MIB);
    json_write_plain(&text, def->json);
    struct json *source = fuzz_read(buf_str(&text));
    assert(source != NULL);
    struct definition *again = parse(source);
    assert(again != NULL && again->step_count == def->step_count);
    assert(str_eq(again->unsupported, def->unsupported));
    definition_free(again);
    json_free(source);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *source = fuzz_read(fuzz_text(data, size));
    if (source == NULL)
        return 0;
    struct definition *def = parse(source);
    json_free(source); /* the definition has a copy */
    if (def != NULL) {
        for (size_t i = 0; i < def->step_count; i++)
            check_step(def, i);
        assert(str_is_utf8(def->unsupported));
        check_survives_storing(def);
        uint64_t chance = str_hash(fuzz_text(data, size));
        (void)drive_to_end(def, chance, 0);
        (void)drive_to_end(def, chance, 3);
    }
    definition_free(def);
    return 0;
}
