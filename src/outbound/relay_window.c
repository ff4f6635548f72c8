/* The next messages for the bus. */
#include "outbound/relay_window.h"

#include "bus/subject.h"
#include "core/run/run_txn.h"
#include "core/txn/job_row.h"
#include "store/outbox/feed.h"
#include "store/outbox/parked.h"

enum {
    ROWS_PER_READ = 64,
    SUBJECT_MAX = 3 * (TENANT_ID_MAX + NAME_MAX_LEN) + 16, /* every character written as three */
    OFFER_MAX = 8 * KIB,
};

/* Events after which a job may lie in its queue. */
static const char *const OFFERING[] = {"job.created", "job.approved", "job.lease_expired",
                                       "job.released", "job.retried"};

void relay_window_init(struct relay_window *w, int64_t after, const struct str *queues,
                       size_t queue_count)
{
    *w = (struct relay_window){.through = after, .queues = queues, .queue_count = queue_count};
    w->last = &w->first;
    event_json_init(&w->words);
}

void relay_window_release(struct relay_window *w)
{
    while (w->first != NULL) {
        struct relay_message *old = w->first;
        w->first = old->next;
        free(old);
    }
    event_json_release(&w->words);
}

static bool is_full(const struct relay_window *w)
{
    return w->count >= RELAY_WINDOW_MESSAGES || w->bytes >= RELAY_WINDOW_BYTES ||
           w->stubs >= RELAY_WINDOW_STUBS;
}

static void weigh(struct relay_window *w, const struct relay_message *m, bool in)
{
    size_t bytes = m->stub ? 0 : sizeof(*m) + m->subject.len + m->body.len;
    *(m->stub ? &w->stubs : &w->count) += in ? 1 : (size_t)-1;
    w->bytes += in ? bytes : -bytes;
}

/* --- making messages --- */

static struct relay_message *message_new(struct str subject, struct str body)
{
    struct relay_message *m = calloc(1, sizeof(*m) + subject.len + body.len);
    if (m == NULL)
        return NULL;
    if (subject.len > 0)
        memcpy(m->text, subject.ptr, subject.len);
    if (body.len > 0)
        memcpy(m->text + subject.len, body.ptr, body.len);
    m->subject = (struct str){m->text, subject.len};
    m->body = (struct str){m->text + subject.len, body.len};
    return m;
}

static enum err event_message(struct relay_window *w, const struct event_source *source,
                              const struct event *event, struct relay_message **ret)
{
    struct buf subject;
    enum err e = event_json_fill(&w->words, source, event);
    bool unspeakable = e == ERR_INTERNAL;
    if (e != ERR_OK && !unspeakable)
        return e;
    if (unspeakable) { /* it is parked under the id that it would have had */
        struct event bare = {event->seq, event->at, STR("event"), STR_NONE};
        e = event_json_fill(&w->words, source, &bare);
    }
    buf_init(&subject, SUBJECT_MAX);
    buf_put(&subject, STR("pawl."));
    subject_put_word(&subject, source->tenant);
    buf_put_char(&subject, '.');
    subject_put_words(&subject, str_of(w->words.type));
    struct relay_message *m = NULL;
    if (e == ERR_OK && buf_ok(&subject))
        m = message_new(buf_str(&subject), buf_str(&w->words.body));
    buf_release(&subject);
    if (m == NULL)
        return e != ERR_OK ? e : ERR_NO_MEMORY;
    m->seq = event->seq;
    m->at = event->at;
    m->unspeakable = unspeakable;
    memcpy(m->id, w->words.id, sizeof(w->words.id));
    memcpy(m->type, w->words.type, sizeof(m->type));
    *ret = m;
    return ERR_OK;
}

/* --- offers --- */

