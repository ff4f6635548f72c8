/* Edit distance between short words. */
#include "base/suggest.h"

#include <stdio.h>

enum { EDITS_MAX = 2 };

/* Optimal string alignment: edits, and swaps of neighbours. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1]; /* the row before last, the last, the current */
    size_t *older = rows[0], *last = rows[1], *row = rows[2];
    assert(a.len <= SUGGEST_WORD_MAX && b.len <= SUGGEST_WORD_MAX);
    for (size_t j = 0; j <= b.len; j++)
        last[j] = older[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            row[j] = MIN(replaced, MIN(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                row[j] = MIN(row[j], older[j - 2] + 1);
        }
        size_t *recycled = older;
        older = last;
        last = row;
        row = recycled;
    }
    return last[b.len];
}

void suggest_consider(struct suggestion *s, struct str candidate)
{
    if (s->typed.len > SUGGEST_WORD_MAX || candidate.len > SUGGEST_WORD_MAX)
        return;
    size_t distance = edit_distance(s->typed, candidate);
    if (distance <= EDITS_MAX && 2 * distance < s->typed.len && distance < s->distance) {
        s->best = candidate;
        s->distance = distance;
    }
}

const char *suggest_text(const struct suggestion *s, char room[static SUGGEST_TEXT_MAX])
{
    room[0] = '\0';
    if (s->best.len > 0)
        (void)snprintf(room, SUGGEST_TEXT_MAX, ". Did you mean \"%.*s\"?", STR_ARG(s->best));
    return room;
}
