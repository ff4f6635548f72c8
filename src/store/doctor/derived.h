/* Pieces of SQL about what is derived from runs and entities, shared by the checks and the repair.
 */
#ifndef PAWL_STORE_DOCTOR_DERIVED_H
#define PAWL_STORE_DOCTOR_DERIVED_H

#include "store/run/timers.h"

/* A list of scopes as "3,17" has this number in it. */
#define LIST_HAS(list, num) "(',' || " list " || ',' LIKE '%,' || CAST(" num " AS TEXT) || ',%')"

/* The numbers in a text like "[[1,-2,3,4],[5,6,7,8]]", without signs, between commas. */
#define NUMBERS_IN(text)                                                                           \
    "replace(',' || replace(substr(" text ", 3, CASE WHEN " text " LIKE '[[%]]' THEN length(" text \
    ") - 4 ELSE 0 END), '],[', ',') || ',', ',-', ',')"
#define COUNT_OF(character, text) \
    "(length(" text ") - length(replace(" text ", '" character "', '')))"
/* Of a text of another form: another character, an empty number, one that begins with 0, or not
 * four times as many as there are lists. */
/* clang-format off */
#define LISTS_ARE_DAMAGED(text) \
    "(trim(" NUMBERS_IN(text) ", '0123456789,') <> '' OR " NUMBERS_IN(text) " LIKE '%,,%'" \
    " OR replace(replace(" NUMBERS_IN(text) ", ',', ',,'), ',0,', '') LIKE '%,0%'" \
    " OR " COUNT_OF(",", NUMBERS_IN(text)) " - 1 <> 4 * (" COUNT_OF("[", text) " - 1))"
/* clang-format on */

/* Of a run: under way, by itself or as part of another. */
#define RUN_IS_ACTIVE                                                 \
    "(status = 'pending' OR status = 'running' OR status = 'waiting'" \
    " OR status = 'paused')"
/* Of a run: stands in a line of the queue, or will when its time has come. */
#define RUN_IS_IN_LINE "(status = 'queued' AND start_at IS NULL)"
#define RUN_IS_DELAYED "(status = 'queued' AND start_at IS NOT NULL)"

/* A timer of any time reports its child's end. */
#define JOB_HAS_CHILD "(j.state = 'dispatched' AND j.child IS NOT NULL)"

/* A row `f` of first_jobs is that of a run `r`. */
#define IS_IN_QUEUE                                                                            \
    "f.queue = r.first_queue AND f.tenant = r.tenant AND f.urgency = -r.priority AND f.run = " \
    "r.num"
/* A timer `t` is that of the job in the row of a run `r`. */
#define IS_FIRST_TIMER \
    "t.due_at = r.first_due AND t.run = r.num AND t.ordinal = 1 AND t.generation = 0"

/* Ordinals of timers that belong to an entity itself, as engine/entity_txn.h has them. */
#define ENTITY_TIMER "-2"
#define ENTITY_START_TIMER "-3"
/* An entity `e` whose next timer is armed. */
#define ENTITY_IS_ARMED "(e.timer_at IS NOT NULL AND e.open_job IS NULL)"

/* The number of the last run that the late index has. */
#define RUNS_THROUGH "COALESCE((SELECT through FROM indexed WHERE name = 'runs'), 0)"

/* The number of the last row that the feed has had. */
#define FEED_END                                                                 \
    "(SELECT COALESCE(max(num), 0) FROM (SELECT max(num) AS num FROM feed_packs" \
    " UNION ALL SELECT through FROM feed_marks WHERE name = 'swept') AS ends)"

/* Packs of the feed up to this number say nothing about counters any more. */
#define COUNTERS_THROUGH "COALESCE((SELECT through FROM indexed WHERE name = 'counters'), 0)"

/* A column of the first place in the queue of a line. */
#define FIRST_IN_LINE(line, column) \
    "(SELECT q." column " FROM queue q WHERE q.line = " line " ORDER BY q.urgency, q.run LIMIT 1)"

#endif
