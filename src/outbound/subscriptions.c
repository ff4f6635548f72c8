/* Who listens to events, and what each is told. */
#include "outbound/subscriptions.h"

#include "base/limits.h"
#include "domain/type_pattern.h"

enum { SLOTS = 4096 };

struct channel {
    struct subscriptions *all;
    struct channel *prev, *next; /* in its slot */
    struct channel *paced_next;
    enum stream_scope about;
    int64_t number; /* of the run, the entity or the tenant; 0: a tenant that is not stored yet */
    struct uuid owner_id;
    char tenant[TENANT_ID_MAX + 2];
    struct subscriber *first;
    int64_t count;

    /* The window: always at least one, so that there is a place to be at. */
    struct stream_event *oldest, *newest;
    size_t bytes;
    bool over;
    bool failed;

    struct stream_read read;
    struct op op;
    struct read_stream_input input;
    struct stream_position through; /* read up to here */
    bool reading;
    bool news;         /* commits have added to it since the read began */
    int64_t news_from; /* the lowest row of the feed that did; 0: not known */
    bool caught_up;    /* the last read came to the end */
    bool noted;        /* in the list of channels that this round has brought news for */
    struct channel *noted_next;
    bool paced; /* waits for next_at_ms */
    int64_t next_at_ms;
};

struct subscriptions {
    const struct env *env;
    struct subscriptions_hooks hooks;
    atomic_int count;
    struct channel *slots[SLOTS];
    struct channel *paced;
    struct subscriber *waiting_first, *waiting_last; /* for their turn to read */
    size_t reading;
    uint64_t commits_seen; /* rounds of commits told of so far */
    struct channel *noted; /* with news of this round */
    /* Every row of the feed above `announced_after` up to `announced` was announced, each one to
     * the channels of its tenant. */
    int64_t announced_after, announced;
};

struct subscriptions *subscriptions_new(const struct env *env,
                                        const struct subscriptions_hooks *hooks)
{
    struct subscriptions *ls = calloc(1, sizeof(*ls));
    if (ls == NULL)
        return NULL;
    ls->env = env;
    ls->hooks = *hooks;
    return ls;
}

void subscriptions_free(struct subscriptions *ls)
{
    assert(ls == NULL || (atomic_load(&ls->count) == 0 && ls->reading == 0));
    free(ls);
}

const atomic_int *subscriptions_count(const struct subscriptions *ls)
{
    return &ls->count;
}

static const struct use_case *use_case_of(enum stream_scope about)
{
    switch (about) {
    case STREAM_RUN:
        return &UC_READ_RUN_TOLD;
    case STREAM_ENTITY:
        return &UC_READ_ENTITY_TOLD;
    case STREAM_TENANT:
        break;
    }
    return &UC_READ_TENANT_TOLD;
}

/* --- channels --- */

static struct channel **slot_of(struct subscriptions *ls, bool of_tenant, int64_t number)
{
    return &ls->slots[((uint64_t)number * 2 + of_tenant) % SLOTS];
}

static bool is_of_tenant(const struct channel *c)
{
    return c->about == STREAM_TENANT;
}

static void channel_link(struct channel *c)
{
    struct channel **slot = slot_of(c->all, is_of_tenant(c), c->number);
    c->prev = NULL;
    c->next = *slot;
    if (*slot != NULL)
        (*slot)->prev = c;
    *slot = c;
}

static void channel_unlink(struct channel *c)
{
    *(c->prev != NULL ? &c->prev->next : slot_of(c->all, is_of_tenant(c), c->number)) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
}

static void unpace(struct channel *c)
{
    struct channel **at = &c->all->paced;
    while (c->paced && *at != c)
        at = &(*at)->paced_next;
    if (c->paced)
        *at = c->paced_next;
    c->paced = false;
}

static void window_drop_oldest(struct channel *c)
{
    struct stream_event *old = c->oldest;
    c->oldest = old->next;
    c->bytes -= old->text.len;
    old->kept = false;
    stream_event_release(old);
}

/* Nobody follows it, and it is not reading. */
static void channel_free(struct channel *c)
{
    assert(c->first == NULL && !c->reading);
    channel_unlink(c);
    unpace(c);
    while (c->oldest != NULL)
        window_drop_oldest(c);
    op_release(&c->op);
    free(c);
}

static void channel_read_done(struct op *op);

/* Other tenants' rows are skipped unread, but only where it is certain that they are others': when
 * all rows behind the last read were announced, and those before `news_from` not to this channel.
 * Whatever is not certain is read. */
static bool may_skip(const struct channel *c)
{
    return is_of_tenant(c) && c->caught_up && c->news && c->news_from > c->through.num &&
           c->through.num >= c->all->announced_after;
}

