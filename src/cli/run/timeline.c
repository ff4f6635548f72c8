/* Events of a run as lines. */
#include "cli/run/timeline.h"

#include "base/env.h"
#include "cli/term/when.h"

enum { STEP_WIDTH = 16, WHY_MAX = 64 * 1024 };

/* Better words than those of the type's own name. */
static const struct {
    const char *type;
    const char *says;
    enum style style;
} WORDS[] = {
    {"job.created", "queued", STYLE_FAINT},
    {"job.claimed", "started", STYLE_BUSY},
    {"job.succeeded", "succeeded", STYLE_GOOD},
    {"job.failed", "failed", STYLE_BAD},
    {"job.timed_out", "timed out", STYLE_BAD},
    {"job.retry_scheduled", "failed", STYLE_BAD},
    {"job.lease_expired", "lost: the lease expired without a heartbeat", STYLE_BAD},
    {"job.stale_result", "refused a result that came after the lease was lost", STYLE_WAITS},
    {"run.succeeded", "succeeded", STYLE_GOOD},
    {"run.failed", "failed", STYLE_BAD},
    {"run.timed_out", "timed out", STYLE_BAD},
    {"run.denied", "denied", STYLE_BAD},
    {"approval.requested", "asks for approval", STYLE_WAITS},
    {"approval.decided", NULL, STYLE_STRONG},
    {"step.skipped", "skipped", STYLE_FAINT},
};

/* Members that tell more, each with the words before it. */
struct detail {
    const char *member;
    const char *before;
};
static const char *const TIMES[] = {"due_at", "until"};
static const struct detail DETAILS[] = {
    {"decision", " "}, {"prompt", ": "}, {"created_by", " by "},
    {"by", " by "},    {"name", " "},    {"signal", " for the signal "},
    {"reason", ": "},
};

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

void error_put(struct buf *out, const json_t *error)
{
    const char *code = text_of(error, "code"), *message = text_of(error, "message"),
               *step = text_of(error, "step");
    const json_t *cause = json_object_get(error, "cause");
    if (json_is_object(cause) && step != NULL) {
        buf_printf(out, "step %s: ", step);
        error_put(out, cause);
        return;
    }
    buf_put(out, str_of(code != NULL ? code : "error"));
    if (message != NULL)
        buf_printf(out, ": %s", message);
}

static void put_time(struct line *l, const json_t *event)
{
    char room[WHEN_MAX];
    int64_t at_ms;
    const json_t *at = json_object_get(event, "at");
    if (!json_is_string(at))
        return;
    if (l->term->is_terminal && time_parse(json_str(at), &at_ms))
        line_put(l, STYLE_FAINT, str_of(clock_text(at_ms, room)));
    else
        line_put(l, STYLE_PLAIN, json_str(at));
    line_put(l, STYLE_PLAIN, STR("  "));
}

/* "charge", "undo charge", "each[2]", or "run". */
static void put_step(struct line *l, const char *type, const json_t *data)
{
    size_t from = l->width;
    bool of_run = str_starts_with(str_of(type), STR("run."));
    const char *step = of_run ? NULL : text_of(data, "step");
    const json_t *item = json_object_get(data, "item");
    bool undoes = json_is_true(json_object_get(data, "compensates"));
    if (undoes)
        line_put(l, STYLE_WAITS, STR("undo "));
    line_put(l, STYLE_STRONG, str_of(step != NULL ? step : "run"));
    if (json_is_integer(item))
        line_printf(l, STYLE_PLAIN, "[%lld]", (long long)json_integer_value(item));
    line_put(l, STYLE_PLAIN, STR("  "));
    line_pad(l, from + STEP_WIDTH);
}

static void put_what(struct line *l, const char *type, const json_t *data)
{
    struct str kind, verb = str_of(type);
    const char *says = NULL;
    enum style style = STYLE_PLAIN;
    json_int_t attempt = json_integer_value(json_object_get(data, "attempt"));
    (void)str_cut(str_of(type), '.', &kind, &verb);
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (strcmp(WORDS[i].type, type) == 0) {
            says = WORDS[i].says;
            style = WORDS[i].style;
        }
    if (attempt > 0 && str_is(kind, "job"))
        line_printf(l, STYLE_PLAIN, "attempt %lld ", (long long)attempt);
    if (says != NULL) {
        line_put(l, style, str_of(says));
        return;
    }
    bool is_plain = str_is(kind, "job") || str_is(kind, "run");
    struct str words = is_plain ? verb : str_of(type);
    for (size_t i = 0; i < words.len; i++) /* run.lease_lost: "lease lost" */
        line_put(l, style,
                 words.ptr[i] == '_' || words.ptr[i] == '.' ? STR(" ")
                                                            : (struct str){words.ptr + i, 1});
}

static void put_times(struct buf *out, const struct term *term, const json_t *data,
                      const char *before)
{
    for (size_t i = 0; i < ARRAY_LEN(TIMES); i++) {
        char room[WHEN_MAX];
        int64_t at_ms;
        const char *at = text_of(data, TIMES[i]);
        if (at != NULL && time_parse(str_of(at), &at_ms))
            buf_printf(out, "%s%s", before, term->is_terminal ? clock_text(at_ms, room) : at);
    }
}

static void put_why(struct line *l, const char *type, const json_t *data)
{
    struct buf why;
    const char *worker = strcmp(type, "job.claimed") == 0 ? text_of(data, "worker_id") : NULL;
    const json_t *error = json_object_get(data, "error");
    if (text_of(data, "code") != NULL) /* of a run that ended badly */
        error = data;
    buf_init(&why, WHY_MAX);
    if (worker != NULL)
        buf_printf(&why, " by %s", worker);
    if (json_is_object(error)) {
        buf_put(&why, STR(": "));
        error_put(&why, error);
    }
    put_times(&why, l->term, data, json_is_object(error) ? "; retry at " : " until ");
    for (size_t i = 0; i < ARRAY_LEN(DETAILS); i++) {
        const char *value = text_of(data, DETAILS[i].member);
        if (value != NULL)
            buf_printf(&why, "%s%s", DETAILS[i].before, value);
    }
    line_put(l, STYLE_PLAIN, buf_str(&why));
    buf_release(&why);
}

void timeline_put(struct buf *out, const struct term *term, const json_t *event)
{
    struct line l = {.term = term, .out = out};
    const json_t *data = json_object_get(event, "data");
    const char *type = text_of(event, "type");
    if (type == NULL)
        return;
    put_time(&l, event);
    put_step(&l, type, data);
    put_what(&l, type, data);
    put_why(&l, type, data);
    line_end(&l);
}
