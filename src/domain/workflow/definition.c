/* A workflow definition: how its steps refer to each other, and the struct that runs are decided
 * from.
 *
 * Three passes. Fields: each member by itself (definition_fields.c). References: names, needs,
 * on_error and cycles, as far as the fields allow, so that all faults show at once. Build: only
 * when there are none. */
#include "domain/workflow/definition.h"

#include "base/env.h"
#include "base/limits.h"
#include "domain/entity/dedup.h"
#include "domain/expr/expr.h"
#include "domain/workflow/definition_fields.h"

#include <stdlib.h>

enum {
    /* Every step with the needs of all others is 2 MiB; the rest is small. */
    DEFINITION_ARENA_MAX = 3 * MIB,
    NAME_SLOTS = 1024,
    CYCLE_TEXT_MAX = 512,       /* a fault's message is cut before that anyway */
    UNSUPPORTED_PATH_MAX = 512, /* a longer path is shown up to the part that fits */
    UNSUPPORTED_MAX = 2 * UNSUPPORTED_PATH_MAX,
};

static_assert(NAME_SLOTS >= 2 * STEPS_MAX, "half of the slots stay free, or a search never ends");
static_assert((NAME_SLOTS & (NAME_SLOTS - 1)) == 0, "slots are found with a mask");
static_assert(DEFINITION_ARENA_MAX > STEPS_MAX * STEPS_MAX * (int)sizeof(size_t),
              "a definition that keeps the limits fits its arena");

/* One parse from beginning to end. */
struct parse {
    struct definition *def;
    struct step_def *steps; /* the same as def->steps, while they may change */
    const struct json *source;
    const struct json *step_list; /* NULL when there is no array of a bearable length */
    struct fault_list faults;
    size_t slots[NAME_SLOTS];    /* a step's index + 1, found by the hash of its name; 0 is free */
    size_t needed_by[STEPS_MAX]; /* the index + 1 of the last step that was seen to need it */
};

static bool parse_all(struct parse *ps);
static enum err conclude(struct parse *ps, bool memory_ok, struct problem *p);

enum err definition_parse(const struct json *source, struct str id, struct problem *p,
                          struct definition **ret)
{
    assert(source != NULL && p != NULL);
    struct definition *def = calloc(1, sizeof(*def));
    if (def == NULL)
        return problem_set(p, ERR_NO_MEMORY, "No memory for the definition");
    arena_init(&def->arena, DEFINITION_ARENA_MAX);
    def->id = arena_str(&def->arena, id);
    bool memory_ok = def->id.ptr != NULL && json_copy_of(source, &def->json) == ERR_OK;

    struct parse ps = {.def = def, .source = def->json};
    buf_clear(&p->faults);
    buf_put_char(&p->faults, '[');
    fault_list_init(&ps.faults, &p->faults);
    memory_ok = memory_ok && parse_all(&ps) && buf_ok(&ps.faults.path);
    enum err err = conclude(&ps, memory_ok, p);
    fault_list_release(&ps.faults);

    if (err == ERR_OK)
        *ret = def;
    else
        definition_free(def);
    return err;
}

void definition_free(struct definition *def)
{
    if (def == NULL)
        return;
    json_free(def->json);
    arena_release(&def->arena);
    free(def);
}

size_t definition_find_step(const struct definition *def, struct str name)
{
    size_t i = 0;
    while (i < def->step_count && !str_eq(def->steps[i].name, name))
        i++;
    return i;
}

/* The answer to the caller: the faults as a closed array, or nothing at all in p->faults. */
static enum err conclude(struct parse *ps, bool memory_ok, struct problem *p)
{
    size_t count = ps->faults.count;
    buf_put_char(&p->faults, ']');
    if (!memory_ok || !buf_ok(&p->faults)) {
        buf_clear(&p->faults);
        return problem_set(p, ERR_NO_MEMORY, "No memory for the definition");
    }
    if (count == 0) {
        buf_clear(&p->faults);
        return ERR_OK;
    }
    return problem_set(p, ERR_DEFINITION_INVALID, "The definition has %s%zu fault%s",
                       count == DEFINITION_FAULTS_MAX ? "at least " : "", count,
                       count == 1 ? "" : "s");
}

/* --- references between steps --- */

static const struct json *step_json(const struct parse *ps, size_t index)
{
    return json_element(ps->step_list, index);
}

