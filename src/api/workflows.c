/* Routes of workflows: put, show, list, archive, validate. */
#include "api/call.h"
#include "api/routes.h"
#include "base/crypto.h"

static enum err check_definition_size(struct call *c)
{
    if (c->req->body.len == 0)
        return problem_set(&c->op.problem, ERR_JSON_INVALID, "The body must be a definition");
    if (c->req->body.len > DEFINITION_MAX)
        return problem_set(&c->op.problem, ERR_BODY_TOO_LARGE,
                           "A definition may have at most %d bytes", DEFINITION_MAX);
    return ERR_OK;
}

static enum err digest_of(struct call *c, struct sha256 *ret)
{
    struct buf canonical;
    buf_init(&canonical, JSON_WRITTEN_MAX);
    json_write_canonical(&canonical, c->body);
    bool ok = buf_ok(&canonical);
    if (ok)
        *ret = sha256_of(buf_str(&canonical));
    buf_release(&canonical);
    return ok ? ERR_OK : call_no_memory(c);
}

static enum err prepare_put(struct call *c, void *input)
{
    struct put_workflow_input *in = input;
    enum err e = check_definition_size(c);
    if (e == ERR_OK)
        e = definition_parse(c->body, in->workflow_id, &c->op.problem, &c->definition);
    if (e != ERR_OK)
        return e;
    in->text = c->req->body; /* as it was written: it can be parsed again if it could be here */
    in->definition = c->definition;
    return digest_of(c, &in->digest);
}

/* Parsing and checking are left to a reader's thread: a large definition would hold up every
 * connection here. */
static enum err prepare_validate(struct call *c, void *input)
{
    ((struct validate_workflow_input *)input)->text = c->req->body;
    return check_definition_size(c);
}

static const struct param LIST[] = {
    QUERY_PAGE(struct list_input),
};

static const struct param PUT[] = {
    PATH_NAME("workflow_id", struct put_workflow_input, workflow_id),
};

static const struct param GET[] = {
    PATH_NAME("workflow_id", struct workflow_input, workflow_id),
    QUERY("version", PARAM_INT, .min = 1, .max = INT32_MAX, .initial = -1,
          INTO(struct workflow_input, version)),
};

static const struct param ARCHIVE[] = {
    PATH_NAME("workflow_id", struct workflow_input, workflow_id),
};

static const struct param VERSIONS[] = {
    PATH_NAME("workflow_id", struct list_input, parent),
    QUERY_PAGE(struct list_input),
};

static const struct param VALIDATE[] = {
    PATH_NAME("workflow_id", struct validate_workflow_input, workflow_id),
};

const struct route WORKFLOW_ROUTES[] = {
    {"GET", "/api/v1/workflows", MAY_READ, .use_case = &UC_LIST_WORKFLOWS,
     TAKES(struct list_input, LIST)},
    {"PUT", "/api/v1/workflows/{}", MAY_RUN, ROUTE_DOCUMENT, &UC_PUT_WORKFLOW,
     TAKES(struct put_workflow_input, PUT), .prepare = prepare_put},
    {"GET", "/api/v1/workflows/{}", MAY_READ, .use_case = &UC_GET_WORKFLOW,
     TAKES(struct workflow_input, GET)},
    {"DELETE", "/api/v1/workflows/{}", MAY_RUN, .use_case = &UC_ARCHIVE_WORKFLOW,
     TAKES(struct workflow_input, ARCHIVE)},
    {"GET", "/api/v1/workflows/{}/versions", MAY_READ, .use_case = &UC_LIST_VERSIONS,
     TAKES(struct list_input, VERSIONS)},
    {"POST", "/api/v1/workflows/{}/validate", MAY_READ, ROUTE_DOCUMENT, &UC_VALIDATE_WORKFLOW,
     TAKES(struct validate_workflow_input, VALIDATE), .prepare = prepare_validate},
    {.method = NULL},
};
