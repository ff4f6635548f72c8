/* Rows as the engine makes them, with nothing said that need not be. */
#ifndef PAWL_TESTS_STORE_ROWS_H
#define PAWL_TESTS_STORE_ROWS_H

#include "store/run/runs.h"

static inline struct run plain_run(int64_t tenant, struct uuid id, int64_t num)
{
    return (struct run){
        .num = num,
        .id = id,
        .tenant = tenant,
        .workflow_id = STR("w"),
        .workflow_version = 1,
        .status = RUN_PENDING,
        .revision = 1,
        .input = STR("null"),
        .state = STR("{}"),
        .labels = STR("{}"),
        .created_by = STR("me"),
        .created_at = 1000,
        .started_at = -1,
        .finished_at = -1,
        .deadline_at = -1,
        .start_at = -1,
        .parent_run = -1,
        .parent_ordinal = -1,
    };
}

#endif
