/* What a transaction counts shows once, with its commit. */
#include "store/folder.h"

#include "base/metrics.h"
#include "core/txn/tenant_labels.h"
#include "core/txn/tx.h"

struct rig {
    struct metrics *registry;
    struct db *db;
    struct tx tx;
};

static void rig_open(struct rig *rig, const struct folder *folder)
{
    static const struct metric_spec CALLS = {
        "calls", "Calls.", METRIC_COUNTER, {"outcome", NULL}, NULL};
    static const struct metric_spec ADMISSIONS = {
        "admissions", "Admissions.", METRIC_COUNTER, {"tenant", "outcome"}, NULL};
    const struct metric_spec wait = {
        "wait", "Waits.", METRIC_HISTOGRAM, {"tenant", "endpoint"}, METRIC_SECONDS};
    rig->registry = metrics_new();
    rig->db = open_writer(path_in(folder, "x.db").text);
    assert_ok(tx_init(&rig->tx, rig->db, &ENV_SYSTEM));
    rig->tx.metrics = (struct tx_metrics){.entity_calls = metrics_declare(rig->registry, &CALLS),
                                          .admissions = metrics_declare(rig->registry, &ADMISSIONS),
                                          .admission_wait = metrics_declare(rig->registry, &wait),
                                          .labels = tenant_labels_new()};
}

static void rig_close(struct rig *rig)
{
    tenant_labels_free(rig->tx.metrics.labels);
    tx_release(&rig->tx);
    db_close(rig->db);
    metrics_free(rig->registry);
}

/* A run that was 1.5 s late, a try that was refused, and a call that was answered. */
static void count_some(struct rig *rig)
{
    const struct tenant tenant = {.id = STR("acme")};
    tx_start(&rig->tx);
    assert_ok(db_begin(rig->db));
    assert_ok(tx_count_admission(&rig->tx, &tenant, "schedule", STR("admitted"), 1500));
    assert_ok(tx_count_admission(&rig->tx, &tenant, "schedule", STR("limited"), -1));
    tx_count_call(&rig->tx, ENTITY_CALL_APPLIED);
}

static void assert_shown(struct rig *rig, const char *line)
{
    struct buf text;
    buf_init(&text, MIB);
    metrics_put_text(rig->registry, &text);
    assert_true(buf_ok(&text));
    if (strstr(text.ptr, line) == NULL)
        fail_msg("<%s> is not in <%s>", line, text.ptr);
    buf_release(&text);
}

static void assert_counted(struct rig *rig, double times)
{
    const struct tx_metrics *m = &rig->tx.metrics;
    assert_true(metric_value(m->admissions, STR("acme"), STR("admitted")) == times);
    assert_true(metric_value(m->admissions, STR("acme"), STR("limited")) == times);
    assert_true(metric_value(m->entity_calls, STR("applied"), STR_NONE) == times);
}

static void what_is_counted_shows_once_with_the_commit(void **state)
{
    struct rig rig;
    rig_open(&rig, *state);
    count_some(&rig);
    assert_counted(&rig, 0);
    assert_ok(tx_commit(&rig.tx));
    assert_counted(&rig, 1);
    assert_shown(&rig, "wait_count{tenant=\"acme\",endpoint=\"schedule\"} 1\n");
    assert_shown(&rig, "wait_sum{tenant=\"acme\",endpoint=\"schedule\"} 1.5\n");
    tx_start(&rig.tx);
    assert_ok(db_begin(rig.db));
    assert_ok(tx_commit(&rig.tx));
    assert_counted(&rig, 1);
    rig_close(&rig);
}

static void what_is_rolled_back_and_done_again_counts_once(void **state)
{
    struct rig rig;
    rig_open(&rig, *state);
    count_some(&rig);
    db_rollback(rig.db);
    tx_rolled_back(&rig.tx);
    assert_counted(&rig, 0);
    count_some(&rig);
    assert_ok(tx_commit(&rig.tx));
    assert_counted(&rig, 1);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(what_is_counted_shows_once_with_the_commit),
        folder_test(what_is_rolled_back_and_done_again_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
