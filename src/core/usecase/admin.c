/* Tenants, API keys and idempotency records, for administrators. */
#include "core/admission/run_slots.h"
#include "core/txn/audit_record.h"
#include "core/txn/page.h"
#include "core/txn/render.h"
#include "core/txn/tx.h"
#include "core/usecase/use_cases.h"

#include "base/limits.h"
#include "domain/api_key.h"
#include "store/ended_sessions.h"
#include "store/keys.h"
#include "store/tenants.h"

/* --- tenants --- */

enum {
    SETTINGS_TEXT_MAX = 8 * KIB
}; /* a name of TEXT_MAX control characters, each written as \u0001 */

/* The tenant that the path names: the caller's own, or any for those who rule the server. */
static enum err tenant_named(struct op *op, struct read_tx *tx, struct str id, bool create,
                             struct tenant **ret)
{
    struct str own = op->caller.tenant;
    if (!op->caller.all_tenants && !str_eq(id, own)) {
        (void)problem_set(&op->problem, ERR_TENANT_NOT_FOUND, "Tenant \"%.*s\" does not exist",
                          STR_ARG(id));
        return ERR_TENANT_NOT_FOUND;
    }
    bool own_creates = op->caller.creates_tenant;
    op->caller.tenant = id;
    op->caller.creates_tenant = create || op->caller.tenant_known;
    enum err e = read_tx_tenant(tx, op, ret);
    op->caller.tenant = own;
    op->caller.creates_tenant = own_creates;
    return e;
}

/* The tenant's settings as they are now, kept under their version. */
static enum err keep_settings(struct op *op, struct tx *tx, const struct tenant *t, int64_t at)
{
    struct buf text;
    buf_init(&text, SETTINGS_TEXT_MAX);
    struct json_out o = json_out_to(&text);
    json_open(&o, NULL, '{');
    tenant_put_settings(&o, t);
    json_close(&o, '}');
    struct settings kept = {t->num, t->settings_version, buf_str(&text), at, op->caller.actor};
    enum err e = buf_ok(&text) ? settings_keep(tx->db, &kept) : ERR_NO_MEMORY;
    buf_release(&text);
    return e;
}

static enum err same_settings(const struct tenant *a, const struct tenant *b, bool *ret)
{
    struct buf texts[2];
    const struct tenant *const tenants[] = {a, b};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_init(&texts[i], SETTINGS_TEXT_MAX);
        struct json_out o = json_out_to(&texts[i]);
        tenant_put_settings(&o, tenants[i]);
    }
    bool ok = buf_ok(&texts[0]) && buf_ok(&texts[1]);
    *ret = ok && str_eq(buf_str(&texts[0]), buf_str(&texts[1]));
    buf_release(&texts[0]);
    buf_release(&texts[1]);
    return ok ? ERR_OK : ERR_NO_MEMORY;
}

/* Makes `changed` the tenant's settings: a version of its own, which can be gone back to. */
static enum err set_tenant(struct op *op, struct tx *tx, struct tenant *tenant,
                           struct tenant changed, const char *action)
{
    bool is_new = tenant->num == 0;
    bool same = false;
    enum err e = is_new ? ERR_OK : same_settings(tenant, &changed, &same);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store the tenant");
    if (!is_new && !same) {
        e = keep_settings(op, tx, tenant, tenant->updated_at);
        changed.settings_version++;
    }
    if (!same)
        changed.updated_at = tx->now_ms;
    *tenant = changed; /* its new text lives in the arena: the next transaction reads it again */
    tx_tenant_changed(tx);
    if (e == ERR_OK && is_new)
        e = tx_tenant_ensure(tx, tenant);
    else if (e == ERR_OK && !same)
        e = tenants_update_settings(tx->db, tenant);
    if (e == ERR_OK && !same)
        e = keep_settings(op, tx, tenant, tx->now_ms);
    struct json_out o = json_out_to(&op->answer.body);
    render_tenant(&o, tenant);
    if (e == ERR_OK && !same)
        e = audit_record(op, tx, tenant->num, action, tenant->id, buf_str(&op->answer.body));
    if (e == ERR_OK && tenant->queued_runs > 0)
        e = run_slots_note_room(tx, tenant->num);
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the tenant");
}

/* A setting that would be kept and do nothing is refused. What a tenant has from version 0.1.0
 * stays, so that its settings can be read and put again. */
