/* Subjects of messages: words with dots in between, one word per level.
 *
 * A subject's words may hold anything but white space, dots and the wildcards * and >. Names of
 * pawl are letters, digits and _ - . : so a dot is what has to be written in another way where it
 * does not part two words: as %2E. Whatever else a name may come to hold is written as % and two
 * hexadecimal digits too. */
#ifndef PAWL_BUS_SUBJECT_H
#define PAWL_BUS_SUBJECT_H

#include "base/buf.h"

/* One word: the name's dots are written as %2E. */
void subject_put_word(struct buf *out, struct str name);
/* As many words as the name has parts: `run.created` is two. A dot that would make an empty word,
 * as in `.a`, `a..b` or `a.`, is written as %2E. */
void subject_put_words(struct buf *out, struct str name);

#endif
