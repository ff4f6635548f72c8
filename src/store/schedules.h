/* Schedules as rows. */
#ifndef PAWL_STORE_SCHEDULES_H
#define PAWL_STORE_SCHEDULES_H

#include "base/arena.h"
#include "domain/calendar/schedule.h"
#include "store/db.h"

struct schedule {
    int64_t tenant;
    struct str id;
    struct str workflow_id;
    struct str cron;
    struct str timezone;
    enum overlap overlap;
    int64_t catch_up_ms;
    struct str input; /* JSON */
    bool paused;
    int64_t next_at;       /* the time that is fired next; -1: none */
    int64_t check_at;      /* when to look; -1: never */
    int64_t last_at;       /* the time that was fired last; -1: none yet */
    struct uuid last_run;  /* all zero: none yet */
    struct str last_error; /* JSON, why the last time made no run; ptr NULL: it did */
    struct str created_by;
    int64_t created_at;
    int64_t updated_at;
};

MUST_CHECK enum err schedules_put(struct db *db, const struct schedule *s);
MUST_CHECK enum err schedules_delete(struct db *db, int64_t tenant, struct str id, bool *ret_found);
/* Text is copied to the arena. */
MUST_CHECK enum err schedules_find(struct db *db, int64_t tenant, struct str id,
                                   struct arena *arena, bool *ret_found, struct schedule *ret);
/* Those after `after` in the order of their ids. Text is borrowed for the call. */
MUST_CHECK enum err schedules_list(struct db *db, int64_t tenant, struct str after, int64_t limit,
                                   void (*each)(void *ctx, const struct schedule *s), void *ctx);
/* The first that is due. */
MUST_CHECK enum err schedules_due(struct db *db, int64_t now_ms, struct arena *arena,
                                  bool *ret_found, struct schedule *ret);
/* When the next one is; -1: never. */
MUST_CHECK enum err schedules_next(struct db *db, int64_t *ret_check_at);

#endif
