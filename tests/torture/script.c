/* The requests of the torture of the server. */
#include "script.h"

#include "api/routes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define A "/api/v1"
#define RICH                                                                                    \
    "{'concurrency':[{'limit':20}],'input_schema':{'type':'array'},'steps':["                   \
    "{'name':'m','type':'task','handler':'h','for_each':'input','max_parallel':2,'queue':'q2'," \
    "'compensate':{'handler':'undo','queue':'q4','input':{'n':'${input}'}}},"                   \
    "{'name':'t','type':'transform','output':{'n':'${steps.m.output}'},'when':'true'},"         \
    "{'name':'e','type':'emit','event':'e','payload':[1]},"                                     \
    "{'name':'k','type':'workflow','workflow_id':'kid'},"                                       \
    "{'name':'c','type':'http','request':{'method':'GET','url':'http://r.test/'},"              \
    "'on_error':'mend'},{'name':'mend','type':'task','handler':'h','queue':'q3'}]}"
#define TASK "{'name':'a','type':'task','handler':'h','queue':'q'}"
#define GO "{'name':'z','type':'wait_signal','signal':'go','timeout_ms':86400000}"
#define CLAIM(queue) "{'worker_id':'w1','queues':['" queue "'],'lease_ms':600000}"
#define JOB "job=jobs/0/job_id lease=jobs/0/lease_token"

