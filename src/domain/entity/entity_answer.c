/* What the handler of an entity answers. */
#include "domain/entity/entity_answer.h"

#include "base/env.h"
#include "base/limits.h"
#include "domain/labels.h"
#include "domain/type_pattern.h"

enum { RESULTS_MAX = 1000 }; /* as many as the largest batch has signals */

/* One century: farther is a mistake, and sums of times stay far from their ends. */
static const int64_t TIMER_MS_MAX = 100LL * 366 * 24 * 3600 * 1000;

struct reading {
    int64_t now_ms;
    struct arena *arena;
    struct problem *p;
};

/* Says in which element of which list the fault is. */
static enum err in_element(struct reading *r, const char *list, size_t index, enum err e)
{
    if (e != ERR_FIELD_INVALID)
        return e;
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof(detail), "%s", r->p->detail);
    return problem_set(r->p, e, "%s[%zu]: %s", list, index, detail);
}

static enum err read_timer(struct reading *r, const struct json *json, struct answer_timer *ret)
{
    int64_t in_ms = -1;
    struct str at = STR_NONE;
    struct fields f;
    fields_begin(&f, json, r->p);
    fields_name(&f, "name", NAME_MAX_LEN, &ret->name);
    fields_require(&f, "name");
    fields_int(&f, "in_ms", 0, TIMER_MS_MAX, &in_ms);
    fields_text(&f, "at", TEXT_MAX, &at);
    fields_any(&f, "payload", &ret->payload);
    if (f.err == ERR_OK && (in_ms >= 0) == (at.ptr != NULL))
        fields_fault(&f, "in_ms", "must have either in_ms or at");
    if (f.err == ERR_OK && at.ptr != NULL && !time_parse(at, &ret->due_at))
        fields_fault(&f, "at", "must be a time such as 2026-01-31T12:00:00Z");
    if (f.err == ERR_OK && at.ptr != NULL && ret->due_at > r->now_ms + TIMER_MS_MAX)
        fields_fault(&f, "at", "must be within the next 100 years");
    if (in_ms >= 0)
        ret->due_at = r->now_ms + in_ms;
    ret->due_at = MAX(ret->due_at, (int64_t)0); /* long past is past */
    return fields_end(&f);
}

static enum err read_emit(struct reading *r, const struct json *json, struct answer_emit *ret)
{
    struct fields f;
    fields_begin(&f, json, r->p);
    fields_name(&f, "event", NAME_MAX_LEN, &ret->event);
    fields_require(&f, "event");
    fields_any(&f, "payload", &ret->payload);
    if (f.err == ERR_OK && type_own_prefix(ret->event) != NULL)
        fields_fault(&f, "event", "must not begin with a prefix reserved for pawl's own events");
    return fields_end(&f);
}

static bool is_visible(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < 0x21 || (unsigned char)text.ptr[i] > 0x7E)
            return false;
    }
    return text.len > 0;
}

static enum err read_start(struct reading *r, const struct json *json, struct answer_start *ret)
{
    struct fields f;
    fields_begin(&f, json, r->p);
    fields_name(&f, "workflow_id", NAME_MAX_LEN, &ret->workflow_id);
    fields_require(&f, "workflow_id");
    fields_any(&f, "input", &ret->input);
    fields_object(&f, "labels", &ret->labels);
    labels_check(&f, ret->labels);
    fields_text(&f, "idempotency_key", IDEM_KEY_MAX, &ret->idempotency_key);
    if (ret->idempotency_key.ptr != NULL && !is_visible(ret->idempotency_key))
        fields_fault(&f, "idempotency_key", "must be visible ASCII, and not empty");
    return fields_end(&f);
}

static enum err read_error(struct reading *r, const struct json *json)
{
    struct str code = STR_NONE;
    struct str message = STR_NONE;
    struct fields f;
    fields_begin(&f, json, r->p);
    fields_text(&f, "code", NAME_MAX_LEN, &code);
    fields_require(&f, "code");
    fields_text(&f, "message", 4 * KIB, &message);
    return fields_end(&f);
}

static enum err read_result(struct reading *r, const struct json *json, struct answer_result *ret)
{
    const struct json *result = NULL;
    const struct json *error = NULL;
    struct fields f;
    fields_begin(&f, json, r->p);
    fields_int(&f, "seq", 1, INT64_MAX, &ret->seq);
    fields_require(&f, "seq");
    fields_any(&f, "result", &result);
    fields_object(&f, "error", &error);
    if (f.err == ERR_OK && result != NULL && error != NULL)
        fields_fault(&f, "result", "an update has a result or an error, not both");
    enum err e = fields_end(&f);
    if (e == ERR_OK && error != NULL)
        e = read_error(r, error);
    ret->rejected = error != NULL;
    ret->outcome = error != NULL ? error : result;
    return e;
}

/* Allocates one zeroed element each; NULL with ERR_OK when the list is empty or absent. */
static enum err list_alloc(struct reading *r, const struct json *list, size_t size, void **ret,
                           size_t *ret_count)
{
    *ret_count = json_length(list);
    *ret = *ret_count > 0 ? arena_alloc(r->arena, *ret_count * size) : NULL;
    return *ret_count > 0 && *ret == NULL ? ERR_NO_MEMORY : ERR_OK;
}

