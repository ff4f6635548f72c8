/* The bus and the clients of event streams: everybody gets every event, under one id, in order. */
#define _GNU_SOURCE
#include "sim/events.h"
#include "sim/ledger.h"
#include "sim/runs.h"

#include <stdlib.h>

/* A client that follows a tenant's events. */
struct follower {
    struct place *place;
    int tenant;
    struct sim_exchange *x; /* NULL: not connected */
    size_t read;            /* of its text */
    char cursor[64];        /* "": from now on */
    struct ledger ledger;
};

struct events {
    struct ledger bus[PLACES_MAX];
    bool bus_away[PLACES_MAX];
    struct follower followers[PLACES_MAX][TENANTS];
};

static struct events *state(struct sim *w)
{
    return w->states[ACTOR_EVENTS_NUMBER];
}

/* --- the bus --- */

static bool chaos_percent(struct sim *w, int in)
{
    return !w->calm && lot_below(&w->chaos, 100) < in;
}

bool events_bus_is_away(void *ctx)
{
    struct place *p = ctx;
    struct events *s = state(p->sim);
    return s != NULL && s->bus_away[p->number];
}

enum bus_result events_bus_arrived(void *ctx, const struct bus_message *m)
{
    struct place *p = ctx;
    struct sim *w = p->sim;
    struct events *s = state(w);
    if (s == NULL) /* before the history */
        return BUS_STORED;
    if (crash_disk_is_down(p->disk) || chaos_percent(w, 4))
        return BUS_UNKNOWN; /* it never arrived */
    ledger_take(w, &s->bus[p->number], m->id, m->body);
    if (chaos_percent(w, 6)) {
        sim_cover(w, "fault", "bus acknowledgement lost");
        return BUS_UNKNOWN;
    }
    return BUS_STORED;
}

void events_bus_set_away(struct sim *w, const struct place *p, bool away)
{
    state(w)->bus_away[p->number] = away;
    if (away)
        sim_cover(w, "fault", "bus away");
    sim_tell(w, "  the bus of server %d is %s", p->number, away ? "away" : "there");
}

static void bus_comes_and_goes(struct sim *w)
{
    struct place *p = sim_any_place(w);
    bool away = state(w)->bus_away[p->number];
    events_bus_set_away(w, p, !away && lot_percent(&w->lot, 60));
}

int64_t events_bus_last(struct sim *w, const struct place *p, const char *run)
{
    return ledger_last(&state(w)->bus[p->number], run);
}

/* --- followers --- */

static void connect(struct sim *w, struct follower *f)
{
    char tenant[8];
    tenant_name(tenant, f->tenant);
    struct sim_header headers[4] = {
        {"Host", "127.0.0.1:7295"}, {"X-Tenant-ID", tenant}, {"Accept", "text/event-stream"}};
    size_t count = 3;
    if (f->cursor[0] != '\0')
        headers[count++] = (struct sim_header){"Last-Event-ID", f->cursor};
    struct sim_request request = {
        .method = "GET", .target = "/api/v1/events", .headers = headers, .header_count = count};
    struct sim_http *to = place_http(w, f->place);
    if (to == NULL)
        return;
    f->x = sim_http_send(to, &request);
    f->read = 0;
    if (f->cursor[0] != '\0')
        f->ledger.resumed_ms = sim_now_ms(w);
    sim_tell(w, "  somebody follows %s of server %d from %s", tenant, f->place->number,
             f->cursor[0] != '\0' ? f->cursor : "now");
}

static void disconnect(struct follower *f)
{
    if (f->x != NULL)
        sim_http_close(f->x);
    f->x = NULL;
}

/* The value of a line of an SSE message; empty: there is no such line. */
static struct str line_of(struct str message, const char *name)
{
    size_t len = strlen(name);
    while (message.len > 0) {
        struct str line;
        (void)str_cut(message, '\n', &line, &message);
        if (line.len > len && memcmp(line.ptr, name, len) == 0)
            return (struct str){line.ptr + len, line.len - len};
    }
    return STR_NONE;
}