/* Most lines leave out most of their members. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

const struct script_line SCRIPT[] = {
    {"GET", "/healthz"},
    {"GET", "/readyz"},
    {"GET", "/metrics"},
    {"GET", "/openapi.json"},
    {"GET", "/"},
    {"GET", "/console"},
    {"GET", "/console/"},
    /* tenants, workflows */
    {"PUT", A "/tenants/t", .body = "{'name':'T','max_concurrent_runs':50,'at_limit':'queue'}"},
    {"PUT", A "/tenants/t",
     .body = "{'max_queued_runs':9,'rate_limit':{'per_second':500,'burst':500},'weight':2}"},
    {"GET", A "/tenants/t"},
    {"GET", A "/tenants?limit=1"},
    {"GET", A "/tenants/t/settings"},
    {"POST", A "/tenants/t/rollback", .body = "{}"},
    {"PUT", A "/workflows/w", "t", "{'steps':[" TASK "," GO "]}"},
    {"PUT", A "/workflows/kid", "t", "{'steps':[{'name':'a','type':'emit','event':'kid'}]}"},
    {"PUT", A "/workflows/rich", "t", RICH},
    {"PUT", A "/workflows/old", "t", "{'steps':[" TASK "]}"},
    {"GET", A "/workflows?limit=2", "t"},
    {"GET", A "/workflows/rich", "t"},
    {"GET", A "/workflows/w/versions", "t"},
    {"POST", A "/workflows/w/validate", "t", RICH},
    {"DELETE", A "/workflows/old", "t"},
    /* a run from its start to its end */
    {"POST", A "/workflows/w/runs", "t", "{'input':{'n':1.5},'labels':{'k':'v'},'priority':3}",
     "run=run_id"},
    {"GET", A "/runs/$run", "t"},
    {"GET", A "/runs/$run/why", "t"},
    {"POST", A "/jobs/claim", "t", CLAIM("q"), JOB},
    {"GET", A "/jobs/$job", "t"},
    {"POST", A "/jobs/$job/heartbeat", "t", "{'lease_token':'$lease','progress':{'done':0.5}}"},
    {"POST", A "/jobs/$job/release", "t", "{'lease_token':'$lease'}"},
    {"POST", A "/jobs/$job/claim", "t", "{'worker_id':'w2','lease_ms':600000}",
     "lease=lease_token"},
    {"POST", A "/jobs/$job/complete", "t", "{'lease_token':'$lease','output':{'ok':true}}"},
    {"POST", A "/runs/$run/pause", "t", "{}"},
    {"POST", A "/runs/$run/resume", "t", "{}"},
    {"POST", A "/runs/$run/signals", "t", "{'name':'go','payload':{'v':1},'dedup_key':'d'}"},
    {"GET", A "/runs/$run/events", "t"},
    {"POST", A "/runs/$run/rerun", "t", "{'from_step':'z'}", "again=run_id"},
    {"POST", A "/runs/$again/cancel", "t", "{'reason':'r'}"},
    {"GET", A "/runs?status=cancelled&label=k:v", "t"},
    /* every kind of step */
    {"POST", A "/workflow-runs", "t", "{'definitionId':'rich','input':[1,2]}", "run=run_id"},
    {"POST", A "/jobs/claim", "t", "{'worker_id':'w1','queues':['q2'],'max':2,'lease_ms':600000}",
     "job=jobs/0/job_id lease=jobs/0/lease_token job2=jobs/1/job_id lease2=jobs/1/lease_token"},
    {"POST", A "/jobs:complete", "t",
     "{'items':[{'job_id':'$job','lease_token':'$lease','output':1},"
     "{'job_id':'$job2','lease_token':'$lease2','output':2}],"
     "'claim':{'worker_id':'w1','queues':['q3'],'lease_ms':600000}}",
     .calls_out = true},
    {"POST", A "/jobs/claim", "t", CLAIM("q3"), JOB, .wait_ms = 60000},
    {"POST", A "/jobs/$job/fail", "t", "{'lease_token':'$lease','error':{'code':'X'}}"},
    {"POST", A "/jobs/claim", "t", "{'worker_id':'w1','queues':['q4'],'max':1,'lease_ms':600000}",
     JOB},
    {"POST", A "/jobs/$job/complete", "t", "{'lease_token':'$lease'}"},
    {"GET", A "/queues", "t"},
    {"GET", A "/workers", "t"},
    {"POST", A "/workflows/w/runs", "t", "{'input':{'sad':true}}", "run=run_id"},
    {"POST", A "/jobs/claim", "t", CLAIM("q"), JOB},
    {"POST", A "/jobs/$job/fail", "t", "{'lease_token':'$lease','error':{'code':'X'}}"},
    {"GET", A "/dead-letters", "t"},
    {"POST", A "/dead-letters/$job/retry", "t", "{}"},
    {"POST", A "/jobs/claim", "t", CLAIM("q"), JOB},
    {"POST", A "/jobs/$job/fail", "t", "{'lease_token':'$lease','error':{'code':'X'}}"},
    {"DELETE", A "/dead-letters/$job", "t"},
    {"POST", A "/runs/$run/retry", "t", "{}"},
    {"POST", A "/runs:bulk", "t", "{'action':'cancel','filter':{'workflow_id':'w'}}"},
    /* a durable function */
    {"PUT", A "/workflows/function", "t",
     "{'steps':[{'name':'f','type':'task','handler':'h','queue':'qf'}]}"},
    {"POST", A "/workflows/function/runs", "t", "{}", "run=run_id"},
    {"POST", A "/jobs/claim", "t", CLAIM("qf"), JOB},
    {"POST", A "/jobs/$job/checkpoints", "t", "{'lease_token':'$lease','name':'a','output':[1]}"},
    {"POST", A "/jobs/$job/checkpoints", "t",
     "{'lease_token':'$lease','name':'b','error':{'code':'X'}}"},
    {"POST", A "/jobs/$job/suspend", "t", "{'lease_token':'$lease','signal':'go'}"},
    {"GET", A "/runs/$run/why", "t"},
    {"POST", A "/runs/$run/signals", "t", "{'name':'go','dedup_key':'f'}"},
    {"POST", A "/jobs/claim", "t", CLAIM("qf"), JOB},
    {"POST", A "/jobs/$job/suspend", "t",
     "{'lease_token':'$lease','approval':{'prompt':'p','content':[1],'expires_s':86400}}",
     "approval=approval_id"},
    {"GET", A "/jobs/$job", "t"},
    {"POST", A "/approvals/$approval/reject", "t", "{}"},
    {"POST", A "/jobs/claim", "t", CLAIM("qf"), JOB},
    {"POST", A "/jobs/$job/complete", "t", "{'lease_token':'$lease'}"},
    /* approvals */
    {"PUT", A "/workflows/asks", "t",
     "{'steps':[{'name':'pay','type':'task','handler':'h','requires_approval':{'prompt':"
     "'${run.id}?','content':[1],'expires_s':86400,'remind_every_s':43200}}]}"},
    {"POST", A "/workflows/asks/runs", "t", "{}", "approval=run/steps/0/job_id"},
    {"GET", A "/approvals", "t"},
    {"GET", A "/approvals/$approval", "t"},
    {"POST", A "/approvals/$approval/approve", "t", "{'reason':'r','edited':[2]}"},
    {"POST", A "/workflows/asks/runs", "t", "{}", "approval=run/steps/0/job_id"},
    {"POST", A "/approvals/$approval/reject", "t", "{'reason':'no'}"},
    {"GET", A "/approvals/analytics", "t"},
    /* figures */
    {"GET", A "/stats?minutes=5", "t"},
    {"GET", A "/admission", "t"},
    {"GET", A "/queues?without_workers=true", "t"},
    {"GET", A "/approvals?order=oldest", "t"},
    {"GET", A "/runs?q=k=v&status=running,failed", "t"},
    /* schedules */
    {"PUT", A "/schedules/s", "t",
     "{'workflow_id':'w','cron':'0 3 * * 1-5','timezone':'Europe/Berlin','input':{'n':1}}"},
    {"GET", A "/schedules", "t"},
    {"GET", A "/schedules/s", "t"},
    {"POST", A "/schedules/s/trigger", "t", "{}"},
    {"DELETE", A "/schedules/s", "t"},
    /* entities */
    {"PUT", A "/entity-types/rewards", "t",
     "{'queue':'eq','handler':'h','dedup_window_s':86400,'rollover_events':5,'max_inbox':9,'max_"
     "batch'"
     ":1}"},
    {"GET", A "/entity-types", "t"},
    {"GET", A "/entity-types/rewards", "t"},
    {"POST", A "/entities/rewards/c1/signals", "t",
     "{'name':'n','payload':{'a':1},'dedup_key':'k'}"},
    {"POST", A "/entities/rewards/c1/updates?wait_ms=0", "t", "{'name':'ask','dedup_key':'u'}"},
    {"POST", A "/jobs/claim", "t", CLAIM("eq"), JOB},
    {"POST", A "/jobs/$job/complete", "t",
     "{'lease_token':'$lease','output':{'state':{'n':1},'set_timers':[{'name':'a','in_ms':86400000}"
     "],"
     "'emit':[{'event':'told','payload':1}],'start':[{'workflow_id':'w','input':1,"
     "'idempotency_key':'once'}]}}"},
    {"POST", A "/jobs/claim", "t", CLAIM("eq"), JOB},
    {"POST", A "/jobs/$job/complete", "t",
     "{'lease_token':'$lease','output':{'state':{'n':2},'results':[{'seq':2,'result':1}]}}"},
    {"GET", A "/entities/rewards/c1/updates/2", "t"},
    {"GET", A "/entities/rewards/c1", "t"},
    {"GET", A "/entities/rewards/c1/events", "t"},
    {"GET", A "/entities/rewards/c1/inbox", "t"},
    {"GET", A "/entities/rewards/c1/generations", "t"},
    {"GET", A "/entities/rewards", "t"},
    {"GET", A "/entity-types/rewards/stats", "t"},
    {"PUT", A "/entity-types/rewards", "t", "{'queue':'eq','handler':'h','version':2}"},
    {"POST", A "/entities/rewards/c1/migrate", "t", "{'version':2}"},
    {"POST", A "/jobs/claim", "t", CLAIM("eq"), JOB},
    {"POST", A "/jobs/$job/complete", "t", "{'lease_token':'$lease','output':{'state':{'n':3}}}"},
    {"DELETE", A "/entities/rewards/c1", "t"},
    /* webhooks */
    {"POST", A "/webhooks", "t", "{'url':'http://r.test/','events':['run.*','job.failed']}",
     "hook=id"},
    {"POST", A "/webhooks/$hook/test", "t", "{}"},
    {"GET", A "/webhooks", "t"},
    {"GET", A "/webhooks/$hook", "t"},
    {"PUT", A "/webhooks/$hook", "t", "{'events':['*'],'description':'d'}"},
    {"GET", A "/webhooks/$hook/deliveries", "t", .keep = "delivery=items/0/id", .wait_ms = 2000},
    {"POST", A "/webhooks/$hook/deliveries/$delivery/redeliver", "t", "{}"},
    {"POST", A "/webhooks/$hook/rotate", "t", "{'old_secret_s':60}"},
    {"DELETE", A "/webhooks/$hook", "t"},
    /* what goes to the bus */
    {"PUT", A "/workflows/large", "t",
     "{'steps':[{'name':'l','type':'emit','event':'too.large'}," TASK "]}"},
    {"POST", A "/workflows/large/runs", "t", "{}"},
    {"GET", A "/outbox", "t", .keep = "message=items/0/message_id", .wait_ms = 2000},
    {"POST", A "/outbox/$message/retry", "t", "{}"},
    {"GET", A "/events", "t"},
    /* keys, the audit trail, the doctor */
    {"POST", A "/keys", .body = "{'tenant':'t','role':'viewer','label':'l'}",
     .keep = "credential=id secret=key"},
    {"GET", A "/keys"},
    {"GET", A "/me", "t"},
    {"GET", A "/sign-in"},
    {"POST", A "/sessions", .body = "{'key':'$secret'}"},
    {"DELETE", A "/sessions", "t"},
    {"GET", A "/oidc-login", .status = 404}, /* there is no provider */
    {"GET", A "/oidc-callback", .status = 404},
    {"DELETE", A "/keys/$credential", "t"},
    {"POST", A "/workflows/w/runs", "t", "{}"},
    {"GET", A "/idempotency-keys/$key", "t"},
    {"DELETE", A "/idempotency-keys/$key", "t"},
    {"GET", A "/audit", "t"},
    {"GET", A "/audit/verify", "t"},
    {"GET", A "/audit/export", "t"},
    {"GET", A "/doctor"},
    {"GET", A "/cluster"},
    {"POST", A "/doctor/repair"},
    {"GET", A "/backup"},
};
const size_t SCRIPT_COUNT = ARRAY_LEN(SCRIPT);