/* The slot that holds the name, or the free one where it belongs. */
static size_t *slot_of(struct parse *ps, struct str name)
{
    size_t at = (size_t)str_hash(name) & (NAME_SLOTS - 1);
    while (ps->slots[at] != 0 && !str_eq(ps->steps[ps->slots[at] - 1].name, name))
        at = (at + 1) & (NAME_SLOTS - 1);
    return &ps->slots[at];
}

/* The step's index, or step_count. */
static size_t find_step(struct parse *ps, struct str name)
{
    size_t slot = *slot_of(ps, name);
    return slot != 0 ? slot - 1 : ps->def->step_count;
}

static void check_id(struct parse *ps)
{
    const struct json *id = json_member(ps->source, STR("id"));
    if (!json_is(id, JSON_KIND_TEXT) || str_eq(json_text_of(id), ps->def->id))
        return;
    size_t back_to = fault_list_enter(&ps->faults, STR("id"));
    fault_list_add(&ps->faults, "must be \"%.*s\", the id under which the workflow is stored",
                   STR_ARG(ps->def->id));
    fault_list_leave(&ps->faults, back_to);
}

/* Adds a fault at /steps/<index>/<member>[/<element>]. */
static void PRINTF_LIKE(5, 6) add_at(struct parse *ps, size_t index, const char *member,
                                     const size_t *element, const char *fmt, ...)
{
    size_t back_to = fault_list_enter(&ps->faults, STR("steps"));
    (void)fault_list_enter_index(&ps->faults, index);
    (void)fault_list_enter(&ps->faults, str_of(member));
    if (element != NULL)
        (void)fault_list_enter_index(&ps->faults, *element);
    va_list args;
    va_start(args, fmt);
    fault_list_add_va(&ps->faults, fmt, args);
    va_end(args);
    fault_list_leave(&ps->faults, back_to);
}

static void index_names(struct parse *ps)
{
    for (size_t i = 0; i < ps->def->step_count; i++) {
        const struct json *name = json_member(step_json(ps, i), STR("name"));
        if (!json_is(name, JSON_KIND_TEXT))
            continue;
        ps->steps[i].name = json_text_of(name);
        size_t *slot = slot_of(ps, ps->steps[i].name);
        if (*slot == 0)
            *slot = i + 1;
        else
            add_at(ps, i, "name", NULL, "the name \"%s\" is already used by /steps/%zu",
                   json_text_of(name).ptr, *slot - 1);
    }
}

static bool resolve_needs(struct parse *ps, size_t index, const struct json *needs)
{
    size_t count = json_length(needs);
    if (count > STEPS_MAX) /* a fault of its own by now */
        return true;
    size_t *edges = arena_alloc(&ps->def->arena, count * sizeof(*edges));
    if (edges == NULL)
        return false;
    struct step_def *step = &ps->steps[index];
    step->needs = edges;
    for (size_t i = 0; i < count; i++) {
        const struct json *name = json_element(needs, i);
        if (!json_is(name, JSON_KIND_TEXT))
            continue;
        size_t to = find_step(ps, json_text_of(name));
        if (to == ps->def->step_count)
            add_at(ps, index, "needs", &i, "there is no step \"%s\"", json_text_of(name).ptr);
        else if (to == index)
            add_at(ps, index, "needs", &i, "a step cannot need itself");
        else if (ps->needed_by[to] == index + 1)
            add_at(ps, index, "needs", &i, "\"%s\" is listed twice", json_text_of(name).ptr);
        else
            edges[step->need_count++] = to;
        if (to < ps->def->step_count)
            ps->needed_by[to] = index + 1;
    }
    return true;
}

/* As if each step had written the name of the one before it. Steps that handle errors begin when
 * there is one, and nobody waits for them. */
static bool need_in_order(struct parse *ps)
{
    size_t before = ps->def->step_count; /* none */
    for (size_t i = 0; i < ps->def->step_count; i++) {
        if (ps->steps[i].handles_errors)
            continue;
        if (before < ps->def->step_count) {
            size_t *edge = arena_alloc(&ps->def->arena, sizeof(*edge));
            if (edge == NULL)
                return false;
            *edge = before;
            ps->steps[i].needs = edge;
            ps->steps[i].need_count = 1;
        }
        before = i;
    }
    return true;
}

