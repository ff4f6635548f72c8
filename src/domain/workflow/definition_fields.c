/* What each member of a definition may be: one table per object, one small checker per kind of
 * value. To add a member, add a row; to add a step type, add its bit to the rows it may have. */
#include "domain/workflow/definition_fields.h"

#include "base/env.h"
#include "base/limits.h"
#include "domain/admission/admission.h"
#include "domain/expr/expr.h"
#include "domain/role.h"
#include "domain/schema/schema.h"
#include "domain/type_pattern.h"
#include "domain/workflow/step_type.h"

enum {
    PROMPT_MAX = 64 * KIB, /* a page for a person, several for a model */
    URL_MAX = 8 * KIB,     /* what servers commonly take */
    HEADER_VALUE_MAX = 8 * KIB,
    TIMEOUT_S_MAX = 10 * 365 * 24 * 3600, /* ten years: longer is a mistake in the unit */
    BACKOFF_MS_MAX = 24 * 3600 * 1000,    /* a day: then a person should have looked */
    ATTEMPTS_MAX = 1000,
    FACTOR_MAX = 100,
    APPROVERS_MAX = 100,
    PARALLEL_MAX = 10 * 1000,
    LOOP_ELEMENTS_MAX = 10 * 1000,
    SIGNAL_WINDOW_S_MAX = 365 * 86400, /* as for entities */
    SIGNAL_KEYS_MAX = 1000 * 1000,     /* as for entities */
    CONCURRENT_RUNS_MAX = 1000 * 1000,
};

#define SLEEP_MS_MAX ((int64_t)SLEEP_DAYS_MAX * 24 * 3600 * 1000)

struct member {
    const char *name;
    unsigned on;     /* the step types that may have it; ANY in other objects */
    unsigned needed; /* those that must */
    void (*check)(struct fault_list *f, const struct member *m, const struct json *value);
    /* For the checker: bounds of a number, a length or a count; a|b|c; the members of an object. */
    int64_t min, max;
    const char *choices;
    const struct shape *shape;
};

struct shape {
    const struct member *members;
    size_t count;
};

#define ANY (~0u)
#define ON(type) (1u << STEP_##type)

static_assert(STEP_TYPE_COUNT <= 32, "step types are bits of an unsigned");

static void check_any(struct fault_list *f, const struct member *m, const struct json *value);
static void check_bool(struct fault_list *f, const struct member *m, const struct json *value);
static void check_int(struct fault_list *f, const struct member *m, const struct json *value);
static void check_number(struct fault_list *f, const struct member *m, const struct json *value);
static void check_text(struct fault_list *f, const struct member *m, const struct json *value);
static void check_name(struct fault_list *f, const struct member *m, const struct json *value);
static void check_queue(struct fault_list *f, const struct member *m, const struct json *value);
static void check_event(struct fault_list *f, const struct member *m, const struct json *value);
static void check_choice(struct fault_list *f, const struct member *m, const struct json *value);
static void check_texts(struct fault_list *f, const struct member *m, const struct json *value);
static void check_needs(struct fault_list *f, const struct member *m, const struct json *value);
static void check_text_or_texts(struct fault_list *f, const struct member *m,
                                const struct json *value);
static void check_text_or_array(struct fault_list *f, const struct member *m,
                                const struct json *value);
static void check_object(struct fault_list *f, const struct member *m, const struct json *value);
static void check_schema(struct fault_list *f, const struct member *m, const struct json *value);
static void check_until(struct fault_list *f, const struct member *m, const struct json *value);
static void check_url(struct fault_list *f, const struct member *m, const struct json *value);
static void check_headers(struct fault_list *f, const struct member *m, const struct json *value);
static void check_step_type(struct fault_list *f, const struct member *m, const struct json *value);
static void check_steps(struct fault_list *f, const struct member *m, const struct json *value);
static void check_limits(struct fault_list *f, const struct member *m, const struct json *value);
static void check_roles(struct fault_list *f, const struct member *m, const struct json *value);
static void check_approvers(struct fault_list *f, const struct member *m, const struct json *value);
static void check_escalated(struct fault_list *f, const struct member *m, const struct json *value);
static void check_gate(struct fault_list *f, const struct member *m, const struct json *value);

/* --- the objects inside a definition, innermost first --- */

