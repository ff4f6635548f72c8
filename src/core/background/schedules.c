/* Schedules: times that start runs by themselves. */
#include "core/background/schedules.h"

#include "base/limits.h"
#include "base/zonefile.h"
#include "core/txn/render.h"
#include "core/usecase/execute.h"
#include "core/usecase/internal_start.h"
#include "store/run/runs.h"

enum {
    LOOK_AGAIN_MS = 1000
}; /* at the run that a time waits for, or at a limit that was reached */

/* --- timetables --- */

enum err timetable_read(struct str cron, struct str timezone, struct arena *arena,
                        struct problem *p, struct timetable *ret)
{
    struct timetable t = {.zone = ZONE_UTC};
    enum err e = cron_parse(cron, p, &t.cron);
    if (e == ERR_OK && !str_is(timezone, "UTC")) {
        struct str tzif = STR_NONE;
        e = zonefile_read(NULL, timezone, arena, p, &tzif);
        if (e == ERR_OK)
            e = zone_parse(tzif, arena, p, &t.zone);
    }
    if (e == ERR_OK)
        *ret = t;
    return e;
}

int64_t timetable_next(const struct timetable *t, int64_t after_ms)
{
    int64_t next_s = 0;
    return cron_next(&t->cron, &t->zone, after_ms / 1000, &next_s) ? next_s * 1000 : -1;
}

/* --- starting --- */

/* What the start of this time is known by; false when memory ran out. */
static bool set_key(struct tx *tx, const struct schedule *s, int64_t at_ms,
                    struct internal_start *start)
{
    struct buf key;
    struct buf route;
    buf_init(&key, IDEM_KEY_MAX);
    buf_init(&route, ROUTE_MAX);
    buf_put(&key, STR("schedule:"));
    buf_put(&key, s->id);
    buf_put_char(&key, ':');
    buf_put_time(&key, at_ms);
    buf_put(&route, STR("SCHEDULE "));
    buf_put(&route, s->id);
    start->key = arena_take(&tx->arena, &key);
    start->route = arena_take(&tx->arena, &route);
    return start->key.ptr != NULL && start->route.ptr != NULL;
}

static struct str labels_of(struct tx *tx, const struct schedule *s)
{
    struct buf text;
    buf_init(&text, 4 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "schedule", s->id);
    json_close(&o, '}');
    return arena_take(&tx->arena, &text);
}

enum err schedule_start(struct tx *tx, struct schedule *s, int64_t at_ms, struct str actor,
                        struct problem *p, struct internal_start_made *ret)
{
    struct internal_start start = {
        .tenant = s->tenant,
        .workflow_id = s->workflow_id,
        .input = s->input,
        .labels = labels_of(tx, s),
        .at_limit = s->overlap == OVERLAP_QUEUE ? AT_LIMIT_QUEUE : AT_LIMIT_COUNT,
        .actor = actor,
        .peer = STR("schedule"),
        .endpoint = at_ms >= 0 ? "schedule" : NULL,
        .due_at = at_ms,
    };
    if (start.labels.ptr == NULL || (at_ms >= 0 && !set_key(tx, s, at_ms, &start)))
        return ERR_NO_MEMORY;
    enum err e = internal_start(tx, &start, p, ret);
    if (e == ERR_OK && ret->refusal == ERR_OK)
        s->last_run = ret->run;
    return e;
}

/* --- firing --- */

static enum err look_at_last(struct tx *tx, const struct schedule *s, struct schedule_last *ret)
{
    struct run run;
    bool found = false;
    *ret = (struct schedule_last){false, false};
    if (uuid_is_nil(s->last_run))
        return ERR_OK;
    enum err e = runs_find(tx->db, s->tenant, s->last_run, &tx->arena, &found, &run);
    if (e == ERR_OK && found)
        *ret = (struct schedule_last){!run_has_ended(run.status),
                                      run.finished_at < 0 || run.finished_at >= s->next_at};
    return e;
}

