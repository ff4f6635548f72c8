/* A job finds the claim that has waited longest for it, whoever else waits. */
#include "base/support.h"

#include "core/usecase/use_cases.h"
#include "runtime/claim_lines.h"

enum { CLAIMS = 40, QUEUES = 4, TENANTS = 3, ROUNDS = 20000 };

static const struct str NAMES[QUEUES] = {{"a", 1}, {"ab", 2}, {"b", 1}, {"", 0}};

/* A claim as the engine has it. */
struct claim {
    struct op op;
    struct claim_input input;
    struct str queues[QUEUES];
    bool waits;
    int64_t since;
};

static void set_tenant(struct claim *c, int64_t tenant)
{
    c->op.caller.tenant = tenant < 0 ? STR("*") : STR("t");
    c->op.tenant_num = tenant < 0 ? 0 : tenant;
}

static void set_queues(struct claim *c, size_t count, const size_t *queues)
{
    for (size_t i = 0; i < count; i++)
        c->queues[i] = NAMES[queues[i]];
    c->input = (struct claim_input){.queues = c->queues, .queue_count = count};
    c->op.input = &c->input;
}

static struct claim claim_of(int64_t tenant, size_t queue)
{
    struct claim c = {0};
    set_tenant(&c, tenant);
    c.queues[0] = NAMES[queue];
    return c;
}

static void add(struct claim_lines *l, struct claim *c)
{
    c->input = (struct claim_input){.queues = c->queues, .queue_count = 1};
    c->op.input = &c->input;
    assert_true(claim_lines_add(l, &c->op));
}

/* --- one by one --- */

static void a_claim_for_all_tenants_takes_its_turn_with_those_for_one(void **state)
{
    (void)state;
    struct claim_lines l = {0};
    struct claim first = claim_of(1, 0), second = claim_of(-1, 0), third = claim_of(1, 0);
    add(&l, &first);
    add(&l, &second);
    add(&l, &third);
    assert_null(claim_lines_take(&l, 1, NAMES[1]));
    assert_ptr_equal(claim_lines_take(&l, 1, NAMES[0]), &first.op);
    assert_ptr_equal(claim_lines_take(&l, 2, NAMES[0]), &second.op);
    assert_null(claim_lines_take(&l, 2, NAMES[0]));
    assert_ptr_equal(claim_lines_take(&l, 1, NAMES[0]), &third.op);
    assert_int_equal(claim_lines_count(&l), 0);
    claim_lines_release(&l);
}

static void a_tenant_that_was_not_stored_has_a_line_of_its_own(void **state)
{
    (void)state;
    struct claim_lines l = {0};
    struct claim unknown = claim_of(0, 0);
    add(&l, &unknown);
    assert_null(claim_lines_take(&l, 1, NAMES[0]));
    assert_null(claim_lines_take_unknown(&l, NAMES[1]));
    assert_ptr_equal(claim_lines_take_unknown(&l, NAMES[0]), &unknown.op);
    assert_null(claim_lines_take_unknown(&l, NAMES[0]));
    claim_lines_release(&l);
}

static void a_queue_that_is_named_twice_is_one_wait(void **state)
{
    (void)state;
    static const size_t TWICE[] = {0, 0, 2};
    struct claim_lines l = {0};
    struct claim c = claim_of(1, 0);
    set_queues(&c, 3, TWICE);
    assert_true(claim_lines_add(&l, &c.op));
    assert_int_equal(claim_lines_count(&l), 1);
    assert_ptr_equal(claim_lines_take(&l, 1, NAMES[2]), &c.op);
    assert_null(claim_lines_take(&l, 1, NAMES[0]));
    claim_lines_release(&l);
}

/* --- any order --- */

struct model {
    struct claim_lines lines;
    struct claim claims[CLAIMS];
    int64_t now;
    struct rng rng;
};

static bool stands_for(const struct claim *c, int64_t tenant, struct str queue)
{
    bool all = str_is(c->op.caller.tenant, "*");
    if (!c->waits || !(all || c->op.tenant_num == tenant))
        return false;
    for (size_t i = 0; i < c->input.queue_count; i++) {
        if (str_eq(c->queues[i], queue))
            return true;
    }
    return false;
}

static struct claim *longest(struct model *m, int64_t tenant, struct str queue)
{
    struct claim *found = NULL;
    for (size_t i = 0; i < CLAIMS; i++) {
        struct claim *c = &m->claims[i];
        if (stands_for(c, tenant, queue) && (found == NULL || c->since < found->since))
            found = c;
    }
    return found;
}

static void come(struct model *m, struct claim *c)
{
    size_t queues[QUEUES];
    size_t count = 1 + rng_below(&m->rng, QUEUES);
    for (size_t i = 0; i < count; i++)
        queues[i] = rng_below(&m->rng, QUEUES);
    set_tenant(c, (int64_t)rng_below(&m->rng, TENANTS + 1) - 1);
    if (str_is(c->op.caller.tenant, "t") && c->op.tenant_num == 0)
        c->op.tenant_num = TENANTS; /* lines of tenants that are not stored have their own test */
    set_queues(c, count, queues);
    assert_true(claim_lines_add(&m->lines, &c->op));
    c->waits = true;
    c->since = m->now++;
}

static bool ends(void *ctx, const struct op *op)
{
    const struct model *m = ctx;
    const struct claim *c = (const void *)op; /* its first member */
    assert_true(c->waits);
    return c->since % 3 == m->now % 3;
}

static void over(void *ctx, struct op *op)
{
    struct model *m = ctx;
    struct claim *c = CONTAINER_OF(op, struct claim, op);
    c->waits = false;
    if (rng_below(&m->rng, 4) == 0) /* its caller asks again at once */
        come(m, c);
}

static void step(struct model *m)
{
    struct claim *c = &m->claims[rng_below(&m->rng, CLAIMS)];
    int64_t tenant = 1 + (int64_t)rng_below(&m->rng, TENANTS);
    struct str queue = NAMES[rng_below(&m->rng, QUEUES)];
    struct claim *expected;
    switch (rng_below(&m->rng, 50)) {
    case 0:
        claim_lines_sift(&m->lines, ends, over, m);
        break;
    case 1:
    case 2:
    case 3:
        assert_ptr_equal(claim_lines_remove(&m->lines, &c->op), c->waits ? &c->op : NULL);
        c->waits = false;
        break;
    default:
        if (!c->waits) {
            come(m, c);
            break;
        }
        expected = longest(m, tenant, queue);
        assert_ptr_equal(claim_lines_take(&m->lines, tenant, queue),
                         expected != NULL ? &expected->op : NULL);
        if (expected != NULL)
            expected->waits = false;
    }
}

static void the_longest_wait_ends_first_in_any_order_of_events(void **state)
{
    (void)state;
    struct model m = {.rng = {3}};
    for (int round = 0; round < ROUNDS; round++) {
        step(&m);
        size_t waiting = 0;
        for (size_t i = 0; i < CLAIMS; i++)
            waiting += m.claims[i].waits;
        assert_int_equal(claim_lines_count(&m.lines), waiting);
    }
    for (size_t i = 0; i < CLAIMS; i++)
        (void)claim_lines_remove(&m.lines, &m.claims[i].op);
    claim_lines_release(&m.lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_for_all_tenants_takes_its_turn_with_those_for_one),
        cmocka_unit_test(a_tenant_that_was_not_stored_has_a_line_of_its_own),
        cmocka_unit_test(a_queue_that_is_named_twice_is_one_wait),
        cmocka_unit_test(the_longest_wait_ends_first_in_any_order_of_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
