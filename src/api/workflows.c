/* Routes of workflows: put, show, list, archive, validate. */
#include "api/call.h"

#include "base/crypto.h"

static enum err read_definition(struct call *c, struct str id)
{
    if (c->body == NULL)
        return problem_set(&c->op.problem, ERR_JSON_INVALID, "the body must be a definition");
    if (c->req->body.len > DEFINITION_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "a definition may have at most %d bytes", DEFINITION_MAX);
    return definition_parse(c->body, id, &c->op.problem, &c->definition);
}

enum err prepare_put_workflow(struct call *c)
{
    struct put_workflow_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = call_name(c, NAME_MAX_LEN, &in->workflow_id);
    if (e == ERR_OK)
        e = read_definition(c, in->workflow_id);
    if (e != ERR_OK)
        return e;
    in->text =
        c->req->body; /* as it was written: reading it again cannot fail where this did not */
    in->definition = c->definition;
    struct buf canonical;
    buf_init(&canonical, JSON_WRITTEN_MAX);
    json_put_canonical(&canonical, c->body);
    if (buf_ok(&canonical))
        in->digest = sha256_of(buf_str(&canonical));
    else
        e = call_no_memory(c);
    buf_release(&canonical);
    return e;
}

static enum err read_workflow(struct call *c, struct workflow_input *in)
{
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->version = -1;
    return call_name(c, NAME_MAX_LEN, &in->workflow_id);
}

enum err prepare_get_workflow(struct call *c)
{
    static const char *const KNOWN[] = {"version", NULL};
    struct workflow_input *in = call_alloc(c, sizeof(*in));
    enum err e = read_workflow(c, in);
    if (e == ERR_OK)
        e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_query_int(c, "version", 1, INT32_MAX, &in->version);
    return e;
}

enum err prepare_archive_workflow(struct call *c)
{
    return read_workflow(c, call_alloc(c, sizeof(struct workflow_input)));
}

/* NULL when the problem is set. */
static struct list_input *read_list(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL || http_query_only(c->req, KNOWN, &c->op.problem) != ERR_OK ||
        call_page(c, &in->limit, &in->cursor) != ERR_OK)
        return NULL;
    c->op.input = in;
    return in;
}

enum err prepare_list_workflows(struct call *c)
{
    return read_list(c) != NULL ? ERR_OK : c->op.problem.err;
}

enum err prepare_list_tenants(struct call *c)
{
    return read_list(c) != NULL ? ERR_OK : c->op.problem.err;
}

enum err prepare_list_keys(struct call *c)
{
    return read_list(c) != NULL ? ERR_OK : c->op.problem.err;
}

enum err prepare_list_versions(struct call *c)
{
    struct list_input *in = read_list(c);
    return in != NULL ? call_name(c, NAME_MAX_LEN, &in->parent) : c->op.problem.err;
}

/* --- validate: says what is wrong and changes nothing --- */

static void add_unsupported(struct json_out *o, struct str unsupported)
{
    struct str path;
    struct str message;
    if (!str_cut(unsupported, ':', &path, &message))
        return;
    json_open(o, NULL, '{');
    json_add_text(o, "path", path);
    json_add_text(o, "message", str_trim(message));
    json_close(o, '}');
}

void direct_validate(struct call *c)
{
    struct problem *p = &c->op.problem;
    struct str id;
    enum err e = call_name(c, NAME_MAX_LEN, &id);
    if (e == ERR_OK && c->req->body.len > 0)
        e = json_parse(c->req->body, p, &c->body);
    if (e == ERR_OK)
        e = read_definition(c, id);
    if (e != ERR_OK && e != ERR_DEFINITION_INVALID) {
        http_send_problem(c->req, p, str_of(c->route->pattern), NULL);
        return;
    }
    struct buf *out = &c->op.answer.body;
    struct json_out o = json_out_to(out);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "valid", e == ERR_OK);
    json_add_raw(&o, "errors", e == ERR_OK ? STR("[]") : buf_str(&p->faults));
    json_open(&o, "warnings", '[');
    if (e == ERR_OK)
        add_unsupported(&o, c->definition->unsupported);
    json_close(&o, ']');
    json_close(&o, '}');
    call_send_json(c, 200, buf_str(out));
}
