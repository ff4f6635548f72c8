/* The relay: what it sends, in which order, when it says so, and what it puts aside. */
#include "engine/actions.h"
#include "engine/entity_actions.h"

#include "engine/fake_bus.h"
#include "fault_support/memory.h"
#include "outbound/relay.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define AT_ONCE                                                                       \
    "{'steps':[{'name':'t','type':'transform','output':1},{'name':'e','type':'emit'," \
    "'event':'told.all'}]}"
#define MARK "SELECT coalesce((SELECT through FROM feed_marks WHERE name = 'bus'), 0)"
#define END "SELECT max(num) FROM feed"

static struct fake_bus BUS;

static int setup(void **state)
{
    int rc = fixture_setup(state);
    struct fixture *fixture = *state;
    fake_init(&BUS);
    fixture_stop(fixture);
    fixture->bus = &BUS.bus;
    fixture->bus_queue = STR("default");
    fixture_start(fixture, 0);
    put_workflow(fixture, "now", AT_ONCE);
    put_workflow(fixture, "task", ONE_TASK);
    return rc;
}

#define relay_test(f) cmocka_unit_test_setup_teardown(f, setup, fixture_teardown)

static int64_t unpublished_events(struct fixture *fixture)
{
    struct engine_outbox outbox;
    engine_outbox(fixture->engine, &outbox);
    return outbox.depth;
}

#define UNTIL(fixture, condition)                           \
    do {                                                    \
        int64_t until_ = real_seconds() + GIVE_UP_S;        \
        while (!(condition)) {                              \
            if (real_seconds() >= until_)                   \
                fail_msg("it did not happen: " #condition); \
            fixture_pass_ms((fixture), RELAY_MARK_MS);      \
            fixture_round(fixture);                         \
        }                                                   \
    } while (0)

static int64_t events_of(struct fixture *fixture, struct uuid run)
{
    char sql[200];
    struct buf hex;
    buf_init(&hex, 64);
    buf_put_hex(&hex, run.bytes, sizeof(run.bytes));
    (void)snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM events WHERE run = (SELECT num FROM runs WHERE id = x'%s')", hex.ptr);
    buf_release(&hex);
    return in_file(fixture, sql);
}

/* The number of a message in its run. */
static int64_t seq_of(const struct fake_message *m)
{
    struct str run;
    struct str seq;
    int64_t number = 0;
    assert_true(str_cut(str_of(m->id), ':', &run, &seq));
    assert_true(str_to_i64(seq, &number));
    return number;
}

static void everything_is_sent_once_and_then_marked(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run = start(fixture, "now");
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(unpublished_events(fixture), 0);
    assert_true(events_of(fixture, run) >= 4);
    assert_int_equal(fake_count(&BUS, run, 0, false), events_of(fixture, run));
}

static void nothing_is_marked_before_it_is_acknowledged(void **state)
{
    struct fixture *fixture = *state;
    fake_set_deaf(&BUS, true);
    struct uuid run = start(fixture, "now");
    UNTIL(fixture, fake_count(&BUS, run, 1, false) >= 3); /* it goes on trying */
    assert_int_equal(in_file(fixture, MARK), 0);
    assert_int_equal(unpublished_events(fixture), events_of(fixture, run));
    assert_int_equal(fake_count(&BUS, run, 2, false), 0);
    fake_set_deaf(&BUS, false);
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(unpublished_events(fixture), 0);
    assert_int_equal(fake_count(&BUS, run, 0, true), events_of(fixture, run));
}

static void the_messages_of_a_run_wait_for_the_one_that_fails_and_other_runs_do_not(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid stuck = start(fixture, "now");
    struct uuid other = start(fixture, "now");
    fake_set_odd(&BUS, stuck, 2, BUS_UNKNOWN, RELAY_ATTEMPTS_MAX - 1);
    fake_set_away(&BUS, false);
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(fake_count(&BUS, stuck, 2, false), RELAY_ATTEMPTS_MAX);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM parked"), 0);
    int64_t next_seq[2] = {1, 1};
    int last_batch[2] = {0, 0};
    for (size_t i = 0; i < BUS.count; i++) {
        const struct fake_message *m = &BUS.sent[i];
        struct uuid run;
        int64_t seq = seq_of(m);
        assert_true(uuid_parse((struct str){m->id, UUID_TEXT_LEN}, &run));
        size_t which = uuid_eq(run, stuck) ? 0 : 1;
        assert_true(which == 0 || uuid_eq(run, other));
        assert_int_equal(seq, next_seq[which]);
        assert_true(m->batch > last_batch[which]); /* one of a run at a time */
        last_batch[which] = m->batch;
        next_seq[which] += m->result == BUS_STORED;
    }
}

static void a_message_that_is_refused_is_parked_and_those_behind_it_are_sent(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fake_set_odd(&BUS, run, 2, BUS_REFUSED, -1);
    fake_set_away(&BUS, false);
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM parked WHERE seq = 2 AND offer = 0"
                                      " AND reason = 'odd' AND attempts = 1 AND again = 0"),
                     1);
    assert_int_equal(unpublished_events(fixture), 0);
    assert_int_equal(fake_count(&BUS, run, 0, true), events_of(fixture, run) - 1);
}

