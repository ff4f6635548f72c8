/* One request on its way through the api layer, and what every part of that layer uses. */
#ifndef PAWL_API_CALL_H
#define PAWL_API_CALL_H

#include "api/config.h"
#include "api/route.h"
#include "http/http.h"
#include "runtime/engine.h"

struct metrics_maker;
struct metrics_text;
struct stream;
struct waiting;

struct api {
    struct api_config config;
    struct stream *streams;
    size_t stream_count;
    int64_t next_pulse_ms;
    struct metrics_maker *metrics;
    struct waiting *waiting;
    uint64_t key_epoch; /* engine_auth_epoch() when the streams' keys were checked */
    struct call *calls; /* that are alive */
};

struct call {
    struct api *api;
    struct http_request *req;
    const struct route *route;
    bool aside;                    /* it came to --metrics-listen */
    bool waits;                    /* it is counted among those that wait */
    struct str params[PARAMS_MAX]; /* the path's variable parts, decoded */
    struct str key;                /* the API key or session; ptr NULL: none was needed */
    bool has_session;              /* it is a session */
    int64_t session_expires_at;
    struct str set_cookie;             /* of the answer; ptr NULL: none */
    uint64_t key_epoch;                /* engine_auth_epoch() when it was checked */
    void *input;                       /* the route's input; NULL until something is read into it */
    struct json *body;                 /* NULL when there was none */
    struct definition *definition;     /* parsed by the route, freed with the call */
    struct str fingerprinted;          /* the route, and the actor if the route is personal */
    char *location;                    /* with ROUTE_ASKS: room for the header Location */
    struct str if_none_match;          /* ptr NULL: not sent */
    struct str last_event_id;          /* ptr NULL: not sent */
    size_t defaults;                   /* members of the body that make no difference: marked */
    struct stream *stream;             /* NULL: the answer is one piece */
    struct metrics_text *metrics_text; /* that is sent; NULL: none */
    struct call *next_scraper;
    struct call *prev, *next; /* of the api's */
    struct op op;
};

/* Zeroed, in the request's arena; NULL with the problem set when memory ran out. */
MUST_CHECK void *call_alloc(struct call *c, size_t size);
enum err call_no_memory(struct call *c);
/* The route's input, zeroed when it is first asked for; NULL with the problem set when memory ran
 * out. */
MUST_CHECK void *call_input(struct call *c);
/* A header that may be sent once, in the arena; ptr NULL: not sent. */
MUST_CHECK enum err call_header(struct call *c, const char *name, struct str *ret);
/* A value of the body as it is kept, in the arena or in the body. */
MUST_CHECK enum err call_json_text(struct call *c, const struct json *value, struct str *ret);

/* Does a list of entity tags, as in If-None-Match, name this one? Weak tags count, as RFC 9110
 * requires; `*` names any. */
bool call_tags_name(struct str tags, struct str etag);

/* A reply with the route's label for metrics. */
struct http_reply call_reply(const struct call *c, int status, struct str content_type,
                             struct str body);
void call_send_json(struct call *c, int status, struct str body);
/* op.problem, or another one. */
void call_send_problem(struct call *c);
void call_send_other_problem(struct call *c, const struct problem *p);

#endif
