/* API keys: made, used and revoked. A key that was acknowledged works until somebody revokes it,
 * through every crash; once that is acknowledged, it never works again. */
#include "sim/actors/script.h"
#include "sim/runs.h"

#include <stdlib.h>

enum { KEYS_MAX = 12, WAIT_MS = 30 * 1000 };

enum key_role { VIEWER, WORKER, OPERATOR, ROLES };

static const char *const ROLE_NAMES[ROLES] = {"viewer", "worker", "operator"};

/* Times are by sim.clock; 0: not yet. */
struct api_key {
    char id[40];
    char secret[80];
    int place;
    int tenant;
    enum key_role role;
    int64_t revoking; /* somebody has asked for it */
    int64_t revoked;  /* acknowledged */
};

struct api_keys {
    struct api_key keys[KEYS_MAX];
    int count;
    bool asked; /* at the end */
};

static struct api_keys *state(struct sim *w)
{
    return w->states[ACTOR_API_KEYS_NUMBER];
}

static struct api_key *any_key(struct sim *w)
{
    struct api_keys *s = state(w);
    return s->count > 0 ? &s->keys[lot_below(&w->lot, s->count)] : NULL;
}

/* --- making --- */

static void made(struct sim *w, struct call *c)
{
    struct api_keys *s = state(w);
    if (c->status != 200 || s->count == KEYS_MAX)
        return;
    struct api_key *k = &s->keys[s->count++];
    *k = (struct api_key){.place = c->spec.place->number,
                          .tenant = (int)(c->spec.number / ROLES),
                          .role = (enum key_role)(c->spec.number % ROLES)};
    (void)snprintf(k->id, sizeof(k->id), "%s", json_text(c->json, "id"));
    (void)snprintf(k->secret, sizeof(k->secret), "%s", json_text(c->json, "key"));
}

static void make(struct sim *w)
{
    char tenant[8], body[80];
    int number = lot_below(&w->lot, TENANTS * ROLES);
    tenant_name(tenant, number / ROLES);
    (void)snprintf(body, sizeof(body), "{\"tenant\":\"%s\",\"role\":\"%s\"}", tenant,
                   ROLE_NAMES[number % ROLES]);
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = "POST",
                             .target = "/api/v1/keys",
                             .body = body,
                             .done = made,
                             .number = number};
    (void)sim_send(w, &spec);
}

/* --- using --- */

/* What the holder asks for. */
enum wish { READS, READS_OF_ANOTHER, CLAIMS, REQUESTS };

static bool may(const struct api_key *k, enum wish what)
{
    return what == READS || (what == CLAIMS && k->role != VIEWER);
}

static void used(struct sim *w, struct call *c)
{
    const struct api_key *k = c->spec.ref;
    enum wish what = (enum wish)c->spec.number;
    bool refused = c->status == 401 || strcmp(c->code, "TOO_MANY_FAILED_LOGINS") == 0;
    if (c->status == 0 || c->status >= 500)
        return;
    sim_check(w, 6, k->revoked == 0 || c->sent < k->revoked || refused,
              "key %s was revoked, and a request with it is answered %d", k->id, c->status);
    /* A key that the server has not seen since its start waits while others of its address guess.
     */
    sim_check(w, 6, k->revoking != 0 || c->status != 401, "key %s was made, and is answered 401",
              k->id);
    sim_check(w, 0, refused || c->status == (may(k, what) ? 200 : 403),
              "a request of a %s is answered %d %s", ROLE_NAMES[k->role], c->status, c->code);
    sim_cover(w, "api key", refused ? "refused" : c->status == 200 ? "accepted" : "forbidden");
}

static void send(struct sim *w, struct api_key *k, enum wish what)
{
    char tenant[8], body[96];
    tenant_name(tenant, (k->tenant + (what == READS_OF_ANOTHER)) % TENANTS);
    (void)snprintf(body, sizeof(body),
                   "{\"worker_id\":\"k\",\"queues\":[\"nobody\"],\"wait_ms\":%d}",
                   lot_percent(&w->lot, 50) && !w->calm ? WAIT_MS : 0);
    struct call_spec spec = {.place = &w->places[k->place],
                             .method = what == CLAIMS ? "POST" : "GET",
                             .target =
                                 what == CLAIMS ? "/api/v1/jobs/claim" : "/api/v1/runs?limit=1",
                             .tenant = tenant,
                             .api_key = k->secret,
                             .body = what == CLAIMS ? body : NULL,
                             .done = used,
                             .ref = k,
                             .number = what};
    (void)sim_send(w, &spec);
}