/* Keeps why the time that is next made no run. */
static enum err set_error(struct tx *tx, struct schedule *s, const char *code, const char *detail)
{
    struct buf text;
    buf_init(&text, 4 * KIB);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", str_of(code));
    json_add_text(&o, "message", str_of(detail));
    json_add_time(&o, "time", s->next_at);
    json_close(&o, '}');
    s->last_error = arena_take(&tx->arena, &text);
    return s->last_error.ptr != NULL ? ERR_OK : ERR_NO_MEMORY;
}

/* On to the next time; one that is long past is not looked at again. */
static void move_on(struct tx *tx, struct schedule *s, const struct timetable *t, bool missed)
{
    int64_t from =
        missed ? MAX(s->next_at, tx->now_ms - MAX(s->catch_up_ms, (int64_t)1000)) : s->next_at;
    s->next_at = s->check_at = timetable_next(t, from);
}

static enum err fire_one(struct tx *tx, struct schedule *s, struct problem *p)
{
    struct timetable t;
    struct schedule_last last = {false, false};
    struct internal_start_made started;
    enum err e = timetable_read(s->cron, s->timezone, &tx->arena, p, &t);
    if (e == ERR_FIELD_INVALID) { /* its zone is gone from the system */
        s->check_at = tx->now_ms + POSTPONED_MS;
        e = set_error(tx, s, "TIMETABLE_INVALID", p->detail);
        return e == ERR_OK ? schedules_put(tx->db, s) : e;
    }
    if (e == ERR_OK)
        e = look_at_last(tx, s, &last);
    if (e != ERR_OK)
        return e;
    int64_t due = s->next_at;
    switch (schedule_decide(tx->now_ms, due, s->catch_up_ms, last, s->overlap)) {
    case SCHEDULE_WAIT:
        s->check_at = tx->now_ms + LOOK_AGAIN_MS;
        break;
    case SCHEDULE_MISSED:
        e = set_error(tx, s, "MISSED", "The server was not running at that time");
        move_on(tx, s, &t, true);
        break;
    case SCHEDULE_OVERLAP:
        e = set_error(tx, s, "OVERLAP", "The previous run was still active");
        move_on(tx, s, &t, false);
        break;
    case SCHEDULE_FIRE:
        e = schedule_start(tx, s, due, STR("schedule"), p, &started);
        if (e != ERR_OK)
            return e;
        s->last_error = STR_NONE;
        if (started.refusal != ERR_OK)
            e = set_error(tx, s, err_code(started.refusal), p->detail);
        if (started.refusal != ERR_OK && err_retryable(started.refusal)) {
            s->check_at = tx->now_ms + LOOK_AGAIN_MS; /* until it is too late for it */
            break;
        }
        s->last_at = due;
        move_on(tx, s, &t, false);
        break;
    }
    s->updated_at = tx->now_ms;
    return e == ERR_OK ? schedules_put(tx->db, s) : e;
}

enum err schedules_fire(struct tx *tx, int64_t most, struct problem *p, bool *ret_fired)
{
    enum err e = ERR_OK;
    *ret_fired = false;
    for (int64_t n = 0; n < most && e == ERR_OK; n++) {
        if (n > 0 && tx_turn_is_over(tx))
            return ERR_OK;
        struct arena_mark mark = arena_mark(&tx->arena);
        struct schedule s;
        bool found = false;
        e = schedules_due(tx->db, tx->now_ms, &tx->arena, &found, &s);
        if (e != ERR_OK || !found)
            return e;
        *ret_fired = true;
        e = fire_one(tx, &s, p);
        if (e == ERR_OK)
            arena_back_to(&tx->arena, mark);
    }
    return e;
}

enum err schedules_put_aside(struct tx *tx, int64_t until_ms, enum err why, const char *detail)
{
    struct schedule s;
    bool found = false;
    enum err e = schedules_due(tx->db, tx->now_ms, &tx->arena, &found, &s);
    if (e != ERR_OK || !found)
        return e;
    s.check_at = until_ms;
    e = set_error(tx, &s, err_code(why), detail);
    return e == ERR_OK ? schedules_put(tx->db, &s) : e;
}
