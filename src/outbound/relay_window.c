/* The next messages for the bus. */
#include "outbound/relay_window.h"

#include "store/outbox/feed.h"
#include "store/outbox/parked.h"

enum { ROWS_PER_READ = 64 };

void relay_window_init(struct relay_window *w, int64_t after, const struct offered_queues *queues)
{
    *w = (struct relay_window){.through = after, .queues = *queues};
    w->last = &w->first;
    event_json_init(&w->json);
}

void relay_window_release(struct relay_window *w)
{
    while (w->first != NULL) {
        struct relay_message *old = w->first;
        w->first = old->next;
        free(old);
    }
    event_json_release(&w->json);
}

static bool is_full(const struct relay_window *w)
{
    return w->count >= RELAY_WINDOW_MESSAGES || w->bytes >= RELAY_WINDOW_BYTES ||
           w->stubs >= RELAY_WINDOW_STUBS;
}

/* Counts a message that comes in or goes out. */
static void weigh(struct relay_window *w, const struct relay_message *m, bool in)
{
    size_t bytes = m->stub ? 0 : sizeof(*m) + m->subject.len + m->body.len;
    *(m->stub ? &w->stubs : &w->count) += in ? 1 : (size_t)-1;
    w->bytes += in ? bytes : -bytes;
}

/* --- the messages of one row --- */

/* A row with its own copy of the text, so that the list is not open while its events are read. */
struct row_copy {
    struct feed_row row;
    bool published;
    bool has_owner;
    struct owner owner;
    char tenant[TENANT_ID_MAX + 1];
    char kind[NAME_MAX_LEN + 1]; /* the id of the workflow or of the entity's type */
    char name[ENTITY_ID_MAX + 1];
};

struct row_list {
    size_t limit;
    size_t count;
    struct row_copy rows[ROWS_PER_READ];
};

static bool copy_row(void *ctx, const struct feed_source *source)
{
    struct row_list *list = ctx;
    struct row_copy *c = &list->rows[list->count++];
    const struct owner *from = &source->owner;
    *c = (struct row_copy){.row = source->row,
                           .published = source->published,
                           .has_owner = source->has_owner,
                           .owner = *from};
    (void)snprintf(c->tenant, sizeof(c->tenant), "%.*s", STR_ARG(source->tenant));
    (void)snprintf(c->kind, sizeof(c->kind), "%.*s",
                   STR_ARG(from->is_entity ? from->type : from->workflow_id));
    (void)snprintf(c->name, sizeof(c->name), "%.*s", STR_ARG(from->name));
    return list->count < list->limit;
}

/* Messages of one row that go into the window together. */
struct making {
    struct relay_window *window;
    const struct row_copy *row;
    struct event_source source;
    struct relay_message *first, **last;
    int64_t last_seq; /* that a message was made of */
    int64_t count;
    enum err err;
};

static struct making making_of(struct relay_window *w, const struct row_copy *row, int64_t after)
{
    struct making mk = {
        .window = w,
        .row = row,
        .source = {str_of(row->tenant), row->owner},
        .last_seq = after,
    };
    mk.source.owner.workflow_id = mk.source.owner.type = str_of(row->kind);
    mk.source.owner.name = str_of(row->name);
    return mk;
}

static void add_made(struct making *mk, struct relay_message *m)
{
    m->feed = mk->row->row.num;
    m->run = mk->row->row.owner;
    m->tenant = mk->row->row.tenant;
    *mk->last = m;
    mk->last = &m->next;
}

static void make_event(void *ctx, const struct event *event)
{
    struct making *mk = ctx;
    struct relay_message *m = NULL;
    if (mk->err != ERR_OK || event->seq > mk->row->row.last_seq)
        return;
    mk->err = relay_message_of_event(&mk->window->json, &mk->source, event, &m);
    if (mk->err != ERR_OK)
        return;
    add_made(mk, m);
    mk->last_seq = event->seq;
    mk->count++;
}