static void use(struct sim *w)
{
    struct api_key *k = any_key(w);
    if (k != NULL)
        send(w, k, (enum wish)lot_below(&w->lot, REQUESTS));
}

/* --- revoking --- */

static void revoked(struct sim *w, struct call *c)
{
    struct api_key *k = c->spec.ref;
    sim_check(w, 6, c->status == 0 || c->status == 200, "revoking key %s is answered %d %s", k->id,
              c->status, c->code);
    if (c->status == 200)
        k->revoked = c->answered;
}

static void revoke(struct sim *w)
{
    char tenant[8], target[64];
    struct api_key *k = any_key(w);
    if (k == NULL || k->revoking != 0)
        return;
    k->revoking = w->clock + 1;
    tenant_name(tenant, k->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/keys/%s", k->id);
    struct call_spec spec = {.place = &w->places[k->place],
                             .method = "DELETE",
                             .target = target,
                             .tenant = lot_percent(&w->lot, 50) ? tenant : "*",
                             .retries = true,
                             .doubles = true,
                             .done = revoked,
                             .ref = k};
    (void)sim_send(w, &spec);
}

/* Does a request with this key wait? */
static bool is_waiting(const struct sim *w, const struct api_key *k)
{
    for (const struct call *c = w->calls; c != NULL; c = c->next) {
        if (c->spec.ref == k && c->spec.done == used && c->state == CALL_AT_SERVER)
            return !c->x->answered && !c->x->cut;
    }
    return false;
}

/* A key is revoked while its holder waits for a job. */
static void revoke_waiting(struct sim *w)
{
    struct place *p = script_place(w);
    struct api_keys *s = state(w);
    char target[64];
    struct api_key new = {.role = WORKER};
    struct call *c =
        script_ask(w, "*", "POST", "/api/v1/keys", "{\"tenant\":\"t0\",\"role\":\"worker\"}");
    (void)snprintf(new.id, sizeof(new.id), "%s", json_text(c != NULL ? c->json : NULL, "id"));
    if (!script_take(c, "key", new.secret, sizeof(new.secret)) || s->count == KEYS_MAX)
        return;
    struct api_key *k = &s->keys[s->count++];
    *k = new;
    send(w, k, CLAIMS);
    place_settle(w, p);
    k->revoking = w->clock + 1;
    (void)snprintf(target, sizeof(target), "/api/v1/keys/%s", k->id);
    if (script_done(script_ask(w, "*", "DELETE", target, NULL)))
        k->revoked = w->clock;
    sim_pass_ms(w, 3000); /* it is noticed within a second */
    sim_check(w, 6, k->revoked == 0 || !is_waiting(w, k),
              "a request waits with key %s, which is revoked", k->id);
}

/* --- life --- */

static bool finish(struct sim *w)
{
    struct api_keys *s = state(w);
    for (int i = 0; i < s->count && !s->asked; i++)
        send(w, &s->keys[i], READS);
    s->asked = true;
    return false;
}

static void begin(struct sim *w)
{
    w->states[ACTOR_API_KEYS_NUMBER] = calloc(1, sizeof(struct api_keys));
    assert(state(w) != NULL);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_API_KEYS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"an API key is made", 4, NEEDS(ON_KEYS), make},
    {"an API key is used", 10, NEEDS(ON_KEYS), use},
    {"an API key is revoked", 3, NEEDS(ON_KEYS), revoke},
    {"an API key is revoked while its holder waits", 2, NEEDS(ON_KEYS), revoke_waiting},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_API_KEYS = {.name = "API keys",
                                     .actions = ACTIONS,
                                     .begin = begin,

                                     .finish = finish,
                                     .free = release};
