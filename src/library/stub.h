/* Makes the files that define a library's functions, from the list of them. The compiler compares
 * each definition with the prototype in the library's own header. Tests may define a function
 * themselves, and it is not seen by the library, which has its own. */
#ifndef PAWL_LIBRARY_STUB_H
#define PAWL_LIBRARY_STUB_H

#include "library/library.h"

#define LIBRARY_STUB __attribute__((weak, visibility("hidden")))

/* A member of the struct `loaded`, and its row in the table. */
#define LIBRARY_SLOT(type, name, params, args) __typeof__(name) *name;
#define LIBRARY_ROW(type, name, params, args) {#name, &loaded.name},

#define LIBRARY_FUNCTION(type, name, params, args) \
    LIBRARY_STUB type name params                  \
    {                                              \
        assert(loaded.name != NULL);               \
        return loaded.name args;                   \
    }

/* Without the library there is nothing to clean up. */
#define LIBRARY_CLEANUP(type, name, params, args) \
    LIBRARY_STUB type name params                 \
    {                                             \
        if (loaded.name != NULL)                  \
            loaded.name args;                     \
    }

/* The build names file and package. */
#define LIBRARY_DEFINE(symbol, table)                        \
    struct library symbol = {.file = FILE_OF_##symbol,       \
                             .package = PACKAGE_OF_##symbol, \
                             .functions = (table),           \
                             .count = ARRAY_LEN(table),      \
                             .lock = PTHREAD_MUTEX_INITIALIZER}

#endif
