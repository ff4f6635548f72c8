/* People who decide: they disagree, click twice, retry, edit, come too late, and ask themselves. */
#include "sim/asks.h"

#include <stdlib.h>

struct decide_call {
    struct ask *ask;
    int op;
    int does;
    enum person by;
    bool edits;
    bool junk; /* expected_hash fits nothing */
    int64_t sent_ms;
};

static void looked(struct sim *w, struct call *c)
{
    ask_look_end(w, c->spec.ref, c);
}

static void look(struct sim *w)
{
    char tenant[8], target[96];
    struct ask *a = lot_percent(&w->lot, 40) ? ask_any(w) : NULL;
    struct place *p = a != NULL ? &w->places[a->place] : sim_any_place(w);
    tenant_name(tenant, approvals_state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/approvals%s%s",
                   a != NULL ? "/" : "?status=pending&limit=20", a != NULL ? a->job : "");
    struct call_spec spec = {.place = p,
                             .method = "GET",
                             .target = target,
                             .tenant = tenant,
                             .done = looked,
                             .ref = ask_look_begin(w, p, a)};
    (void)sim_send(w, &spec);
}

/* --- runs that ask --- */

static void started(struct sim *w, struct call *c)
{
    if (c->status == 200)
        (void)runs_observe(w, c, json_object_get(c->json, "run"));
}

static void start(struct sim *w)
{
    char tenant[8], target[64];
    tenant_name(tenant, approvals_state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/workflows/a%d/runs",
                   lot_below(&w->lot, ASKING_COUNT));
    struct call_spec spec = {.place = sim_any_place(w),
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .actor = PEOPLE[any_person(w)],
                             .body = "{}",
                             .done = started};
    (void)sim_send(w, &spec);
}

static void cancelled(struct sim *w, struct call *c)
{
    if (c->status == 200)
        (void)runs_observe(w, c, c->json);
}

