/* docs/openapi.yaml as JSON, made at build time. */
#ifndef PAWL_API_OPENAPI_H
#define PAWL_API_OPENAPI_H

#include <stddef.h>

extern const unsigned char OPENAPI_JSON[];
extern const size_t OPENAPI_JSON_LEN;

#endif
