/* Decisions one after the other, without faults: each answer is known beforehand. */
#include "sim/actors/script.h"

enum { NEEDED = 2, DECISIONS = 8 };

/* The requester is the one who has no name in the requests. */
enum decider { REQUESTER, ANN, BOB, CAT, DECIDERS };

static const char *const NAMES[DECIDERS] = {NULL, "ann", "bob", "cat"};

struct decision {
    enum decider by;
    bool approves;
    bool edits;    /* the content: it was never so before */
    bool sees_old; /* names the hash of the first content */
};

/* What is to be decided, so far. */
struct question {
    char job[40];
    char hash[80];
    unsigned voters; /* bits of deciders, for the present content */
    bool edited;
    const char *decided; /* "approved" or "rejected"; NULL: not yet */
};

static void warm(struct sim *w, struct place *p)
{
    static const struct script_put ROWS[] = {
        {SCRIPT_TENANT, "/api/v1/workflows/decided",
         "{\"steps\":[{\"name\":\"a\",\"type\":\"approval\",\"prompt\":\"p\",\"content\":{\"n\":1},"
         "\"approvers\":{\"count\":2,\"forbid_requester\":true},\"expires_s\":600}]}"}};
    script_warm(w, p, ROWS, ARRAY_LEN(ROWS));
}

/* --- the rules --- */

static int64_t votes_with(const struct question *q, const struct decision *d)
{
    unsigned voters = (d->edits ? 0 : q->voters) | 1u << d->by;
    return __builtin_popcount(voters);
}

/* The status or the code that answers it. */
static const char *answer_to(const struct question *q, const struct decision *d)
{
    if (q->decided != NULL && d->approves == (strcmp(q->decided, "approved") == 0))
        return d->approves ? "already_approved" : "already_rejected";
    if (q->decided != NULL)
        return "APPROVAL_CONFLICT";
    if (d->approves && (q->voters >> d->by & 1) != 0 && !d->edits)
        return "already_recorded";
    if (d->approves && d->by == REQUESTER)
        return "SELF_APPROVAL_DENIED";
    if (d->sees_old && q->edited)
        return "APPROVAL_STALE";
    if (!d->approves)
        return "rejected";
    return votes_with(q, d) < NEEDED ? "recorded" : "approved";
}

static void take(struct question *q, const struct decision *d, const char *answer)
{
    bool counts = strcmp(answer, "recorded") == 0 || strcmp(answer, "approved") == 0;
    if (counts) {
        q->voters = (d->edits ? 0 : q->voters) | 1u << d->by;
        q->edited |= d->edits;
    }
    if (strcmp(answer, "approved") == 0 || strcmp(answer, "rejected") == 0)
        q->decided = answer;
}

/* --- asking --- */

static bool begin_question(struct sim *w, struct question *q)
{
    char run[40];
    *q = (struct question){0};
    if (!script_start(w, SCRIPT_TENANT, "decided", "{}", run))
        return false;
    struct call *c =
        script_ask(w, SCRIPT_TENANT, "GET", "/api/v1/approvals?status=pending&limit=1", NULL);
    const json_t *first = c != NULL ? json_array_get(json_object_get(c->json, "items"), 0) : NULL;
    bool found = strcmp(json_text(first, "run_id"), run) == 0;
    (void)snprintf(q->job, sizeof(q->job), "%s", json_text(first, "job_id"));
    (void)snprintf(q->hash, sizeof(q->hash), "%s", json_text(first, "content_hash"));
    call_free(c);
    return found;
}

static struct decision some_decision(struct sim *w, const struct question *q)
{
    struct decision d = {.by = (enum decider)lot_below(&w->lot, DECIDERS),
                         .approves = lot_percent(&w->lot, q->decided != NULL ? 50 : 85)};
    d.edits = d.approves && lot_percent(&w->lot, 25);
    d.sees_old = !d.edits && lot_percent(&w->lot, 30);
    return d;
}

static struct call *send(struct sim *w, const struct question *q, const struct decision *d, int n)
{
    char target[96];
    char body[120] = "{}";
    (void)snprintf(target, sizeof(target), "/api/v1/approvals/%s/%s", q->job,
                   d->approves ? "approve" : "reject");
    if (d->edits)
        (void)snprintf(body, sizeof(body), "{\"edited\":{\"n\":%d}}", 2 + n);
    else if (d->sees_old)
        (void)snprintf(body, sizeof(body), "{\"expected_hash\":\"%s\"}", q->hash);
    struct call *c =
        sim_ask_as(w, script_place(w), NAMES[d->by], SCRIPT_TENANT, "POST", target, body);
    sim_tell(w, "  script: %s: %s %s -> %d %s%s", NAMES[d->by] != NULL ? NAMES[d->by] : "requester",
             target, body, c != NULL ? c->status : 0, c != NULL ? c->code : "",
             c != NULL ? json_text(c->json, "status") : "");
    return c;
}

/* False: nobody knows what was decided. */
static bool decide(struct sim *w, struct question *q, const struct decision *d, int n)
{
    const char *expected = answer_to(q, d);
    int64_t votes = votes_with(q, d);
    struct call *c = send(w, q, d, n);
    bool answered = c != NULL && c->status < 500 && strcmp(c->code, "APPROVAL_EXPIRED") != 0;
    if (answered) {
        const char *answer = c->status == 200 ? json_text(c->json, "status") : c->code;
        sim_check(w, 4, strcmp(answer, expected) == 0, "decision %d on %s is answered %s, not %s",
                  n + 1, q->job, answer, expected);
        sim_check(w, 4,
                  strcmp(expected, "recorded") != 0 || json_number(c->json, "approvals") == votes,
                  "decision %d on %s counts %lld votes, not %lld", n + 1, q->job,
                  (long long)json_number(c->json, "approvals"), (long long)votes);
        take(q, d, expected);
    }
    call_free(c);
    return answered;
}

static void decide_in_order(struct sim *w)
{
    struct question q;
    if (!begin_question(w, &q))
        return;
    bool known = true;
    for (int i = 0; i < DECISIONS && known; i++) {
        struct decision d = some_decision(w, &q);
        known = decide(w, &q, &d, i);
    }
}

static const struct action ACTIONS[] = {
    {"people decide in order", 3, NEEDS(ON_SCRIPTS), decide_in_order},
    {NULL, 0, 0, NULL},
};

const struct actor ACTOR_DECISIONS = {.name = "decisions", .actions = ACTIONS, .warm = warm};
