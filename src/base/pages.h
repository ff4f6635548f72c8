/* Zeroed memory for large tables that stay mostly empty. What is not touched takes no memory, which
 * calloc() of an allocator that reuses its own does not promise. */
#ifndef PAWL_BASE_PAGES_H
#define PAWL_BASE_PAGES_H

#include "base/macros.h"

#include <stddef.h>

/* NULL when memory ran out. */
MUST_CHECK void *pages_new(size_t size);
/* With the size that it was made with; NULL is fine. */
void pages_free(void *pages, size_t size);

#endif
