/* Draws a run and its steps. */
#include "cli/run/run_tree.h"

#include "base/env.h"
#include "cli/run/timeline.h"
#include "cli/term/table.h"
#include "cli/term/when.h"
#include "cli/term/width.h"

enum { NAME_WIDTH_MAX = 28, STATUS_WIDTH = 11, WHY_MAX = 64 * 1024 };

static const struct {
    const char *name;
    const char *utf8;
    const char *ascii;
} GLYPHS[] = {
    {"succeeded", "✓", "+"}, {"failed", "✗", "x"},  {"timed_out", "✗", "x"}, {"denied", "✗", "x"},
    {"cancelled", "–", "-"}, {"skipped", "–", "-"}, {"", "·", "."},
};
static const char *const FRAMES[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
static const char FRAMES_ASCII[] = "|/-\\";

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "";
}

static bool time_of(const json_t *object, const char *member, int64_t *ret_ms)
{
    const json_t *value = json_object_get(object, member);
    return json_is_string(value) && time_parse(json_str(value), ret_ms);
}

void run_tree_note(json_t *failures, const json_t *event)
{
    static const char *const TYPES[] = {"job.retry_scheduled", "job.failed", "job.timed_out",
                                        "job.lease_expired"};
    const char *type = text_of(event, "type");
    const char *step = text_of(json_object_get(event, "data"), "step");
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (strcmp(type, TYPES[i]) != 0)
            continue;
        if (json_object_get(failures, step) == NULL)
            (void)json_object_set_new(failures, step, json_array());
        (void)json_array_append(json_object_get(failures, step), (json_t *)(uintptr_t)event);
    }
}

/* --- one step --- */

static const char *glyph_of(const struct run_tree *t, const char *status)
{
    enum style style = style_of_status(str_of(status));
    size_t i = 0;
    if (style == STYLE_BUSY || (style == STYLE_WAITS && strcmp(status, "pending") != 0)) {
        static char ascii[2];
        ascii[0] = FRAMES_ASCII[t->frame % (sizeof(FRAMES_ASCII) - 1)];
        return t->term->has_utf8 ? FRAMES[t->frame % ARRAY_LEN(FRAMES)] : ascii;
    }
    while (i + 1 < ARRAY_LEN(GLYPHS) && strcmp(GLYPHS[i].name, status) != 0)
        i++;
    return t->term->has_utf8 ? GLYPHS[i].utf8 : GLYPHS[i].ascii;
}

/* How long it took, or has taken so far. */
static void put_duration(struct line *l, const struct run_tree *t, const json_t *of)
{
    char room[WHEN_MAX];
    int64_t from, to = t->now_ms;
    if (!time_of(of, "started_at", &from))
        return;
    (void)time_of(of, "finished_at", &to);
    line_printf(l, STYLE_FAINT, "%s  ", duration_text(to - from, room));
}

static void put_items(struct line *l, const json_t *items)
{
    if (!json_is_object(items))
        return;
    json_int_t failed = json_integer_value(json_object_get(items, "failed"));
    line_printf(l, STYLE_PLAIN, "%lld of %lld items  ",
                (long long)json_integer_value(json_object_get(items, "over")),
                (long long)json_integer_value(json_object_get(items, "total")));
    if (failed > 0)
        line_printf(l, STYLE_BAD, "%lld failed  ", (long long)failed);
}

static void put_compensation(struct line *l, const char *status)
{
    if (status[0] == '\0')
        return;
    if (strcmp(status, "succeeded") == 0)
        line_put(l, STYLE_WAITS, STR("undone  "));
    else
        line_printf(l, STYLE_BAD, "undo %s  ", status);
}

static void put_step(struct line *l, const struct run_tree *t, const json_t *step, size_t width)
{
    const char *status = text_of(step, "status"), *type = text_of(step, "type");
    enum style style = style_of_status(str_of(status));
    json_int_t attempt = json_integer_value(json_object_get(step, "attempt"));
    bool asks = strcmp(status, "waiting") == 0 && strcmp(type, "task") != 0;
    line_printf(l, style, "%s ", glyph_of(t, status));
    size_t name_at = l->width;
    line_put(l, STYLE_STRONG, str_of(text_of(step, "name")));
    line_pad(l, name_at + width + 2);
    size_t status_at = l->width;
    line_put(l, style, str_of(status));
    line_put(l, STYLE_PLAIN, STR("  "));
    line_pad(l, status_at + STATUS_WIDTH);
    put_duration(l, t, step);
    put_items(l, json_object_get(step, "items"));
    if (attempt > 1)
        line_printf(l, STYLE_WAITS, "attempt %lld  ", (long long)attempt);
    put_compensation(l, text_of(step, "compensation"));
    if (asks)
        line_put(l, STYLE_FAINT, str_of(type));
    line_end(l);
}

