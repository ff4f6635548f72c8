/* What a connection remembers is forgotten with the transaction that it came from. One pair of
 * functions for each row of READ_MEMORY and TX_MEMORY: a row without them does not compile. */
#include "store/folder.h"

#include "core/run/dispatch.h"
#include "core/txn/tx.h"
#include "store/tenants.h"
#include "store/workflows.h"

#define DEFINITION "{\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"handler\":\"h\"}]}"

enum { TENANT = 7 };

/* Each `remember` writes something and has it remembered; `is_known` says whether it still is,
 * without looking at the rows that were rolled back. */

static void remember_tenants(struct tx *tx)
{
    struct op op;
    op_init(&op, NULL);
    op.caller = (struct caller){.tenant = STR("acme"), .creates_tenant = true};
    struct tenant *t = NULL;
    assert_ok(read_tx_tenant(&tx->read, &op, &t));
    assert_ok(tx_tenant_ensure(tx, t));
    assert_int_equal(t->num, 1);
    op_release(&op);
}

static bool tenants_is_known(struct tx *tx)
{
    struct tenant *t = NULL;
    return read_tx_tenant_num(&tx->read, 1, &t) == ERR_OK;
}

static void add_version(struct tx *tx)
{
    struct workflow_head head = {.id = STR("w"), .latest_version = 1, .archived_at = -1};
    struct workflow_version v = {.version = 1,
                                 .digest = sha256_of(STR(DEFINITION)),
                                 .definition = STR(DEFINITION),
                                 .created_by = STR("me")};
    assert_ok(workflows_put(tx->db, TENANT, &head));
    assert_ok(workflows_add_version(tx->db, TENANT, STR("w"), &v));
}

static bool newest_is_known(struct tx *tx)
{
    struct workflow_newest newest;
    assert_ok(read_tx_newest(&tx->read, TENANT, STR("w"), &newest));
    return newest.found;
}

static void remember_newest(struct tx *tx)
{
    add_version(tx);
    assert_true(newest_is_known(tx));
}

static bool types_is_known(struct tx *tx)
{
    struct entity_type found;
    bool is_found = false;
    assert_ok(
        entity_type_cache_find(tx->types, tx->db, TENANT, STR("t"), &tx->arena, &is_found, &found));
    return is_found;
}

static void remember_types(struct tx *tx)
{
    struct entity_type type = {.tenant = TENANT, .id = STR("t"), .latest_version = 1};
    assert_ok(entity_types_insert(tx->db, &type));
    assert_true(types_is_known(tx));
}

static bool keys_is_known(struct tx *tx)
{
    struct idem_record record;
    bool found = false;
    assert_ok(idempotency_find(tx->db, tx->keys, TENANT, STR("k"), &tx->arena, &found, &record));
    return found;
}

static void remember_keys(struct tx *tx)
{
    struct idem_record record = {.tenant = TENANT,
                                 .key = STR("k"),
                                 .route = STR("POST /"),
                                 .status = 200,
                                 .body = STR("{}"),
                                 .expires_at = -1};
    assert_ok(idempotency_insert(tx->db, tx->keys, &record));
}

static void remember_nums(struct tx *tx)
{
    struct uuid id;
    int64_t num = 0;
    assert_ok(tx_new_run(tx, TENANT, &id, &num));
    tx->nums->last_feed = 1;
    tx->nums->runs_through = 1;
}

static bool nums_is_known(struct tx *tx)
{
    return tx->nums->last >= 0 || tx->nums->last_feed >= 0 || tx->nums->runs_through >= 0;
}

static bool definitions_is_known(struct tx *tx)
{
    struct problem p;
    problem_init(&p);
    const struct definition *def = NULL;
    enum err e = read_tx_definition(&tx->read, TENANT, STR("w"), 1, &p, &def);
    problem_release(&p);
    return e == ERR_OK;
}

static void remember_definitions(struct tx *tx)
{
    add_version(tx);
    assert_true(definitions_is_known(tx));
}

static void remember_window_stats(struct tx *tx)
{
    window_stats_of(tx->window_stats, 3)->keyed = 1;
}

static bool window_stats_is_known(struct tx *tx)
{
    return window_stats_of(tx->window_stats, 3)->keyed > 0;
}

/* That there is nothing to look at. */
static void remember_pending(struct tx *tx)
{
    *tx->pending = (struct tx_pending){0};
}

static bool pending_is_known(struct tx *tx)
{
    return !tx->pending->webhooks_changed || !tx_runs_index_is_due(tx);
}

static void remember_dispatch(struct tx *tx)
{
    *tx->dispatch = (struct dispatch_state){0};
}

static bool dispatch_is_known(struct tx *tx)
{
    return !dispatch_is_due(tx);
}

/* That the index has all runs. */
static void remember_recent_runs(struct tx *tx)
{
    recent_runs_folded(tx->recent_runs);
}

static bool recent_runs_is_known(struct tx *tx)
{
    return !tx->recent_runs->is_lost;
}

/* That every timer has a row. */
static void remember_recent_timers(struct tx *tx)
{
    recent_timers_folded(tx->recent_timers);
}

static bool recent_timers_is_known(struct tx *tx)
{
    return !tx->recent_timers->is_lost;
}

/* --- all of them --- */

struct row {
    const char *name;
    enum memory_until until;
    void (*remember)(struct tx *tx);
    bool (*is_known)(struct tx *tx);
};

static const struct row ROWS[] = {
#define X(member, type, until, functions) {#member, until, remember_##member, member##_is_known},
    READ_MEMORY(X) TX_MEMORY(X)
#undef X
};

static void each_row(struct folder *folder, void (*check)(struct tx *tx, const struct row *row))
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%s.db", ROWS[i].name);
        struct db *db = open_writer(path_in(folder, name).text);
        struct tx tx;
        assert_ok(tx_init(&tx, db, &ENV_SYSTEM));
        tx_start(&tx, env_now_ms(tx.env));
        assert_ok(db_begin(db));
        ROWS[i].remember(&tx);
        if (!ROWS[i].is_known(&tx))
            fail_msg("%s: nothing was remembered", ROWS[i].name);
        check(&tx, &ROWS[i]);
        tx_release(&tx);
        db_close(db);
    }
}

static void check_rollback(struct tx *tx, const struct row *row)
{
    db_rollback(tx->db);
    tx_rolled_back(tx);
    if (row->is_known(tx))
        fail_msg("%s: what was rolled back is still believed", row->name);
}

static void a_rollback_forgets_whatever_the_transaction_remembered(void **state)
{
    each_row(*state, check_rollback);
}

static void check_commit(struct tx *tx, const struct row *row)
{
    assert_ok(tx_commit(tx));
    tx_forget(tx);
    if (row->until == UNTIL_ROLLBACK && !row->is_known(tx))
        fail_msg("%s: what cannot change was forgotten", row->name);
}

static void what_is_committed_and_cannot_change_outlives_new_settings(void **state)
{
    each_row(*state, check_commit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_rollback_forgets_whatever_the_transaction_remembered),
        folder_test(what_is_committed_and_cannot_change_outlives_new_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
