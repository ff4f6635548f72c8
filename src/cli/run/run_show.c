/* pawl run show: a run, its steps and its timeline. */
#include "cli/run/run_verbs.h"

#include "base/env.h"
#include "base/limits.h"
#include "cli/run/run_tree.h"
#include "cli/run/timeline.h"
#include "cli/term/when.h"

enum { LABEL_WIDTH = 10, TEXT_OUT_MAX = 64 * MIB };

/* The members of a run that are shown as they are, if they say anything. */
static const char *const VALUES[] = {"input", "state", "output"};

static void put_label(struct line *l, const char *label)
{
    line_put(l, STYLE_FAINT, str_of(label));
    line_pad(l, LABEL_WIDTH);
}

static bool says_something(const json_t *value)
{
    return value != NULL && !json_is_null(value) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

static void put_member(struct buf *out, const struct term *term, const char *label,
                       const json_t *value)
{
    struct buf text;
    struct line l = {.term = term, .out = out};
    if (!says_something(value))
        return;
    buf_init(&text, TEXT_OUT_MAX);
    if (json_is_string(value))
        buf_put(&text, json_str(value));
    else
        json_put_plain(&text, value);
    put_label(&l, label);
    line_put(&l, STYLE_PLAIN, buf_str(&text));
    line_end(&l);
    buf_release(&text);
}

static void put_labels(struct buf *out, const struct term *term, json_t *labels)
{
    const char *name;
    json_t *value;
    struct line l = {.term = term, .out = out};
    if (json_object_size(labels) == 0)
        return;
    put_label(&l, "labels");
    json_object_foreach (labels, name, value) {
        line_put(&l, STYLE_PLAIN, str_of(name));
        line_put(&l, STYLE_PLAIN, STR("="));
        line_put(&l, STYLE_PLAIN, json_str(value));
        line_put(&l, STYLE_PLAIN, STR(" "));
    }
    line_end(&l);
}

static void put_time(struct buf *out, const struct run_tree *t, const char *label,
                     const char *member)
{
    char room[WHEN_MAX];
    int64_t at_ms;
    struct line l = {.term = t->term, .out = out};
    const json_t *at = json_object_get(t->run, member);
    if (!json_is_string(at))
        return;
    put_label(&l, label);
    line_put(&l, STYLE_PLAIN, json_str(at));
    if (t->term->is_terminal && time_parse(json_str(at), &at_ms))
        line_printf(&l, STYLE_FAINT, "  %s", relative_text(at_ms, t->now_ms, room));
    if (strcmp(member, "created_at") == 0) {
        line_put(&l, STYLE_PLAIN, STR(" by "));
        line_put(&l, STYLE_PLAIN, json_str(json_object_get(t->run, "created_by")));
    }
    line_end(&l);
}

static void put_status(struct buf *out, const struct run_tree *t)
{
    struct line l = {.term = t->term, .out = out};
    const json_t *status = json_object_get(t->run, "status");
    const json_t *error = json_object_get(t->run, "error");
    put_label(&l, "status");
    line_put(&l, style_of_status(json_str(status)), json_str(status));
    if (json_is_object(error)) {
        struct buf why;
        buf_init(&why, TEXT_OUT_MAX);
        buf_put(&why, STR(": "));
        error_put(&why, error);
        line_put(&l, STYLE_PLAIN, buf_str(&why));
        buf_release(&why);
    }
    line_end(&l);
}

static void show_run(const struct run_tree *t)
{
    struct buf out;
    struct line l = {.term = t->term, .out = &out};
    buf_init(&out, TEXT_OUT_MAX);
    put_member(&out, t->term, "id", json_object_get(t->run, "id"));
    put_label(&l, "workflow");
    line_put(&l, STYLE_STRONG, json_str(json_object_get(t->run, "workflow_id")));
    line_printf(&l, STYLE_PLAIN, " version %lld",
                (long long)json_integer_value(json_object_get(t->run, "workflow_version")));
    line_end(&l);
    put_status(&out, t);
    put_time(&out, t, "created", "created_at");
    put_time(&out, t, "started", "started_at");
    put_time(&out, t, "finished", "finished_at");
    put_labels(&out, t->term, json_object_get(t->run, "labels"));
    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++)
        put_member(&out, t->term, VALUES[i], json_object_get(t->run, VALUES[i]));
    if (json_array_size(json_object_get(t->run, "steps")) > 0)
        buf_put_char(&out, '\n');
    run_tree_put(&out, t, SIZE_MAX);
    fwrite(out.ptr, 1, out.len, stdout);
    buf_release(&out);
}

/* All events, in order; the caller owns *ret. */
static enum cli_exit fetch_events(struct session *s, json_t **ret)
{
    json_t *all = json_array(), *next = NULL;
    enum cli_exit rc;
    do {
        session_path(s, RUN_PATH, s->args[0], "/events");
        session_query(s, "cursor", json_string_value(next));
        rc = session_call_silently(s, "GET");
        if (rc != CLI_DONE)
            break;
        (void)json_array_extend(all, json_object_get(s->answer, "items"));
        json_decref(next);
        next = json_incref(json_object_get(s->answer, "next_cursor"));
    } while (json_is_string(next));
    json_decref(next);
    *ret = all;
    return rc;
}

static void show_timeline(const struct term *term, const json_t *events)
{
    size_t i;
    const json_t *event;
    struct buf out;
    buf_init(&out, TEXT_OUT_MAX);
    buf_put_char(&out, '\n');
    json_array_foreach (events, i, event)
        timeline_put(&out, term, event);
    fwrite(out.ptr, 1, out.len, stdout);
    buf_release(&out);
}

static enum cli_exit show_for_people(struct session *s)
{
    size_t i;
    json_t *event, *events, *run = json_incref(s->answer), *failures = json_object();
    struct term term = term_of(stdout);
    struct run_tree tree = {
        .run = run, .failures = failures, .term = &term, .now_ms = env_now_ms(&ENV_SYSTEM)};
    enum cli_exit rc = fetch_events(s, &events);
    json_array_foreach (events, i, event)
        run_tree_note(failures, event);
    if (rc == CLI_DONE)
        show_run(&tree);
    if (rc == CLI_DONE && options_has(&s->opt, "events"))
        show_timeline(&term, events);
    json_decref(events);
    json_decref(failures);
    json_decref(run);
    return rc;
}

enum cli_exit run_show(struct session *s)
{
    session_path(s, RUN_PATH, s->args[0], "");
    enum cli_exit rc = session_call(s, "GET", NULL);
    if (rc != CLI_DONE)
        return rc;
    if (!s->json)
        return show_for_people(s);
    if (!options_has(&s->opt, "events"))
        return CLI_DONE;
    session_path(s, RUN_PATH, s->args[0], "/events");
    return session_list(s, NULL, 0, NULL, true);
}