// clang-format off
#define SHAPE(table) {table, ARRAY_LEN(table)}

static const struct member RETRY_MEMBERS[] = {
    {"max_attempts",   ANY, 0, .check = check_int,    .min = 1, .max = ATTEMPTS_MAX},
    {"backoff_ms",     ANY, 0, .check = check_int,    .min = 0, .max = BACKOFF_MS_MAX},
    {"max_backoff_ms", ANY, 0, .check = check_int,    .min = 0, .max = BACKOFF_MS_MAX},
    {"multiplier",     ANY, 0, .check = check_number, .min = 1, .max = FACTOR_MAX},
    {"jitter",         ANY, 0, .check = check_choice, .choices = "none|full|equal|decorrelated"},
    {"non_retryable",  ANY, 0, .check = check_texts,  .min = 0, .max = 100},
};
static const struct shape RETRY = SHAPE(RETRY_MEMBERS);

static const struct member APPROVERS_MEMBERS[] = {
    {"count",            ANY, 0, .check = check_int,   .min = 1, .max = APPROVERS_MAX},
    {"forbid_requester", ANY, 0, .check = check_bool},
    {"roles",            ANY, 0, .check = check_roles, .min = 1, .max = APPROVERS_MAX},
    {"users",            ANY, 0, .check = check_texts, .min = 1, .max = APPROVERS_MAX},
};
static const struct shape APPROVERS = SHAPE(APPROVERS_MEMBERS);

static const struct member ESCALATED_MEMBERS[] = {
    {"roles", ANY, 0, .check = check_roles, .min = 1, .max = APPROVERS_MAX},
    {"users", ANY, 0, .check = check_texts, .min = 1, .max = APPROVERS_MAX},
};
static const struct shape ESCALATED = SHAPE(ESCALATED_MEMBERS);

static const struct member ESCALATION_MEMBERS[] = {
    {"after_s",   ANY, ANY, .check = check_int,       .min = 1, .max = TIMEOUT_S_MAX},
    {"approvers", ANY, ANY, .check = check_escalated, .shape = &ESCALATED},
};
static const struct shape ESCALATION = SHAPE(ESCALATION_MEMBERS);

#define ASK_MEMBERS \
    {"content",        ANY, 0, .check = check_any}, \
    {"approvers",      ANY, 0, .check = check_approvers, .shape = &APPROVERS}, \
    {"expires_s",      ANY, 0, .check = check_int,       .min = 1, .max = TIMEOUT_S_MAX}, \
    {"remind_every_s", ANY, 0, .check = check_int,       .min = 1, .max = TIMEOUT_S_MAX}, \
    {"escalation",     ANY, 0, .check = check_object,    .shape = &ESCALATION}

static const struct member GATE_MEMBERS[] = {
    {"prompt",         ANY, 0, .check = check_text,      .max = PROMPT_MAX},
    {"on_expire",      ANY, 0, .check = check_choice,    .choices = "reject|approve|fail"},
    ASK_MEMBERS,
};
static const struct shape GATE = SHAPE(GATE_MEMBERS);

static const struct member QUESTION_MEMBERS[] = {
    {"prompt",         ANY, ANY, .check = check_text,    .max = PROMPT_MAX},
    ASK_MEMBERS,
};
static const struct shape QUESTION = SHAPE(QUESTION_MEMBERS);

static const struct member COMPENSATE_MEMBERS[] = {
    {"handler", ANY, ANY, .check = check_name},
    {"queue",   ANY, 0,   .check = check_queue},
    {"input",   ANY, 0,   .check = check_any},
};
static const struct shape COMPENSATE = SHAPE(COMPENSATE_MEMBERS);