static void channel_read(struct channel *c)
{
    c->reading = true;
    if (may_skip(c))
        c->through = (struct stream_position){c->news_from - 1, INT64_MAX};
    c->news = false;
    c->news_from = 0;
    c->read = (struct stream_read){.from = c->through};
    op_clear_result(&c->op);
    c->all->hooks.read(c->all->hooks.ctx, &c->op);
}

/* Reads now, or in a moment when many listen: telling them costs the loop time for each. */
static void channel_go_on(struct channel *c)
{
    if (c->reading || c->paced || c->failed || c->over)
        return;
    if (env_mono_ms(c->all->env) >= c->next_at_ms) {
        channel_read(c);
        return;
    }
    c->paced = true;
    c->paced_next = c->all->paced;
    c->all->paced = c;
}

/* It reads once the whole round is noted: until then `news_from` may become lower. */
static void channel_note(struct channel *c, int64_t feed)
{
    c->news_from = c->news ? MIN(c->news_from, feed) : feed;
    c->news = true;
    if (c->noted)
        return;
    c->noted = true;
    c->noted_next = c->all->noted;
    c->all->noted = c;
}

/* The number of a tenant is known once it has been stored. */
static void channel_learn_number(struct channel *c)
{
    if (!is_of_tenant(c) || c->number == c->op.tenant_num || c->op.tenant_num == 0)
        return;
    channel_unlink(c);
    c->number = c->op.tenant_num;
    channel_link(c);
}

static void window_take(struct channel *c, struct stream_event *first)
{
    while (first != NULL) {
        struct stream_event *event = first;
        first = event->next;
        event->next = NULL;
        event->kept = true;
        c->bytes += event->text.len;
        c->newest->next = event;
        c->newest = event;
    }
    while (c->bytes > STREAM_WINDOW_BYTES && c->oldest != c->newest)
        window_drop_oldest(c);
}

static void channel_read_done(struct op *op)
{
    struct channel *c = op->owner;
    c->reading = false;
    if (c->first == NULL) {
        stream_events_release(c->read.first);
        channel_free(c);
        return;
    }
    bool changed = op->err != ERR_OK || c->read.first != NULL || c->read.over;
    c->failed = op->err != ERR_OK;
    if (!c->failed) {
        channel_learn_number(c);
        window_take(c, c->read.first);
        c->through = c->read.through;
        c->caught_up = !c->read.more;
        c->over = c->read.over;
    }
    if (changed)
        c->next_at_ms = env_mono_ms(c->all->env) + c->count / STREAM_LISTENERS_PER_MS;
    for (struct subscriber *l = c->first; l != NULL && changed; l = l->next)
        l->on_event(l);
    if (c->news || c->read.more)
        channel_go_on(c);
}

static bool is_about(const struct channel *c, const struct subscriber *l)
{
    return c->about == l->about && str_is(l->caller.tenant, c->tenant) &&
           (is_of_tenant(c) || uuid_eq(c->owner_id, l->owner_id));
}

static int64_t number_of(const struct subscriber *l)
{
    return l->about == STREAM_TENANT ? l->op.tenant_num : uuid_time(l->owner_id);
}

static struct channel *channel_new(struct subscriber *l)
{
    struct channel *c = calloc(1, sizeof(*c));
    struct stream_event *start = stream_event_new(l->place, STR_NONE, STR_NONE);
    if (c == NULL || start == NULL) {
        free(c);
        stream_event_release(start);
        return NULL;
    }
    start->kept = true;
    c->all = l->all;
    c->about = l->about;
    c->number = number_of(l);
    c->owner_id = l->owner_id;
    c->oldest = c->newest = start;
    c->through = l->place;
    c->caught_up = true;
    assert(l->caller.tenant.len < sizeof(c->tenant));
    memcpy(c->tenant, l->caller.tenant.ptr, l->caller.tenant.len);
    op_init(&c->op, use_case_of(c->about));
    c->op.caller.tenant = str_of(c->tenant);
    c->op.caller.creates_tenant = l->caller.creates_tenant;
    c->input = (struct read_stream_input){.owner_id = c->owner_id, .read = &c->read};
    c->op.input = &c->input;
    c->op.owner = c;
    c->op.done = channel_read_done;
    channel_link(c);
    /* What came while the subscriber read may be behind what it has read. */
    c->news = l->all->commits_seen != l->commits_seen;
    return c;
}

static struct channel *channel_for(struct subscriber *l)
{
    struct channel *c = *slot_of(l->all, l->about == STREAM_TENANT, number_of(l));
    while (c != NULL && (!is_about(c, l) || c->failed || c->over))
        c = c->next;
    return c != NULL ? c : channel_new(l);
}

/* --- one subscriber --- */

