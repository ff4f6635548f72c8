/* Allocations that fail, in one thread. Linked with --wrap (tests/CMakeLists.txt). SQLite keeps its
 * own allocator: a call of the store that fails stands for what it may lack. */
#ifndef PAWL_TESTS_FAULT_SUPPORT_MEMORY_H
#define PAWL_TESTS_FAULT_SUPPORT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Makes this thread's nth allocation from now and all after it fail, until memory_disarm(). */
void memory_arm(int64_t nth);
/* Only the nth. */
void memory_arm_once(int64_t nth);
/* Has one failed since memory_arm()? */
bool memory_disarm(void);

#endif