static const struct member REQUEST_MEMBERS[] = {
    {"method",  ANY, ANY, .check = check_choice,  .choices = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"},
    {"url",     ANY, ANY, .check = check_url,     .max = URL_MAX},
    {"headers", ANY, 0,   .check = check_headers, .max = HEADER_VALUE_MAX},
    {"body",    ANY, 0,   .check = check_any},
};
static const struct shape REQUEST = SHAPE(REQUEST_MEMBERS);

static const struct member CONCURRENCY_MEMBERS[] = {
    {"key",      ANY, 0,   .check = check_text,   .max = EXPR_SOURCE_MAX},
    {"limit",    ANY, ANY, .check = check_int,    .min = 1, .max = CONCURRENT_RUNS_MAX},
    {"at_limit", ANY, 0,   .check = check_choice, .choices = "reject|queue|cancel_oldest|coalesce"},
};
static const struct shape CONCURRENCY = SHAPE(CONCURRENCY_MEMBERS);

static const struct member SIGNALS_MEMBERS[] = {
    {"dedup_window_s", ANY, 0, .check = check_int, .min = 1, .max = SIGNAL_WINDOW_S_MAX},
    {"dedup_max_keys", ANY, 0, .check = check_int, .min = 1, .max = SIGNAL_KEYS_MAX},
};
static const struct shape SIGNALS = SHAPE(SIGNALS_MEMBERS);

#define UNDOABLE (ON(TASK) | ON(HTTP) | ON(WORKFLOW))
#define WITH_INPUT (ON(TASK) | ON(WORKFLOW) | ON(LLM))
#define PROMPTED (ON(APPROVAL) | ON(LLM))

static const struct member STEP_MEMBERS[] = {
    /* on every step */
    {"name",         ANY, ANY, .check = check_name},
    {"type",         ANY, ANY, .check = check_step_type},
    {"needs",        ANY, 0,   .check = check_needs,         .min = 0, .max = STEPS_MAX},
    {"when",         ANY, 0,   .check = check_text,          .max = EXPR_SOURCE_MAX},
    {"for_each",     ANY, 0,   .check = check_text_or_array, .max = LOOP_ELEMENTS_MAX},
    {"max_parallel", ANY, 0,   .check = check_int,           .min = 1, .max = PARALLEL_MAX},
    {"retry",        ANY, 0,   .check = check_object,        .shape = &RETRY},
    {"timeout_ms",   ANY, 0,   .check = check_int,           .min = 1, .max = SLEEP_MS_MAX},
    {"on_error",     ANY, 0,   .check = check_name},
    /* on some */
    {"requires_approval", ON(TASK),        0,               .check = check_gate, .shape = &GATE},
    {"compensate",        UNDOABLE,        0,               .check = check_object, .shape = &COMPENSATE},
    {"queue",             ON(TASK),        0,               .check = check_queue},
    {"handler",           ON(TASK),        ON(TASK),        .check = check_name},
    {"input",             WITH_INPUT,      0,               .check = check_any},
    {"request",           ON(HTTP),        ON(HTTP),        .check = check_object, .shape = &REQUEST},
    {"prompt",            PROMPTED,        PROMPTED,        .check = check_text, .max = PROMPT_MAX},
    {"content",           ON(APPROVAL),    0,               .check = check_any},
    {"approvers",         ON(APPROVAL),    0,               .check = check_approvers, .shape = &APPROVERS},
    {"expires_s",         ON(APPROVAL),    0,               .check = check_int, .min = 1, .max = TIMEOUT_S_MAX},
    {"on_expire",         ON(APPROVAL),    0,               .check = check_choice, .choices = "reject|approve|fail"},
    {"remind_every_s",    ON(APPROVAL),    0,               .check = check_int, .min = 1, .max = TIMEOUT_S_MAX},
    {"escalation",        ON(APPROVAL),    0,               .check = check_object, .shape = &ESCALATION},
    {"duration_ms",       ON(SLEEP),       0,               .check = check_int, .min = 0, .max = SLEEP_MS_MAX},
    {"until",             ON(SLEEP),       0,               .check = check_until, .max = EXPR_SOURCE_MAX},
    {"signal",            ON(WAIT_SIGNAL), ON(WAIT_SIGNAL), .check = check_text_or_texts, .min = 1, .max = SIGNAL_NAMES_MAX},
    {"wait_for",          ON(WAIT_SIGNAL), 0,               .check = check_choice, .choices = "first|all"},
    {"output",            ON(TRANSFORM),   ON(TRANSFORM),   .check = check_any},
    {"event",             ON(EMIT),        ON(EMIT),        .check = check_event},
    {"payload",           ON(EMIT),        0,               .check = check_any},
    {"workflow_id",       ON(WORKFLOW),    ON(WORKFLOW),    .check = check_name},
    {"version",           ON(WORKFLOW),    0,               .check = check_int, .min = 1, .max = INT32_MAX},
    {"model",             ON(LLM),         0,               .check = check_text, .max = TEXT_MAX},
};
static const struct shape STEP = SHAPE(STEP_MEMBERS);

static const struct member DEFINITION_MEMBERS[] = {
    {"id",           ANY, 0,   .check = check_name},
    {"description",  ANY, 0,   .check = check_text,   .max = TEXT_MAX},
    {"input_schema", ANY, 0,   .check = check_schema},
    {"timeout_s",    ANY, 0,   .check = check_int,    .min = 1, .max = TIMEOUT_S_MAX},
    {"concurrency",  ANY, 0,   .check = check_limits, .min = 1, .max = LIMITS_PER_RUN_MAX, .shape = &CONCURRENCY},
    {"signals",      ANY, 0,   .check = check_object, .shape = &SIGNALS},
    {"steps",        ANY, ANY, .check = check_steps,  .min = 1, .max = STEPS_MAX},
};
static const struct shape DEFINITION = SHAPE(DEFINITION_MEMBERS);
// clang-format on

void definition_check_fields(const struct json *source, struct fault_list *faults)
{
    assert(source != NULL);
    const struct member whole = {.check = check_object, .shape = &DEFINITION};
    check_object(faults, &whole, source);
}

/* --- objects --- */

static const struct member *member_find(const struct shape *shape, struct str name)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (str_is(name, shape->members[i].name))
            return &shape->members[i];
    }
    return NULL;
}