/* Puts each offer after its event. */
static enum err make_offers(struct making *mk, struct read_tx *tx)
{
    for (struct relay_message *m = mk->first; m != NULL; m = m->next) {
        struct relay_message *offer = NULL;
        if (m->offer)
            continue;
        enum err e = relay_message_of_offer(&mk->window->queues, tx, &mk->source, m, &offer);
        if (e != ERR_OK)
            return e;
        if (offer == NULL)
            continue;
        offer->feed = m->feed;
        offer->run = m->run;
        offer->tenant = m->tenant;
        offer->next = m->next;
        m->next = offer;
        if (offer->next == NULL)
            mk->last = &offer->next;
    }
    return ERR_OK;
}

static enum err make_stub(struct making *mk)
{
    struct relay_message *stub = relay_message_new(STR(""), STR(""));
    if (stub == NULL)
        return ERR_NO_MEMORY;
    stub->stub = true;
    stub->seq = mk->last_seq + 1;
    stub->last_seq = mk->row->row.last_seq;
    stub->at = mk->row->row.at;
    add_made(mk, stub);
    return ERR_OK;
}

static enum err make_list(struct making *mk, struct read_tx *tx, int64_t wanted, int64_t most)
{
    if (most > 0) {
        enum err e = events_list(tx->db, mk->row->row.owner, mk->last_seq, most, make_event, mk);
        if (e != ERR_OK)
            return e;
        if (mk->err != ERR_OK)
            return mk->err;
        e = make_offers(mk, tx);
        if (e != ERR_OK)
            return e;
    }
    if (mk->count < most)
        mk->window->missing += wanted - mk->count;
    else if (most < wanted)
        return make_stub(mk);
    return ERR_OK;
}

/* The next `most` events of the row, and a stub for the rest of it. Events of an entity that was
 * deleted are not published, even if they are still there. */
static enum err make_messages(struct making *mk, struct read_tx *tx, int64_t most)
{
    int64_t wanted = mk->row->row.last_seq - mk->last_seq;
    mk->last = &mk->first;
    if (!mk->row->has_owner) {
        mk->window->missing += wanted;
        return ERR_OK;
    }
    enum err e = make_list(mk, tx, wanted, MIN(most, wanted));
    if (e == ERR_OK)
        return ERR_OK;
    while (mk->first != NULL) {
        struct relay_message *old = mk->first;
        mk->first = old->next;
        free(old);
    }
    return e;
}

/* --- lanes --- */

static struct relay_lane *lane_of(struct relay_window *w, int64_t run)
{
    size_t at = (size_t)((uint64_t)run * 0x9E3779B97F4A7C15u >> 20) % RELAY_LANES;
    while (w->lanes[at].round == w->round && w->lanes[at].run != run)
        at = (at + 1) % RELAY_LANES;
    if (w->lanes[at].round != w->round)
        w->lanes[at] = (struct relay_lane){.round = w->round, .run = run};
    return &w->lanes[at];
}

static void note_in_lane(struct relay_window *w, const struct relay_message *m)
{
    struct relay_lane *lane = lane_of(w, m->run);
    lane->messages += !m->stub;
    lane->has_stub |= m->stub;
}

/* Puts what was made before *at. */
static void splice(struct relay_window *w, struct making *mk, struct relay_message **at)
{
    for (const struct relay_message *m = mk->first; m != NULL; m = m->next) {
        weigh(w, m, true);
        note_in_lane(w, m);
    }
    if (mk->first == NULL)
        return;
    *mk->last = *at;
    *at = mk->first;
    if (*mk->last == NULL)
        w->last = mk->last;
}

static void fill_lanes(struct relay_window *w)
{
    w->round++;
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (!m->done)
            note_in_lane(w, m);
    }
}

