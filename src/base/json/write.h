/* The two ways in which pawl writes JSON values.
 *
 * `plain` keeps the order of members and shows 1.0 as 1.0. `canonical` is RFC 8785 (sorted by
 * UTF-16 code units, shortest numbers) with one addition: integers stay exact beyond 2^53.
 * These fail only when memory ran out or the buffer's ceiling was met: ask buf_ok(). */
#ifndef PAWL_BASE_JSON_WRITE_H
#define PAWL_BASE_JSON_WRITE_H

#include "base/buf.h"
#include "base/json/value.h"

void json_write_plain(struct buf *out, const struct json *value);
void json_write_canonical(struct buf *out, const struct json *value);

/* As canonical, without one member of the outermost object (ptr NULL: none), and, if wanted,
 * without all that are noted as defaults (json_mark_default). */
void json_write_canonical_without(struct buf *out, const struct json *value, struct str left_out,
                                  bool without_defaults);

#endif
