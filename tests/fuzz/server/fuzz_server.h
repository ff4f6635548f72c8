/* A whole pawl in one thread, for fuzz programs: the real api, engine, core and store, on a file in
 * memory and a clock that the program moves. Only the threads (inline_threads.h) and the sockets
 * (memory_http.h) are left out. Every run begins with the rows of one template, in which
 * every kind of row occurs.
 *
 * Every answer is checked: there is exactly one, its status is in the table of errors, a problem
 * has its members, a refusal has changed nothing. */
#ifndef PAWL_FUZZ_SERVER_H
#define PAWL_FUZZ_SERVER_H

#include "base/json_tree.h"
#include "http/http.h"
#include "known.h"

#define FUZZ_ROOT_KEY "pawl_root_fuzz_0123456789abcdef0123456789"

/* Through which door a request comes. */
enum fuzz_door {
    DOOR_KEYS,  /* `pawl serve`: needs a key */
    DOOR_DEV,   /* `pawl dev` */
    DOOR_ASIDE, /* --metrics-listen */
    DOOR_COUNT
};

struct fuzz_request {
    enum fuzz_door door;
    struct str method;
    struct str target; /* path and query */
    struct str body;
    struct http_param headers[24];
    size_t header_count;
    bool hangs_up; /* the client leaves before it has read the answer */
};

struct fuzz_answer {
    int status;
    enum err err; /* of a problem */
    json_t *json; /* NULL: another kind of content; the caller owns it */
};

/* Once per process: makes the template. */
void fuzz_server_setup(void);

/* On the rows of the template (kept_store.h). */
void fuzz_server_open(uint64_t seed);
void fuzz_server_close(void);
/* On the rows as they are. False when the server refuses them. */
MUST_CHECK bool fuzz_server_try_open(uint64_t seed);

/* With the damage of a store answers may be 500: do not fail then. */
void fuzz_server_expect_damage(bool damage);

/* Adds a header; more than fit are left out. */
void fuzz_add_header(struct fuzz_request *r, const char *name, struct str value);
/* As a caller that may do everything: the root key, for this tenant (ptr NULL: none named). */
struct fuzz_request fuzz_request(const char *method, struct str target, struct str body,
                                 struct str tenant);
struct fuzz_answer fuzz_ask(const struct fuzz_request *r);
/* The same without the answer; returns its status. */
int fuzz_do(const char *method, const char *target, const char *body, const char *tenant);

int64_t fuzz_server_now_ms(void);
/* Lets time pass, and the server do what is due then. */
void fuzz_server_pass_ms(int64_t ms);
/* Fails unless the doctor finds nothing. */
void fuzz_server_check_doctor(void);

/* What the answers so far have said; from the template on. */
const struct known *fuzz_server_known(void);

#endif
