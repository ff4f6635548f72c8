/* Who polls for work, remembered within bounds. */
#include "testing.h"

#include "core/txn/worker_polls.h"

static void note(struct worker_polls *polls, const char *tenant, const char *worker,
                 const char *queue, int64_t at)
{
    worker_polls_note(polls, str_of(tenant), str_of(worker), str_of(queue), at);
}

static void a_queue_knows_its_last_poll_and_who_came_lately(void **state)
{
    (void)state;
    struct worker_polls *polls = worker_polls_new(500);
    assert_non_null(polls);
    assert_int_equal(worker_polls_since(polls), 500);
    struct queue_polls q = worker_polls_of_queue(polls, STR("t"), STR("q"), 1000);
    assert_int_equal(q.last_at, -1);
    assert_int_equal(q.workers, 0);
    note(polls, "t", "a", "q", 1000);
    note(polls, "t", "a", "q", 2000);
    note(polls, "t", "b", "q", 3000);
    note(polls, "t", "b", "other", 9000);
    note(polls, "u", "c", "q", 9000); /* another tenant's is no help */
    q = worker_polls_of_queue(polls, STR("t"), STR("q"), 3000);
    assert_int_equal(q.last_at, 3000);
    assert_int_equal(q.workers, 2);
    q = worker_polls_of_queue(polls, STR("t"), STR("q"), 2500 + POLLED_LATELY_MS);
    assert_int_equal(q.workers, 1);
    note(polls, "*", "shared", "q", 4000);
    q = worker_polls_of_queue(polls, STR("t"), STR("q"), 4000);
    assert_int_equal(q.last_at, 4000);
    assert_int_equal(q.workers, 3);
    worker_polls_free(polls);
}

static void count_entry(void *ctx, const struct poll_entry *entry)
{
    assert_true(entry->last_at > 0);
    ++*(int *)ctx;
}

static void many_workers_push_out_the_oldest_and_not_other_tenants(void **state)
{
    (void)state;
    struct worker_polls *polls = worker_polls_new(0);
    enum { OTHERS = 50 };
    char name[32];
    for (int i = 0; i < OTHERS; i++) {
        (void)snprintf(name, sizeof(name), "quiet-%d", i);
        note(polls, "quiet", name, "q", 1 + i);
    }
    for (int i = 0; i < 20 * POLLS_KEPT_MAX; i++) {
        (void)snprintf(name, sizeof(name), "w-%d", i);
        note(polls, "noisy", name, "q", 1000 + i);
    }
    int quiet = 0;
    int noisy = 0;
    worker_polls_list(polls, STR("quiet"), count_entry, &quiet);
    worker_polls_list(polls, STR("noisy"), count_entry, &noisy);
    assert_int_equal(quiet, OTHERS);
    assert_true(noisy > POLLS_KEPT_MAX / 2 && noisy <= POLLS_KEPT_MAX - OTHERS);
    assert_int_equal(worker_polls_of_queue(polls, STR("noisy"), STR("q"), 1000).last_at,
                     1000 + 20 * POLLS_KEPT_MAX - 1);
    worker_polls_free(polls);
}

static void nobody_needs_to_remember(void **state)
{
    (void)state;
    note(NULL, "t", "w", "q", 1);
    assert_int_equal(worker_polls_of_queue(NULL, STR("t"), STR("q"), 1).last_at, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_knows_its_last_poll_and_who_came_lately),
        cmocka_unit_test(many_workers_push_out_the_oldest_and_not_other_tenants),
        cmocka_unit_test(nobody_needs_to_remember),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
