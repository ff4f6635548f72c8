/* pawl workflow watch: applies the definitions of a folder whenever they change. */
#include "cli/workflow/workflow_verbs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

enum { POLL_MS = 200 };

/* What the folder had at the last look: {name: [seconds, nanoseconds, size]}. */
struct folder {
    const char *path;
    json_t *known;
    bool was_readable;
};

static int is_definition(const struct dirent *entry)
{
    struct str name = str_of(entry->d_name);
    return name.len > 0 && name.ptr[0] != '.' &&
           (str_ends_with(name, STR(".json")) || str_ends_with(name, STR(".yaml")) ||
            str_ends_with(name, STR(".yml")));
}

/* Applies a file; true when there is no reason to do it again before it changes. */
static bool apply(struct session *s, const char *path, const char *name)
{
    enum cli_exit rc = workflow_take_file(s, path, NULL, "");
    if (rc == CLI_DONE)
        rc = session_call_silently(s, "PUT");
    printf("%s: ", name);
    if (rc == CLI_DONE)
        workflow_show_applied(s, s->answer);
    else
        puts("not applied");
    (void)fflush(stdout);
    return rc != CLI_UNREACHABLE;
}

static void look_at(struct session *s, struct folder *f, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    json_t *now = json_pack("[I, I, I]", (json_int_t)info.st_mtim.tv_sec,
                            (json_int_t)info.st_mtim.tv_nsec, (json_int_t)info.st_size);
    if (!json_equal(now, json_object_get(f->known, name)) && apply(s, path, name))
        (void)json_object_set(f->known, name, now);
    json_decref(now);
}

/* Workflows of files that are gone stay: other runs may need them. */
static void forget_removed(struct folder *f)
{
    const char *name;
    void *next;
    json_t *value;
    json_object_foreach_safe(f->known, next, name, value)
    {
        char path[PATH_MAX];
        struct stat info;
        (void)snprintf(path, sizeof(path), "%s/%s", f->path, name);
        if (stat(path, &info) == 0 || errno != ENOENT)
            continue;
        printf("%s: removed; the workflow stays as it is\n", name);
        (void)fflush(stdout);
        (void)json_object_del(f->known, name);
    }
}

static void look(struct session *s, struct folder *f)
{
    struct dirent **entries;
    int count = scandir(f->path, &entries, is_definition, alphasort);
    if (count < 0) {
        if (f->was_readable)
            fprintf(stderr, "pawl: %s: %s\n", f->path, strerror(errno));
        f->was_readable = false;
        return;
    }
    f->was_readable = true;
    for (int i = 0; i < count; i++) {
        look_at(s, f, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    forget_removed(f);
}

enum cli_exit workflow_watch(struct session *s)
{
    struct folder f = {.path = s->args[0], .known = json_object(), .was_readable = true};
    struct stat info;
    if (stat(f.path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        fprintf(stderr, "pawl: %s is not a folder\n", f.path);
        json_decref(f.known);
        return CLI_USAGE;
    }
    while (!ferror(stdout)) { /* until somebody stops it */
        look(s, &f);
        client_pause(POLL_MS);
    }
    json_decref(f.known);
    return CLI_DONE;
}