static void put_failures(struct buf *out, const struct run_tree *t, const char *name,
                         const char *indent)
{
    size_t i;
    const json_t *event;
    json_array_foreach (json_object_get(t->failures, name), i, event) {
        const json_t *data = json_object_get(event, "data"),
                     *error = json_object_get(data, "error");
        struct line l = {.term = t->term, .out = out};
        struct buf why;
        buf_init(&why, WHY_MAX);
        if (json_is_object(error))
            error_put(&why, error);
        else
            buf_put(&why, str_of(text_of(event, "type")));
        line_put(&l, STYLE_FAINT, str_of(indent));
        line_printf(&l, STYLE_BAD, "%sattempt %lld: ",
                    json_is_true(json_object_get(data, "compensates")) ? "undo, " : "",
                    (long long)json_integer_value(json_object_get(data, "attempt")));
        line_put(&l, STYLE_PLAIN, buf_str(&why));
        line_end(&l);
        buf_release(&why);
    }
}

/* --- the run --- */

void run_tree_put_head(struct buf *out, const struct run_tree *t)
{
    struct line l = {.term = t->term, .out = out};
    const char *status = text_of(t->run, "status");
    struct str id = str_of(text_of(t->run, "id"));
    if (t->term->is_terminal)
        id.len = MIN(id.len, (size_t)ID_PREFIX_LEN);
    line_put(&l, STYLE_STRONG, str_of(text_of(t->run, "workflow_id")));
    line_put(&l, STYLE_PLAIN, STR("  "));
    line_put(&l, STYLE_FAINT, id);
    line_put(&l, STYLE_PLAIN, STR("  "));
    line_put(&l, style_of_status(str_of(status)), str_of(status));
    line_put(&l, STYLE_PLAIN, STR("  "));
    put_duration(&l, t, t->run);
    line_end(&l);
}

static size_t name_width(const json_t *steps)
{
    size_t i, width = 4;
    const json_t *step;
    json_array_foreach (steps, i, step)
        width = MAX(width, text_width(str_of(text_of(step, "name"))));
    return MIN(width, (size_t)NAME_WIDTH_MAX);
}

static size_t lines_of(const struct run_tree *t, const json_t *step)
{
    return 1 + json_array_size(json_object_get(t->failures, text_of(step, "name")));
}

/* Which steps must be left out, from the first one that is done. */
static size_t count_hidden(const struct run_tree *t, const json_t *steps, size_t rows_max)
{
    size_t lines = 1, hidden = 0, i;
    const json_t *step;
    json_array_foreach (steps, i, step)
        lines += lines_of(t, step);
    json_array_foreach (steps, i, step) {
        if (lines + (hidden > 0) <= rows_max)
            break;
        lines -= lines_of(t, step);
        hidden++;
    }
    return hidden;
}

void run_tree_put(struct buf *out, const struct run_tree *t, size_t rows_max)
{
    const json_t *steps = json_object_get(t->run, "steps"), *step;
    size_t count = json_array_size(steps), width = name_width(steps), i;
    size_t hidden = count_hidden(t, steps, rows_max);
    bool utf8 = t->term->has_utf8;
    if (hidden > 0) {
        struct line l = {.term = t->term, .out = out};
        line_printf(&l, STYLE_FAINT, "%s %zu more steps", utf8 ? "├" : "|", hidden);
        line_end(&l);
    }
    json_array_foreach (steps, i, step) {
        if (i < hidden)
            continue;
        bool last = i + 1 == count;
        struct line l = {.term = t->term, .out = out};
        line_put(&l, STYLE_FAINT, str_of(last ? (utf8 ? "└─ " : "`- ") : (utf8 ? "├─ " : "|- ")));
        put_step(&l, t, step, width);
        put_failures(out, t, text_of(step, "name"), last ? "     " : (utf8 ? "│    " : "|    "));
    }
}
