/* How many requests of one tenant may wait. */
#include "testing.h"

#include "api/waiting.h"
#include "base/limits.h"

static void a_tenant_may_have_so_many_and_leaves_room_for_others(void **state)
{
    (void)state;
    struct waiting *w = waiting_new();
    struct problem p;
    problem_init(&p);
    for (int i = 0; i < WAITING_PER_TENANT_MAX; i++)
        assert_int_equal(waiting_join(w, STR("greedy"), &p), ERR_OK);
    assert_int_equal(waiting_join(w, STR("greedy"), &p), ERR_OVERLOADED);
    assert_int_equal(waiting_join(w, STR("modest"), &p), ERR_OK);
    waiting_leave(w, STR("greedy"));
    assert_int_equal(waiting_join(w, STR("greedy"), &p), ERR_OK);
    assert_int_equal(waiting_join(w, STR("greedy"), &p), ERR_OVERLOADED);
    for (int i = 0; i < WAITING_PER_TENANT_MAX; i++)
        waiting_leave(w, STR("greedy"));
    waiting_leave(w, STR("modest"));
    waiting_free(w); /* asserts that nobody is left */
    problem_release(&p);
}

static void tenants_are_told_apart_by_their_whole_name(void **state)
{
    (void)state;
    struct waiting *w = waiting_new();
    struct problem p;
    problem_init(&p);
    char name[TENANT_ID_MAX + 1];
    for (size_t len = 1; len <= TENANT_ID_MAX; len++) {
        memset(name, 'a', len);
        assert_int_equal(waiting_join(w, (struct str){name, len}, &p), ERR_OK);
    }
    for (size_t len = 1; len <= TENANT_ID_MAX; len++)
        waiting_leave(w, (struct str){name, len});
    waiting_free(w);
    waiting_free(NULL);
    problem_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_may_have_so_many_and_leaves_room_for_others),
        cmocka_unit_test(tenants_are_told_apart_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
