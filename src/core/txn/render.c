/* How rows look to clients. */
#include "core/txn/render.h"

#include "base/limits.h"
#include "core/txn/job_row.h"

void json_put_time(struct buf *out, int64_t ms)
{
    buf_put_char(out, '"');
    buf_put_time(out, ms);
    buf_put_char(out, '"');
}

void json_put_uuid(struct buf *out, struct uuid id)
{
    char *at = buf_extend(out, UUID_TEXT_LEN + 2);
    if (at == NULL)
        return;
    at[0] = at[UUID_TEXT_LEN + 1] = '"';
    uuid_put(at + 1, id);
}

void json_add_hash(struct json_out *o, const char *name, const struct sha256 *hash)
{
    json_add_name(o, name);
    buf_put_char(o->buf, '"');
    buf_put_hex(o->buf, hash->bytes, SHA256_LEN);
    buf_put_char(o->buf, '"');
}

const char *step_status_name(const struct step_view *view)
{
    static const char *const NAMES[] = {"pending", "running",   "succeeded", "failed",
                                        "skipped", "cancelled", "timed_out", "denied"};
    static_assert(ARRAY_LEN(NAMES) == STEP_STATUS_COUNT, "one name per status");
    if (view->has_job && view->state->status == STEP_IS_ACTIVE)
        return job_state_name(view->job.state);
    return NAMES[view->state->status];
}

static const char *undo_name(enum undo_status undo)
{
    static const char *const NAMES[] = {"", "running", "succeeded", "failed"};
    static_assert(ARRAY_LEN(NAMES) == UNDO_STATUS_COUNT, "one name per status");
    return NAMES[undo];
}

static void render_items(struct json_out *o, const struct step_state *s)
{
    json_open(o, "items", '{');
    json_add_int(o, "total", s->items);
    json_add_int(o, "begun", s->begun);
    json_add_int(o, "over", s->over);
    json_add_int(o, "failed", s->failed);
    json_close(o, '}');
}

static void render_step(struct json_out *o, const struct step_def *def,
                        const struct step_view *view)
{
    const struct job *j = view->has_job ? &view->job : NULL;
    struct str output = j != NULL ? j->output : view->output;
    struct str error = j != NULL ? j->error : view->error;
    /* An answer has a ceiling; what does not fit is shown by GET /jobs/{id}. */
    bool fits = o->buf->len + output.len + error.len <= PAGE_BYTES_MAX;
    json_open(o, NULL, '{');
    json_add_text(o, "name", def->name);
    json_add_text(o, "type", str_of(step_type_name(def->type)));
    json_add_text(o, "status", str_of(step_status_name(view)));
    json_add_int(o, "attempt", j != NULL ? j->attempt : 0);
    if (j != NULL)
        json_add_uuid(o, "job_id", j->id);
    else
        json_add_null(o, "job_id");
    json_add_raw(o, "output", fits ? output : STR_NONE);
    json_add_raw(o, "error", fits ? error : STR_NONE);
    if (!fits)
        json_add_bool(o, "left_out", true);
    json_add_time(o, "started_at", j != NULL ? j->started_at : -1);
    json_add_time(o, "finished_at", j != NULL ? j->finished_at : -1);
    if (view->state->is_map)
        render_items(o, view->state);
    if (j != NULL && !uuid_is_nil(j->child))
        json_add_uuid(o, "child_run_id", j->child);
    if (view->state->undo != UNDO_NONE)
        json_add_text(o, "compensation", str_of(undo_name(view->state->undo)));
    json_close(o, '}');
}

void render_run_open(struct json_out *o, const char *name, const struct run *r,
                     const struct definition *def, const struct step_view *steps)
{
    json_open(o, name, '{');
    json_add_uuid(o, "id", r->id);
    json_add_text(o, "workflow_id", r->workflow_id);
    json_add_int(o, "workflow_version", r->workflow_version);
    json_add_text(o, "status", str_of(run_status_name(r->status)));
    json_add_int(o, "version", r->version);
    json_add_int(o, "priority", r->priority);
    json_add_raw(o, "input", r->input);
    json_add_raw(o, "state", r->state);
    json_add_raw(o, "output", r->output);
    json_add_raw(o, "error", r->error);
    json_add_raw(o, "labels", r->labels);
    if (steps != NULL) {
        json_open(o, "steps", '[');
        for (size_t i = 0; i < def->step_count; i++)
            render_step(o, &def->steps[i], &steps[i]);
        json_close(o, ']');
    }
    json_add_text(o, "created_by", r->created_by);
    json_add_time(o, "created_at", r->created_at);
    json_add_time(o, "started_at", r->started_at);
    json_add_time(o, "finished_at", r->finished_at);
    if (r->start_at >= 0)
        json_add_time(o, "start_at", r->start_at);
    if (r->deadline_at >= 0)
        json_add_time(o, "deadline_at", r->deadline_at);
    if (!uuid_is_nil(r->rerun_of))
        json_add_uuid(o, "rerun_of", r->rerun_of);
}

void render_run(struct json_out *o, const char *name, const struct run *r,
                const struct definition *def, const struct step_view *steps)
{
    render_run_open(o, name, r, def, steps);
    json_close(o, '}');
}

void render_event(struct json_out *o, const struct event *event)
{
    json_open(o, NULL, '{');
    json_add_int(o, "seq", event->seq);
    json_add_text(o, "type", event->type);
    json_add_time(o, "at", event->at);
    json_add_raw(o, "data", event->data);
    json_close(o, '}');
}