static void wait_for_turn(struct subscriber *l)
{
    struct subscriptions *ls = l->all;
    l->waiting = true;
    l->prev = ls->waiting_last;
    l->next = NULL;
    *(ls->waiting_last != NULL ? &ls->waiting_last->next : &ls->waiting_first) = l;
    ls->waiting_last = l;
}

static void stop_waiting(struct subscriber *l)
{
    struct subscriptions *ls = l->all;
    *(l->prev != NULL ? &l->prev->next : &ls->waiting_first) = l->next;
    *(l->next != NULL ? &l->next->prev : &ls->waiting_last) = l->prev;
    l->prev = l->next = NULL;
    l->waiting = false;
}

static void next_readers(struct subscriptions *ls)
{
    while (ls->reading < STREAM_READS_MAX && ls->waiting_first != NULL) {
        struct subscriber *l = ls->waiting_first;
        stop_waiting(l);
        l->reading = true;
        l->commits_seen = ls->commits_seen;
        ls->reading++;
        op_clear_result(&l->op);
        ls->hooks.read(ls->hooks.ctx, &l->op);
    }
}

static void leave_channel(struct subscriber *l)
{
    struct channel *c = l->channel;
    *(l->prev != NULL ? &l->prev->next : &c->first) = l->next;
    if (l->next != NULL)
        l->next->prev = l->prev;
    l->prev = l->next = NULL;
    l->channel = NULL;
    c->count--;
    stream_event_release(l->current);
    l->current = NULL;
    if (c->first == NULL && !c->reading)
        channel_free(c);
}

static void read_on(struct subscriber *l)
{
    l->state = SUBSCRIBER_BEHIND;
    l->read = (struct stream_read){.from = l->place};
    wait_for_turn(l);
    next_readers(l->all);
}

/* It has read all that was there: from here on the channel reads for it, unless that is further
 * than its window reaches back. */
static void follow(struct subscriber *l)
{
    struct channel *c = channel_for(l);
    if (c == NULL) {
        l->failed = true;
        return;
    }
    if (stream_position_cmp(c->oldest->at, l->place) > 0) {
        read_on(l);
        return;
    }
    struct stream_event *at = c->oldest;
    while (at->next != NULL && stream_position_cmp(at->next->at, l->place) <= 0)
        at = at->next;
    stream_event_release(l->current);
    l->current = at;
    at->holders++;
    l->state = SUBSCRIBER_FOLLOWING;
    l->channel = c;
    l->prev = NULL;
    l->next = c->first;
    if (c->first != NULL)
        c->first->prev = l;
    c->first = l;
    c->count++;
    if (c->news)
        channel_go_on(c);
}

static void gone_for_good(struct subscriber *l)
{
    stream_events_release(l->own);
    stream_event_release(l->current);
    l->own = l->current = NULL;
    op_release(&l->op);
    l->on_closed(l);
}

static void own_read_done(struct op *op)
{
    struct subscriber *l = op->owner;
    struct subscriptions *ls = l->all;
    l->reading = false;
    ls->reading--;
    if (l->closed) {
        stream_events_release(l->read.first);
        gone_for_good(l);
        next_readers(ls);
        return;
    }
    if (op->err == ERR_OK) {
        l->state = SUBSCRIBER_BEHIND;
        l->own = l->read.first;
        l->place = l->read.through;
        l->owner_id = l->input.owner_id = l->read.owner_id;
    }
    l->failed = op->err != ERR_OK;
    l->on_event(l);
    next_readers(ls);
}

void subscriptions_add(struct subscriptions *ls, struct subscriber *l)
{
    atomic_fetch_add(&ls->count, 1);
    l->all = ls;
    l->state = SUBSCRIBER_OPENING;
    op_init(&l->op, use_case_of(l->about));
    l->op.caller = l->caller;
    l->input = (struct read_stream_input){l->owner_id, l->entity_type, l->entity_id, &l->read};
    l->op.input = &l->input;
    l->op.owner = l;
    l->op.done = own_read_done;
    wait_for_turn(l);
    next_readers(ls);
}

void subscriptions_remove(struct subscriptions *ls, struct subscriber *l)
{
    assert(!l->closed);
    l->closed = true;
    atomic_fetch_sub(&ls->count, 1);
    if (l->waiting)
        stop_waiting(l);
    if (l->channel != NULL)
        leave_channel(l);
    if (!l->reading)
        gone_for_good(l);
}

/* --- what it says --- */

static bool wants(const struct subscriber *l, const struct stream_event *event)
{
    return event->for_all || l->types.len == 0 || type_list_fits(l->types, event->type);
}

