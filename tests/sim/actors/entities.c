/* Entities: signals and updates with and without keys, timers, roll-over, migration, deletion. */
#include "sim/entities.h"

#include <stdlib.h>

static struct entity *any_entity(struct sim *w)
{
    struct entity *e = &entities_state(w)->entities[lot_below(&w->lot, ENTITIES)];
    return e->deleting ? NULL : e;
}

/* --- signals --- */

static void check_outcome(struct sim *w, struct entity *e, const struct call *c,
                          const struct inbox_call *x)
{
    int mark = x->inbox->sent[x->at].mark;
    const char *status = json_text(c->json, "status");
    const json_t *result = json_object_get(c->json, "result");
    int64_t seq = json_number(c->json, "seq");
    if (strcmp(status, "waiting") == 0)
        return;
    sim_check(w, 5, strcmp(status, mark % 3 == 0 ? "rejected" : "completed") == 0,
              "update %lld of %s is %s", (long long)seq, e->inbox.owner, status);
    sim_check(w, 5,
              mark % 3 == 0 ||
                  (json_number(result, "m") == mark && json_number(result, "s") == seq),
              "update %lld of %s has another one's result", (long long)seq, e->inbox.owner);
    sim_cover(w, "entity", status);
    if (seq > e->consumed) {
        e->consumed = seq;
        e->shown_at = c->answered;
    }
}

static void signalled(struct sim *w, struct call *c)
{
    struct inbox_call *x = c->spec.ref;
    struct entity *e = &entities_state(w)->entities[c->spec.number];
    (void)inbox_answered(w, x, c);
    sim_check(w, 5,
              call_in_doubt(c) || c->status < 300 || c->status == 422 ||
                  strcmp(c->code, "INBOX_FULL") == 0,
              "a signal to %s is answered %d %s", e->inbox.owner, c->status, c->code);
    if (c->status == 200 && x->update)
        check_outcome(w, e, c, x);
    free(x);
}

