/* HTTP requests to one server over one kept-alive connection, with safe retries.
 *
 * A request is tried up to four times: after connection errors and time-outs, after a 503, and
 * after a retryable 409, always with the same Idempotency-Key. Between attempts it waits a random
 * time below a doubling bound, or as long as Retry-After says, but at most five seconds. A caller
 * with other work to do puts requests on a multi handle instead, where they are tried once. */
#ifndef PAWL_CLI_CLIENT_H
#define PAWL_CLI_CLIENT_H

#include "base/buf.h"
#include "cli/exit.h"

#include <curl/curl.h>

enum { CLIENT_HEADER_MAX = 2 * 1024 };

struct client_setup {
    const char *url;
    const char *api_key; /* this and the next two: NULL for none */
    const char *tenant;
    const char *actor;
    const char *ca_file; /* PEM certificates to trust for HTTPS; NULL: the system's */
    int64_t timeout_ms;  /* of one attempt */
};

struct request {
    const char *method;
    struct str path;             /* escaped, starts with a slash, includes the query */
    struct str body;             /* JSON; empty for none */
    const char *idempotency_key; /* this and the next: NULL for none */
    const char *if_match;        /* in quotes, as the header has it */
    int64_t timeout_ms;          /* of one attempt; 0: the client's */
    int64_t wait_ms; /* how long the server may hold the request; added to the time-out */
    bool to_file;    /* write the body of a 200 to file_fd, which is truncated first */
    int file_fd;
    /* Hears how many bytes of how many have been written to the file; total 0: unknown. NULL: none
     */
    void (*progress)(void *ctx, int64_t done, int64_t total);
    void *progress_ctx;
    /* Gets the body of a 200 as it arrives, with no time limit; false ends the request, which is
     * tried once. NULL: the body goes into the reply. */
    bool (*take)(void *ctx, struct str bytes);
    void *take_ctx;
};

/* Owned by the caller; one may serve many requests. */
struct reply {
    long status;
    bool replayed; /* Idempotent-Replayed: true */
    struct buf body;
};

struct client {
    bool started; /* libcurl is initialized for it */
    CURL *curl;
    struct curl_slist *headers; /* of every request */
    struct buf url;             /* of the server, without a trailing slash */
    int64_t timeout_ms;
    char error[CURL_ERROR_SIZE]; /* why the last request failed */
    CURLcode code;               /* of the last request */
    /* Of the request in flight: */
    struct request req;
    struct reply *reply;
    struct buf target;
    int file_errno;
    int64_t file_bytes;
    struct {
        char line[CLIENT_HEADER_MAX];
        struct curl_slist node;
    } extra[2]; /* headers of this request only */
};

void reply_init(struct reply *r);
void reply_release(struct reply *r);

/* False when libcurl cannot be loaded, memory ran out or the value of a header has control
 * characters; c->error says which. Call client_close in both cases. */
MUST_CHECK bool client_open(struct client *c, const struct client_setup *setup);
void client_close(struct client *c);

/* CLI_DONE when the server answered, with any status. Otherwise see client_print_error. */
MUST_CHECK enum cli_exit client_send(struct client *c, const struct request *req,
                                     struct reply *ret);

/* --- in parallel --- */

/* Puts a request on the multi handle, where it is tried once; curl's private pointer of the handle
 * is c. req's texts and ret must live until client_end. False: see client_print_error. */
MUST_CHECK bool client_begin(struct client *c, CURLM *multi, const struct request *req,
                             struct reply *ret);
/* Takes a finished request off, with the code from the multi handle. Returns as client_send. */
MUST_CHECK enum cli_exit client_end(struct client *c, CURLM *multi, CURLcode code);
/* Takes a request in flight off. */
void client_cancel(struct client *c, CURLM *multi);

/* Prints why the last request failed, and `then`, as one line on standard error. */
void client_print_error(const struct client *c, const char *then);

/* Percent-encodes all but letters, digits and -._~ */
void buf_put_escaped(struct buf *b, struct str text);

/* Sleeps that long, even if a signal arrives. */
void client_pause(int64_t ms);

#endif
