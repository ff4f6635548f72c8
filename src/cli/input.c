/* Reads files, standard input and JSON. */
#include "cli/input.h"

#include "base/limits.h"

#include <errno.h>

enum cli_exit input_file(const char *name, struct buf *out)
{
    char piece[16 * KIB];
    bool standard = strcmp(name, "-") == 0;
    FILE *file = standard ? stdin : fopen(name, "rbe");
    if (file == NULL) {
        fprintf(stderr, "pawl: %s: %s\n", name, strerror(errno));
        return CLI_USAGE;
    }
    size_t got;
    while (buf_ok(out) && (got = fread(piece, 1, sizeof(piece), file)) > 0)
        buf_put_bytes(out, piece, got);
    bool failed = ferror(file) != 0;
    int read_errno = errno;
    if (!standard)
        (void)fclose(file);
    if (failed)
        fprintf(stderr, "pawl: %s: %s\n", name, strerror(read_errno));
    else if (!buf_ok(out))
        fprintf(stderr, "pawl: %s is larger than %zu bytes\n", name, out->max);
    return failed || !buf_ok(out) ? CLI_USAGE : CLI_DONE;
}

enum cli_exit input_json(const char *source, const char *value, struct buf *out)
{
    enum cli_exit rc = CLI_DONE;
    if (strcmp(value, "-") == 0)
        rc = input_file(value, out);
    else if (value[0] == '@')
        rc = input_file(value + 1, out);
    else
        buf_put(out, str_of(value));
    if (rc != CLI_DONE)
        return rc;
    json_t *parsed = NULL;
    if (input_parse(source, buf_str(out), &parsed) != CLI_DONE)
        return CLI_USAGE;
    json_decref(parsed);
    return CLI_DONE;
}

enum cli_exit input_parse(const char *source, struct str text, json_t **ret)
{
    struct problem problem;
    problem_init(&problem);
    if (text.ptr == NULL)
        text = STR("");
    enum err err = json_parse(text, &problem, ret);
    if (err != ERR_OK)
        fprintf(stderr, "pawl: %s: not valid JSON: %s\n", source, problem.detail);
    problem_release(&problem);
    return err == ERR_OK ? CLI_DONE : CLI_REFUSED;
}
