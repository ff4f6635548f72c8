/* Runs and jobs to write, for the tests of their tables. */
#ifndef PAWL_TESTS_RUN_SUPPORT_H
#define PAWL_TESTS_RUN_SUPPORT_H

#include "store/folder.h"
#include "store/rows.h"

#include "store/run/jobs.h"
#include "store/run/late_index.h"
#include "store/run/runs.h"
#include "store/run/timers.h"

/* --- numbers --- */

static inline struct uuid id_at(int64_t time)
{
    struct uuid id = env_new_id(&ENV_SYSTEM);
    uuid_set_time(&id, time);
    return id;
}

/* --- rows --- */

static inline struct run run_at(int64_t tenant, int64_t time, int64_t last)
{
    struct uuid id = id_at(time);
    int64_t num = runs_new_num(&id, last, (struct db_numbers){1, 0});
    return plain_run(tenant, id, num);
}

/* --- lists --- */

static inline void fill_index(struct db *db, int64_t last)
{
    assert_ok(db_begin(db));
    assert_ok(late_index_fill(db, last));
    assert_ok(db_commit(db));
}

#endif
