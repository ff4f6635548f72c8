/* A claim for all tenants, which asks one shard after the other. */
#include "base/support.h"

#include "cluster/errand/errand.h"

enum { SHARDS = 2 };

struct asked {
    struct http_request req;
    uint16_t order[SHARDS];
    struct errand errand;
};

static void begin(struct asked *a, struct str body)
{
    memset(a, 0, sizeof(*a));
    arena_init(&a->req.arena, MIB);
    a->req.body = body;
    a->order[1] = 1;
    a->errand = (struct errand){.join = JOIN_CLAIM, .order = a->order, .count = SHARDS};
    assert_true(errand_read_claim(&a->errand, &a->req, 0));
}

static void end(struct asked *a)
{
    errand_end(&a->errand);
    arena_release(&a->req.arena);
}

static void assert_asks(struct asked *a, size_t shard)
{
    struct errand_step step = {0};
    assert_true(errand_next_claim(&a->errand, &a->req.arena, 0, &step));
    assert_int_equal(step.shard, shard);
}

static bool take(struct asked *a, struct str body)
{
    const struct http_reply reply = {.status = 200, .body = body};
    return errand_take_jobs(&a->errand, &reply);
}

/* It has leased jobs that nobody gets, and would lease more. */
static void a_shard_whose_answer_cannot_be_read_is_not_asked_again(void **state)
{
    struct asked a;
    struct errand_step step;
    (void)state;
    begin(&a, STR("{\"worker\":\"w\",\"max\":8}"));
    assert_asks(&a, 0);
    assert_false(take(&a, STR("{\"jobs\":[1,2,3,4]}")));
    assert_asks(&a, 1);
    assert_false(take(&a, STR("{\"jobs\":[5,6")));
    assert_asks(&a, 0);
    assert_false(take(&a, STR("{\"jobs\":[]}")));
    assert_false(errand_next_claim(&a.errand, &a.req.arena, 0, &step));
    assert_true(str_is(errand_jobs(&a.errand), "{\"jobs\":[1,2,3,4]}"));
    end(&a);
}

static void an_answer_that_cannot_be_read_is_passed_on_when_there_is_no_job_yet(void **state)
{
    struct asked a;
    (void)state;
    begin(&a, STR("{\"worker\":\"w\"}"));
    assert_asks(&a, 0);
    assert_true(take(&a, STR("{\"jobs\":[5,6")));
    end(&a);
}

/* Otherwise the loop would turn around it. */
static void a_claim_that_waits_rests_after_a_shard_that_is_away(void **state)
{
    struct asked a;
    struct errand_step step;
    const struct http_reply busy = {.status = 503, .body = STR("{}")};
    (void)state;
    begin(&a, STR("{\"worker\":\"w\",\"wait_ms\":150}"));
    assert_asks(&a, 0);
    assert_false(take(&a, STR("{\"jobs\":[]}")));
    assert_asks(&a, 1);
    errand_shard_is_away(&a.errand);
    assert_int_equal(errand_rest_ms(&a.errand, 0), 0); /* it has not begun to wait */
    assert_asks(&a, 0);
    assert_false(take(&a, STR("{\"jobs\":[]}")));
    assert_int_equal(errand_rest_ms(&a.errand, 0), 0); /* the shard has waited */
    assert_asks(&a, 1);
    errand_shard_is_away(&a.errand);
    assert_int_equal(errand_rest_ms(&a.errand, 0), 100);
    assert_int_equal(errand_rest_ms(&a.errand, 140), 10);
    assert_asks(&a, 0);
    assert_false(errand_take_jobs(&a.errand, &busy));
    assert_int_equal(errand_rest_ms(&a.errand, 0), 100);
    errand_wait_is_over(&a.errand);
    assert_int_equal(errand_rest_ms(&a.errand, 1), 0);
    assert_false(errand_next_claim(&a.errand, &a.req.arena, 1, &step));
    assert_true(errand_has_answer(&a.errand));
    assert_true(str_is(errand_jobs(&a.errand), "{\"jobs\":[]}"));
    end(&a);
}

static void assert_no_shard_answers(struct str body)
{
    struct asked a;
    struct errand_step step;
    const struct http_reply busy = {.status = 503, .body = STR("{}")};
    begin(&a, body);
    assert_asks(&a, 0);
    errand_shard_is_away(&a.errand);
    assert_asks(&a, 1);
    assert_false(errand_take_jobs(&a.errand, &busy));
    assert_false(errand_next_claim(&a.errand, &a.req.arena, 0, &step));
    assert_false(errand_has_answer(&a.errand));
    end(&a);
}

static void a_claim_has_no_answer_when_no_shard_has(void **state)
{
    (void)state;
    assert_no_shard_answers(STR("{\"worker\":\"w\",\"max\":8}"));
    assert_no_shard_answers(STR("{\"worker\":\"w\",\"wait_ms\":30000}"));
    assert_no_shard_answers(STR("no claim"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_whose_answer_cannot_be_read_is_not_asked_again),
        cmocka_unit_test(an_answer_that_cannot_be_read_is_passed_on_when_there_is_no_job_yet),
        cmocka_unit_test(a_claim_that_waits_rests_after_a_shard_that_is_away),
        cmocka_unit_test(a_claim_has_no_answer_when_no_shard_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
