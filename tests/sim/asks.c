#include "sim/asks.h"

#include <stdlib.h>

#define CHECKED "{\"name\":\"after\",\"type\":\"transform\",\"output\":{\"did\":1}}]}"

const struct asking ASKING[ASKING_COUNT] = {
    {.needed = 1,
     .body = "{\"steps\":[{\"name\":\"ok\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":"
             "{\"n\":1}}," CHECKED},
    {.needed = 2,
     .forbids_requester = true,
     .users = 1u << ANN | 1u << BOB | 1u << CAT,
     .expiry = EXPIRES_REJECTED,
     .body = "{\"steps\":[{\"name\":\"ok\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":"
             "{\"n\":1},\"approvers\":{\"count\":2,\"forbid_requester\":true,\"users\":[\"ann\","
             "\"bob\",\"cat\"]},\"expires_s\":600,\"remind_every_s\":200,\"escalation\":"
             "{\"after_s\":300,\"approvers\":{\"users\":[\"ann\",\"bob\",\"cat\"]}}}," CHECKED},
    {.needed = 3,
     .expiry = EXPIRES_APPROVED,
     .continues = true,
     .body = "{\"steps\":[{\"name\":\"ok\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":"
             "{\"n\":1},\"approvers\":{\"count\":3},\"expires_s\":3600,\"on_expire\":\"approve\","
             "\"on_error\":\"continue\"}," CHECKED},
    {.needed = 1,
     .forbids_requester = true,
     .task = true,
     .body = "{\"steps\":[{\"name\":\"ok\",\"type\":\"task\",\"queue\":\"asked\",\"handler\":\"h\","
             "\"input\":{\"n\":1},\"requires_approval\":{\"prompt\":\"p\",\"approvers\":"
             "{\"forbid_requester\":true}}}," CHECKED},
    {.needed = 1,
     .expiry = EXPIRES_FAILED,
     .continues = true,
     .body =
         "{\"steps\":[{\"name\":\"ok\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":"
         "{\"n\":1},\"expires_s\":30,\"on_expire\":\"fail\",\"on_error\":\"continue\"}," CHECKED},
};

struct approvals *approvals_state(struct sim *w)
{
    return w->states[ACTOR_APPROVALS_NUMBER];
}

struct ask *ask_find(struct sim *w, const char *job)
{
    struct ask *a = approvals_state(w)->first;
    while (a != NULL && strcmp(a->job, job) != 0)
        a = a->next;
    return a;
}

struct ask *ask_any(struct sim *w)
{
    struct ask *found = NULL;
    int count = 0;
    for (struct ask *a = approvals_state(w)->first; a != NULL; a = a->next) {
        if (lot_below(&w->lot, ++count) == 0)
            found = a;
    }
    return found;
}

static struct ask *add_ask(struct sim *w, const struct place *p, const json_t *shown)
{
    const char *workflow = json_text(shown, "workflow_id");
    struct ask *a = calloc(1, sizeof(*a));
    assert(a != NULL && workflow[0] == 'a');
    (void)snprintf(a->job, sizeof(a->job), "%s", json_text(shown, "job_id"));
    (void)snprintf(a->run, sizeof(a->run), "%s", json_text(shown, "run_id"));
    a->place = p->number;
    a->asking = &ASKING[workflow[1] - '0'];
    a->requester = person_of(json_text(shown, "requested_by"));
    a->expires_ms = time_of(json_text(shown, "expires_at"));
    sim_check(w, 4, (a->expires_ms >= 0) == (a->asking->expiry != EXPIRES_NEVER),
              "approval %s expires at '%s'", a->job, json_text(shown, "expires_at"));
    once_init(&a->decision);
    if (a->expires_ms >= 0)
        once_may(&a->decision, 0, EXPIRED);
    if (sim_on(w, ON_CONTROL)) { /* others cancel what they like */
        once_may(&a->decision, 0, VOIDED);
        a->cancelled = true;
    }
    a->next = approvals_state(w)->first;
    approvals_state(w)->first = a;
    return a;
}