static void a_message_that_is_never_acknowledged_while_others_are_is_parked(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid stuck = start(fixture, "now");
    fake_set_odd(&BUS, stuck, 1, BUS_UNKNOWN, -1);
    fake_set_away(&BUS, false);
    UNTIL(fixture, fake_count(&BUS, stuck, 1, false) > RELAY_ATTEMPTS_MAX + 2);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM parked"), 0); /* it may be the bus */
    for (int i = 0; i < RELAY_ATTEMPTS_MAX; i++)
        (void)start(fixture, "now"); /* something else to acknowledge */
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM parked WHERE seq = 1") == 1);
    assert_int_equal(in_file(fixture, "SELECT attempts FROM parked"), RELAY_ATTEMPTS_MAX);
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(fake_count(&BUS, stuck, 0, true), events_of(fixture, stuck) - 1);
}

static enum err ask_again(struct fixture *fixture, const char *id)
{
    struct retry_parked_input in = {str_of(id)};
    struct call c;
    call_init(&c, fixture, &UC_RETRY_PARKED);
    c.op.input = &in;
    enum err e = perform(&c);
    call_release(&c);
    return e;
}

static void a_parked_message_is_sent_again_when_somebody_asks_for_it(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fake_set_odd(&BUS, run, 2, BUS_REFUSED, 2);
    fake_set_away(&BUS, false);
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM parked") == 1);
    int64_t mark = in_file(fixture, END);
    UNTIL(fixture, in_file(fixture, MARK) == mark);
    assert_int_equal(ask_again(fixture, "nothing"), ERR_NOT_FOUND);
    assert_int_equal(ask_again(fixture, BUS.odd), ERR_OK);
    UNTIL(fixture,
          in_file(fixture, "SELECT count(*) FROM parked WHERE attempts = 2 AND again = 0") == 1);
    assert_int_equal(ask_again(fixture, BUS.odd), ERR_OK);
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM parked") == 0);
    assert_int_equal(fake_count(&BUS, run, 2, true), 1);
    assert_int_equal(unpublished_events(fixture), 0);
}

/* As when it went with its generation: the one behind it is not sent in its place. */
static void a_parked_message_whose_event_is_gone_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fake_set_odd(&BUS, run, 2, BUS_REFUSED, 1);
    fake_set_away(&BUS, false);
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM parked") == 1);
    int64_t mark = in_file(fixture, END);
    UNTIL(fixture, in_file(fixture, MARK) == mark);
    tamper(fixture, "DELETE FROM timeline");
    tamper(fixture, "UPDATE runs SET first_seq = NULL, first_events = NULL");
    assert_int_equal(ask_again(fixture, BUS.odd), ERR_OK);
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM parked") == 0);
    assert_int_equal(fake_count(&BUS, run, 2, true), 0);
    assert_int_equal(fake_count(&BUS, run, 3, false), 1);
}

static void what_was_not_marked_is_sent_again_under_the_same_ids(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run = start(fixture, "now");
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    tamper(fixture,
           "DELETE FROM feed_marks WHERE name = 'bus'"); /* as if killed before it was written */
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    for (int seq = 1; seq <= events_of(fixture, run); seq++)
        assert_int_equal(fake_count(&BUS, run, seq, true), 2);
    tamper(fixture, "SELECT 1"); /* and when it was written, it is not */
    struct uuid next = start(fixture, "now");
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(fake_count(&BUS, run, 1, true), 2);
    assert_int_equal(fake_count(&BUS, next, 1, true), 1);
}

