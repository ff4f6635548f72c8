/* The command line of the load generator. */
#ifndef BENCH_LOAD_OPTIONS_H
#define BENCH_LOAD_OPTIONS_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>

#define LOAD_SPECS_MAX 8 /* kinds of requests in one mix */

struct load_options {
    uint16_t port;
    size_t connections;
    double warm_s, measured_s;
    double per_s;      /* open loop at this rate; 0: closed loop */
    uint64_t seed;     /* of the unique digits */
    uint64_t requests; /* 0: as many as the window lets */
    bool burst;
    struct request_spec specs[LOAD_SPECS_MAX];
    size_t spec_count; /* at least 1 */
    struct request_values values;
};

/* Ends the program, with a message, if the command line is wrong. */
void load_options_parse(int argc, char **argv, struct load_options *ret_opt);

#endif
