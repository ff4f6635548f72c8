/* Who sends a request, on any node of a cluster. */
#include "cluster/identity.h"

#include "base/log.h"
#include "runtime/engine.h"
#include "runtime/login_log.h"
#include "store/ended_sessions.h"
#include "store/tenants.h"

enum { TENANTS_KEPT = 1024 }; /* of which it is known whether they have keys */
enum { REOPEN_MS = 500 };     /* a database that is down holds up the loop no more often */

struct kept_tenant {
    char id[TENANT_ID_MAX + 1]; /* "": none */
    bool has_keys;
    uint64_t epoch; /* when that was read */
};

struct identity {
    struct identity_config config;
    struct api_auth hooks;
    struct sessions *sessions;
    struct auth *auth;
    struct identity_source source;
    struct db *db;        /* NULL: not open */
    bool has_secret;      /* of sessions */
    bool has_ended;       /* it has read which sessions were ended */
    uint64_t ended_epoch; /* and when */
    int64_t reopen_at_ms;
    struct login_log logins;
    struct kept_tenant tenants[TENANTS_KEPT];
};

static enum err identify(void *ctx, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret);
static enum err identify_session(void *ctx, struct str text, struct problem *p,
                                 struct auth_identity *ret);

static bool knows_tenant(void *ctx, struct str tenant);
static size_t take_uses(void *ctx, struct key_use *out, size_t max);
static void note_uses(void *ctx, const struct key_use *uses, size_t count);

static uint64_t current_epoch(void *ctx)
{
    const struct identity *i = ctx;
    return i->source.epoch(i->source.ctx);
}

static struct engine *engine_of(const struct identity *i)
{
    return i->source.engine(i->source.ctx);
}

/* Two numbers that only grow; whoever knows the keys may change too. */
static uint64_t whole_epoch(void *ctx)
{
    const struct engine *engine = engine_of(ctx);
    return 2 * current_epoch(ctx) + (engine != NULL ? 2 * engine_auth_epoch(engine) + 1 : 0);
}

static struct metric *declare(struct metrics *metrics)
{
    static const struct metric_spec SPEC = {
        "pawl_auth_failures_total",
        "API keys rejected: invalid, or throttled after too many invalid keys from one address.",
        METRIC_COUNTER,
        {"reason", NULL},
        NULL};
    struct metric *m = metrics_declare(metrics, &SPEC);
    if (m == NULL)
        return NULL;
    metric_add(m, STR("invalid"), STR_NONE, 0);
    metric_add(m, STR("throttled"), STR_NONE, 0);
    return m;
}

struct identity *identity_new(const struct identity_config *config)
{
    struct identity *i = calloc(1, sizeof(*i));
    if (i == NULL)
        return NULL;
    i->config = *config;
    i->hooks = (struct api_auth){i,         identify, identify_session, whole_epoch, knows_tenant,
                                 take_uses, note_uses};
    i->sessions = sessions_new(config->env);
    i->auth = i->sessions != NULL ? auth_new(config->env, config->root_key, i->sessions) : NULL;
    i->logins.failures = declare(config->metrics);
    if (i->auth != NULL && i->logins.failures != NULL)
        return i;
    identity_free(i);
    return NULL;
}

void identity_free(struct identity *i)
{
    if (i == NULL)
        return;
    db_close(i->db);
    auth_free(i->auth);
    sessions_free(i->sessions);
    free(i);
}

void identity_use(struct identity *i, const struct identity_source *source)
{
    i->source = *source;
}

const struct api_auth *identity_auth(const struct identity *i)
{
    return &i->hooks;
}

/* --- the reader --- */

static void close_reader(struct identity *i)
{
    db_close(i->db);
    i->db = NULL;
    i->reopen_at_ms = env_mono_ms(i->config.env) + REOPEN_MS;
}

/* The first owner of shard 0 stores it. */
static enum err read_secret(struct identity *i, struct problem *p)
{
    struct secret secret;
    bool found = false;
    enum err e = secrets_find(i->db, STR("session"), &found, &secret);
    if (e != ERR_OK || !found)
        return problem_set(p, e != ERR_OK ? e : ERR_STORE_BUSY, "Cannot check API keys yet");
    sessions_use_secret(i->sessions, &secret);
    i->has_secret = true;
    return ERR_OK;
}

static enum err open_reader(struct identity *i, struct problem *p)
{
    if (i->db != NULL && i->has_secret)
        return ERR_OK;
    if (i->db == NULL && env_mono_ms(i->config.env) < i->reopen_at_ms)
        return problem_set(p, ERR_STORE_BUSY, "Cannot check API keys: the database is away");
    struct db_config config = {.url = str_of(i->source.store),
                               .access = DB_READER,
                               .env = i->config.env,
                               .patience_ms = LOOP_READ_MS_MAX};
    enum err e = i->db == NULL ? db_open(&config, p, &i->db) : ERR_OK;
    if (e != ERR_OK) {
        LOG(LOG_WARN, "cannot read API keys", LOG_Z("error", p->detail));
        problem_clear(p);
        close_reader(i);
        return problem_set(p, ERR_STORE_BUSY, "Cannot check API keys: the database is away");
    }
    e = i->has_secret ? ERR_OK : read_secret(i, p);
    if (e != ERR_OK)
        close_reader(i);
    return e;
}

