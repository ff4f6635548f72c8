/* Searching: all ways through the program at once, one code point after the other. */
#include "domain/schema/regex_internal.h"

enum {
    /* A move through the program costs this part of what a step is otherwise. */
    REGEX_MOVES_PER_STEP = 8,
    NO_CODE_POINT = 0x110000,
};

/* Where the search stands: between two code points, or at an end of the text. */
struct place {
    uint32_t before;
    uint32_t after;
    bool is_begin;
    bool is_end;
};

struct search {
    struct regex *r;
    struct place place;
    size_t taker_count;
    size_t reached_count;
    size_t moves;
    bool found;
};

static bool class_has(const struct regex *r, size_t index, uint32_t c)
{
    const struct regex_class *class = &r->classes[index];
    if (c < 128)
        return (class->ascii[c / 64] >> (c % 64) & 1) != 0;
    const struct regex_range *ranges = r->ranges + class->first;
    size_t low = 0;
    size_t high = class->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].high < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < class->count && ranges[low].low <= c;
}

static bool takes(const struct regex *r, const struct regex_inst *inst, uint32_t c)
{
    if (inst->op == REGEX_CHAR)
        return inst->of == c;
    if (inst->op == REGEX_CLASS)
        return class_has(r, inst->of, c);
    return c != '\n' && c != '\r' && c != 0x2028 && c != 0x2029;
}

/* May the program go on behind an instruction that takes nothing? */
static bool passes(const struct place *p, enum regex_op op)
{
    bool edge = regex_is_word(p->before) != regex_is_word(p->after);
    switch (op) {
    case REGEX_BEGIN:
        return p->is_begin;
    case REGEX_END:
        return p->is_end;
    case REGEX_EDGE:
        return edge;
    case REGEX_NO_EDGE:
        return !edge;
    default:
        return true; /* a split */
    }
}

static void push(struct regex *r, size_t *depth, size_t pc)
{
    assert(pc < r->count);
    if (r->marks[pc] == r->round)
        return;
    r->marks[pc] = r->round;
    r->stack[(*depth)++] = (uint32_t)pc;
}

/* Follows what takes nothing, from one instruction, and notes those that wait for a code point. */
static void follow(struct search *s, size_t from)
{
    struct regex *r = s->r;
    size_t depth = 0;
    push(r, &depth, from);
    while (depth > 0) {
        size_t pc = r->stack[--depth];
        const struct regex_inst *inst = &r->program[pc];
        s->moves++;
        if (inst->op <= REGEX_CLASS)
            r->takers[s->taker_count++] = (uint32_t)pc;
        else if (inst->op == REGEX_FOUND)
            s->found = true;
        else if (inst->op != REGEX_JUMP && passes(&s->place, inst->op))
            push(r, &depth, pc + 1);
        if (inst->op == REGEX_SPLIT || inst->op == REGEX_JUMP)
            push(r, &depth, (size_t)((ptrdiff_t)pc + inst->to));
    }
}

static void next_round(struct regex *r)
{
    if (++r->round != 0)
        return;
    memset(r->marks, 0, r->count * sizeof(*r->marks));
    r->round = 1;
}

/* All that can be reached at this place, from what the last code point led to and, as a match may
 * begin anywhere, from the beginning. */
static void follow_all(struct search *s)
{
    next_round(s->r);
    s->taker_count = 0;
    for (size_t i = 0; i < s->reached_count; i++)
        follow(s, s->r->reached[i]);
    follow(s, 0);
}

static void take(struct search *s, uint32_t c)
{
    s->reached_count = 0;
    for (size_t i = 0; i < s->taker_count; i++) {
        uint32_t pc = s->r->takers[i];
        if (takes(s->r, &s->r->program[pc], c))
            s->r->reached[s->reached_count++] = pc + 1;
    }
    s->moves += s->taker_count;
}

bool regex_search(struct regex *r, struct str text, struct work_budget *work)
{
    struct search s = {.r = r, .place = {.before = NO_CODE_POINT, .is_begin = true}};
    bool only_at_begin = r->program[0].op == REGEX_BEGIN;
    for (size_t at = 0;;) {
        s.place.is_end = at == text.len;
        s.place.after = s.place.is_end ? NO_CODE_POINT : regex_next(text, &at);
        follow_all(&s);
        take(&s, s.place.after);
        bool going_on = work_spend(work, 1 + s.moves / REGEX_MOVES_PER_STEP);
        s.moves = 0;
        if (!going_on || s.found)
            return going_on;
        if (s.place.is_end || (only_at_begin && s.reached_count == 0))
            return false;
        s.place = (struct place){.before = s.place.after};
    }
}
