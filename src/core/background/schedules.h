/* Schedules: each time of a cron expression starts exactly one run, even across crashes. */
#ifndef PAWL_CORE_BACKGROUND_SCHEDULES_H
#define PAWL_CORE_BACKGROUND_SCHEDULES_H

#include "core/txn/tx.h"
#include "core/usecase/internal_start.h"
#include "domain/calendar/cron.h"
#include "store/schedules.h"

/* Reads the cron expression and its zone; on a fault p names the field. Lives in the arena. */
struct timetable {
    struct cron cron;
    struct zone zone;
};
MUST_CHECK enum err timetable_read(struct str cron, struct str timezone, struct arena *arena,
                                   struct problem *p, struct timetable *ret);
/* The first time after; -1: never. */
int64_t timetable_next(const struct timetable *t, int64_t after_ms);

/* Starts the run of a time (key `schedule:<id>:<time>`), or of a request when at_ms is -1: then
 * without a key, and counted with the request. The run is in s->last_run too. */
MUST_CHECK enum err schedule_start(struct tx *tx, struct schedule *s, int64_t at_ms,
                                   struct str actor, struct problem *p,
                                   struct internal_start_made *ret);

/* Fires at most `most` due schedules. Inside a transaction. If most is 1, an error is that of
 * the first due schedule. *ret_fired: there was one. */
MUST_CHECK enum err schedules_fire(struct tx *tx, int64_t most, struct problem *p, bool *ret_fired);
/* Postpones the first due schedule to this time and records the reason. */
MUST_CHECK enum err schedules_put_aside(struct tx *tx, int64_t until_ms, enum err why,
                                        const char *detail);

#endif
