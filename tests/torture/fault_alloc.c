/* The program's own malloc, which every library in the process uses too. */
#define _GNU_SOURCE
#include "fault.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
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

/* Where the code of a library lies that does not survive this. */
static uintptr_t spared_from;
static uintptr_t spared_to;

static int find_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    if (strstr(info->dlpi_name, ctx) == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            spared_from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            spared_to = spared_from + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

void fault_spare_library(const char *name)
{
    char part[32];
    (void)snprintf(part, sizeof(part), "%s", name);
    int found = dl_iterate_phdr(find_library, part);
    assert(found == 1 && spared_to > spared_from);
}

static bool out_of_memory(void *caller)
{
    if ((uintptr_t)caller >= spared_from && (uintptr_t)caller < spared_to)
        return false;
    if (!fault_due(FAULT_ALLOC))
        return false;
    errno = ENOMEM;
    return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    return out_of_memory(CALLER) ? NULL : REAL(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
    return out_of_memory(CALLER) ? NULL : REAL(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
    return out_of_memory(CALLER) ? NULL : REAL(realloc)(old, size);
}

/* The C library's, and a sanitizer's, may go past ours. */
char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = out_of_memory(CALLER) ? NULL : REAL(malloc)(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* For the simulator's own code, which is compiled with these names in place of the usual ones. */
void *spared_malloc(size_t size);
void *spared_calloc(size_t count, size_t size);
void *spared_realloc(void *old, size_t size);
char *spared_strdup(const char *text);

void *spared_malloc(size_t size)
{
    return REAL(malloc)(size);
}

void *spared_calloc(size_t count, size_t size)
{
    return REAL(calloc)(count, size);
}

void *spared_realloc(void *old, size_t size)
{
    return REAL(realloc)(old, size);
}

char *spared_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = REAL(malloc)(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