static void put_types(struct buf *out, unsigned types)
{
    for (unsigned i = 0; i < STEP_TYPE_COUNT; i++) {
        if ((types >> i & 1u) != 0)
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", step_type_name((enum step_type)i));
    }
}

static void add_misplaced(struct fault_list *f, const struct member *m, unsigned type)
{
    struct buf owners;
    struct buf here;
    buf_init(&owners, TEXT_MAX);
    buf_init(&here, TEXT_MAX);
    put_types(&owners, m->on);
    put_types(&here, type);
    fault_list_add(f, "\"%s\" is for steps of type %.*s, not %.*s", m->name,
                   STR_ARG(buf_str(&owners)), STR_ARG(buf_str(&here)));
    f->out->failed |= owners.failed || here.failed;
    buf_release(&owners);
    buf_release(&here);
}

/* `types`: the step's type as a bit; ANY where the type is not known or does not matter. */
static void check_members(struct fault_list *f, const struct shape *shape,
                          const struct json *object, unsigned types)
{
    for (size_t i = 0; i < json_members(object); i++) {
        struct str name = json_name_at(object, i);
        const struct json *value = json_value_at(object, i);
        const struct member *m = member_find(shape, name);
        size_t back_to = fault_list_enter(f, name);
        if (m == NULL)
            fault_list_add(f, "unknown member \"%s\"", name.ptr);
        else if ((m->on & types) == 0)
            add_misplaced(f, m, types);
        else
            m->check(f, m, value);
        fault_list_leave(f, back_to);
    }
    for (size_t i = 0; i < shape->count; i++) {
        const struct member *m = &shape->members[i];
        if ((m->needed & types) == types && json_member(object, str_of(m->name)) == NULL)
            fault_list_add(f, "the member \"%s\" is missing", m->name);
    }
}

static void check_object(struct fault_list *f, const struct member *m, const struct json *value)
{
    if (json_is(value, JSON_KIND_OBJECT))
        check_members(f, m->shape, value, ANY);
    else
        fault_list_add(f, "must be an object");
}

/* One limit, or a list of them with different keys. */
static void check_limits(struct fault_list *f, const struct member *m, const struct json *value)
{
    size_t count = json_length(value);
    if (!json_is(value, JSON_KIND_LIST)) {
        check_object(f, m, value);
        return;
    }
    if (count < (size_t)m->min || count > (size_t)m->max) {
        fault_list_add(f, "must be one object or an array of %lld to %lld", (long long)m->min,
                       (long long)m->max);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct json *limit = json_element(value, i);
        size_t back_to = fault_list_enter_index(f, i);
        check_object(f, m, limit);
        for (size_t j = 0; j < i; j++) {
            const struct json *earlier = json_element(value, j);
            if (str_eq(json_text_of(json_member(earlier, STR("key"))),
                       json_text_of(json_member(limit, STR("key")))))
                fault_list_add(f, "has the same key as the limit at %zu", j);
        }
        fault_list_leave(f, back_to);
    }
}

