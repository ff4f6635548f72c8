/* Loads libraries. */
#include "library/library.h"

#include <dlfcn.h>

static bool explain(const struct library *library, char why[static LIBRARY_WHY_MAX])
{
    const char *error = dlerror();
    (void)snprintf(why, LIBRARY_WHY_MAX, "Cannot load %s (Debian package %s): %s", library->file,
                   library->package, error != NULL ? error : "the reason is not known");
    return false;
}

/* It is never unloaded: threads of the library may outlive whatever used it. */
static bool load(struct library *library, char why[static LIBRARY_WHY_MAX])
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return explain(library, why);
    for (size_t i = 0; i < library->count; i++) {
        const struct library_function *function = &library->functions[i];
        void *found = dlsym(handle, function->name);
        if (found == NULL)
            return explain(library, why);
        memcpy(function->slot, &found, sizeof(found)); /* ISO C has no cast to a function */
    }
    return true;
}

bool library_load(struct library *library, char why[static LIBRARY_WHY_MAX])
{
    pthread_mutex_lock(&library->lock);
    if (!library->loaded)
        library->loaded = load(library, why);
    bool loaded = library->loaded;
    pthread_mutex_unlock(&library->lock);
    return loaded;
}