static bool may_offer(const struct relay_window *w, const struct event *event, struct uuid *ret_job)
{
    bool offering = false;
    for (size_t i = 0; i < ARRAY_LEN(OFFERING) && w->queue_count > 0; i++)
        offering |= str_is(event->type, OFFERING[i]);
    if (!offering || event->data.len == 0)
        return false;
    json_t *data = json_loadb(event->data.ptr, event->data.len, 0, NULL);
    struct str id = json_str(json_object_get(data, "job_id"));
    bool ok = id.ptr != NULL && uuid_parse(id, ret_job);
    json_decref(data);
    return ok;
}

static bool serves(const struct relay_window *w, struct str queue)
{
    for (size_t i = 0; i < w->queue_count; i++) {
        if (str_eq(w->queues[i], queue))
            return true;
    }
    return false;
}

static void put_offer(struct buf *body, const struct run_txn *m, const struct job *job)
{
    const struct step_def *step = job_step(m->def, job);
    struct json_out o = json_out_to(body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_uuid(&o, "run_id", m->run.id);
    json_add_text(&o, "tenant", m->tenant->id);
    json_add_text(&o, "queue", job->queue);
    json_add_text(&o, "step", step->name);
    json_add_text(&o, "handler", job->undo ? step->undo_handler : step->handler);
    json_add_int(&o, "attempt", job->attempt + 1); /* the one that a claim begins */
    json_close(&o, '}');
}

/* NULL in *ret when the job is not claimable now: who claims it again later is told then. */
static enum err offer_message(struct relay_window *w, struct read_tx *tx,
                              const struct relay_message *event, struct relay_message **ret)
{
    struct job job;
    struct run_txn m;
    struct problem p;
    bool found = false;
    *ret = NULL;
    enum err e = jobs_find(tx->db, 0, event->job, &tx->arena, &found, &job);
    if (e != ERR_OK || !found || job.state != JOB_PENDING || !serves(w, job.queue))
        return e;
    problem_init(&p);
    e = run_txn_read(&m, tx, job.run, &p);
    problem_release(&p);
    if (e != ERR_OK)
        return e == ERR_RUN_NOT_FOUND ? ERR_OK : e;
    struct buf subject;
    struct buf body;
    buf_init(&subject, SUBJECT_MAX);
    buf_init(&body, OFFER_MAX);
    buf_put(&subject, STR("pawl-jobs."));
    subject_put_word(&subject, job.queue);
    put_offer(&body, &m, &job);
    struct relay_message *offer =
        buf_ok(&subject) && buf_ok(&body) ? message_new(buf_str(&subject), buf_str(&body)) : NULL;
    struct buf id;
    buf_init(&id, EVENT_MESSAGE_ID_MAX);
    buf_put_uuid(&id, m.run.id);
    buf_printf(&id, ":%lld:offer", (long long)event->seq);
    if (offer != NULL && buf_ok(&id)) {
        memcpy(offer->id, id.ptr, id.len + 1);
        memcpy(offer->type, event->type, sizeof(offer->type));
        offer->offer = true;
        offer->seq = event->seq;
        offer->at = event->at;
        *ret = offer;
    } else {
        free(offer);
        e = ERR_NO_MEMORY;
    }
    buf_release(&id);
    buf_release(&body);
    buf_release(&subject);
    return e;
}

/* --- reading the feed --- */

/* One row with text of its own, so that the list is not open while its events are read. */
struct row_copy {
    struct feed_row row;
    bool has_owner;
    struct owner owner; /* with text in what follows: a run has no name, an entity no workflow */
    char tenant[TENANT_ID_MAX + 1];
    char sort[NAME_MAX_LEN + 1]; /* the workflow or the type */
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
    *c = (struct row_copy){.row = source->row, .has_owner = source->has_owner, .owner = *from};
    (void)snprintf(c->tenant, sizeof(c->tenant), "%.*s", STR_ARG(source->tenant));
    (void)snprintf(c->sort, sizeof(c->sort), "%.*s",
                   STR_ARG(from->is_entity ? from->type : from->workflow_id));
    (void)snprintf(c->name, sizeof(c->name), "%.*s", STR_ARG(from->name));
    return list->count < list->limit;
}

/* Messages that are being made, to be put into the window together. */
struct making {
    struct relay_window *window;
    const struct row_copy *row;
    struct event_source source;
    struct relay_message *first, **last;
    int64_t last_seq; /* made */
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
    mk.source.owner.workflow_id = mk.source.owner.type = str_of(row->sort);
    mk.source.owner.name = str_of(row->name);
    return mk;
}

static void add_made(struct making *mk, struct relay_message *m)
{
    m->feed = mk->row->row.num;
    m->run = mk->row->row.run;
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
    mk->err = event_message(mk->window, &mk->source, event, &m);
    if (mk->err != ERR_OK)
        return;
    if (!may_offer(mk->window, event, &m->job))
        m->job = (struct uuid){0};
    add_made(mk, m);
    mk->last_seq = event->seq;
    mk->count++;
}

/* Puts the offers behind their events. */
static enum err make_offers(struct making *mk, struct read_tx *tx)
{
    for (struct relay_message *m = mk->first; m != NULL; m = m->next) {
        struct relay_message *offer = NULL;
        if (m->offer || uuid_is_nil(m->job))
            continue;
        enum err e = offer_message(mk->window, tx, m, &offer);
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
    struct relay_message *stub = message_new(STR(""), STR(""));
    if (stub == NULL)
        return ERR_NO_MEMORY;
    stub->stub = true;
    stub->seq = mk->last_seq + 1;
    stub->last_seq = mk->row->row.last_seq;
    stub->at = mk->row->row.at;
    add_made(mk, stub);
    return ERR_OK;
}

/* The next `most` events of the row, and a stub for what is left of it. An entity that was deleted
 * has nothing to tell, even if its events are still there. */
static enum err make_messages(struct making *mk, struct read_tx *tx, int64_t most)
{
    int64_t wanted = mk->row->row.last_seq - mk->last_seq;
    most = MIN(most, wanted);
    mk->last = &mk->first;
    enum err e = ERR_OK;
    if (!mk->row->has_owner) {
        mk->window->missing += wanted;
        return ERR_OK;
    }
    if (most > 0)
        e = events_list(tx->db, mk->row->row.run, mk->last_seq, most, make_event, mk);
    if (e == ERR_OK)
        e = mk->err;
    if (e == ERR_OK)
        e = make_offers(mk, tx);
    if (e == ERR_OK && mk->count < most)
        mk->window->missing += wanted - mk->count;
    else if (e == ERR_OK && most < wanted)
        e = make_stub(mk);
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
    while (w->lanes[at].run != 0 && w->lanes[at].run != run)
        at = (at + 1) % RELAY_LANES;
    w->lanes[at].run = run;
    return &w->lanes[at];
}

static void note_in_lane(struct relay_window *w, const struct relay_message *m)
{
    struct relay_lane *lane = lane_of(w, m->run);
    lane->messages += !m->stub;
    lane->has_stub |= m->stub;
}

/* Puts what was made in front of *at. */
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

static void look_at_lanes(struct relay_window *w)
{
    memset(w->lanes, 0, sizeof(w->lanes));
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (!m->over)
            note_in_lane(w, m);
    }
}

/* Stubs whose turn has come are read on. */
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
    const struct relay_lane *lane = lane_of(w, row->row.run);
    struct making mk = making_of(w, row, row->row.first_seq - 1);
    int64_t room = lane->has_stub ? 0 : MAX(RELAY_LANE_MAX - lane->messages, (int64_t)0);
    enum err e = make_messages(&mk, tx, room);
    if (e != ERR_OK)
        return e;
    splice(w, &mk, w->last);
    w->through = row->row.num;
    return ERR_OK;
}

