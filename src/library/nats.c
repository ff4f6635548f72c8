/* libnats, loaded when it is first needed. */
#include "library/nats_functions.h"
#include "library/stub.h"

static struct {
    NATS_FUNCTIONS(LIBRARY_SLOT, LIBRARY_SLOT)
} loaded;

static const struct library_function FUNCTIONS[] = {NATS_FUNCTIONS(LIBRARY_ROW, LIBRARY_ROW)};

LIBRARY_DEFINE(LIBNATS, FUNCTIONS);

NATS_FUNCTIONS(LIBRARY_FUNCTION, LIBRARY_CLEANUP)
