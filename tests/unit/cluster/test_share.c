/* A node's fair share of the shards, for many clusters. */
#include "base/support.h"

#include "cluster/share.h"

#include <stdlib.h>

static struct cluster_view view_of(size_t nodes, size_t shards)
{
    struct cluster_view view = {.node_count = nodes, .shard_count = shards};
    for (size_t i = 0; i < nodes; i++) {
        (void)snprintf(view.nodes[i].name, sizeof(view.nodes[i].name), "n%zu", i);
        view.nodes[i].lease_ms = 1;
    }
    for (size_t i = 0; i < shards; i++)
        view.shards[i].owner = -1;
    return view;
}

static size_t moves_of(struct cluster_view *view, int node, enum share_move wanted)
{
    enum share_move moves[CLUSTER_SHARDS_MAX];
    size_t count = 0;
    view->self = node;
    share_plan(view, moves);
    for (size_t i = 0; i < view->shard_count; i++)
        count += moves[i] == wanted;
    return count;
}

/* Each node does what it plans, one after the other. True: somebody did something. */
static bool turn(struct cluster_view *view)
{
    bool moved = false;
    for (int n = 0; n < (int)view->node_count; n++) {
        enum share_move moves[CLUSTER_SHARDS_MAX];
        view->self = n;
        if (!cluster_node_lives(&view->nodes[n]))
            continue;
        share_plan(view, moves);
        for (size_t i = 0; i < view->shard_count; i++) {
            if (moves[i] == SHARE_STAY)
                continue;
            assert_true(moves[i] == SHARE_TAKE || view->shards[i].owner == n);
            view->shards[i].owner = moves[i] == SHARE_TAKE ? n : -1;
            moved = true;
        }
    }
    return moved;
}

static void settle(struct cluster_view *view)
{
    for (int i = 0; turn(view); i++)
        assert_in_range(i, 0, 1000); /* it ends */
}

static size_t owned(const struct cluster_view *view, int node)
{
    size_t count = 0;
    for (size_t i = 0; i < view->shard_count; i++)
        count += view->shards[i].owner == node;
    return count;
}

/* Every shard has an owner that takes shards, and nobody has two more than another. */
static void assert_fair(const struct cluster_view *view)
{
    size_t fewest = SIZE_MAX;
    size_t most = 0;
    size_t all = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        const struct cluster_node *n = &view->nodes[i];
        size_t has = owned(view, (int)i);
        if (!cluster_node_lives(n) || n->draining || n->stopping)
            continue;
        fewest = MIN(fewest, has);
        most = MAX(most, has);
        all += has;
    }
    assert_int_equal(all, view->shard_count);
    assert_in_range(most, fewest, fewest + 1);
}

static void one_node_takes_all(void **state)
{
    (void)state;
    struct cluster_view view = view_of(1, 16);
    assert_int_equal(moves_of(&view, 0, SHARE_TAKE), 16);
}

static void a_process_that_is_no_node_does_nothing(void **state)
{
    (void)state;
    struct cluster_view view = view_of(1, 16);
    assert_int_equal(moves_of(&view, -1, SHARE_STAY), 16);
}

static void nodes_that_come_together_want_different_shards(void **state)
{
    (void)state;
    struct cluster_view view = view_of(2, 16);
    enum share_move one[CLUSTER_SHARDS_MAX];
    enum share_move other[CLUSTER_SHARDS_MAX];
    view.self = 0;
    share_plan(&view, one);
    view.self = 1;
    share_plan(&view, other);
    for (size_t i = 0; i < 16; i++)
        assert_true((one[i] == SHARE_TAKE) != (other[i] == SHARE_TAKE));
}

static void shards_are_shared_evenly_whoever_comes_and_goes(void **state)
{
    (void)state;
    for (size_t nodes = 1; nodes <= 7; nodes++) {
        for (size_t shards = 1; shards <= 33; shards++) {
            struct cluster_view view = view_of(nodes, shards);
            settle(&view);
            assert_fair(&view);
            view.nodes[0].lease_ms = 0; /* it dies, unless it is the only one */
            if (nodes > 1) {
                settle(&view);
                assert_fair(&view);
            }
            view.nodes[0].lease_ms = 1;
            settle(&view);
            assert_fair(&view);
        }
    }
}

