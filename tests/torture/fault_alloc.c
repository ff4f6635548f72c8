/* The program's own malloc, which every library in the process uses too. */
#include "fault.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);

static bool out_of_memory(void)
{
    if (!fault_due(FAULT_ALLOC))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return out_of_memory() ? NULL : REAL(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
    return out_of_memory() ? NULL : REAL(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
    return out_of_memory() ? NULL : REAL(realloc)(old, size);
}

/* The C library's, and a sanitizer's, may go past ours. */
char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
