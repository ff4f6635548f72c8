/* Tenant names as metric labels: bounded, and the same for the same tenant. */
#include "base/support.h"

#include "base/limits.h"
#include "core/txn/tenant_labels.h"

static void a_tenant_keeps_its_label(void **state)
{
    (void)state;
    struct tenant_labels *labels = tenant_labels_new();
    char name[] = "acme";
    struct str first = tenant_label(labels, str_of(name));
    assert_str(first, "acme");
    memset(name, 'x', 4); /* it is a copy */
    assert_str(first, "acme");
    assert_ptr_equal(tenant_label(labels, STR("acme")).ptr, first.ptr);
    assert_str(tenant_label(labels, STR("acm")), "acm");
    tenant_labels_free(labels);
}

static void past_the_bound_new_tenants_share_one_label(void **state)
{
    (void)state;
    struct tenant_labels *labels = tenant_labels_new();
    char name[32];
    for (int i = 0; i < METRIC_TENANTS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "tenant-%d", i);
        assert_str(tenant_label(labels, str_of(name)), name);
    }
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "late-%d", i);
        assert_str(tenant_label(labels, str_of(name)), "other");
    }
    for (int i = 0; i < METRIC_TENANTS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "tenant-%d", i);
        assert_str(tenant_label(labels, str_of(name)), name);
    }
    tenant_labels_free(labels);
}

static void names_that_no_tenant_can_have_share_it_too(void **state)
{
    (void)state;
    struct tenant_labels *labels = tenant_labels_new();
    char name[TENANT_ID_MAX + 1];
    memset(name, 'a', sizeof(name));
    assert_str(tenant_label(labels, STR("")), "other");
    assert_str(tenant_label(labels, STR_NONE), "other");
    assert_str(tenant_label(labels, (struct str){name, TENANT_ID_MAX + 1}), "other");
    assert_int_equal(tenant_label(labels, (struct str){name, TENANT_ID_MAX}).len, TENANT_ID_MAX);
    tenant_labels_free(labels);
}

static void a_tenant_called_other_does_not_share_it(void **state)
{
    (void)state;
    struct tenant_labels *labels = tenant_labels_new();
    assert_str(tenant_label(labels, STR("other")), "(other)");
    tenant_labels_free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_keeps_its_label),
        cmocka_unit_test(past_the_bound_new_tenants_share_one_label),
        cmocka_unit_test(names_that_no_tenant_can_have_share_it_too),
        cmocka_unit_test(a_tenant_called_other_does_not_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