static bool link_steps(struct parse *ps)
{
    bool any = false;
    for (size_t i = 0; i < ps->def->step_count; i++) {
        const struct json *needs = json_member(step_json(ps, i), STR("needs"));
        any = any || needs != NULL;
        if (needs != NULL && !resolve_needs(ps, i, needs))
            return false;
    }
    return any || need_in_order(ps);
}

static void check_on_error(struct parse *ps, size_t index)
{
    const struct json *on_error = json_member(step_json(ps, index), STR("on_error"));
    struct str name = json_text_of(on_error);
    if (!json_is(on_error, JSON_KIND_TEXT) || str_is(name, "fail") || str_is(name, "continue"))
        return;
    size_t to = find_step(ps, name);
    if (to == ps->def->step_count)
        add_at(ps, index, "on_error", NULL,
               "must be fail, continue or a step; there is no step \"%s\"",
               json_text_of(on_error).ptr);
    else if (to == index)
        add_at(ps, index, "on_error", NULL, "a step cannot handle its own error");
}

/* Before the needs: a step that handles errors stands outside the written order. */
static void link_errors(struct parse *ps)
{
    for (size_t i = 0; i < ps->def->step_count; i++) {
        const struct json *on_error = json_member(step_json(ps, i), STR("on_error"));
        struct str name = json_text_of(on_error);
        if (!json_is(on_error, JSON_KIND_TEXT) || str_is(name, "fail"))
            continue;
        if (str_is(name, "continue")) {
            ps->steps[i].on_error = ON_ERROR_CONTINUE;
            continue;
        }
        size_t to = find_step(ps, name);
        if (to == ps->def->step_count || to == i)
            continue; /* a fault: check_on_error() says so */
        ps->steps[i].on_error = ON_ERROR_STEP;
        ps->steps[i].error_step = to;
        ps->steps[to].handles_errors = true;
    }
}

/* --- cycles --- */

/* A depth-first walk along what each step waits for: an edge back to the walk's own path closes a
 * cycle. */
struct walk {
    enum { UNSEEN, ON_PATH, DONE } state[STEPS_MAX];
    size_t next_edge[STEPS_MAX];
    size_t path[STEPS_MAX];
    size_t depth;
};

static bool needs_step(const struct step_def *step, size_t other)
{
    size_t n = 0;
    while (n < step->need_count && step->needs[n] != other)
        n++;
    return n < step->need_count;
}

/* Its needs, then the steps whose errors it handles; step_count after the last. */
static size_t next_awaited(const struct parse *ps, struct walk *w, size_t at)
{
    const struct step_def *step = &ps->steps[at];
    size_t edges = step->need_count + (step->handles_errors ? ps->def->step_count : 0);
    while (w->next_edge[at] < edges) {
        size_t edge = w->next_edge[at]++;
        if (edge < step->need_count)
            return step->needs[edge];
        size_t other = edge - step->need_count;
        if (ps->steps[other].on_error == ON_ERROR_STEP && ps->steps[other].error_step == at)
            return other;
    }
    return ps->def->step_count;
}

static void report_cycle(struct parse *ps, const struct walk *w, size_t back_to_step)
{
    if (ps->faults.count >= DEFINITION_FAULTS_MAX)
        return;
    size_t first = w->depth;
    while (w->path[first - 1] != back_to_step)
        first--;
    struct buf text;
    buf_init(&text, CYCLE_TEXT_MAX + JSON_TEXT_MAX); /* one more name, valid or not */
    for (size_t i = first - 1; i < w->depth && text.len < CYCLE_TEXT_MAX; i++) {
        const struct step_def *step = &ps->steps[w->path[i]];
        size_t to = i + 1 < w->depth ? w->path[i + 1] : back_to_step;
        buf_printf(&text, "\"%.*s\" %s ", STR_ARG(step->name),
                   needs_step(step, to) ? "needs" : "handles an error of");
    }
    bool needs = ps->steps[back_to_step].need_count > 0;
    add_at(ps, back_to_step, needs ? "needs" : "name", NULL,
           "the steps depend on each other: %.*s\"%.*s\"", STR_ARG(buf_str(&text)),
           STR_ARG(ps->steps[back_to_step].name));
    ps->faults.out->failed |= text.failed;
    buf_release(&text);
}

