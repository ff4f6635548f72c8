/* A bus of the tests' own: keeps what it is sent, and does with each message what the test says. */
#ifndef PAWL_TESTS_ENGINE_FAKE_BUS_H
#define PAWL_TESTS_ENGINE_FAKE_BUS_H

#include "engine/fixture.h"

#include "bus/bus.h"

#include <pthread.h>

enum { FAKE_MESSAGES_MAX = 8192, FAKE_ID_MAX = 80 };

struct fake_message {
    char id[FAKE_ID_MAX];
    char subject[200];
    enum bus_result result;
    int batch;
};

struct fake_bus {
    struct bus bus;
    pthread_mutex_t lock; /* guards all below */
    bool away;
    int batches;
    struct fake_message sent[FAKE_MESSAGES_MAX]; /* every time that one was sent */
    size_t count;
    char odd[FAKE_ID_MAX]; /* a message that is treated otherwise; "": none */
    enum bus_result odd_result;
    int odd_times; /* so often, then it is stored; -1: always */
    bool deaf;     /* nothing is acknowledged */
};

static inline struct fake_bus *fake_of(struct bus *bus)
{
    return CONTAINER_OF(bus, struct fake_bus, bus);
}

static inline bool fake_connect(struct bus *bus)
{
    struct fake_bus *f = fake_of(bus);
    pthread_mutex_lock(&f->lock);
    bool there = !f->away;
    pthread_mutex_unlock(&f->lock);
    return there;
}

static inline enum bus_result fake_result(struct fake_bus *f, struct str id)
{
    if (f->deaf)
        return BUS_UNKNOWN;
    if (!str_is(id, f->odd) || f->odd_times == 0)
        return BUS_STORED;
    f->odd_times -= f->odd_times > 0;
    return f->odd_result;
}

/* An object in which no member is repeated. */
static inline void assert_json(struct str body)
{
    json_t *json = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(json))
        fail_msg("not a message: %.*s", STR_ARG(body));
    json_decref(json);
}

static inline void fake_publish(struct bus *bus, struct bus_message *messages, size_t count)
{
    struct fake_bus *f = fake_of(bus);
    pthread_mutex_lock(&f->lock);
    f->batches++;
    for (size_t i = 0; i < count; i++) {
        assert_true(f->count < FAKE_MESSAGES_MAX);
        assert_json(messages[i].body);
        struct fake_message *m = &f->sent[f->count++];
        (void)snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(messages[i].id));
        (void)snprintf(m->subject, sizeof(m->subject), "%.*s", STR_ARG(messages[i].subject));
        m->batch = f->batches;
        m->result = messages[i].result = fake_result(f, messages[i].id);
        (void)snprintf(messages[i].why, BUS_WHY_MAX, "%s", m->result == BUS_STORED ? "" : "odd");
    }
    pthread_mutex_unlock(&f->lock);
}

static inline void fake_state(struct bus *bus, struct bus_state *ret)
{
    *ret = (struct bus_state){.ok = fake_connect(bus)};
}

static inline void fake_interrupt(struct bus *bus)
{
    (void)bus;
}

static inline void fake_init(struct fake_bus *f)
{
    memset(f, 0, sizeof(*f));
    f->bus = (struct bus){"fake", fake_connect, fake_publish, fake_state, fake_interrupt, NULL};
    pthread_mutex_init(&f->lock, NULL);
}

static inline void fake_set_away(struct fake_bus *f, bool away)
{
    pthread_mutex_lock(&f->lock);
    f->away = away;
    pthread_mutex_unlock(&f->lock);
}

static inline void fake_set_deaf(struct fake_bus *f, bool deaf)
{
    pthread_mutex_lock(&f->lock);
    f->deaf = deaf;
    pthread_mutex_unlock(&f->lock);
}

static inline void fake_set_odd(struct fake_bus *f, struct uuid run, int seq,
                                enum bus_result result, int times)
{
    struct buf id;
    buf_init(&id, FAKE_ID_MAX);
    buf_put_uuid(&id, run);
    buf_printf(&id, ":%d", seq);
    pthread_mutex_lock(&f->lock);
    (void)snprintf(f->odd, sizeof(f->odd), "%s", id.ptr);
    f->odd_result = result;
    f->odd_times = times;
    pthread_mutex_unlock(&f->lock);
    buf_release(&id);
}

/* How often a message of this run and number was sent; seq 0: any. */
static inline size_t fake_count(struct fake_bus *f, struct uuid run, int seq, bool stored_only)
{
    char id[FAKE_ID_MAX];
    struct buf text;
    buf_init(&text, FAKE_ID_MAX);
    buf_put_uuid(&text, run);
    (void)snprintf(id, sizeof(id), seq > 0 ? "%s:%d" : "%s:", text.ptr, seq);
    buf_release(&text);
    size_t count = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->count; i++) {
        bool same =
            seq > 0 ? strcmp(f->sent[i].id, id) == 0 : strncmp(f->sent[i].id, id, strlen(id)) == 0;
        count += same && (!stored_only || f->sent[i].result == BUS_STORED);
    }
    pthread_mutex_unlock(&f->lock);
    return count;
}

#endif