/* May a key that is known have been revoked long ago? */
static enum err check_age(const struct identity *i, struct problem *p)
{
    if (i->source.age_ms(i->source.ctx) <= NODE_LEASE_MS)
        return ERR_OK;
    return problem_set(p, ERR_STORE_BUSY, "Cannot check API keys: the database is away");
}

static struct db *reader(void *ctx)
{
    return ((struct identity *)ctx)->db;
}

/* An answer that was not a refusal may mean that the connection is gone. */
static enum err checked(struct identity *i, enum err e, struct problem *p)
{
    if (e == ERR_OK || e == ERR_UNAUTHENTICATED || e == ERR_LOGIN_THROTTLED)
        return e;
    close_reader(i);
    problem_clear(p);
    return problem_set(p, ERR_STORE_BUSY, "Cannot check API keys: the database is away");
}

static enum err identify(void *ctx, struct str key, struct str peer, struct problem *p,
                         struct auth_identity *ret)
{
    struct identity *i = ctx;
    struct auth_question q = {key, peer, current_epoch(i), reader, i};
    enum err e = check_age(i, p);
    if (e == ERR_OK && engine_of(i) != NULL)
        return engine_identify(engine_of(i), key, peer, p, ret);
    if (e == ERR_OK)
        e = open_reader(i, p);
    if (e != ERR_OK)
        return e;
    e = checked(i, auth_check(i->auth, &q, p, ret), p);
    login_log_note(&i->logins, peer, e, env_mono_ms(i->config.env));
    return e;
}

static void keep_ended(void *ctx, struct uuid id, int64_t expires_at)
{
    const struct identity *i = ctx;
    struct session session = {.id = id, .expires_at = expires_at};
    if (!sessions_end(i->sessions, &session))
        LOG(LOG_WARN, "a session that was ended goes on: there is no memory for it");
}

/* Sessions are signed out where shard 0 is served; that raises the epoch. */
static enum err read_ended(struct identity *i, struct problem *p)
{
    uint64_t epoch = current_epoch(i);
    if (i->has_ended && i->ended_epoch == epoch)
        return ERR_OK;
    enum err e =
        ended_sessions_list(i->db, env_now_ms(i->config.env), SESSIONS_ENDED_MAX, keep_ended, i);
    if (e != ERR_OK)
        return problem_set(p, e, "Cannot read which sessions were ended");
    i->has_ended = true;
    i->ended_epoch = epoch;
    return ERR_OK;
}

static enum err identify_session(void *ctx, struct str text, struct problem *p,
                                 struct auth_identity *ret)
{
    struct identity *i = ctx;
    struct auth_question q = {text, STR_NONE, current_epoch(i), reader, i};
    enum err e = check_age(i, p);
    if (e == ERR_OK && engine_of(i) != NULL)
        return engine_identify_session(engine_of(i), text, p, ret);
    if (e == ERR_OK)
        e = open_reader(i, p);
    if (e != ERR_OK)
        return e;
    e = read_ended(i, p);
    return checked(i, e == ERR_OK ? auth_check_session(i->auth, &q, p, ret) : e, p);
}

/* Its keys are rows of shard 0, which then has a row of the tenant too. */
static bool knows_tenant(void *ctx, struct str tenant)
{
    struct identity *i = ctx;
    uint64_t epoch = whole_epoch(i);
    struct kept_tenant *kept = &i->tenants[str_hash(tenant) % TENANTS_KEPT];
    if (kept->epoch == epoch && str_is(tenant, kept->id))
        return kept->has_keys;
    struct problem ignored;
    int64_t num = 0;
    problem_init(&ignored);
    enum err e = open_reader(i, &ignored);
    if (e == ERR_OK)
        e = checked(i, tenants_num(i->db, tenant, &num), &ignored);
    problem_release(&ignored);
    if (e != ERR_OK)
        return false;
    (void)snprintf(kept->id, sizeof(kept->id), "%.*s", STR_ARG(tenant));
    kept->has_keys = num != 0;
    kept->epoch = epoch;
    return kept->has_keys;
}

/* --- uses --- */

/* Those that it has seen while another node had shard 0. */
static size_t take_uses(void *ctx, struct key_use *out, size_t max)
{
    const struct identity *i = ctx;
    return auth_take_uses(i->auth, out, max);
}

/* Without the shard they wait here for whoever has it. */
static void note_uses(void *ctx, const struct key_use *uses, size_t count)
{
    const struct identity *i = ctx;
    struct engine *engine = engine_of(i);
    if (engine != NULL)
        engine_note_key_uses(engine, uses, count);
    else
        auth_add_uses(i->auth, uses, count);
}
