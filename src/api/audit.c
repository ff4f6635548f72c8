/* Routes of the audit trail. */
#include "api/call.h"

#include "domain/type_pattern.h"

static enum err read_filter(struct call *c, struct str *ret_actor, struct str *ret_action)
{
    enum err e = http_query(c->req, "actor", &c->op.problem, ret_actor);
    if (e == ERR_OK)
        e = http_query(c->req, "action", &c->op.problem, ret_action);
    if (e == ERR_OK && ret_action->ptr != NULL && !type_pattern_ok(*ret_action))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST,
                        "action must be an action, or a pattern as key.*");
    return e;
}

enum err prepare_list_audit(struct call *c)
{
    static const char *const KNOWN[] = {"limit",  "cursor", "after", "actor",
                                        "action", "order",  NULL};
    struct list_audit_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    struct str order = STR_NONE;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &in->cursor);
    if (e == ERR_OK)
        e = call_query_int(c, "after", 0, INT64_MAX, &in->after);
    if (e == ERR_OK)
        e = http_query(c->req, "order", &c->op.problem, &order);
    in->newest_first = str_is(order, "newest");
    if (e == ERR_OK && order.ptr != NULL && !in->newest_first && !str_is(order, "oldest"))
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST, "order must be oldest or newest");
    if (e == ERR_OK && in->newest_first && in->after > 0)
        e = problem_set(&c->op.problem, ERR_BAD_REQUEST, "after goes with order=oldest");
    return e == ERR_OK ? read_filter(c, &in->actor, &in->action) : e;
}

/* --- the whole of it --- */

/* Reads a slice when the client has taken the one before. */
struct export
{
    struct call *call;
    struct export_audit_input input;
    int64_t after;
    bool open;    /* the head is sent */
    bool reading; /* the op is under way */
    bool fresh;   /* the slice has not been taken yet */
    bool gone;    /* the client is away */
};

static void read_slice(struct export *x)
{
    x->reading = true;
    op_clear_result(&x->call->op);
    engine_submit(x->call->api->config.engine, &x->call->op);
}

static enum http_piece next_slice(void *user, struct str *ret)
{
    struct call *c = user;
    struct export *x = c->export;
    if (x->fresh && c->op.answer.body.len > 0) {
        x->fresh = false;
        *ret = buf_str(&c->op.answer.body);
        return HTTP_PIECE;
    }
    if (x->reading)
        return HTTP_LATER;
    if (c->op.err != ERR_OK || !call_key_holds(c))
        return HTTP_BROKEN; /* the client sees that the end is missing */
    if (x->after < 0)
        return HTTP_END;
    read_slice(x);
    return HTTP_LATER;
}

static void export_gone(void *user)
{
    struct call *c = user;
    struct export *x = c->export;
    x->gone = true;
    if (!x->reading)
        http_request_drop(c->req);
}

static void slice_read(struct op *op)
{
    static const struct http_source SOURCE = {next_slice, export_gone};
    struct call *c = op->owner;
    struct export *x = c->export;
    x->reading = false;
    x->fresh = op->err == ERR_OK;
    if (x->gone || (!x->open && op->err != ERR_OK)) {
        if (!x->gone)
            http_send_problem(c->req, &op->problem, str_of(c->route->pattern), NULL);
        http_request_drop(c->req);
        return;
    }
    if (x->open) {
        http_stream_wake(c->req);
        return;
    }
    struct http_reply reply;
    http_reply_init(&reply, 200, STR("application/x-ndjson"), STR_NONE);
    reply.route = str_of(c->route->pattern);
    x->open = true;
    http_send_stream(c->req, &reply, &SOURCE);
}

static enum err begin_export(struct call *c, struct export **ret)
{
    static const char *const KNOWN[] = {"after", "actor", "action", NULL};
    struct export *x = call_alloc(c, sizeof(*x));
    if (x == NULL)
        return c->op.problem.err;
    *ret = x;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_query_int(c, "after", 0, INT64_MAX, &x->after);
    return e == ERR_OK ? read_filter(c, &x->input.actor, &x->input.action) : e;
}

void direct_export_audit(struct call *c)
{
    struct export *x = NULL;
    if (begin_export(c, &x) != ERR_OK || x == NULL) {
        http_send_problem(c->req, &c->op.problem, str_of(c->route->pattern), NULL);
        return;
    }
    x->call = c;
    x->input.after = &x->after;
    c->export = x;
    c->op.use_case = &UC_EXPORT_AUDIT;
    c->op.input = &x->input;
    c->op.owner = c;
    c->op.done = slice_read;
    c->op.submitted_ns = c->req->begun_ns;
    c->op.bytes = sizeof(*c);
    http_request_hold(c->req); /* until it is sent, or the client gone */
    read_slice(x);
}
