/* Sets of code points, as classes of regular expressions are made of them. */
#ifndef PAWL_DOMAIN_SCHEMA_REGEX_CLASS_H
#define PAWL_DOMAIN_SCHEMA_REGEX_CLASS_H

#include "domain/schema/regex_internal.h"

/* Zeroed to begin with. */
struct class_set {
    struct regex_range *ranges;
    size_t count;
    size_t cap;
    bool failed; /* memory ran out */
};

void class_set_release(struct class_set *set);
void class_set_clear(struct class_set *set);
void class_set_add(struct class_set *set, uint32_t low, uint32_t high);
/* What \d, \D, \w, \W, \s or \S stands for; false for any other letter. */
bool class_set_add_escape(struct class_set *set, char letter);
/* What \p{name} or, negated, \P{name} stands for; false for a name that is no general category. */
bool class_set_add_category(struct class_set *set, struct str name, bool negated);
/* Rising ranges that do not touch. */
void class_set_normalise(struct class_set *set);
/* All code points that are not in it. */
void class_set_negate(struct class_set *set);

#endif