/* --- who is asked --- */

/* Named people who are too few could never decide. */
static void check_approvers(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_object(f, m, value);
    const struct json *users = json_member(value, STR("users"));
    const struct json *count = json_member(value, STR("count"));
    int64_t needed;
    if (users != NULL && json_member(value, STR("roles")) == NULL &&
        json_whole_of(count, &needed) && needed > (int64_t)json_length(users))
        fault_list_add(f, "\"count\" is larger than the number of \"users\"");
}

static void check_escalated(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_object(f, m, value);
    if (json_is(value, JSON_KIND_OBJECT) && json_members(value) == 0)
        fault_list_add(f, "must name \"roles\" or \"users\"");
}

/* An escalation behind the end, or one from nobody in particular, would never mean anything. */
static void check_asking(struct fault_list *f, const struct json *object)
{
    const struct json *escalation = json_member(object, STR("escalation"));
    const struct json *approvers = json_member(object, STR("approvers"));
    const struct json *after = json_member(escalation, STR("after_s"));
    const struct json *expires = json_member(object, STR("expires_s"));
    if (escalation == NULL)
        return;
    size_t back_to = fault_list_enter(f, STR("escalation"));
    int64_t after_s;
    int64_t expires_s;
    if (json_whole_of(after, &after_s) && json_whole_of(expires, &expires_s) &&
        after_s >= expires_s)
        fault_list_add(f, "\"after_s\" must be less than \"expires_s\"");
    if (json_member(approvers, STR("roles")) == NULL &&
        json_member(approvers, STR("users")) == NULL)
        fault_list_add(
            f,
            "has no effect while anyone may decide: name \"roles\" or \"users\" in \"approvers\"");
    fault_list_leave(f, back_to);
}

static void check_gate(struct fault_list *f, const struct member *m, const struct json *value)
{
    if (json_is(value, JSON_KIND_OBJECT)) {
        check_members(f, m->shape, value, ANY);
        check_asking(f, value);
    } else if (!json_is_bool(value)) {
        fault_list_add(f, "must be true, false or an object");
    }
}

void definition_check_question(const struct json *ask, struct fault_list *faults)
{
    assert(json_is(ask, JSON_KIND_OBJECT));
    check_members(faults, &QUESTION, ask, ANY);
    check_asking(faults, ask);
}

/* Pairs of members of which a step has exactly one. */
static const struct {
    unsigned on;
    const char *one, *other;
} EITHER[] = {
    {ON(SLEEP), "duration_ms", "until"},
};

static void check_either(struct fault_list *f, const struct json *step, unsigned type)
{
    for (size_t i = 0; i < ARRAY_LEN(EITHER); i++) {
        bool one = json_member(step, str_of(EITHER[i].one)) != NULL;
        bool other = json_member(step, str_of(EITHER[i].other)) != NULL;
        if ((EITHER[i].on & type) != 0 && one == other)
            fault_list_add(f, "must have either \"%s\" or \"%s\", %s", EITHER[i].one,
                           EITHER[i].other, one ? "not both" : "and has neither");
    }
}

static void check_step(struct fault_list *f, const struct json *step)
{
    if (!json_is(step, JSON_KIND_OBJECT)) {
        fault_list_add(f, "must be an object");
        return;
    }
    enum step_type type;
    bool known = step_type_parse(json_text_of(json_member(step, STR("type"))), &type);
    check_members(f, &STEP, step, known ? 1u << type : ANY);

    if (json_member(step, STR("max_parallel")) != NULL &&
        json_member(step, STR("for_each")) == NULL) {
        size_t back_to = fault_list_enter(f, STR("max_parallel"));
        fault_list_add(f, "has no effect without \"for_each\"");
        fault_list_leave(f, back_to);
    }
    if (known && step_type_is(type, STEP_ASKS))
        check_asking(f, step);
    if (str_is(json_text_of(json_member(step, STR("wait_for"))), "all") &&
        json_is(json_member(step, STR("signal")), JSON_KIND_TEXT)) {
        size_t back_to = fault_list_enter(f, STR("wait_for"));
        fault_list_add(f, "\"all\" needs an array of names in \"signal\"");
        fault_list_leave(f, back_to);
    }
    if (known)
        check_either(f, step, 1u << type);
}

