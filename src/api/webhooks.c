/* Routes of webhooks. */
#include "api/call.h"
#include "api/routes.h"
#include "domain/type_pattern.h"

/* --- settings --- */

static bool put_patterns(struct fields *f, const struct json *events, struct buf *out)
{
    for (size_t i = 0; i < json_length(events); i++) {
        struct str pattern = json_text_of(json_element(events, i));
        if (pattern.ptr == NULL || !type_pattern_ok(pattern)) {
            fields_fault(f, "events", "must be event types such as run.created, run.* or *");
            return false;
        }
        if (i > 0)
            buf_put_char(out, ',');
        buf_put(out, pattern);
    }
    if (out->len == 0)
        fields_fault(f, "events", "must name at least one event type, or *");
    return f->err == ERR_OK;
}

/* The patterns as they are kept: with commas between them. */
static void take_events(struct call *c, struct fields *f, const struct json *events, void *input)
{
    struct str *to = &((struct put_webhook_input *)input)->events;
    if (events == NULL)
        return;
    struct buf list;
    buf_init(&list, WEBHOOK_EVENTS_MAX * (NAME_MAX_LEN + 3));
    if (put_patterns(f, events, &list)) {
        *to = buf_ok(&list) ? arena_str(&c->req->arena, buf_str(&list)) : STR_NONE;
        if (to->ptr == NULL)
            f->err = call_no_memory(c);
    }
    buf_release(&list);
}

static void take_enabled(struct call *c, struct fields *f, const struct json *value, void *input)
{
    (void)c, (void)f;
    struct put_webhook_input *in = input;
    if (value != NULL)
        in->enabled = json_is(value, JSON_KIND_TRUE) ? WEBHOOK_ENABLE : WEBHOOK_DISABLE;
}

#define SETTINGS(required_)                                                                     \
    BODY("url", PARAM_TEXT, .required = required_, .max = WEBHOOK_URL_MAX,                      \
         INTO(struct put_webhook_input, url)),                                                  \
        BODY("events", PARAM_ARRAY, .required = required_, .min = 1, .max = WEBHOOK_EVENTS_MAX, \
             .take = take_events),                                                              \
        BODY("description", PARAM_TEXT, .max = TEXT_MAX,                                        \
             INTO(struct put_webhook_input, description))

static const struct param CREATE[] = {
    SETTINGS(true),
};

static const struct param PUT[] = {
    PATH_UUID("webhook_id", ERR_WEBHOOK_NOT_FOUND, struct put_webhook_input, webhook_id),
    SETTINGS(false),
    BODY("enabled", PARAM_BOOL, .take = take_enabled),
};

/* --- one webhook --- */

static const struct param WEBHOOK[] = {
    PATH_UUID("webhook_id", ERR_WEBHOOK_NOT_FOUND, struct webhook_input, webhook_id),
};

static const struct param ROTATE[] = {
    PATH_UUID("webhook_id", ERR_WEBHOOK_NOT_FOUND, struct rotate_webhook_input, webhook_id),
    BODY("old_secret_s", PARAM_INT, .max = WEBHOOK_OLD_SECRET_S_MAX, .scale = 1000,
         .initial = WEBHOOK_OLD_SECRET_S, INTO(struct rotate_webhook_input, keep_ms)),
};

static const struct param LIST_DELIVERIES[] = {
    PATH_UUID("webhook_id", ERR_WEBHOOK_NOT_FOUND, struct list_deliveries_input, webhook_id),
    QUERY_PAGE(struct list_deliveries_input),
};

static const struct param DELIVERY[] = {
    PATH_UUID("webhook_id", ERR_WEBHOOK_NOT_FOUND, struct delivery_input, webhook_id),
    PATH_UUID("delivery_id", ERR_DELIVERY_NOT_FOUND, struct delivery_input, delivery_id),
};

static const struct param LIST[] = {
    QUERY_PAGE(struct list_input),
};

const struct route WEBHOOK_ROUTES[] = {
    {"POST", "/api/v1/webhooks", MAY_RUN, .use_case = &UC_CREATE_WEBHOOK,
     TAKES(struct put_webhook_input, CREATE)},
    {"GET", "/api/v1/webhooks", MAY_RUN, .use_case = &UC_LIST_WEBHOOKS,
     TAKES(struct list_input, LIST)},
    {"GET", "/api/v1/webhooks/{}", MAY_RUN, .use_case = &UC_GET_WEBHOOK,
     TAKES(struct webhook_input, WEBHOOK)},
    {"PUT", "/api/v1/webhooks/{}", MAY_RUN, .use_case = &UC_PUT_WEBHOOK,
     TAKES(struct put_webhook_input, PUT)},
    {"DELETE", "/api/v1/webhooks/{}", MAY_RUN, .use_case = &UC_DELETE_WEBHOOK,
     TAKES(struct webhook_input, WEBHOOK)},
    {"POST", "/api/v1/webhooks/{}/rotate", MAY_RUN, .use_case = &UC_ROTATE_WEBHOOK,
     TAKES(struct rotate_webhook_input, ROTATE)},
    {"POST", "/api/v1/webhooks/{}/test", MAY_RUN, .use_case = &UC_TEST_WEBHOOK,
     TAKES(struct webhook_input, WEBHOOK)},
    {"GET", "/api/v1/webhooks/{}/deliveries", MAY_RUN, .use_case = &UC_LIST_DELIVERIES,
     TAKES(struct list_deliveries_input, LIST_DELIVERIES)},
    {"POST", "/api/v1/webhooks/{}/deliveries/{}/redeliver", MAY_RUN, .use_case = &UC_REDELIVER,
     TAKES(struct delivery_input, DELIVERY)},
    {.method = NULL},
};
