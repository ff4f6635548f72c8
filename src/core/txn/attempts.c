/* The attempts of a job. */
#include "core/txn/attempts.h"

#include "base/limits.h"
#include "core/txn/render.h"

static const char *const END_NAMES[] = {"failed", "timed_out", "lease_expired"};
static_assert(ARRAY_LEN(END_NAMES) == ATTEMPT_END_COUNT, "one name for each");

/* NULL when there is none, or when it is damaged: what is lost is a display of the past. */
static enum err load(struct str text, struct json **ret)
{
    *ret = NULL;
    enum err e = text.len > 0 ? json_read_kept(text, ret) : ERR_OK;
    return e == ERR_DAMAGED ? ERR_OK : e;
}

/* The attempts that were lost; NULL when none was, or when their text cannot be read. */
static enum err load_lost(struct read_tx *tx, const struct job *job, struct json **ret)
{
    struct buf text;
    buf_init(&text, ATTEMPTS_TEXT_MAX);
    enum err e = jobs_attempts(tx->db, job->owner, job->ordinal, &text);
    if (e == ERR_OK)
        e = buf_ok(&text) ? load(buf_str(&text), ret) : ERR_NO_MEMORY;
    buf_release(&text);
    return e;
}

struct str attempt_error(struct read_tx *tx, struct str error)
{
    if (error.len <= ATTEMPT_ERROR_MAX)
        return error;
    struct json *whole;
    if (load(error, &whole) != ERR_OK)
        return STR_NONE;
    struct str code = json_text_of(json_member(whole, STR("code")));
    struct str message = json_text_of(json_member(whole, STR("message")));
    char cut[ATTEMPT_MESSAGE_MAX + 1];
    (void)snprintf(cut, sizeof(cut), "%.*s", (int)MIN(message.len, (size_t)ATTEMPT_MESSAGE_MAX),
                   message.ptr != NULL ? message.ptr : "");
    str_repair_utf8(cut, strlen(cut));
    struct buf text;
    buf_init(&text, 4 * ATTEMPT_ERROR_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    json_add_text(&o, "code", code.ptr != NULL ? code : STR("UNKNOWN"));
    json_add_text(&o, "message", str_of(cut));
    json_add_bool(&o, "truncated", true);
    json_close(&o, '}');
    json_free(whole);
    return arena_take(&tx->arena, &text);
}

/* --- keeping --- */

static void put_attempt(struct json_out *o, const struct job *job, const char *outcome,
                        int64_t finished_at, struct str error)
{
    json_open(o, NULL, '{');
    json_add_int(o, "attempt", job->attempt);
    json_add_int(o, "lease", job->lease_epoch);
    json_add_text_or_null(o, "worker_id", job->worker);
    json_add_time(o, "started_at", job->started_at);
    json_add_time(o, "finished_at", finished_at);
    json_add_text(o, "outcome", str_of(outcome));
    json_add_raw(o, "error", error);
    json_close(o, '}');
}

/* Those that stay of the ones before; one more follows. */
static void put_kept(struct buf *out, const struct json *list)
{
    size_t count = json_length(list);
    size_t dropped = count + 1 > ATTEMPTS_KEPT_MAX ? count + 1 - ATTEMPTS_KEPT_MAX : 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && i <= dropped)
            continue;
        json_write_plain(out, json_element(list, i));
        buf_put_char(out, ',');
    }
}

enum err attempt_lost(struct tx *tx, const struct job *job, enum attempt_end how)
{
    struct json *before = NULL;
    struct str error = attempt_error(&tx->read, job->error);
    if (job->error.ptr != NULL && error.ptr == NULL)
        return ERR_NO_MEMORY;
    enum err e = load_lost(&tx->read, job, &before);
    if (e != ERR_OK)
        return e;
    struct buf text;
    buf_init(&text, ATTEMPTS_TEXT_MAX);
    struct json_out o = json_out_to(&text);
    buf_put_char(&text, '[');
    put_kept(&text, before);
    put_attempt(&o, job, END_NAMES[how], tx->now_ms, error);
    buf_put_char(&text, ']');
    e = buf_ok(&text) ? jobs_set_attempts(tx->db, job->owner, job->ordinal, buf_str(&text))
                      : ERR_NO_MEMORY;
    buf_release(&text);
    json_free(before);
    return e;
}

/* --- showing --- */

/* What the row itself tells of the newest attempt; NULL: nothing, since it has none, or it is among
 * those that were lost. */
static const char *outcome_of(const struct job *job, const struct json *last)
{
    int64_t lease = 0;
    int64_t attempt = 0;
    (void)json_whole_of(json_member(last, STR("lease")), &lease);
    (void)json_whole_of(json_member(last, STR("attempt")), &attempt);
    bool known = last != NULL && (lease == job->lease_epoch || attempt == job->attempt);
    if (job->attempt == 0)
        return NULL;
    switch (job->state) {
    case JOB_RUNNING:
    case JOB_DISPATCHED:
        return "running";
    case JOB_SUCCEEDED:
        return "succeeded";
    case JOB_FAILED:
    case JOB_TIMED_OUT:
    case JOB_CANCELLED:
    case JOB_DENIED:
    case JOB_SKIPPED:
        return known ? NULL : job_state_name(job->state);
    case JOB_APPROVAL:
    case JOB_PENDING:
    case JOB_SCHEDULED:
    case JOB_SUSPENDED:
    case JOB_STATE_COUNT:
        break;
    }
    return NULL;
}

enum err attempts_show(struct read_tx *tx, const struct job *job, struct json_out *o)
{
    struct json *list = NULL;
    enum err e = load_lost(tx, job, &list);
    if (e != ERR_OK)
        return e;
    size_t count = json_length(list);
    json_open(o, "attempts", '[');
    for (size_t i = 0; i < count; i++) {
        json_add_name(o, NULL);
        json_write_plain(o->buf, json_element(list, i));
    }
    const struct json *last = count > 0 ? json_element(list, count - 1) : NULL;
    const char *outcome = outcome_of(job, last);
    if (outcome != NULL) {
        struct str error = attempt_error(tx, job->error);
        if (job->error.ptr != NULL && error.ptr == NULL)
            e = ERR_NO_MEMORY;
        bool succeeded = job->state == JOB_SUCCEEDED || !job_has_ended(job->state);
        put_attempt(o, job, outcome, job->finished_at, succeeded ? STR_NONE : error);
    }
    json_close(o, ']');
    json_free(list);
    return e;
}