static void walk_from(struct parse *ps, struct walk *w, size_t root)
{
    w->path[w->depth++] = root;
    w->state[root] = ON_PATH;
    while (w->depth > 0) {
        size_t at = w->path[w->depth - 1];
        size_t to = next_awaited(ps, w, at);
        if (to == ps->def->step_count) {
            w->state[at] = DONE;
            w->depth--;
        } else if (w->state[to] == ON_PATH) {
            report_cycle(ps, w, to);
        } else if (w->state[to] == UNSEEN) {
            w->path[w->depth++] = to;
            w->state[to] = ON_PATH;
        }
    }
}

static void check_cycles(struct parse *ps)
{
    struct walk w = {.depth = 0};
    for (size_t i = 0; i < ps->def->step_count; i++) {
        if (w.state[i] == UNSEEN)
            walk_from(ps, &w, i);
    }
    assert(w.depth == 0);
}

/* --- expressions --- */

/* The members of a step that hold an expression, or JSON with ${…} in its texts. */
static const struct {
    const char *member;
    bool template;
} EXPRESSIONS[] = {
    {"when", false},  {"for_each", false}, {"input", true},  {"request", true}, {"until", true},
    {"output", true}, {"payload", true},   {"prompt", true}, {"content", true},
};

static void check_expression(struct fault_list *f, struct expr *x, const struct json *object,
                             const char *member, bool template)
{
    const struct json *value = json_member(object, str_of(member));
    if (value == NULL)
        return;
    size_t back_to = fault_list_enter(f, str_of(member));
    if (template || !json_is(value, JSON_KIND_TEXT))
        expr_template_check(x, value, f);
    else
        expr_check(x, json_text_of(value), f);
    fault_list_leave(f, back_to);
}

/* False when memory ran out. */
static bool check_expressions(struct parse *ps)
{
    struct expr *x = expr_new();
    if (x == NULL)
        return false;
    size_t back_to = fault_list_enter(&ps->faults, STR("steps"));
    for (size_t i = 0; i < ps->def->step_count; i++) {
        const struct json *step = step_json(ps, i);
        size_t back_to_steps = fault_list_enter_index(&ps->faults, i);
        for (size_t n = 0; n < ARRAY_LEN(EXPRESSIONS); n++)
            check_expression(&ps->faults, x, step, EXPRESSIONS[n].member, EXPRESSIONS[n].template);
        const struct json *undo = json_member(step, STR("compensate"));
        size_t back_to_step = fault_list_enter(&ps->faults, STR("compensate"));
        check_expression(&ps->faults, x, undo, "input", true);
        fault_list_leave(&ps->faults, back_to_step);
        const struct json *gate = json_member(step, STR("requires_approval"));
        (void)fault_list_enter(&ps->faults, STR("requires_approval"));
        check_expression(&ps->faults, x, gate, "prompt", true);
        check_expression(&ps->faults, x, gate, "content", true);
        fault_list_leave(&ps->faults, back_to_step);
        fault_list_leave(&ps->faults, back_to_steps);
    }
    fault_list_leave(&ps->faults, back_to);
    expr_free(x);
    return true;
}

/* --- what this version cannot run --- */

/* `limits` is one object or an array of them. */
static const struct json *limit_at(const struct json *limits, size_t i)
{
    return json_is(limits, JSON_KIND_LIST) ? json_element(limits, i) : limits;
}

static size_t limit_count(const struct json *limits)
{
    return json_is(limits, JSON_KIND_LIST) ? json_length(limits)
                                           : json_is(limits, JSON_KIND_OBJECT);
}

static bool has_computed_key(struct fault_list *at, const struct json *value)
{
    (void)at;
    for (size_t i = 0; i < limit_count(value); i++) {
        const struct json *key = json_member(limit_at(value, i), STR("key"));
        if (key != NULL && !limit_path_ok(json_text_of(key)))
            return true;
    }
    return false;
}

/* Valid, but not run yet: delete a row when its feature arrives. Step types have a flag for this in
 * STEP_TYPES. */
static const struct gap {
    bool in_step;
    const char *member;
    bool (*is_used)(struct fault_list *at, const struct json *value);
    const char *who;
} GAPS[] = {
    {false, "concurrency", has_computed_key, "limits whose key is more than a path into the input"},
};

static const struct gap *gap_find(struct fault_list *at, bool in_step, struct str member,
                                  const struct json *value)
{
    for (size_t i = 0; i < ARRAY_LEN(GAPS); i++) {
        if (GAPS[i].in_step == in_step && str_is(member, GAPS[i].member))
            return GAPS[i].is_used(at, value) ? &GAPS[i] : NULL;
    }
    return NULL;
}

