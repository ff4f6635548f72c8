/* The model of durable functions. Promise 3: what is stored under a name counts once, and a worker
 * whose lease is gone stores nothing. Promise 5: a signal ends one wait, once. Promise 6: nothing
 * that was acknowledged is lost, and no suspended function is. */
#include "sim/jobs/functions.h"

#include "sim/people.h"

#include <stdlib.h>

enum { EXPIRY_SLACK_MS = 5, EXPIRED = 3 };

/* --- what there is --- */

enum step_kind function_step_kind(const struct function *f, int step)
{
    static const enum step_kind WAITS[] = {STEP_SLEEPS, STEP_HEARS, STEP_ASKS};
    if (step % 2 == 0)
        return STEP_WORKS;
    return WAITS[(str_hash(str_of(f->id)) + (uint64_t)step) % ARRAY_LEN(WAITS)];
}

int64_t functions_mark(struct sim *w, const struct function *f, int step, const char *run)
{
    struct functions *s = functions_state(w);
    if (s->mark_count == MARKS_MAX)
        return NOTHING;
    struct mark *m = &s->marks[s->mark_count];
    *m = (struct mark){.f = f, .step = step};
    (void)snprintf(m->run, sizeof(m->run), "%s", run);
    return s->mark_count++;
}

struct question *functions_question(struct sim *w, const char *id, int place)
{
    struct functions *s = functions_state(w);
    for (struct question *q = s->questions; q != NULL; q = q->next) {
        if (strcmp(q->id, id) == 0)
            return q;
    }
    struct question *q = calloc(1, sizeof(*q));
    assert(q != NULL);
    (void)snprintf(q->id, sizeof(q->id), "%s", id);
    q->place = place;
    q->next = s->questions;
    s->questions = q;
    return q;
}

static struct function *find_or_add(struct sim *w, const struct call *c, const json_t *job)
{
    struct functions *s = functions_state(w);
    for (struct function *f = s->first; f != NULL; f = f->next) {
        if (strcmp(f->id, json_text(job, "job_id")) == 0)
            return f;
    }
    struct function *f = calloc(1, sizeof(*f));
    assert(f != NULL);
    (void)snprintf(f->id, sizeof(f->id), "%s", json_text(job, "job_id"));
    (void)snprintf(f->run, sizeof(f->run), "%s", json_text(job, "run_id"));
    f->place = c->spec.place->number;
    f->alone = json_object_get(job, "item") == NULL;
    f->waits = NOTHING;
    for (int i = 0; i < FUNCTION_STEPS; i++) {
        f->values[i] = f->brought[i] = NOTHING;
        f->until_ms[i] = INT64_MAX;
    }
    f->next = s->first;
    s->first = f;
    return f;
}

/* --- results --- */

/* The first value that was ever shown stays, and somebody has sent it. */
static void check_value(struct sim *w, struct function *f, const struct call *c, int step,
                        int64_t value)
{
    const struct functions *s = functions_state(w);
    bool known =
        value >= 0 &&
        (function_step_kind(f, step) != STEP_WORKS ||
         (value < s->mark_count && s->marks[value].f == f && s->marks[value].step == step));
    sim_check(w, 3, known, "s%d of function %s is %lld, which nobody has sent", step, f->id,
              (long long)value);
    sim_check(w, 3, f->values[step] == NOTHING || f->values[step] == value,
              "s%d of function %s is %lld, and was %lld", step, f->id, (long long)value,
              (long long)f->values[step]);
    if (f->values[step] != NOTHING)
        return;
    f->values[step] = value;
    f->known_at[step] = c->answered;
}

/* Something was done under the lease, so it was valid at some time while the call was under way. */
static void check_valid(struct sim *w, const struct function_lease *l, const struct call *c)
{
    for (const struct function_lease *other = l->f->newest; other != NULL; other = other->next)
        sim_check(w, 3, other->sent <= l->answered || other->answered >= c->sent,
                  "%s of function %s is done under the lease %s, but %s was handed out after it",
                  c->spec.target, l->f->id, l->token, other->token);
    sim_check(w, 3, l->ended == 0 || l->ended >= c->sent,
              "%s is done under the lease %s, which has ended", c->spec.target, l->token);
    bool exact = !sim_on(w, ON_CLOCKS) && !sim_on(w, ON_DISK) && !sim_on(w, ON_NODES);
    sim_check(w, 3, !exact || c->sent_ms <= l->expires_ms + EXPIRY_SLACK_MS,
              "%s is done %lld ms after the end of the lease %s", c->spec.target,
              (long long)(c->sent_ms - l->expires_ms), l->token);
}

