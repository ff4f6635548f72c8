/* Effects are published once, in order, with the commit; a rollback leaves nothing of them. */
#include "store/folder.h"

#include "base/limits.h"
#include "core/txn/tx.h"
#include "store/run/jobs.h"

enum { TENANT = 7, RUN = 11 };

struct fixture {
    struct db *db;
    struct tx tx;
};

static void fixture_open(struct fixture *f, const struct folder *folder)
{
    f->db = open_writer(path_in(folder, "x.db").text);
    assert_ok(tx_init(&f->tx, f->db, &ENV_SYSTEM));
    f->tx.exports_spans = true;
}

static void fixture_close(struct fixture *f)
{
    tx_release(&f->tx);
    db_close(f->db);
}

static void begin(struct fixture *f)
{
    tx_start(&f->tx, env_now_ms(f->tx.env));
    assert_ok(db_begin(f->db));
}

static void roll_back(struct fixture *f)
{
    db_rollback(f->db);
    tx_rolled_back(&f->tx);
}

static const struct uuid KEY = {.bytes = {1, 2, 3}};

/* One function for each kind: a kind without one does not compile. */

static void append_EFFECT_JOB_READY(struct tx *tx)
{
    char queue[] = "q";
    struct job job = {.tenant = TENANT, .owner = 7, .ordinal = 2};
    assert_ok(tx_wake_queue(tx, &job, str_of(queue)));
    queue[0] = 'x'; /* the effect has its own */
}

static void check_EFFECT_JOB_READY(const struct effect *x)
{
    assert_int_equal(x->tenant, TENANT);
    assert_str(x->ready.queue, "q");
    assert_int_equal(x->ready.owner, 7);
    assert_int_equal(x->ready.ordinal, 2);
    assert_false(x->ready.leased);
}

static void append_EFFECT_RUN_MADE(struct tx *tx)
{
    struct uuid id;
    int64_t num;
    assert_ok(tx_new_run(tx, TENANT, &id, &num));
}

static void check_EFFECT_RUN_MADE(const struct effect *x)
{
    assert_int_equal(x->tenant, TENANT);
}

static void append_EFFECT_RUN_ENDED(struct tx *tx)
{
    assert_ok(tx_wake_run(tx, TENANT, KEY, RUN_DENIED));
}

static void check_EFFECT_RUN_ENDED(const struct effect *x)
{
    assert_true(uuid_eq(x->decided.key, KEY));
    assert_int_equal(x->decided.through, 0);
    assert_int_equal(x->decided.status, RUN_DENIED);
}

static void append_EFFECT_UPDATES_DECIDED(struct tx *tx)
{
    assert_ok(tx_wake_updates(tx, TENANT, KEY, 3, 5));
}

static void check_EFFECT_UPDATES_DECIDED(const struct effect *x)
{
    assert_true(uuid_eq(x->decided.key, KEY));
    assert_int_equal(x->decided.after, 3);
    assert_int_equal(x->decided.through, 5);
}

static void tell(struct tx *tx, int64_t run, int64_t seq)
{
    struct event event = {.seq = seq, .at = tx->now_ms, .type = STR("run.created"), .job = -1};
    assert_ok(tx_add_event(tx, TENANT, run, &event));
}

static int64_t last_told = RUN; /* each time of another run: a timeline has no event twice */

static void append_EFFECT_EVENTS_APPENDED(struct tx *tx)
{
    last_told++;
    for (int64_t seq = 1; seq <= 3; seq++)
        tell(tx, last_told, seq);
}

static void check_EFFECT_EVENTS_APPENDED(const struct effect *x)
{
    assert_int_equal(x->tenant, TENANT);
    assert_in_range(x->events.owner, RUN + 1, last_told);
    assert_int_equal(x->events.first_seq, 1);
    assert_int_equal(x->events.last_seq, 3);
    assert_true(x->events.feed > 0);
}

static void append_EFFECT_CALLS_READY(struct tx *tx)
{
    tx_note(tx, EFFECT_CALLS_READY);
    tx_note(tx, EFFECT_CALLS_READY);
}

static void append_EFFECT_DELIVERIES_READY(struct tx *tx)
{
    tx_note(tx, EFFECT_DELIVERIES_READY);
}

static void append_EFFECT_KEYS_CHANGED(struct tx *tx)
{
    tx_note(tx, EFFECT_KEYS_CHANGED);
}

static void check_nothing(const struct effect *x)
{
    assert_int_equal(x->tenant, 0);
}
#define check_EFFECT_CALLS_READY check_nothing
#define check_EFFECT_DELIVERIES_READY check_nothing
#define check_EFFECT_KEYS_CHANGED check_nothing

static void append_EFFECT_TIMER_ARMED(struct tx *tx)
{
    tx_note_due(tx, 2000);
    tx_note_due(tx, 1000);
    tx_note_due(tx, -1);
    tx_note_due(tx, 3000);
}

static void check_EFFECT_TIMER_ARMED(const struct effect *x)
{
    assert_int_equal(x->timer_at, 1000);
}

static void append_EFFECT_ENTITY_CALL_ENDED(struct tx *tx)
{
    tx_count_call(tx, ENTITY_CALL_EXPIRED);
}

static void check_EFFECT_ENTITY_CALL_ENDED(const struct effect *x)
{
    assert_int_equal(x->call_end, ENTITY_CALL_EXPIRED);
}

