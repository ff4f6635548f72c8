/* Spans in the JSON encoding of OTLP (https://opentelemetry.io/docs/specs/otlp/). */
#include "outbound/otlp.h"

#include "base/json.h"
#include "base/json_out.h"
#include "base/limits.h"

enum { STATUS_ERROR = 2 };

/* A number of 64 bits is text: not every reader of JSON has that many. */
static void add_number(struct json_out *o, const char *name, int64_t value)
{
    json_add_name(o, name);
    buf_put_char(o->buf, '"');
    buf_put_i64(o->buf, value);
    buf_put_char(o->buf, '"');
    o->comma = true;
}

/* {"key": …, "value": {"stringValue": …}} */
static void put_attribute(struct json_out *o, const char *name, struct str text, int64_t number)
{
    json_open(o, NULL, '{');
    json_add_text(o, "key", str_of(name));
    json_open(o, "value", '{');
    if (text.ptr != NULL) {
        json_add_text(o, "stringValue", text);
    } else {
        add_number(o, "intValue", number);
    }
    json_close(o, '}');
    json_close(o, '}');
}

static void put_ids(struct json_out *o, const struct trace_span *place)
{
    char trace[TRACE_ID_LEN + 1];
    char id[SPAN_ID_LEN + 1];
    trace_write_id(place, trace);
    trace_write_span_id(place->id, id);
    json_add_text(o, "traceId", str_of(trace));
    json_add_text(o, "spanId", str_of(id));
    if (place->parent != 0) {
        trace_write_span_id(place->parent, id);
        json_add_text(o, "parentSpanId", str_of(id));
    }
    json_add_int(o, "flags", place->flags);
}

void otlp_put_span(struct buf *spans, const struct span *span)
{
    struct json_out o = {spans, spans->len > 0};
    json_open(&o, NULL, '{');
    put_ids(&o, &span->place);
    if (span->tracestate.ptr != NULL)
        json_add_text(&o, "traceState", span->tracestate);
    json_add_text(&o, "name", span->name);
    json_add_int(&o, "kind", span->kind);
    add_number(&o, "startTimeUnixNano", span->begun_ns);
    add_number(&o, "endTimeUnixNano", MAX(span->ended_ns, span->begun_ns));
    json_open(&o, "attributes", '[');
    for (size_t i = 0; i < span->attribute_count; i++)
        put_attribute(&o, span->attributes[i].name, span->attributes[i].text,
                      span->attributes[i].number);
    json_close(&o, ']');
    if (span->failed) {
        json_open(&o, "status", '{');
        json_add_int(&o, "code", STATUS_ERROR);
        if (span->message.ptr != NULL)
            json_add_text(&o, "message", span->message);
        json_close(&o, '}');
    }
    json_close(&o, '}');
}

void otlp_put_request(struct buf *out, struct str spans)
{
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_open(&o, "resourceSpans", '[');
    json_open(&o, NULL, '{');
    json_open(&o, "resource", '{');
    json_open(&o, "attributes", '[');
    put_attribute(&o, "service.name", STR("pawl"), 0);
    put_attribute(&o, "service.version", STR(PAWL_VERSION), 0);
    json_close(&o, ']');
    json_close(&o, '}');
    json_open(&o, "scopeSpans", '[');
    json_open(&o, NULL, '{');
    json_open(&o, "scope", '{');
    json_add_text(&o, "name", STR("pawl"));
    json_close(&o, '}');
    json_open(&o, "spans", '[');
    buf_put(out, spans);
    json_close(&o, ']');
    json_close(&o, '}');
    json_close(&o, ']');
    json_close(&o, '}');
    json_close(&o, ']');
    json_close(&o, '}');
}

int64_t otlp_rejected(struct str answer)
{
    struct json *json = NULL;
    int64_t rejected = 0;
    if (json_read_kept(answer, &json) != ERR_OK)
        return 0;
    const struct json *count =
        json_member(json_member(json, STR("partialSuccess")), STR("rejectedSpans"));
    if (!json_whole_of(count, &rejected) && !str_to_i64(json_text_of(count), &rejected))
        rejected = 0;
    json_free(json);
    return MAX(rejected, (int64_t)0);
}

bool otlp_status_may_pass(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}
