#include "sim/once.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

enum { SEARCH_MAX = 1500 };

/* The states that a search has come to. */
struct search {
    struct once_state found[SEARCH_MAX];
    int count;
    bool whole; /* false: there was no room for all of them */
};

void once_init(struct once *o)
{
    o->op_count = 0;
    o->id_count = 1; /* 0: not shown */
    o->next_number = 1;
    o->retired = false;
    o->state_count = 1;
    o->states[0] = (struct once_state){.cls = ONCE_NOTHING};
}

bool once_is_unused(const struct once *o)
{
    return o->next_number == 1;
}

/* --- identities --- */

/* 0 for "", or when there are too many. */
static int id_of(struct once *o, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return 0;
    for (int i = 1; i < o->id_count; i++) {
        if (strcmp(o->ids[i], text) == 0)
            return i;
    }
    if (o->id_count == ONCE_IDS_MAX) {
        o->retired = true;
        return 0;
    }
    (void)snprintf(o->ids[o->id_count], sizeof(o->ids[0]), "%s", text);
    return o->id_count++;
}

/* The register's value has this identity: possible? */
static bool is_called(struct once_state *s, int id)
{
    if (id == 0)
        return true;
    if (s->id != 0)
        return s->id == id;
    if ((s->dead >> id & 1u) != 0) /* that one was cleared */
        return false;
    s->id = id;
    return true;
}

/* --- one operation in one state --- */

static void clear(struct once_state *s)
{
    if (s->id != 0)
        s->dead |= 1u << s->id;
    s->cls = ONCE_NOTHING;
    s->id = 0;
}

/* It changes the register. */
static bool change(const struct once_op *op, struct once_state *s)
{
    if (op->does == ONCE_CLEARS) {
        if (s->cls == ONCE_NOTHING || !is_called(s, op->id))
            return false;
        clear(s);
        return true;
    }
    if (op->does < 0 || s->cls != ONCE_NOTHING)
        return false;
    s->cls = op->does;
    s->id = 0;
    return is_called(s, op->id);
}

static bool apply(const struct once_op *op, struct once_state *s)
{
    if (!op->answered || op->won)
        return change(op, s);
    if ((op->seen >> s->cls & 1u) == 0)
        return false;
    return op->id == 0 || (s->cls != ONCE_NOTHING && is_called(s, op->id));
}

/* --- all orders --- */

static bool is_done(const struct once_state *s, int op)
{
    return (s->done >> op & 1) != 0;
}

/* Two that nobody can tell apart, as repetitions of one request. */
static bool are_alike(const struct once_op *a, const struct once_op *b)
{
    return !a->answered && !b->answered && !a->open && !b->open && a->does == b->does &&
           a->sent == b->sent && a->until == b->until;
}

/* May it come next, by the times of the others? Those that are alike come in their order. */
static bool may_follow(const struct once *o, const struct once_state *s, int op)
{
    const struct once_op *next = &o->ops[op];
    for (int i = 0; i < o->op_count; i++) {
        const struct once_op *other = &o->ops[i];
        if (i < op && !is_done(s, i) && are_alike(other, next))
            return false;
        if (is_done(s, i) ? next->until < other->sent
                          : other->answered && other->until < next->sent)
            return false;
    }
    return true;
}

static void add(struct search *x, const struct once_state *s)
{
    for (int i = 0; i < x->count; i++) {
        const struct once_state *f = &x->found[i];
        if (f->done == s->done && f->dead == s->dead && f->cls == s->cls && f->id == s->id)
            return;
    }
    if (x->count == SEARCH_MAX) {
        x->whole = false;
        return;
    }
    x->found[x->count++] = *s;
}

static uint64_t answered_ops(const struct once *o)
{
    uint64_t bits = 0;
    for (int i = 0; i < o->op_count; i++)
        bits |= (uint64_t)o->ops[i].answered << i;
    return bits;
}

static bool step(const struct once *o, struct once_state *s, int op)
{
    if (is_done(s, op) || !may_follow(o, s, op) || !apply(&o->ops[op], s))
        return false;
    s->done |= UINT64_C(1) << op;
    return true;
}

/* Doing this one keeps everything else possible: it changes nothing, and nothing that may still be
 * done would have to come before it. */
static bool is_free(const struct once *o, const struct once_state *s, int op)
{
    const struct once_op *next = &o->ops[op];
    struct once_state after = *s;
    if (!next->answered || next->won || !step(o, &after, op) || after.id != s->id)
        return false;
    for (int i = 0; i < o->op_count; i++) {
        if (!is_done(s, i) && o->ops[i].until < next->sent)
            return false;
    }
    return true;
}

static void explore_from(struct search *x, const struct once *o, struct once_state from)
{
    for (int op = 0; op < o->op_count; op++) {
        if (is_free(o, &from, op)) {
            (void)step(o, &from, op);
            add(x, &from);
            return;
        }
    }
    for (int op = 0; op < o->op_count; op++) {
        struct once_state s = from;
        if (step(o, &s, op))
            add(x, &s);
    }
}

