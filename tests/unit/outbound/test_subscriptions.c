/* Channels of subscriptions: whatever order wakes come in, and whichever are missing, every row of
 * the feed is read; rows of other tenants are passed by unread where that is certain. */
#include "outbound/subscriptions.h"

#include "base/limits.h"

#include "testing.h"

enum { TENANT = 7, OTHER = 8, ROWS_MAX = 100 };

/* The feed, one event a row, and the read that is under way. */
struct fixture {
    struct subscriptions *all;
    struct subscriber subscriber;
    struct op *reading;
    int64_t tenants[ROWS_MAX]; /* of row 1, 2, … */
    int64_t last;
    int64_t received[ROWS_MAX]; /* rows that the subscriber received, in that order */
    size_t received_count;
    int64_t looked_at; /* rows that reads have passed */
};

static void begin_read(void *ctx, struct op *op)
{
    struct fixture *s = ctx;
    assert_null(s->reading);
    s->reading = op;
}

/* What UC_STREAM_TENANT does. */
static void finish_read(struct fixture *s)
{
    struct op *op = s->reading;
    const struct read_stream_input *in = op->input;
    struct stream_read *read = in->read;
    struct stream_event **end = &read->first;
    s->reading = NULL;
    read->first = NULL;
    if (read->from_now)
        read->from = (struct stream_position){s->last, INT64_MAX};
    for (int64_t num = read->from.num + 1; num <= s->last; num++) {
        s->looked_at++;
        if (s->tenants[num] != TENANT)
            continue;
        *end = stream_event_new((struct stream_position){num, 1}, STR("run.created"), STR("x"));
        assert_non_null(*end);
        end = &(*end)->next;
        *end = NULL;
    }
    read->through = (struct stream_position){MAX(s->last, read->from.num), INT64_MAX};
    op->err = ERR_OK;
    op->tenant_num = TENANT;
    op->done(op);
}

static void hear(struct subscriber *l)
{
    struct fixture *s = CONTAINER_OF(l, struct fixture, subscriber);
    struct str text;
    while (subscriber_next(l, &text) == SUBSCRIBER_EVENT)
        s->received[s->received_count++] = l->current->at.num;
}

static void left(struct subscriber *l)
{
    (void)l;
}

static int setup(void **state)
{
    struct fixture *s = calloc(1, sizeof(*s));
    struct stream_hooks hooks = {s, begin_read};
    assert_non_null(s);
    s->all = subscriptions_new(&ENV_SYSTEM, &hooks);
    s->subscriber = (struct subscriber){
        .caller = {.tenant = STR("t")},
        .scope = STREAM_TENANT,
        .read = {.from_now = true},
        .on_event = hear,
        .on_closed = left,
    };
    subscriptions_add(s->all, &s->subscriber);
    finish_read(s);
    assert_null(s->reading);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *s = *state;
    subscriptions_remove(s->all, &s->subscriber);
    if (s->reading != NULL)
        finish_read(s);
    subscriptions_free(s->all);
    free(s);
    return 0;
}

static int64_t commit(struct fixture *s, int64_t tenant)
{
    s->tenants[++s->last] = tenant;
    return s->last;
}

/* Effects for these rows, in the order given, as one commit brings them. */
static void announce(struct fixture *s, const int64_t *rows, size_t count)
{
    struct effect effects[ROWS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        effects[i] = (struct effect){.next = i + 1 < count ? &effects[i + 1] : NULL,
                                     .kind = EFFECT_EVENTS_APPENDED,
                                     .tenant = s->tenants[rows[i]],
                                     .events = {.owner = 1000 + rows[i], .feed = rows[i]}};
    subscriptions_committed(s->all, count > 0 ? effects : NULL);
}

#define ANNOUNCE(s, ...) \
    announce(s, (int64_t[]){__VA_ARGS__}, ARRAY_LEN(((int64_t[]){__VA_ARGS__})))

static void read_all(struct fixture *s)
{
    while (s->reading != NULL)
        finish_read(s);
}

static void assert_received_through(struct fixture *s, int64_t last)
{
    size_t at = 0;
    for (int64_t num = 1; num <= last; num++) {
        if (s->tenants[num] != TENANT)
            continue;
        assert_true(at < s->received_count);
        assert_int_equal(s->received[at++], num);
    }
    assert_int_equal(s->received_count, at);
}

static void wakes_of_a_round_may_come_in_any_order(void **state)
{
    struct fixture *s = *state;
    for (int i = 0; i < 4; i++)
        commit(s, TENANT);
    ANNOUNCE(s, 4, 2, 3, 1);
    read_all(s);
    assert_received_through(s, 4);
    for (int i = 0; i < 3; i++)
        commit(s, i == 1 ? OTHER : TENANT);
    ANNOUNCE(s, 7, 6, 5);
    read_all(s);
    assert_received_through(s, 7);
}

static void a_row_that_was_not_announced_is_read_with_the_next(void **state)
{
    struct fixture *s = *state;
    commit(s, TENANT);
    ANNOUNCE(s, 1);
    read_all(s);
    commit(s, TENANT); /* its wake is lost */
    commit(s, TENANT);
    ANNOUNCE(s, 3);
    read_all(s);
    assert_received_through(s, 3);
    commit(s, TENANT);
    commit(s, TENANT); /* lost out of the middle of a round */
    commit(s, OTHER);
    commit(s, TENANT);
    ANNOUNCE(s, 7, 6);
    read_all(s);
    assert_received_through(s, 7);
}

static void rounds_in_the_wrong_order_lose_nothing(void **state)
{
    struct fixture *s = *state;
    for (int i = 0; i < 6; i++)
        commit(s, i % 2 == 0 ? TENANT : OTHER);
    ANNOUNCE(s, 5, 6);
    read_all(s);
    ANNOUNCE(s, 1, 2);
    read_all(s);
    ANNOUNCE(s, 4, 3);
    read_all(s);
    assert_received_through(s, 6);
}

static void what_is_committed_during_a_read_is_read_after_it(void **state)
{
    struct fixture *s = *state;
    commit(s, TENANT);
    ANNOUNCE(s, 1);
    assert_non_null(s->reading);
    commit(s, TENANT);
    commit(s, OTHER);
    ANNOUNCE(s, 3, 2);
    finish_read(s); /* its snapshot has rows 2 and 3 already */
    commit(s, TENANT);
    ANNOUNCE(s, 4);
    read_all(s);
    assert_received_through(s, 4);
}

static void rows_of_others_are_passed_by_unread(void **state)
{
    struct fixture *s = *state;
    commit(s, TENANT);
    ANNOUNCE(s, 1);
    read_all(s);
    s->looked_at = 0;
    for (int i = 0; i < 50; i++)
        ANNOUNCE(s, commit(s, OTHER));
    assert_null(s->reading);
    ANNOUNCE(s, commit(s, TENANT));
    read_all(s);
    assert_received_through(s, 52);
    assert_int_equal(s->looked_at, 1);
}

int main(void)
{
#define subscriptions_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        subscriptions_test(wakes_of_a_round_may_come_in_any_order),
        subscriptions_test(a_row_that_was_not_announced_is_read_with_the_next),
        subscriptions_test(rounds_in_the_wrong_order_lose_nothing),
        subscriptions_test(what_is_committed_during_a_read_is_read_after_it),
        subscriptions_test(rows_of_others_are_passed_by_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