enum err relay_window_fill(struct relay_window *w, struct read_tx *tx)
{
    struct row_list *list = calloc(1, sizeof(*list));
    if (list == NULL)
        return ERR_NO_MEMORY;
    look_at_lanes(w);
    enum err e = read_stubs(w, tx);
    bool more = true;
    while (e == ERR_OK && more && !is_full(w)) {
        *list = (struct row_list){.limit = ROWS_PER_READ};
        e = feed_sources(tx->db, w->through, ROWS_PER_READ, copy_row, list);
        more = list->count == ROWS_PER_READ;
        for (size_t i = 0; i < list->count && e == ERR_OK && !is_full(w); i++)
            e = read_row(w, tx, &list->rows[i]);
    }
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

struct saying {
    struct relay_window *window;
    struct event_source source;
    int64_t seq;
    struct relay_message *said;
    enum err err;
};

static void say_event(void *ctx, const struct event *event)
{
    struct saying *s = ctx;
    if (event->seq != s->seq)
        return; /* it is gone with its generation, and this is a later one */
    s->err = event_message(s->window, &s->source, event, &s->said);
    if (s->err == ERR_OK && !may_offer(s->window, event, &s->said->job))
        s->said->job = (struct uuid){0};
}

/* The message again, from its event; NULL in *ret when there is nothing left to say. */
static enum err say_again(struct relay_window *w, struct read_tx *tx, const struct parked *parked,
                          struct relay_message **ret)
{
    struct owner owner;
    struct tenant *tenant = NULL;
    struct relay_message *offer = NULL;
    bool found = false;
    *ret = NULL;
    enum err e = owners_find(tx->db, parked->run, &tx->arena, &found, &owner);
    if (e != ERR_OK || !found)
        return e;
    e = read_tx_tenant_num(tx, parked->tenant, &tenant);
    if (e != ERR_OK)
        return e;
    struct saying s = {.window = w, .source = {tenant->id, owner}, .seq = parked->seq};
    e = events_list(tx->db, parked->run, parked->seq - 1, 1, say_event, &s);
    if (e == ERR_OK)
        e = s.err;
    if (e == ERR_OK && s.said != NULL && parked->offer && !uuid_is_nil(s.said->job))
        e = offer_message(w, tx, s.said, &offer);
    if (e != ERR_OK || parked->offer) {
        free(s.said);
        s.said = offer;
    }
    *ret = s.said;
    return e;
}

static enum err read_parked(struct relay_window *w, struct read_tx *tx, const struct parked_copy *c)
{
    struct relay_message *m = NULL;
    enum err e = say_again(w, tx, &c->parked, &m);
    if (e != ERR_OK)
        return e;
    bool gone = m == NULL;
    if (gone)
        m = message_new(STR(""), STR(""));
    if (m == NULL)
        return ERR_NO_MEMORY;
    m->feed = c->parked.feed;
    m->seq = c->parked.seq;
    m->run = c->parked.run;
    m->tenant = c->parked.tenant;
    m->again = true;
    m->over = gone;
    memcpy(m->id, c->id, sizeof(m->id));
    *w->last = m;
    w->last = &m->next;
    weigh(w, m, true);
    return ERR_OK;
}

enum err relay_window_fill_parked(struct relay_window *w, struct read_tx *tx)
{
    struct parked_list_copy *list = calloc(1, sizeof(*list));
    enum err e =
        list != NULL ? parked_again(tx->db, RELAY_AGAIN_MAX, copy_parked, list) : ERR_NO_MEMORY;
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
    memset(w->lanes, 0, sizeof(w->lanes));
    for (struct relay_message *m = w->first; m != NULL && count < max; m = m->next) {
        if (m->over)
            continue;
        struct relay_lane *lane = lane_of(w, m->run);
        if (lane->messages++ == 0 && !m->stub && !m->unspeakable)
            ret[count++] = m;
    }
    return count;
}

void relay_window_clean(struct relay_window *w)
{
    struct relay_message **at = &w->first;
    while (*at != NULL) {
        struct relay_message *m = *at;
        if (!m->over) {
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
        if (!m->again)
            return m->feed - 1;
    }
    return w->through;
}

int64_t relay_window_oldest(const struct relay_window *w)
{
    for (const struct relay_message *m = w->first; m != NULL; m = m->next) {
        if (!m->again)
            return m->at;
    }
    return -1;
}