static void one_shard_moves_at_a_time(void **state)
{
    (void)state;
    struct cluster_view view = view_of(3, 16);
    for (size_t i = 0; i < 16; i++)
        view.shards[i].owner = i < 8 ? 0 : 1;
    assert_int_equal(moves_of(&view, 0, SHARE_GIVE), 1);
    assert_int_equal(moves_of(&view, 1, SHARE_GIVE), 0);
    assert_int_equal(moves_of(&view, 2, SHARE_GIVE), 0);
}

static void nothing_moves_between_nodes_that_are_even(void **state)
{
    (void)state;
    struct cluster_view view = view_of(2, 3);
    view.shards[0].owner = view.shards[1].owner = 0;
    view.shards[2].owner = 1;
    assert_false(turn(&view));
}

static void a_drained_node_gives_all_up_and_takes_none(void **state)
{
    (void)state;
    struct cluster_view view = view_of(2, 16);
    settle(&view);
    view.nodes[0].draining = true;
    assert_int_equal(moves_of(&view, 0, SHARE_GIVE), 8);
    settle(&view);
    assert_int_equal(owned(&view, 0), 0);
    assert_int_equal(owned(&view, 1), 16);
}

static void others_take_at_once_what_a_stopping_node_frees(void **state)
{
    (void)state;
    struct cluster_view view = view_of(2, 16);
    settle(&view);
    view.nodes[0].stopping = true;
    for (size_t i = 0; i < 16; i++) {
        if (view.shards[i].owner == 0)
            view.shards[i].owner = -1;
    }
    assert_int_equal(moves_of(&view, 0, SHARE_TAKE), 0);
    assert_int_equal(moves_of(&view, 1, SHARE_TAKE), 8);
}

static void a_node_that_stops_has_an_heir_if_another_takes_shards(void **state)
{
    (void)state;
    struct cluster_view view = view_of(3, 4);
    view.nodes[0].stopping = true;
    assert_true(share_has_heir(&view));
    view.nodes[1].lease_ms = 0;
    assert_true(share_has_heir(&view));
    view.nodes[2].draining = true;
    assert_false(share_has_heir(&view));
    view.nodes[1] = (struct cluster_node){.lease_ms = 1, .stopping = true};
    assert_false(share_has_heir(&view));
}

static void a_shard_that_a_command_asked_for_is_given_up_and_left_alone(void **state)
{
    (void)state;
    struct cluster_view view = view_of(2, 8);
    settle(&view);
    size_t shard = 0;
    while (view.shards[shard].owner != 0)
        shard++;
    view.shards[shard].held = true;
    assert_int_equal(moves_of(&view, 0, SHARE_GIVE), 1);
    assert_int_equal(moves_of(&view, 1, SHARE_STAY), 8);
    settle(&view);
    assert_int_equal(view.shards[shard].owner, -1);
    view.shards[shard].held = false;
    settle(&view);
    assert_fair(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_takes_all),
        cmocka_unit_test(a_process_that_is_no_node_does_nothing),
        cmocka_unit_test(nodes_that_come_together_want_different_shards),
        cmocka_unit_test(a_shard_that_a_command_asked_for_is_given_up_and_left_alone),
        cmocka_unit_test(shards_are_shared_evenly_whoever_comes_and_goes),
        cmocka_unit_test(one_shard_moves_at_a_time),
        cmocka_unit_test(nothing_moves_between_nodes_that_are_even),
        cmocka_unit_test(a_drained_node_gives_all_up_and_takes_none),
        cmocka_unit_test(a_node_that_stops_has_an_heir_if_another_takes_shards),
        cmocka_unit_test(others_take_at_once_what_a_stopping_node_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