static void put_unsupported(struct buf *out, const struct fault_list *at, const char *who,
                            const char *type)
{
    buf_put(out, buf_str(&at->path));
    buf_printf(out, ": %s%s%s%s are not supported by this version", who, type != NULL ? " \"" : "",
               type != NULL ? type : "", type != NULL ? "\"" : "");
}

/* Looks at the members as written; true when one cannot be run, with the sentence in out. */
static bool find_unsupported(struct fault_list *at, const struct json *object, bool in_step,
                             struct buf *out)
{
    for (size_t i = 0; i < json_members(object); i++) {
        struct str name = json_name_at(object, i);
        const struct json *value = json_value_at(object, i);
        size_t back_to = fault_list_enter(at, name);
        const struct gap *gap = gap_find(at, in_step, name, value);
        enum step_type type;
        if (gap != NULL) {
            put_unsupported(out, at, gap->who, NULL);
            return true;
        }
        if (in_step && str_is(name, "type") && step_type_parse(json_text_of(value), &type) &&
            !step_type_is(type, STEP_RUNS)) {
            put_unsupported(out, at, "steps of type", step_type_name(type));
            return true;
        }
        size_t steps = !in_step && str_is(name, "steps") ? json_length(value) : 0;
        for (size_t n = 0; n < steps; n++) {
            size_t back_to_steps = fault_list_enter_index(at, n);
            if (find_unsupported(at, json_element(value, n), true, out))
                return true;
            fault_list_leave(at, back_to_steps);
        }
        fault_list_leave(at, back_to);
    }
    return false;
}

static bool set_unsupported(struct parse *ps)
{
    struct buf sentence;
    buf_init(&sentence, UNSUPPORTED_MAX);
    bool found = find_unsupported(&ps->faults, ps->source, false, &sentence);
    fault_list_leave(&ps->faults, 0);
    ps->def->unsupported = arena_str(&ps->def->arena, buf_str(&sentence));
    bool ok = buf_ok(&sentence) && ps->def->unsupported.ptr != NULL;
    assert(!ok || found == (ps->def->unsupported.len > 0));
    buf_release(&sentence);
    return ok;
}

/* --- building --- */

static int64_t int_or(const struct json *object, const char *name, int64_t when_absent)
{
    int64_t number = when_absent;
    return json_whole_of(json_member(object, str_of(name)), &number) ? number : when_absent;
}

static void build_retry(struct retry_policy *retry, const struct json *json)
{
    static const char *const JITTERS[] = {"none", "full", "equal", "decorrelated"};
    const struct json *multiplier = json_member(json, STR("multiplier"));
    struct str jitter = json_text_of(json_member(json, STR("jitter")));
    *retry = (struct retry_policy){
        .max_attempts = int_or(json, "max_attempts", 0),
        .backoff_ms = int_or(json, "backoff_ms", RETRY_BACKOFF_MS_DEFAULT),
        .max_backoff_ms = int_or(json, "max_backoff_ms", RETRY_BACKOFF_MS_MAX_DEFAULT),
        .multiplier = multiplier != NULL ? json_double_of(multiplier) : 2,
        .jitter = JITTER_FULL,
        .non_retryable = json_member(json, STR("non_retryable")),
    };
    for (size_t i = 0; i < ARRAY_LEN(JITTERS); i++) {
        if (str_is(jitter, JITTERS[i]))
            retry->jitter = (enum retry_jitter)i;
    }
}

static void build_control(struct step_def *step, const struct json *json)
{
    const struct json *undo = json_member(json, STR("compensate"));
    step->when = json_text_of(json_member(json, STR("when")));
    step->for_each = json_member(json, STR("for_each"));
    step->max_parallel = int_or(json, "max_parallel", MAP_PARALLEL_DEFAULT);
    step->timeout_ms = int_or(json, "timeout_ms", -1);
    build_retry(&step->retry, json_member(json, STR("retry")));
    step->has_undo = undo != NULL;
    step->undo_handler = json_text_of(json_member(undo, STR("handler")));
    step->undo_queue = json_text_of(json_member(undo, STR("queue")));
    step->undo_input = json_member(undo, STR("input"));
    if (step->undo_queue.ptr == NULL)
        step->undo_queue = step->queue.ptr != NULL ? step->queue : STR("default");
}

