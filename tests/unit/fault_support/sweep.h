/* Failures at every call: each change, read and slice of background work that a test makes is first
 * made again and again, with the 1st, 2nd, 3rd … call failing, until it gets by without meeting
 * the failing call. What fails must have changed nothing, so the test finds everything as it
 * expects it.
 *
 * PAWL_TEST_FAULTS chooses the calls: "store" (with PAWL_TEST_STORE=failing) or "memory", of which
 * all after the failing one fail too, or "memory_once", after which there is memory again; without
 * it nothing fails. Test programs of the engine link it with --wrap (tests/CMakeLists.txt). */
#ifndef PAWL_TESTS_FAULT_SUPPORT_SWEEP_H
#define PAWL_TESTS_FAULT_SUPPORT_SWEEP_H

#include "core/txn/op.h"

/* A use case that reads as `use_case` does, after its calls have failed. Keeps `use_case`, and is
 * owned by the caller. */
struct swept_read {
    struct use_case use_case; /* for the op; the first member */
    const struct use_case *original;
};

/* Should the op's use case be replaced? Only those that read and keep nothing in their input. */
bool sweep_wants_read(const struct op *op);
void swept_read_init(struct swept_read *s, const struct use_case *original);

#endif
