/* What people hand to a command: files, standard input, and JSON on the command line. */
#ifndef PAWL_CLI_INPUT_H
#define PAWL_CLI_INPUT_H

#include "base/json.h"
#include "cli/exit.h"

/* All of a file, or of standard input for "-". CLI_USAGE after saying why it cannot be read. */
MUST_CHECK enum cli_exit input_file(const char *name, struct buf *out);

/* The value of a flag or an argument: JSON as written, or `@file`, or `-`. CLI_USAGE after saying
 * what is wrong with it, under the name `source`. */
MUST_CHECK enum cli_exit input_json(const char *source, const char *value, struct buf *out);

/* Checks text that came from `source`; the caller owns *ret. CLI_REFUSED after saying what is
 * wrong. */
MUST_CHECK enum cli_exit input_parse(const char *source, struct str text, json_t **ret);

#endif
