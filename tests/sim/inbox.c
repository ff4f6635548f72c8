#include "sim/inbox.h"

#include <stdlib.h>

void inbox_init(struct inbox *b, const char *owner, int place, int64_t window_ms, int64_t keys_max)
{
    *b = (struct inbox){.place = place, .window_ms = window_ms, .keys_max = keys_max};
    (void)snprintf(b->owner, sizeof(b->owner), "%s", owner);
    for (int i = 0; i < INBOX_KEYS; i++)
        once_init(&b->keys[i].seq);
}

int inbox_mark(int key, int variant, int *marks)
{
    return key >= 0 ? INBOX_KEYED_MARK + 2 * key + variant : ++*marks;
}

/* --- the window --- */

/* The key may have left the window by now. */
static void let_age(struct sim *w, const struct inbox *b, struct inbox_key *k,
                    struct wall_clocks *clocks)
{
    people_watch(w, clocks);
    bool old = k->first_ms > 0 && clocks->latest_ms[b->place] - k->first_ms >= b->window_ms;
    if (old || k->newer >= b->keys_max) {
        once_may(&k->seq, 0, ONCE_CLEARS);
        k->first_ms = 0;
        k->newer = 0;
    }
    int64_t wall_ms = place_wall_ms(w, &w->places[b->place]);
    if (k->first_ms == 0 || wall_ms < k->first_ms)
        k->first_ms = wall_ms;
}

/* Classes: variants of signals, then those of updates. */
static int class_of(int variant, bool update)
{
    return 1 + variant + (update ? 2 : 0);
}

/* What a signal or an update with this payload is a duplicate of. */
static unsigned same_as(const struct inbox_call *x)
{
    unsigned updates = ONCE_IS(class_of(x->variant, true));
    return x->update ? updates : updates | ONCE_IS(class_of(x->variant, false));
}

/* --- sending --- */

struct inbox_call *inbox_send(struct sim *w, struct inbox *b, struct wall_clocks *clocks,
                              const struct inbox_call *spec, int mark, int name)
{
    struct inbox_call *x = malloc(sizeof(*x));
    assert(x != NULL && b->count < INBOX_MAX);
    *x = *spec;
    x->inbox = b;
    x->at = b->count++;
    x->floor = b->highest;
    b->sent[x->at] = (struct inbox_signal){.mark = mark, .name = name};
    b->open++;
    if (x->key < 0)
        return x;
    for (int i = 0; i < INBOX_KEYS; i++)
        b->keys[i].newer += i != x->key && b->keys[i].first_ms > 0;
    let_age(w, b, &b->keys[x->key], clocks);
    x->op = once_sent(&b->keys[x->key].seq, w->clock + 1, class_of(x->variant, x->update));
    return x;
}

/* --- answers --- */

/* It was taken now, as number `seq`. */
static void taken(struct sim *w, const struct inbox_call *x, int64_t seq)
{
    struct inbox *b = x->inbox;
    sim_check(w, 5, seq > x->floor, "%s numbers a signal %lld, but %lld was answered before",
              b->owner, (long long)seq, (long long)x->floor);
    for (int i = 0; i < b->count; i++) {
        struct inbox_signal *s = &b->sent[i];
        if (s->seq == seq && s->copied && s->mark == b->sent[x->at].mark)
            *s = (struct inbox_signal){.mark = s->mark, .name = s->name, .refused = true};
        sim_check(w, 5, s->seq != seq, "%s has two signals %lld", b->owner, (long long)seq);
    }
    b->sent[x->at].seq = seq;
    b->highest = MAX(b->highest, seq);
}

/* A duplicate: of one that is known, or of its own first try. */
static void known(const struct inbox_call *x, int64_t seq)
{
    struct inbox_signal *s = &x->inbox->sent[x->at];
    s->refused = true;
    for (int i = 0; i < x->inbox->count; i++) {
        if (x->inbox->sent[i].seq == seq)
            return;
    }
    s->refused = false;
    s->copied = true;
    s->seq = seq;
}

static void check_key(struct sim *w, struct wall_clocks *clocks, const struct inbox_call *x,
                      const struct call *c)
{
    struct inbox_key *k = &x->inbox->keys[x->key];
    char seq[24];
    bool ok;
    (void)snprintf(seq, sizeof(seq), "%lld", (long long)json_number(c->json, "seq"));
    let_age(w, x->inbox, k, clocks);
    once_call_repeated(&k->seq, x->op, c);
    if (c->status < 300 && json_is_false(json_object_get(c->json, "duplicate")))
        ok = once_won(&k->seq, x->op, c->answered, seq);
    else if (c->status < 300)
        ok = once_found(&k->seq, x->op, c->answered, same_as(x), seq);
    else if (strcmp(c->code, "IDEMPOTENCY_KEY_REUSED") == 0)
        ok = once_found(&k->seq, x->op, c->answered, ONCE_VALUES_BUT(same_as(x)), "");
    else if (strcmp(c->code, "INBOX_FULL") == 0) /* duplicates are recognised even then */
        ok = once_found(&k->seq, x->op, c->answered, ONCE_IS(ONCE_NOTHING), "");
    else
        ok = once_found(&k->seq, x->op, c->answered, ONCE_VALUES_BUT(0) | ONCE_IS(0), "");
    sim_check(w, 5, ok, "no order of signals with key k%d to %s explains the answer %d %s", x->key,
              x->inbox->owner, c->status, c->status < 300 ? seq : c->code);
}

int64_t inbox_answered(struct sim *w, struct wall_clocks *clocks, const struct inbox_call *x,
                       const struct call *c)
{
    struct inbox_signal *s = &x->inbox->sent[x->at];
    x->inbox->open--;
    if (call_in_doubt(c)) {
        if (x->key >= 0)
            once_call_lost(w, &x->inbox->keys[x->key].seq, x->op, c);
        return 0;
    }
    if (x->key >= 0)
        check_key(w, clocks, x, c);
    sim_check(w, 5, x->key >= 0 || strcmp(c->code, "IDEMPOTENCY_KEY_REUSED") != 0,
              "a signal without a key to %s is answered %d %s", x->inbox->owner, c->status,
              c->code);
    if (c->status >= 300) { /* an earlier try may have been taken */
        s->refused = (c->tries == 1 && !c->doubled) || c->status == 422;
        return 0;
    }
    if (json_is_true(json_object_get(c->json, "duplicate")))
        known(x, json_number(c->json, "seq"));
    else
        taken(w, x, json_number(c->json, "seq"));
    return json_number(c->json, "seq");
}

/* --- what became of them --- */

struct inbox_signal *inbox_consume(struct sim *w, struct inbox *b, int64_t mark, int64_t seq)
{
    struct inbox_signal *found = NULL;
    for (int i = 0; i < b->count; i++) {
        struct inbox_signal *s = &b->sent[i];
        bool fits = s->mark == mark && !s->refused && !s->consumed &&
                    (seq == 0 || s->seq == 0 || s->seq == seq);
        if (fits && (found == NULL || found->seq == 0))
            found = s;
    }
    sim_check(w, 5, found != NULL,
              "%s got signal %lld with payload %lld, which nobody sent, or "
              "which it had got",
              b->owner, (long long)seq, (long long)mark);
    found->consumed = true;
    return found;
}

void inbox_consume_none(struct inbox *b)
{
    for (int i = 0; i < b->count; i++)
        b->sent[i].consumed = false;
}
