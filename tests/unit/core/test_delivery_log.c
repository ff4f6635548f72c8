/* Sweeping the log of deliveries: what goes, and what stays whatever fails meanwhile. */
#include "store/folder.h"

#include "core/background/delivery_log.h"
#include "store/outbox/webhooks.h"

struct fixture {
    struct db *db;
    struct tx tx;
    struct delivery_log log;
};

static const int64_t NOW_MS = INT64_C(1700000000000);

static struct webhook webhook_of(int64_t num)
{
    return (struct webhook){.num = num,
                            .id = {{(unsigned char)num}},
                            .tenant = 1,
                            .url = STR("https://example.com"),
                            .events = STR("*"),
                            .old_secret_until = -1,
                            .failing_since = -1,
                            .disabled_at = -1,
                            .created_by = STR("tester"),
                            .created_at = NOW_MS,
                            .updated_at = NOW_MS};
}

static void insert_delivery(struct db *db, int64_t webhook, int64_t num)
{
    struct delivery d = {.num = num,
                         .id = {{(unsigned char)webhook, (unsigned char)num}},
                         .webhook = webhook,
                         .tenant = 1,
                         .owner = -1,
                         .event_id = STR("e"),
                         .event_type = STR("webhook.test"),
                         .body = STR("{}"),
                         .state = DELIVERY_PENDING,
                         .next_at = NOW_MS,
                         .last_status = -1,
                         .created_at = NOW_MS,
                         .finished_at = -1};
    assert_ok(deliveries_insert(db, &d));
}

static void count_one(void *ctx, const struct delivery *d)
{
    (void)d;
    ++*(int64_t *)ctx;
}

static int64_t deliveries_of(struct db *db, int64_t webhook)
{
    int64_t count = 0;
    assert_ok(deliveries_list(db, webhook, INT64_MAX, 100, count_one, &count));
    return count;
}

/* Two webhooks in use with a delivery each that waits, and a deleted one between them. */
static struct fixture *fixture_open(struct folder *folder)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->db = open_with(path_in(folder, "p.db").text, DB_WRITER, &ENV_SYSTEM, 0);
    assert_ok(tx_init(&f->tx, f->db, &ENV_SYSTEM));
    assert_ok(db_begin(f->db));
    for (int64_t num = 1; num <= 3; num++) {
        struct webhook w = webhook_of(num);
        assert_ok(webhooks_insert(f->db, &w));
        insert_delivery(f->db, num, ((NOW_MS - 1000) << 12) + num);
    }
    assert_ok(webhooks_delete(f->db, 2, NOW_MS));
    assert_ok(db_commit(f->db));
    return f;
}

static void fixture_close(struct fixture *f)
{
    tx_release(&f->tx);
    db_close(f->db);
    free(f);
}

/* One slice in a transaction of its own, in which the store fails from the nth call on; 0: never.
 * True when it failed. */
static bool slice(struct fixture *f, int64_t failing_from, bool *ret_more)
{
    tx_start(&f->tx, NOW_MS);
    assert_ok(db_begin(f->db));
    if (failing_from > 0)
        failing_arm_here(failing_from);
    enum err e = delivery_log_slice(&f->log, &f->tx, ret_more);
    bool failed = failing_from > 0 && failing_disarm_here();
    assert_int_equal(e, failed ? ERR_STORE_BUSY : ERR_OK);
    if (failed)
        db_rollback(f->db);
    else
        assert_ok(tx_commit(&f->tx));
    return failed;
}

static void an_outage_during_the_sweep_costs_no_delivery_that_waits(void **state)
{
    bool failed = true;
    for (int64_t nth = 1; failed; nth++) {
        struct fixture *f = fixture_open(*state);
        bool more = true;
        failed = slice(f, nth, &more);
        for (int turn = 0; turn < 2; turn++) { /* the second begins with the first webhook */
            do
                (void)slice(f, 0, &more);
            while (more);
        }
        assert_int_equal(deliveries_of(f->db, 1), 1);
        assert_int_equal(deliveries_of(f->db, 2), 0);
        assert_int_equal(deliveries_of(f->db, 3), 1);
        fixture_close(f);
        void *folder = *state;
        assert_int_equal(folder_teardown(&folder), 0);
        assert_int_equal(folder_setup(state), 0);
    }
}

/* A webhook whose sweep failed is passed over; the next round looks at it again. */
static void a_webhook_that_cannot_be_swept_does_not_hold_up_the_others(void **state)
{
    struct fixture *f = fixture_open(*state);
    f->log.webhook = 1;
    f->log.below = (struct deliveries_below){INT64_MAX, INT64_MAX};
    f->log.skips = true;
    bool more = true;
    while (more)
        (void)slice(f, 0, &more);
    assert_int_equal(deliveries_of(f->db, 1), 1);
    assert_int_equal(deliveries_of(f->db, 2), 0);
    assert_int_equal(deliveries_of(f->db, 3), 1);
    fixture_close(f);
}

static int failing_setup(void **state)
{
    assert_int_equal(setenv("PAWL_TEST_STORE", "failing", 1), 0);
    return folder_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_outage_during_the_sweep_costs_no_delivery_that_waits,
                                        failing_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_webhook_that_cannot_be_swept_does_not_hold_up_the_others,
                                        failing_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
