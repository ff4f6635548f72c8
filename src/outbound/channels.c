/* Channels that subscribers share. */
#include "outbound/channels.h"

const struct use_case *stream_use_case(enum stream_scope scope)
{
    switch (scope) {
    case STREAM_RUN:
        return &UC_STREAM_RUN;
    case STREAM_ENTITY:
        return &UC_STREAM_ENTITY;
    case STREAM_TENANT:
        break;
    }
    return &UC_STREAM_TENANT;
}

/* --- the table --- */

static struct channel **slot_of(struct channels *all, bool of_tenant, int64_t number)
{
    return &all->slots[((uint64_t)number * 2 + of_tenant) % CHANNEL_SLOTS];
}

static bool is_of_tenant(const struct channel *c)
{
    return c->scope == STREAM_TENANT;
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

static void undelay(struct channel *c)
{
    struct channel **at = &c->all->delayed;
    if (!c->delayed)
        return;
    while (*at != c)
        at = &(*at)->delayed_next;
    *at = c->delayed_next;
    c->delayed = false;
}

/* --- the window --- */

static void window_drop_oldest(struct channel *c)
{
    struct stream_event *old = c->oldest;
    c->oldest = old->next;
    c->bytes -= old->text.len;
    old->kept = false;
    stream_event_release(old);
}

static void window_append(struct channel *c, struct stream_event *first)
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

/* --- life --- */

static void channel_free(struct channel *c)
{
    assert(c->first == NULL && !c->reading);
    channel_unlink(c);
    undelay(c);
    while (c->oldest != NULL)
        window_drop_oldest(c);
    op_release(&c->op);
    free(c);
}

static void read_done(struct op *op);

static struct channel *channel_new(struct channels *all, const struct channel_key *key,
                                   struct stream_position place, bool stale)
{
    struct channel *c = calloc(1, sizeof(*c));
    struct stream_event *start = stream_event_new(place, STR_NONE, STR_NONE);
    if (c == NULL || start == NULL) {
        free(c);
        stream_event_release(start);
        return NULL;
    }
    start->kept = true;
    c->all = all;
    c->scope = key->scope;
    c->number = key->number;
    c->owner_id = key->owner_id;
    c->oldest = c->newest = start;
    c->through = place;
    c->caught_up = true;
    c->news = stale;
    assert(key->tenant.len < sizeof(c->tenant));
    memcpy(c->tenant, key->tenant.ptr, key->tenant.len);
    op_init(&c->op, stream_use_case(c->scope));
    c->op.caller.tenant = str_of(c->tenant);
    c->op.caller.creates_tenant = key->creates_tenant;
    c->input = (struct read_stream_input){.owner_id = c->owner_id, .read = &c->read};
    c->op.input = &c->input;
    c->op.owner = c;
    c->op.done = read_done;
    channel_link(c);
    return c;
}

static bool has_key(const struct channel *c, const struct channel_key *key)
{
    return c->scope == key->scope && str_is(key->tenant, c->tenant) &&
           (is_of_tenant(c) || uuid_eq(c->owner_id, key->owner_id));
}

struct channel *channel_for(struct channels *all, const struct channel_key *key,
                            struct stream_position place, bool stale)
{
    struct channel *c = *slot_of(all, key->scope == STREAM_TENANT, key->number);
    while (c != NULL && (!has_key(c, key) || c->failed || c->over))
        c = c->next;
    return c != NULL ? c : channel_new(all, key, place, stale);
}

/* --- reading --- */

/* Rows of other tenants are skipped unread, but only if they certainly are others': when all rows
 * after the last read were reported, and none below `news_from` to this channel. */
static bool may_skip(const struct channel *c)
{
    return is_of_tenant(c) && c->caught_up && c->news && c->news_from > c->through.num &&
           c->through.num >= c->all->reported_after;
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

/* Reads now, or later if it has many members: each of them costs the loop time. */
static void channel_go_on(struct channel *c)
{
    if (c->reading || c->delayed || c->failed || c->over)
        return;
    if (env_mono_ms(c->all->env) >= c->next_at_ms) {
        channel_read(c);
        return;
    }
    c->delayed = true;
    c->delayed_next = c->all->delayed;
    c->all->delayed = c;
}

/* A tenant's number is known once it is stored. */
static void learn_number(struct channel *c)
{
    if (!is_of_tenant(c) || c->number == c->op.tenant_num || c->op.tenant_num == 0)
        return;
    channel_unlink(c);
    c->number = c->op.tenant_num;
    channel_link(c);
}

static void take_read(struct channel *c)
{
    learn_number(c);
    window_append(c, c->read.first);
    c->through = c->read.through;
    c->caught_up = !c->read.more;
    c->over = c->read.over;
}

static void read_done(struct op *op)
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
    if (!c->failed)
        take_read(c);
    if (changed)
        c->next_at_ms = env_mono_ms(c->all->env) + c->count / STREAM_LISTENERS_PER_MS;
    struct channel_member *next;
    for (struct channel_member *m = changed ? c->first : NULL; m != NULL; m = next) {
        next = m->next;
        m->on_news(m);
    }
    if (c->news || c->read.more)
        channel_go_on(c);
}

/* --- members --- */

void channel_join(struct channel *c, struct channel_member *member)
{
    member->channel = c;
    member->prev = NULL;
    member->next = c->first;
    if (c->first != NULL)
        c->first->prev = member;
    c->first = member;
    c->count++;
    if (c->news)
        channel_go_on(c);
}

void channel_leave(struct channel_member *member)
{
    struct channel *c = member->channel;
    *(member->prev != NULL ? &member->prev->next : &c->first) = member->next;
    if (member->next != NULL)
        member->next->prev = member->prev;
    member->prev = member->next = NULL;
    member->channel = NULL;
    c->count--;
    if (c->first == NULL && !c->reading)
        channel_free(c);
}

/* --- commits --- */

/* The channel reads once the whole round is noted: until then `news_from` may become lower. */
static void note(struct channel *c, int64_t feed)
{
    c->news_from = c->news ? MIN(c->news_from, feed) : feed;
    c->news = true;
    if (c->noted)
        return;
    c->noted = true;
    c->noted_next = c->all->noted;
    c->all->noted = c;
}

static void note_number(struct channels *all, bool of_tenant, int64_t number, int64_t feed)
{
    for (struct channel *c = *slot_of(all, of_tenant, number); c != NULL; c = c->next) {
        if (is_of_tenant(c) == of_tenant && c->number == number)
            note(c, feed);
    }
}

static void read_noted(struct channels *all)
{
    while (all->noted != NULL) {
        struct channel *c = all->noted;
        all->noted = c->noted_next;
        c->noted = false;
        channel_go_on(c);
    }
}

/* Row numbers of the feed have no gaps and are reported once. So a round is complete if it has as
 * many rows as there are numbers from its lowest to its highest. Rows before a round that is not
 * complete, or does not follow the one before it, must not be skipped. */
static void note_range(struct channels *all, int64_t lowest, int64_t highest, int64_t count)
{
    bool complete = highest - lowest + 1 == count;
    if (!complete)
        all->reported_after = highest;
    else if (lowest != all->reported + 1)
        all->reported_after = lowest - 1;
    all->reported = highest;
}

void channels_committed(struct channels *all, const struct effect *first)
{
    int64_t lowest = INT64_MAX;
    int64_t highest = 0;
    int64_t count = 0;
    for (const struct effect *x = first; x != NULL; x = x->next) {
        if (x->kind != EFFECT_EVENTS_APPENDED)
            continue;
        note_number(all, false, x->events.owner, 0);
        note_number(all, true, x->tenant, x->events.feed);
        note_number(all, true, 0, 0); /* tenants whose number is not known yet */
        lowest = MIN(lowest, x->events.feed);
        highest = MAX(highest, x->events.feed);
        count++;
    }
    if (count == 0)
        return;
    all->commits_seen++;
    note_range(all, lowest, highest, count);
    read_noted(all);
}

void channels_tick(struct channels *all, int64_t mono_ms)
{
    struct channel *next;
    for (struct channel *c = all->delayed; c != NULL; c = next) {
        next = c->delayed_next;
        if (mono_ms >= c->next_at_ms) {
            undelay(c);
            channel_read(c);
        }
    }
}

int channels_timeout_ms(const struct channels *all, int64_t mono_ms)
{
    int64_t soonest = -1;
    for (const struct channel *c = all->delayed; c != NULL; c = c->delayed_next) {
        int64_t left = MAX(c->next_at_ms - mono_ms, (int64_t)0);
        soonest = soonest < 0 ? left : MIN(soonest, left);
    }
    return (int)soonest;
}
