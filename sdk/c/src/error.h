/* Filling in errors: of the library itself, and those that the server's answers are. */
#ifndef PAWL_ERROR_H
#define PAWL_ERROR_H

#include "pawl.h"

/* All of them return `kind`, and accept NULL for the error. */
enum pawl_err error_set(struct pawl_error *error, enum pawl_err kind, const char *message, ...)
    __attribute__((format(printf, 3, 4)));
enum pawl_err error_no_memory(struct pawl_error *error);

/* The error that a refusal is. `problem` has the members of a problem, or is not an object; `text`
 * then is its detail. */
enum pawl_err error_refused(struct pawl_error *error, int status, json_t *problem, const char *text,
                            double retry_after_s);

void error_copy(struct pawl_error *to, const struct pawl_error *from);

/* A failure as the wire has it: {"code", "message", "retryable", "details"?}. */
json_t *error_wire(const struct pawl_error *error);

/* The failure that a stored error of the wire is. */
enum pawl_err error_from_wire(struct pawl_error *error, enum pawl_err kind, const json_t *wire);

#endif