static void check_steps(struct fault_list *f, const struct member *m, const struct json *value)
{
    size_t count = json_length(value);
    if (!json_is(value, JSON_KIND_LIST) || count < (size_t)m->min || count > (size_t)m->max) {
        fault_list_add(f, "must be an array of %lld to %lld steps", (long long)m->min,
                       (long long)m->max);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t back_to = fault_list_enter_index(f, i);
        check_step(f, json_element(value, i));
        fault_list_leave(f, back_to);
    }
}

static void check_step_type(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)m;
    enum step_type type;
    if (json_is(value, JSON_KIND_TEXT) && step_type_parse(json_text_of(value), &type))
        return;
    struct buf known;
    buf_init(&known, TEXT_MAX);
    put_types(&known, ANY);
    fault_list_add(f, "must be one of the step types %.*s", STR_ARG(buf_str(&known)));
    f->out->failed |= known.failed;
    buf_release(&known);
}

/* --- values --- */

static void check_any(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)f, (void)m, (void)value;
}

static void check_bool(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)m;
    if (!json_is_bool(value))
        fault_list_add(f, "must be true or false");
}

static void check_int(struct fault_list *f, const struct member *m, const struct json *value)
{
    int64_t number;
    if (!json_whole_of(value, &number) || number < m->min || number > m->max)
        fault_list_add(f, "must be a whole number from %lld to %lld", (long long)m->min,
                       (long long)m->max);
}

static void check_number(struct fault_list *f, const struct member *m, const struct json *value)
{
    if (!json_is_numeric(value) || json_double_of(value) < (double)m->min ||
        json_double_of(value) > (double)m->max)
        fault_list_add(f, "must be a number from %lld to %lld", (long long)m->min,
                       (long long)m->max);
}

static bool is_text(struct fault_list *f, const struct json *value, size_t max)
{
    size_t len = json_text_of(value).len; /* 0 for what is no text */
    if (len > 0 && len <= max)
        return true;
    fault_list_add(f, "must be text of 1 to %zu bytes", max);
    return false;
}

static void check_text(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)is_text(f, value, (size_t)m->max);
}

static void check_name(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)m;
    if (json_text_of(value).len > NAME_MAX_LEN || !str_is_name(json_text_of(value)))
        fault_list_add(f,
                       "must be a name: 1 to %d letters, digits or any of _ - . :", NAME_MAX_LEN);
}

static void check_queue(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_name(f, m, value);
    if (str_starts_with(json_text_of(value), STR(OWN_QUEUES)))
        fault_list_add(f, "must not begin with " OWN_QUEUES ": those are pawl's own queues");
}

static void check_event(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_name(f, m, value);
    const char *own = type_own_prefix(json_text_of(value));
    if (own != NULL)
        fault_list_add(f, "must not begin with %s: those are pawl's own events", own);
}

static void check_choice(struct fault_list *f, const struct member *m, const struct json *value)
{
    struct str choice;
    struct str rest = str_of(m->choices);
    bool more = true;
    while (more) {
        more = str_cut(rest, '|', &choice, &rest);
        if (json_is(value, JSON_KIND_TEXT) && str_eq(json_text_of(value), choice))
            return;
    }
    fault_list_add(f, "must be one of %s", m->choices);
}

/* Looks back at the elements before; the array is bounded by its row. */
static bool is_repeated(const struct json *array, size_t index)
{
    struct str text = json_text_of(json_element(array, index));
    for (size_t i = 0; i < index; i++) {
        const struct json *earlier = json_element(array, i);
        if (json_is(earlier, JSON_KIND_TEXT) && str_eq(json_text_of(earlier), text))
            return true;
    }
    return false;
}

static void check_text_list(struct fault_list *f, const struct member *m, const struct json *value,
                            bool may_repeat)
{
    size_t count = json_length(value);
    if (!json_is(value, JSON_KIND_LIST) || count < (size_t)m->min || count > (size_t)m->max) {
        fault_list_add(f, "must be an array of %lld to %lld texts", (long long)m->min,
                       (long long)m->max);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct json *text = json_element(value, i);
        size_t back_to = fault_list_enter_index(f, i);
        if (is_text(f, text, TEXT_MAX) && !may_repeat && is_repeated(value, i))
            fault_list_add(f, "\"%s\" is listed twice", json_text_of(text).ptr);
        fault_list_leave(f, back_to);
    }
}

