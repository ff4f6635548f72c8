/* The verbs of `pawl entity` that work on types, in entity_type.c. */
#ifndef PAWL_CLI_ENTITY_TYPE_H
#define PAWL_CLI_ENTITY_TYPE_H

#include "cli/session.h"

extern const struct option OPTIONS_ENTITY_TYPE_SET[];

enum cli_exit entity_type_set(struct session *s);
enum cli_exit entity_type_list(struct session *s);
enum cli_exit entity_type_show(struct session *s);
enum cli_exit entity_type_stats(struct session *s);

#endif
