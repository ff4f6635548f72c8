/* The messages that the relay publishes. */
#include "outbound/relay_message.h"

#include "bus/subject.h"
#include "core/txn/job_row.h"
#include "core/txn/render.h"

enum {
    SUBJECT_MAX = 3 * (TENANT_ID_MAX + NAME_MAX_LEN) + 16, /* every character written as three */
    OFFER_MAX = 8 * KIB,
};

struct relay_message *relay_message_new(struct str subject, struct str body)
{
    struct relay_message *m = calloc(1, sizeof(*m) + subject.len + body.len);
    if (m == NULL)
        return NULL;
    if (subject.len > 0)
        memcpy(m->text, subject.ptr, subject.len);
    if (body.len > 0)
        memcpy(m->text + subject.len, body.ptr, body.len);
    m->subject = (struct str){m->text, subject.len};
    m->body = (struct str){m->text + subject.len, body.len};
    m->job = -1;
    return m;
}

/* --- events --- */

enum err relay_message_of_event(struct event_json *json, const struct event_source *source,
                                const struct event *event, struct relay_message **ret)
{
    enum err e = event_json_fill(json, source, event);
    bool unpublishable = e == ERR_INTERNAL;
    if (unpublishable) {
        struct event bare = {.seq = event->seq, .at = event->at, .type = STR("event"), .job = -1};
        e = event_json_fill(json, source, &bare);
    }
    if (e != ERR_OK)
        return e;
    struct buf subject;
    buf_init(&subject, SUBJECT_MAX);
    buf_put(&subject, STR("pawl."));
    subject_put_word(&subject, source->tenant);
    buf_put_char(&subject, '.');
    subject_put_words(&subject, str_of(json->type));
    struct relay_message *m = NULL;
    if (buf_ok(&subject))
        m = relay_message_new(buf_str(&subject), buf_str(&json->body));
    buf_release(&subject);
    if (m == NULL)
        return ERR_NO_MEMORY;
    m->seq = event->seq;
    m->at = event->at;
    m->job = event->job;
    m->unpublishable = unpublishable;
    memcpy(m->id, json->id, sizeof(json->id));
    memcpy(m->type, json->type, sizeof(m->type));
    *ret = m;
    return ERR_OK;
}

/* --- offers --- */

static bool is_offered(const struct offered_queues *queues, struct str queue)
{
    for (size_t i = 0; i < queues->count; i++) {
        if (str_eq(queues->names[i], queue))
            return true;
    }
    return false;
}

static void put_offer(struct buf *body, const struct event_source *source, const struct job *job,
                      const struct step_def *step)
{
    struct json_out o = json_out_to(body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "job_id", job->id);
    json_add_uuid(&o, "run_id", source->owner.id);
    json_add_text(&o, "tenant", source->tenant);
    json_add_text(&o, "queue", job->queue);
    json_add_text(&o, "step", step->name);
    json_add_text(&o, "handler", job->undo ? step->undo_handler : step->handler);
    json_add_int(&o, "attempt", job->attempt + 1); /* the one that a claim begins */
    json_close(&o, '}');
}

static enum err offer_new(const struct event_source *source, const struct job *job,
                          const struct step_def *step, struct relay_message **ret)
{
    struct buf subject;
    struct buf body;
    buf_init(&subject, SUBJECT_MAX);
    buf_init(&body, OFFER_MAX);
    buf_put(&subject, STR("pawl-jobs."));
    subject_put_word(&subject, job->queue);
    put_offer(&body, source, job, step);
    if (buf_ok(&subject) && buf_ok(&body))
        *ret = relay_message_new(buf_str(&subject), buf_str(&body));
    buf_release(&body);
    buf_release(&subject);
    return *ret != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static bool put_offer_id(struct relay_message *offer, const struct event_source *source)
{
    struct buf id;
    buf_init(&id, EVENT_MESSAGE_ID_MAX);
    buf_put_uuid(&id, source->owner.id);
    buf_printf(&id, ":%lld:offer", (long long)offer->seq);
    bool ok = buf_ok(&id);
    if (ok)
        memcpy(offer->id, id.ptr, id.len + 1);
    buf_release(&id);
    return ok;
}

enum err relay_message_of_offer(const struct offered_queues *queues, struct read_tx *tx,
                                const struct event_source *source,
                                const struct relay_message *event, struct relay_message **ret)
{
    const struct owner *owner = &source->owner;
    const struct definition *def = NULL;
    struct relay_message *offer = NULL;
    struct job job;
    struct problem p;
    bool found = false;
    *ret = NULL;
    if (queues->count == 0 || event->job < 0)
        return ERR_OK;
    enum err e = jobs_find_at(tx->db, event->run, event->job, &tx->arena, &found, &job);
    if (e != ERR_OK || !found || job.state != JOB_PENDING || !is_offered(queues, job.queue))
        return e;
    problem_init(&p);
    e = read_tx_definition(tx, job.tenant, owner->workflow_id, owner->workflow_version, &p, &def);
    problem_release(&p);
    if (e != ERR_OK)
        return e;
    e = offer_new(source, &job, job_step(def, &job), &offer);
    if (e != ERR_OK)
        return e;
    offer->offer = true;
    offer->seq = event->seq;
    offer->at = event->at;
    memcpy(offer->type, event->type, sizeof(offer->type));
    if (!put_offer_id(offer, source)) {
        free(offer);
        return ERR_NO_MEMORY;
    }
    *ret = offer;
    return ERR_OK;
}