/* As after a move, with rows that the source had published and one that it had not. */
static void what_another_store_has_published_is_not_sent_again(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid before = start(fixture, "now");
    tamper(fixture,
           "INSERT INTO moved_feeds SELECT num, 0, 0, 0, (SELECT max(num) FROM feed_packs),"
           " 0, 0 FROM tenants WHERE id = 'acme'");
    struct uuid later = start(fixture, "now");
    fake_set_away(&BUS, false);
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(fake_count(&BUS, before, 0, true), 0);
    assert_int_equal(fake_count(&BUS, later, 0, true), events_of(fixture, later));
    assert_int_equal(unpublished_events(fixture), 0);
}

enum { ITEMS = 1900 }; /* of which the window holds a part */

/* A run with more events than that, while the bus is away. */
static struct uuid start_long(struct fixture *fixture)
{
    char items[2 * ITEMS + 2] = "[0";
    for (size_t i = 1; i < ITEMS; i++)
        memcpy(items + 2 * i, ",0", 2);
    items[2 * ITEMS] = ']';
    put_workflow(fixture, "long",
                 "{'steps':[{'name':'t','type':'transform','output':1,'for_each':'input',"
                 "'max_parallel':1000}]}");
    fake_set_away(&BUS, true);
    struct uuid run = start_with(fixture, "long", items);
    int64_t until = real_seconds() + GIVE_UP_S;
    while (in_file(fixture, "SELECT count(*) FROM runs WHERE status = 'succeeded'") == 0) {
        assert_true(real_seconds() < until);
        fixture_pass_ms(fixture, 1);
        settle(fixture);
    }
    return run;
}

static void a_long_timeline_is_sent_whole_and_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run = start_long(fixture);
    fake_set_away(&BUS, false);
    UNTIL(fixture,
          unpublished_events(fixture) == 0 && in_file(fixture, MARK) == in_file(fixture, END));
    assert_true(events_of(fixture, run) > ITEMS);
    assert_int_equal(fake_count(&BUS, run, 0, false), events_of(fixture, run));
    for (size_t i = 0; i < BUS.count; i++)
        assert_int_equal(seq_of(&BUS.sent[i]), i + 1);
}

static void a_long_timeline_does_not_hold_up_other_runs(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run = start_long(fixture);
    struct uuid other = start(fixture, "now");
    int64_t others = events_of(fixture, other);
    tamper(fixture, "SELECT 1"); /* the relay reads the feed anew */
    fake_set_away(&BUS, false);
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(fake_count(&BUS, run, 0, false), events_of(fixture, run));
    for (size_t i = 0; i < BUS.count; i++) {
        struct uuid of;
        assert_true(uuid_parse((struct str){BUS.sent[i].id, UUID_TEXT_LEN}, &of));
        if (uuid_eq(of, other)) /* one in each batch, from the first on */
            assert_int_equal(BUS.sent[i].batch, seq_of(&BUS.sent[i]));
    }
    assert_int_equal(fake_count(&BUS, other, 0, true), others);
}

/* --- entities --- */

