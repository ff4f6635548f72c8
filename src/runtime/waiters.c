/* Callers that wait for a job, for the end of a run, or for the outcome of an update. */
#define _GNU_SOURCE /* memmem */
#include "runtime/waiters.h"

#include "base/hash_map.h"
#include "base/limits.h"
#include "core/entity/entity_txn.h"
#include "core/entity/entity_update.h"
#include "core/txn/render.h"
#include "core/usecase/use_cases.h"
#include "runtime/claim_lines.h"

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
    struct claim_lines claims;
    struct hash_map asking; /* by key; the same key in the order of arrival */
    int64_t look_at_ms;     /* when to check next whether the callers of claims are connected */
    int64_t due_ms;         /* no wait is over before */
};

struct waiters *waiters_new(const struct env *env, const struct waiters_hooks *hooks)
{
    struct waiters *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->env = env;
    w->hooks = *hooks;
    w->due_ms = INT64_MAX;
    return w;
}

void waiters_free(struct waiters *w)
{
    if (w == NULL)
        return;
    assert(w->asking.count == 0);
    claim_lines_release(&w->claims);
    hash_map_release(&w->asking);
    free(w);
}

size_t waiters_count(const struct waiters *w)
{
    return claim_lines_count(&w->claims) + w->asking.count;
}

static int64_t deadline(const struct op *op)
{
    return op->submitted_ms + op->wait_ms;
}

static void note_deadline(struct waiters *w, const struct op *op)
{
    w->due_ms = MIN(w->due_ms, deadline(op));
}

/* --- claims --- */

bool waiters_add_claim(struct waiters *w, struct op *op)
{
    note_deadline(w, op);
    return claim_lines_add(&w->claims, op);
}

static bool is_gone(const struct op *op)
{
    return op->is_there != NULL && !op->is_there(op);
}

/* True when it may take the job: its caller is still connected. */
static bool offer(struct waiters *w, struct op *op)
{
    bool gone = is_gone(op);
    (gone ? w->hooks.give_up : w->hooks.claim_again)(w->hooks.ctx, op);
    return !gone;
}

/* One job wakes one claim: the one that has waited longest and whose caller is still connected. If
 * the tenant of a claim was not stored yet when the claim came, any job of its queues wakes it,
 * because the tenant may be stored by now. */
static void wake_claim(struct waiters *w, const struct effect *ready)
{
    struct op *op;
    while ((op = claim_lines_take_unknown(&w->claims, ready->queue)) != NULL)
        (void)offer(w, op);
    do {
        op = claim_lines_take(&w->claims, ready->tenant, ready->queue);
    } while (op != NULL && !offer(w, op));
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
    note_deadline(w, op);
    if (read_now)
        ask(w, r);
    return true;
}

static void remove_asking(struct waiters *w, struct asking *r)
{
    hash_map_remove(&w->asking, &r->entry);
    op_release(&r->question);
    free(r);
}

/* Puts the run's present state into the start's answer, whose other members come before the run and
 * stay: `created`, `run_id`, `coalesced`. Without memory the committed answer stays. */
static void show_run(struct op *op, const struct op *question)
{
    const struct str member = STR("\"run\":");
    struct str committed = buf_str(&op->answer.body);
    const char *run = memmem(committed.ptr, committed.len, member.ptr, member.len);
    op->answer.run_over = question->answer.run_over;
    if (run == NULL) /* a stored answer that is damaged */
        return;
    struct buf shown;
    buf_init(&shown, HTTP_REPLY_MAX);
    buf_put_bytes(&shown, committed.ptr, (size_t)(run - committed.ptr) + member.len);
    buf_put(&shown, buf_str(&question->answer.body));
    buf_put_char(&shown, '}');
    if (answer_replace(&op->answer, &shown))
        op->answer.run_version = question->answer.run_version;
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
    else if (ok)
        show_run(r->op, question);
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

static void wake_asking(struct waiters *w, const struct effect *x)
{
    int64_t after = x->decided.after;
    int64_t through = x->decided.through;
    struct hash_entry *e = hash_map_find(&w->asking, key_hash(x->decided.key));
    for (; e != NULL; e = hash_map_find_next(e)) {
        struct asking *r = asking_of(e);
        bool decided = through == 0 || r->seq == 0 || (r->seq > after && r->seq <= through);
        if (decided && uuid_eq(r->key, x->decided.key))
            ask(w, r);
    }
}

/* --- both --- */

void waiters_wake(struct waiters *w, const struct effect *first)
{
    for (const struct effect *x = first; x != NULL; x = x->next) {
        if (x->kind == EFFECT_JOB_READY)
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
    const struct turn *t = ctx;
    t->w->hooks.give_up(t->w->hooks.ctx, op);
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
    struct turn t = {w, mono_ms, mono_ms >= w->look_at_ms, all};
    if (!all && !t.looks && mono_ms < w->due_ms)
        return;
    if (t.looks)
        w->look_at_ms = mono_ms + CLAIM_LOOK_MS;
    w->due_ms = INT64_MAX; /* until those that go on waiting say otherwise */
    claim_lines_sift(&w->claims, claim_is_over, end_claim, &t);
    end_asking(&t);
}

void waiters_leave(struct waiters *w, const struct op *op)
{
    struct op *claim = claim_lines_remove(&w->claims, op);
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
