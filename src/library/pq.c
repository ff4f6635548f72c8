/* libpq, loaded when it is first needed. */
#include "library/pq_functions.h"
#include "library/stub.h"

static struct {
    PQ_FUNCTIONS(LIBRARY_SLOT, LIBRARY_SLOT)
} loaded;

static const struct library_function FUNCTIONS[] = {PQ_FUNCTIONS(LIBRARY_ROW, LIBRARY_ROW)};

LIBRARY_DEFINE(LIBPQ, FUNCTIONS);

PQ_FUNCTIONS(LIBRARY_FUNCTION, LIBRARY_CLEANUP)
