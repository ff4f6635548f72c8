/* Visits to a gate outside the store. */
#include "runtime/gate_visits.h"

#include "base/limits.h"
#include "base/log.h"

#include <stddef.h>

enum { GATE_TICK_MS = 2 }; /* how exactly a delay at the gate ends */

enum visit_state {
    VISIT_ASKING,  /* a GATE_ENTER is under way */
    VISIT_WAITING, /* for the next one */
    VISIT_INSIDE,  /* the writer has the op */
    VISIT_LEAVING, /* a GATE_LEAVE is under way */
    VISIT_OWING,   /* that failed: until the next one */
};

/* What ended a visit: the `context` of a release that fails. */
enum visit_end {
    END_ADMITTED,
    END_REFUSED,
    END_ERROR,
    END_TIMEOUT,
    END_DISCONNECT,
    END_DRAIN,
    END_SWEEP,
};
static const char *const ENDS[] = {
    [END_ADMITTED] = "gate_admitted",     [END_REFUSED] = "gate_refused",
    [END_ERROR] = "gate_error",           [END_TIMEOUT] = "gate_timeout",
    [END_DISCONNECT] = "gate_disconnect", [END_DRAIN] = "gate_drain",
    [END_SWEEP] = "gate_sweep",
};

static const char *const ANSWERS[] = {
    [GATE_DONE] = "entered",
    [GATE_BUSY] = "busy",
    [GATE_RESERVED] = "reserved",
    [GATE_DOWN] = "down",
};
static const char *const RELEASES[] = {"released", "lost", "failed"};

struct gate_visit {
    struct gate_request request; /* first: this is what comes back from the gate */
    struct hash_entry entry;     /* by token */
    enum visit_state state;
    enum visit_end end;
    struct op *op;         /* NULL: it was answered without being let in */
    enum gate_answer last; /* to a GATE_ENTER */
    bool may_hold;         /* something of it may be at the gate */
    int64_t give_up_ms;
    int64_t asked_ms;
    int64_t due_ms; /* while it waits or owes */
    int64_t delay_ms;
    int64_t tries;
    int64_t gone_ms; /* by then all that it took has expired */
    char texts[];    /* the tenant and the key */
};

/* --- life --- */

bool gate_visits_init(struct gate_visits *v, const struct gate_visits_config *config)
{
    *v = (struct gate_visits){.config = *config};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        metric_add(config->cleanup_failures, str_of(ENDS[i]), STR_NONE, 0);
    for (size_t i = 0; i < ARRAY_LEN(ANSWERS); i++) {
        if (ANSWERS[i] != NULL)
            metric_add(config->requests, str_of(ANSWERS[i]), STR_NONE, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(RELEASES); i++)
        metric_add(config->releases, str_of(RELEASES[i]), STR_NONE, 0);
    if (config->gate == NULL)
        return true;
    v->list = calloc(1, sizeof(*v->list));
    return v->list != NULL;
}

static struct gate_visit *visit_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct gate_visit, entry);
}

static void visit_free(struct gate_visits *v, struct gate_visit *visit)
{
    assert(visit->op == NULL);
    hash_map_remove(&v->by_token, &visit->entry);
    free(visit);
}

void gate_visits_release(struct gate_visits *v)
{
    HASH_MAP_WALK (&v->by_token, e)
        visit_free(v, visit_of(e));
    hash_map_release(&v->by_token);
    free(v->list);
}

/* Copies the texts. NULL: no memory. */
static struct gate_visit *visit_new(struct gate_visits *v, struct str tenant, struct str key,
                                    const char *token)
{
    struct gate_visit *visit = calloc(1, sizeof(*visit) + tenant.len + key.len);
    if (visit == NULL)
        return NULL;
    memcpy(visit->texts, tenant.ptr, tenant.len);
    if (key.len > 0)
        memcpy(visit->texts + tenant.len, key.ptr, key.len);
    visit->request.tenant = (struct str){visit->texts, tenant.len};
    visit->request.key = (struct str){visit->texts + tenant.len, key.len};
    (void)snprintf(visit->request.token, sizeof(visit->request.token), "%s", token);
    hash_map_add(&v->by_token, &visit->entry, hash_text(&v->by_token, str_of(token)));
    return visit;
}

static bool is_ours(const struct gate_visits *v, const char *token)
{
    struct hash_entry *e = hash_map_find(&v->by_token, hash_text(&v->by_token, str_of(token)));
    while (e != NULL && strcmp(visit_of(e)->request.token, token) != 0)
        e = hash_map_find_next(e);
    return e != NULL;
}

/* --- going in --- */

static void ask(struct gate_visits *v, struct gate_visit *visit)
{
    const struct gate_policy *policy = &visit->op->gate_policy;
    visit->state = VISIT_ASKING;
    visit->may_hold = true;
    visit->asked_ms = env_mono_ms(v->config.env);
    visit->gone_ms =
        visit->asked_ms + GATE_REPLY_MS_MAX + policy->max_wait_ms + policy->lock_ttl_ms;
    visit->request.ask = GATE_ENTER;
    visit->request.lock_ttl_ms = policy->lock_ttl_ms;
    visit->request.key_ttl_ms = policy->max_wait_ms + policy->lock_ttl_ms;
    v->config.gate->submit(v->config.gate, &visit->request);
}

