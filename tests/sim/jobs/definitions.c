/* Workflow definitions by lot. */
#include "sim/jobs/definitions.h"

enum { STEPS_OF_ONE_MAX = 5, LEASES_WITHOUT_RETRY = 20 };

/* What the steps of one definition have in common. */
struct maker {
    struct sim *w;
    struct buf *out;
    int depth;
    bool graph;   /* steps say what they need */
    bool handled; /* some step names the error handler */
};

static bool chance(struct maker *m, int percent)
{
    return lot_percent(&m->w->lot, percent);
}

static int64_t between(struct maker *m, int64_t least, int64_t most)
{
    return lot_between(&m->w->lot, least, most);
}

/* --- members of steps --- */

static void put_retry(struct maker *m)
{
    if (!chance(m, 55))
        return;
    static const char *const JITTERS[] = {"none", "full", "equal", "decorrelated"};
    buf_printf(m->out, ",\"retry\":{\"max_attempts\":%d,\"backoff_ms\":%d,\"jitter\":\"%s\"}",
               (int)between(m, 1, 3), chance(m, 40) ? 0 : (int)between(m, 1, 4000),
               JITTERS[between(m, 0, 3)]);
}

static void put_compensation(struct maker *m)
{
    if (!sim_on(m->w, ON_UNDO) || !chance(m, 60))
        return;
    buf_printf(m->out, ",\"compensate\":{\"handler\":\"undo\"%s}",
               chance(m, 30) ? ",\"queue\":\"q1\"" : "");
}

static void put_task(struct maker *m)
{
    buf_printf(m->out, ",\"type\":\"task\",\"handler\":\"do\",\"queue\":\"%s\"",
               chance(m, 70) ? "q0" : "q1");
    put_retry(m);
    if (chance(m, 15))
        buf_printf(m->out, ",\"timeout_ms\":%d", (int)between(m, 2000, 30000));
    put_compensation(m);
}

static void put_http(struct maker *m)
{
    buf_printf(m->out,
               ",\"type\":\"http\",\"timeout_ms\":%d,\"request\":{\"method\":\"POST\","
               "\"url\":\"http://receiver.test/steps/x\",\"body\":{\"n\":\"${input.n}\"}}",
               (int)between(m, 500, 5000));
    put_retry(m);
    put_compensation(m);
}

static void put_child(struct maker *m)
{
    buf_printf(m->out,
               ",\"type\":\"workflow\",\"workflow_id\":\"child%d\",\"input\":"
               "{\"n\":\"${input.n}\",\"l\":[1,2]}",
               (int)between(m, 0, m->depth - 1));
    if (chance(m, 15))
        buf_printf(m->out, ",\"timeout_ms\":%d", (int)between(m, 2000, 30000));
    put_compensation(m);
}

/* Shows a step before it, so that its result is seen a second time. */
static void put_transform(struct maker *m, int number)
{
    if (number == 0)
        buf_printf(m->out, ",\"type\":\"transform\",\"output\":{\"n\":\"${input.n}\"}");
    else
        buf_printf(m->out,
                   ",\"type\":\"transform\",\"output\":{\"of\":\"s%d\","
                   "\"is\":\"${steps.s%d.output}\"}",
                   number - 1, number - 1);
}

static void put_type(struct maker *m, int number)
{
    int at = lot_below(&m->w->lot, m->depth > 0 ? 100 : 85);
    if (at < 48)
        put_task(m);
    else if (at < 56)
        put_transform(m, number);
    else if (at < 63)
        buf_printf(m->out, ",\"type\":\"sleep\",\"duration_ms\":%d", (int)between(m, 0, 4000));
    else if (at < 68)
        buf_printf(m->out, ",\"type\":\"wait_signal\",\"signal\":\"go\",\"timeout_ms\":%d",
                   (int)between(m, 100, 9000));
    else if (at < 73)
        buf_printf(m->out, ",\"type\":\"emit\",\"event\":\"made.up\",\"payload\":\"${input.n}\"");
    else if (at < 85)
        put_http(m);
    else
        put_child(m);
}

static void put_list(struct maker *m)
{
    if (!sim_on(m->w, ON_MAPS) || !chance(m, 25))
        return;
    buf_printf(m->out, ",\"for_each\":%s",
               chance(m, 50) ? "[1,2,3]" : (chance(m, 80) ? "\"input.l\"" : "\"input.n\""));
    if (chance(m, 70))
        buf_printf(m->out, ",\"max_parallel\":%d", (int)between(m, 1, 2));
}

