/* Small compile-time helpers that every layer uses, and the functions that no layer may use. */
#ifndef PAWL_BASE_MACROS_H
#define PAWL_BASE_MACROS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef NDEBUG
#error "assertions are contracts here and stay on in release builds"
#endif

#define MUST_CHECK __attribute__((warn_unused_result))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Each of these writes past its buffer, keeps hidden state, or hides a failed conversion. The
 * headers that declare them come first, so that only uses are refused. */
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#define BANNED(name) name##_is_banned_see_base_macros_h
#define strcpy(...) BANNED(strcpy)
#define strcat(...) BANNED(strcat)
#define strncpy(...) BANNED(strncpy)
#define strncat(...) BANNED(strncat)
#define strtok(...) BANNED(strtok)
#define sprintf(...) BANNED(sprintf)
#define vsprintf(...) BANNED(vsprintf)
#define atoi(...) BANNED(atoi)
#define atol(...) BANNED(atol)
#define atof(...) BANNED(atof)
#define gmtime(...) BANNED(gmtime)
#define localtime(...) BANNED(localtime)
#define ctime(...) BANNED(ctime)

#endif