static const struct tenant ACME = {.id = {"acme", 4}};

static void append_EFFECT_ADMISSION(struct tx *tx)
{
    assert_ok(tx_count_admission(tx, &ACME, "schedule", STR("limited"), -1));
}

static void check_EFFECT_ADMISSION(const struct effect *x)
{
    assert_str(x->admission.tenant, "acme");
    assert_string_equal(x->admission.endpoint, "schedule");
    assert_str(x->admission.outcome, "limited");
    assert_int_equal(x->admission.wait_ms, -1);
}

static void append_EFFECT_QUEUE_WAIT(struct tx *tx)
{
    tx_observe_queue_wait(tx, &ACME, 250);
}

static void check_EFFECT_QUEUE_WAIT(const struct effect *x)
{
    assert_str(x->admission.tenant, "acme");
    assert_int_equal(x->admission.wait_ms, 250);
}

static void append_EFFECT_SPAN(struct tx *tx)
{
    char name[] = "s";
    char value[] = "v";
    struct span span = {.place = {.id = 3}, .name = str_of(name), .message = STR("why")};
    span_add_text(&span, "a", str_of(value));
    span_add_number(&span, "b", 4);
    assert_ok(tx_export_span(tx, &span));
    name[0] = value[0] = 'x'; /* the effect has its own */
}

static void check_EFFECT_SPAN(const struct effect *x)
{
    assert_true(x->span->place.id == 3);
    assert_str(x->span->name, "s");
    assert_str(x->span->message, "why");
    assert_null(x->span->tracestate.ptr);
    assert_int_equal(x->span->attribute_count, 2);
    assert_str(x->span->attributes[0].text, "v");
    assert_null(x->span->attributes[1].text.ptr);
    assert_int_equal(x->span->attributes[1].number, 4);
}

static const struct {
    void (*append)(struct tx *tx);
    void (*check)(const struct effect *x);
} KINDS[] = {
#define X(symbol) [symbol] = {append_##symbol, check_##symbol},
    EFFECTS(X)
#undef X
};

static void append_all(struct tx *tx)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        KINDS[i].append(tx);
}

/* Each kind once, in the order of the table, `times` over. */
static void assert_published(struct fixture *f, int64_t times)
{
    struct effect_parcel *parcel = effects_take(&f->tx.effects);
    const struct effect *x = parcel != NULL ? parcel->first : NULL;
    for (int64_t n = 0; n < times; n++) {
        for (size_t i = 0; i < ARRAY_LEN(KINDS); i++, x = x->next) {
            assert_non_null(x);
            assert_int_equal(x->kind, i);
            KINDS[i].check(x);
        }
    }
    assert_null(x);
    if (parcel != NULL)
        effect_parcel_free(parcel);
    assert_true(effects_are_empty(&f->tx.effects));
}

static void a_commit_publishes_each_effect_once_and_in_order(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    begin(&f);
    append_all(&f.tx);
    assert_ok(tx_commit(&f.tx));
    assert_published(&f, 1);
    begin(&f);
    assert_ok(tx_commit(&f.tx));
    assert_published(&f, 0);
    fixture_close(&f);
}

static void a_rollback_leaves_nothing_to_publish(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    begin(&f);
    append_all(&f.tx);
    roll_back(&f);
    assert_published(&f, 0);
    begin(&f);
    append_all(&f.tx);
    assert_ok(tx_commit(&f.tx));
    assert_published(&f, 1);
    fixture_close(&f);
}

static void a_rollback_keeps_what_was_committed_before(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    begin(&f);
    append_all(&f.tx);
    assert_ok(tx_commit(&f.tx));
    for (int i = 0; i < 200; i++) { /* more than one block of memory */
        begin(&f);
        append_all(&f.tx);
        append_all(&f.tx);
        roll_back(&f);
    }
    begin(&f);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        KINDS[i].append(&f.tx);
    assert_ok(tx_commit(&f.tx));
    assert_published(&f, 2);
    fixture_close(&f);
}

static void events_after_a_flush_get_a_row_of_their_own_in_the_feed(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    begin(&f);
    tell(&f.tx, RUN, 1);
    assert_ok(tx_flush(&f.tx));
    tell(&f.tx, RUN, 2);
    assert_ok(tx_commit(&f.tx));
    const struct effect *first = f.tx.effects.first;
    assert_int_equal(first->events.last_seq, 1);
    assert_int_equal(first->next->events.first_seq, 2);
    assert_int_equal(first->next->events.feed, first->events.feed + 1);
    assert_null(first->next->next);
    fixture_close(&f);
}

static void a_transaction_whose_effects_do_not_fit_does_not_commit(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    begin(&f);
    f.tx.effects.memory.limit = 1024;
    for (int i = 0; i < 20; i++)
        tx_count_call(&f.tx, ENTITY_CALL_APPLIED);
    assert_int_equal(tx_commit(&f.tx), ERR_TOO_LARGE);
    roll_back(&f);
    assert_published(&f, 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        folder_test(a_commit_publishes_each_effect_once_and_in_order),
        folder_test(a_rollback_leaves_nothing_to_publish),
        folder_test(a_rollback_keeps_what_was_committed_before),
        folder_test(events_after_a_flush_get_a_row_of_their_own_in_the_feed),
        folder_test(a_transaction_whose_effects_do_not_fit_does_not_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