static void send(struct sim *w, bool update)
{
    char tenant[8], target[96], body[120], dedup[40] = "";
    struct entity *e = any_entity(w);
    if (e == NULL || e->inbox.count >= INBOX_MAX)
        return;
    int key = update || lot_percent(&w->lot, 60) ? lot_below(&w->lot, INBOX_KEYS) : -1;
    int variant = key >= 0 && lot_percent(&w->lot, 15);
    int mark = inbox_mark(key, variant, &entities_state(w)->marks);
    struct inbox_call spec_of = {.key = key, .variant = variant, .update = update};
    if (key >= 0)
        (void)snprintf(dedup, sizeof(dedup), ",\"dedup_key\":\"k%d\"", key);
    tenant_name(tenant, e->tenant);
    entity_target(e, target,
                  !update                    ? "/signals"
                  : lot_percent(&w->lot, 50) ? "/updates?wait_ms=0"
                                             : "/updates?wait_ms=5000");
    (void)snprintf(body, sizeof(body), "{\"name\":\"s\",\"payload\":{\"m\":%d}%s}", mark, dedup);
    struct call_spec spec = {.place = &w->places[e->inbox.place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = key >= 0,
                             .doubles = key >= 0,
                             .done = signalled,
                             .ref = inbox_send(w, &e->inbox, &spec_of, mark, 1),
                             .number = e->number};
    (void)sim_send(w, &spec);
}

static void signal_entity(struct sim *w)
{
    send(w, false);
}

static void update_entity(struct sim *w)
{
    send(w, true);
}

/* --- readers and operators --- */

static void shown(struct sim *w, struct call *c)
{
    struct entity *e = &entities_state(w)->entities[c->spec.number / 1000];
    bool same = c->spec.number % 1000 == e->incarnation && !e->deleting;
    if (c->status == 200 && same)
        entity_observe(w, e, c, c->json);
    sim_check(w, 6, c->status != 404 || !same || e->shown_at == 0 || c->sent < e->shown_at,
              "%s was shown before and is gone", e->inbox.owner);
}

static void request(struct sim *w, struct entity *e, const char *method, const char *rest,
                    const char *body, void (*done)(struct sim *w, struct call *c))
{
    char tenant[8], target[96];
    bool reads = strcmp(method, "GET") == 0;
    tenant_name(tenant, e->tenant);
    entity_target(e, target, rest);
    struct call_spec spec = {.place = &w->places[e->inbox.place],
                             .method = method,
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = !reads,
                             .doubles = false,
                             .done = done,
                             .number = e->number * 1000 + e->incarnation};
    (void)sim_send(w, &spec);
}

static void read_entity(struct sim *w)
{
    struct entity *e = any_entity(w);
    if (e != NULL)
        request(w, e, "GET", "", NULL, shown);
}

static void deleted(struct sim *w, struct call *c)
{
    struct entity *e = &entities_state(w)->entities[c->spec.number / 1000];
    sim_check(w, 5, c->status == 200 || c->status == 404, "deleting %s is answered %d %s",
              e->inbox.owner, c->status, c->code);
    sim_check(w, 5, c->status == 200 || c->tries > 1 || e->shown_at == 0,
              "%s was shown and cannot be deleted", e->inbox.owner);
    e->incarnation++;
    e->deleting = false;
    inbox_cover(w, &e->inbox);
    entity_init(w, e, e->inbox.place);
    sim_cover(w, "entity", "deleted");
}

/* Only when nothing of it is under way: then the model knows which entity each answer is about. */
static void delete_entity(struct sim *w)
{
    struct entity *e = any_entity(w);
    if (e == NULL || e->inbox.open > 0 || e->results_open > 0 || entities_state(w)->claims_open > 0)
        return;
    e->deleting = true;
    request(w, e, "DELETE", "", NULL, deleted);
}

static void migrated(struct sim *w, struct call *c)
{
    sim_check(w, 5, c->status == 200 || c->status == 404 || c->status == 409,
              "a migration is answered %d %s", c->status, c->code);
    if (c->status == 200)
        sim_cover(w, "entity", json_text(c->json, "status"));
}

/* A new version of the type, or the way there. */
static void migrate(struct sim *w)
{
    char tenant[8], target[40], body[320];
    struct entity *e = any_entity(w);
    if (e == NULL)
        return;
    if (lot_percent(&w->lot, 50)) {
        request(w, e, "POST", "/migrate", "{}", migrated);
        return;
    }
    tenant_name(tenant, e->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/entity-types/e%d", e->type);
    (void)snprintf(body, sizeof(body), "{%s,\"version\":2}", ENTITY_RULES[e->type].body);
    struct call_spec spec = {.place = &w->places[e->inbox.place],
                             .method = "PUT",
                             .target = target,
                             .tenant = tenant,
                             .body = body,
                             .retries = true};
    (void)sim_send(w, &spec);
}

static void claim(struct sim *w)
{
    entity_claim(w, sim_any_place(w));
}

/* --- the end --- */

static void unblock(struct sim *w, const struct entity *e, const json_t *entity)
{
    char tenant[8], target[96];
    tenant_name(tenant, e->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/dead-letters/%s/retry",
                   json_text(json_object_get(entity, "call"), "job_id"));
    call_free(sim_ask(w, &w->places[e->inbox.place], tenant, "POST", target, "{}"));
}

/* NULL: there is no such entity, or its server is down. */
static struct call *show(struct sim *w, struct entity *e, const char *rest)
{
    char tenant[8], target[96];
    tenant_name(tenant, e->tenant);
    entity_target(e, target, rest);
    struct call *c = sim_ask(w, &w->places[e->inbox.place], tenant, "GET", target, NULL);
    if (c != NULL && c->status == 200)
        return c;
    call_free(c);
    return NULL;
}

/* How often the entity tells what has become of the run that this result asked for. */
static int times_told(const json_t *events, int number)
{
    char key[32];
    int times = 0;
    size_t i;
    json_t *event;
    (void)snprintf(key, sizeof(key), ENTITY_START_KEY, number);
    json_array_foreach (events, i, event)
        times += strcmp(json_text(json_object_get(event, "data"), "idempotency_key"), key) == 0;
    return times;
}

/* True while a run that was asked for is neither started nor refused. */
static bool starts_wait(struct sim *w, const struct entity *e, const json_t *events)
{
    bool waits = false;
    for (int i = 0; i < entities_state(w)->result_count; i++) {
        const struct entity_result *r = &entities_state(w)->results[i];
        if (!entity_result_starts(i) || r->entity != e->number || r->incarnation != e->incarnation)
            continue;
        int times = times_told(events, i);
        sim_check(w, 3, times <= 1 && (times == 0 || r->version >= 0),
                  "result %d of %s was %s, and the run that it asks for was started %d times", i,
                  e->inbox.owner, r->version < 0 ? "refused" : "applied", times);
        waits |= times == 0 && r->version > 0;
    }
    return waits;
}

/* All events of the entity that keeps all of them; NULL: they cannot be seen. */
static struct call *all_events(struct sim *w, struct entity *e)
{
    struct call *c = ENTITY_RULES[e->type].keeps_all ? show(w, e, "/events?limit=200") : NULL;
    if (c != NULL && json_is_null(json_object_get(c->json, "next_cursor")))
        return c;
    call_free(c);
    return NULL;
}

static bool runs_wait(struct sim *w, struct entity *e)
{
    struct call *c = all_events(w, e);
    bool waits = c != NULL && starts_wait(w, e, json_object_get(c->json, "items"));
    call_free(c);
    return waits;
}

/* Nobody has sent anything that could have made it. */
static bool is_untouched(const struct entity *e)
{
    return e->inbox.count == 0 && e->incarnation == 0;
}

static bool finish_entity(struct sim *w, struct entity *e)
{
    if (is_untouched(e))
        return false;
    struct call *c = e->deleting ? NULL : show(w, e, "");
    if (c == NULL)
        return e->deleting || !w->places[e->inbox.place].up;
    entity_observe(w, e, c, c->json);
    const char *status = json_text(c->json, "status");
    bool rests = (strcmp(status, "idle") == 0 || strcmp(status, "finished") == 0) &&
                 json_array_size(json_object_get(c->json, "timers")) == 0;
    if (strcmp(status, "blocked") == 0)
        unblock(w, e, c->json);
    call_free(c);
    if (!rests)
        entity_claim(w, &w->places[e->inbox.place]);
    return !rests || runs_wait(w, e);
}

static bool finish(struct sim *w)
{
    bool waits = false;
    for (int i = 0; sim_on(w, ON_ENTITIES) && i < ENTITIES; i++)
        waits |= finish_entity(w, &entities_state(w)->entities[i]);
    return waits;
}

/* Events of a kind are numbered without gaps by this member; from 1 if all are kept. */
static void check_numbers(struct sim *w, const struct entity *e, const json_t *events,
                          const char *type, const char *member, int64_t last)
{
    int64_t before = 0;
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event) {
        if (strcmp(json_text(event, "type"), type) != 0)
            continue;
        int64_t number = json_number(json_object_get(event, "data"), member);
        bool first = before == 0 && !ENTITY_RULES[e->type].keeps_all;
        sim_check(w, 6, first || number == before + 1, "%s has %s %lld after %lld", e->inbox.owner,
                  type, (long long)number, (long long)before);
        before = number;
    }
    sim_check(w, 6, before == last || (before == 0 && !ENTITY_RULES[e->type].keeps_all),
              "the last %s of %s is %lld, not %lld", type, e->inbox.owner, (long long)before,
              (long long)last);
}

static void check_events(struct sim *w, struct entity *e, const json_t *entity)
{
    struct call *c = show(w, e, "/events?limit=200");
    if (c == NULL || !json_is_null(json_object_get(c->json, "next_cursor"))) {
        call_free(c);
        return;
    }
    const json_t *items = json_object_get(c->json, "items");
    size_t i;
    json_t *event;
    json_array_foreach (items, i, event)
        sim_cover(w, "event", json_text(event, "type"));
    check_numbers(w, e, items, "entity.signaled", "signal", json_number(entity, "last_seq"));
    check_numbers(w, e, items, "entity.handled", "version", json_number(entity, "version"));
    call_free(c);
}

static void check_generations(struct sim *w, struct entity *e, int64_t newest)
{
    struct call *c = show(w, e, "/generations?limit=200");
    size_t i;
    json_t *item;
    int64_t expected = newest;
    bool whole = c != NULL && json_is_null(json_object_get(c->json, "next_cursor"));
    const json_t *items = c != NULL ? json_object_get(c->json, "items") : NULL;
    json_array_foreach (items, i, item) {
        sim_check(w, 6, json_number(item, "generation") == expected,
                  "%s has generation %lld, not %lld", e->inbox.owner,
                  (long long)json_number(item, "generation"), (long long)expected);
        expected--;
    }
    sim_check(w, 6, !whole || !ENTITY_RULES[e->type].keeps_all || expected == 0,
              "generation %lld of %s is missing", (long long)expected, e->inbox.owner);
    call_free(c);
}

/* Everything that was acknowledged is applied. */
static void last_of(struct sim *w, struct entity *e)
{
    if (is_untouched(e))
        return;
    struct call *c = show(w, e, "");
    sim_check(w, 6, c != NULL || e->inbox.highest == 0, "%s is gone", e->inbox.owner);
    if (c == NULL)
        return;
    entity_observe(w, e, c, c->json);
    sim_check(w, 5, json_number(c->json, "inbox") == 0, "%s still has signals in its inbox",
              e->inbox.owner);
    sim_check(w, 6, json_number(c->json, "last_seq") >= e->inbox.highest, "%s has lost signal %lld",
              e->inbox.owner, (long long)e->inbox.highest);
    check_events(w, e, c->json);
    check_generations(w, e, json_number(c->json, "generation"));
    call_free(c);
}

static void last(struct sim *w)
{
    for (int i = 0; sim_on(w, ON_ENTITIES) && i < ENTITIES; i++) {
        last_of(w, &entities_state(w)->entities[i]);
        inbox_cover(w, &entities_state(w)->entities[i].inbox);
    }
}

static void check(struct sim *w)
{
    people_watch(w, &entities_state(w)->clocks);
    for (int i = 0; i < ENTITIES; i++)
        inbox_watch(w, &entities_state(w)->entities[i].inbox);
}

static void warm(struct sim *w, struct place *p)
{
    for (int i = 0; i < ENTITY_TYPES; i++) {
        char target[40], body[320];
        (void)snprintf(target, sizeof(target), "/api/v1/entity-types/e%d", i);
        (void)snprintf(body, sizeof(body), "{%s}", ENTITY_RULES[i].body);
        people_put(w, p, target, body);
    }
    people_put(w, p, "/api/v1/workflows/es",
               "{\"steps\":[{\"name\":\"a\",\"type\":\"transform\",\"output\":{\"x\":1}}]}");
}

static void begin(struct sim *w)
{
    struct entities *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    w->states[ACTOR_ENTITIES_NUMBER] = s;
    int tenant = lot_below(&w->lot, TENANTS);
    for (int i = 0; i < ENTITIES; i++) {
        struct entity *e = &s->entities[i];
        /* A tenant's stream that was away misses the events of generations that were removed. */
        int type = sim_on(w, ON_STREAMS) ? KEEPS_ALL : i % ENTITY_TYPES;
        *e = (struct entity){.number = i, .type = type, .tenant = tenant};
        (void)snprintf(e->id, sizeof(e->id), "x%d", i);
        entity_init(w, e, lot_below(&w->lot, w->place_count));
    }
}

static void release(struct sim *w)
{
    for (int i = 0; i < ENTITY_CALLS_MAX; i++)
        free(entities_state(w)->calls[i].result);
    free(entities_state(w));
    w->states[ACTOR_ENTITIES_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"an entity is signalled", 24, NEEDS(ON_ENTITIES), signal_entity},
    {"an entity is updated", 8, NEEDS(ON_ENTITIES), update_entity},
    {"somebody reads an entity", 5, NEEDS(ON_ENTITIES), read_entity},
    {"a worker calls for entities", 24, NEEDS(ON_ENTITIES), claim},
    {"a slow worker of an entity answers", 5, NEEDS(ON_ENTITIES) | NEEDS(ON_WORKERS),
     entity_late_result},
    {"an entity is deleted", 2, NEEDS(ON_ENTITIES), delete_entity},
    {"an entity migrates", 4, NEEDS(ON_ENTITIES) | NEEDS(ON_VERSIONS), migrate},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_ENTITIES = {.name = "entities",
                                     .actions = ACTIONS,
                                     .warm = warm,
                                     .begin = begin,
                                     .check = check,
                                     .finish = finish,
                                     .last = last,
                                     .free = release};
