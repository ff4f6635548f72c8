/* pawl new: the files of a project that runs. */
#include "cli/commands.h"
#include "cli/setup/templates.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

static enum cli_exit new_python(struct session *s);
static enum cli_exit new_typescript(struct session *s);

static const struct verb VERBS[] = {
    {.name = "python",
     .arguments = "DIR",
     .about = "Make a project in Python: a workflow as a function, and its worker",
     .local = true,
     .run = new_python},
    {.name = "typescript",
     .arguments = "DIR",
     .about = "Make a project in TypeScript: a workflow as a function, and its worker",
     .local = true,
     .run = new_typescript},
};

const struct command COMMAND_NEW = {"new", "Make a project that runs", VERBS, ARRAY_LEN(VERBS)};

/* A file that is there already is never replaced. */
static bool write_file(const char *folder, const struct template_file *file)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file->name) >= sizeof(path)) {
        fprintf(stderr, "pawl: The name of the folder is too long\n");
        return false;
    }
    FILE *out = fopen(path, "wxe");
    if (out == NULL) {
        fprintf(stderr, "pawl: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool written = fwrite(file->bytes, 1, file->len, out) == file->len;
    return fclose(out) == 0 && written;
}

static enum cli_exit make_project(struct session *s, const char *language)
{
    const char *folder = s->args[0];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "pawl: %s: %s\n", folder, strerror(errno));
        return CLI_REFUSED;
    }
    for (size_t i = 0; i < TEMPLATE_FILE_COUNT; i++)
        if (strcmp(TEMPLATE_FILES[i].language, language) == 0) {
            if (!write_file(folder, &TEMPLATE_FILES[i]))
                return CLI_REFUSED;
            printf("%s/%s\n", folder, TEMPLATE_FILES[i].name);
        }
    printf("Read %s/README.md to run it.\n", folder);
    return CLI_DONE;
}

static enum cli_exit new_python(struct session *s)
{
    return make_project(s, "python");
}

static enum cli_exit new_typescript(struct session *s)
{
    return make_project(s, "typescript");
}
