/* Routes of administrators: tenants, API keys, idempotency records, the outbox, the store. */
#include "api/call.h"
#include "api/params.h"
#include "api/routes.h"
#include "domain/tenant.h"
#include "runtime/writer.h"

#define TENANT(type) PATH("tenant_id", PARAM_NAME, .max = TENANT_ID_MAX, INTO(type, tenant_id))

/* --- tenants --- */

static const struct param TENANT_ONLY[] = {
    TENANT(struct tenant_input),
};

static const struct param PUT_TENANT[] = {
    TENANT(struct put_tenant_input),
};

static enum err prepare_put_tenant(struct call *c, void *input)
{
    ((struct put_tenant_input *)input)->body = c->body;
    return ERR_OK;
}

static const struct param LIST_SETTINGS[] = {
    TENANT(struct list_settings_input),
    QUERY_PAGE(struct list_settings_input),
};

static const struct param ROLLBACK[] = {
    TENANT(struct rollback_tenant_input),
    BODY("version", PARAM_INT, .min = 1, .max = INT64_MAX, .initial = -1,
         INTO(struct rollback_tenant_input, version)),
};

static const struct param LIST[] = {
    QUERY_PAGE(struct list_input),
};

/* --- API keys --- */

static bool tenant_scope_ok(struct str text)
{
    return str_is(text, "*") || tenant_id_ok(text);
}

static const struct param CREATE_KEY[] = {
    BODY("tenant", PARAM_TEXT, .max = TENANT_ID_MAX, .valid = tenant_scope_ok,
         .must = "must be * or letters, digits or any of _ - . :",
         INTO(struct create_key_input, tenant_id)),
    BODY("role", PARAM_ENUM, .required = true, WORDS(role_name, ROLE_COUNT), .initial = ROLE_COUNT,
         INTO(struct create_key_input, role)),
    BODY("label", PARAM_TEXT, .max = TEXT_MAX, INTO(struct create_key_input, label)),
};

static enum err prepare_create_key(struct call *c, void *input)
{
    struct create_key_input *in = input;
    const struct caller *who = &c->op.caller;
    struct str own = str_is(who->tenant, "*") ? STR("default") : who->tenant;
    if (in->tenant_id.ptr == NULL) {
        in->tenant_id = own;
    } else if (str_eq(in->tenant_id, own)) {
        params_is_default(c, "tenant");
    }
    bool for_all = in->role == ROLE_VIEWER || in->role == ROLE_WORKER || in->role == ROLE_ADMIN;
    if (str_is(in->tenant_id, "*") && !for_all)
        return problem_set(
            &c->op.problem, ERR_FIELD_INVALID,
            "tenant: only keys with the role viewer, worker or admin can cover all tenants");
    if (!who->all_tenants && !str_eq(in->tenant_id, who->tenant))
        return problem_set(&c->op.problem, ERR_FORBIDDEN,
                           "This key can make keys for its own tenant only");
    return ERR_OK;
}

static const struct param API_KEY[] = {
    PATH_UUID("key_id", ERR_NOT_FOUND, struct key_input, key_id),
};

/* --- idempotency records --- */

static const struct param IDEM[] = {
    PATH("key", PARAM_TEXT, INTO(struct idem_input, key)),
};

static enum err prepare_idem(struct call *c, void *input)
{
    return idem_key_check(((struct idem_input *)input)->key, &c->op.problem);
}

/* --- the outbox --- */

static const struct param LIST_OUTBOX[] = {
    QUERY_PAGE(struct list_outbox_input),
};

static enum err prepare_list_outbox(struct call *c, void *input)
{
    struct list_outbox_input *in = input;
    struct engine_outbox *outbox = call_alloc(c, sizeof(*outbox));
    if (outbox == NULL)
        return c->op.problem.err;
    engine_outbox(c->api->config.engine, outbox);
    in->bus = outbox->bus;
    in->status = outbox->status;
    in->detail = outbox->detail;
    in->depth = outbox->depth;
    in->lag_ms = outbox->lag_ms;
    return ERR_OK;
}

static const struct param MESSAGE[] = {
    PATH("message_id", PARAM_TEXT, INTO(struct retry_parked_input, message_id)),
};

/* --- the store --- */

static enum err prepare_doctor(struct call *c, void *input)
{
    struct doctor_findings *findings = call_alloc(c, sizeof(*findings));
    ((struct doctor_input *)input)->findings = findings;
    return findings != NULL ? ERR_OK : c->op.problem.err;
}

const struct route ADMIN_ROUTES[] = {
    {"GET", "/api/v1/tenants", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_LIST_TENANTS,
     TAKES(struct list_input, LIST)},
    {"PUT", "/api/v1/tenants/{}", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_DOCUMENT, &UC_PUT_TENANT,
     TAKES(struct put_tenant_input, PUT_TENANT), .prepare = prepare_put_tenant},
    {"GET", "/api/v1/tenants/{}", MAY_ADMIN, ROUTE_NO_TENANT, &UC_GET_TENANT,
     TAKES(struct tenant_input, TENANT_ONLY)},
    {"GET", "/api/v1/tenants/{}/settings", MAY_ADMIN, ROUTE_NO_TENANT, &UC_LIST_SETTINGS,
     TAKES(struct list_settings_input, LIST_SETTINGS)},
    {"POST", "/api/v1/tenants/{}/rollback", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_ROLLBACK_TENANT,
     TAKES(struct rollback_tenant_input, ROLLBACK)},
    {"POST", "/api/v1/keys", MAY_ADMIN, ROUTE_NO_TENANT, &UC_CREATE_KEY,
     TAKES(struct create_key_input, CREATE_KEY), .prepare = prepare_create_key},
    {"GET", "/api/v1/keys", MAY_ADMIN, ROUTE_NO_TENANT, &UC_LIST_KEYS,
     TAKES(struct list_input, LIST)},
    {"DELETE", "/api/v1/keys/{}", MAY_ADMIN, ROUTE_NO_TENANT, &UC_REVOKE_KEY,
     TAKES(struct key_input, API_KEY)},
    {"GET", "/api/v1/idempotency-keys/{}", MAY_READ, .use_case = &UC_GET_IDEM,
     TAKES(struct idem_input, IDEM), .prepare = prepare_idem},
    {"DELETE", "/api/v1/idempotency-keys/{}", MAY_ADMIN, .use_case = &UC_RELEASE_IDEM,
     TAKES(struct idem_input, IDEM), .prepare = prepare_idem},
    {"GET", "/api/v1/outbox", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_LIST_OUTBOX,
     TAKES(struct list_outbox_input, LIST_OUTBOX), .prepare = prepare_list_outbox},
    {"POST", "/api/v1/outbox/{}/retry", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_RETRY_PARKED,
     TAKES(struct retry_parked_input, MESSAGE)},
    {"GET", "/api/v1/doctor", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_LONG, &UC_DOCTOR,
     .input_size = sizeof(struct doctor_input), .prepare = prepare_doctor},
    {"POST", "/api/v1/doctor/repair", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_LONG,
     &UC_DOCTOR_REPAIR, .input_size = sizeof(struct doctor_input), .prepare = prepare_doctor},
    {"GET", "/api/v1/backup", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_FILE | ROUTE_LONG,
     .use_case = &UC_BACKUP},
    {.method = NULL},
};
