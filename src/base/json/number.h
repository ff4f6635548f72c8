/* Numbers in JSON: from their text and back.
 *
 * One rule: a literal whose value is a whole number of 64 bits is that number, however it is
 * written (1, 1.0, 1e0; 9007199254740993.0 too, which no double holds). Every other literal with a
 * fraction or an exponent is the double that is nearest to it, which beyond 2^53 is the whole
 * number that its shortest digits say. Whole numbers up to 2^53 that were written with a fraction
 * or an exponent stay reals, so that 1.0 is shown as 1.0 (see json_whole_of). */
#ifndef PAWL_BASE_JSON_NUMBER_H
#define PAWL_BASE_JSON_NUMBER_H

#include "base/buf.h"
#include "base/json/value.h"

/* Reads the number that begins at *at, with '-' or a digit, in a text that ends with a NUL. Moves
 * *at behind it and sets kind and value of *ret. Returns NULL, or what is wrong, with *at at the
 * fault.
 */
MUST_CHECK const char *json_number_read(char **at, struct json *ret);

/* The shortest digits that read back as the same double, as ECMAScript prints it. */
void json_put_double(struct buf *out, double value);
/* The same digits d, without a NUL, of a finite value above 0, which is d.ddd × 10^exponent.
 * Returns how many there are, 17 at most. */
int json_double_digits(double value, char digits[static 20], int *ret_exponent);

#endif