static void cancel(struct sim *w)
{
    char tenant[8], target[80];
    struct ask *a = ask_any(w);
    if (a == NULL)
        return;
    if (!a->cancelled)
        once_may(&a->decision, w->clock + 1, VOIDED);
    a->cancelled = true;
    tenant_name(tenant, approvals_state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s/cancel", a->run);
    struct call_spec spec = {.place = &w->places[a->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .body = "{}",
                             .done = cancelled};
    (void)sim_send(w, &spec);
}

/* --- decisions --- */

static bool may_decide(const struct ask *a, enum person by)
{
    return a->asking->users == 0 || (a->asking->users >> by & 1u) != 0;
}

/* A vote or decision of a person counts: might it? */
static void check_allowed(struct sim *w, const struct call *c, const struct decide_call *d)
{
    const struct ask *a = d->ask;
    const char *who = PEOPLE[d->by];
    sim_check(w, 4, may_decide(a, d->by), "%s decides %s, but is no approver", who, a->job);
    sim_check(w, 4, d->does != APPROVED || !a->asking->forbids_requester || a->requester != d->by,
              "%s approves the own request %s", who, a->job);
    sim_check(w, 4, !d->junk, "%s decides %s by a hash that it never had", who, a->job);
    sim_check(w, 4, a->expires_ms < 0 || sim_on(w, ON_CLOCKS) || d->sent_ms < a->expires_ms,
              "%s decides %s after its time: %s", who, a->job, json_text(c->json, "status"));
}

static void check_votes(struct sim *w, const struct call *c, struct decide_call *d)
{
    struct ask *a = d->ask;
    int64_t votes = json_number(c->json, "approvals");
    bool recorded = strcmp(json_text(c->json, "status"), "recorded") == 0;
    sim_check(w, 4, json_number(c->json, "needed") == a->asking->needed, "%s needs %lld votes",
              a->job, (long long)json_number(c->json, "needed"));
    sim_check(w, 4, votes >= 1 && votes <= ask_count(a->voters),
              "%s counts %lld votes, but only %d people have approved", a->job, (long long)votes,
              ask_count(a->voters));
    sim_check(w, 4, recorded == (votes < a->asking->needed), "%s is %s with %lld votes of %d",
              a->job, json_text(c->json, "status"), (long long)votes, a->asking->needed);
    if (recorded && d->edits && votes == 1 && a->open == 1 && c->tries == 1 && c->copies == 0)
        a->voters = 1u << d->by; /* the others have approved something else */
    if (recorded) {
        a->recorded |= 1u << d->by;
        a->recorded_at = c->answered;
    }
}

static void decided_now(struct sim *w, const struct call *c, struct decide_call *d)
{
    char id[64];
    struct ask *a = d->ask;
    check_allowed(w, c, d);
    if (d->does == APPROVED)
        check_votes(w, c, d);
    if (strcmp(json_text(c->json, "status"), "recorded") == 0) {
        ask_check(w, a, c, once_found(&a->decision, d->op, c->answered, ONCE_IS(ONCE_NOTHING), ""));
        return;
    }
    ask_identity(id, c->json, d->does == APPROVED ? "approved_by" : "rejected_by",
                 d->does == APPROVED ? "approved_at" : "rejected_at");
    sim_check(w, 4,
              person_of(json_text(c->json, d->does == APPROVED ? "approved_by" : "rejected_by")) ==
                  d->by,
              "%s decides %s, and somebody else is named", PEOPLE[d->by], a->job);
    ask_check(w, a, c, once_won(&a->decision, d->op, c->answered, id));
}

static void decided_before(struct sim *w, const struct call *c, const struct decide_call *d)
{
    char id[64];
    bool same = c->status == 200;
    const char *decision = json_text(c->json, same ? "status" : "decision");
    int cls = ask_class(same ? decision + strlen("already_") : decision);
    if (strcmp(decision, "already_recorded") == 0) {
        ask_check(w, d->ask, c,
                  once_found(&d->ask->decision, d->op, c->answered, ONCE_IS(ONCE_NOTHING), ""));
        return;
    }
    sim_check(w, 4, cls == APPROVED || cls == REJECTED, "%s is answered %s", d->ask->job, decision);
    sim_check(w, 4, same == (cls == d->does), "%s of %s is answered %d with '%s'",
              d->does == APPROVED ? "approve" : "reject", d->ask->job, c->status, decision);
    if (same)
        ask_identity(id, c->json, cls == APPROVED ? "approved_by" : "rejected_by",
                     cls == APPROVED ? "approved_at" : "rejected_at");
    else
        ask_identity(id, c->json, "decided_by", "decided_at");
    ask_check(w, d->ask, c, once_found(&d->ask->decision, d->op, c->answered, ONCE_IS(cls), id));
}

/* What a refusal says about the register: bits of classes. */
static unsigned refused(struct sim *w, const struct call *c, const struct decide_call *d)
{
    const struct ask *a = d->ask;
    if (strcmp(c->code, "APPROVAL_EXPIRED") == 0) {
        sim_check(w, 4,
                  a->expires_ms >= 0 &&
                      (sim_on(w, ON_CLOCKS) || place_wall_ms(w, c->spec.place) >= a->expires_ms),
                  "%s has not expired yet", a->job);
        return ONCE_IS(EXPIRED) | ONCE_IS(ONCE_NOTHING); /* its timer may be about to fire */
    }
    if (strcmp(c->code, "NOT_AWAITING_APPROVAL") == 0)
        return ONCE_IS(VOIDED);
    if (strcmp(c->code, "SELF_APPROVAL_DENIED") == 0) {
        sim_check(w, 4, a->asking->forbids_requester && a->requester == d->by,
                  "%s has not asked for %s", PEOPLE[d->by], a->job);
        return ONCE_IS(ONCE_NOTHING);
    }
    if (strcmp(c->code, "APPROVAL_STALE") == 0) {
        sim_check(w, 4, d->junk || a->edited, "%s has not changed", a->job);
        return ONCE_IS(ONCE_NOTHING);
    }
    sim_check(w, 4, strcmp(c->code, "NOT_AN_APPROVER") == 0 || sim_on(w, ON_RETENTION),
              "a decision on %s is answered %d %s", a->job, c->status, c->code);
    sim_check(w, 4, strcmp(c->code, "NOT_AN_APPROVER") != 0 || !may_decide(a, d->by),
              "%s may decide %s", PEOPLE[d->by], a->job);
    return ONCE_VALUES_BUT(0) | ONCE_IS(ONCE_NOTHING);
}

static void decided(struct sim *w, struct call *c)
{
    struct decide_call *d = c->spec.ref;
    struct ask *a = d->ask;
    const char *status = json_text(c->json, "status");
    if (call_in_doubt(c)) {
        once_call_lost(w, &a->decision, d->op, c);
    } else {
        once_call_repeated(&a->decision, d->op, c);
        sim_cover(w, "decision", c->status == 200 ? status : c->code);
        if (c->status == 200 && strncmp(status, "already", 7) != 0)
            decided_now(w, c, d);
        else if (c->status == 200 || strcmp(c->code, "APPROVAL_CONFLICT") == 0)
            decided_before(w, c, d);
        else
            ask_check(w, a, c, once_found(&a->decision, d->op, c->answered, refused(w, c, d), ""));
    }
    a->open--;
    free(d);
}

static void decide(struct sim *w, struct ask *a, enum person by, int does, bool plain)
{
    char tenant[8], target[96], key[40], body[200];
    struct decide_call *d = calloc(1, sizeof(*d));
    assert(d != NULL);
    int kind = plain ? 9 : lot_below(&w->lot, 10);
    *d = (struct decide_call){.ask = a,
                              .does = does,
                              .by = by,
                              .edits = kind < 2 && does == APPROVED,
                              .junk = kind == 2,
                              .sent_ms = place_wall_ms(w, &w->places[a->place]),
                              .op = once_sent(&a->decision, w->clock + 1, does)};
    tenant_name(tenant, approvals_state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s/%s", a->job,
                   does == APPROVED ? "approve" : "reject");
    (void)snprintf(key, sizeof(key), "decide-%lld", (long long)w->clock);
    if (d->edits)
        (void)snprintf(body, sizeof(body), "{\"edited\":{\"n\":%d}}", 2 + lot_below(&w->lot, 3));
    else
        (void)snprintf(body, sizeof(body), kind < 5 ? "{\"expected_hash\":\"%s\"}" : "{}",
                       d->junk ? "00" : a->hash);
    a->edited |= d->edits;
    if (does == APPROVED)
        a->voters |= 1u << by;
    a->open++;
    bool keyed = lot_percent(&w->lot, 40);
    struct call_spec spec = {.place = &w->places[a->place],
                             .method = "POST",
                             .target = target,
                             .tenant = tenant,
                             .actor = PEOPLE[by],
                             .key = keyed ? key : NULL,
                             .body = body,
                             .retries = plain || lot_percent(&w->lot, 70),
                             .doubles = true,
                             .done = decided,
                             .ref = d};
    (void)sim_send(w, &spec);
}

static void decide_any(struct sim *w)
{
    struct ask *a = lot_percent(&w->lot, 60) ? approvals_state(w)->first : ask_any(w);
    if (a == NULL) {
        look(w);
        return;
    }
    int does = lot_percent(&w->lot, 75) ? APPROVED : REJECTED;
    enum person by = any_person(w);
    decide(w, a, by, does, false);
    if (lot_percent(&w->lot, 25)) /* clicks twice, or somebody else does at the same time */
        decide(w, a, lot_percent(&w->lot, 50) ? by : any_person(w),
               lot_percent(&w->lot, 70) ? does : APPROVED + REJECTED - does, false);
}

/* --- workers of what was approved --- */

static void completed(struct sim *w, struct call *c)
{
    sim_check(w, 3, call_in_doubt(c) || c->status == 200 || c->status == 409 || c->status == 404,
              "the result of an approved task is answered %d %s", c->status, c->code);
    ((struct ask *)c->spec.ref)->completed |= c->status == 200;
}

/* Only what was approved comes to a worker, with the content that was approved. */
static struct ask *check_job(struct sim *w, const struct call *c, const json_t *job)
{
    struct ask *a = ask_find(w, json_text(job, "job_id"));
    if (a == NULL) /* nobody has seen its approval, so nobody can have approved it */
        sim_fail(w, 4, "job %s came to a worker without an approval", json_text(job, "job_id"));
    int64_t n = json_number(json_object_get(job, "input"), "n");
    sim_check(w, 4, a->edited ? n >= 1 && n <= 4 : n == 1, "job %s has the input n = %lld", a->job,
              (long long)n);
    int op = once_sent(&a->decision, c->sent, ONCE_READS);
    ask_check(w, a, c, once_found(&a->decision, op, c->answered, ONCE_IS(APPROVED), ""));
    return a;
}

static void claimed(struct sim *w, struct call *c)
{
    size_t i;
    json_t *job;
    json_array_foreach (json_object_get(c->json, "jobs"), i, job) {
        char target[80], body[128];
        struct ask *a = check_job(w, c, job);
        if (!w->calm && sim_on(w, ON_WORKERS) && lot_percent(&w->lot, 25))
            continue; /* the worker dies */
        (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s/complete",
                       json_text(job, "job_id"));
        (void)snprintf(body, sizeof(body), "{\"lease_token\":\"%s\",\"output\":{\"did\":1}}",
                       json_text(job, "lease_token"));
        struct call_spec spec = {.place = c->spec.place,
                                 .method = "POST",
                                 .target = target,
                                 .tenant = c->spec.tenant,
                                 .body = body,
                                 .retries = true,
                                 .doubles = true,
                                 .done = completed,
                                 .ref = a};
        (void)sim_send(w, &spec);
    }
}

static void claim_at(struct sim *w, struct place *p)
{
    char tenant[8], body[120];
    tenant_name(tenant, approvals_state(w)->tenant);
    /* At the end a round takes long. */
    (void)snprintf(body, sizeof(body),
                   "{\"worker_id\":\"p\",\"queues\":[\"asked\"],\"max\":3,\"lease_ms\":%d}",
                   w->calm ? 43200000 : 5000);
    struct call_spec spec = {.place = p,
                             .method = "POST",
                             .target = "/api/v1/jobs/claim",
                             .tenant = tenant,
                             .body = body,
                             .done = claimed};
    (void)sim_send(w, &spec);
}

static void claim(struct sim *w)
{
    claim_at(w, sim_any_place(w));
}

/* --- the end --- */

/* People decide what is left; whoever has not voted yet. */
static void decide_rest(struct sim *w, struct ask *a)
{
    for (int by = 0; by < PERSON_COUNT; by++) {
        bool own = a->asking->forbids_requester && a->requester == (enum person)by;
        if ((a->asking->users == 0 || (a->asking->users >> by & 1u) != 0) && !own)
            decide(w, a, (enum person)by, APPROVED, true);
    }
}

static bool finish_at(struct sim *w, struct place *p)
{
    char tenant[8];
    tenant_name(tenant, approvals_state(w)->tenant);
    struct look *look = ask_look_begin(w, p, NULL);
    struct call *c = people_ask(w, p, tenant, "/api/v1/approvals?status=pending&limit=100");
    ask_look_end(w, look, c);
    if (c == NULL)
        return true;
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get(c->json, "items"), i, item) {
        struct ask *a = ask_find(w, json_text(item, "job_id"));
        if (a->open == 0)
            decide_rest(w, a);
    }
    call_free(c);
    for (const struct ask *a = approvals_state(w)->first; a != NULL; a = a->next) {
        if (a->asking->task && a->place == p->number && !a->completed) {
            claim_at(w, p);
            break;
        }
    }
    return i > 0;
}

static bool finish(struct sim *w)
{
    bool waits = false;
    if (!sim_on(w, ON_APPROVALS))
        return false;
    for (int i = 0; i < w->place_count; i++)
        waits |= finish_at(w, &w->places[i]);
    return waits;
}

static const json_t *step_of(const json_t *run, const char *name)
{
    size_t i;
    json_t *step;
    json_array_foreach (json_object_get(run, "steps"), i, step) {
        if (strcmp(json_text(step, "name"), name) == 0)
            return step;
    }
    return NULL;
}

/* How the run must have ended after this decision. */
static const char *end_of(const struct ask *a, int cls)
{
    bool denied = cls == REJECTED || (cls == EXPIRED && a->asking->expiry == EXPIRES_REJECTED);
    bool failed = cls == EXPIRED && a->asking->expiry == EXPIRES_FAILED;
    if (cls == VOIDED)
        return "cancelled";
    if (a->asking->continues || (!denied && !failed))
        return "succeeded";
    return denied ? "denied" : "failed";
}

static const char *step_end_of(const struct ask *a, int cls)
{
    if (cls == REJECTED || (cls == EXPIRED && a->asking->expiry == EXPIRES_REJECTED))
        return "denied";
    return cls == EXPIRED && a->asking->expiry == EXPIRES_FAILED ? "failed" : "succeeded";
}

static void check_run(struct sim *w, const struct ask *a, const json_t *approval, const json_t *run)
{
    int cls = ask_class(json_text(approval, "status"));
    const json_t *ok = step_of(run, "ok");
    const char *status = json_text(run, "status");
    if (strcmp(status, "cancelled") == 0 && a->cancelled)
        return;
    sim_check(w, 4, strcmp(status, end_of(a, cls)) == 0, "%s is %s, but its run is %s", a->job,
              json_text(approval, "status"), status);
    sim_check(w, 4, strcmp(json_text(ok, "status"), step_end_of(a, cls)) == 0,
              "%s is %s, but its step is %s", a->job, json_text(approval, "status"),
              json_text(ok, "status"));
    const json_t *content = json_object_get(approval, "edited");
    if (json_is_null(content))
        content = json_object_get(approval, "content");
    bool approved = strcmp(step_end_of(a, cls), "succeeded") == 0;
    sim_check(w, 4,
              !approved || a->asking->task || json_equal(json_object_get(ok, "output"), content),
              "the output of %s is not its content", a->job);
    bool after = strcmp(json_text(step_of(run, "after"), "status"), "succeeded") == 0;
    sim_check(w, 4, after == (strcmp(status, "succeeded") == 0), "step after %s is %s", a->job,
              json_text(step_of(run, "after"), "status"));
}

static void check_message_id(struct sim *w, const struct ask *a, const char *tenant)
{
    char target[80], expected[64];
    (void)snprintf(target, sizeof(target), "/api/v1/jobs/%s", a->job);
    (void)snprintf(expected, sizeof(expected), "approval:%s", a->job);
    struct call *c = people_ask(w, &w->places[a->place], tenant, target);
    if (c == NULL)
        return;
    const char *label = json_text(json_object_get(c->json, "labels"), "bus_msg_id");
    sim_check(w, 6, strcmp(label, expected) == 0, "job %s has the message id '%s'", a->job, label);
    call_free(c);
}

static void check_ask(struct sim *w, struct ask *a)
{
    char tenant[8], target[96];
    struct place *p = &w->places[a->place];
    tenant_name(tenant, approvals_state(w)->tenant);
    (void)snprintf(target, sizeof(target), "/api/v1/runs/%s", a->run);
    struct call *run = people_ask(w, p, tenant, target);
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s", a->job);
    struct look *look = ask_look_begin(w, p, a);
    struct call *approval = people_ask(w, p, tenant, target);
    ask_look_end(w, look, approval);
    if (run != NULL && approval != NULL)
        check_run(w, a, approval->json, run->json);
    if (a->asking->task && approval != NULL &&
        strcmp(json_text(approval->json, "status"), "approved") == 0)
        check_message_id(w, a, tenant);
    call_free(run);
    call_free(approval);
}

static void last(struct sim *w)
{
    for (struct ask *a = approvals_state(w)->first; a != NULL; a = a->next) {
        check_ask(w, a);
        once_cover(w, &a->decision, "decision");
    }
}

static void warm(struct sim *w, struct place *p)
{
    for (int i = 0; i < ASKING_COUNT; i++) {
        char target[40];
        (void)snprintf(target, sizeof(target), "/api/v1/workflows/a%d", i);
        people_put(w, p, target, ASKING[i].body);
    }
}

static void begin(struct sim *w)
{
    struct approvals *s = calloc(1, sizeof(*s));
    assert(s != NULL);
    s->tenant = lot_below(&w->lot, TENANTS);
    w->states[ACTOR_APPROVALS_NUMBER] = s;
}

static void release(struct sim *w)
{
    struct approvals *s = approvals_state(w);
    while (s->first != NULL) {
        struct ask *a = s->first;
        s->first = a->next;
        free(a);
    }
    free(s);
    w->states[ACTOR_APPROVALS_NUMBER] = NULL;
}

static const struct action ACTIONS[] = {
    {"somebody asks for approval", 8, NEEDS(ON_APPROVALS), start},
    {"somebody looks at approvals", 8, NEEDS(ON_APPROVALS), look},
    {"somebody decides", 24, NEEDS(ON_APPROVALS), decide_any},
    {"a run that asks is cancelled", 2, NEEDS(ON_APPROVALS), cancel},
    {"a worker takes what was approved", 5, NEEDS(ON_APPROVALS), claim},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_APPROVALS = {.name = "approvals",
                                      .actions = ACTIONS,
                                      .warm = warm,
                                      .begin = begin,
                                      .finish = finish,
                                      .last = last,
                                      .free = release};