/* Names of timers that are set or cancelled: one answer says one thing about each. */
static enum err check_timer_names(struct reading *r, const struct entity_answer *a)
{
    for (size_t i = 0; i < a->timer_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_eq(a->timers[i].name, a->timers[j].name))
                return problem_set(r->p, ERR_FIELD_INVALID,
                                   "set_timers[%zu].name: the timer is set twice", i);
        }
        for (size_t j = 0; j < a->cancelled_count; j++) {
            if (str_eq(a->timers[i].name, a->cancelled[j]))
                return problem_set(r->p, ERR_FIELD_INVALID,
                                   "cancel_timers[%zu]: the timer is set and cancelled", j);
        }
    }
    return ERR_OK;
}

/* One outcome for each update. */
static enum err check_results(struct reading *r, const struct entity_answer *a)
{
    for (size_t i = 1; i < a->result_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (a->results[i].seq == a->results[j].seq)
                return problem_set(r->p, ERR_FIELD_INVALID,
                                   "results[%zu].seq: the update has a result already", i);
        }
    }
    return ERR_OK;
}

static enum err read_cancelled(struct reading *r, const struct json *list, struct entity_answer *a)
{
    void *room = NULL;
    enum err e = list_alloc(r, list, sizeof(*a->cancelled), &room, &a->cancelled_count);
    a->cancelled = room;
    for (size_t i = 0; i < a->cancelled_count && e == ERR_OK; i++) {
        a->cancelled[i] = json_text_of(json_element(list, i));
        if (a->cancelled[i].ptr == NULL || a->cancelled[i].len > NAME_MAX_LEN)
            e = problem_set(r->p, ERR_FIELD_INVALID, "cancel_timers[%zu]: must be a name", i);
    }
    return e;
}

struct lists {
    const struct json *timers, *cancelled, *emits, *starts, *results;
};

static enum err read_timers(struct reading *r, const struct json *list, struct entity_answer *a)
{
    void *room = NULL;
    enum err e = list_alloc(r, list, sizeof(*a->timers), &room, &a->timer_count);
    a->timers = room;
    for (size_t i = 0; e == ERR_OK && i < a->timer_count; i++)
        e = in_element(r, "set_timers", i, read_timer(r, json_element(list, i), &a->timers[i]));
    return e;
}

static enum err read_emits(struct reading *r, const struct json *list, struct entity_answer *a)
{
    void *room = NULL;
    enum err e = list_alloc(r, list, sizeof(*a->emits), &room, &a->emit_count);
    a->emits = room;
    for (size_t i = 0; e == ERR_OK && i < a->emit_count; i++)
        e = in_element(r, "emit", i, read_emit(r, json_element(list, i), &a->emits[i]));
    return e;
}

static enum err read_starts(struct reading *r, const struct json *list, struct entity_answer *a)
{
    void *room = NULL;
    enum err e = list_alloc(r, list, sizeof(*a->starts), &room, &a->start_count);
    a->starts = room;
    for (size_t i = 0; e == ERR_OK && i < a->start_count; i++)
        e = in_element(r, "start", i, read_start(r, json_element(list, i), &a->starts[i]));
    return e;
}

static enum err read_results(struct reading *r, const struct json *list, struct entity_answer *a)
{
    void *room = NULL;
    enum err e = list_alloc(r, list, sizeof(*a->results), &room, &a->result_count);
    a->results = room;
    for (size_t i = 0; e == ERR_OK && i < a->result_count; i++)
        e = in_element(r, "results", i, read_result(r, json_element(list, i), &a->results[i]));
    return e;
}

static enum err read_lists(struct reading *r, const struct lists *l, struct entity_answer *a)
{
    enum err e = read_timers(r, l->timers, a);
    if (e == ERR_OK)
        e = read_cancelled(r, l->cancelled, a);
    if (e == ERR_OK)
        e = check_timer_names(r, a);
    if (e == ERR_OK)
        e = read_emits(r, l->emits, a);
    if (e == ERR_OK)
        e = read_starts(r, l->starts, a);
    if (e == ERR_OK)
        e = read_results(r, l->results, a);
    return e == ERR_OK ? check_results(r, a) : e;
}

enum err entity_answer_parse(const struct json *json, int64_t now_ms, struct arena *arena,
                             struct problem *p, struct entity_answer *ret)
{
    struct reading r = {now_ms, arena, p};
    struct entity_answer a = {0};
    struct lists l = {0};
    struct fields f;
    if (!json_is(json, JSON_KIND_OBJECT))
        return problem_set(p, ERR_ANSWER_INVALID, "output: must be a JSON object");
    fields_begin(&f, json, p);
    fields_any(&f, "state", &a.state);
    fields_array(&f, "set_timers", ENTITY_TIMERS_MAX, &l.timers);
    fields_array(&f, "cancel_timers", ENTITY_TIMERS_MAX, &l.cancelled);
    fields_array(&f, "emit", ENTITY_EMITS_MAX, &l.emits);
    fields_array(&f, "start", ENTITY_EMITS_MAX, &l.starts);
    fields_array(&f, "results", RESULTS_MAX, &l.results);
    fields_bool(&f, "finished", &a.finished);
    enum err e = fields_end(&f);
    if (e == ERR_OK)
        e = read_lists(&r, &l, &a);
    if (e == ERR_FIELD_INVALID) {
        char detail[PROBLEM_DETAIL_MAX];
        (void)snprintf(detail, sizeof(detail), "%s", p->detail);
        return problem_set(p, ERR_ANSWER_INVALID, "output: %s", detail);
    }
    if (e != ERR_OK)
        return e;
    *ret = a;
    return ERR_OK;
}
