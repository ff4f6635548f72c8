/* An event of a run's or an entity's timeline as it is published: a CloudEvents 1.0 object in JSON,
 * with an id that is the same each time. The bus, webhooks and streams of a tenant's events all
 * send this.
 *
 *   {"specversion":"1.0", "id":"<run_id>:<seq>", "source":"/pawl/<tenant>/runs/<run_id>",
 *    "type":"job.created", "subject":"<run_id>", "time":"…", "datacontenttype":"application/json",
 *    "data":{"run_id":"…", "workflow_id":"…", "seq":N, …the event's data…}}
 *
 * Of an entity:
 *
 *   {…, "id":"<uuid>:<seq>", "source":"/pawl/<tenant>/entities/<type>/<id>",
 *    "type":"entity.signaled", "subject":"<type>/<id>", …,
 *    "data":{"entity_type":"…", "entity_id":"…", "seq":N, …the event's data…}}
 *
 * The uuid is the entity's own: another entity of the same name has another. In the source, which
 * is a URI, the entity's name is percent-encoded.
 *
 * Two types differ: `job.approved` has the id `approval:<job_id>`, and an event that an emit step
 * or an entity's handler emits (`event.emitted`) has the type that they chose. The row has both
 * (published_as), so that no reader parses the data. */
#ifndef PAWL_CORE_TXN_EVENT_JSON_H
#define PAWL_CORE_TXN_EVENT_JSON_H

#include "base/limits.h"
#include "store/owners.h"
#include "store/run/events.h"
#include "store/run/runs.h"

enum {
    EVENT_ID_MAX = 63,                       /* a UUID, a colon and any number */
    EVENT_MESSAGE_ID_MAX = EVENT_ID_MAX + 6, /* on the bus an offer of its job has ":offer" too */
    EVENT_OUT_MAX = JSON_WRITTEN_MAX + 8 * KIB,
};

/* The owner of the event. Text is borrowed. */
struct event_source {
    struct str tenant;
    struct owner owner;
};

struct event_json {
    char id[EVENT_ID_MAX + 1];
    char type[NAME_MAX_LEN + 1];
    struct buf body; /* the JSON object, on one line */
};

/* The type that it is published under, borrowed from the event. ptr NULL: the row is damaged. */
struct str event_published_type(const struct event *event);

/* Holds no memory until it is filled; may be filled many times. */
void event_json_init(struct event_json *out);
void event_json_release(struct event_json *out);
/* ERR_INTERNAL when the row is not one that a timeline has; ERR_NO_MEMORY. */
MUST_CHECK enum err event_json_fill(struct event_json *out, const struct event_source *source,
                                    const struct event *event);

#endif