static void what_an_entity_tells_is_sent_under_its_id(void **state)
{
    struct fixture *fixture = *state;
    count_with(fixture, "");
    (void)must_send(fixture, "ann", NULL, 1);
    UNTIL(fixture,
          unpublished_events(fixture) == 0 && in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(BUS.count, 2);
    assert_string_equal(BUS.sent[0].subject, "pawl.acme.entity.created");
    assert_string_equal(BUS.sent[1].subject, "pawl.acme.entity.signaled");
    for (int i = 0; i < 2; i++)
        assert_int_equal(seq_of(&BUS.sent[i]), i + 1);
}

static size_t sent_so_far(void)
{
    pthread_mutex_lock(&BUS.lock);
    size_t count = BUS.count;
    pthread_mutex_unlock(&BUS.lock);
    return count;
}

/* Even what waits behind a long timeline. */
static void events_of_a_deleted_entity_are_sent_too(void **state)
{
    enum { SIGNALS = 3 * RELAY_LANE_MAX };
    struct fixture *fixture = *state;
    count_with(fixture, "");
    fake_set_deaf(&BUS, true);
    for (int i = 0; i < SIGNALS; i++)
        (void)must_send(fixture, "ann", NULL, 1);
    UNTIL(fixture, sent_so_far() > 0);
    struct entity_input in = {COUNTER, STR("ann")};
    struct call c;
    call_init(&c, fixture, &UC_DELETE_ENTITY);
    c.op.input = &in;
    must_perform(&c);
    call_release(&c);
    struct uuid ann;
    assert_true(uuid_parse((struct str){BUS.sent[0].id, UUID_TEXT_LEN}, &ann));
    int events = (int)in_file(fixture, "SELECT count(*) FROM events");
    struct uuid run = start(fixture, "now");
    fixture_pass_ms(fixture, 60 * 1000); /* the sweep is by, and leaves what is not told */
    settle(fixture);
    fake_set_deaf(&BUS, false);
    UNTIL(fixture,
          unpublished_events(fixture) == 0 && in_file(fixture, MARK) == in_file(fixture, END));
    assert_true(events > SIGNALS + 1);
    for (int seq = 1; seq <= events; seq++)
        assert_int_equal(fake_count(&BUS, ann, seq, true), 1);
    assert_int_equal(fake_count(&BUS, run, 0, true), events_of(fixture, run));
    UNTIL(fixture, in_file(fixture, "SELECT count(*) FROM entity_sweeps") == 0);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM events"), events_of(fixture, run));
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM parked"), 0);
    assert_sound(fixture);
}

/* --- offers --- */

static size_t offers(void)
{
    size_t count = 0;
    pthread_mutex_lock(&BUS.lock);
    for (size_t i = 0; i < BUS.count; i++)
        count += str_ends_with(str_of(BUS.sent[i].id), STR(":offer"));
    pthread_mutex_unlock(&BUS.lock);
    return count;
}

static void a_job_is_offered_each_time_that_it_becomes_claimable(void **state)
{
    struct fixture *fixture = *state;
    struct uuid run = start(fixture, "task");
    UNTIL(fixture, offers() == 1);
    struct held h;
    assert_true(claim_one(fixture, 1000, &h));
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(offers(), 1);
    fixture_pass_ms(fixture, 1001); /* the lease ends */
    settle(fixture);
    UNTIL(fixture, offers() == 2);
    work(fixture, "a");
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(offers(), 2);
    assert_run_is(fixture, run, "succeeded");
    fake_set_away(&BUS, true);
    struct uuid next = start(fixture, "now");
    assert_int_equal(unpublished_events(fixture),
                     events_of(fixture, next)); /* offers do not count */
}

static void a_job_that_is_taken_already_is_not_offered(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    (void)start(fixture, "task");
    struct held h;
    assert_true(claim_one(fixture, 60000, &h));
    tamper(fixture, "SELECT 1"); /* the relay reads the feed anew */
    fake_set_away(&BUS, false);
    UNTIL(fixture, unpublished_events(fixture) == 0);
    assert_int_equal(offers(), 0);
}

/* --- what is kept for it --- */

static void let_chores_run(struct fixture *fixture)
{
    for (int i = 0; i < 3; i++) {
        fixture_pass_ms(fixture, RETENTION_PAUSE_MS);
        settle(fixture);
    }
}

static void a_run_stays_until_its_events_are_published(void **state)
{
    struct fixture *fixture = *state;
    put_tenant(fixture, "{'run_retention_s':1}");
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fixture_pass_ms(fixture, 5000);
    let_chores_run(fixture);
    assert_run_is(fixture, run, "succeeded");
    fake_set_away(&BUS, false);
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    let_chores_run(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM runs"), 0);
    assert_int_equal(fake_count(&BUS, run, 1, true), 1);
}

static void the_feed_is_swept_up_to_where_the_bus_is(void **state)
{
    struct fixture *fixture = *state;
    (void)start(fixture, "now");
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    fake_set_away(&BUS, true);
    (void)start(fixture, "now");
    tamper(fixture, "SELECT 1"); /* folds the counters, which hold the feed back too */
    fixture_pass_ms(fixture, INT64_C(1000) + FEED_KEPT_MS);
    let_chores_run(fixture);
    assert_int_equal(in_file(fixture, "SELECT min(num) FROM feed"), in_file(fixture, MARK) + 1);
    fixture_stop(fixture);
    fixture->bus = NULL;
    fixture->keeps_all = true; /* an offline command knows of no bus and removes nothing */
    fixture_start(fixture, 0);
    let_chores_run(fixture);
    assert_int_equal(in_file(fixture, "SELECT min(num) FROM feed"), in_file(fixture, MARK) + 1);
    fixture_stop(fixture);
    fixture->keeps_all = false; /* a server without a bus holds nothing back for it */
    fixture_start(fixture, 0);
    let_chores_run(fixture);
    assert_int_equal(in_file(fixture, "SELECT count(*) FROM feed"), 0);
    fixture_stop(fixture);
    fixture->bus = &BUS.bus; /* and when it is back it goes on from what there is */
    fixture_start(fixture, 0);
    fake_set_away(&BUS, false);
    struct uuid run = start(fixture, "now");
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(fake_count(&BUS, run, 1, true), 1);
    assert_int_equal(unpublished_events(fixture), 0);
}

static void (*publish_as_usual)(struct bus *, struct bus_message *, size_t);
static atomic_bool out_of_memory;

/* Once a message was refused, the relay's thread is out of memory. */
static void publish_and_run_out(struct bus *bus, struct bus_message *messages, size_t count)
{
    publish_as_usual(bus, messages, count);
    for (size_t i = 0; i < count; i++) {
        if (messages[i].result == BUS_REFUSED && atomic_load(&out_of_memory))
            memory_arm(1);
    }
}

static void a_refused_message_for_which_there_is_no_memory_is_parked_later(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fake_set_odd(&BUS, run, 2, BUS_REFUSED, -1);
    fixture_stop(fixture);
    publish_as_usual = BUS.bus.publish;
    BUS.bus.publish = publish_and_run_out;
    atomic_store(&out_of_memory, true);
    fixture_start(fixture, 0);
    fake_set_away(&BUS, false);
    UNTIL(fixture, fake_count(&BUS, run, 2, false) > 0);
    fixture_stop(fixture); /* it does not hold up the end of the server */
    atomic_store(&out_of_memory, false);
    fixture_start(fixture, 0);
    UNTIL(fixture, in_file(fixture, MARK) == in_file(fixture, END));
    assert_int_equal(
        in_file(fixture, "SELECT count(*) FROM parked WHERE seq = 2 AND reason = 'odd'"), 1);
    assert_int_equal(fake_count(&BUS, run, 2, true), 0);
}

/* --- the disk --- */

static atomic_int waits_for_disk;

static bool never_durable(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&waits_for_disk, 1);
    return false;
}

static void nothing_is_sent_before_it_is_on_disk(void **state)
{
    struct fixture *fixture = *state;
    fake_set_away(&BUS, true);
    struct uuid run = start(fixture, "now");
    fixture_stop(fixture);
    fake_set_away(&BUS, false);
    char url[160];
    test_store_url(fixture->file.text, url, sizeof(url));
    atomic_llong unpublished = 0;
    struct relay_config config = {.bus = &BUS.bus,
                                  .store_url = str_of(url),
                                  .env = &fixture->env,
                                  .event_fd = eventfd(0, EFD_NONBLOCK),
                                  .unpublished_events = &unpublished,
                                  .wait_durable = never_durable};
    struct problem p;
    problem_init(&p);
    struct relay *relay = NULL;
    assert_ok(relay_start(&config, &p, &relay));
    int64_t until = real_seconds() + GIVE_UP_S;
    while (atomic_load(&waits_for_disk) < 2 && fake_count(&BUS, run, 0, false) == 0) {
        assert_true(real_seconds() < until);
        relay_wake(relay);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(fake_count(&BUS, run, 0, false), 0);
    relay_free(relay);
    close(config.event_fd);
    problem_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        relay_test(everything_is_sent_once_and_then_marked),
        relay_test(nothing_is_marked_before_it_is_acknowledged),
        relay_test(the_messages_of_a_run_wait_for_the_one_that_fails_and_other_runs_do_not),
        relay_test(a_message_that_is_refused_is_parked_and_those_behind_it_are_sent),
        relay_test(a_message_that_is_never_acknowledged_while_others_are_is_parked),
        relay_test(a_parked_message_is_sent_again_when_somebody_asks_for_it),
        relay_test(a_parked_message_whose_event_is_gone_is_given_up),
        relay_test(what_was_not_marked_is_sent_again_under_the_same_ids),
        relay_test(what_another_store_has_published_is_not_sent_again),
        relay_test(a_long_timeline_is_sent_whole_and_in_order),
        relay_test(a_long_timeline_does_not_hold_up_other_runs),
        relay_test(what_an_entity_tells_is_sent_under_its_id),
        relay_test(events_of_a_deleted_entity_are_sent_too),
        relay_test(a_job_is_offered_each_time_that_it_becomes_claimable),
        relay_test(a_job_that_is_taken_already_is_not_offered),
        relay_test(a_run_stays_until_its_events_are_published),
        relay_test(the_feed_is_swept_up_to_where_the_bus_is),
        relay_test(a_refused_message_for_which_there_is_no_memory_is_parked_later),
        relay_test(nothing_is_sent_before_it_is_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
