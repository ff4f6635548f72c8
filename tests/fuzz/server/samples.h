/* Texts that requests may use: things of the template store, and good values for parameters. */
#ifndef PAWL_FUZZ_SAMPLES_H
#define PAWL_FUZZ_SAMPLES_H

#include "base/str.h"

/* Text for the parameter of this name, by number: ptr NULL when there is none for it. */
struct str sample_text(struct str param, size_t number);
/* A JSON value for the parameter of this name, or a value of any kind. */
struct str sample_json(struct str param, size_t number);
/* A body for the route of this pattern; ptr NULL: none is known. */
struct str sample_document(struct str pattern, size_t number);

#endif