static enum err check_gate(struct op *op, const struct tx *tx, const struct gate_policy *old,
                           const struct gate_policy *changed)
{
    if (gate_policy_is_default(changed) || gate_policy_eq(old, changed))
        return ERR_OK;
    if (!tx->has_gate)
        return problem_set(&op->problem, ERR_FIELD_INVALID,
                           "gate: this server has no external admission gate. Leave these settings "
                           "out or at their defaults.");
    if (changed->kind == GATE_KIND_STORE)
        return problem_set(&op->problem, ERR_FIELD_INVALID,
                           "gate: no start waits for the store's gate. Leave these settings out, "
                           "or set \"kind\" to \"redis\".");
    return ERR_OK;
}

static enum err put_tenant(struct op *op, struct tx *tx)
{
    const struct put_tenant_input *in = op->input;
    struct tenant *tenant;
    enum err e = tenant_named(op, &tx->read, in->tenant_id, true, &tenant);
    if (e != ERR_OK)
        return e;
    struct tenant changed = *tenant;
    e = tenant_apply(&changed, in->body, &tx->arena, &op->problem);
    if (changed.gate.kind == GATE_KIND_UNSAID) /* settings of a gate ask for one */
        changed.gate.kind = tx->has_gate ? GATE_KIND_REDIS : tenant->gate.kind;
    if (e == ERR_OK)
        e = check_gate(op, tx, &tenant->gate, &changed.gate);
    return e == ERR_OK ? set_tenant(op, tx, tenant, changed, "tenant.set") : e;
}

const struct use_case UC_PUT_TENANT = {.name = "put_tenant", .write = put_tenant};

static enum err rollback_tenant(struct op *op, struct tx *tx)
{
    const struct rollback_tenant_input *in = op->input;
    struct tenant *tenant;
    enum err e = tenant_named(op, &tx->read, in->tenant_id, false, &tenant);
    if (e != ERR_OK)
        return e;
    int64_t version = in->version >= 0 ? in->version : tenant->settings_version - 1;
    struct settings kept;
    bool found = false;
    e = settings_find(tx->db, tenant->num, version, &tx->arena, &found, &kept);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the settings");
    if (!found)
        return problem_set(&op->problem, ERR_SETTINGS_NOT_FOUND,
                           "Settings version %lld of tenant %.*s does not exist",
                           (long long)version, STR_ARG(tenant->id));
    struct json *json = NULL;
    struct tenant changed = *tenant;
    e = json_read(kept.json, &op->problem, &json);
    if (e == ERR_OK)
        e = tenant_apply(&changed, json, &tx->arena, &op->problem);
    json_free(json);
    if (e != ERR_OK) /* what was kept must be readable */
        return problem_set(&op->problem, err_of_other(e), "The stored settings cannot be read");
    if (changed.gate.kind == GATE_KIND_UNSAID) /* of a version that had no other gate */
        changed.gate.kind = GATE_KIND_STORE;
    if (changed.gate.kind != GATE_KIND_STORE)
        e = check_gate(op, tx, &tenant->gate, &changed.gate);
    return e == ERR_OK ? set_tenant(op, tx, tenant, changed, "tenant.rollback") : e;
}

const struct use_case UC_ROLLBACK_TENANT = {.name = "rollback_tenant", .write = rollback_tenant};

struct settings_page {
    struct page page;
    int64_t current;
};

static void add_settings(void *ctx, const struct settings *s)
{
    struct settings_page *p = ctx;
    if (!page_takes(&p->page))
        return;
    struct json_out *o = &p->page.out;
    json_open(o, NULL, '{');
    json_add_int(o, "version", s->version);
    json_add_bool(o, "current", s->version == p->current);
    json_add_raw(o, "settings", s->json);
    json_add_time(o, "at", s->at);
    json_add_text(o, "actor", s->actor);
    json_close(o, '}');
    page_set_last_number(&p->page, s->version);
}

static enum err list_settings(struct op *op, struct read_tx *tx)
{
    const struct list_settings_input *in = op->input;
    struct tenant *tenant;
    enum err e = tenant_named(op, tx, in->tenant_id, false, &tenant);
    if (e != ERR_OK)
        return e;
    int64_t before = INT64_MAX;
    if (in->cursor.ptr != NULL && (!str_to_i64(in->cursor, &before) || before < 0))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct settings_page p = {page_begin(op, in->limit), tenant->settings_version};
    e = settings_list(tx->db, tenant->num, before, in->limit + 1, add_settings, &p);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the settings");
    page_end(&p.page);
    return ERR_OK;
}

