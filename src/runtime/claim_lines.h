/* Claims that wait for a job, in lines by queue and tenant, so that a job finds the one it wakes
 * without passing over the others. A claim for several queues stands in a line of each. Whoever
 * uses it on several threads has a lock around it. */
#ifndef PAWL_RUNTIME_CLAIM_LINES_H
#define PAWL_RUNTIME_CLAIM_LINES_H

#include "base/hash_map.h"
#include "core/txn/op.h"

/* All zero is empty; it must stay where it is. */
struct claim_lines {
    struct hash_map claims; /* by op, in the order of arrival */
    struct hash_map lines;
    int64_t arrivals;
};

/* Only when it is empty. */
void claim_lines_release(struct claim_lines *l);
size_t claim_lines_count(const struct claim_lines *l);

/* False: out of memory. The op, with its input, must stay where it is until it is taken. */
MUST_CHECK bool claim_lines_add(struct claim_lines *l, struct op *op);
/* The claim that has waited longest for a job of this tenant and queue; NULL: none. */
struct op *claim_lines_first(const struct claim_lines *l, int64_t tenant, struct str queue);
/* Takes it out. */
struct op *claim_lines_take(struct claim_lines *l, int64_t tenant, struct str queue);
/* The same of claims whose tenant was not stored when they came. */
struct op *claim_lines_take_unknown(struct claim_lines *l, struct str queue);
/* Takes out this one; NULL: it does not wait here. */
struct op *claim_lines_remove(struct claim_lines *l, const struct op *op);

/* Asks for each one, in the order of arrival, whether it ends, takes those out and passes them on.
 */
typedef bool claim_ends(void *ctx, const struct op *op);
typedef void claim_over(void *ctx, struct op *op);
void claim_lines_sift(struct claim_lines *l, claim_ends *ends, claim_over *over, void *ctx);

#endif
