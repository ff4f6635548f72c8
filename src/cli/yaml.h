/* YAML as another way to write JSON. Mappings, lists and scalars only: no anchors and aliases, no
 * tags, one document, no name twice. A plain scalar that JSON reads as a number, true, false or
 * null is that; every other scalar is text, also yes, no and 1_000. */
#ifndef PAWL_CLI_YAML_H
#define PAWL_CLI_YAML_H

#include "base/buf.h"
#include "cli/exit.h"

/* Appends the JSON. Prints what is wrong as `source:line:column: …` and returns CLI_REFUSED. */
MUST_CHECK enum cli_exit yaml_to_json(const char *source, struct str yaml, struct buf *out);

#endif
