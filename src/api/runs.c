/* Routes of runs: start, show, list, control, signal. */
#include "api/params.h"
#include "api/routes.h"
#include "api/signal.h"
#include "api/streams.h"
#include "api/tracing.h"
#include "domain/labels.h"

/* --- start --- */

static void take_labels(struct call *c, struct fields *f, const struct json *labels, void *input)
{
    (void)c, (void)input;
    labels_check(f, labels);
    if (labels != NULL && json_members(labels) == 0)
        fields_default(f, "labels");
}

/* The request that is exported is the first span of the trace, and the run the next. The node that
 * the client spoke to exports it. */
static enum err begin_trace(struct call *c, struct start_run_input *in)
{
    if (c->req->trace_is_new) {
        in->traceparent = c->req->traceparent;
        return ERR_OK;
    }
    char *text = call_alloc(c, TRACEPARENT_LEN + 1);
    if (text == NULL)
        return c->op.problem.err;
    struct trace_span span = request_span(c->req);
    trace_write(&span, text);
    in->traceparent = str_of(text);
    return ERR_OK;
}

static enum err prepare_start(struct call *c, void *input)
{
    struct start_run_input *in = input;
    if (c->req->traceparent.ptr == NULL || c->req->trace_is_new)
        return engine_exports_spans(c->api->config.engine) ? begin_trace(c, in) : ERR_OK;
    in->traceparent = c->req->traceparent; /* without it, tracestate means nothing */
    struct str state = http_header_list(c->req, "tracestate");
    if (state.len <= TRACESTATE_BYTES_MAX && tracestate_ok(state))
        in->tracestate = state;
    return ERR_OK;
}

#define WAIT_FOR_RUN QUERY("wait_ms", PARAM_INT, .max = RUN_WAIT_MS_MAX, INTO_CALL(op.wait_ms))

/* Both routes take these. */
#define START_MEMBERS                                                                           \
    BODY("input", PARAM_JSON, .initial_text = "null", INTO(struct start_run_input, input_text), \
         AND_INTO(struct start_run_input, input)),                                              \
        BODY("labels", PARAM_OBJECT, .initial_text = "{}", .take = take_labels,                 \
             INTO(struct start_run_input, labels)),                                             \
        BODY("priority", PARAM_INT, .min = PRIORITY_MIN, .max = PRIORITY_MAX,                   \
             INTO(struct start_run_input, priority)),                                           \
        BODY("at_limit", PARAM_ENUM, WORDS(at_limit_name, AT_LIMIT_COUNT),                      \
             .initial = AT_LIMIT_COUNT, INTO(struct start_run_input, at_limit)),                \
        BODY("start_at", PARAM_TIME, .initial = -1, INTO(struct start_run_input, start_at))

static const struct param START_RUN[] = {
    PATH_NAME("workflow_id", struct start_run_input, workflow_id),
    WAIT_FOR_RUN,
    START_MEMBERS,
    BODY("idempotency_key", PARAM_KEY, .min = 1, .max = IDEM_KEY_BYTES_MAX),
};

static const struct param START_RUN_FLAT[] = {
    WAIT_FOR_RUN,
    BODY("definitionId", PARAM_NAME, .required = true, .max = NAME_MAX_LEN,
         INTO(struct start_run_input, workflow_id)),
    START_MEMBERS,
    BODY("idempotencyKey", PARAM_KEY, .min = 1, .max = IDEM_KEY_BYTES_MAX),
};

/* --- one run --- */

static const struct param RUN[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct run_input, run_id),
};

static const struct param GET_RUN[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct run_input, run_id),
    HEADER("If-None-Match", PARAM_TAGS, INTO_CALL(if_none_match)),
};

static const struct param CONTROL[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct control_run_input, run_id),
    IF_MATCH(struct control_run_input),
};

static const struct param CANCEL[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct control_run_input, run_id),
    IF_MATCH(struct control_run_input),
    BODY("reason", PARAM_TEXT, .max = TEXT_MAX, INTO(struct control_run_input, reason)),
};

static enum err prepare_control(struct call *c, void *input)
{
    ((struct control_run_input *)input)->action = (enum control_action)c->route->variant;
    return ERR_OK;
}

static const struct param RERUN[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct rerun_run_input, run_id),
    IF_MATCH(struct rerun_run_input),
    BODY("from_step", PARAM_TEXT, .max = NAME_MAX_LEN, INTO(struct rerun_run_input, from_step)),
};

static const struct param SIGNAL[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct signal_run_input, run_id),
    IF_MATCH(struct signal_run_input),
    SIGNAL_MEMBERS(struct signal_run_input, false),
};

static enum err prepare_signal(struct call *c, void *input)
{
    struct signal_run_input *in = input;
    return signal_request(c, in->name, in->dedup_key, &in->request);
}

/* --- lists --- */

#define RUN_FILTER(ROW, text_max, type, at)                                                        \
    ROW("status", PARAM_ENUMS, WORDS(run_status_name, RUN_STATUS_COUNT), INTO(type, at statuses)), \
        ROW("workflow_id", PARAM_TEXT, .max = text_max, INTO(type, at workflow_id)),               \
        ROW("label", PARAM_LABEL, .max = TEXT_MAX, INTO(type, at label_name),                      \
            AND_INTO(type, at label_value)),                                                       \
        ROW("created_after", PARAM_TIME, .initial = -1, INTO(type, at created_after)),             \
        ROW("created_before", PARAM_TIME, .initial = -1, INTO(type, at created_before))

