/* Timers of jobs have a row when the fold has come by (src/store/run/timers.h). */
#ifndef PAWL_TESTS_TIMER_ROWS_H
#define PAWL_TESTS_TIMER_ROWS_H

#include "engine/fixture.h"

#include "store/run/timers.h"

#define TIMERS_AHEAD \
    " FROM job_rows j WHERE run IN " OWNERS_AHEAD " AND " JOB_MAY_WAIT " AND due_at IS NOT NULL"

/* What a fold does: before timers are changed past the writer. */
#define FOLD_TIMERS                                                                       \
    "INSERT INTO timers (due_at, run, ordinal, generation, tenant)"                       \
    " SELECT j.due_at, j.run, j.ordinal, j.lease_epoch, j.tenant" TIMERS_AHEAD            \
    " ON CONFLICT DO NOTHING;"                                                            \
    "UPDATE indexed SET through = (SELECT COALESCE(max(num), indexed.through) FROM feed)" \
    " WHERE name = 'timers'"

/* How many timers are armed, of any kind, with a row or without. */
static inline int64_t timers(struct fixture *fixture)
{
    return in_file(fixture, "SELECT count(*) FROM (SELECT due_at, run, ordinal FROM timers UNION"
                            " SELECT j.due_at, j.run, j.ordinal" TIMERS_AHEAD ") AS armed");
}

#endif