void function_stored(struct sim *w, struct function_lease *l, const struct call *c, int step,
                     int64_t sent)
{
    bool now = strcmp(json_text(c->json, "status"), "stored") == 0;
    int64_t value = json_number(json_object_get(c->json, "output"), "m");
    bool differs = json_is_true(json_object_get(c->json, "differs"));
    sim_check(w, 3, now || strcmp(json_text(c->json, "status"), "already_stored") == 0,
              "a checkpoint of function %s is %s", l->f->id, json_text(c->json, "status"));
    if (now) {
        sim_check(w, 3, value == sent, "s%d of function %s is stored as %lld, not %lld", step,
                  l->f->id, (long long)value, (long long)sent);
        sim_check(w, 3, l->f->values[step] == NOTHING || l->f->known_at[step] >= c->sent,
                  "s%d of function %s is stored a second time", step, l->f->id);
        check_valid(w, l, c);
    }
    sim_check(w, 3, differs == (value != sent), "s%d of function %s is %lld, %lld was sent", step,
              l->f->id, (long long)value, (long long)sent);
    check_value(w, l->f, c, step, value);
    sim_cover(w, "function", differs ? "stored otherwise" : json_text(c->json, "status"));
    l->values[step] = value;
}

void function_completed(struct sim *w, struct function_lease *l, const struct call *c)
{
    if (strcmp(json_text(c->json, "status"), "completed") == 0)
        check_valid(w, l, c);
    if (l->f->completed == 0)
        l->f->completed = c->answered;
    l->ended = l->ended == 0 ? c->answered : l->ended;
    sim_cover(w, "function", "completed");
}

/* --- suspensions --- */

/* More signals were acknowledged before it was asked for than its other waits can have taken. */
static bool signal_was_there(struct sim *w, const struct function *f, const struct call *c,
                             int step)
{
    const struct functions *s = functions_state(w);
    int left = -__builtin_popcount(f->heard & ~(1u << step));
    for (int i = 0; i < s->mark_count; i++) {
        const struct mark *m = &s->marks[i];
        left += strcmp(m->run, f->run) == 0 && m->acknowledged > 0 && m->acknowledged < c->sent;
    }
    return left > 0;
}

void function_suspended(struct sim *w, struct function_lease *l, const struct call *c, int step)
{
    struct function *f = l->f;
    const char *status = json_text(c->json, "status");
    sim_check(w, 3, strcmp(status, "suspended") == 0 || strcmp(status, "already_suspended") == 0,
              "a suspension of function %s is %s", f->id, status);
    if (strcmp(status, "suspended") == 0)
        check_valid(w, l, c);
    if (function_step_kind(f, step) == STEP_HEARS && f->alone && signal_was_there(w, f, c, step)) {
        sim_check(w, 5, strcmp(json_text(c->json, "run_status"), "waiting") != 0,
                  "function %s waits for a signal that had come", f->id);
        sim_cover(w, "function", "signal was there");
    }
    if (function_step_kind(f, step) == STEP_ASKS)
        (void)functions_question(w, json_text(c->json, "approval_id"), f->place);
    sim_cover(w, "function", status);
    if (l->ended == 0)
        l->ended = c->answered;
    if (l != f->newest)
        return;
    f->waits = step;
    f->waits_since = c->answered;
}

void question_decided(struct sim *w, struct question *q, int64_t decision)
{
    sim_check(w, 4, q->decided == 0 || q->decided == decision,
              "question %s is decided as %lld, and was as %lld", q->id, (long long)decision,
              (long long)q->decided);
    q->decided = decision;
}

static int64_t brought_by_signal(struct sim *w, const struct function *f, int step,
                                 const json_t *by)
{
    struct functions *s = functions_state(w);
    int64_t value = json_number(json_object_get(by, "payload"), "m");
    sim_check(w, 5, value >= 0 && value < s->mark_count && strcmp(s->marks[value].run, f->run) == 0,
              "function %s gets the signal %lld, which nobody has sent", f->id, (long long)value);
    struct mark *m = &s->marks[value];
    sim_check(w, 5, m->f == NULL || (m->f == f && m->step == step),
              "signal %lld ends s%d of function %s, and has ended another wait", (long long)value,
              step, f->id);
    m->f = f;
    m->step = step;
    return value;
}

static int64_t brought_by_people(struct sim *w, const struct function *f, const json_t *by)
{
    struct question *q = functions_question(w, json_text(by, "approval_id"), f->place);
    const char *decision = json_text(by, "decision");
    int64_t value = strcmp(decision, "approved") == 0   ? 1
                    : strcmp(decision, "rejected") == 0 ? 2
                                                        : EXPIRED;
    sim_check(w, 4, value == EXPIRED ? strcmp(decision, "expired") == 0 : q->said[value],
              "question %s of function %s is %s, which nobody has said", q->id, f->id, decision);
    question_decided(w, q, value);
    return value;
}

