/* The relay: publishes every event of the feed to the bus. */
#include "outbound/relay.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/usecase/outbox.h"
#include "domain/retry/backoff.h"
#include "outbound/relay_window.h"
#include "store/outbox/feed.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum {
    IDLE_MS = 1000, /* how often it looks without being woken: at parked messages that somebody
                       wants retried, and whether the bus is there */
    RETRY_MS = 1000,
};

struct relay {
    struct relay_config config;
    pthread_t thread;
    bool thread_runs;

    /* For the relay's thread only. */
    struct db *db;
    struct read_tx tx;
    struct relay_window window;
    int64_t failures; /* in a row */
    int64_t delay_ms; /* the last one */
    bool note_failed; /* there was no memory to note a message of the last batch */

    atomic_bool wanted; /* the feed has grown since the thread last looked */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t woken;
    bool stopping;
    bool ended;      /* the thread */
    int64_t through; /* to be marked */
    struct relay_note *notes, **notes_last;
    size_t note_count;
    int64_t oldest_at; /* -1: nothing waits */

    /* For the loop's thread only. */
    struct op mark;
    struct mark_relayed_input mark_input;
    struct relay_note *marking_notes;
    bool marking;
    bool mark_failed; /* while draining: the next start sends again what was not marked */
    bool draining;
    int64_t marked;
    int64_t mark_at_ms;
};

/* --- the thread: reading --- */

/* Parked messages are read only while no note is on its way to the writer: their rows are up to
 * date then. */
static bool may_read_parked(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    bool quiet = r->note_count == 0;
    pthread_mutex_unlock(&r->lock);
    return quiet;
}

static enum err read_on(struct relay *r)
{
    bool parked = may_read_parked(r);
    enum err e = db_snapshot_begin(r->db, READ_MS_MAX);
    if (e != ERR_OK)
        return e;
    read_tx_start(&r->tx, env_now_ms(r->config.env));
    if (r->window.count < RELAY_WINDOW_MESSAGES / 2)
        e = relay_window_fill(&r->window, &r->tx);
    if (e == ERR_OK && parked)
        e = relay_window_fill_parked(&r->window, &r->tx);
    db_snapshot_end(r->db);
    read_tx_clear(&r->tx);
    if (r->window.missing > 0)
        LOG(LOG_WARN, "events were removed before they were published",
            LOG_N("events", r->window.missing));
    atomic_fetch_sub(r->config.unpublished_events, r->window.missing + r->window.passed);
    r->window.missing = r->window.passed = 0;
    if (e == ERR_OK && !r->config.wait_durable(r->config.ctx))
        e = ERR_STORE_FAILED;
    return e;
}

/* --- the thread: results --- */

/* Notes for the writer that the message was parked, or stored after it had been parked. False when
 * memory ran out: then the message is not done, and is sent again under its id. */
static bool note(struct relay *r, const struct relay_message *m, bool stored, const char *why)
{
    struct relay_note *n = calloc(1, sizeof(*n));
    if (n == NULL)
        return false;
    memcpy(n->id, m->id, sizeof(n->id));
    memcpy(n->type, m->type, sizeof(n->type));
    (void)snprintf(n->reason, sizeof(n->reason), "%s", why);
    n->stored = stored;
    n->parked = (struct parked){
        .feed = m->feed,
        .seq = m->seq,
        .offer = m->offer,
        .message_id = str_of(n->id),
        .tenant = m->tenant,
        .owner = m->run,
        .type = str_of(n->type),
        .reason = str_of(n->reason),
        .attempts = MAX(m->attempts, (int64_t)1),
        .at = env_now_ms(r->config.env),
    };
    pthread_mutex_lock(&r->lock);
    *r->notes_last = n;
    r->notes_last = &n->next;
    r->note_count++;
    pthread_mutex_unlock(&r->lock);
    return true;
}

