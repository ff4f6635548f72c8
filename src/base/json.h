/* JSON: reading it (json/read.h), values (json/value.h), writing them (json/write.h), their numbers
 * (json/number.h), and writing text without a value first (json_out.h). */
#ifndef PAWL_BASE_JSON_H
#define PAWL_BASE_JSON_H

#include "base/json/number.h"
#include "base/json/read.h"
#include "base/json/value.h"
#include "base/json/write.h"
#include "base/json_out.h"

#endif
