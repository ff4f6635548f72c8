/* Operators: settings and their history, retention, schedules, repairs. */
#include "sim/runs.h"

#include <stdlib.h>

/* A schedule that fires every minute. */
struct schedule {
    bool asked;        /* it may exist */
    bool put;          /* acknowledged */
    bool over;         /* its deletion is acknowledged */
    int triggers;      /* that may have started a run */
    int64_t first_min; /* the earliest and the latest minute that its server has seen since */
    int64_t last_min;
};

struct operators {
    struct schedule schedules[PLACES_MAX][TENANTS];
};

static struct operators *state(struct sim *w)
{
    return w->states[ACTOR_OPERATORS_NUMBER];
}

/* --- settings --- */

/* What a tenant's settings were in a version, as their history shows it; NULL: it does not. */
static const json_t *settings_of(const json_t *history, int64_t version)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(history, "items"), i, item) {
        if (json_number(item, "version") == version)
            return json_object_get(item, "settings");
    }
    return NULL;
}

/* A rollback makes a version with the settings before the last ones, or none if they are equal. */
static void check_rollback(struct sim *w, const struct call *c)
{
    char target[80];
    int64_t version = json_number(c->json, "settings_version");
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s/settings?limit=50",
                   json_text(c->json, "id"));
    struct call *list = sim_ask(w, c->spec.place, NULL, "GET", target, NULL);
    const json_t *history = list != NULL ? list->json : NULL;
    const json_t *now = settings_of(history, version);
    const json_t *last = settings_of(history, version - 1);
    const json_t *before = settings_of(history, version - 2);
    if (!c->replayed && now != NULL && last != NULL && before != NULL)
        sim_check(w, 0, json_equal(now, before) || json_equal(now, last),
                  "version %lld of the settings of %s is not what version %lld was",
                  (long long)version, json_text(c->json, "id"), (long long)version - 2);
    call_free(list);
}

static void rolled_back(struct sim *w, struct call *c)
{
    int tenant = (int)c->spec.number;
    int64_t limit = runs_limit(w, c->spec.place->number, tenant);
    if (c->status == 200) {
        check_rollback(w, c);
        const json_t *value = json_object_get(c->json, "max_concurrent_runs");
        limit = json_is_integer(value) ? json_integer_value(value) : -1;
    }
    runs_limit_is(w, c->spec.place->number, tenant, limit);
}

static void roll_back(struct sim *w)
{
    struct place *p = sim_any_place(w);
    char tenant[8], target[64], key[32];
    int t = lot_below(&w->lot, TENANTS);
    if (!runs_limit_changes(w, p->number, t, -1))
        return;
    tenant_name(tenant, t);
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s/rollback", tenant);
    (void)snprintf(key, sizeof(key), "rollback-%d", w->step);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = target,
                             .key = key,
                             .body = "{}",
                             .retries = true,
                             .doubles = true,
                             .done = rolled_back,
                             .number = t};
    (void)sim_send(w, &spec);
}

static void set_retention(struct sim *w)
{
    struct place *p = sim_any_place(w);
    char tenant[8], target[64], body[64];
    int t = lot_below(&w->lot, TENANTS);
    tenant_name(tenant, t);
    (void)snprintf(target, sizeof(target), "/api/v1/tenants/%s", tenant);
    (void)snprintf(body, sizeof(body), "{\"run_retention_s\":%d}", 30 * lot_below(&w->lot, 4));
    runs_may_be_removed(w, p->number, t);
    struct call_spec spec = {
        .place = p, .method = "PUT", .target = target, .body = body, .retries = true};
    (void)sim_send(w, &spec);
}

/* --- schedules --- */

static int64_t minute_of(const struct place *p)
{
    return (fibers_now_ns() / 1000 + p->skew_us) / 60000000;
}

static void schedule_made(struct sim *w, struct call *c)
{
    (void)w;
    struct schedule *s = c->spec.ref;
    s->put |= c->status == 200;
}

static void put_schedule(struct sim *w)
{
    struct place *p = sim_any_place(w);
    int t = lot_below(&w->lot, TENANTS);
    struct schedule *s = &state(w)->schedules[p->number][t];
    if (s->over) /* a deleted one is not made again: its keys are */
        return;
    char tenant[8];
    tenant_name(tenant, t);
    if (!s->asked)
        s->first_min = s->last_min = minute_of(p);
    s->asked = true;
    struct call_spec spec = {.place = p,
                             .method = "PUT",
                             .target = "/api/v1/schedules/s",
                             .tenant = tenant,
                             .body = "{\"workflow_id\":\"w1\",\"cron\":\"* * * * *\","
                                     "\"overlap\":\"allow\"}",
                             .retries = true,
                             .done = schedule_made,
                             .ref = s};
    (void)sim_send(w, &spec);
}

static void trigger(struct sim *w)
{
    struct place *p = sim_any_place(w);
    int t = lot_below(&w->lot, TENANTS);
    struct schedule *s = &state(w)->schedules[p->number][t];
    if (!s->put)
        return;
    char tenant[8], key[32];
    tenant_name(tenant, t);
    (void)snprintf(key, sizeof(key), "trigger-%d", w->step);
    s->triggers++;
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = "/api/v1/schedules/s/trigger",
                             .tenant = tenant,
                             .key = key,
                             .retries = true,
                             .doubles = true};
    (void)sim_send(w, &spec);
}