static void end_message(struct relay *r, struct relay_message *m, bool stored, const char *why)
{
    if ((!stored || m->parked) && !note(r, m, stored, why)) {
        r->note_failed = true;
        return;
    }
    if (!stored)
        LOG(LOG_ERROR, "the bus refused a message; it is parked", LOG_Z("id", m->id),
            LOG_Z("why", why));
    m->done = true;
    if (!m->offer && !m->parked)
        atomic_fetch_sub(r->config.unpublished_events, 1);
}

/* `flowing`: the bus answered for another message of the batch, so it is not away. */
static void settle(struct relay *r, struct relay_message *m, const struct bus_message *sent,
                   bool flowing)
{
    switch (sent->result) {
    case BUS_STORED:
        end_message(r, m, true, "");
        return;
    case BUS_REFUSED:
        m->attempts++;
        end_message(r, m, false, sent->why);
        return;
    case BUS_UNKNOWN:
        m->attempts += flowing;
        if (m->attempts >= RELAY_ATTEMPTS_MAX)
            end_message(r, m, false, sent->why);
        return;
    }
    assert(!"unknown result");
}

/* Settles what needs no bus: events that cannot be published, and parked messages whose event no
 * longer exists. */
static void settle_at_once(struct relay *r)
{
    for (struct relay_message *m = r->window.first; m != NULL; m = m->next) {
        if (m->done && m->parked)
            (void)note(r, m, true, ""); /* if that fails, the parked row is read again later */
        else if (!m->done && m->unpublishable)
            end_message(r, m, false, "the event's row is damaged");
    }
    relay_window_clean(&r->window);
}

/* Reports to the loop how far the relay has come. */
static void report(struct relay *r)
{
    uint64_t one = 1;
    pthread_mutex_lock(&r->lock);
    int64_t through = relay_window_done_through(&r->window);
    bool changed = through != r->through || r->note_count > 0;
    r->through = through;
    r->oldest_at = relay_window_oldest(&r->window);
    pthread_mutex_unlock(&r->lock);
    if (!changed)
        return;
    ssize_t n = write(r->config.event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN);
}

/* --- the thread: sending --- */

/* Sends one batch. False when the bus answered for none of it. */
static bool send_batch(struct relay *r)
{
    struct relay_message *each[RELAY_BATCH_MAX];
    static_assert(RELAY_BATCH_MAX <= RELAY_WINDOW_MESSAGES, "a batch is a part of the window");
    size_t count = relay_window_batch(&r->window, each, RELAY_BATCH_MAX);
    struct bus_message *messages = calloc(count + 1, sizeof(*messages));
    if (messages == NULL)
        return false;
    r->note_failed = false;
    for (size_t i = 0; i < count; i++)
        messages[i] = (struct bus_message){str_of(each[i]->id), each[i]->subject, each[i]->body,
                                           BUS_UNKNOWN, ""};
    r->config.bus->publish(r->config.bus, messages, count);
    bool flowing = false;
    for (size_t i = 0; i < count; i++)
        flowing |= messages[i].result != BUS_UNKNOWN;
    for (size_t i = 0; i < count; i++)
        settle(r, each[i], &messages[i], flowing);
    free(messages);
    relay_window_clean(&r->window);
    return flowing && !r->note_failed;
}

/* Reads and sends once. True when there may be more to do at once. */
static bool turn(struct relay *r)
{
    enum err e = read_on(r);
    if (e != ERR_OK) {
        LOG(LOG_WARN, "the relay could not read the feed; it tries again",
            LOG_Z("error", err_code(e)));
        r->failures++;
        return false;
    }
    settle_at_once(r);
    report(r);
    bool connected = r->config.bus->connect(r->config.bus);
    if (r->window.count == 0) {
        r->failures = connected ? 0 : r->failures + 1;
        return false;
    }
    bool flowing = connected && send_batch(r);
    report(r);
    r->failures = flowing ? 0 : r->failures + 1;
    return flowing;
}

