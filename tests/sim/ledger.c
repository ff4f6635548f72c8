/* A ledger of events. */
#define _GNU_SOURCE
#include "sim/ledger.h"

#include "sim/people.h"

#include <stdlib.h>

enum { DELETED_KEPT_MS = 5 * 1000 };

void ledger_release(struct ledger *l)
{
    free(l->events);
    free(l->owners);
    l->events = NULL;
    l->owners = NULL;
    l->event_count = l->event_room = l->owner_count = l->owner_room = 0;
}

void ledger_reset(struct ledger *l)
{
    ledger_release(l);
    l->whole = false;
}

static uint64_t digest_of(struct str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The text after the first `mark`; empty: there is none. */
static struct str after(struct str text, const char *mark)
{
    const char *found = memmem(text.ptr, text.len, mark, strlen(mark));
    if (found == NULL)
        return STR_NONE;
    const char *at = found + strlen(mark);
    return (struct str){at, text.len - (size_t)(at - text.ptr)};
}

static struct ledger_event *find_event(const struct ledger *l, struct str id)
{
    for (size_t i = l->event_count; i > 0; i--) {
        if (str_is(id, l->events[i - 1].id))
            return &l->events[i - 1];
    }
    return NULL;
}

static void add_event(struct ledger *l, struct str id, uint64_t digest)
{
    if (l->event_count == l->event_room) {
        l->event_room = MAX(2 * l->event_room, (size_t)64);
        l->events = realloc(l->events, l->event_room * sizeof(*l->events));
        assert(l->events != NULL);
    }
    struct ledger_event *e = &l->events[l->event_count++];
    (void)snprintf(e->id, sizeof(e->id), "%.*s", STR_ARG(id));
    e->digest = digest;
}

static struct ledger_owner *find_owner(const struct ledger *l, struct str owner)
{
    for (size_t i = l->owner_count; i > 0; i--) {
        if (str_is(owner, l->owners[i - 1].owner))
            return &l->owners[i - 1];
    }
    return NULL;
}

static struct ledger_owner *add_owner(struct ledger *l, struct str owner)
{
    if (l->owner_count == l->owner_room) {
        l->owner_room = MAX(2 * l->owner_room, (size_t)16);
        l->owners = realloc(l->owners, l->owner_room * sizeof(*l->owners));
        assert(l->owners != NULL);
    }
    struct ledger_owner *o = &l->owners[l->owner_count++];
    (void)snprintf(o->owner, sizeof(o->owner), "%.*s", STR_ARG(owner));
    o->last = o->count = o->gap_ms = 0;
    o->has_gap = false;
    return o;
}

/* The owner is in the id, except that an approved job has its own; its subject is the run. */
static struct str owner_of(struct str id, struct str body)
{
    struct str from = str_starts_with(id, STR("approval:")) ? after(body, "\"subject\":\"") : id;
    return (struct str){from.ptr, MIN(from.len, (size_t)OWNER_LEN)};
}

/* Has it the member of the event's envelope with a value that begins so? */
static bool begins(struct str body, const char *member, const char *value)
{
    return str_starts_with(after(body, member), str_of(value));
}

/* The source is "/pawl/TENANT/entities/TYPE/ID". */
static bool is_of_entity(struct str body)
{
    struct str tenant = after(body, "\"source\":\"/pawl/");
    return begins(tenant, "/", "entities/");
}

/* The entity that has a gap was deleted: long enough before its reader came back? */
static void close_gap(struct sim *w, const struct ledger *l, struct ledger_owner *o,
                      struct str body)
{
    char time[32];
    struct str at = after(body, "\"time\":\"");
    (void)snprintf(time, sizeof(time), "%.*s", (int)MIN(at.len, strcspn(at.ptr, "\"")), at.ptr);
    sim_check(w, 6, sim_on(w, ON_CLOCKS) || time_of(time) + DELETED_KEPT_MS <= o->gap_ms,
              "%s misses events of entity %s, which was deleted at %s", l->name, o->owner, time);
    o->has_gap = false;
}

static void take_in_order(struct sim *w, struct ledger *l, struct str id, struct str body,
                          int64_t seq)
{
    struct str owner = owner_of(id, body);
    struct ledger_owner *o = find_owner(l, owner);
    if (o == NULL) {
        o = add_owner(l, owner);
        o->last = l->whole ? 0 : seq - 1;
    }
    if (l->ordered && seq != o->last + 1) {
        sim_check(w, 6, seq > o->last && l->resumed_ms > 0 && is_of_entity(body),
                  "%s: event %.*s comes after number %lld of its run or entity", l->name,
                  STR_ARG(id), (long long)o->last);
        o->has_gap = true;
        o->gap_ms = l->resumed_ms;
    }
    if (o->has_gap && begins(body, "\"type\":\"", "entity.deleted\""))
        close_gap(w, l, o, body);
    o->last = MAX(o->last, seq);
    o->count++;
}

void ledger_take(struct sim *w, struct ledger *l, struct str id, struct str body)
{
    uint64_t digest = digest_of(body);
    const struct ledger_event *before = find_event(l, id);
    if (before != NULL) {
        sim_check(w, 6, !l->once, "%s: event %.*s comes twice", l->name, STR_ARG(id));
        sim_check(w, 6, before->digest == digest, "%s: two events have the id %.*s", l->name,
                  STR_ARG(id));
        return;
    }
    struct str number = after(after(body, "\"data\":{"), "\"seq\":");
    int64_t seq = number.len > 0 ? strtoll(number.ptr, NULL, 10) : -1;
    sim_check(w, 6, seq > 0 && id.len > 0, "%s: an event without a number: %.*s", l->name,
              STR_ARG(body));
    add_event(l, id, digest);
    take_in_order(w, l, id, body, seq);
}

void ledger_check_gaps(struct sim *w, const struct ledger *l)
{
    for (size_t i = 0; i < l->owner_count; i++) {
        const struct ledger_owner *o = &l->owners[i];
        bool away_again = l->resumed_ms > o->gap_ms; /* then the rest may be missing too */
        sim_check(w, 6, !o->has_gap || away_again, "%s misses events of entity %s", l->name,
                  o->owner);
    }
}

int64_t ledger_last(const struct ledger *l, const char *owner)
{
    const struct ledger_owner *o = find_owner(l, str_of(owner));
    return o != NULL ? o->last : 0;
}

int64_t ledger_count(const struct ledger *l, const char *owner)
{
    const struct ledger_owner *o = find_owner(l, str_of(owner));
    return o != NULL ? o->count : 0;
}
