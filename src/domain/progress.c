/* How far a run is, as text.
 *
 *   7 2 2 1 0|s1#1|a2:100,16,3,0|w|s40#2+1.41|kx#3
 *
 * In front the ordinals given out, the steps settled, the last place in the order of settling, why
 * the run stops and by which step. Then a
 * step each: its letter (x: cut), the first job's ordinal, behind # its place in the order of
 * settling, behind : the items, begun, over and failed ones of a map, behind ? how many of them
 * wait for a person, behind + the state and the job of its compensation. */
#include "domain/progress.h"

static const struct {
    char letter;
    bool settled;
} STATUSES[] = {
#define X(symbol, letter, settled) {letter, settled},
    STEP_STATUSES(X)
#undef X
};

static_assert(ARRAY_LEN(STATUSES) == STEP_STATUS_COUNT, "one row per status");

bool step_is_settled(enum step_status status)
{
    assert(status < STEP_STATUS_COUNT);
    return STATUSES[status].settled;
}

bool progress_init(struct progress *p, size_t count, struct arena *arena)
{
    *p = (struct progress){.count = count};
    p->steps = arena_alloc(arena, MAX(count, (size_t)1) * sizeof(*p->steps));
    return p->steps != NULL;
}

/* --- writing --- */

static void put_number(struct buf *out, char before, int64_t number)
{
    buf_put_char(out, before);
    buf_put_i64(out, number);
}

static void put_step(struct buf *out, const struct step_state *s)
{
    buf_put_char(out, STATUSES[s->status].letter);
    if (s->cut)
        buf_put_char(out, 'x');
    if (s->first > 0)
        buf_put_i64(out, s->first);
    if (s->seq > 0)
        put_number(out, '#', s->seq);
    if (s->is_map) {
        put_number(out, ':', s->items);
        put_number(out, ',', s->begun);
        put_number(out, ',', s->over);
        put_number(out, ',', s->failed);
    }
    if (s->asked > 0)
        put_number(out, '?', s->asked);
    if (s->undo != UNDO_NONE) {
        put_number(out, '+', (int64_t)s->undo);
        put_number(out, '.', s->undo_job);
    }
}

void progress_put(struct buf *out, const struct progress *p)
{
    buf_put_i64(out, p->jobs);
    put_number(out, ' ', p->settled);
    put_number(out, ' ', p->order);
    put_number(out, ' ', (int64_t)p->stop);
    put_number(out, ' ', p->cause);
    for (size_t i = 0; i < p->count; i++) {
        buf_put_char(out, '|');
        put_step(out, &p->steps[i]);
    }
}

/* --- reading --- */

struct cursor {
    const char *at;
    const char *end;
    bool ok;
};

static bool take_char(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static int64_t take_number(struct cursor *c)
{
    int64_t number = 0;
    const char *begun = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && c->at - begun < 18)
        number = number * 10 + (*c->at++ - '0');
    c->ok &= c->at > begun && (*begun != '0' || c->at - begun == 1);
    return number;
}

/* One that is not written when it is 0. */
static int64_t take_positive(struct cursor *c)
{
    int64_t number = take_number(c);
    c->ok &= number > 0;
    return number;
}

static int64_t take_after(struct cursor *c, char before)
{
    c->ok &= take_char(c, before);
    return c->ok ? take_number(c) : 0;
}

static void take_step(struct cursor *c, struct step_state *s)
{
    size_t status = 0;
    while (c->at < c->end && status < STEP_STATUS_COUNT && STATUSES[status].letter != *c->at)
        status++;
    c->ok &= c->at < c->end && status < STEP_STATUS_COUNT;
    if (!c->ok)
        return;
    c->at++;
    *s = (struct step_state){.status = (enum step_status)status};
    s->cut = take_char(c, 'x');
    if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        s->first = take_positive(c);
    if (take_char(c, '#'))
        s->seq = take_positive(c);
    s->is_map = take_char(c, ':');
    if (s->is_map) {
        s->items = take_number(c);
        s->begun = take_after(c, ',');
        s->over = take_after(c, ',');
        s->failed = take_after(c, ',');
    } else if (s->first > 0) {
        s->items = s->begun = 1;
        s->over = step_is_settled(s->status);
    }
    if (take_char(c, '?'))
        s->asked = take_positive(c);
    if (take_char(c, '+')) {
        int64_t undo = take_number(c);
        c->ok &= undo > UNDO_NONE && undo < UNDO_STATUS_COUNT;
        s->undo = c->ok ? (enum undo_status)undo : UNDO_NONE;
        s->undo_job = take_after(c, '.');
    }
}

static bool step_is_sound(const struct progress *p, const struct step_state *s)
{
    bool settled = step_is_settled(s->status);
    bool ran = s->status != STEP_IS_WAITING && s->status != STEP_IS_SKIPPED;
    bool counted = s->failed <= s->over && s->over <= s->begun && s->begun <= s->items &&
                   s->asked <= s->begun - s->over;
    bool numbered =
        s->items > 0 ? s->first > 0 && s->items <= p->jobs - s->first + 1 : s->first == 0;
    bool undone = s->undo != UNDO_NONE;
    return counted && numbered && ran == (s->is_map || s->first > 0) && settled == (s->seq > 0) &&
           s->seq <= p->order && (!s->cut || s->status == STEP_IS_SKIPPED) &&
           (!undone || s->status == STEP_IS_SUCCEEDED || (s->is_map && s->over > s->failed)) &&
           undone == (s->undo_job > 0) && s->undo_job <= p->jobs && (!settled || s->asked == 0);
}

bool progress_is_sound(const struct progress *p)
{
    int64_t settled = 0;
    bool sound = p->stop == STOP_FAILED ? (size_t)p->cause < p->count : p->cause == 0;
    for (size_t i = 0; i < p->count && sound; i++) {
        sound = step_is_sound(p, &p->steps[i]);
        settled += step_is_settled(p->steps[i].status);
    }
    return sound && settled == p->settled;
}

enum err progress_parse(struct str text, size_t count, struct arena *arena, struct progress *ret)
{
    struct progress p;
    if (!progress_init(&p, count, arena))
        return ERR_NO_MEMORY;
    struct cursor c = {text.ptr, text.ptr + text.len, true};
    p.jobs = take_number(&c);
    p.settled = take_after(&c, ' ');
    p.order = take_after(&c, ' ');
    int64_t stop = take_after(&c, ' ');
    p.cause = take_after(&c, ' ');
    c.ok &= stop < RUN_STOP_COUNT;
    p.stop = c.ok ? (enum run_stop)stop : STOP_NO;
    for (size_t i = 0; i < count && c.ok; i++) {
        c.ok &= take_char(&c, '|');
        if (c.ok)
            take_step(&c, &p.steps[i]);
    }
    if (!c.ok || c.at != c.end || !progress_is_sound(&p))
        return ERR_DAMAGED;
    *ret = p;
    return ERR_OK;
}