/* States that some order leads to: enough of them to know whether there is an order, and all that
 * there are after the last operation. */
static void explore(struct search *x, const struct once *o)
{
    x->count = 0;
    x->whole = true;
    for (int i = 0; i < o->state_count; i++)
        add(x, &o->states[i]);
    for (int at = 0; at < x->count; at++)
        explore_from(x, o, x->found[at]);
}

/* --- forgetting what is settled --- */

/* The ops that still may be done, moved together; returns where each has gone, or -1. */
static void keep_open(struct once *o, int moved[ONCE_OPS_MAX])
{
    int kept = 0;
    for (int i = 0; i < o->op_count; i++) {
        bool keep = o->ops[i].until == INT64_MAX;
        moved[i] = keep ? kept : -1;
        if (keep)
            o->ops[kept++] = o->ops[i];
    }
    o->op_count = kept;
}

static uint64_t move_bits(uint64_t bits, const int moved[ONCE_OPS_MAX])
{
    uint64_t to = 0;
    for (int i = 0; i < ONCE_OPS_MAX; i++) {
        if ((bits >> i & 1) != 0 && moved[i] >= 0)
            to |= UINT64_C(1) << moved[i];
    }
    return to;
}

/* Nothing is under way: only what the register may be now matters. */
static void settle(struct once *o, struct search *x)
{
    uint64_t answered = answered_ops(o);
    int moved[ONCE_OPS_MAX];
    struct once before = *o;
    int count = x->count;
    keep_open(o, moved);
    x->count = 0;
    for (int i = 0; i < count; i++) {
        struct once_state s = x->found[i];
        if ((s.done & answered) != answered)
            continue;
        s.done = move_bits(s.done, moved);
        add(x, &s);
    }
    if (x->count > ONCE_STATES_MAX) {
        *o = before; /* later, perhaps */
        return;
    }
    o->state_count = x->count;
    memcpy(o->states, x->found, (size_t)x->count * sizeof(x->found[0]));
}

static bool anything_open(const struct once *o)
{
    for (int i = 0; i < o->op_count; i++) {
        if (o->ops[i].open)
            return true;
    }
    return false;
}

/* Is there an order? If nothing is under way, the past is summed up. */
static bool check(struct once *o)
{
    static struct search x;
    if (o->retired)
        return true;
    explore(&x, o);
    if (!x.whole) {
        o->retired = true;
        return true;
    }
    uint64_t answered = answered_ops(o);
    bool possible = false;
    for (int i = 0; i < x.count && !possible; i++)
        possible = (x.found[i].done & answered) == answered;
    if (possible && !anything_open(o))
        settle(o, &x);
    return possible;
}

/* --- what happens --- */

static int add_op(struct once *o, int64_t sent, int does, bool open)
{
    if (o->op_count == ONCE_OPS_MAX)
        o->retired = true;
    if (o->retired)
        return 0;
    int number = o->next_number++;
    o->ops[o->op_count++] = (struct once_op){
        .number = number, .does = does, .sent = sent, .until = INT64_MAX, .open = open};
    return number;
}

int once_sent(struct once *o, int64_t sent, int does)
{
    return add_op(o, sent, does, true);
}

void once_may(struct once *o, int64_t from, int does)
{
    (void)add_op(o, from, does, false);
}

static struct once_op *find(struct once *o, int number)
{
    for (int i = 0; i < o->op_count; i++) {
        if (o->ops[i].number == number)
            return &o->ops[i];
    }
    assert(o->retired);
    return NULL;
}

static struct once_op *end(struct once *o, int number, int64_t at)
{
    struct once_op *op = find(o, number);
    if (op != NULL) {
        assert(op->open);
        op->open = false;
        op->until = at;
    }
    return op;
}

bool once_won(struct once *o, int number, int64_t at, const char *id)
{
    struct once_op *op = end(o, number, at);
    if (op == NULL)
        return true;
    op->answered = op->won = true;
    op->id = id_of(o, id);
    return check(o);
}

bool once_found(struct once *o, int number, int64_t at, unsigned classes, const char *id)
{
    struct once_op *op = end(o, number, at);
    if (op == NULL)
        return true;
    op->answered = true;
    op->seen = classes;
    op->id = id_of(o, id);
    return check(o);
}

void once_repeated(struct once *o, int number, int64_t until)
{
    const struct once_op *op = find(o, number);
    if (op == NULL)
        return;
    int64_t sent = op->sent;
    if (add_op(o, sent, op->does, false) != 0)
        o->ops[o->op_count - 1].until = until;
}

void once_lost(struct once *o, int number, int64_t at)
{
    if (end(o, number, at) != NULL && !anything_open(o))
        (void)check(o);
}