/* --- what answers gave --- */

enum { NAMES_MAX = 16, VALUE_MAX = 128 };

static struct {
    char name[16];
    char value[VALUE_MAX];
} kept[NAMES_MAX];

static const char *value_of(struct str name)
{
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (str_eq(str_of(kept[i].name), name))
            return kept[i].value;
    }
    (void)fprintf(stderr, "torture: no answer gave $%.*s\n", STR_ARG(name));
    abort();
}

void script_fill(const char *text, struct buf *ret)
{
    buf_init(ret, SIZE_MAX);
    while (*text != '\0') {
        size_t len = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
        if (*text == '$' && text[1] != '{') {
            buf_put(ret, str_of(value_of((struct str){text + 1, len})));
            text += 1 + len;
        } else {
            buf_put_char(ret, *text == '\'' ? '"' : *text);
            text++;
        }
    }
    buf_put_char(ret, '\0');
    assert(buf_ok(ret));
}

static const json_t *at_path(const json_t *json, char *path)
{
    char *rest = NULL;
    for (char *part = strtok_r(path, "/", &rest); part != NULL; part = strtok_r(NULL, "/", &rest))
        json = json_is_array(json) ? json_array_get(json, strtoul(part, NULL, 10))
                                   : json_object_get(json, part);
    return json;
}

