/* Which shard a tenant lives in. */
#include "base/support.h"

#include "cluster/placement.h"

static struct cluster_view view_of(size_t hashed, size_t spare)
{
    return (struct cluster_view){.hashed = hashed, .shard_count = hashed + spare};
}

static struct str tenant(size_t n)
{
    static char name[24];
    (void)snprintf(name, sizeof(name), "tenant-%zu", n);
    return str_of(name);
}

static void tenants_are_spread_over_all_shards_but_the_spare_ones(void **state)
{
    (void)state;
    struct cluster_view view = view_of(4, 3);
    size_t counts[7] = {0};
    for (size_t i = 0; i < 1000; i++)
        counts[placement_of(&view, tenant(i))]++;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        assert_int_equal(counts[i] > 200, i < 4);
    assert_int_equal(counts[4] + counts[5] + counts[6], 0);
}

static void spare_shards_change_nothing_for_those_that_were_not_moved(void **state)
{
    (void)state;
    struct cluster_view without = view_of(16, 0);
    struct cluster_view with = view_of(16, 8);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(placement_of(&with, tenant(i)), placement_of(&without, tenant(i)));
}

static void a_moved_tenant_is_where_the_directory_says(void **state)
{
    (void)state;
    struct cluster_view view = view_of(4, 3);
    view.moved_count = 3;
    view.moved[0] = (struct cluster_moved){"tenant-3", 5};
    view.moved[1] = (struct cluster_moved){"tenant-42", 1};
    view.moved[2] = (struct cluster_moved){"tenant-7", 5};
    assert_int_equal(placement_of(&view, tenant(3)), 5);
    assert_int_equal(placement_of(&view, tenant(42)), 1);
    assert_int_equal(placement_of(&view, tenant(7)), 5);
    assert_in_range(placement_of(&view, tenant(70)), 0, 3);
    assert_in_range(placement_by_name(&view, tenant(7)), 0, 3);
    assert_true(str_is(placement_moved_to(&view, 5, 0), "tenant-3"));
    assert_true(str_is(placement_moved_to(&view, 5, 1), "tenant-7"));
    assert_null(placement_moved_to(&view, 5, 2).ptr);
    assert_null(placement_moved_to(&view, 6, 0).ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_are_spread_over_all_shards_but_the_spare_ones),
        cmocka_unit_test(spare_shards_change_nothing_for_those_that_were_not_moved),
        cmocka_unit_test(a_moved_tenant_is_where_the_directory_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