/* The next of what it has read by itself; false when that is all said. */
static bool say_own(struct subscriber *l, struct str *ret)
{
    while (l->own != NULL) {
        stream_event_release(l->current);
        l->current = l->own;
        l->own = l->own->next;
        if (wants(l, l->current)) {
            *ret = l->current->text;
            return true;
        }
    }
    return false;
}

/* The next in the window; false when there is none. */
static bool say_next(struct subscriber *l, struct str *ret)
{
    while (l->current->kept && l->current->next != NULL) {
        struct stream_event *event = l->current->next;
        event->holders++;
        stream_event_release(l->current);
        l->current = event;
        if (stream_position_cmp(event->at, l->place) > 0 && wants(l, event)) {
            *ret = event->text;
            return true;
        }
    }
    return false;
}

enum subscriber_next_result subscriber_next(struct subscriber *l, struct str *ret)
{
    if (l->state == SUBSCRIBER_FOLLOWING) {
        if (say_next(l, ret))
            return SUBSCRIBER_EVENT;
        if (l->current->kept)
            return l->channel->over || l->channel->failed ? SUBSCRIBER_ENDED : SUBSCRIBER_LATER;
        if (stream_position_cmp(l->current->at, l->place) > 0)
            l->place = l->current->at;
        leave_channel(l); /* the window has moved on */
        read_on(l);
        return SUBSCRIBER_LATER;
    }
    if (say_own(l, ret))
        return SUBSCRIBER_EVENT;
    if (l->failed)
        return SUBSCRIBER_ENDED;
    if (l->reading || l->waiting)
        return SUBSCRIBER_LATER;
    if (l->read.over)
        return SUBSCRIBER_ENDED;
    if (l->read.more) {
        read_on(l);
        return SUBSCRIBER_LATER;
    }
    follow(l);
    if (l->failed)
        return SUBSCRIBER_ENDED;
    return l->state == SUBSCRIBER_FOLLOWING ? subscriber_next(l, ret) : SUBSCRIBER_LATER;
}

/* --- news --- */

static void note_slot(struct subscriptions *ls, bool of_tenant, int64_t number, int64_t feed)
{
    for (struct channel *c = *slot_of(ls, of_tenant, number); c != NULL; c = c->next) {
        if (is_of_tenant(c) == of_tenant && c->number == number)
            channel_note(c, feed);
    }
}

static void read_noted(struct subscriptions *ls)
{
    while (ls->noted != NULL) {
        struct channel *c = ls->noted;
        ls->noted = c->noted_next;
        c->noted = false;
        channel_go_on(c);
    }
}

/* Numbers in the feed have no gaps and come once: as many rows as there are numbers from the lowest
 * to the highest are all of them. A round that is not complete, or does not join the one before,
 * leaves rows behind it that nobody may skip. */
static void note_range(struct subscriptions *ls, int64_t lowest, int64_t highest, int64_t count)
{
    bool complete = highest - lowest + 1 == count;
    if (!complete)
        ls->announced_after = highest;
    else if (lowest != ls->announced + 1)
        ls->announced_after = lowest - 1;
    ls->announced = highest;
}

void subscriptions_committed(struct subscriptions *ls, const struct wake *wakes)
{
    int64_t lowest = INT64_MAX;
    int64_t highest = 0;
    int64_t count = 0;
    for (const struct wake *w = wakes; w != NULL; w = w->next) {
        if (!w->told)
            continue;
        note_slot(ls, false, w->run, 0);
        note_slot(ls, true, w->tenant, w->feed);
        note_slot(ls, true, 0, 0); /* tenants whose number is not known yet */
        lowest = MIN(lowest, w->feed);
        highest = MAX(highest, w->feed);
        count++;
    }
    if (count == 0)
        return;
    ls->commits_seen++;
    note_range(ls, lowest, highest, count);
    read_noted(ls);
}

void subscriptions_commits_lost(struct subscriptions *ls)
{
    ls->commits_seen++;
    for (size_t i = 0; i < SLOTS; i++) {
        for (struct channel *c = ls->slots[i]; c != NULL; c = c->next)
            channel_note(c, 0);
    }
    read_noted(ls);
}

void subscriptions_tick(struct subscriptions *ls, int64_t mono_ms)
{
    struct channel *next;
    for (struct channel *c = ls->paced; c != NULL; c = next) {
        next = c->paced_next;
        if (mono_ms >= c->next_at_ms) {
            unpace(c);
            channel_read(c);
        }
    }
}

int subscriptions_timeout_ms(const struct subscriptions *ls, int64_t mono_ms)
{
    int64_t soonest = -1;
    for (const struct channel *c = ls->paced; c != NULL; c = c->paced_next) {
        int64_t left = MAX(c->next_at_ms - mono_ms, (int64_t)0);
        soonest = soonest < 0 ? left : MIN(soonest, left);
    }
    return (int)soonest;
}
