/* What every fuzz program with a server includes: the template is made before the first input. */
#ifndef PAWL_FUZZ_BEGIN_H
#define PAWL_FUZZ_BEGIN_H

#include "../fuzz.h"
#include "fuzz_server.h"

/* For programs that change nothing: one server for all inputs, open from the first on. */
void open_for_all_inputs(void);

#endif
