/* The rows of the template store: tenants, definitions with every type of step, runs in every
 * status, entities, schedules, webhooks, keys. */
#include "template.h"

#include "fuzz_server.h"

#include "base/limits.h"

#include <stdio.h>

/* One request; $name in its target and body stands for the latest text that an answer had for that
 * member. ' is written for ". */
struct line {
    const char *method;
    const char *target;
    const char *body;
    int64_t then_ms; /* how long time passes after it */
};

#define WORKFLOW(id, definition)                           \
    {                                                      \
        "PUT", "/api/v1/workflows/" id, "{" definition "}" \
    }
#define START(id, body)                                       \
    {                                                         \
        "POST", "/api/v1/workflows/" id "/runs", "{" body "}" \
    }
#define CLAIM(queue)                                                                     \
    {                                                                                    \
        "POST", "/api/v1/jobs/claim", "{'worker_id':'w','queues':['" queue "'],'max':1}" \
    }

static const struct line SCRIPT[] = {
    {"PUT", "/api/v1/tenants/acme",
     "{'name':'Acme','max_queued_runs':100,'run_retention_s':100000,"
     "'idempotency_retention_s':100000}"},
    {"PUT", "/api/v1/tenants/other", "{'max_concurrent_runs':1,'at_limit':'queue'}"},
    {"PUT", "/api/v1/tenants/acme", "{'weight':2}"},
    {"POST", "/api/v1/webhooks", "{'url':'https://hooks.test/a','events':['*']}"},
    {"POST", "/api/v1/keys", "{'tenant':'acme','role':'operator','label':'l'}"},

    WORKFLOW("task", "'steps':[{'name':'a','type':'task','handler':'h','queue':'q',"
                     "'retry':{'max_attempts':2,'backoff_ms':1000,'jitter':'none'}},"
                     "{'name':'b','type':'transform','output':{'v':'${steps.a.output}'}}]"),
    WORKFLOW("saga", "'timeout_s':600,'steps':[{'name':'a','type':'task','handler':'h','queue':'q',"
                     "'compensate':{'handler':'u','queue':'q'}},"
                     "{'name':'b','type':'task','handler':'h','queue':'q','on_error':'c'},"
                     "{'name':'c','type':'emit','event':'order.bad','payload':'${input}'}]"),
    WORKFLOW("map", "'steps':[{'name':'a','type':'task','handler':'h','queue':'q',"
                    "'for_each':'input.list','max_parallel':2,'input':'${item}'}]"),
    WORKFLOW("wait", "'steps':[{'name':'a','type':'wait_signal','signal':['go','stop'],"
                     "'timeout_ms':3600000},{'name':'b','type':'sleep','duration_ms':60000}]"),
    WORKFLOW("ask", "'steps':[{'name':'a','type':'approval','prompt':'Pay ${input.n}?',"
                    "'content':{'n':'${input.n}'},'approvers':{'count':2},'expires_s':3600,"
                    "'on_expire':'reject'}]"),
    WORKFLOW("call", "'steps':[{'name':'a','type':'http','retry':{'max_attempts':2},'request':{"
                     "'method':'POST','url':'https://api.test/${input.id}','body':{'x':1}}}]"),
    WORKFLOW("child", "'steps':[{'name':'a','type':'workflow','workflow_id':'task'},"
                      "{'name':'b','type':'task','handler':'h','queue':'q',"
                      "'when':'steps.a.output ~= nil'}]"),
    WORKFLOW("limited", "'concurrency':[{'limit':1,'at_limit':'queue'},"
                        "{'key':'input.k','limit':1,'at_limit':'queue'}],"
                        "'input_schema':{'type':'object','properties':{'k':{'type':'string'}}},"
                        "'steps':[{'name':'a','type':'task','handler':'h','queue':'slow'}]"),

    START("task", "'input':{'n':1},'idempotency_key':'k1','labels':{'team':'x'}"),
    CLAIM("q"),
    {"POST", "/api/v1/jobs/$job_id/complete", "{'lease_token':'$lease_token','output':{'x':1}}"},
    START("task", "'input':{'n':2},'idempotency_key':'k2','priority':5"),
    CLAIM("q"),
    {"POST", "/api/v1/jobs/$job_id/fail",
     "{'lease_token':'$lease_token','error':{'code':'BAD','message':'no','retryable':false}}"},
    START("saga", "'input':{'n':3}"),
    CLAIM("q"),
    {"POST", "/api/v1/jobs/$job_id/complete", "{'lease_token':'$lease_token','output':1}"},
    START("child", "'input':{}"),
    CLAIM("q"),
    START("map", "'input':{'list':[1,2,3]}"),
    START("wait", "'input':null"),
    {"POST", "/api/v1/runs/$run_id/signals", "{'name':'later','payload':1,'dedup_key':'d1'}"},
    START("call", "'input':{'id':'7'}"),
    START("ask", "'input':{'n':9}"),
    {"GET", "/api/v1/approvals"},
    {"POST", "/api/v1/approvals/$job_id/approve", "{'reason':'fine'}"},
    START("limited", "'input':{'k':'a'}"),
    START("limited", "'input':{'k':'a'}"),
    START("limited", "'input':{'k':'b'}"),
    START("task", "'start_at':'2026-02-01T00:00:00Z'"),
    START("task", "'input':{'n':4}"),
    {"POST", "/api/v1/runs/$run_id/pause", ""},
    START("wait", "'input':1"),
    {"POST", "/api/v1/runs/$run_id/cancel", "{'reason':'over'}"},
    {"PUT", "/api/v1/schedules/night",
     "{'workflow_id':'task','cron':'0 3 * * *','timezone':'Europe/Berlin','overlap':'skip'}"},

    {"PUT", "/api/v1/entity-types/cart",
     "{'queue':'ents','handler':'cart','rollover_events':3,'keep_generations':1}"},
    {"POST", "/api/v1/entities/cart/c1/signals", "{'name':'add','payload':1,'dedup_key':'e1'}"},
    {"POST", "/api/v1/entities/cart/c1/updates", "{'name':'sum','payload':2,'dedup_key':'u1'}"},
    CLAIM("ents"),
    {"POST", "/api/v1/jobs/$job_id/complete",
     "{'lease_token':'$lease_token','output':{'state':{'n':3},'results':[{'seq':2,'result':3}],"
     "'set_timers':[{'name':'idle','in_ms':3600000}],'start':[{'workflow_id':'task'}],"
     "'emit':[{'event':'cart.sum','payload':3}]}}"},
    {"POST", "/api/v1/entities/cart/c1/signals", "{'name':'add','payload':4,'dedup_key':'e2'}"},
    {"POST", "/api/v1/entities/cart/c2/signals", "{'name':'add','payload':5}", 5000},
    CLAIM("ents"),

    {"GET", "/api/v1/webhooks"},
    {"GET", "/api/v1/webhooks/$webhook_id/deliveries?limit=3"},
    {"GET", "/api/v1/runs?limit=200"},
    {"GET", "/api/v1/dead-letters"},
    {"GET", "/api/v1/keys"},
    {"GET", "/api/v1/idempotency-keys/k1"},
    {"GET", "/api/v1/audit?limit=2"},
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

/* With the names filled in. */
static void expand(const char *text, struct buf *out)
{
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        if (*at != '$' || !is_name_char(at[1])) {
            buf_put_char(out, (char)(*at == '\'' ? '"' : *at));
            continue;
        }
        struct str name = {at + 1, 0};
        while (is_name_char(name.ptr[name.len]))
            name.len++;
        struct str value = known_text(fuzz_server_known(), name, 0);
        if (value.ptr == NULL)
            (void)fprintf(stderr, "no answer has said %.*s yet\n", STR_ARG(name));
        assert(value.ptr != NULL);
        buf_put(out, value);
        at += name.len;
    }
    assert(buf_ok(out));
}

static void do_line(const struct line *line, const char *tenant)
{
    struct buf target, body;
    buf_init(&target, 4 * KIB);
    buf_init(&body, 16 * KIB);
    expand(line->target, &target);
    expand(line->body, &body);
    struct fuzz_request r =
        fuzz_request(line->method, buf_str(&target), buf_str(&body), str_of(tenant));
    struct fuzz_answer a = fuzz_ask(&r);
    if (a.status >= 400)
        (void)json_dumpf(a.json, stderr, 0);
    assert(a.status < 400);
    json_decref(a.json);
    buf_release(&body);
    buf_release(&target);
    fuzz_server_pass_ms(line->then_ms > 0 ? line->then_ms : 100);
}

void template_fill(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SCRIPT); i++)
        do_line(&SCRIPT[i], "acme");
    static const struct line OTHER[] = {
        WORKFLOW("task", "'steps':[{'name':'a','type':'task','handler':'h','queue':'q'}]"),
        START("task", "'idempotency_key':'k1'"),
        START("task", "'idempotency_key':'k2'"),
    };
    for (size_t i = 0; i < ARRAY_LEN(OTHER); i++)
        do_line(&OTHER[i], "other");
}
