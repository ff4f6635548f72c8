/* Regular expressions, as `pattern` in a JSON Schema means them: the commonly used part of ECMA-262
 * in Unicode mode, searched for anywhere in a text. A text is read once, whatever the expression:
 * no expression makes the time grow faster than its own length times the text's.
 *
 * Known: literals, `.`, classes `[a-z]` and `[^a-z]`, \d \D \w \W \s \S, \p{L} and the other
 * general categories, anchors ^ $ \b \B, groups ( ) (?: ) (?<name> ), alternatives |, the
 * quantifiers * + ? {n} {n,} {n,m} and their lazy forms, and the escapes \t \n \v \f \r \0 \cX \xHH
 * \uHHHH \u{H…} and \ before punctuation. Refused: backreferences, look-ahead and look-behind,
 * flags.
 *
 * Pure but for memory: a compiled expression belongs to one thread, as it holds room for searching.
 */
#ifndef PAWL_DOMAIN_SCHEMA_REGEX_H
#define PAWL_DOMAIN_SCHEMA_REGEX_H

#include "base/str.h"
#include "domain/work.h"

struct regex;

struct regex_fault {
    const char *why; /* NULL: memory ran out */
    size_t at;       /* the byte of the pattern where it was noticed */
};

/* NULL when the pattern is refused. The pattern is UTF-8 and need not outlive the call. */
MUST_CHECK struct regex *regex_compile(struct str pattern, struct regex_fault *ret_fault);
void regex_free(struct regex *r);
/* What it weighs: instructions and ranges of its classes, REGEX_SIZE_MAX at most. */
size_t regex_size(const struct regex *r);

/* Is it in the text, which is UTF-8? False too when the budget is used up. */
MUST_CHECK bool regex_search(struct regex *r, struct str text, struct work_budget *work);

#endif
