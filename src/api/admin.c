/* Routes of administrators: tenants, API keys, idempotency records, the outbox, the store. */
#include "api/call.h"
#include "api/merge/fold.h"
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

/* --- of several shards --- */

/* The bus of the first shard that has trouble with it. */
static void fold_outbox(const struct fold *f, struct json_out *o)
{
    const struct json *bus = json_member(f->so_far, STR("bus"));
    struct str status = json_text_of(json_member(bus, STR("status")));
    if (bus == NULL || !str_is(status, "failing"))
        bus = json_member(f->next, STR("bus"));
    json_add_name(o, "bus");
    json_write_plain(o->buf, bus);
    json_add_int(o, "depth", fold_sum(f, "depth"));
    json_add_int(o, "lag_ms", fold_most(f, "lag_ms"));
}

static void put_found(const struct json *found, struct json_out *o, const size_t *shard)
{
    for (size_t i = 0; i < json_length(found); i++) {
        json_open(o, NULL, '{');
        fold_put_members(o, json_element(found, i));
        if (shard != NULL)
            json_add_int(o, "shard", (int64_t)*shard);
        json_close(o, '}');
    }
}

/* Every shard has the same checks in the same order. */
static void put_check(const struct fold *f, struct json_out *o)
{
    json_open(o, NULL, '{');
    fold_put_first(f, o, "name");
    json_open(o, "found", '[');
    put_found(json_member(f->so_far, STR("found")), o, NULL);
    put_found(json_member(f->next, STR("found")), o, &f->shard);
    json_close(o, ']');
    json_add_bool(o, "ok", fold_all(f, "ok"));
    json_add_int(o, "checked", fold_sum(f, "checked"));
    fold_put_first(f, o, "detail");
    json_close(o, '}');
}

static void fold_doctor(const struct fold *f, struct json_out *o)
{
    const struct json *before = json_member(f->so_far, STR("checks"));
    const struct json *next = json_member(f->next, STR("checks"));
    json_open(o, "checks", '[');
    for (size_t i = 0; i < json_length(next); i++) {
        struct fold check = *f;
        check.so_far = json_element(before, i);
        check.next = json_element(next, i);
        put_check(&check, o);
    }
    json_close(o, ']');
    if (json_member(f->next, STR("repaired")) != NULL)
        json_add_int(o, "repaired", fold_sum(f, "repaired"));
    json_add_bool(o, "ok", fold_all(f, "ok"));
}

const struct route ADMIN_ROUTES[] = {
    {"GET", "/api/v1/tenants", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_LIST_TENANTS,
     TAKES(struct list_input, LIST), .scope = OF_ALL, .join = JOIN_PAGES},
    {"PUT", "/api/v1/tenants/{}", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_DOCUMENT, &UC_PUT_TENANT,
     TAKES(struct put_tenant_input, PUT_TENANT), .prepare = prepare_put_tenant, .scope = OF_NAMED},
    {"GET", "/api/v1/tenants/{}", MAY_ADMIN, ROUTE_NO_TENANT, &UC_GET_TENANT,
     TAKES(struct tenant_input, TENANT_ONLY), .scope = OF_NAMED},
    {"GET", "/api/v1/tenants/{}/settings", MAY_ADMIN, ROUTE_NO_TENANT, &UC_LIST_SETTINGS,
     TAKES(struct list_settings_input, LIST_SETTINGS), .scope = OF_NAMED},
    {"POST", "/api/v1/tenants/{}/rollback", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_ROLLBACK_TENANT,
     TAKES(struct rollback_tenant_input, ROLLBACK), .scope = OF_NAMED},
    {"POST", "/api/v1/keys", MAY_ADMIN, ROUTE_NO_TENANT, &UC_CREATE_KEY,
     TAKES(struct create_key_input, CREATE_KEY), .prepare = prepare_create_key, .scope = OF_FIRST},
    {"GET", "/api/v1/keys", MAY_ADMIN, ROUTE_NO_TENANT, &UC_LIST_KEYS,
     TAKES(struct list_input, LIST), .scope = OF_FIRST},
    {"DELETE", "/api/v1/keys/{}", MAY_ADMIN, ROUTE_NO_TENANT, &UC_REVOKE_KEY,
     TAKES(struct key_input, API_KEY), .scope = OF_FIRST},
    {"GET", "/api/v1/idempotency-keys/{}", MAY_READ, .use_case = &UC_GET_IDEM,
     TAKES(struct idem_input, IDEM), .prepare = prepare_idem, .scope = OF_TENANT_AND_FIRST,
     .join = JOIN_FIND},
    {"DELETE", "/api/v1/idempotency-keys/{}", MAY_ADMIN, .use_case = &UC_RELEASE_IDEM,
     TAKES(struct idem_input, IDEM), .prepare = prepare_idem, .scope = OF_TENANT_AND_FIRST,
     .join = JOIN_FIND},
    {"GET", "/api/v1/outbox", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_LIST_OUTBOX,
     TAKES(struct list_outbox_input, LIST_OUTBOX), .prepare = prepare_list_outbox,
     .join = JOIN_ORDER, .ordered_by = "parked_at", .place = "position", .fold = fold_outbox},
    {"POST", "/api/v1/outbox/{}/retry", MAY_RULE_SERVER, ROUTE_NO_TENANT, &UC_RETRY_PARKED,
     TAKES(struct retry_parked_input, MESSAGE), .join = JOIN_FIND},
    {"GET", "/api/v1/doctor", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_LONG, &UC_DOCTOR,
     .input_size = sizeof(struct doctor_input), .prepare = prepare_doctor, .scope = OF_ALL,
     .join = JOIN_FOLD, .fold = fold_doctor},
    {"POST", "/api/v1/doctor/repair", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_LONG,
     &UC_DOCTOR_REPAIR, .input_size = sizeof(struct doctor_input), .prepare = prepare_doctor,
     .scope = OF_ALL, .join = JOIN_FOLD, .fold = fold_doctor},
    {"GET", "/api/v1/backup", MAY_RULE_SERVER, ROUTE_NO_TENANT | ROUTE_FILE | ROUTE_LONG,
     .use_case = &UC_BACKUP, .scope = OF_FIRST},
    {.method = NULL},
};