static void new_token(const struct env *env, char out[static GATE_TOKEN_MAX / 2 + 1])
{
    uint64_t random[2];
    env_random(env, random, sizeof(random));
    (void)snprintf(out, GATE_TOKEN_MAX / 2 + 1, "%016llx%016llx", (unsigned long long)random[0],
                   (unsigned long long)random[1]);
}

bool gate_visits_add(struct gate_visits *v, struct op *op)
{
    assert(op->gate_wanted && op->gate_visit == NULL && v->config.gate != NULL);
    char token[GATE_TOKEN_MAX / 2 + 1];
    new_token(v->config.env, token);
    struct gate_visit *visit = v->by_token.count < OPS_WAITING_MAX && !v->draining
                                   ? visit_new(v, op->caller.tenant, op->idem.key, token)
                                   : NULL;
    if (visit == NULL)
        return false;
    visit->op = op;
    visit->last = GATE_DOWN; /* as long as there is no answer */
    op->gate_visit = visit;
    op->gate_wanted = false;
    visit->give_up_ms = op->submitted_ms + op->gate_policy.max_wait_ms;
    ask(v, visit);
    return true;
}

/* --- going out --- */

static void leave(struct gate_visits *v, struct gate_visit *visit)
{
    visit->state = VISIT_LEAVING;
    visit->request.ask = GATE_LEAVE;
    v->config.gate->submit(v->config.gate, &visit->request);
}

static void part(struct gate_visits *v, struct gate_visit *visit, enum visit_end end)
{
    assert(visit->state != VISIT_LEAVING && visit->state != VISIT_OWING);
    visit->end = end;
    if (visit->op != NULL)
        visit->op->gate_visit = NULL;
    visit->op = NULL;
    if (visit->state == VISIT_ASKING)
        return; /* when that is answered, it leaves */
    if (visit->may_hold)
        leave(v, visit);
    else
        visit_free(v, visit);
}

void gate_visits_end(struct gate_visits *v, struct op *op)
{
    if (op->gate_visit == NULL)
        return;
    part(v, op->gate_visit,
         op->err == ERR_OK                         ? END_ADMITTED
         : err_class(op->err) == ERR_CLASS_REFUSAL ? END_REFUSED
                                                   : END_ERROR);
}

static void left(struct gate_visits *v, struct gate_visit *visit)
{
    enum gate_answer answer = visit->request.answer;
    const char *outcome = RELEASES[answer == GATE_DOWN ? 2 : answer == GATE_LOST];
    metric_add(v->config.releases, str_of(outcome), STR_NONE, 1);
    int64_t mono = env_mono_ms(v->config.env);
    if (answer == GATE_DOWN)
        metric_add(v->config.cleanup_failures, str_of(ENDS[visit->end]), STR_NONE, 1);
    if (answer != GATE_DOWN || v->draining || mono >= visit->gone_ms) {
        visit_free(v, visit);
        return;
    }
    visit->state = VISIT_OWING;
    visit->due_ms = mono + GATE_SWEEP_MS;
}

/* --- not let in --- */

static void explain(const struct gate_visits *v, const struct gate_visit *visit)
{
    struct op *op = visit->op;
    long long waited = (long long)op->gate_policy.max_wait_ms;
    switch (visit->last) {
    case GATE_RESERVED:
        op->err =
            problem_set(&op->problem, ERR_IDEM_IN_FLIGHT,
                        "Another start with this key held the admission gate for %lld ms", waited);
        return;
    case GATE_BUSY:
        op->err = problem_set(&op->problem, ERR_GATE_UNAVAILABLE,
                              "The admission gate of tenant %.*s was held for %lld ms",
                              STR_ARG(visit->request.tenant), waited);
        return;
    default:
        op->err = problem_set(&op->problem, ERR_GATE_UNAVAILABLE,
                              "The admission gate \"%s\" does not answer", v->config.gate->name);
    }
}

static void give_up(struct gate_visits *v, struct gate_visit *visit, enum visit_end end)
{
    struct op *op = visit->op;
    explain(v, visit);
    part(v, visit, end);
    v->config.hooks.answer(v->config.hooks.ctx, op);
}

void gate_visits_caller_left(struct gate_visits *v, const struct op *op)
{
    struct gate_visit *visit = op->gate_visit;
    if (visit != NULL && visit->state != VISIT_INSIDE)
        give_up(v, visit, END_DISCONNECT);
}

static void wait(struct gate_visits *v, struct gate_visit *visit, int64_t mono_ms)
{
    const struct gate_policy *policy = &visit->op->gate_policy;
    struct backoff backoff = {policy->policy, policy->retry_delay_ms, GATE_DELAY_MS_MAX};
    uint64_t seed;
    env_random(v->config.env, &seed, sizeof(seed));
    int64_t previous = visit->tries == 0 ? policy->retry_delay_ms : visit->delay_ms;
    visit->delay_ms = backoff_delay_ms(&backoff, ++visit->tries, previous, seed);
    visit->due_ms = mono_ms + MIN(visit->delay_ms, visit->give_up_ms - mono_ms);
    visit->state = VISIT_WAITING;
}

