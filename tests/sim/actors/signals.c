/* Signals to runs: early, late, repeated, mistaken, and with several steps that wait for them. */
#include "sim/inbox.h"

#include <stdlib.h>

enum { WINDOW_S = 900, WINDOW_DEFAULT_S = 259200, KEYS_DEFAULT = 10000, STEPS = 3 };

enum { GO = 1, STOP = 2 }; /* names, as bits */

/* Workflows "s0" …, and the names that their steps "a", "b", "c" wait for. */
static const struct waiting {
    int names[STEPS];
    bool all;    /* step "a" waits for all of its names */
    bool window; /* keys are forgotten after WINDOW_S, not after the default */
    const char *body;
} WAITING[] = {
    {.names = {GO},
     .body = "{\"steps\":[{\"name\":\"a\",\"type\":\"wait_signal\",\"signal\":\"go\"}]}"},
    {.names = {GO, GO},
     .window = true,
     .body = "{\"signals\":{\"dedup_window_s\":900},\"steps\":["
             "{\"name\":\"s\",\"type\":\"sleep\",\"duration_ms\":5000},"
             "{\"name\":\"a\",\"type\":\"wait_signal\",\"signal\":\"go\"},"
             "{\"name\":\"b\",\"type\":\"wait_signal\",\"signal\":\"go\"}]}"},
    {.names = {GO | STOP},
     .body = "{\"steps\":[{\"name\":\"a\",\"type\":\"wait_signal\",\"signal\":[\"go\",\"stop\"],"
             "\"timeout_ms\":120000}]}"},
    {.names = {GO, GO, STOP},
     .body = "{\"steps\":["
             "{\"name\":\"a\",\"type\":\"wait_signal\",\"signal\":\"go\",\"needs\":[]},"
             "{\"name\":\"b\",\"type\":\"wait_signal\",\"signal\":\"go\",\"needs\":[]},"
             "{\"name\":\"c\",\"type\":\"wait_signal\",\"signal\":\"stop\",\"needs\":[\"a\"]}]}"},
    {.names = {GO | STOP, GO},
     .all = true,
     .body = "{\"steps\":[{\"name\":\"a\",\"type\":\"wait_signal\",\"signal\":[\"go\",\"stop\"],"
             "\"wait_for\":\"all\"},{\"name\":\"b\",\"type\":\"wait_signal\",\"signal\":\"go\"}]}"},
};

struct signal_run {
    char id[RUN_ID_LEN + 1];
    const struct waiting *waiting;
    struct inbox inbox;
    struct signal_run *next;
};

struct signals {
    struct signal_run *first;
    int tenant;
    int marks;
    struct wall_clocks clocks;
};

static struct signals *state(struct sim *w)
{
    return w->states[ACTOR_SIGNALS_NUMBER];
}

/* --- runs that wait --- */

static void add_run(struct sim *w, const struct call *c)
{
    struct signal_run *r = calloc(1, sizeof(*r));
    assert(r != NULL);
    (void)snprintf(r->id, sizeof(r->id), "%s", json_text(c->json, "run_id"));
    r->waiting = &WAITING[c->spec.number];
    int64_t window_s = r->waiting->window ? WINDOW_S : WINDOW_DEFAULT_S;
    inbox_init(&r->inbox, &state(w)->clocks, r->id, c->spec.place->number, window_s * 1000,
               KEYS_DEFAULT);
    r->next = state(w)->first;
    state(w)->first = r;
}

static void started(struct sim *w, struct call *c)
{
    if (c->status != 200)
        return;
    if (!c->replayed)
        (void)runs_observe(w, c, json_object_get(c->json, "run"));
    add_run(w, c);
}

static void start(struct sim *w)
{
    char tenant[8], target[64], key[32];
    int n = lot_below(&w->lot, (int)ARRAY_LEN(WAITING));
    (void)snprintf(key, sizeof(key), "waits-%lld", (long long)w->clock);
    tenant_name(tenant, state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/s%d/runs", n);
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .key = key,
                             .body = "{}",
                             .retries = true,
                             .doubles = true,
                             .done = started,
                             .number = n};
    (void)sim_send(w, &spec);
}

