/* What the load generator sends: a request is described once (struct request_spec), rendered once
 * for each connection, and from then on only its changing places are overwritten, so that the
 * client takes as little as it can of the cores that it shares with the server.
 *
 * Places in path, headers and body:
 *   {u}      16 digits that no other request has
 *   {c}      the number of the connection; {cM} modulo M
 *   {nM}     the number of the request modulo M, with leading zeros: {n10000} is 0000 to 9999
 *   {v}      the line of the values file whose number is that of the request
 */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#define REQUEST_HEADERS_MAX 16 /* more than any of our requests has */
#define REQUEST_MAX 1200000    /* a body of 1 MiB, the largest that pawl takes, and its head */
#define REQUEST_SLOTS_MAX 8    /* changing places in one request */

struct request_spec {
    const char *name; /* in the results */
    unsigned weight;  /* its share among several */
    const char *method, *path, *body;
    const char *headers[REQUEST_HEADERS_MAX];
    size_t header_count;
};

/* The lines of a file, all of one length. */
struct request_values {
    char *text;
    size_t width; /* of a line, without its end */
    size_t count;
};

enum slot_kind { SLOT_UNIQUE, SLOT_NUMBER, SLOT_VALUE };

struct request_slot {
    enum slot_kind kind;
    size_t at, width;
    uint64_t modulus; /* of a number */
};

struct request {
    char *bytes;
    size_t len;
    struct request_slot slots[REQUEST_SLOTS_MAX];
    size_t slot_count;
};

/* Renders the request for one connection. Ends the program, with a message, if it is malformed. */
struct request request_render(const struct request_spec *spec, unsigned port, size_t connection,
                              const struct request_values *values);
/* Fills the changing places of the request with this number. Runs with other seeds have other
 * unique digits. */
void request_number(struct request *request, uint64_t number, uint64_t seed,
                    const struct request_values *values);
void request_free(struct request *request);

/* Ends the program, with a message, if the file cannot be read or its lines differ in length. */
struct request_values request_values_read(const char *path);

/* Which spec is next, for each of the requests of one round: the heavier come more often, each as
 * evenly as possible. Returns the length of the round; the caller frees *ret_order. */
size_t request_order(const struct request_spec *specs, size_t count, unsigned char **ret_order);

/* Prints a message and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#endif
