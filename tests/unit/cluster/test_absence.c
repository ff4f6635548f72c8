/* Nodes without a session at the database. */
#include "base/support.h"

#include "cluster/absence.h"

static struct cluster_view view_at(int64_t mono_ms)
{
    struct cluster_view view = {.node_count = 2, .mono_ms = mono_ms};
    for (size_t i = 0; i < view.node_count; i++) {
        (void)snprintf(view.nodes[i].name, sizeof(view.nodes[i].name), "n%zu", i);
        (void)snprintf(view.nodes[i].session, sizeof(view.nodes[i].session), "s%zu", i);
        view.nodes[i].lease_ms = 1000;
        view.nodes[i].connected = true;
    }
    return view;
}

/* When the other node is gone, after one more reading. */
static int64_t gone_at(struct absences *a, int64_t mono_ms, bool connected)
{
    struct cluster_view view = view_at(mono_ms);
    view.nodes[1].connected = connected;
    absences_note(a, &view);
    assert_int_equal(absences_gone_at(a, &view, 0), INT64_MAX); /* itself */
    return absences_gone_at(a, &view, 1);
}

static void a_node_is_gone_when_it_has_had_no_session_for_a_while(void **state)
{
    (void)state;
    struct absences a = {0};
    assert_int_equal(gone_at(&a, 1000, true), INT64_MAX);
    assert_int_equal(gone_at(&a, 1100, false), 1100 + NODE_GONE_MS);
    assert_int_equal(gone_at(&a, 1900, false), 1100 + NODE_GONE_MS);
}

static void a_node_that_comes_back_is_not_gone(void **state)
{
    (void)state;
    struct absences a = {0};
    assert_int_equal(gone_at(&a, 1000, true), INT64_MAX);
    assert_int_equal(gone_at(&a, 1100, false), 1100 + NODE_GONE_MS);
    assert_int_equal(gone_at(&a, 1200, true), INT64_MAX);
    assert_int_equal(gone_at(&a, 5000, false), 5000 + NODE_GONE_MS);
}

/* One of an earlier version does not show its session. */
static void of_a_node_that_was_never_seen_connected_only_the_lease_counts(void **state)
{
    (void)state;
    struct absences a = {0};
    assert_int_equal(gone_at(&a, 1000, false), INT64_MAX);
    assert_int_equal(gone_at(&a, 9000, false), INT64_MAX);
}

static void the_next_process_of_a_node_is_another_one(void **state)
{
    (void)state;
    struct absences a = {0};
    assert_int_equal(gone_at(&a, 1000, true), INT64_MAX);
    assert_int_equal(gone_at(&a, 1100, false), 1100 + NODE_GONE_MS);
    struct cluster_view view = view_at(1200);
    (void)snprintf(view.nodes[1].session, sizeof(view.nodes[1].session), "new");
    view.nodes[1].connected = false;
    absences_note(&a, &view);
    assert_int_equal(absences_gone_at(&a, &view, 1), INT64_MAX);
}

static void a_lease_that_is_over_need_not_be_ended(void **state)
{
    (void)state;
    struct absences a = {0};
    assert_int_equal(gone_at(&a, 1000, true), INT64_MAX);
    struct cluster_view view = view_at(1100);
    view.nodes[1].connected = false;
    view.nodes[1].lease_ms = 0;
    absences_note(&a, &view);
    assert_int_equal(absences_gone_at(&a, &view, 1), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_gone_when_it_has_had_no_session_for_a_while),
        cmocka_unit_test(a_node_that_comes_back_is_not_gone),
        cmocka_unit_test(of_a_node_that_was_never_seen_connected_only_the_lease_counts),
        cmocka_unit_test(the_next_process_of_a_node_is_another_one),
        cmocka_unit_test(a_lease_that_is_over_need_not_be_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
