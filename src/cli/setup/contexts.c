/* The file of contexts. */
#include "cli/setup/contexts.h"

#include "base/limits.h"
#include "base/suggest.h"
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 * MIB };

/* The folder, and the file in it. False when no folder of the user is known. */
static bool find_place(char folder[static PATH_MAX], char file[static PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int len = -1;
    if (config != NULL && config[0] == '/')
        len = snprintf(folder, PATH_MAX, "%s/pawl", config);
    else if (home != NULL && home[0] == '/')
        len = snprintf(folder, PATH_MAX, "%s/.config/pawl", home);
    if (len < 0 || len >= PATH_MAX - 32)
        return false;
    (void)snprintf(file, PATH_MAX, "%s/contexts.json", folder);
    return true;
}

static json_t *no_contexts(void)
{
    return json_pack("{s:n, s:{}}", "current", "contexts");
}

enum cli_exit contexts_load(json_t **ret)
{
    char folder[PATH_MAX], file[PATH_MAX];
    struct buf text;
    if (!find_place(folder, file) || access(file, F_OK) != 0) {
        *ret = no_contexts();
        return CLI_DONE;
    }
    buf_init(&text, FILE_MAX);
    json_t *contexts = NULL;
    enum cli_exit rc = input_file(file, &text);
    if (rc == CLI_DONE)
        rc = input_parse(file, buf_str(&text), &contexts);
    if (rc == CLI_DONE && !json_is_object(json_object_get(contexts, "contexts"))) {
        fprintf(stderr, "pawl: %s is not a file of contexts\n", file);
        json_decref(contexts);
        rc = CLI_REFUSED;
    }
    buf_release(&text);
    if (rc == CLI_DONE)
        *ret = contexts;
    return rc;
}

/* Each folder of a path, as `mkdir -p`. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

static bool write_file(const char *file, const json_t *contexts)
{
    char fresh[PATH_MAX];
    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", file) >= sizeof(fresh))
        return false;
    (void)unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = json_dumpfd(contexts, fd, JSON_INDENT(2)) == 0 && fsync(fd) == 0;
    close(fd);
    return written && rename(fresh, file) == 0;
}

enum cli_exit contexts_save(const json_t *contexts)
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (!find_place(folder, file)) {
        fprintf(stderr, "pawl: Set HOME or XDG_CONFIG_HOME to say where contexts are kept\n");
        return CLI_REFUSED;
    }
    make_folders(folder);
    if (write_file(file, contexts))
        return CLI_DONE;
    fprintf(stderr, "pawl: %s: %s\n", file, strerror(errno));
    return CLI_REFUSED;
}

enum cli_exit contexts_find(const json_t *contexts, const char *name, const json_t **ret)
{
    json_t *all = json_object_get(contexts, "contexts"), *value;
    const char *current = json_string_value(json_object_get(contexts, "current")), *other;
    const char *wanted = name != NULL ? name : current;
    *ret = wanted != NULL ? json_object_get(all, wanted) : NULL;
    if (wanted == NULL || *ret != NULL)
        return CLI_DONE;
    struct suggestion s = suggest_for(str_of(wanted));
    json_object_foreach (all, other, value)
        suggest_consider(&s, str_of(other));
    fprintf(stderr, "pawl: Unknown context \"%s\".", wanted);
    if (s.best.len > 0)
        fprintf(stderr, " Did you mean \"%.*s\"?", STR_ARG(s.best));
    fputs(" Run `pawl context list` for a list.\n", stderr);
    return CLI_USAGE;
}

enum cli_exit contexts_read_key(const char *file, struct buf *out)
{
    enum cli_exit rc = input_file(file, out);
    if (rc != CLI_DONE)
        return rc;
    if (out->len > 0)
        out->len = strcspn(out->ptr, "\r\n");
    if (out->len == 0) {
        fprintf(stderr, "pawl: %s has no API key in its first line\n", file);
        return CLI_REFUSED;
    }
    out->ptr[out->len] = '\0';
    return CLI_DONE;
}
