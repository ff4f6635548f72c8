/* HTTP requests to one server over one kept connection, repeated where that is safe.
 *
 * A request is tried up to four times: after connection errors and time-outs, after 503, and after
 * a 409 that calls itself retryable, always with the same Idempotency-Key. Between attempts it
 * waits a random time below a doubling bound, or as long as Retry-After asks, but at most five
 * seconds. Who has other work to do meanwhile puts requests on a multi handle, once each. */
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
    struct str path;             /* from the slash on, escaped, with its query */
    struct str body;             /* JSON; empty for none */
    const char *idempotency_key; /* this and the next: NULL for none */
    const char *if_match;        /* as it is sent, in its quotes */
    int64_t timeout_ms;          /* of one attempt; 0: the client's */
    int64_t wait_ms;             /* how long the server was asked to wait, on top of the time-out */
    bool to_file;                /* a 200's body goes to file_fd, which is emptied first */
    int file_fd;
    /* A 200's body goes here as it comes, however long that takes; false ends it. Such a request is
     * made once: the caller knows how far it came. NULL: it goes into the reply. */
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
    CURL *curl;
    struct curl_slist *headers; /* those of every request */
    struct buf url;             /* of the server, without a slash at its end */
    int64_t timeout_ms;
    char error[CURL_ERROR_SIZE]; /* why the last request failed */
    /* Of the request under way: */
    struct request req;
    struct reply *reply;
    struct buf target;
    int file_errno;
    struct {
        char line[CLIENT_HEADER_MAX];
        struct curl_slist node;
    } extra[2]; /* headers of this request, in front of the others */
};

void reply_init(struct reply *r);
void reply_release(struct reply *r);

/* False when memory ran out or a header's value has control characters; c->error says which.
 * client_close is due in both cases. curl_global_init comes before, once. */
MUST_CHECK bool client_open(struct client *c, const struct client_setup *setup);
void client_close(struct client *c);

/* CLI_DONE when the server answered, whatever its status. Otherwise c->error says why not. */
MUST_CHECK enum cli_exit client_send(struct client *c, const struct request *req,
                                     struct reply *ret);

/* --- beside other work --- */

/* Puts a request on the multi handle, where it is made once; curl's private pointer of the handle
 * is c. What req borrows and ret stay the request's until client_end. False: c->error says why. */
MUST_CHECK bool client_begin(struct client *c, CURLM *multi, const struct request *req,
                             struct reply *ret);
/* Takes off one that is over, with the code that the multi handle gave. As client_send. */
MUST_CHECK enum cli_exit client_end(struct client *c, CURLM *multi, CURLcode code);
/* Takes off one that is under way. */
void client_cancel(struct client *c, CURLM *multi);

/* Percent-encodes all but letters, digits and -._~ */
void buf_put_escaped(struct buf *b, struct str text);

/* Sleeps, signals or not. */
void client_pause(int64_t ms);

#endif