static void check_texts(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_text_list(f, m, value, false);
}

/* Only those that may decide at all. */
static void check_roles(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_text_list(f, m, value, false);
    for (size_t i = 0; i < json_length(value); i++) {
        const struct json *name = json_element(value, i);
        enum role role = role_of(json_text_of(name));
        size_t back_to = fault_list_enter_index(f, i);
        if (json_is(name, JSON_KIND_TEXT) &&
            (role == ROLE_COUNT || !role_may(role, false, MAY_DECIDE)))
            fault_list_add(f, "must be a role that may decide: approver, operator or admin");
        fault_list_leave(f, back_to);
    }
}

/* Whom they name, and whether twice, is looked at where names are resolved. */
static void check_needs(struct fault_list *f, const struct member *m, const struct json *value)
{
    check_text_list(f, m, value, true);
}

static void check_text_or_texts(struct fault_list *f, const struct member *m,
                                const struct json *value)
{
    if (json_is(value, JSON_KIND_LIST))
        check_texts(f, m, value);
    else
        (void)is_text(f, value, TEXT_MAX);
}

static void check_text_or_array(struct fault_list *f, const struct member *m,
                                const struct json *value)
{
    if (!json_is(value, JSON_KIND_LIST))
        (void)is_text(f, value, EXPR_SOURCE_MAX);
    else if (json_length(value) > (size_t)m->max)
        fault_list_add(f, "must have at most %lld elements", (long long)m->max);
}

static void check_schema(struct fault_list *f, const struct member *m, const struct json *value)
{
    (void)m;
    schema_check_schema(value, f);
}

static void check_until(struct fault_list *f, const struct member *m, const struct json *value)
{
    int64_t ms;
    if (!is_text(f, value, (size_t)m->max) || expr_has_template(value) ||
        time_parse(json_text_of(value), &ms))
        return;
    fault_list_add(f, "must be a time such as 2030-01-31T12:00:00Z, or text with ${…}");
}

/* Spaces are fine inside ${…} only; control characters nowhere. */
static bool is_clean_url(struct str url)
{
    bool in_template = false;
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];
        if (c == '{' && i > 0 && url.ptr[i - 1] == '$')
            in_template = true;
        else if (c == '}')
            in_template = false;
        if (c < ' ' || c == 0x7F || (c == ' ' && !in_template))
            return false;
    }
    return true;
}

static void check_url(struct fault_list *f, const struct member *m, const struct json *value)
{
    if (!is_text(f, value, (size_t)m->max))
        return;
    struct str url = json_text_of(value);
    bool http = str_starts_with(url, STR("http://")) && url.len > STR("http://").len;
    bool https = str_starts_with(url, STR("https://")) && url.len > STR("https://").len;
    bool filled_in = str_starts_with(url, STR("${")); /* what it becomes is looked at then */
    if ((!http && !https && !filled_in) || !is_clean_url(url))
        fault_list_add(f, "must be a URL that begins with http://, https:// or ${ and has no "
                          "spaces");
}

/* RFC 9110: a token. */
static bool is_header_name(struct str name)
{
    static const struct str MARKS = {"!#$%&'*+-.^_`|~", sizeof("!#$%&'*+-.^_`|~") - 1};
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  memchr(MARKS.ptr, c, MARKS.len) != NULL;
        if (!ok)
            return false;
    }
    return name.len > 0;
}

/* A line break here would let a definition write headers of its own. */
static bool is_header_value(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

static void check_headers(struct fault_list *f, const struct member *m, const struct json *value)
{
    if (!json_is(value, JSON_KIND_OBJECT)) {
        fault_list_add(f, "must be an object of texts");
        return;
    }
    for (size_t i = 0; i < json_members(value); i++) {
        struct str name = json_name_at(value, i);
        const struct json *text = json_value_at(value, i);
        size_t back_to = fault_list_enter(f, name);
        if (!is_header_name(name))
            fault_list_add(f, "is not the name of a header");
        else if (!json_is(text, JSON_KIND_TEXT) || json_text_of(text).len > (size_t)m->max ||
                 !is_header_value(json_text_of(text)))
            fault_list_add(f, "must be text without line breaks, at most %lld bytes",
                           (long long)m->max);
        fault_list_leave(f, back_to);
    }
}