/* Reads stubs whose turn has come: no message of their run is before them. */
static enum err read_stubs(struct relay_window *w, struct read_tx *tx)
{
    struct relay_message **at = &w->first;
    while (*at != NULL && w->count < RELAY_WINDOW_MESSAGES && w->bytes < RELAY_WINDOW_BYTES) {
        struct relay_message *stub = *at;
        if (!stub->stub || lane_of(w, stub->run)->messages > 0) {
            at = &stub->next;
            continue;
        }
        struct row_list list = {.limit = 1};
        enum err e = feed_sources(tx->db, stub->feed - 1, 1, copy_row, &list);
        if (e != ERR_OK)
            return e;
        assert(list.count == 1 && list.rows[0].row.num == stub->feed); /* the mark is below it */
        struct making mk = making_of(w, &list.rows[0], stub->seq - 1);
        e = make_messages(&mk, tx, RELAY_LANE_MAX);
        if (e != ERR_OK)
            return e;
        weigh(w, stub, false);
        *at = stub->next;
        if (*at == NULL)
            w->last = at;
        free(stub);
        splice(w, &mk, at);
    }
    return ERR_OK;
}

static enum err read_row(struct relay_window *w, struct read_tx *tx, const struct row_copy *row)
{
    if (row->published) {
        w->passed += row->row.last_seq - row->row.first_seq + 1;
        w->through = row->row.num;
        return ERR_OK;
    }
    const struct relay_lane *lane = lane_of(w, row->row.owner);
    struct making mk = making_of(w, row, row->row.first_seq - 1);
    int64_t room = lane->has_stub ? 0 : MAX(RELAY_LANE_MAX - lane->messages, (int64_t)0);
    enum err e = make_messages(&mk, tx, room);
    if (e != ERR_OK)
        return e;
    splice(w, &mk, w->last);
    w->through = row->row.num;
    return ERR_OK;
}

static enum err read_rows(struct relay_window *w, struct read_tx *tx, struct row_list *list)
{
    bool more = true;
    while (more && !is_full(w)) {
        list->limit = ROWS_PER_READ;
        list->count = 0;
        enum err e = feed_sources(tx->db, w->through, ROWS_PER_READ, copy_row, list);
        if (e != ERR_OK)
            return e;
        more = list->count == ROWS_PER_READ;
        for (size_t i = 0; i < list->count && !is_full(w); i++) {
            e = read_row(w, tx, &list->rows[i]);
            if (e != ERR_OK)
                return e;
        }
    }
    return ERR_OK;
}

enum err relay_window_fill(struct relay_window *w, struct read_tx *tx)
{
    struct row_list *list = malloc(sizeof(*list));
    if (list == NULL)
        return ERR_NO_MEMORY;
    fill_lanes(w);
    enum err e = read_stubs(w, tx);
    if (e == ERR_OK)
        e = read_rows(w, tx, list);
    free(list);
    return e;
}

/* --- parked messages --- */

struct parked_copy {
    struct parked parked;
    char id[EVENT_MESSAGE_ID_MAX + 1];
};

struct parked_list_copy {
    struct parked_copy each[RELAY_AGAIN_MAX];
    size_t count;
};

static bool copy_parked(void *ctx, const struct parked *parked)
{
    struct parked_list_copy *list = ctx;
    struct parked_copy *c = &list->each[list->count++];
    c->parked = *parked;
    (void)snprintf(c->id, sizeof(c->id), "%.*s", STR_ARG(parked->message_id));
    return list->count < RELAY_AGAIN_MAX;
}

static bool holds(const struct relay_window *w, const char *id)
{
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (strcmp(m->id, id) == 0)
            return true;
    }
    return false;
}

struct remaking {
    struct relay_window *window;
    struct event_source source;
    int64_t seq;
    struct relay_message *event;
    enum err err;
};

