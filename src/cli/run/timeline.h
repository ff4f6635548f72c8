/* The timeline of a run for people: one line per event, with the time, the step, the attempt, what
 * happened and why. */
#ifndef PAWL_CLI_RUN_TIMELINE_H
#define PAWL_CLI_RUN_TIMELINE_H

#include "base/json_tree.h"
#include "cli/term/term.h"

/* Appends the line of an event. On a terminal the time is the time of day. */
void timeline_put(struct buf *out, const struct term *term, const json_t *event);

/* "CODE: message" of an error, and the step and cause inside it. */
void error_put(struct buf *out, const json_t *error);

#endif
