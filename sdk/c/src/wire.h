/* Requests and responses, and how paths, keys and problems are written. */
#ifndef PAWL_WIRE_H
#define PAWL_WIRE_H

#include "pawl.h"
#include "util.h"

/* What goes out. Query and headers are objects of texts. */
struct request {
    const char *method;
    char *path; /* percent-encoded, without the query */
    json_t *query, *headers;
    json_t *body; /* NULL: none, and no Content-Type */
    double timeout_ms;
};

/* What came back. */
struct response {
    int status;
    char content_type[64];
    double retry_after_s;
    struct buffer body;
};

void request_free(struct request *request);
void response_free(struct response *response);

/* Path and query as the request line has them; the caller frees it. NULL without memory. */
char *request_target(const struct request *request);

/* One segment of a path, encoded as JavaScript's encodeURIComponent does it. */
void add_segment(struct buffer *path, const char *text);

/* How a key travels in the header: a text that the caller frees; *ret_header is NULL if a header
 * cannot carry it. PAWL_ERR_BAD_ARGUMENT for a key that is refused. */
enum pawl_err key_header(const char *key, char **ret_header, struct pawl_error *error);

/* The number of seconds in a Retry-After header, or 0. */
double retry_after_of(const char *header);

/* The error of a response that is not a success. */
enum pawl_err response_error(const struct response *response, struct pawl_error *error);

/* The JSON of a success; an empty body is null. PAWL_ERR_NO_ANSWER if it is not JSON. */
enum pawl_err response_json(const struct response *response, json_t **ret_value,
                            struct pawl_error *error);

#endif
