/* Event subscriptions. */
#include "outbound/subscriptions.h"

#include "domain/type_pattern.h"

struct subscriptions {
    atomic_int count;
    struct channels channels;
    struct subscriber *waiting_first, *waiting_last; /* for a turn to read */
    size_t reading;
};

struct subscriptions *subscriptions_new(const struct env *env, const struct stream_hooks *hooks)
{
    struct subscriptions *all = calloc(1, sizeof(*all));
    if (all == NULL)
        return NULL;
    all->channels.env = env;
    all->channels.hooks = *hooks;
    return all;
}

void subscriptions_free(struct subscriptions *all)
{
    assert(all == NULL || (atomic_load(&all->count) == 0 && all->reading == 0));
    free(all);
}

const atomic_int *subscriptions_count(const struct subscriptions *all)
{
    return &all->count;
}

/* --- reading from the store --- */

static void wait_for_turn(struct subscriber *s)
{
    struct subscriptions *all = s->all;
    s->waiting = true;
    s->prev = all->waiting_last;
    s->next = NULL;
    *(all->waiting_last != NULL ? &all->waiting_last->next : &all->waiting_first) = s;
    all->waiting_last = s;
}

static void stop_waiting(struct subscriber *s)
{
    struct subscriptions *all = s->all;
    *(s->prev != NULL ? &s->prev->next : &all->waiting_first) = s->next;
    *(s->next != NULL ? &s->next->prev : &all->waiting_last) = s->prev;
    s->prev = s->next = NULL;
    s->waiting = false;
}

/* No more than STREAM_READS_MAX read at the same time. */
static void start_reads(struct subscriptions *all)
{
    while (all->reading < STREAM_READS_MAX && all->waiting_first != NULL) {
        struct subscriber *s = all->waiting_first;
        stop_waiting(s);
        s->reading = true;
        s->commits_seen = all->channels.commits_seen;
        all->reading++;
        op_clear_result(&s->op);
        all->channels.hooks.read(all->channels.hooks.ctx, &s->op);
    }
}

static void read_on(struct subscriber *s)
{
    s->state = SUBSCRIBER_BEHIND;
    s->read = (struct stream_read){.from = s->place};
    wait_for_turn(s);
    start_reads(s->all);
}

static void close_subscriber(struct subscriber *s)
{
    stream_events_release(s->own);
    stream_event_release(s->current);
    s->own = s->current = NULL;
    op_release(&s->op);
    s->on_closed(s);
}

static void own_read_done(struct op *op)
{
    struct subscriber *s = op->owner;
    struct subscriptions *all = s->all;
    s->reading = false;
    all->reading--;
    if (s->closed) {
        stream_events_release(s->read.first);
        close_subscriber(s);
        start_reads(all);
        return;
    }
    if (op->err == ERR_OK) {
        s->state = SUBSCRIBER_BEHIND;
        s->own = s->read.first;
        s->place = s->read.through;
        s->owner_id = s->input.owner_id = s->read.owner_id;
    }
    s->failed = op->err != ERR_OK;
    s->on_event(s);
    start_reads(all);
}

/* --- following a channel --- */

static void on_news(struct channel_member *member)
{
    struct subscriber *s = CONTAINER_OF(member, struct subscriber, member);
    s->on_event(s);
}

static void leave_channel(struct subscriber *s)
{
    stream_event_release(s->current);
    s->current = NULL;
    channel_leave(&s->member);
}

static struct channel *channel_of(struct subscriber *s)
{
    struct channels *channels = &s->all->channels;
    struct channel_key key = {
        .scope = s->scope,
        .number = s->scope == STREAM_TENANT ? s->op.tenant_num : uuid_time(s->owner_id),
        .owner_id = s->owner_id,
        .tenant = s->caller.tenant,
        .creates_tenant = s->caller.creates_tenant,
    };
    /* Commits during its last read may have added events after what it read. */
    bool stale = channels->commits_seen != s->commits_seen;
    return channel_for(channels, &key, s->place, stale);
}

/* It has read all that there was: from here on the channel reads for it, unless the channel's
 * window does not reach back to its place. */