static const struct param LIST_RUNS[] = {
    RUN_FILTER(QUERY, 0, struct list_runs_input, ),
    QUERY("id_prefix", PARAM_TEXT, INTO(struct list_runs_input, id_prefix)),
    QUERY("q", PARAM_TEXT, .min = 1, .max = RUN_SEARCH_MAX, INTO(struct list_runs_input, search)),
    QUERY("parent", PARAM_TEXT, INTO(struct list_runs_input, parent)),
    QUERY("rerun_of", PARAM_TEXT, INTO(struct list_runs_input, rerun_of)),
    QUERY_PAGE(struct list_runs_input),
};

static const struct param LIST_EVENTS[] = {
    PATH_UUID("run_id", ERR_RUN_NOT_FOUND, struct list_events_input, run_id),
    QUERY_LIMIT(struct list_events_input),
    QUERY("cursor", PARAM_POSITION, INTO(struct list_events_input, after)),
    LAST_EVENT_ID,
};

/* --- many runs --- */

static const char *control_name(unsigned action)
{
    static const char *const NAMES[] = {"cancel", "pause", "resume", "retry"};
    static_assert(ARRAY_LEN(NAMES) == CONTROL_COUNT, "one word per action");
    assert(action < CONTROL_COUNT);
    return NAMES[action];
}

static const struct param BULK_FILTER[] = {
    RUN_FILTER(BODY, NAME_MAX_LEN, struct bulk_runs_input, filter.),
};

static const struct param BULK[] = {
    BODY("action", PARAM_ENUM, .required = true, WORDS(control_name, CONTROL_COUNT),
         .initial = CONTROL_COUNT, INTO(struct bulk_runs_input, control.action)),
    BODY("filter", PARAM_OBJECT, .required = true, MEMBERS(BULK_FILTER)),
    BODY("dry_run", PARAM_BOOL, INTO(struct bulk_runs_input, dry_run)),
    BODY("cursor", PARAM_POSITION, .initial = INT64_MAX, INTO(struct bulk_runs_input, before)),
    BODY("reason", PARAM_TEXT, .max = TEXT_MAX, INTO(struct bulk_runs_input, control.reason)),
};

static enum err prepare_bulk(struct call *c, void *input)
{
    (void)c;
    ((struct bulk_runs_input *)input)->control.if_match = -1;
    return ERR_OK;
}

const struct route RUN_ROUTES[] = {
    {"POST", "/api/v1/workflows/{}/runs", MAY_RUN, .use_case = &UC_START_RUN,
     TAKES(struct start_run_input, START_RUN), .prepare = prepare_start},
    {"POST", "/api/v1/workflow-runs", MAY_RUN, ROUTE_SHOWS_NOW, &UC_START_RUN,
     TAKES(struct start_run_input, START_RUN_FLAT), .prepare = prepare_start,
     .endpoint = "flat_start"},
    {"GET", "/api/v1/runs", MAY_READ, .use_case = &UC_LIST_RUNS,
     TAKES(struct list_runs_input, LIST_RUNS)},
    {"GET", "/api/v1/runs/{}", MAY_READ, .use_case = &UC_GET_RUN, TAKES(struct run_input, GET_RUN)},
    {"GET", "/api/v1/runs/{}/why", MAY_READ, .use_case = &UC_WHY_RUN, TAKES(struct run_input, RUN)},
    {"GET", "/api/v1/runs/{}/events", MAY_READ, .use_case = &UC_LIST_EVENTS,
     TAKES(struct list_events_input, LIST_EVENTS), .stream = stream_run},
    {"POST", "/api/v1/runs/{}/cancel", MAY_RUN, .use_case = &UC_CONTROL_RUN,
     TAKES(struct control_run_input, CANCEL), .prepare = prepare_control,
     .variant = CONTROL_CANCEL},
    {"POST", "/api/v1/runs/{}/pause", MAY_RUN, .use_case = &UC_CONTROL_RUN,
     TAKES(struct control_run_input, CONTROL), .prepare = prepare_control,
     .variant = CONTROL_PAUSE},
    {"POST", "/api/v1/runs/{}/resume", MAY_RUN, .use_case = &UC_CONTROL_RUN,
     TAKES(struct control_run_input, CONTROL), .prepare = prepare_control,
     .variant = CONTROL_RESUME},
    {"POST", "/api/v1/runs/{}/retry", MAY_RUN, .use_case = &UC_CONTROL_RUN,
     TAKES(struct control_run_input, CONTROL), .prepare = prepare_control, .variant = CONTROL_RETRY,
     .endpoint = "retry"},
    {"POST", "/api/v1/runs/{}/rerun", MAY_RUN, .use_case = &UC_RERUN_RUN,
     TAKES(struct rerun_run_input, RERUN)},
    {"POST", "/api/v1/runs/{}/signals", MAY_RUN, .use_case = &UC_SIGNAL_RUN,
     TAKES(struct signal_run_input, SIGNAL), .prepare = prepare_signal},
    {"POST", "/api/v1/runs:bulk", MAY_RUN, .use_case = &UC_BULK_RUNS,
     TAKES(struct bulk_runs_input, BULK), .prepare = prepare_bulk},
    {.method = NULL},
};
