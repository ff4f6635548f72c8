/* Routes of workflows: put, show, list, archive, validate. */
#include "api/call.h"

#include "base/crypto.h"

static enum err check_definition_size(struct call *c)
{
    if (c->req->body.len == 0)
        return problem_set(&c->op.problem, ERR_JSON_INVALID, "the body must be a definition");
    if (c->req->body.len > DEFINITION_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "a definition may have at most %d bytes", DEFINITION_MAX);
    return ERR_OK;
}

static enum err read_definition(struct call *c, struct str id)
{
    enum err e = check_definition_size(c);
    return e == ERR_OK ? definition_parse(c->body, id, &c->op.problem, &c->definition) : e;
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

/* Parsing and checking are left to a reader's thread: a large definition would hold up every
 * connection here. */
enum err prepare_validate_workflow(struct call *c)
{
    struct validate_workflow_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->text = c->req->body;
    enum err e = call_name(c, NAME_MAX_LEN, &in->workflow_id);
    return e == ERR_OK ? check_definition_size(c) : e;
}