static void render_list(struct json_out *o, const char *name, const struct json *list)
{
    json_add_name(o, name);
    if (list != NULL)
        json_write_plain(o->buf, list);
    else
        buf_put(o->buf, STR("null"));
}

void render_approvers(struct json_out *o, const char *name, const struct approvers *approvers)
{
    json_open(o, name, '{');
    render_list(o, "roles", approvers->roles);
    render_list(o, "users", approvers->users);
    json_close(o, '}');
}

void render_tenant(struct json_out *o, const struct tenant *t)
{
    json_open(o, NULL, '{');
    json_add_text(o, "id", t->id);
    tenant_put_settings(o, t);
    json_add_int(o, "settings_version", t->settings_version);
    json_add_int(o, "active_runs", t->active_runs);
    json_add_int(o, "queued_runs", t->queued_runs);
    json_add_time(o, "created_at", t->created_at);
    json_add_time(o, "updated_at", t->updated_at);
    json_close(o, '}');
}

void render_key(struct json_out *o, const struct api_key *key, struct str secret)
{
    json_open(o, NULL, '{');
    json_add_uuid(o, "id", key->id);
    if (secret.ptr != NULL)
        json_add_text(o, "key", secret);
    json_add_text(o, "prefix", key->prefix);
    json_add_text(o, "tenant", key->tenant_id);
    json_add_text(o, "role", str_of(role_name(key->role)));
    json_add_text_or_null(o, "label", key->label);
    json_add_text(o, "created_by", key->created_by);
    json_add_time(o, "created_at", key->created_at);
    json_add_time(o, "last_used_at", key->last_used_at);
    json_add_time(o, "revoked_at", key->revoked_at);
    json_close(o, '}');
}

void render_workflow_head(struct json_out *o, const struct workflow_head *head)
{
    json_open(o, NULL, '{');
    json_add_text(o, "id", head->id);
    json_add_int(o, "version", head->latest_version);
    json_add_text_or_null(o, "description", head->description);
    json_add_bool(o, "archived", head->archived_at >= 0);
    json_add_time(o, "archived_at", head->archived_at);
    json_add_time(o, "created_at", head->created_at);
    json_add_time(o, "updated_at", head->updated_at);
    json_close(o, '}');
}

void render_idem_record(struct json_out *o, const struct idem_record *r)
{
    struct str method;
    struct str route;
    (void)str_cut(r->route, ' ', &method, &route);
    json_open(o, NULL, '{');
    json_add_text(o, "key", r->key);
    json_add_text(o, "method", method);
    json_add_text(o, "route", route);
    json_add_hash(o, "fingerprint", &r->fingerprint);
    if (r->has_run)
        json_add_uuid(o, "run_id", r->run_id);
    else
        json_add_null(o, "run_id");
    json_add_int(o, "status", r->status);
    json_add_int(o, "replays", r->replays);
    json_add_int(o, "mismatches", r->mismatches);
    json_add_time(o, "created_at", r->created_at);
    json_add_time(o, "last_replayed_at", r->last_replayed_at);
    json_add_time(o, "expires_at", r->expires_at);
    json_close(o, '}');
}

static void render_labels(struct json_out *o, const struct job *j, bool approved)
{
    json_open(o, "labels", '{');
    if (approved) {
        json_add_name(o, "bus_msg_id");
        buf_put(o->buf, STR("\"approval:"));
        buf_put_uuid(o->buf, j->id);
        buf_put_char(o->buf, '"');
    }
    json_close(o, '}');
}

void render_job(struct json_out *o, const struct job *j, const struct run *run,
                const struct definition *def, bool approved)
{
    const struct step_def *step = job_step(def, j);
    json_open(o, NULL, '{');
    json_add_uuid(o, "job_id", j->id);
    json_add_text(o, "kind", STR("step"));
    json_add_uuid(o, "run_id", run->id);
    json_add_text(o, "workflow_id", run->workflow_id);
    json_add_text(o, "step", step->name);
    bool asks = job_is_question(j); /* for a job of a type that has none */
    struct str handler = j->undo ? step->undo_handler : step->handler;
    json_add_text(o, "type", asks ? STR("approval") : str_of(step_type_name(step->type)));
    json_add_text(o, "state", str_of(job_state_name(j->state)));
    json_add_text(o, "queue", asks ? STR("") : j->queue);
    json_add_text_or_null(o, "handler", asks ? STR_NONE : handler);
    json_add_int(o, "attempt", j->attempt);
    if (step->for_each != NULL && !j->undo)
        json_add_int(o, "item", j->item);
    if (j->undo)
        json_add_bool(o, "compensates", true);
    if (j->note.ptr != NULL)
        json_add_raw(o, "progress", j->note);
    if (!uuid_is_nil(j->child))
        json_add_uuid(o, "child_run_id", j->child);
    render_labels(o, j, approved);
    json_add_text_or_null(o, "worker_id", j->worker);
    json_add_time(o, "due_at", j->due_at);
    json_add_raw(o, "output", j->output);
    json_add_raw(o, "error", j->error);
    json_add_time(o, "created_at", j->created_at);
    json_add_time(o, "started_at", j->started_at);
    json_add_time(o, "finished_at", j->finished_at);
}
