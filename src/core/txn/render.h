/* How rows look to clients: the JSON of runs, jobs, tenants and the rest, in one place. */
#ifndef PAWL_CORE_TXN_RENDER_H
#define PAWL_CORE_TXN_RENDER_H

#include "base/json.h"
#include "domain/progress.h"
#include "domain/tenant.h"
#include "domain/workflow/definition.h"
#include "store/idempotency.h"
#include "store/keys.h"
#include "store/run/events.h"
#include "store/run/jobs.h"
#include "store/run/runs.h"
#include "store/workflows.h"

void json_put_time(struct buf *out, int64_t ms);
void json_put_uuid(struct buf *out, struct uuid id);

/* Inline for the same reason as those of json_out.h. */
ALWAYS_INLINE void json_add_time(struct json_out *o, const char *name, int64_t ms) /* < 0: null */
{
    json_add_name(o, name);
    if (ms < 0)
        buf_put(o->buf, STR("null"));
    else
        json_put_time(o->buf, ms);
}

ALWAYS_INLINE void json_add_uuid(struct json_out *o, const char *name, struct uuid id)
{
    json_add_name(o, name);
    json_put_uuid(o->buf, id);
}

void json_add_hash(struct json_out *o, const char *name, const struct sha256 *hash);

/* How far each step of a run is, for showing it. */
struct step_view {
    const struct step_state *state;
    bool has_job; /* of a step without for_each */
    struct job job;
    struct str output; /* of a step with for_each; ptr NULL: none yet, or too large to show */
    struct str error;  /* of a step with for_each: the first of its items' */
};

/* A step's status as clients see it: that of its job where it has just one. */
const char *step_status_name(const struct step_view *view);

/* `steps` has def->step_count elements, or is NULL for a list, which shows no steps. */
void render_run(struct json_out *o, const char *name, const struct run *run,
                const struct definition *def, const struct step_view *steps);
/* The same without the end of the object. */
void render_run_open(struct json_out *o, const char *name, const struct run *run,
                     const struct definition *def, const struct step_view *steps);
void render_event(struct json_out *o, const struct event *event);
/* Who may decide; a list that is not there is null. */
void render_approvers(struct json_out *o, const char *name, const struct approvers *approvers);
void render_tenant(struct json_out *o, const struct tenant *t);
void render_key(struct json_out *o, const struct api_key *key, struct str secret);
void render_workflow_head(struct json_out *o, const struct workflow_head *head);
void render_idem_record(struct json_out *o, const struct idem_record *record);
/* `approved`: a person approved the job, and that was published under a stable id. The object stays
 * open, for attempts_show(). */
void render_job(struct json_out *o, const struct job *job, const struct run *run,
                const struct definition *def, bool approved);

#endif
