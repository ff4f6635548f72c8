/* Subjects of messages: words separated by dots, one word per level.
 *
 * A word must not contain white space, dots or the wildcards * and >. Names of pawl are letters,
 * digits, `_`, `-`, `.` and `:`. So a dot that does not separate two words is written as %2E, and
 * any other character that is not allowed as % and two hexadecimal digits. */
#ifndef PAWL_BUS_SUBJECT_H
#define PAWL_BUS_SUBJECT_H

#include "base/buf.h"

/* One word: dots in the name are written as %2E. */
void subject_put_word(struct buf *out, struct str name);
/* As many words as the name has parts: `run.created` is two. A dot that would make an empty word,
 * as in `.a`, `a..b` or `a.`, is written as %2E. */
void subject_put_words(struct buf *out, struct str name);

#endif