static struct signal_run *any_run(struct sim *w)
{
    struct signal_run *found = state(w)->first;
    int count = 0;
    if (lot_percent(&w->lot, 60))
        return found;
    for (struct signal_run *r = found; r != NULL; r = r->next) {
        if (lot_below(&w->lot, ++count) == 0)
            found = r;
    }
    return found;
}

/* --- senders --- */

static void signalled(struct sim *w, struct call *c)
{
    struct inbox_call *x = c->spec.ref;
    (void)inbox_answered(w, x, c);
    sim_check(w, 5,
              call_in_doubt(c) || c->status == 200 || strcmp(c->code, "RUN_IS_OVER") == 0 ||
                  strcmp(c->code, "IDEMPOTENCY_KEY_REUSED") == 0 ||
                  (c->status == 404 && sim_on(w, ON_RETENTION)),
              "a signal to run %s is answered %d %s", x->inbox->owner, c->status, c->code);
    free(x);
}

static void send_signal(struct sim *w, struct signal_run *r, int name, int key)
{
    char tenant[8], target[80], body[120], dedup[40] = "";
    int variant = key >= 0 && lot_percent(&w->lot, 15);
    int mark = inbox_mark(key, variant, &state(w)->marks);
    struct inbox_call spec_of = {.key = key, .variant = variant};
    if (key >= 0)
        (void)snprintf(dedup, sizeof(dedup), ",\"dedup_key\":\"k%d\"", key);
    tenant_name(tenant, state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/signals", r->id);
    (void)snprintf(body, sizeof(body), "{\"name\":\"%s\",\"payload\":{\"m\":%d}%s}",
                   name == GO ? "go" : "stop", mark, dedup);
    struct call_spec spec = {.place = &w->places[r->inbox.place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = key >= 0,
                             .doubles = key >= 0,
                             .done = signalled,
                             .ref = inbox_send(w, &r->inbox, &spec_of, mark, name)};
    (void)sim_send(w, &spec);
}

static void send(struct sim *w)
{
    struct signal_run *r = any_run(w);
    if (r == NULL) {
        start(w);
        return;
    }
    if (r->inbox.count >= INBOX_MAX - 8) /* the end needs some */
        return;
    int key = lot_percent(&w->lot, 60) ? lot_below(&w->lot, INBOX_KEYS) : -1;
    /* A key belongs to one name: another would be another signal. */
    int name =
        key >= 0 ? (key == INBOX_KEYS - 1 ? STOP : GO) : (lot_percent(&w->lot, 75) ? GO : STOP);
    send_signal(w, r, name, key);
}

/* --- what became of them --- */

/* A step has this payload: it must be of a signal that was sent, and of no other step. */
static void consume(struct sim *w, struct signal_run *r, const json_t *payload, int names)
{
    const struct inbox_signal *s = inbox_consume(w, &r->inbox, json_number(payload, "m"), 0);
    sim_check(w, 5, (s->name & names) != 0, "run %s got signal %d under another name", r->id,
              s->mark);
}

static void consume_output(struct sim *w, struct signal_run *r, const json_t *output, int names)
{
    if (json_object_get(output, "payload") != NULL) {
        consume(w, r, json_object_get(output, "payload"), names);
        return;
    }
    consume(w, r, json_object_get(json_object_get(output, "go"), "payload"), GO);
    consume(w, r, json_object_get(json_object_get(output, "stop"), "payload"), STOP);
}

/* The lowest number of this name that no step has got; 0: none is known. */
static int64_t lowest_left(const struct signal_run *r, int names)
{
    int64_t lowest = 0;
    for (int i = 0; i < r->inbox.count; i++) {
        const struct inbox_signal *s = &r->inbox.sent[i];
        if (s->seq > 0 && !s->consumed && (s->name & names) != 0 &&
            (lowest == 0 || s->seq < lowest))
            lowest = s->seq;
    }
    return lowest;
}

/* Signals of a name are given out in their order. Of one that was repeated, the step may have got
 * another than the one whose number was answered. */
static void check_order(struct sim *w, const struct signal_run *r)
{
    for (int i = 0; i < r->inbox.count; i++) {
        const struct inbox_signal *s = &r->inbox.sent[i];
        int64_t left = lowest_left(r, s->name);
        if (inbox_may_be_repeated(w, &r->inbox, s->mark))
            continue;
        sim_check(w, 5, !s->consumed || s->seq == 0 || left == 0 || s->seq < left,
                  "run %s got signal %lld before %lld", r->id, (long long)s->seq, (long long)left);
    }
}

/* What a step waits for is not among what was acknowledged. */
static void check_step(struct sim *w, const struct signal_run *r, const json_t *step, int at)
{
    const char *status = json_text(step, "status");
    bool waits = strcmp(status, "scheduled") == 0 || strcmp(status, "failed") == 0 ||
                 strcmp(status, "timed_out") == 0;
    if (!waits || (at == 0 && r->waiting->all))
        return;
    sim_check(w, 5, lowest_left(r, r->waiting->names[at]) == 0,
              "step %s of run %s is %s, but signal %lld was acknowledged and is left",
              json_text(step, "name"), r->id, status,
              (long long)lowest_left(r, r->waiting->names[at]));
}

static void check_steps(struct sim *w, struct signal_run *r, const json_t *run)
{
    size_t i;
    json_t *step;
    inbox_consume_none(&r->inbox);
    json_array_foreach (json_object_get(run, "steps"), i, step) {
        int at = json_text(step, "name")[0] - 'a';
        if (at < STEPS && strcmp(json_text(step, "status"), "succeeded") == 0)
            consume_output(w, r, json_object_get(step, "output"), r->waiting->names[at]);
    }
    check_order(w, r);
    json_array_foreach (json_object_get(run, "steps"), i, step) {
        int at = json_text(step, "name")[0] - 'a';
        if (at < STEPS)
            check_step(w, r, step, at);
    }
}

static struct call *show(struct sim *w, const struct signal_run *r)
{
    char tenant[8], target[64];
    tenant_name(tenant, state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", r->id);
    return people_ask(w, &w->places[r->inbox.place], tenant, target);
}

/* --- the end --- */

/* Sends what is still missing. */
static bool finish(struct sim *w)
{
    bool waits = false;
    for (struct signal_run *r = state(w)->first; r != NULL; r = r->next) {
        struct call *c = r->inbox.open == 0 ? show(w, r) : NULL;
        waits |= !w->places[r->inbox.place].up;
        if (c == NULL)
            continue;
        bool over = run_status_is_over(json_text(c->json, "status"));
        check_steps(w, r, c->json);
        call_free(c);
        for (int name = GO; !over && name <= STOP && r->inbox.count < INBOX_MAX; name++) {
            if (lowest_left(r, name) == 0)
                send_signal(w, r, name, -1);
        }
        waits |= !over;
    }
    return waits;
}

static void last(struct sim *w)
{
    for (struct signal_run *r = state(w)->first; r != NULL; r = r->next) {
        struct call *c = show(w, r);
        inbox_cover(w, &r->inbox);
        if (c == NULL)
            continue;
        check_steps(w, r, c->json);
        sim_cover(w, "signalled run", json_text(c->json, "status"));
        call_free(c);
    }
}

static void check(struct sim *w)
{
    people_watch(w, &state(w)->clocks);
    for (struct signal_run *r = state(w)->first; r != NULL; r = r->next)
        inbox_watch(w, &r->inbox);
}

static void warm(struct sim *w, struct place *p)
{
    for (int i = 0; i < (int)ARRAY_LEN(WAITING); i++) {
        char target[40];
        (void)snprintf(target, sizeof(target), "/api/v1/workflows/s%d", i);
        people_put(w, p, target, WAITING[i].body);
    }
}

static void begin(struct sim *w)
{
    struct signals *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    s->tenant = lot_below(&w->lot, TENANTS);
    w->states[ACTOR_SIGNALS_NUMBER] = s;
}

static void release(struct sim *w)
{
    struct signals *s = state(w);
    while (s->first != NULL) {
        struct signal_run *r = s->first;
        s->first = r->next;
        free(r);
    }
    free(s);
    w->states[ACTOR_SIGNALS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a run begins that waits for signals", 6, NEEDS(ON_SIGNALS), start},
    {"a run is signalled", 28, NEEDS(ON_SIGNALS), send},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_SIGNALS = {.name = "signals",
                                    .actions = ACTIONS,
                                    .warm = warm,
                                    .begin = begin,
                                    .check = check,
                                    .finish = finish,
                                    .last = last,
                                    .free = release};