/* Without a key, a visit that found the gate busy has taken nothing. */
static bool may_hold(const struct gate_request *r)
{
    return r->answer == GATE_DONE || r->answer == GATE_DOWN ||
           (r->answer == GATE_BUSY && r->key.len > 0);
}

static void entered(struct gate_visits *v, struct gate_visit *visit)
{
    metric_add(v->config.requests, str_of(ANSWERS[visit->request.answer]), STR_NONE, 1);
    visit->last = visit->request.answer;
    visit->may_hold = may_hold(&visit->request);
    visit->state = VISIT_INSIDE;
    int64_t mono = env_mono_ms(v->config.env);
    if (visit->op == NULL) { /* it was answered meanwhile */
        part(v, visit, visit->end);
    } else if (visit->last == GATE_DONE) {
        visit->op->gate_passed = true;
        v->config.hooks.submit(v->config.hooks.ctx, visit->op);
    } else if (v->draining) {
        give_up(v, visit, END_DRAIN);
    } else if (mono >= visit->give_up_ms) {
        give_up(v, visit, END_TIMEOUT);
    } else {
        wait(v, visit, mono);
    }
}

/* --- what others have left --- */

static void list_next(struct gate_visits *v, int64_t mono_ms)
{
    v->lists = true;
    v->list_due_ms = mono_ms + GATE_SWEEP_MS;
    v->list->request = (struct gate_request){.ask = GATE_LIST};
    v->config.gate->submit(v->config.gate, &v->list->request);
}

static void sweep(struct gate_visits *v, const struct gate_found *found)
{
    struct str tenant = str_of(found->tenant);
    struct str key = str_of(found->key);
    if (is_ours(v, found->token) || !v->config.hooks.knows_key(v->config.hooks.ctx, tenant, key))
        return;
    struct gate_visit *visit = visit_new(v, tenant, key, found->token);
    if (visit == NULL)
        return; /* the next look finds it again */
    LOG(LOG_INFO, "removing a reservation of a decided key from the gate", LOG_S("tenant", tenant));
    visit->end = END_SWEEP;
    leave(v, visit);
}

static void listed(struct gate_visits *v)
{
    v->lists = false;
    if (v->list->request.answer != GATE_DONE) {
        v->list->cursor = 0;
        metric_add(v->config.cleanup_failures, str_of(ENDS[END_SWEEP]), STR_NONE, 1);
        return;
    }
    for (size_t i = 0; i < v->list->count && !v->draining; i++)
        sweep(v, &v->list->found[i]);
}

/* --- the loop --- */

void gate_visits_collect(struct gate_visits *v)
{
    if (v->config.gate == NULL)
        return;
    struct gate_request *r = v->config.gate->collect(v->config.gate);
    while (r != NULL) {
        struct gate_request *next = r->next;
        if (r->ask == GATE_LIST)
            listed(v);
        else if (r->ask == GATE_ENTER)
            entered(v, CONTAINER_OF(r, struct gate_visit, request));
        else
            left(v, CONTAINER_OF(r, struct gate_visit, request));
        r = next;
    }
}

static void try_again(struct gate_visits *v, struct gate_visit *visit)
{
    struct op *op = visit->op;
    if (op->idem.key.len == 0 || !v->config.hooks.replay(v->config.hooks.ctx, op)) {
        ask(v, visit);
        return;
    }
    part(v, visit, END_ADMITTED);
    v->config.hooks.submit(v->config.hooks.ctx, op);
}

static void tick(struct gate_visits *v, struct gate_visit *visit, int64_t mono_ms)
{
    bool due = mono_ms >= visit->due_ms;
    int64_t answered_by = MAX(visit->give_up_ms, visit->asked_ms + GATE_REPLY_MS_MAX);
    if (visit->state == VISIT_WAITING && (due || v->draining)) {
        try_again(v, visit);
    } else if (visit->state == VISIT_ASKING && visit->op != NULL && mono_ms >= answered_by) {
        visit->last = GATE_DOWN;
        give_up(v, visit, END_TIMEOUT);
    } else if (visit->state == VISIT_OWING && v->draining) {
        visit_free(v, visit);
    } else if (visit->state == VISIT_OWING && due) {
        leave(v, visit);
    }
}

void gate_visits_tick(struct gate_visits *v, int64_t mono_ms)
{
    HASH_MAP_WALK (&v->by_token, e)
        tick(v, visit_of(e), mono_ms);
    if (v->config.gate != NULL && !v->lists && !v->draining && mono_ms >= v->list_due_ms)
        list_next(v, mono_ms);
}

void gate_visits_drain(struct gate_visits *v)
{
    v->draining = true;
}

int gate_visits_timeout_ms(const struct gate_visits *v)
{
    return v->by_token.count > 0 ? GATE_TICK_MS : -1;
}

bool gate_visits_idle(const struct gate_visits *v)
{
    return v->by_token.count == 0;
}