/* How long to wait unless woken; after failures longer and longer, with jitter. */
static int64_t rest_ms(struct relay *r)
{
    if (r->failures == 0)
        return IDLE_MS;
    static const struct backoff BACKOFF = {BACKOFF_EQUAL_JITTER, RELAY_BACKOFF_MS,
                                           RELAY_BACKOFF_MS_MAX};
    uint64_t seed;
    env_random(r->config.env, &seed, sizeof(seed));
    r->delay_ms = backoff_delay_ms(&BACKOFF, r->failures, r->delay_ms, seed);
    return r->delay_ms;
}

/* The lock is held. */
static void wait_until(struct relay *r, int64_t ms)
{
    struct timespec until = env_wait_until(ms);
    bool failing = r->failures > 0; /* then new events are no reason to try sooner */
    while (!r->stopping && (failing || !atomic_load(&r->wanted))) {
        if (pthread_cond_timedwait(&r->woken, &r->lock, &until) == ETIMEDOUT)
            break;
    }
    atomic_store(&r->wanted, false);
}

static void *relay_main(void *ctx)
{
    struct relay *r = ctx;
    bool more = true;
    for (;;) {
        int64_t ms = more ? RELAY_MARK_MS : rest_ms(r);
        pthread_mutex_lock(&r->lock);
        if (!more || r->note_count >= RELAY_NOTES_MAX)
            wait_until(r, ms);
        bool stopping = r->stopping;
        pthread_mutex_unlock(&r->lock);
        if (stopping)
            break;
        more = turn(r);
    }
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    pthread_mutex_unlock(&r->lock);
    uint64_t one = 1;
    ssize_t n = write(r->config.event_fd, &one, sizeof(one));
    assert(n == sizeof(one) || errno == EAGAIN);
    return NULL;
}

/* --- the loop --- */

static void free_notes(struct relay_note *n)
{
    while (n != NULL) {
        struct relay_note *next = n->next;
        free(n);
        n = next;
    }
}

static void marked(struct op *op)
{
    struct relay *r = op->owner;
    r->marking = false;
    if (op->err == ERR_OK) {
        size_t count = 0;
        for (const struct relay_note *n = r->marking_notes; n != NULL; n = n->next)
            count++;
        free_notes(r->marking_notes);
        r->marking_notes = NULL;
        r->marked = r->mark_input.through;
        pthread_mutex_lock(&r->lock);
        r->note_count -= count;
        pthread_mutex_unlock(&r->lock);
    } else {
        LOG(LOG_WARN, "the mark of the bus could not be stored; it is tried again",
            LOG_Z("why", op->problem.detail));
        r->mark_at_ms = env_mono_ms(r->config.env) + RETRY_MS;
        r->mark_failed = r->draining;
    }
    op_release(op);
}

/* Takes over what the thread reported. True when there is something to store. */
static bool take_report(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    int64_t through = r->through;
    struct relay_note *notes = r->notes;
    r->notes = NULL;
    r->notes_last = &r->notes;
    pthread_mutex_unlock(&r->lock);
    struct relay_note **last = &r->marking_notes; /* some may be left from a mark that failed */
    while (*last != NULL)
        last = &(*last)->next;
    *last = notes;
    r->mark_input = (struct mark_relayed_input){through, r->marking_notes};
    return through > r->marked || r->marking_notes != NULL;
}

static void submit_mark(struct relay *r, int64_t mono_ms)
{
    r->mark_at_ms = mono_ms + RELAY_MARK_MS;
    r->marking = true;
    op_init(&r->mark, &UC_MARK_RELAYED);
    r->mark.input = &r->mark_input;
    r->mark.owner = r;
    r->mark.done = marked;
    r->config.submit(r->config.ctx, &r->mark);
}

void relay_wake(struct relay *r)
{
    if (r == NULL || atomic_exchange(&r->wanted, true))
        return; /* it has been woken already, and has not looked yet */
    pthread_mutex_lock(&r->lock);
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
}

