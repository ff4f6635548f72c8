/* A server, a clock and chance that a test writes down, and what is compared with it. */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "client.h"

struct script {
    json_t *answers; /* in order; an element may have the `request` that it answers */
    size_t answered;
    json_t *sent;    /* requests as the fixtures write them */
    json_t *pauses;  /* in milliseconds */
    json_t *numbers; /* random numbers in order; empty: always 0.5 */
    size_t drawn;
    json_t *keys;
    size_t made;
    double now_ms;
    const json_t *stream; /* the connection that is being read */
    size_t chunks_read;
};

/* The number of failures so far; expect() counts and prints. */
extern int failures;
void expect(bool holds, const char *what, const json_t *actual, const json_t *wanted);

/* `actual` has everything that `wanted` lists; arrays are compared whole. */
bool contains(const json_t *actual, const json_t *wanted);

/* Numbers that are equal as numbers. */
bool same(const json_t *a, const json_t *b);

struct ports script_ports(struct script *script);
void script_begin(struct script *script, json_t *answers);
void script_end(struct script *script);

/* A client that talks to the script; `config` has url, api_key, tenant and actor. */
struct pawl_client *script_client(struct script *script, const json_t *config);

/* A request as the fixtures write it. */
json_t *request_json(const struct request *request);
void expect_request(const json_t *sent, const json_t *wanted);

/* The response that an answer of a fixture is. */
struct response response_of(const json_t *answer);

/* The cases of a file, given to `run` one by one. */
void each_case(const char *folder, const char *file, void (*run)(const json_t *test));

void worker_fixtures(const char *folder);

#endif
