/* Random histories of entities, with senders that repeat themselves, handlers that die, fail and
 * come too late, and a server that stops: every signal is applied once and in order, every timer is
 * told once, and nobody has a call of an entity while somebody else has. */
#include "engine/entity_actions.h"

enum {
    ENTITIES = 3,
    SIGNALS_MAX = 256, /* per entity and life */
    HELD_MAX = 8,
    TIMERS_MAX = 256,
    STEPS = 140,
    SEEDS = 12,
    LEASE_MS = 1000,
};

struct held {
    struct handed handed;
    int entity;
};

struct known_entity {
    char id[4];
    int numbers[SIGNALS_MAX + 1]; /* what signal 1, 2, 3 … adds; its key is k<seq> */
    int64_t last_seq;
    int64_t applied_seq;
    int64_t lease_until; /* of the last hand-out; 0: it is over */
    char lease_token[64];
};

struct life {
    struct fixture *fixture;
    uint64_t random;
    struct known_entity entities[ENTITIES];
    struct held held[HELD_MAX];
    int timers_set;
    int timer_owner[TIMERS_MAX];
    bool timer_gone[TIMERS_MAX]; /* told, or dropped with its entity's end */
};

static unsigned dice(struct life *l, unsigned sides)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(l->random >> 33) % sides;
}

/* --- senders --- */

static void send_new(struct life *l, struct known_entity *x)
{
    if (x->last_seq == SIGNALS_MAX)
        return;
    char key[32];
    int number = (int)dice(l, 100);
    (void)snprintf(key, sizeof(key), "k%lld", (long long)x->last_seq + 1);
    struct sent sent = must_send(l->fixture, x->id, key, number);
    assert_false(sent.duplicate);
    assert_int_equal(sent.seq, x->last_seq + 1);
    x->numbers[++x->last_seq] = number;
}

static void send_again(struct life *l, struct known_entity *x)
{
    if (x->last_seq == 0)
        return;
    char key[32];
    int64_t seq = 1 + dice(l, (unsigned)x->last_seq);
    (void)snprintf(key, sizeof(key), "k%lld", (long long)seq);
    struct sent again = must_send(l->fixture, x->id, key, x->numbers[seq]);
    assert_true(again.duplicate);
    assert_int_equal(again.seq, seq);
    assert_int_equal(send_signal(l->fixture, x->id, key, x->numbers[seq] + 1).err,
                     ERR_IDEM_KEY_REUSED);
}

/* --- handlers --- */

static int entity_of(const struct handed *h)
{
    const json_t *id = json_object_get(json_object_get(h->input, "entity"), "id");
    return json_string_value(id)[1] - '0';
}

/* Whoever had the entity's call before has lost it, or is done. */
static void claim_some(struct life *l)
{
    struct held *place = &l->held[dice(l, HELD_MAX)];
    json_decref(place->handed.job); /* its worker is not heard of again */
    place->handed = claim_call(l->fixture, LEASE_MS);
    if (place->handed.job == NULL)
        return;
    place->entity = entity_of(&place->handed);
    struct known_entity *x = &l->entities[place->entity];
    if (x->lease_until > fixture_now_ms(l->fixture))
        fail_msg("%s has two calls at a time", x->id);
    x->lease_until = fixture_now_ms(l->fixture) + LEASE_MS;
    memcpy(x->lease_token, place->handed.token, sizeof(x->lease_token));
}

static void note_timers(struct life *l, const struct held *held)
{
    const json_t *timers = json_object_get(held->handed.input, "timers");
    for (size_t i = 0; i < json_array_size(timers); i++) {
        const json_t *name = json_object_get(json_array_get(timers, i), "name");
        int number = (int)strtol(json_string_value(name) + 1, NULL, 10);
        assert_int_equal(l->timer_owner[number], held->entity);
        assert_false(l->timer_gone[number]);
        l->timer_gone[number] = true;
    }
}

static void note_applied(struct life *l, const struct held *held)
{
    struct known_entity *x = &l->entities[held->entity];
    const json_t *signals = json_object_get(held->handed.input, "signals");
    for (size_t i = 0; i < json_array_size(signals); i++) {
        const json_t *s = json_array_get(signals, i);
        int64_t seq = json_integer_value(json_object_get(s, "seq"));
        assert_int_equal(seq, x->applied_seq + 1);
        assert_int_equal(json_integer_value(json_object_get(s, "payload")), x->numbers[seq]);
        x->applied_seq = seq;
    }
    note_timers(l, held);
    x->lease_until = 0;
}

static void drop_timers_of(struct life *l, int entity)
{
    for (int i = 0; i < l->timers_set; i++) {
        if (l->timer_owner[i] == entity)
            l->timer_gone[i] = true;
    }
}