/* `json` is the step itself when it is an approval, or what its requires_approval says. */
static void build_ask(struct step_def *step, const struct json *json)
{
    step->asks = true;
    step->ask = approval_ask_of(json);
}

static void build_step(struct step_def *step, const struct json *json)
{
    bool known = step_type_parse(json_text_of(json_member(json, STR("type"))), &step->type);
    assert(known && step->name.len > 0);
    const struct json *queue = json_member(json, STR("queue"));
    struct str until = json_text_of(json_member(json, STR("until")));
    if (step_type_is(step->type, STEP_FOR_WORKERS))
        step->queue = queue != NULL ? json_text_of(queue) : STR("default");
    step->handler = json_text_of(json_member(json, STR("handler")));
    step->input = json_member(json, STR("input"));
    step->duration_ms = int_or(json, "duration_ms", -1);
    step->until_ms = -1;
    int64_t until_ms;
    if (expr_has_template(json_member(json, STR("until"))))
        step->until = until;
    else if (until.len > 0 && time_parse(until, &until_ms))
        step->until_ms = MAX(until_ms, 0); /* long past is past enough, and -1 means none */
    step->request = json_member(json, STR("request"));
    step->signals = json_member(json, STR("signal"));
    step->waits_for_all = str_is(json_text_of(json_member(json, STR("wait_for"))), "all");
    step->output = json_member(json, STR("output"));
    step->event = json_text_of(json_member(json, STR("event")));
    step->payload = json_member(json, STR("payload"));
    step->workflow_id = json_text_of(json_member(json, STR("workflow_id")));
    step->version = int_or(json, "version", -1);
    const struct json *gate = json_member(json, STR("requires_approval"));
    if (step_type_is(step->type, STEP_ASKS))
        build_ask(step, json);
    else if (gate != NULL && !json_is(gate, JSON_KIND_FALSE))
        build_ask(step, gate);
    build_control(step, json);
}

/* False when memory ran out. */
static bool build_limits(struct definition *def, const struct json *json)
{
    size_t count = limit_count(json);
    struct limit_rule *rules = arena_alloc(&def->arena, MAX(count, (size_t)1) * sizeof(*rules));
    if (rules == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct json *limit = limit_at(json, i);
        const struct json *key = json_member(limit, STR("key"));
        rules[i].path = key != NULL ? json_text_of(key) : STR("");
        rules[i].limit = int_or(limit, "limit", 0);
        rules[i].at_limit = at_limit_of(json_text_of(json_member(limit, STR("at_limit"))));
    }
    def->limits = rules;
    def->limit_count = count;
    return true;
}

/* False when memory ran out. */
static bool parse_all(struct parse *ps)
{
    struct definition *def = ps->def;
    definition_check_fields(ps->source, &ps->faults);
    check_id(ps);

    const struct json *steps = json_member(ps->source, STR("steps"));
    if (json_length(steps) == 0 || json_length(steps) > STEPS_MAX)
        return true; /* a fault by now */
    ps->step_list = steps;
    def->step_count = json_length(steps);
    ps->steps = arena_alloc(&def->arena, def->step_count * sizeof(*ps->steps));
    if (ps->steps == NULL)
        return false;
    def->steps = ps->steps;

    index_names(ps);
    link_errors(ps);
    if (!link_steps(ps))
        return false;
    for (size_t i = 0; i < def->step_count; i++)
        check_on_error(ps, i);
    check_cycles(ps);
    if (ps->faults.count > 0)
        return true;
    if (!check_expressions(ps))
        return false;
    if (ps->faults.count > 0)
        return true;

    for (size_t i = 0; i < def->step_count; i++)
        build_step(&ps->steps[i], step_json(ps, i));
    def->input_schema = json_member(ps->source, STR("input_schema"));
    int64_t timeout_s = int_or(ps->source, "timeout_s", -1);
    def->timeout_ms = timeout_s < 0 ? -1 : timeout_s * 1000;
    const struct json *signals = json_member(ps->source, STR("signals"));
    def->signal_window_ms = int_or(signals, "dedup_window_s", DEDUP_WINDOW_S_DEFAULT) * 1000;
    def->signal_max_keys = int_or(signals, "dedup_max_keys", DEDUP_MAX_KEYS_DEFAULT);
    return build_limits(def, json_member(ps->source, STR("concurrency"))) && set_unsupported(ps);
}