int ask_class(const char *status)
{
    static const char *const STATUSES[] = {"pending", "approved", "rejected", "expired", "void"};
    for (int i = 0; i < (int)ARRAY_LEN(STATUSES); i++) {
        if (strcmp(status, STATUSES[i]) == 0)
            return i;
    }
    return -1;
}

void ask_identity(char out[static 64], const json_t *shown, const char *by, const char *at)
{
    (void)snprintf(out, 64, "%.20s %.30s", json_text(shown, by), json_text(shown, at));
}

void ask_check(struct sim *w, const struct ask *a, const struct call *c, bool ok)
{
    sim_check(w, 4, ok, "no order of the decisions on %s explains the answer %d %s%s", a->job,
              c->status, c->code, json_text(c->json, "status"));
}

struct look *ask_look_begin(struct sim *w, const struct place *p, struct ask *only)
{
    int most = 0;
    for (struct ask *a = approvals_state(w)->first; a != NULL; a = a->next)
        most++;
    struct look *look = calloc(1, sizeof(*look) + (size_t)most * sizeof(look->at[0]));
    assert(look != NULL);
    for (struct ask *a = approvals_state(w)->first; a != NULL; a = a->next) {
        if (a->place == p->number && (only == NULL || a == only))
            look->at[look->count++] =
                (struct look_at){a, once_sent(&a->decision, w->clock + 1, ONCE_READS)};
    }
    return look;
}

/* Takes it out of the look: what is left was not shown. */
static int take_op(struct look *look, const struct ask *a)
{
    for (int i = 0; i < look->count; i++) {
        if (look->at[i].ask == a) {
            int op = look->at[i].op;
            look->at[i] = look->at[--look->count];
            return op;
        }
    }
    return -1;
}

static void check_recorded(struct sim *w, const struct call *c, const struct ask *a, int64_t votes)
{
    sim_check(w, 6, a->edited || c->sent < a->recorded_at || votes >= ask_count(a->recorded),
              "approval %s has %lld votes, %d were recorded", a->job, (long long)votes,
              ask_count(a->recorded));
}

static void observe(struct sim *w, struct look *look, const struct call *c, const json_t *shown)
{
    const char *job = json_text(shown, "job_id");
    int cls = ask_class(json_text(shown, "status"));
    char id[64] = "";
    sim_check(w, 4, cls >= 0, "approval %s is '%s'", job, json_text(shown, "status"));
    struct ask *a = ask_find(w, job);
    if (a == NULL)
        a = add_ask(w, c->spec.place, shown);
    sim_cover(w, "approval", json_text(shown, "status"));
    if (cls == APPROVED || cls == REJECTED)
        ask_identity(id, shown, "decided_by", "decided_at");
    if (cls == ONCE_NOTHING)
        check_recorded(w, c, a, json_number(shown, "approvals"));
    (void)snprintf(a->hash, sizeof(a->hash), "%s", json_text(shown, "content_hash"));
    int op = take_op(look, a);
    if (op < 0)
        op = once_sent(&a->decision, c->sent, ONCE_READS);
    ask_check(w, a, c, once_found(&a->decision, op, c->answered, ONCE_IS(cls), id));
}

/* A whole list of those that are pending does not have these. */
static void miss(struct sim *w, const struct look_at *at, const struct call *c)
{
    bool whole =
        c != NULL && c->status == 200 && json_is_null(json_object_get(c->json, "next_cursor"));
    if (!whole) {
        once_lost(&at->ask->decision, at->op, w->clock);
        return;
    }
    sim_check(w, 4, once_found(&at->ask->decision, at->op, c->answered, ONCE_VALUES_BUT(0), ""),
              "%s is missing in the list of pending approvals", at->ask->job);
}

void ask_look_end(struct sim *w, struct look *look, const struct call *c)
{
    size_t i;
    json_t *item;
    const json_t *items = c != NULL ? json_object_get(c->json, "items") : NULL;
    if (c != NULL && c->status == 200 && items == NULL)
        observe(w, look, c, c->json);
    json_array_foreach (items, i, item)
        observe(w, look, c, item);
    for (int n = 0; n < look->count; n++)
        miss(w, &look->at[n], c);
    free(look);
}