const struct use_case UC_LIST_SETTINGS = {.name = "list_settings", .read = list_settings};

static enum err get_tenant(struct op *op, struct read_tx *tx)
{
    const struct tenant_input *in = op->input;
    struct tenant *tenant;
    enum err e = tenant_named(op, tx, in->tenant_id, false, &tenant);
    if (e != ERR_OK)
        return e;
    e = read_tx_counters(tx, tenant);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the tenant's counters");
    struct json_out o = json_out_to(&op->answer.body);
    render_tenant(&o, tenant);
    return ERR_OK;
}

const struct use_case UC_GET_TENANT = {.name = "get_tenant", .read = get_tenant};

static void add_tenant(void *ctx, const struct tenant *t)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_tenant(&page->out, t);
    page_set_last(page, t->id);
}

static enum err list_tenants(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    struct page page = page_begin(op, in->limit);
    enum err e = tenants_list(tx->db, in->cursor, in->limit + 1, &tx->arena, add_tenant, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the tenants");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_TENANTS = {.name = "list_tenants", .read = list_tenants};

/* --- API keys --- */

static enum err create_key(struct op *op, struct tx *tx)
{
    const struct create_key_input *in = op->input;
    struct tenant *tenant = NULL;
    enum err e = ERR_OK;
    if (!str_is(in->tenant_id, "*")) {
        e = tenant_named(op, &tx->read, in->tenant_id, true, &tenant);
        if (e == ERR_OK)
            e = tx_tenant_ensure(tx, tenant);
        if (e != ERR_OK)
            return problem_set(&op->problem, e, "Cannot store the tenant");
    }
    struct api_key_random random;
    char secret[API_KEY_TEXT_MAX];
    env_random(tx->env, &random, sizeof(random));
    struct api_key key = {
        .id = env_new_id(tx->env),
        .tenant = tenant != NULL ? tenant->num : 0,
        .tenant_id = in->tenant_id,
        .role = in->role,
        .label = in->label,
        .created_at = tx->now_ms,
        .created_by = op->caller.actor,
        .last_used_at = -1,
        .revoked_at = -1,
    };
    api_key_make(&random, secret, &key.prefix, &key.hash);
    e = keys_insert(tx->db, &key);
    struct json_out o = json_out_to(&op->answer.body);
    render_key(&o, &key, str_of(secret));
    /* A replay tells which key it was, but the key itself is shown once and kept nowhere. */
    struct json_out kept = json_out_to(&op->answer.kept_body);
    render_key(&kept, &key, STR_NONE);
    tx_note(tx, EFFECT_KEYS_CHANGED);
    if (e == ERR_OK)
        e = audit_record(op, tx, key.tenant, "key.create", key.prefix,
                         buf_str(&op->answer.kept_body));
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot store the key");
}

const struct use_case UC_CREATE_KEY = {.name = "create_key", .write = create_key};

/* Root and --dev see every tenant's keys when they ask for "*". */
static enum err key_scope(struct op *op, struct read_tx *tx, int64_t *ret_tenant)
{
    *ret_tenant = 0;
    if (str_is(op->caller.tenant, "*"))
        return ERR_OK;
    struct tenant *tenant;
    enum err e = read_tx_tenant(tx, op, &tenant);
    if (e == ERR_OK)
        *ret_tenant = tenant->num != 0 ? tenant->num : -1; /* not stored: it has no keys */
    return e;
}

static enum err revoke_key(struct op *op, struct tx *tx)
{
    const struct key_input *in = op->input;
    int64_t tenant;
    bool found = false;
    enum err e = key_scope(op, &tx->read, &tenant);
    if (e != ERR_OK)
        return e;
    e = keys_revoke(tx->db, tenant, in->key_id, tx->now_ms, &found);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_NOT_FOUND, "This API key does not exist");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_uuid(&o, "id", in->key_id);
    json_add_bool(&o, "revoked", true);
    json_close(&o, '}');
    tx_note(tx, EFFECT_KEYS_CHANGED);
    if (e == ERR_OK)
        e = audit_record_id(op, tx, MAX(tenant, 0), "key.revoke", in->key_id, STR_NONE);
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot revoke the key");
}

const struct use_case UC_REVOKE_KEY = {.name = "revoke_key", .write = revoke_key};

static void add_key(void *ctx, const struct api_key *key)
{
    struct page *page = ctx;
    if (!page_takes(page))
        return;
    render_key(&page->out, key, STR_NONE);
    struct buf id;
    buf_init(&id, UUID_TEXT_LEN);
    buf_put_uuid(&id, key->id);
    page_take_last(page, &id);
}

static enum err list_keys(struct op *op, struct read_tx *tx)
{
    const struct list_input *in = op->input;
    int64_t tenant;
    struct uuid after = {{0}};
    enum err e = key_scope(op, tx, &tenant);
    if (e != ERR_OK)
        return e;
    if (in->cursor.ptr != NULL && !uuid_parse(in->cursor, &after))
        return problem_set(&op->problem, ERR_CURSOR_INVALID,
                           "The cursor does not belong to this list");
    struct page page = page_begin(op, in->limit);
    e = keys_list(tx->db, tenant, after, in->limit + 1, add_key, &page);
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot list the keys");
    page_end(&page);
    return ERR_OK;
}

const struct use_case UC_LIST_KEYS = {.name = "list_keys", .read = list_keys};

/* The session has ended in memory; a restart must not bring it back. */
static enum err end_session(struct op *op, struct tx *tx)
{
    const struct end_session_input *in = op->input;
    enum err e = in->has_session ? ended_sessions_add(tx->db, in->id, in->expires_at) : ERR_OK;
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot store that the session has ended");
    struct json_out o = json_out_to(&op->answer.body);
    json_open(&o, NULL, '{');
    json_add_bool(&o, "signed_out", in->has_session);
    json_close(&o, '}');
    return ERR_OK;
}

const struct use_case UC_END_SESSION = {.name = "end_session", .write = end_session};

static enum err touch_keys(struct op *op, struct tx *tx)
{
    const struct touch_keys_input *in = op->input;
    enum err e = ERR_OK;
    for (size_t i = 0; i < in->count && e == ERR_OK; i++)
        e = keys_touch(tx->db, in->uses[i].id, in->uses[i].at_ms);
    return e;
}

const struct use_case UC_TOUCH_KEYS = {.name = "touch_keys", .write = touch_keys};

/* --- idempotency records --- */

static enum err find_record(struct op *op, struct tx *tx, struct idem_record *ret)
{
    const struct idem_input *in = op->input;
    struct tenant *tenant;
    bool found = false;
    enum err e = read_tx_tenant(&tx->read, op, &tenant);
    if (e != ERR_OK)
        return e;
    e = idempotency_find(tx->db, tx->keys, tenant->num, in->key, &tx->arena, &found, ret);
    if (e == ERR_OK && !found)
        return problem_set(&op->problem, ERR_IDEM_KEY_NOT_FOUND,
                           "Tenant %.*s has no record of this key", STR_ARG(tenant->id));
    if (e != ERR_OK)
        return problem_set(&op->problem, e, "Cannot read the record");
    struct json_out o = json_out_to(&op->answer.body);
    render_idem_record(&o, ret);
    return ERR_OK;
}

static enum err get_idem(struct op *op, struct tx *tx)
{
    struct idem_record record = {0};
    op->answer.changed_nothing = true;
    return find_record(op, tx, &record);
}

/* Runs on the writer, behind the counts that wait for the next commit. */
const struct use_case UC_GET_IDEM = {
    .name = "get_idempotency_key", .write = get_idem, .sees_counts = true};

static enum err release_idem(struct op *op, struct tx *tx)
{
    const struct idem_input *in = op->input;
    struct idem_record record = {0};
    enum err e = find_record(op, tx, &record);
    if (e != ERR_OK)
        return e;
    e = idempotency_delete(tx->db, record.num);
    if (e == ERR_OK)
        e = audit_record(op, tx, record.tenant, "idempotency.release", in->key,
                         buf_str(&op->answer.body));
    return e == ERR_OK ? ERR_OK : problem_set(&op->problem, e, "Cannot release the key");
}

const struct use_case UC_RELEASE_IDEM = {.name = "release_idempotency_key", .write = release_idem};
