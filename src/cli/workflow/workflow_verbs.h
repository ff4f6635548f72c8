/* The verbs of `pawl workflow` that have a file of their own, and what they share. */
#ifndef PAWL_CLI_WORKFLOW_WORKFLOW_VERBS_H
#define PAWL_CLI_WORKFLOW_WORKFLOW_VERBS_H

#include "cli/session.h"

#define WORKFLOWS_PATH "/api/v1/workflows/"

enum cli_exit workflow_watch(struct session *s);
enum cli_exit workflow_graph(struct session *s);

extern const struct option OPTIONS_WORKFLOW_GRAPH[];

/* Reads a definition, in JSON or YAML, into the body of the next request, as JSON. Its path is that
 * of the workflow `id` (NULL: the id in the definition) and the suffix. Prints what is wrong. A
 * definition without an id can only be validated. */
MUST_CHECK enum cli_exit workflow_take_file(struct session *s, const char *file, const char *id,
                                            const char *suffix);

/* For session_call: what a PUT did. */
void workflow_show_applied(struct session *s, json_t *answer);

#endif
