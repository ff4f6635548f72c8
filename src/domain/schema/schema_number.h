/* Numbers of JSON, compared without rounding. Pure. */
#ifndef PAWL_DOMAIN_SCHEMA_SCHEMA_NUMBER_H
#define PAWL_DOMAIN_SCHEMA_SCHEMA_NUMBER_H

#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* A number that is whole, 1.0 among them, is kept exactly. */
struct number {
    bool exact;
    int64_t whole;
    double real;
};

struct number schema_number_of(const struct json *value);
/* Below 0, 0 or above 0, as a is less than b, equal or more. */
int schema_number_compare(struct number a, struct number b);
/* `of` is above 0. */
bool schema_number_is_multiple(struct number value, struct number of);

#endif
