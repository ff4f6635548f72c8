/* Answers that go on as server-sent events. */
#ifndef PAWL_API_STREAMS_H
#define PAWL_API_STREAMS_H

#include "api/call.h"

/* Does the route stream, and does the client accept that? */
bool streams_wanted(struct call *c);
void streams_begin(struct call *c);

/* Sends heartbeats and ends streams whose key was revoked. */
void streams_tick(struct api *api, int64_t mono_ms);
void streams_end(struct api *api);

/* For a route's `stream`: the timeline of the run or the entity that its path names. */
stream_fn stream_run, stream_entity;

/* What a stream of one run or entity takes besides the parameters of its list. */
#define LAST_EVENT_ID HEADER("Last-Event-ID", PARAM_TEXT, INTO_CALL(last_event_id))

#endif
