/* Named servers: a URL, and perhaps a file with the API key, a tenant, an actor and certificates.
 * They are kept in $XDG_CONFIG_HOME/pawl/contexts.json, which only its owner can read; one of them
 * is current. Keys stay in their own files. */
#ifndef PAWL_CLI_SETUP_CONTEXTS_H
#define PAWL_CLI_SETUP_CONTEXTS_H

#include "base/json_tree.h"
#include "cli/exit.h"

/* {"current": name or null, "contexts": {name: {url, key_file?, tenant?, actor?, ca_file?}}}. A
 * file that does not exist is empty. The caller owns *ret. Prints what is wrong. */
MUST_CHECK enum cli_exit contexts_load(json_t **ret);
/* Replaces the file. Prints why it cannot. */
MUST_CHECK enum cli_exit contexts_save(const json_t *contexts);

/* The context of this name, or the current one for NULL; borrowed from contexts. *ret is NULL when
 * there is no current one. Prints when there is none of this name. */
MUST_CHECK enum cli_exit contexts_find(const json_t *contexts, const char *name,
                                       const json_t **ret);

/* The API key in a file: its first line. Prints why it cannot be read. */
MUST_CHECK enum cli_exit contexts_read_key(const char *file, struct buf *out);

#endif
