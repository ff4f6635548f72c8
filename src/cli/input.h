/* Input of a command: files, standard input, and JSON on the command line. */
#ifndef PAWL_CLI_INPUT_H
#define PAWL_CLI_INPUT_H

#include "base/json_tree.h"
#include "cli/exit.h"

/* Reads a whole file, or standard input for "-". Prints why it cannot and returns CLI_USAGE. */
MUST_CHECK enum cli_exit input_file(const char *name, struct buf *out);

/* Reads the value of an option or argument: JSON, @FILE or -. Prints what is wrong with it, under
 * the name `source`, and returns CLI_USAGE. */
MUST_CHECK enum cli_exit input_json(const char *source, const char *value, struct buf *out);

/* Parses JSON from `source`; the caller owns *ret. Prints what is wrong and returns CLI_REFUSED. */
MUST_CHECK enum cli_exit input_parse(const char *source, struct str text, json_t **ret);

#endif