void relay_tick(struct relay *r, int64_t mono_ms)
{
    if (r == NULL)
        return;
    if (!r->marking && !r->mark_failed && (mono_ms >= r->mark_at_ms || r->draining) &&
        take_report(r))
        submit_mark(r, mono_ms);
}

static bool has_report(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    bool reported = r->through > r->marked || r->note_count > 0;
    pthread_mutex_unlock(&r->lock);
    return reported;
}

int relay_timeout_ms(struct relay *r, int64_t mono_ms)
{
    if (r == NULL || r->marking || !has_report(r))
        return -1;
    return (int)MAX(r->mark_at_ms - mono_ms, (int64_t)0);
}

void relay_drain(struct relay *r)
{
    if (r == NULL)
        return;
    r->draining = true;
    r->config.bus->interrupt(r->config.bus);
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
}

bool relay_idle(struct relay *r)
{
    if (r == NULL)
        return true;
    pthread_mutex_lock(&r->lock);
    bool ended = r->ended;
    pthread_mutex_unlock(&r->lock);
    return ended && !r->marking && (r->mark_failed || !has_report(r));
}

void relay_figures(struct relay *r, struct relay_figures *ret)
{
    pthread_mutex_lock(&r->lock);
    int64_t oldest = r->oldest_at;
    pthread_mutex_unlock(&r->lock);
    ret->depth = MAX(atomic_load(r->config.unpublished_events), 0);
    ret->lag_ms = oldest >= 0 ? MAX(env_now_ms(r->config.env) - oldest, (int64_t)0) : 0;
    r->config.bus->state(r->config.bus, &ret->bus);
}

/* --- life --- */

static enum err read_mark(struct relay *r, int64_t *ret)
{
    bool found = false;
    enum err e = db_snapshot_begin(r->db, READ_MS_MAX);
    if (e != ERR_OK)
        return e;
    e = feed_mark_get(r->db, FEED_MARK_BUS, &found, ret);
    db_snapshot_end(r->db);
    return e;
}

static enum err begin(struct relay *r, struct problem *p)
{
    struct db_config config = {
        .url = r->config.store_url, .access = DB_READER, .env = r->config.env};
    int64_t mark = 0;
    enum err e = db_open(&config, p, &r->db);
    if (e == ERR_OK)
        e = read_tx_init(&r->tx, r->db);
    if (e == ERR_OK)
        e = read_mark(r, &mark);
    if (e != ERR_OK)
        return problem_set(p, e, "The relay cannot read the feed");
    r->marked = r->through = mark;
    relay_window_init(&r->window, mark, &r->config.queues);
    if (pthread_create(&r->thread, NULL, relay_main, r) != 0)
        return problem_set(p, ERR_NO_MEMORY, "Cannot start the relay");
    r->thread_runs = true;
    return ERR_OK;
}

enum err relay_count_unpublished(struct db *db, int64_t *ret)
{
    bool found = false;
    int64_t mark = 0;
    enum err e = feed_mark_get(db, FEED_MARK_BUS, &found, &mark);
    return e == ERR_OK ? feed_count_events(db, mark, ret) : e;
}

enum err relay_start(const struct relay_config *config, struct problem *p, struct relay **ret)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the relay");
    pthread_condattr_t attr;
    r->config = *config;
    r->notes_last = &r->notes;
    r->oldest_at = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->woken, &attr);
    pthread_condattr_destroy(&attr);
    enum err e = begin(r, p);
    if (e != ERR_OK) {
        relay_free(r);
        return e;
    }
    *ret = r;
    return ERR_OK;
}

void relay_free(struct relay *r)
{
    if (r == NULL)
        return;
    relay_drain(r);
    if (r->thread_runs)
        pthread_join(r->thread, NULL);
    free_notes(r->notes);
    free_notes(r->marking_notes);
    if (r->window.last != NULL)
        relay_window_release(&r->window);
    read_tx_release(&r->tx);
    db_close(r->db);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->woken);
    free(r);
}
