/* Names and ids that people type: a unique prefix stands for an id, and a name that the server does
 * not know is answered with the one that was probably meant. */
#ifndef PAWL_CLI_NAMES_H
#define PAWL_CLI_NAMES_H

#include "cli/session.h"

/* Where the ids of a verb's first argument are listed. */
struct id_list {
    const char *noun; /* "run" */
    const char *path; /* "/api/v1/runs" */
    const char *member;
    const char *prefix_query; /* the server finds prefixes itself by this parameter; NULL: no */
};

extern const struct id_list IDS_OF_RUNS;
extern const struct id_list IDS_OF_APPROVALS;
extern const struct id_list IDS_OF_DEAD;
extern const struct id_list IDS_OF_WEBHOOKS;
extern const struct id_list IDS_OF_KEYS;

/* Puts the whole id in the place of the first argument, if that is the beginning of one. Prints an
 * error when several ids begin so, or none. */
MUST_CHECK enum cli_exit names_resolve(struct session *s, const struct id_list *list);

/* After a refusal: prints `Did you mean …?` when the server knows a name like the first argument.
 */
void names_suggest(struct session *s);

#endif