static void remake_event(void *ctx, const struct event *event)
{
    struct remaking *r = ctx;
    if (event->seq == r->seq) /* a later one: the event was removed with its generation */
        r->err = relay_message_of_event(&r->window->json, &r->source, event, &r->event);
}

static enum err remake_offer(struct remaking *r, struct read_tx *tx, const struct parked *parked,
                             struct relay_message **ret)
{
    r->event->run = parked->owner;
    enum err e = relay_message_of_offer(&r->window->queues, tx, &r->source, r->event, ret);
    free(r->event);
    return e;
}

/* Makes the message again, from its event. NULL in *ret when it no longer exists. */
static enum err remake(struct relay_window *w, struct read_tx *tx, const struct parked *parked,
                       struct relay_message **ret)
{
    struct remaking r = {.window = w, .seq = parked->seq};
    struct tenant *tenant = NULL;
    bool found = false;
    *ret = NULL;
    enum err e = owners_find(tx->db, parked->owner, &tx->arena, &found, &r.source.owner);
    if (e != ERR_OK || !found)
        return e;
    e = read_tx_tenant_num(tx, parked->tenant, &tenant);
    if (e != ERR_OK)
        return e;
    r.source.tenant = tenant->id;
    e = events_list(tx->db, parked->owner, parked->seq - 1, 1, remake_event, &r);
    if (e == ERR_OK)
        e = r.err;
    if (e != ERR_OK) {
        free(r.event);
        return e;
    }
    if (r.event != NULL && parked->offer)
        return remake_offer(&r, tx, parked, ret);
    *ret = r.event;
    return ERR_OK;
}

static enum err read_parked(struct relay_window *w, struct read_tx *tx, const struct parked_copy *c)
{
    struct relay_message *m = NULL;
    enum err e = remake(w, tx, &c->parked, &m);
    if (e != ERR_OK)
        return e;
    bool gone = m == NULL;
    if (gone)
        m = relay_message_new(STR(""), STR(""));
    if (m == NULL)
        return ERR_NO_MEMORY;
    m->feed = c->parked.feed;
    m->seq = c->parked.seq;
    m->run = c->parked.owner;
    m->tenant = c->parked.tenant;
    m->parked = true;
    m->done = gone;
    memcpy(m->id, c->id, sizeof(m->id));
    *w->last = m;
    w->last = &m->next;
    weigh(w, m, true);
    return ERR_OK;
}

enum err relay_window_fill_parked(struct relay_window *w, struct read_tx *tx)
{
    struct parked_list_copy *list = calloc(1, sizeof(*list));
    if (list == NULL)
        return ERR_NO_MEMORY;
    enum err e = parked_again(tx->db, RELAY_AGAIN_MAX, copy_parked, list);
    for (size_t i = 0; e == ERR_OK && i < list->count && !is_full(w); i++) {
        if (!holds(w, list->each[i].id))
            e = read_parked(w, tx, &list->each[i]);
    }
    free(list);
    return e;
}

/* --- sending --- */

size_t relay_window_batch(struct relay_window *w, struct relay_message **ret, size_t max)
{
    size_t count = 0;
    w->round++;
    for (struct relay_message *m = w->first; m != NULL && count < max; m = m->next) {
        if (m->done)
            continue;
        struct relay_lane *lane = lane_of(w, m->run);
        if (lane->messages++ == 0 && !m->stub && !m->unpublishable)
            ret[count++] = m;
    }
    return count;
}

void relay_window_clean(struct relay_window *w)
{
    struct relay_message **at = &w->first;
    while (*at != NULL) {
        struct relay_message *m = *at;
        if (!m->done) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        weigh(w, m, false);
        free(m);
    }
    w->last = at;
}

int64_t relay_window_done_through(const struct relay_window *w)
{
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (!m->parked)
            return m->feed - 1;
    }
    return w->through;
}

int64_t relay_window_oldest(const struct relay_window *w)
{
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (!m->parked)
            return m->at;
    }
    return -1;
}