static void take_message(struct sim *w, struct follower *f, struct str message)
{
    struct str id = line_of(message, "id: ");
    struct str data = line_of(message, "data: ");
    if (str_is(line_of(message, "event: "), "reset")) {
        sim_cover(w, "event", "reset");
        ledger_reset(&f->ledger);
    } else if (data.len > 0) {
        static const char MARK[] = "\"id\":\"";
        const char *at = memmem(data.ptr, data.len, MARK, strlen(MARK));
        sim_check(w, 6, at != NULL, "an event without an id: %.*s", STR_ARG(data));
        at += strlen(MARK);
        ledger_take(w, &f->ledger, (struct str){at, strcspn(at, "\"")}, data);
    }
    if (id.len > 0)
        (void)snprintf(f->cursor, sizeof(f->cursor), "%.*s", STR_ARG(id));
}

static void read_stream(struct sim *w, struct follower *f)
{
    struct str text = buf_str(&f->x->body);
    text = (struct str){text.ptr + f->read, text.len - f->read};
    while (text.len > 0) {
        const char *end = memmem(text.ptr, text.len, "\n\n", 2);
        if (end == NULL)
            return; /* the rest is still coming */
        size_t len = (size_t)(end - text.ptr) + 2;
        take_message(w, f, (struct str){text.ptr, len});
        f->read += len;
        text = (struct str){text.ptr + len, text.len - len};
    }
}

static void look(struct sim *w, struct follower *f)
{
    if (f->x == NULL || (!f->x->answered && !f->x->cut))
        return;
    if (f->x->streams && f->x->status == 200) {
        const char *start = sim_http_answer_header(f->x, "Last-Event-ID");
        if (f->cursor[0] == '\0' && start != NULL)
            (void)snprintf(f->cursor, sizeof(f->cursor), "%s", start);
        read_stream(w, f);
    }
    if (!f->x->streams || f->x->cut || f->x->ended)
        disconnect(f);
}

static void check(struct sim *w)
{
    for (int i = 0; i < w->place_count && sim_on(w, ON_STREAMS); i++) {
        for (int t = 0; t < TENANTS; t++)
            look(w, &state(w)->followers[i][t]);
    }
}

static struct follower *any_follower(struct sim *w)
{
    return &state(w)->followers[lot_below(&w->lot, w->place_count)][lot_below(&w->lot, TENANTS)];
}

static void follow(struct sim *w)
{
    struct follower *f = any_follower(w);
    if (f->x == NULL && f->place->up)
        connect(w, f);
}

static void leave(struct sim *w)
{
    struct follower *f = any_follower(w);
    if (f->x == NULL)
        return;
    look(w, f);
    if (f->x != NULL && f->x->answered) /* the cursor is known */
        disconnect(f);
}

static void catch_up(struct sim *w, struct follower *f)
{
    f->x->slow = false;
    f->ledger.resumed_ms = sim_now_ms(w);
    sim_http_read(f->x);
}

/* Reads nothing until it is told to, or is in time again. */
static void slow_down(struct sim *w)
{
    struct follower *f = any_follower(w);
    if (f->x == NULL)
        return;
    if (f->x->slow)
        catch_up(w, f);
    else
        f->x->slow = lot_percent(&w->lot, 60);
}

/* --- the end --- */

/* Has the bus not got everything yet? */
static bool bus_lags(struct sim *w, struct place *p)
{
    if (p->server.config.bus == NULL)
        return false;
    struct call *c = sim_ask(w, p, NULL, "GET", "/api/v1/outbox", NULL);
    bool lags = c == NULL || c->status != 200 || json_number(c->json, "depth") != 0;
    call_free(c);
    return lags;
}

static bool finish(struct sim *w)
{
    struct events *s = state(w);
    bool waits = false;
    for (int i = 0; i < w->place_count; i++) {
        s->bus_away[i] = false;
        waits |= bus_lags(w, &w->places[i]);
        for (int t = 0; t < TENANTS && sim_on(w, ON_STREAMS); t++) {
            struct follower *f = &s->followers[i][t];
            look(w, f);
            if (f->x != NULL && f->x->slow)
                catch_up(w, f);
            if (f->x == NULL && f->place->up) {
                connect(w, f);
                waits = true;
            }
        }
    }
    return waits;
}

