/* The functions that pawl takes from libraries which it loads when they are first needed
 * (src/library). This file is linked with them: its dependencies are pawl's. */
#include "library/curl_functions.h"
#include "library/nats_functions.h"
#include "library/pq_functions.h"

#define ADDRESS(type, name, params, args) (void (*)(void)) name,

void (*const PAWL_LOADS[])(void);

void (*const PAWL_LOADS[])(void) = {CURL_FUNCTIONS(ADDRESS, ADDRESS, ADDRESS)
                                        NATS_FUNCTIONS(ADDRESS, ADDRESS)
                                            PQ_FUNCTIONS(ADDRESS, ADDRESS)};