/* The step before it among them, so that it can be shown. */
static void put_needs(struct maker *m, int number)
{
    if (!m->graph || number == 0)
        return;
    buf_printf(m->out, ",\"needs\":[\"s%d\"", number - 1);
    for (int i = 0; i < number - 1; i++) {
        if (chance(m, 30))
            buf_printf(m->out, ",\"s%d\"", i);
    }
    buf_put_char(m->out, ']');
}

/* Sometimes a branch of its own, which begins at once. */
static void put_order(struct maker *m, int number)
{
    if (m->graph && number > 0 && chance(m, 30)) {
        buf_printf(m->out, ",\"needs\":[%s]", number > 1 && chance(m, 50) ? "\"s0\"" : "");
        put_task(m);
        return;
    }
    put_needs(m, number);
    put_type(m, number);
}

static void put_step(struct maker *m, int number)
{
    buf_printf(m->out, "%s{\"name\":\"s%d\"", number > 0 ? "," : "", number);
    put_order(m, number);
    put_list(m);
    if (chance(m, 12))
        buf_printf(m->out, ",\"when\":\"input.n %% 2 == 0\"");
    if (chance(m, 15)) {
        buf_printf(m->out, ",\"on_error\":\"continue\"");
    } else if (chance(m, 15)) {
        buf_printf(m->out, ",\"on_error\":\"handler\"");
        m->handled = true;
    }
    buf_put_char(m->out, '}');
}

/* --- definitions --- */

static void put_limits(struct maker *m)
{
    /* To cancel the oldest is a wish of the workflow only: as a request's it would end runs of
     * others when the tenant's limit is reached. */
    static const char *const AT_LIMIT[] = {"", ",\"at_limit\":\"queue\"", ",\"at_limit\":\"queue\"",
                                           ",\"at_limit\":\"reject\"",
                                           ",\"at_limit\":\"cancel_oldest\""};
    int which = lot_below(&m->w->lot, 4);
    if (which == 0)
        return;
    buf_printf(m->out, "\"concurrency\":[");
    if (which & 1)
        buf_printf(m->out, "{\"limit\":%d%s}%s", (int)between(m, 1, 4), AT_LIMIT[between(m, 0, 4)],
                   which == 3 ? "," : "");
    if (which & 2)
        buf_printf(m->out, "{\"key\":\"input.k\",\"limit\":%d%s}", (int)between(m, 1, 3),
                   AT_LIMIT[between(m, 0, 4)]);
    buf_printf(m->out, "],");
}

void definition_make(struct sim *w, struct buf *out, int depth, bool limited)
{
    struct maker m = {.w = w, .out = out, .depth = sim_on(w, ON_CHILDREN) ? depth : 0};
    int steps = 1 + lot_below(&w->lot, STEPS_OF_ONE_MAX);
    m.graph = lot_percent(&w->lot, 40);
    buf_put_char(out, '{');
    if (limited)
        put_limits(&m);
    if (chance(&m, 15))
        buf_printf(out, "\"timeout_s\":%d,", (int)between(&m, 5, 120));
    if (limited && chance(&m, 15))
        buf_printf(out, "\"input_schema\":{\"properties\":{\"n\":{\"maximum\":99}}},");
    buf_printf(out, "\"steps\":[");
    for (int i = 0; i < steps; i++)
        put_step(&m, i);
    if (m.handled)
        buf_printf(out, ",{\"name\":\"handler\",\"type\":\"task\",\"handler\":\"do\","
                        "\"queue\":\"q0\"}");
    buf_printf(out, "]}");
    assert(buf_ok(out));
}

/* --- reading them --- */

const json_t *definition_step(const json_t *definition, const char *name)
{
    size_t i;
    json_t *step;
    json_array_foreach (json_object_get(definition, "steps"), i, step) {
        if (strcmp(json_text(step, "name"), name) == 0)
            return step;
    }
    return NULL;
}

int64_t step_attempts_max(const json_t *step)
{
    int64_t max = json_number(json_object_get(step, "retry"), "max_attempts");
    return max < 0 ? 1 : max;
}

int64_t step_leases_max(const json_t *step)
{
    int64_t max = json_number(json_object_get(step, "retry"), "max_attempts");
    return max < 0 ? LEASES_WITHOUT_RETRY : max;
}

int64_t definition_limit(const json_t *definition, const char *key)
{
    size_t i;
    json_t *rule;
    json_array_foreach (json_object_get(definition, "concurrency"), i, rule) {
        if (strcmp(json_text(rule, "key"), key) == 0)
            return json_number(rule, "limit");
    }
    return INT64_MAX;
}