int64_t events_last_of(struct sim *w, const struct seen_run *r)
{
    char tenant[8], target[120];
    int64_t last = 0;
    tenant_name(tenant, r->tenant);
    for (bool more = true; more;) {
        (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/events?limit=200&cursor=%lld",
                       r->id, (long long)last);
        struct call *c = sim_ask(w, &w->places[r->place], tenant, "GET", target, NULL);
        if (c == NULL || c->status == 404) {
            call_free(c);
            return -1;
        }
        sim_check(w, 0, c->status == 200, "a timeline is answered %d %s", c->status, c->code);
        size_t i;
        json_t *event;
        more = false;
        json_array_foreach (json_object_get(c->json, "items"), i, event) {
            sim_check(w, 6, json_number(event, "seq") == last + 1,
                      "the timeline of run %s has a gap after %lld", r->id, (long long)last);
            sim_cover(w, "event", json_text(event, "type"));
            last++;
            more = true;
        }
        call_free(c);
    }
    return last;
}

static void compare(struct sim *w, const struct ledger *l, const struct seen_run *r, int64_t last)
{
    int64_t got = ledger_last(l, r->id);
    sim_check(w, 6, got == last || (got == 0 && !l->whole), "%s has %lld of %lld events of run %s",
              l->name, (long long)got, (long long)last, r->id);
}

static void last(struct sim *w)
{
    struct events *s = state(w);
    if (!sim_on(w, ON_BUS) && !sim_on(w, ON_STREAMS))
        return;
    check(w);
    for (int i = 0; i < w->place_count * TENANTS; i++)
        ledger_check_gaps(w, &s->followers[i / TENANTS][i % TENANTS].ledger);
    for (struct seen_run *r = runs_first(w); r != NULL; r = r->next) {
        bool has_bus = sim_on(w, ON_BUS) && w->places[r->place].server.config.bus != NULL;
        sim_check(w, 6, !has_bus || ledger_last(&s->bus[r->place], r->id) > 0,
                  "the bus has no event of run %s", r->id);
        int64_t count = r->removed ? -1 : events_last_of(w, r);
        if (count < 0)
            continue;
        if (has_bus)
            compare(w, &s->bus[r->place], r, count);
        if (sim_on(w, ON_STREAMS))
            compare(w, &s->followers[r->place][r->tenant].ledger, r, count);
    }
}

/* --- life --- */

static void begin(struct sim *w)
{
    struct events *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_EVENTS_NUMBER] = s;
    for (int i = 0; i < w->place_count; i++) {
        /* A message may be sent again after its acknowledgement was lost. */
        s->bus[i] = (struct ledger){.name = "the bus", .whole = true, .ordered = true};
        for (int t = 0; t < TENANTS; t++) {
            struct follower *f = &s->followers[i][t];
            *f = (struct follower){.place = &w->places[i], .tenant = t};
            f->ledger =
                (struct ledger){.name = "a stream", .whole = true, .once = true, .ordered = true};
            if (sim_on(w, ON_STREAMS))
                connect(w, f);
        }
        place_settle(w, &w->places[i]);
    }
    check(w);
}

static void release(struct sim *w)
{
    struct events *s = state(w);
    for (int i = 0; i < w->place_count; i++) {
        ledger_release(&s->bus[i]);
        for (int t = 0; t < TENANTS; t++) {
            disconnect(&s->followers[i][t]);
            ledger_release(&s->followers[i][t].ledger);
        }
    }
    free(s);
    w->states[ACTOR_EVENTS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"the bus comes and goes", 5, NEEDS(ON_BUS), bus_comes_and_goes},
    {"somebody follows a tenant", 8, NEEDS(ON_STREAMS), follow},
    {"a follower leaves", 3, NEEDS(ON_STREAMS), leave},
    {"a follower slows down", 3, NEEDS(ON_STREAMS), slow_down},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_EVENTS = {.name = "events",
                                   .actions = ACTIONS,
                                   .begin = begin,
                                   .check = check,
                                   .finish = finish,
                                   .last = last,
                                   .free = release};