void script_keep_value(const char *name, const char *value)
{
    size_t i = 0;
    while (i < NAMES_MAX && kept[i].name[0] != '\0' && strcmp(kept[i].name, name) != 0)
        i++;
    assert(i < NAMES_MAX && strlen(value) < VALUE_MAX);
    (void)snprintf(kept[i].name, sizeof(kept[i].name), "%s", name);
    (void)snprintf(kept[i].value, sizeof(kept[i].value), "%s", value);
}

void script_keep(const struct script_line *line, struct str answer)
{
    if (line->keep == NULL)
        return;
    json_t *json = json_loadb(answer.ptr, answer.len, 0, NULL);
    char *keep = strdup(line->keep);
    char *rest = NULL;
    assert(keep != NULL);
    for (char *each = strtok_r(keep, " ", &rest); each != NULL; each = strtok_r(NULL, " ", &rest)) {
        char *path = strchr(each, '=');
        *path++ = '\0';
        const char *value = json_string_value(at_path(json, path));
        if (value == NULL) {
            (void)fprintf(stderr, "torture: line %d, %s %s, gives no %s: %.*s\n",
                          (int)(line - SCRIPT), line->method, line->target, each, STR_ARG(answer));
            abort();
        }
        script_keep_value(each, value);
    }
    free(keep);
    json_decref(json);
}

/* --- coverage --- */

static bool is_line_of(const struct script_line *line, const struct route *route)
{
    struct str params[PARAMS_MAX];
    struct str path;
    struct str query;
    (void)str_cut(str_of(line->target), '?', &path, &query);
    return route_find(str_of(line->method), path, false, params) == route;
}

const char *script_lacks(void)
{
    for (const struct route *route = route_next(NULL); route != NULL; route = route_next(route)) {
        size_t i = 0;
        while (i < SCRIPT_COUNT && !is_line_of(&SCRIPT[i], route))
            i++;
        if (i == SCRIPT_COUNT)
            return route->pattern;
    }
    return NULL;
}
