/* pawl demo orders: a shop whose orders are started and worked on by one process. */
#include "cli/demo/demo.h"

#include "base/env.h"
#include "base/limits.h"

enum {
    LAST_WAIT_MS = 2000, /* for the work that is left when no more orders come */
    EVERY_MS_DEFAULT = 3000,
    DECLINED_PERCENT = 30, /* of cards, at each attempt */
    LOST_PERCENT = 10,     /* of parcels */
    AMOUNT_MAX = 200,
    WORK_MS_MAX = 400, /* so that a person can see a step running */
};

const struct option OPTIONS_DEMO_ORDERS[] = {
    {.name = "every-ms",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 10,
     .unit = "milliseconds",
     .help = "Start an order this often (default 3000)"},
    {.name = "count",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .help = "Start this many orders, and stop when there is nothing left to do"},
    {.name = NULL},
};

static const char WORKFLOW[] =
    "{\"description\":\"The living example of pawl dev --demo\",\"steps\":["
    "{\"name\":\"reserve\",\"type\":\"task\",\"queue\":\"demo\",\"handler\":\"stock.reserve\","
    "\"compensate\":{\"handler\":\"stock.release\"}},"
    "{\"name\":\"charge\",\"type\":\"task\",\"queue\":\"demo\",\"handler\":\"cards.charge\","
    "\"input\":{\"amount\":\"${input.amount}\"},"
    "\"retry\":{\"max_attempts\":6,\"backoff_ms\":500},"
    "\"compensate\":{\"handler\":\"cards.refund\"}},"
    "{\"name\":\"check\",\"type\":\"approval\",\"when\":\"input.amount > 180\","
    "\"prompt\":\"Ship an order of ${input.amount}?\"},"
    "{\"name\":\"ship\",\"type\":\"task\",\"queue\":\"demo\",\"handler\":\"parcels.send\"}]}";

static uint32_t dice(uint32_t sides)
{
    uint32_t thrown = 0;
    env_random(&ENV_SYSTEM, &thrown, sizeof(thrown));
    return thrown % sides;
}

/* Sends a request whose body is in s->body. */
static enum cli_exit call(struct session *s, const char *method, const char *path)
{
    session_path(s, path, "", "");
    return session_call_silently(s, method);
}

static void begin_body(struct session *s)
{
    buf_clear(&s->body);
    s->out = json_out_to(&s->body);
    json_open(&s->out, NULL, '{');
}

static enum cli_exit apply_workflow(struct session *s)
{
    buf_clear(&s->body);
    buf_put(&s->body, str_of(WORKFLOW));
    return call(s, "PUT", "/api/v1/workflows/demo-order");
}

static enum cli_exit start_order(struct session *s)
{
    begin_body(s);
    json_open(&s->out, "input", '{');
    json_add_int(&s->out, "amount", 1 + dice(AMOUNT_MAX));
    json_close(&s->out, '}');
    json_close(&s->out, '}');
    enum cli_exit rc = call(s, "POST", "/api/v1/workflows/demo-order/runs");
    if (rc == CLI_DONE) {
        fputs("order ", stdout);
        value_print(stdout, json_object_get(s->answer, "run_id"));
        fputs(" started\n", stdout);
        (void)fflush(stdout);
    }
    return rc;
}

/* Why this attempt fails; NULL: it does not. */
static const char *mishap(const char *handler)
{
    if (strcmp(handler, "cards.charge") == 0 && dice(100) < DECLINED_PERCENT)
        return "the card was declined";
    if (strcmp(handler, "parcels.send") == 0 && dice(100) < LOST_PERCENT)
        return "the parcel was lost";
    return NULL;
}

static enum cli_exit do_job(struct session *s, const json_t *job)
{
    char path[96];
    const char *handler = json_string_value(json_object_get(job, "handler"));
    const char *id = json_string_value(json_object_get(job, "job_id"));
    const char *why = mishap(handler != NULL ? handler : "");
    client_pause(dice(WORK_MS_MAX));
    begin_body(s);
    json_add_text(&s->out, "lease_token", json_str(json_object_get(job, "lease_token")));
    if (why != NULL) {
        json_open(&s->out, "error", '{');
        json_add_text(&s->out, "code", STR("BAD_LUCK"));
        json_add_text(&s->out, "message", str_of(why));
        json_close(&s->out, '}');
    } else {
        json_add_raw(&s->out, "output", STR("{\"done\":true}"));
    }
    json_close(&s->out, '}');
    (void)snprintf(path, sizeof(path), "/api/v1/jobs/%s/%s", id != NULL ? id : "",
                   why != NULL ? "fail" : "complete");
    return call(s, "POST", path);
}

/* Waits for work and does it; *ret_any: there was something to do. */
static enum cli_exit work(struct session *s, int64_t wait_ms, bool *ret_any)
{
    size_t i;
    json_t *job;
    begin_body(s);
    json_add_text(&s->out, "worker_id", STR("demo"));
    json_add_raw(&s->out, "queues", STR("[\"demo\"]"));
    json_add_int(&s->out, "max", 4);
    json_add_int(&s->out, "wait_ms", wait_ms);
    json_close(&s->out, '}');
    s->wait_ms = wait_ms;
    enum cli_exit rc = call(s, "POST", "/api/v1/jobs/claim");
    s->wait_ms = 0;
    if (rc != CLI_DONE)
        return rc;
    json_t *jobs = json_incref(json_object_get(s->answer, "jobs"));
    *ret_any = json_array_size(jobs) > 0;
    json_array_foreach (jobs, i, job) {
        rc = do_job(s, job);
        /* A job that was cancelled or taken away is not this shop's concern. */
        if (rc == CLI_UNREACHABLE)
            break;
        rc = CLI_DONE;
    }
    json_decref(jobs);
    return rc;
}

enum cli_exit demo_orders(struct session *s)
{
    int64_t every_ms = options_number(&s->opt, "every-ms", EVERY_MS_DEFAULT);
    int64_t left = options_number(&s->opt, "count", INT64_MAX);
    int64_t next_ms = 0;
    bool busy = true;
    enum cli_exit rc = apply_workflow(s);
    while (rc == CLI_DONE && (left > 0 || busy)) {
        int64_t now = env_mono_ms(&ENV_SYSTEM);
        if (left > 0 && now >= next_ms) {
            rc = start_order(s);
            next_ms = now + every_ms;
            left--;
        }
        if (rc == CLI_DONE)
            rc = work(s, left > 0 ? MIN(MAX(next_ms - now, 1), CLAIM_WAIT_MS_MAX) : LAST_WAIT_MS,
                      &busy);
    }
    return rc;
}
