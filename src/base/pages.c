/* Zeroed memory that is taken when it is touched. */
#include "base/pages.h"

#include <sys/mman.h>

void *pages_new(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

void pages_free(void *pages, size_t size)
{
    if (pages != NULL)
        (void)munmap(pages, size);
}
