/* What the parts of a head mean: the target's form, and the fields that decide about the host, the
 * body's end and the connection. Called by parse.c at the end of each line. */
#ifndef PAWL_HTTP_PARSE_RULES_H
#define PAWL_HTTP_PARSE_RULES_H

#include "http/head.h"

/* Takes the target, which is in h->path, apart. */
enum parse_fault rules_target(struct head *h, const char *bytes);
enum parse_fault rules_field(struct head *h, const char *bytes, const struct parse_field *field);
/* The head is complete. */
enum parse_fault rules_head(struct head *h);

#endif
