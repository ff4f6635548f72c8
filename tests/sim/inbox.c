#include "sim/inbox.h"

#include <stdlib.h>

void inbox_init(struct inbox *b, struct wall_clocks *clocks, const char *owner, int place,
                int64_t window_ms, int64_t keys_max)
{
    *b = (struct inbox){
        .clocks = clocks, .place = place, .window_ms = window_ms, .keys_max = keys_max};
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
static bool may_be_forgotten(struct sim *w, const struct inbox *b, const struct inbox_key *k)
{
    people_watch(w, b->clocks);
    bool old = k->first_ms > 0 && b->clocks->latest_ms[b->place] - k->first_ms >= b->window_ms;
    return old || k->newer >= b->keys_max;
}

void inbox_watch(const struct sim *w, struct inbox *b)
{
    int64_t wall_ms = place_wall_ms(w, &w->places[b->place]);
    for (int i = 0; i < INBOX_KEYS; i++) {
        if (b->keys[i].open > 0)
            b->keys[i].first_ms = MIN(b->keys[i].first_ms, wall_ms);
    }
}

/* Requests with other keys that may arrive after the next one with this key. */
static int64_t others_open(const struct inbox *b, const struct inbox_key *k)
{
    int64_t count = 0;
    for (int i = 0; i < INBOX_KEYS; i++)
        count += &b->keys[i] != k ? b->keys[i].open : 0;
    return count;
}

static void let_age(struct sim *w, const struct inbox *b, struct inbox_key *k)
{
    if (may_be_forgotten(w, b, k)) {
        once_may(&k->seq, 0, ONCE_CLEARS);
        k->forgotten = true;
        k->first_ms = 0;
    }
    if (k->first_ms == 0)
        k->newer = others_open(b, k);
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

struct inbox_call *inbox_send(struct sim *w, struct inbox *b, const struct inbox_call *spec,
                              int mark, int name)
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
    let_age(w, b, &b->keys[x->key]);
    b->keys[x->key].open++;
    x->op = once_sent(&b->keys[x->key].seq, w->clock + 1, class_of(x->variant, x->update));
    return x;
}

/* --- answers --- */

/* The number that was learned for this one belongs to another one with the same payload. */
static void unlearn(struct inbox *b, struct inbox_signal *from)
{
    if (!from->learned)
        return;
    int64_t seq = from->seq;
    from->seq = 0;
    from->learned = false;
    for (int i = 0; i < b->count; i++) {
        struct inbox_signal *s = &b->sent[i];
        if (s != from && s->mark == from->mark && s->seq == 0 && !s->refused) {
            s->seq = seq;
            s->learned = true;
            return;
        }
    }
}

/* Whoever had this number by what was learned or copied gives it back. */
static void claim_number(struct inbox *b, struct inbox_signal *own, int64_t seq)
{
    if (own->seq != seq)
        unlearn(b, own);
    for (int i = 0; i < b->count; i++) {
        struct inbox_signal *s = &b->sent[i];
        if (s == own || s->seq != seq || s->mark != own->mark || !(s->learned || s->copied))
            continue;
        s->refused = s->copied;
        s->copied = s->learned = false;
        s->seq = 0;
    }
    own->learned = false;
}

/* It was taken now, as number `seq`. */
static void taken(struct sim *w, const struct inbox_call *x, int64_t seq)
{
    struct inbox *b = x->inbox;
    struct inbox_signal *own = &b->sent[x->at];
    sim_check(w, 5, seq > x->floor, "%s numbers a signal %lld, but %lld was answered before",
              b->owner, (long long)seq, (long long)x->floor);
    claim_number(b, own, seq);
    own->seq = 0;
    for (int i = 0; i < b->count; i++)
        sim_check(w, 5, b->sent[i].seq != seq, "%s has two signals %lld", b->owner, (long long)seq);
    own->seq = seq;
    b->highest = MAX(b->highest, seq);
}

/* A duplicate: of one that is known, or of its own first try. */
static void known(const struct inbox_call *x, int64_t seq)
{
    struct inbox_signal *s = &x->inbox->sent[x->at];
    if (s->seq != seq)
        unlearn(x->inbox, s);
    s->learned = false;
    s->seq = 0;
    s->refused = true;
    for (int i = 0; i < x->inbox->count; i++) {
        if (x->inbox->sent[i].seq == seq)
            return;
    }
    s->refused = false;
    s->copied = true;
    s->seq = seq;
}

static void check_key(struct sim *w, const struct inbox_call *x, const struct call *c)
{
    struct inbox_key *k = &x->inbox->keys[x->key];
    char seq[24];
    bool ok;
    (void)snprintf(seq, sizeof(seq), "%lld", (long long)json_number(c->json, "seq"));
    let_age(w, x->inbox, k);
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

int64_t inbox_answered(struct sim *w, const struct inbox_call *x, const struct call *c)
{
    struct inbox_signal *s = &x->inbox->sent[x->at];
    x->inbox->open--;
    if (x->key >= 0 && c->copies == 0) /* a copy may come at any time */
        x->inbox->keys[x->key].open--;
    if (call_in_doubt(c)) {
        if (x->key >= 0)
            once_call_lost(w, &x->inbox->keys[x->key].seq, x->op, c);
        return 0;
    }
    if (x->key >= 0)
        check_key(w, x, c);
    sim_check(w, 5, x->key >= 0 || strcmp(c->code, "IDEMPOTENCY_KEY_REUSED") != 0,
              "a signal without a key to %s is answered %d %s", x->inbox->owner, c->status,
              c->code);
    if (c->status >= 300) { /* an earlier try may have been taken */
        s->refused = (c->tries == 1 && c->copies == 0) || c->status == 422;
        if (s->refused)
            unlearn(x->inbox, s);
        return 0;
    }
    if (json_is_true(json_object_get(c->json, "duplicate")))
        known(x, json_number(c->json, "seq"));
    else
        taken(w, x, json_number(c->json, "seq"));
    return json_number(c->json, "seq");
}

/* --- what became of them --- */

bool inbox_may_be_repeated(struct sim *w, const struct inbox *b, int64_t mark)
{
    int64_t key = (mark - INBOX_KEYED_MARK) / 2;
    return mark >= INBOX_KEYED_MARK && key < INBOX_KEYS &&
           (b->keys[key].forgotten || may_be_forgotten(w, b, &b->keys[key]));
}

static struct inbox_signal *repeated(struct sim *w, struct inbox *b, int64_t mark)
{
    if (b->count == INBOX_MAX || !inbox_may_be_repeated(w, b, mark))
        return NULL;
    for (int i = 0; i < b->count; i++) {
        if (b->sent[i].mark == mark) { /* somebody did send it */
            b->sent[b->count] = (struct inbox_signal){.mark = (int)mark, .name = b->sent[i].name};
            return &b->sent[b->count++];
        }
    }
    return NULL;
}

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
    if (found == NULL)
        found = repeated(w, b, mark);
    sim_check(w, 5, found != NULL,
              "%s got signal %lld with payload %lld, which nobody sent, or "
              "which it had got",
              b->owner, (long long)seq, (long long)mark);
    found->consumed = true;
    if (found->seq == 0 && seq > 0) { /* its answer has not come, or was lost */
        found->seq = seq;
        found->learned = true;
    }
    return found;
}

void inbox_consume_none(struct inbox *b)
{
    for (int i = 0; i < b->count; i++)
        b->sent[i].consumed = false;
}

void inbox_cover(struct sim *w, const struct inbox *b)
{
    for (int i = 0; i < INBOX_KEYS; i++)
        once_cover(w, &b->keys[i].seq, "dedup_key");
}
