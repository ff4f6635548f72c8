/* Routes of the audit trail. */
#include "api/caller.h"
#include "api/merge/fold.h"
#include "api/routes.h"
#include "domain/type_pattern.h"

#define AUDIT_FILTER(type, at)                                                                \
    QUERY("actor", PARAM_TEXT, INTO(type, at actor)),                                         \
        QUERY("action", PARAM_TEXT, .valid = type_pattern_ok,                                 \
              .must = "must be an action or a pattern such as key.*", INTO(type, at action)), \
        QUERY("after", PARAM_INT, .max = INT64_MAX, INTO(type, after))

/* --- a page --- */

static const char *order_name(unsigned newest_first)
{
    return newest_first != 0 ? "newest" : "oldest";
}

static const struct param LIST[] = {
    QUERY_PAGE(struct list_audit_input),
    AUDIT_FILTER(struct list_audit_input, ),
    QUERY("order", PARAM_ENUM, WORDS(order_name, 2), INTO(struct list_audit_input, newest_first)),
};

static enum err prepare_list(struct call *c, void *input)
{
    const struct list_audit_input *in = input;
    if (in->newest_first && in->after > 0)
        return problem_set(&c->op.problem, ERR_BAD_REQUEST,
                           "The parameter after requires order=oldest");
    return ERR_OK;
}

/* --- the whole trail --- */

/* The route's input. A slice is read when the client has taken the one before. */
struct export
{
    struct call *call;
    struct export_audit_input input;
    int64_t chain; /* where it goes on */
    int64_t after; /* in that chain; -1: nowhere */
    bool open;     /* the head is sent */
    bool reading;  /* the op is under way */
    bool fresh;    /* the slice has not been taken yet */
    bool gone;     /* the client has disconnected */
};

static void read_slice(struct export *x)
{
    x->reading = true;
    x->input.chain = x->chain;
    x->input.after = x->after;
    op_clear_result(&x->call->op);
    engine_submit(x->call->api->config.engine, &x->call->op);
}

static enum http_piece next_slice(void *user, struct str *ret)
{
    struct call *c = user;
    struct export *x = c->input;
    if (x->fresh && c->op.answer.body.len > 0) {
        x->fresh = false;
        *ret = buf_str(&c->op.answer.body);
        return HTTP_PIECE;
    }
    if (x->reading)
        return HTTP_LATER;
    if (c->op.err != ERR_OK || !caller_key_holds(c))
        return HTTP_BROKEN; /* the client sees that the end is missing */
    if (x->after < 0)
        return HTTP_END;
    read_slice(x);
    return HTTP_LATER;
}

static void export_gone(void *user)
{
    struct call *c = user;
    struct export *x = c->input;
    x->gone = true;
    if (!x->reading)
        http_request_drop(c->req);
}

static void slice_read(struct op *op)
{
    static const struct http_source SOURCE = {next_slice, export_gone};
    struct call *c = op->owner;
    struct export *x = c->input;
    x->reading = false;
    x->fresh = op->err == ERR_OK;
    if (x->gone || (!x->open && op->err != ERR_OK)) {
        if (!x->gone)
            call_send_other_problem(c, &op->problem);
        http_request_drop(c->req);
        return;
    }
    if (x->open) {
        http_stream_wake(c->req);
        return;
    }
    struct http_reply reply = call_reply(c, 200, STR("application/x-ndjson"), STR_NONE);
    x->open = true;
    http_send_stream(c->req, &reply, &SOURCE);
}

static void export_audit(struct call *c)
{
    struct export *x = c->input;
    x->call = c;
    x->chain = -1;
    x->input.ret_chain = &x->chain;
    x->input.ret_next = &x->after;
    c->op.use_case = &UC_EXPORT_AUDIT;
    c->op.input = &x->input;
    c->op.owner = c;
    c->op.done = slice_read;
    c->op.submitted_ns = c->req->begun_ns;
    c->op.bytes = sizeof(*c);
    http_request_hold(c->req); /* until all is sent or the client has gone */
    read_slice(x);
}

static const struct param EXPORT[] = {
    AUDIT_FILTER(struct export, input.),
};

/* --- of several shards: a tenant has a chain in its own, and one in shard 0 of its keys --- */

static void put_head(const struct fold *f, struct json_out *o, const struct json *head)
{
    json_open(o, NULL, '{');
    fold_put_members(o, head);
    json_add_int(o, "shard", (int64_t)f->shard);
    json_close(o, '}');
}

static void put_heads(const struct fold *f, struct json_out *o)
{
    const struct json *before = json_member(f->so_far, STR("heads"));
    const struct json *head = json_member(f->next, STR("head"));
    const struct json *all = json_member(f->next, STR("heads")); /* if it has several chains */
    json_open(o, "heads", '[');
    for (size_t i = 0; i < json_length(before); i++) {
        json_add_name(o, NULL);
        json_write_plain(o->buf, json_element(before, i));
    }
    if (json_length(all) > 0) {
        for (size_t i = 0; i < json_length(all); i++)
            put_head(f, o, json_element(all, i));
    } else if (json_is(head, JSON_KIND_OBJECT)) {
        put_head(f, o, head);
    }
    json_close(o, ']');
}

static void fold_verify(const struct fold *f, struct json_out *o)
{
    json_add_bool(o, "ok", fold_all(f, "ok"));
    json_add_int(o, "checked", fold_sum(f, "checked"));
    fold_put_first(f, o, "broken");
    json_add_name(o, "head"); /* that of the tenant's own shard: it is asked last */
    const struct json *head = json_member(f->next, STR("head"));
    json_write_plain(o->buf, json_is(head, JSON_KIND_OBJECT) || f->so_far == NULL
                                 ? head
                                 : json_member(f->so_far, STR("head")));
    put_heads(f, o);
}

const struct route AUDIT_ROUTES[] = {
    {"GET", "/api/v1/audit", MAY_ADMIN, ROUTE_NO_TENANT, &UC_LIST_AUDIT,
     TAKES(struct list_audit_input, LIST), .prepare = prepare_list, .scope = OF_TENANT_AND_FIRST,
     .join = JOIN_ORDER, .ordered_by = "at", .place_in = "chain", .place = "seq"},
    {"GET", "/api/v1/audit/verify", MAY_ADMIN, ROUTE_NO_TENANT | ROUTE_LONG,
     .use_case = &UC_VERIFY_AUDIT, .scope = OF_TENANT_AND_FIRST, .join = JOIN_FOLD,
     .fold = fold_verify},
    {"GET", "/api/v1/audit/export", MAY_ADMIN, ROUTE_NO_TENANT, TAKES(struct export, EXPORT),
     .direct = export_audit, .scope = OF_TENANT_AND_FIRST, .join = JOIN_CHAIN},
    {.method = NULL},
};
