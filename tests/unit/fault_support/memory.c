/* Allocations that fail. */
#include "fault_support/memory.h"

#include <assert.h>
#include <jansson.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdlib.h>

static _Thread_local int64_t left; /* allocations until one fails; 0: not armed */
static _Thread_local bool only_once;
static _Thread_local bool has_failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void memory_arm(int64_t nth)
{
    assert(nth >= 1);
    left = nth;
    only_once = false;
    has_failed = false;
}

void memory_arm_once(int64_t nth)
{
    memory_arm(nth);
    only_once = true;
}

bool memory_disarm(void)
{
    left = 0;
    return has_failed;
}

static bool fails(void)
{
    bool failing = left == 1;
    has_failed |= failing;
    if (left > 1 || (failing && only_once))
        left--;
    return failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* --- jansson's, which is a shared library: its calls are not wrapped --- */

__attribute__((constructor)) static void let_jansson_fail(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}

/* --- SQLite's own --- */

static void *sqlite_malloc(int size)
{
    return __real_malloc((size_t)size);
}

static void *sqlite_realloc(void *old, int size)
{
    return __real_realloc(old, (size_t)size);
}

static int sqlite_size(void *memory)
{
    return (int)malloc_usable_size(memory);
}

static int sqlite_roundup(int size)
{
    return (size + 7) & ~7;
}

static int sqlite_begin(void *data)
{
    (void)data;
    return SQLITE_OK;
}

static void sqlite_end(void *data)
{
    (void)data;
}

__attribute__((constructor)) static void keep_sqlite_apart(void)
{
    static const sqlite3_mem_methods METHODS = {
        sqlite_malloc,  free,         sqlite_realloc, sqlite_size,
        sqlite_roundup, sqlite_begin, sqlite_end,     NULL};
    int rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &METHODS);
    assert(rc == SQLITE_OK);
    (void)rc;
}