static void schedule_deleted(struct sim *w, struct call *c)
{
    struct schedule *s = c->spec.ref;
    sim_check(w, 0, c->status < 300 || c->status == 404, "a schedule cannot be deleted: %d %s",
              c->status, c->code);
    s->over = true;
}

static void delete_schedule(struct sim *w, struct place *p, int t)
{
    struct schedule *s = &state(w)->schedules[p->number][t];
    char tenant[8];
    tenant_name(tenant, t);
    struct call_spec spec = {.place = p,
                             .method = "DELETE",
                             .target = "/api/v1/schedules/s",
                             .tenant = tenant,
                             .retries = true,
                             .done = schedule_deleted,
                             .ref = s};
    (void)sim_send(w, &spec);
}

/* How many runs of a list were created in the same minute as a later one of it. */
static int64_t count_doubles(const json_t *runs)
{
    enum { MINUTE_LEN = 16 }; /* 2027-01-15T08:00 */
    int64_t doubles = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const char *at = json_text(json_array_get(runs, i), "created_at");
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = strncmp(at, json_text(json_array_get(runs, k), "created_at"), MINUTE_LEN) == 0;
        doubles += again;
    }
    return doubles;
}

/* A rerun has the labels of its run, but no schedule started it. */
static void leave_reruns_out(json_t *runs)
{
    for (size_t i = json_array_size(runs); i-- > 0;) {
        if (json_object_get(json_array_get(runs, i), "rerun_of") != NULL)
            (void)json_array_remove(runs, i);
    }
}

static void check(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        int64_t minute = minute_of(&w->places[i]);
        for (int t = 0; t < TENANTS; t++) {
            struct schedule *s = &state(w)->schedules[i][t];
            s->first_min = MIN(s->first_min, minute);
            s->last_min = MAX(s->last_min, minute);
        }
    }
}

/* At most one run for each minute that the server's clock may have shown, and for each trigger. A
 * time that is ten seconds past is missed, so its run is created in its minute. */
static void audit_schedule(struct sim *w, struct place *p, int t)
{
    const struct schedule *s = &state(w)->schedules[p->number][t];
    char tenant[8];
    tenant_name(tenant, t);
    if (!s->asked)
        return;
    struct call *c = sim_ask(w, p, tenant, "GET", "/api/v1/runs?limit=200&label=schedule:s", NULL);
    check(w); /* time may have passed: see place_http_now() */
    if (c != NULL && c->status == 200) {
        json_t *items = json_object_get(c->json, "items");
        leave_reruns_out(items);
        int64_t runs = (int64_t)json_array_size(items);
        int64_t minutes = s->last_min - s->first_min + 1;
        sim_check(w, 1, runs <= minutes + s->triggers,
                  "a schedule of %s has started %lld runs in %lld minutes with %d triggers", tenant,
                  (long long)runs, (long long)minutes, s->triggers);
        int64_t doubles = count_doubles(items);
        sim_check(w, 1, doubles <= s->triggers,
                  "a schedule of %s has started %lld runs too many with %d triggers", tenant,
                  (long long)doubles, s->triggers);
        if (runs > 0)
            sim_cover(w, "event", "schedule fired");
    }
    call_free(c);
}

/* --- repairs --- */

/* A repair of a sound store changes nothing that anybody can see: the other checks go on. */
static void repair(struct sim *w)
{
    struct call_spec spec = {
        .place = sim_any_place(w), .method = "POST", .target = "/api/v1/doctor/repair"};
    (void)sim_send(w, &spec);
}

/* --- life --- */

static void audit(struct sim *w)
{
    for (int i = 0; i < w->place_count; i++) {
        for (int t = 0; t < TENANTS; t++)
            audit_schedule(w, &w->places[i], t);
    }
}

static bool finish(struct sim *w)
{
    bool waits = false;
    for (int i = 0; i < w->place_count; i++) {
        for (int t = 0; t < TENANTS; t++) {
            const struct schedule *s = &state(w)->schedules[i][t];
            if (!s->asked || s->over)
                continue;
            delete_schedule(w, &w->places[i], t);
            waits = true;
        }
    }
    return waits;
}

static void begin(struct sim *w)
{
    w->states[ACTOR_OPERATORS_NUMBER] = calloc(1, sizeof(struct operators));
    assert(state(w) != NULL);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_OPERATORS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"settings are rolled back", 4, NEEDS(ON_SETTINGS), roll_back},
    {"retention is set", 4, NEEDS(ON_RETENTION), set_retention},
    {"a schedule is put", 4, NEEDS(ON_SCHEDULES), put_schedule},
    {"a schedule is triggered", 3, NEEDS(ON_SCHEDULES), trigger},
    {"the store is repaired", 1, 0, repair},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_OPERATORS = {.name = "operators",
                                      .actions = ACTIONS,
                                      .begin = begin,
                                      .check = check,
                                      .audit = audit,
                                      .finish = finish,
                                      .free = release};
