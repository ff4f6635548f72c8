/* Starts of runs, and their keys: replayed, mistaken, looked up and released. */
#include "sim/once_calls.h"
#include "sim/runs.h"

#include <stdlib.h>

enum { KEYS = 12, VARIANTS = 2 };

/* A key that clients start runs with: a register of the run that it made. The class of a start is
 * the variant of its body, and one more. */
struct start_key {
    int place, tenant;
    struct once run;
};

struct starts {
    struct start_key keys[KEYS];
};

/* A call that concerns a key: which, and as what. */
struct key_call {
    struct start_key *key;
    int op;
    int variant;
};

static struct starts *state(struct sim *w)
{
    return w->states[ACTOR_STARTS_NUMBER];
}

/* --- keys --- */

static struct key_call *key_call_new(struct sim *w, struct start_key *k, int does)
{
    struct key_call *x = calloc(1, sizeof(*x));
    assert(x != NULL);
    *x = (struct key_call){.key = k, .variant = does - 1};
    x->op = once_sent(&k->run, w->clock + 1, does);
    return x;
}

static void check_key(struct sim *w, bool ok, const struct call *c)
{
    sim_check(w, 1, ok, "no order of the requests with key %s explains the answer %d %s %s%s%s",
              c->spec.key != NULL ? c->spec.key : c->spec.target, c->status, c->code,
              json_text(c->json, "run_id"), c->replayed ? " replayed" : "",
              json_is_true(json_object_get(c->json, "created")) ? " created" : "");
}

static void found(struct sim *w, const struct call *c, const struct key_call *x, unsigned classes)
{
    check_key(
        w, once_found(&x->key->run, x->op, c->answered, classes, json_text(c->json, "run_id")), c);
}

static void won(struct sim *w, const struct call *c, const struct key_call *x)
{
    check_key(w, once_won(&x->key->run, x->op, c->answered, json_text(c->json, "run_id")), c);
}

/* --- starts --- */

static void start_answered(struct sim *w, const struct call *c, const struct key_call *x)
{
    unsigned same = ONCE_IS(x->variant + 1);
    if (c->status == 200 && json_is_true(json_object_get(c->json, "created")))
        won(w, c, x);
    else if (c->status == 200)
        found(w, c, x, same);
    else if (strcmp(c->code, "IDEMPOTENCY_KEY_REUSED") == 0)
        found(w, c, x, ONCE_VALUES_BUT(same));
    else
        found(w, c, x, ONCE_IS(ONCE_NOTHING)); /* whoever knows the key gets its run */
}

static void started(struct sim *w, struct call *c)
{
    struct key_call *x = c->spec.ref;
    if (c->status == 200) {
        sim_check(w, 1, strlen(json_text(c->json, "run_id")) == RUN_ID_LEN,
                  "a start without a run_id");
        sim_check(w, 1, !c->replayed || !json_is_true(json_object_get(c->json, "created")),
                  "a replay says created");
        if (!c->replayed)
            (void)runs_observe(w, c, json_object_get(c->json, "run"));
    }
    if (x == NULL)
        return;
    if (call_in_doubt(c)) {
        once_call_lost(w, &x->key->run, x->op, c);
    } else {
        once_call_repeated(&x->key->run, x->op, c);
        start_answered(w, c, x);
    }
    free(x);
}

static void start(struct sim *w)
{
    char tenant[8], target[80], key[40], body[80];
    int n = lot_below(&w->lot, KEYS);
    struct start_key *k = lot_percent(&w->lot, 80) ? &state(w)->keys[n] : NULL;
    struct place *p = k != NULL ? &w->places[k->place] : sim_any_place(w);
    int t = k != NULL ? k->tenant : lot_below(&w->lot, TENANTS);
    int variant = lot_percent(&w->lot, 90) ? 0 : 1;
    tenant_name(tenant, t);
    (void)snprintf(key, sizeof(key), "key-%d", n);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/w%d/runs", n % RUNS_WORKFLOWS);
    (void)snprintf(body, sizeof(body), "{\"input\":{\"n\":%d}}", variant);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .key = k != NULL ? key : NULL,
                             .body = body,
                             .retries = k != NULL && lot_percent(&w->lot, 80),
                             .doubles = k != NULL,
                             .done = started,
                             .ref = k != NULL ? key_call_new(w, k, variant + 1) : NULL};
    (void)sim_send(w, &spec);
}