static void follow(struct subscriber *s)
{
    struct channel *c = channel_of(s);
    if (c == NULL) {
        s->failed = true;
        return;
    }
    if (stream_position_cmp(c->oldest->at, s->place) > 0) {
        read_on(s);
        return;
    }
    struct stream_event *at = c->oldest;
    while (at->next != NULL && stream_position_cmp(at->next->at, s->place) <= 0)
        at = at->next;
    stream_event_release(s->current);
    s->current = at;
    at->holders++;
    s->state = SUBSCRIBER_FOLLOWING;
    s->member.on_news = on_news;
    channel_join(c, &s->member);
}

/* --- adding and removing --- */

void subscriptions_add(struct subscriptions *all, struct subscriber *s)
{
    atomic_fetch_add(&all->count, 1);
    s->all = all;
    s->state = SUBSCRIBER_OPENING;
    op_init(&s->op, stream_use_case(s->scope));
    s->op.caller = s->caller;
    s->input = (struct read_stream_input){s->owner_id, s->entity_type, s->entity_id, &s->read};
    s->op.input = &s->input;
    s->op.owner = s;
    s->op.done = own_read_done;
    wait_for_turn(s);
    start_reads(all);
}

void subscriptions_remove(struct subscriptions *all, struct subscriber *s)
{
    assert(!s->closed);
    s->closed = true;
    atomic_fetch_sub(&all->count, 1);
    if (s->waiting)
        stop_waiting(s);
    if (s->member.channel != NULL)
        leave_channel(s);
    if (!s->reading)
        close_subscriber(s);
}

/* --- giving out events --- */

static bool wants(const struct subscriber *s, const struct stream_event *event)
{
    return event->for_all || s->types.len == 0 || type_list_fits(s->types, event->type);
}

/* The next event that it has read from the store; false: there is none left. */
static bool next_own(struct subscriber *s, struct str *ret)
{
    while (s->own != NULL) {
        stream_event_release(s->current);
        s->current = s->own;
        s->own = s->own->next;
        if (wants(s, s->current)) {
            *ret = s->current->text;
            return true;
        }
    }
    return false;
}

/* The next event in the window; false: there is none. */
static bool next_in_window(struct subscriber *s, struct str *ret)
{
    while (s->current->kept && s->current->next != NULL) {
        struct stream_event *event = s->current->next;
        event->holders++;
        stream_event_release(s->current);
        s->current = event;
        if (stream_position_cmp(event->at, s->place) > 0 && wants(s, event)) {
            *ret = event->text;
            return true;
        }
    }
    return false;
}

static enum subscriber_next_result next_following(struct subscriber *s, struct str *ret)
{
    if (next_in_window(s, ret))
        return SUBSCRIBER_EVENT;
    const struct channel *c = s->member.channel;
    if (s->current->kept)
        return c->over || c->failed ? SUBSCRIBER_ENDED : SUBSCRIBER_LATER;
    /* The window has moved on without it. */
    if (stream_position_cmp(s->current->at, s->place) > 0)
        s->place = s->current->at;
    leave_channel(s);
    read_on(s);
    return SUBSCRIBER_LATER;
}

enum subscriber_next_result subscriber_next(struct subscriber *s, struct str *ret)
{
    if (s->state == SUBSCRIBER_FOLLOWING)
        return next_following(s, ret);
    if (next_own(s, ret))
        return SUBSCRIBER_EVENT;
    if (s->failed)
        return SUBSCRIBER_ENDED;
    if (s->reading || s->waiting)
        return SUBSCRIBER_LATER;
    if (s->read.over)
        return SUBSCRIBER_ENDED;
    if (s->read.more) {
        read_on(s);
        return SUBSCRIBER_LATER;
    }
    follow(s);
    if (s->failed)
        return SUBSCRIBER_ENDED;
    return s->state == SUBSCRIBER_FOLLOWING ? next_following(s, ret) : SUBSCRIBER_LATER;
}

/* --- commits and time --- */

void subscriptions_committed(struct subscriptions *all, const struct effect *first)
{
    channels_committed(&all->channels, first);
}

void subscriptions_tick(struct subscriptions *all, int64_t mono_ms)
{
    channels_tick(&all->channels, mono_ms);
}

int subscriptions_timeout_ms(const struct subscriptions *all, int64_t mono_ms)
{
    return channels_timeout_ms(&all->channels, mono_ms);
}
