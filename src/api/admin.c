/* Routes of administrators: tenants, API keys, idempotency records. */
#include "api/call.h"

#include "domain/tenant.h"

enum err prepare_put_tenant(struct call *c)
{
    struct put_tenant_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->body = c->body;
    return call_name(c, TENANT_ID_MAX, &in->tenant_id);
}

enum err prepare_get_tenant(struct call *c)
{
    struct tenant_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_name(c, TENANT_ID_MAX, &in->tenant_id);
}

enum err prepare_list_settings(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_settings_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    if (e == ERR_OK)
        e = call_page(c, &in->limit, &in->cursor);
    return e == ERR_OK ? call_name(c, TENANT_ID_MAX, &in->tenant_id) : e;
}

enum err prepare_rollback_tenant(struct call *c)
{
    struct rollback_tenant_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->version = -1;
    struct fields f;
    call_fields(c, &f, c->body);
    fields_int(&f, "version", 1, INT64_MAX, &in->version);
    enum err e = fields_end(&f);
    return e == ERR_OK ? call_name(c, TENANT_ID_MAX, &in->tenant_id) : e;
}

enum err prepare_doctor(struct call *c)
{
    struct doctor_input *in = call_alloc(c, sizeof(*in));
    struct doctor_findings *findings = call_alloc(c, sizeof(*findings));
    if (in == NULL || findings == NULL)
        return c->op.problem.err;
    in->findings = findings;
    c->op.input = in;
    struct fields f;
    call_fields(c, &f, c->body);
    return fields_end(&f);
}

enum err prepare_list_outbox(struct call *c)
{
    static const char *const KNOWN[] = {"limit", "cursor", NULL};
    struct list_outbox_input *in = call_alloc(c, sizeof(*in));
    struct engine_outbox *outbox = call_alloc(c, sizeof(*outbox));
    if (in == NULL || outbox == NULL)
        return c->op.problem.err;
    engine_outbox(c->api->config.engine, outbox);
    *in = (struct list_outbox_input){
        .bus = outbox->bus,
        .status = outbox->status,
        .detail = outbox->detail,
        .depth = outbox->depth,
        .lag_ms = outbox->lag_ms,
    };
    c->op.input = in;
    enum err e = http_query_only(c->req, KNOWN, &c->op.problem);
    return e == ERR_OK ? call_page(c, &in->limit, &in->cursor) : e;
}

enum err prepare_retry_parked(struct call *c)
{
    struct retry_parked_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->message_id = c->params[0];
    struct fields f;
    call_fields(c, &f, c->body);
    return fields_end(&f);
}

enum err prepare_create_key(struct call *c)
{
    struct create_key_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    struct str role = STR_NONE;
    struct fields f;
    in->tenant_id = str_is(c->op.caller.tenant, "*") ? STR("default") : c->op.caller.tenant;
    call_fields(c, &f, c->body);
    fields_text(&f, "tenant", TENANT_ID_MAX, &in->tenant_id);
    fields_text(&f, "role", NAME_MAX_LEN, &role);
    fields_text(&f, "label", TEXT_MAX, &in->label);
    fields_require(&f, "role");
    in->role = role_of(role);
    if (f.err == ERR_OK && in->role == ROLE_COUNT)
        fields_fault(&f, "role", "must be one of admin, operator, approver, worker, viewer");
    bool all = str_is(in->tenant_id, "*");
    if (f.err == ERR_OK && !all && !tenant_id_ok(in->tenant_id))
        fields_fault(&f, "tenant", "must be * or letters, digits or _ - . :");
    bool for_all = in->role == ROLE_VIEWER || in->role == ROLE_WORKER || in->role == ROLE_ADMIN;
    if (f.err == ERR_OK && all && !for_all)
        fields_fault(&f, "tenant", "only viewers, workers and admins can be for all tenants");
    enum err e = fields_end(&f);
    if (e == ERR_OK && !c->op.caller.all_tenants && !str_eq(in->tenant_id, c->op.caller.tenant))
        e = problem_set(&c->op.problem, ERR_FORBIDDEN,
                        "This key can make keys for its own tenant only.");
    return e;
}

enum err prepare_revoke_key(struct call *c)
{
    struct key_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    return call_uuid(c, ERR_NOT_FOUND, &in->key_id);
}

enum err prepare_idem(struct call *c)
{
    struct idem_input *in = call_alloc(c, sizeof(*in));
    if (in == NULL)
        return c->op.problem.err;
    c->op.input = in;
    in->key = c->params[0];
    return idem_key_check(in->key, &c->op.problem);
}

enum err prepare_nothing(struct call *c)
{
    (void)c;
    return ERR_OK;
}