/* What has come, as one number. */
static int64_t brought_by(struct sim *w, const struct function *f, int step, const json_t *by)
{
    static const char *const KINDS[] = {"", "timer", "signal", "approval"};
    enum step_kind kind = function_step_kind(f, step);
    sim_check(w, 3, strcmp(json_text(by, "kind"), KINDS[kind]) == 0,
              "s%d of function %s is ended by %s, not by %s", step, f->id, json_text(by, "kind"),
              KINDS[kind]);
    sim_cover(w, "function", json_text(by, "kind"));
    if (kind == STEP_HEARS)
        return brought_by_signal(w, f, step, by);
    if (kind == STEP_ASKS)
        return brought_by_people(w, f, by);
    sim_check(w, 3, time_of(json_text(by, "at")) >= f->until_ms[step],
              "s%d of function %s has slept until %s only", step, f->id, json_text(by, "at"));
    return 0;
}

static void take_resumption(struct sim *w, struct function *f, struct function_lease *l,
                            const json_t *by)
{
    const char *name = json_text(by, "name");
    int step = name[0] == 's' ? name[1] - '0' : NOTHING;
    sim_check(w, 3, step > 0 && step < FUNCTION_STEPS, "function %s is resumed by '%s'", f->id,
              name);
    int64_t value = brought_by(w, f, step, by);
    sim_check(w, 3, f->brought[step] == NOTHING || f->brought[step] == value,
              "s%d of function %s is ended by %lld, and was by %lld", step, f->id, (long long)value,
              (long long)f->brought[step]);
    f->brought[step] = value;
    l->resumed = step;
    l->brought = value;
}

/* --- claims --- */

static void take_values(struct sim *w, struct function *f, struct function_lease *l,
                        const struct call *c, const json_t *job)
{
    const json_t *checkpoints = json_object_get(job, "checkpoints");
    for (int i = 0; i < FUNCTION_STEPS; i++) {
        char name[4] = {'s', (char)('0' + i), '\0'};
        l->values[i] = json_number(json_object_get(checkpoints, name), "m");
        l->tried[i] = NOTHING;
        if (l->values[i] != NOTHING)
            check_value(w, f, c, i, l->values[i]);
        sim_check(w, 6,
                  l->values[i] != NOTHING || f->values[i] == NOTHING || f->known_at[i] >= c->sent,
                  "function %s is handed out without s%d, which was stored", f->id, i);
    }
}

/* It was suspended before somebody asked: only what it waits for can have brought it back. */
static void check_wait(struct sim *w, struct function *f, const struct function_lease *l,
                       const struct call *c)
{
    if (f->waits == NOTHING || f->waits_since >= c->sent)
        return;
    sim_check(w, 3, l->resumed == f->waits,
              "function %s is suspended by s%d, and is handed out as if by s%d", f->id, f->waits,
              l->resumed);
    /* With faults a claim whose answer was lost may have taken it, and its lease have ended. */
    bool exact = (w->features & NEEDS_FAULTS) == 0 && l->next != NULL;
    sim_check(w, 3, !exact || l->attempt == l->next->attempt,
              "function %s is resumed as attempt %lld", f->id, (long long)l->attempt);
}

struct function_lease *function_claimed(struct sim *w, const struct call *c, const json_t *job)
{
    struct function *f = find_or_add(w, c, job);
    struct function_lease *l = calloc(1, sizeof(*l));
    assert(l != NULL);
    *l = (struct function_lease){.f = f,
                                 .attempt = json_number(job, "attempt"),
                                 .sent = c->sent,
                                 .answered = c->answered,
                                 .expires_ms = time_of(json_text(job, "lease_expires_at")),
                                 .resumed = NOTHING,
                                 .next = f->newest};
    (void)snprintf(l->token, sizeof(l->token), "%s", json_text(job, "lease_token"));
    sim_check(w, 3, f->completed == 0 || f->completed >= c->sent,
              "function %s is handed out after its completion", f->id);
    f->newest = l;
    take_values(w, f, l, c, job);
    if (json_object_get(job, "resumed_by") != NULL)
        take_resumption(w, f, l, json_object_get(job, "resumed_by"));
    check_wait(w, f, l, c);
    f->waits = NOTHING;
    return l;
}

/* --- the end --- */

void function_check_shown(struct sim *w, const struct function *f, const json_t *job,
                          bool run_succeeded)
{
    const json_t *checkpoints = json_object_get(job, "checkpoints");
    const json_t *output = json_object_get(job, "output");
    for (int i = 0; i < FUNCTION_STEPS; i++) {
        char name[4] = {'s', (char)('0' + i), '\0'};
        int64_t value = json_number(json_object_get(checkpoints, name), "m");
        sim_check(w, 6, f->values[i] == NOTHING || f->values[i] == value,
                  "s%d of function %s is shown as %lld, and was %lld", i, f->id, (long long)value,
                  (long long)f->values[i]);
        sim_check(w, 3,
                  !run_succeeded || value == json_integer_value(json_array_get(output, (size_t)i)),
                  "function %s has another result of s%d than its checkpoint", f->id, i);
    }
    sim_check(w, 6, f->completed == 0 || strcmp(json_text(job, "state"), "succeeded") == 0,
              "function %s was completed, and is %s", f->id, json_text(job, "state"));
    sim_cover(w, "function ends", json_text(job, "state"));
}