/* --- records of keys --- */

static void key_done(struct sim *w, struct call *c)
{
    struct key_call *x = c->spec.ref;
    bool releases = strcmp(c->spec.method, "DELETE") == 0;
    if (call_in_doubt(c)) {
        once_call_lost(w, &x->key->run, x->op, c);
    } else {
        once_call_repeated(&x->key->run, x->op, c);
        sim_check(w, 1, c->status == 200 || c->status == 404, "%s of %s is answered %d %s",
                  c->spec.method, c->spec.target, c->status, c->code);
        if (c->status == 404)
            found(w, c, x, ONCE_IS(ONCE_NOTHING));
        else if (releases)
            won(w, c, x);
        else
            found(w, c, x, ONCE_VALUES_BUT(0));
    }
    if (releases && c->status == 200)
        sim_cover(w, "state", "key released");
    free(x);
}

static void ask_for_key(struct sim *w, const char *method)
{
    char tenant[8], target[64];
    int n = lot_below(&w->lot, KEYS);
    struct start_key *k = &state(w)->keys[n];
    bool releases = strcmp(method, "DELETE") == 0;
    tenant_name(tenant, k->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/idempotency-keys/key-%d", n);
    struct call_spec spec = {.place = &w->places[k->place],
                             .method = method,
                             .target = target,
                             .tenant = tenant,
                             .retries = lot_percent(&w->lot, 50),
                             .done = key_done,
                             .ref = key_call_new(w, k, releases ? ONCE_CLEARS : ONCE_READS)};
    (void)sim_send(w, &spec);
}

static void read_key(struct sim *w)
{
    ask_for_key(w, "GET");
}

static void release_key(struct sim *w)
{
    ask_for_key(w, "DELETE");
}

/* --- the model --- */

/* Each key still answers as it did. */
static void last(struct sim *w)
{
    for (int n = 0; n < KEYS; n++) {
        struct start_key *k = &state(w)->keys[n];
        char tenant[8], target[64];
        if (once_is_unused(&k->run))
            continue;
        tenant_name(tenant, k->tenant);
        (void)snprintf(target, sizeof(target), "/api/v1/idempotency-keys/key-%d", n);
        bool used = k->run.next_number > 1;
        int op = once_sent(&k->run, w->clock + 1, ONCE_READS);
        struct call *c = sim_ask(w, &w->places[k->place], tenant, "GET", target, NULL);
        sim_check(w, 0, c != NULL, "server %d went down although nothing is wrong", k->place);
        unsigned classes = c->status == 404 ? ONCE_IS(ONCE_NOTHING) : ONCE_VALUES_BUT(0);
        check_key(w, once_found(&k->run, op, c->answered, classes, json_text(c->json, "run_id")),
                  c);
        call_free(c);
        if (used)
            once_cover(w, &k->run, "key of a start");
    }
}

static void begin(struct sim *w)
{
    struct starts *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_STARTS_NUMBER] = s;
    for (int i = 0; i < KEYS; i++) {
        s->keys[i].place = lot_below(&w->lot, w->place_count);
        s->keys[i].tenant = lot_below(&w->lot, TENANTS);
        once_init(&s->keys[i].run);
    }
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_STARTS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"a client starts a run", 60, 0, start},
    {"somebody looks up a key", 6, 0, read_key},
    {"an operator releases a key", 4, NEEDS(ON_KEYS), release_key},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_STARTS = {
    .name = "starts", .actions = ACTIONS, .begin = begin, .last = last, .free = release};