static void answer(struct life *l, struct held *held)
{
    char more[128] = "";
    char text[512];
    bool sets = l->timers_set < TIMERS_MAX && dice(l, 3) == 0;
    bool ends = !sets && dice(l, 20) == 0;
    if (sets)
        (void)snprintf(more, sizeof(more), ",\"set_timers\":[{\"name\":\"t%d\",\"in_ms\":%u}]",
                       l->timers_set, dice(l, 2000));
    else if (ends)
        (void)snprintf(more, sizeof(more), ",\"finished\":true");
    sum_up(&held->handed, more, text);
    struct known_entity *x = &l->entities[held->entity];
    bool current = x->lease_until > fixture_now_ms(l->fixture) &&
                   strcmp(x->lease_token, held->handed.token) == 0;
    enum err e = finish_call(l->fixture, &held->handed, text, true);
    if (e != ERR_OK) {
        /* So late that its generation is not kept any more, or just too late. */
        assert_true(e == ERR_LEASE_LOST || e == ERR_JOB_NOT_FOUND);
        assert_false(current);
        return;
    }
    note_applied(l, held);
    if (sets)
        l->timer_owner[l->timers_set++] = held->entity;
    if (ends)
        drop_timers_of(l, held->entity);
    assert_int_equal(finish_call(l->fixture, &held->handed, text, true), ERR_OK); /* its retry */
}

static void end_some(struct life *l)
{
    struct held *held = &l->held[dice(l, HELD_MAX)];
    if (held->handed.job == NULL)
        return;
    if (dice(l, 4) > 0) {
        answer(l, held);
    } else if (finish_call(l->fixture, &held->handed, NULL, true) == ERR_OK) {
        l->entities[held->entity].lease_until = 0;
    }
    json_decref(held->handed.job);
    held->handed = (struct handed){0};
}

/* --- a life --- */

static void pass_time(struct life *l)
{
    fixture_pass_ms(l->fixture, dice(l, 1500));
    settle(l->fixture);
}

static void step(struct life *l)
{
    struct known_entity *x = &l->entities[dice(l, ENTITIES)];
    switch (dice(l, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        send_new(l, x);
        break;
    case 4:
        send_again(l, x);
        break;
    case 5:
    case 6:
    case 7:
        claim_some(l);
        break;
    case 8:
    case 9:
        end_some(l);
        break;
    case 10:
        pass_time(l);
        break;
    default:
        if (dice(l, 4) == 0) {
            fixture_stop(l->fixture);
            fixture_start(l->fixture, 0);
        }
        break;
    }
}

/* Everybody alive works until nothing is left to do. */
static void finish_all(struct life *l)
{
    for (size_t i = 0; i < HELD_MAX; i++) {
        json_decref(l->held[i].handed.job);
        l->held[i].handed = (struct handed){0};
    }
    for (int quiet = 0; quiet < 3;) {
        fixture_pass_ms(l->fixture, 400000); /* leases, delays and timers are over */
        settle(l->fixture);
        struct held held = {.handed = claim_call(l->fixture, LEASE_MS)};
        quiet = held.handed.job == NULL ? quiet + 1 : 0;
        if (held.handed.job == NULL)
            continue;
        char text[512];
        held.entity = entity_of(&held.handed);
        sum_up(&held.handed, "", text);
        assert_int_equal(finish_call(l->fixture, &held.handed, text, true), ERR_OK);
        note_applied(l, &held);
        json_decref(held.handed.job);
    }
    for (size_t i = 0; i < ENTITIES; i++)
        assert_int_equal(l->entities[i].applied_seq, l->entities[i].last_seq);
    for (int i = 0; i < l->timers_set; i++)
        assert_true(l->timer_gone[i]);
    assert_int_equal(in_file(l->fixture, "SELECT count(*) FROM inbox"), 0);
    assert_int_equal(in_file(l->fixture, "SELECT count(*) FROM entity_timers"), 0);
    assert_int_equal(in_file(l->fixture, "SELECT count(*) FROM timers"), 0);
}

static void entities_lose_nothing_and_repeat_nothing(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct life *l = calloc(1, sizeof(*l));
        assert_non_null(l);
        *l = (struct life){.fixture = *state, .random = seed * 0x9E3779B97F4A7C15u};
        print_message("seed %llu\n", (unsigned long long)seed);
        count_with(l->fixture, ",'rollover_events':7,'keep_generations':1,'max_batch':3,"
                               "'retry':{'backoff_ms':200,'max_backoff_ms':1000}");
        for (int i = 0; i < ENTITIES; i++)
            (void)snprintf(l->entities[i].id, sizeof(l->entities[i].id), "e%d", i);
        for (int i = 0; i < STEPS; i++)
            step(l);
        finish_all(l);
        free(l);
        void *fixture = *state;
        (void)fixture_teardown(&fixture);
        (void)fixture_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {fixture_test(entities_lose_nothing_and_repeat_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
