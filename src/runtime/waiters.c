/* Callers that wait for a job, for the end of a run, or for the outcome of an update. */
#define _GNU_SOURCE /* memmem */
#include "runtime/waiters.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "core/awaited_runs.h"
#include "core/core.h"
#include "core/entity/entity_txn.h"
#include "core/entity/entity_update.h"
#include "core/txn/lease.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"
#include "runtime/claim_lines.h"

#include <pthread.h>

/* A waiting caller, with the read that it submits when it is woken. */
struct asking {
    struct hash_entry entry;
    struct op *op;
    struct uuid key; /* an effect with this key wakes it: the run's id, or entity_wait_key() */
    int64_t seq;     /* of an update: its decision wakes the caller; 0: any decision does */
    struct op question;
    union {
        struct run_input run;
        struct get_update_input update;
    } input;
    bool asking;
    bool again; /* woken during a read: the answer may be out of date */
    bool last;  /* its time is over: the next answer is final */
};

struct waiters {
    const struct env *env;
    struct waiters_hooks hooks;
    pthread_mutex_t lock; /* guards the next three */
    struct claim_lines claims;
    struct op *taken_oldest, *taken_newest; /* by the writer, linked as ops in flight are */
    size_t taken_count;
    atomic_size_t claims_waiting;
    struct hash_map asking; /* by key; the same key in the order of arrival */
    struct awaited_runs awaited_runs;
    int64_t look_at_ms; /* when to check next whether the callers of claims are connected */
    int64_t due_ms;     /* no wait is over before */
};

struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks)
{
    struct waiters *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->env = env;
    w->hooks = *hooks;
    w->due_ms = INT64_MAX;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void waiters_free(struct waiters *w)
{
    if (w == NULL)
        return;
    assert(w->asking.count == 0 && w->taken_count == 0);
    claim_lines_release(&w->claims);
    hash_map_release(&w->asking);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

size_t waiters_count(struct waiters *w)
{
    pthread_mutex_lock(&w->lock);
    size_t claims = claim_lines_count(&w->claims) + w->taken_count;
    pthread_mutex_unlock(&w->lock);
    return claims + w->asking.count;
}

static int64_t deadline(const struct op *op)
{
    return op->submitted_ms + op->wait_ms;
}

static void note_deadline(struct waiters *w, const struct op *op)
{
    w->due_ms = MIN(w->due_ms, deadline(op));
}

static void give_up_all(struct waiters *w, struct op *first)
{
    while (first != NULL) {
        struct op *op = first;
        first = op->next;
        op->next = NULL;
        w->hooks.give_up(w->hooks.ctx, op);
    }
}

/* --- claims --- */

/* Ends each use of the lines. */
static void unlock_claims(struct waiters *w)
{
    atomic_store(&w->claims_waiting, claim_lines_count(&w->claims));
    pthread_mutex_unlock(&w->lock);
}

bool waiters_add_claim(struct waiters *w, struct op *op)
{
    note_deadline(w, op);
    pthread_mutex_lock(&w->lock);
    bool added = claim_lines_add(&w->claims, op);
    unlock_claims(w);
    return added;
}

static bool is_gone(const struct op *op)
{
    return op->is_there != NULL && !op->is_there(op);
}

/* The name lives as long as the claim. */
static struct str own_name(const struct op *op, struct str queue)
{
    const struct claim_input *in = op->input;
    size_t i = 0;
    while (i + 1 < in->queue_count && !str_eq(in->queues[i], queue))
        i++;
    return in->queues[i];
}

/* True when it may take the job: its caller is still connected. */
static bool offer(struct waiters *w, struct op *op, const struct effect *ready)
{
    bool gone = is_gone(op);
    op->woken_by.owner = ready->ready.owner;
    op->woken_by.ordinal = ready->ready.ordinal;
    op->woken_by.tenant = ready->tenant;
    op->woken_by.queue = own_name(op, ready->ready.queue);
    (gone ? w->hooks.give_up : w->hooks.claim_again)(w->hooks.ctx, op);
    return !gone;
}

static struct op *take_unknown(struct waiters *w, struct str queue)
{
    pthread_mutex_lock(&w->lock);
    struct op *op = claim_lines_take_unknown(&w->claims, queue);
    unlock_claims(w);
    return op;
}

static struct op *take(struct waiters *w, int64_t tenant, struct str queue)
{
    pthread_mutex_lock(&w->lock);
    struct op *op = claim_lines_take(&w->claims, tenant, queue);
    unlock_claims(w);
    return op;
}

/* One job wakes one claim: the one that has waited longest and whose caller is still connected. If
 * the tenant of a claim was not stored yet when the claim came, any job of its queues wakes it,
 * because the tenant may be stored by now. */
static void wake_claim(struct waiters *w, const struct effect *ready)
{
    struct op *op;
    while ((op = take_unknown(w, ready->ready.queue)) != NULL)
        (void)offer(w, op, ready);
    do {
        op = take(w, ready->tenant, ready->ready.queue);
    } while (op != NULL && !offer(w, op, ready));
}

static bool has_job(const struct op *op, int64_t owner, int64_t ordinal)
{
    const struct buf *handed = &op->answer.handed;
    for (size_t at = 0; at < handed->len; at += sizeof(struct handed_job)) {
        struct handed_job job;
        memcpy(&job, handed->ptr + at, sizeof(job));
        if (uuid_time(job.job_id) == owner && jobs_ordinal(job.job_id) == ordinal)
            return true;
    }
    return false;
}

/* One that found nothing has looked where the job was: somebody else has it. One that took others,
 * of another queue or tenant whose turn it was, leaves the job to the next claim that waits for
 * it. */
void waiters_claim_decided(struct waiters *w, struct op *op)
{
    struct effect ready = {.kind = EFFECT_JOB_READY,
                           .tenant = op->woken_by.tenant,
                           .ready = {.queue = op->woken_by.queue,
                                     .owner = op->woken_by.owner,
                                     .ordinal = op->woken_by.ordinal}};
    op->woken_by.owner = 0;
    if (ready.ready.owner != 0 && op->err == ERR_OK && op->answer.handed.len > 0 &&
        !has_job(op, ready.ready.owner, ready.ready.ordinal))
        wake_claim(w, &ready);
}

/* --- claims that join a transaction --- */

/* The caller has the lock. */
static void note_taken(struct waiters *w, struct op *op)
{
    op->joined = true;
    op->batch_begun_ns = 0;
    op->entered_ms = env_mono_ms(w->env);
    op->older = w->taken_newest;
    op->newer = NULL;
    *(w->taken_newest != NULL ? &w->taken_newest->newer : &w->taken_oldest) = op;
    w->taken_newest = op;
    w->taken_count++;
}

static struct op *take_claim(void *ctx, int64_t tenant, struct str queue)
{
    struct waiters *w = ctx;
    pthread_mutex_lock(&w->lock);
    struct op *op = claim_lines_first(&w->claims, tenant, queue);
    if (op != NULL && op->idem.key.len > 0)
        op = NULL;
    if (op != NULL) {
        (void)claim_lines_remove(&w->claims, op);
        note_taken(w, op);
    }
    unlock_claims(w);
    return op;
}

struct claim_source waiters_claim_source(struct waiters *w)
{
    return (struct claim_source){w, take_claim, &w->claims_waiting};
}

const struct awaited_runs *waiters_awaited_runs(const struct waiters *w)
{
    return &w->awaited_runs;
}

void waiters_returned(struct waiters *w, struct op *op)
{
    assert(op->joined);
    pthread_mutex_lock(&w->lock);
    *(op->older != NULL ? &op->older->newer : &w->taken_oldest) = op->newer;
    *(op->newer != NULL ? &op->newer->older : &w->taken_newest) = op->older;
    op->older = op->newer = NULL;
    op->joined = false;
    w->taken_count--;
    pthread_mutex_unlock(&w->lock);
}

/* NULL: none. The answer is sent without the lock: the next request may follow at once. */
static struct op *next_late(struct waiters *w, int64_t mono_ms)
{
    pthread_mutex_lock(&w->lock);
    struct op *op = w->taken_oldest;
    while (op != NULL && (op->abandoned || op->timed_out == NULL))
        op = op->newer;
    if (op != NULL && mono_ms - op->entered_ms < OP_WAIT_MS_MAX)
        op = NULL;
    pthread_mutex_unlock(&w->lock);
    return op;
}

void waiters_time_out(struct waiters *w, int64_t mono_ms)
{
    struct op *op;
    while ((op = next_late(w, mono_ms)) != NULL) {
        op->abandoned = true;
        op->timed_out(op);
    }
}

/* --- starts and updates --- */

static struct asking *asking_of(struct hash_entry *e)
{
    return CONTAINER_OF(e, struct asking, entry);
}

/* The last bytes of the id are random. */
static uint64_t key_hash(struct uuid id)
{
    uint64_t tail;
    memcpy(&tail, id.bytes + sizeof(id.bytes) - sizeof(tail), sizeof(tail));
    return hash_with(tail, 0);
}

static void ask(struct waiters *w, struct asking *r)
{
    if (r->asking) {
        r->again = true;
        return;
    }
    r->asking = true;
    r->again = false;
    w->hooks.read_now(w->hooks.ctx, &r->question);
}

static bool is_update(const struct op *op)
{
    return op->use_case == &UC_UPDATE_ENTITY;
}

/* Sets the read that the waiter submits, and the key that wakes it. */
static void prepare_question(struct asking *r)
{
    const struct op *op = r->op;
    if (is_update(op)) {
        const struct signal_entity_input *in = op->input;
        op_init(&r->question, &UC_GET_UPDATE);
        r->key = entity_wait_key(op->caller.tenant, in->type, in->id);
        r->input.update = (struct get_update_input){in->type, in->id, op->answer.update_seq,
                                                    in->dedup_key, op->answer.update_of};
        r->seq = op->answer.update_seq;
        r->question.input = &r->input.update;
    } else {
        assert(op->answer.has_run);
        op_init(&r->question, &UC_GET_RUN);
        r->key = op->answer.run_id;
        r->input.run = (struct run_input){op->answer.run_id, .as_started = true};
        r->question.input = &r->input.run;
    }
    r->question.caller = op->caller;
    r->question.owner = r;
}

bool waiters_add_asking(struct waiters *w, struct op *op, bool read_now)
{
    struct asking *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return false;
    r->op = op;
    r->last = op->wait_ms == 0;
    prepare_question(r);
    hash_map_add(&w->asking, &r->entry, key_hash(r->key));
    if (!is_update(op))
        awaited_runs_add(&w->awaited_runs, r->key);
    note_deadline(w, op);
    if (read_now)
        ask(w, r);
    return true;
}

static void remove_asking(struct waiters *w, struct asking *r)
{
    hash_map_remove(&w->asking, &r->entry);
    if (!is_update(r->op))
        awaited_runs_remove(&w->awaited_runs, r->key);
    op_release(&r->question);
    free(r);
}

/* Puts the run's present state into the start's answer, whose other members come before the run and
 * stay: `created`, `run_id`, `coalesced`. Without memory the committed answer stays. */
static void show_run(struct op *op, struct str shows, int64_t version)
{
    const struct str member = STR("\"run\":");
    struct str committed = buf_str(&op->answer.body);
    const char *run = memmem(committed.ptr, committed.len, member.ptr, member.len);
    if (run == NULL) /* a stored answer that is damaged */
        return;
    struct buf shown;
    buf_init(&shown, HTTP_REPLY_MAX);
    buf_put_bytes(&shown, committed.ptr, (size_t)(run - committed.ptr) + member.len);
    buf_put(&shown, shows);
    buf_put_char(&shown, '}');
    if (answer_replace(&op->answer, &shown))
        op->answer.run_version = version;
}

bool waiters_answer(struct waiters *w, struct op *question)
{
    bool asks = question->use_case == &UC_GET_RUN || question->use_case == &UC_GET_UPDATE;
    if (!asks || question->done != NULL)
        return false;
    struct asking *r = question->owner;
    assert(&r->question == question && r->asking);
    r->asking = false;
    bool ok = question->err == ERR_OK;
    if (ok && is_update(r->op))
        entity_update_answer_shown(r->op, &question->answer);
    else if (ok) {
        r->op->answer.run_over = question->answer.run_over;
        show_run(r->op, buf_str(&question->answer.body), question->answer.run_version);
    }
    if (ok && !r->op->answer.run_over && !r->last) {
        if (r->again)
            ask(w, r);
        return true;
    }
    /* It ended, its time is over, or the state cannot be read: the committed answer is sent, unless
     * the entity no longer exists. */
    struct op *op = r->op;
    if (question->err == ERR_ENTITY_NOT_FOUND)
        op->err = problem_set(&op->problem, question->err, "%s", question->problem.detail);
    remove_asking(w, r);
    w->hooks.give_up(w->hooks.ctx, op);
    return true;
}

/* With what the effect shows. A read that is under way ends the wait by itself. */
static bool may_show(const struct asking *r, const struct effect *x)
{
    return x->kind == EFFECT_RUN_ENDED && x->decided.shown.ptr != NULL && !is_update(r->op) &&
           !r->asking;
}

static struct op *end_with(struct waiters *w, struct asking *r, const struct effect *x)
{
    struct op *op = r->op;
    op->answer.run_over = true;
    show_run(op, x->decided.shown, x->decided.version);
    remove_asking(w, r);
    return op;
}

static void wake_asking(struct waiters *w, const struct effect *x)
{
    int64_t after = x->decided.after;
    int64_t through = x->decided.through;
    struct op *ended = NULL; /* answered when the table is not walked: more may come to it then */
    struct op **last = &ended;
    struct hash_entry *e = hash_map_find(&w->asking, key_hash(x->decided.key));
    while (e != NULL) {
        struct asking *r = asking_of(e);
        e = hash_map_find_next(e);
        bool decided = through == 0 || r->seq == 0 || (r->seq > after && r->seq <= through);
        if (!decided || !uuid_eq(r->key, x->decided.key))
            continue;
        if (!may_show(r, x)) {
            ask(w, r);
            continue;
        }
        *last = end_with(w, r, x);
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    give_up_all(w, ended);
}

/* --- both --- */

void waiters_wake(struct waiters *w, const struct effect *first)
{
    for (const struct effect *x = first; x != NULL; x = x->next) {
        if (x->kind == EFFECT_JOB_READY && !x->ready.leased)
            wake_claim(w, x);
        else if (x->kind == EFFECT_RUN_ENDED || x->kind == EFFECT_UPDATES_DECIDED)
            wake_asking(w, x);
    }
}

struct turn {
    struct waiters *w;
    int64_t mono_ms;
    bool looks; /* whether callers are connected */
    bool all;
    struct op *ended, **ended_last; /* claims, to be answered without the lock */
};

static bool claim_is_over(void *ctx, const struct op *op)
{
    const struct turn *t = ctx;
    if (t->all || deadline(op) <= t->mono_ms || (t->looks && is_gone(op)))
        return true;
    note_deadline(t->w, op);
    return false;
}

static void end_claim(void *ctx, struct op *op)
{
    struct turn *t = ctx;
    op->next = NULL;
    *t->ended_last = op;
    t->ended_last = &op->next;
}

static void end_claims(struct turn *t)
{
    struct waiters *w = t->w;
    t->ended_last = &t->ended;
    pthread_mutex_lock(&w->lock);
    claim_lines_sift(&w->claims, claim_is_over, end_claim, t);
    unlock_claims(w);
    give_up_all(w, t->ended);
}

static void end_asking(const struct turn *t)
{
    HASH_MAP_WALK (&t->w->asking, e) {
        struct asking *r = asking_of(e);
        if (r->last)
            continue;
        if (!t->all && deadline(r->op) > t->mono_ms) {
            note_deadline(t->w, r->op);
            continue;
        }
        r->last = true;
        ask(t->w, r);
    }
}

void waiters_tick(struct waiters *w, int64_t mono_ms, bool all)
{
    struct turn t = {.w = w, .mono_ms = mono_ms, .looks = mono_ms >= w->look_at_ms, .all = all};
    if (!all && !t.looks && mono_ms < w->due_ms)
        return;
    if (t.looks)
        w->look_at_ms = mono_ms + CLAIM_LOOK_MS;
    w->due_ms = INT64_MAX; /* until those that go on waiting say otherwise */
    end_claims(&t);
    end_asking(&t);
}

void waiters_leave(struct waiters *w, const struct op *op)
{
    pthread_mutex_lock(&w->lock);
    struct op *claim = claim_lines_remove(&w->claims, op);
    unlock_claims(w);
    if (claim != NULL) {
        w->hooks.give_up(w->hooks.ctx, claim);
        return;
    }
    HASH_MAP_WALK (&w->asking, e) {
        struct asking *r = asking_of(e);
        if (r->op != op)
            continue;
        r->last = true;
        if (r->asking)
            return; /* the read under way ends the wait */
        struct op *found = r->op;
        remove_asking(w, r);
        w->hooks.give_up(w->hooks.ctx, found);
        return;
    }
}
