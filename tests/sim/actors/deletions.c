/* Entities that are deleted while signals come and a worker has their call: what the next entity of
 * the same name begins with is its own. */
#include "sim/actors/script.h"

#include <stdlib.h>

enum { OLD_SIGNALS = 3, RACERS = 4, LEASE_MS = 60 * 1000 };

/* In the order in which they are sent: turned by chance. */
enum racer { SIGNAL_A, SIGNAL_B, DELETION, RESULT };

struct race {
    int step;
    int answered;
    int status[RACERS];
    int64_t seq[RACERS];
};

static struct race *state(struct sim *w)
{
    return w->states[ACTOR_DELETIONS_NUMBER];
}

static void warm(struct sim *w, struct place *p)
{
    static const struct script_put ROWS[] = {{SCRIPT_TENANT, "/api/v1/entity-types/deleted",
                                              "{\"queue\":\"deleted\",\"handler\":\"h\"}"}};
    script_warm(w, p, ROWS, ARRAY_LEN(ROWS));
}

static void target_of(const struct sim *w, char out[static 80], const char *rest)
{
    (void)snprintf(out, 80, "/api/v1/entities/deleted/d%d%s", w->step, rest);
}

/* --- before --- */

static bool signal_some(struct sim *w)
{
    char target[80];
    bool ok = true;
    target_of(w, target, "/signals");
    for (int i = 0; i < OLD_SIGNALS && ok; i++)
        ok = script_done(script_ask(w, SCRIPT_TENANT, "POST", target, "{\"name\":\"s\"}"));
    return ok;
}

/* --- the race --- */

static void arrived(struct sim *w, struct call *c)
{
    struct race *r = state(w);
    if (c->spec.number / RACERS != r->step)
        return; /* of an earlier one, whose server went down */
    int racer = (int)(c->spec.number % RACERS);
    r->status[racer] = c->status;
    r->seq[racer] = json_number(c->json, "seq");
    r->answered++;
}

static void send(struct sim *w, enum racer racer, const struct script_job *job)
{
    char target[80];
    char body[200];
    if (racer == RESULT) {
        (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/complete", job->id);
        (void)snprintf(body, sizeof(body),
                       "{\"lease_token\":\"%s\",\"output\":{\"state\":\"old\"}}", job->token);
    } else {
        target_of(w, target, racer == DELETION ? "" : "/signals");
        (void)snprintf(body, sizeof(body), "{\"name\":\"s\",\"dedup_key\":\"k%d\"}", (int)racer);
    }
    struct call *c = script_send(w, racer == DELETION ? "DELETE" : "POST", target,
                                 racer == DELETION ? NULL : body);
    c->spec.done = arrived;
    c->spec.number = (int64_t)w->step * RACERS + racer;
}

/* All at once. False: not all of them were answered. */
static bool run_race(struct sim *w, const struct script_job *job)
{
    struct race *r = state(w);
    *r = (struct race){.step = w->step};
    int first = lot_below(&w->lot, RACERS);
    int way = lot_percent(&w->lot, 50) ? 1 : RACERS - 1;
    for (int i = 0; i < RACERS; i++)
        send(w, (enum racer)((first + i * way) % RACERS), job);
    place_settle(w, script_place(w));
    for (int i = 0; i < RACERS; i++) {
        if (r->status[i] == 0 || r->status[i] >= 500)
            return false;
    }
    return r->answered == RACERS;
}

/* --- after --- */

/* How many signals the new entity has got: they are numbered from 1. */
static int64_t count_new(struct sim *w, const struct race *r)
{
    int64_t count = 0;
    int64_t sum = 0;
    for (enum racer i = SIGNAL_A; i <= SIGNAL_B; i++) {
        sim_check(w, 5, r->status[i] == 200, "a signal is answered %d while its entity is deleted",
                  r->status[i]);
        if (r->seq[i] <= OLD_SIGNALS) {
            count++;
            sum += r->seq[i];
        }
    }
    sim_check(w, 5, sum == count * (count + 1) / 2,
              "the first signals of a new entity are %lld and %lld", (long long)r->seq[SIGNAL_A],
              (long long)r->seq[SIGNAL_B]);
    return count;
}

static void check_entity(struct sim *w, int64_t signals)
{
    char target[80];
    target_of(w, target, "");
    struct call *c = script_ask(w, SCRIPT_TENANT, "GET", target, NULL);
    if (c == NULL)
        return;
    sim_check(w, 5, (c->status == 200) == (signals > 0),
              "an entity with %lld signals since it was deleted is answered %d", (long long)signals,
              c->status);
    if (c->status == 200)
        sim_check(
            w, 5,
            json_number(c->json, "last_seq") == signals &&
                json_number(c->json, "inbox") == signals && json_number(c->json, "version") == 0 &&
                !json_is_string(json_object_get(c->json, "state")),
            "a new entity with %lld signals has something of the deleted one", (long long)signals);
    call_free(c);
}

/* The old worker's result counts no more; the new entity is called with its own signals. */
static void work_on(struct sim *w, const struct script_job *old)
{
    struct script_job job;
    bool again = script_done(
        script_answer(w, SCRIPT_TENANT, old, "complete", ",\"output\":{\"state\":\"late\"}"));
    sim_check(w, 3, !again, "a deleted entity takes a result");
    if (script_claim(w, SCRIPT_TENANT, "deleted", LEASE_MS, &job))
        call_free(
            script_answer(w, SCRIPT_TENANT, &job, "complete", ",\"output\":{\"state\":\"new\"}"));
}

static void delete_in_a_race(struct sim *w)
{
    struct script_job old;
    if (!signal_some(w) || !script_claim(w, SCRIPT_TENANT, "deleted", LEASE_MS, &old) ||
        !run_race(w, &old))
        return;
    const struct race *r = state(w);
    sim_check(w, 5, r->status[DELETION] == 200, "deleting an entity is answered %d",
              r->status[DELETION]);
    sim_check(w, 3, r->status[RESULT] == 200 || r->status[RESULT] == 404,
              "a result for an entity that is deleted is answered %d", r->status[RESULT]);
    check_entity(w, count_new(w, r));
    work_on(w, &old);
}

/* --- life --- */

static void begin(struct sim *w)
{
    w->states[ACTOR_DELETIONS_NUMBER] = calloc(1, sizeof(struct race));
    assert(state(w) != NULL);
}

static void release(struct sim *w)
{
    free(state(w));
    w->states[ACTOR_DELETIONS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"an entity is deleted in a race", 4, NEEDS(ON_SCRIPTS) | NEEDS(ON_ENTITIES), delete_in_a_race},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_DELETIONS = {
    .name = "deletions", .actions = ACTIONS, .warm = warm, .begin = begin, .free = release};
