/* "Did you mean …?": finds the candidate that a mistyped word resembles most. Feed it the
 * candidates one by one, from whatever table they are in. */
#ifndef PAWL_BASE_SUGGEST_H
#define PAWL_BASE_SUGGEST_H

#include "base/str.h"

enum { SUGGEST_WORD_MAX = 64 }; /* bytes; longer words get no suggestion */

struct suggestion {
    struct str typed;
    struct str best; /* empty: nothing is close enough */
    size_t distance; /* of best */
};

static inline struct suggestion suggest_for(struct str typed)
{
    return (struct suggestion){.typed = typed, .distance = SIZE_MAX};
}

/* Keeps the candidate when it is closer than those before. It must outlive s. Close is at most two
 * edits (an insertion, deletion, replacement or swap of neighbours) and less than half the word. */
void suggest_consider(struct suggestion *s, struct str candidate);
/* `. Did you mean "best"?` or an empty text, for the end of an error's detail. */
enum { SUGGEST_TEXT_MAX = SUGGEST_WORD_MAX + 32 };
const char *suggest_text(const struct suggestion *s, char room[static SUGGEST_TEXT_MAX]);

#endif
