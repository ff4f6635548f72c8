/* What the library needs of the world: a clock, chance, keys and the server. Tests put their own in
 * place of them. */
#ifndef PAWL_PORTS_H
#define PAWL_PORTS_H

#include "retry.h"
#include "wire.h"

#define KEY_SIZE 40

/* Lets another thread end an exchange. */
struct abort;

struct ports {
    void *at; /* given to all of them */
    double (*now_ms)(void *at);
    random_fn *random;
    void (*pause)(void *at, double ms);
    void (*new_key)(void *at, char key[KEY_SIZE]);
    /* One request and its response; PAWL_ERR_NO_ANSWER if none came. `abort` may be NULL. */
    enum pawl_err (*exchange)(void *at, const struct request *request, struct abort *abort,
                              struct response *ret_response, struct pawl_error *error);
    /* A response that is a stream has status 200; *ret_stream must be closed then, and only then.
     */
    enum pawl_err (*open)(void *at, const struct request *request, void **ret_stream,
                          struct response *ret_response, struct pawl_error *error);
    /* Adds what has arrived; nothing at the clean end. PAWL_ERR_NO_ANSWER if the stream broke or
     * `timeout_ms` passed. */
    enum pawl_err (*read)(void *at, void *stream, double timeout_ms, struct buffer *chunk,
                          struct pawl_error *error);
    void (*close)(void *at, void *stream);
};

#endif
