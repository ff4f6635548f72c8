/* pawl serve: options, their checks, and what the process needs before the server starts. */
#include "serve/serve.h"

#include "api/api.h"
#include "base/limits.h"
#include "base/log.h"
#include "domain/url.h"
#include "gate/redis_url.h"
#include "runtime/auth.h"
#include "runtime/engine.h"
#include "serve/helpers.h"
#include "serve/server.h"

#include <sys/resource.h>
#include <sys/stat.h>

enum { WAL_MIB_MAX = 1024 * 1024 }; /* 1 TiB, more than any log needs */

const struct option SERVE_OPTIONS[] = {
    {.name = "listen",
     .value = "HOST:PORT",
     .help = "The address to listen on; port 0 picks a free one",
     .variable = "PAWL_LISTEN",
     .fallback = "127.0.0.1:7295"},
    {.name = "store",
     .value = "sqlite:PATH|postgres://…",
     .help = "The data file, or a PostgreSQL database; it is set up if it is new",
     .variable = "PAWL_STORE",
     .fallback = "sqlite:pawl.db"},
    {.name = "node",
     .value = "NAME",
     .help =
         "The name of this server among those that share a PostgreSQL database; the host's name "
         "unless given",
     .variable = "PAWL_NODE"},
    {.name = "advertise",
     .value = "URL",
     .help = "Where the other servers reach this one; the address it listens on unless given",
     .variable = "PAWL_ADVERTISE"},
    {.name = "node-ca",
     .value = "FILE",
     .help = "Whose certificates (PEM) the other servers may show; the system's unless given",
     .variable = "PAWL_NODE_CA"},
    {.name = "gate",
     .value = "store|redis://…",
     .help = "A Redis server with the locks of tenants that ask for them; the store holds every "
             "limit either way",
     .variable = "PAWL_GATE",
     .fallback = "store"},
    {.name = "bus",
     .value = "nats://HOST:PORT",
     .help = "Publish events to NATS JetStream; tls:// works too, separate several servers with "
             "commas",
     .variable = "PAWL_BUS"},
    {.name = "bus-creds",
     .value = "FILE",
     .help = "NATS credentials file (JWT and seed)",
     .variable = "PAWL_BUS_CREDS"},
    {.name = "bus-ca",
     .value = "FILE",
     .help = "CA certificates (PEM) to trust for the NATS server; turns TLS on",
     .variable = "PAWL_BUS_CA"},
    {.name = "bus-queues",
     .value = "QUEUE,QUEUE",
     .help = "Also offer the jobs of these queues to workers on the bus",
     .variable = "PAWL_BUS_QUEUES"},
    {.name = "metrics-listen",
     .value = "HOST:PORT",
     .help = "Also serve /metrics, /healthz and /readyz at this address, in plain HTTP and without "
             "API keys",
     .variable = "PAWL_METRICS_LISTEN"},
    {.name = "otlp",
     .value = "http://HOST:PORT",
     .help = "Export traces to this OpenTelemetry collector (OTLP over HTTP, JSON)",
     .variable = "PAWL_OTLP"},
    {.name = "dev",
     .kind = OPTION_SWITCH,
     .help = "Development mode: no API keys; the headers X-Tenant-ID and X-Actor name the caller",
     .variable = "PAWL_DEV"},
    {.name = "dev-insecure",
     .kind = OPTION_SWITCH,
     .help = "Allow --dev on an address that other machines can reach",
     .variable = "PAWL_DEV_INSECURE"},
    {.name = "allow-private-addresses",
     .kind = OPTION_SWITCH,
     .help = "Allow calls to private and loopback addresses, from http steps and webhooks; --dev "
             "allows loopback anyway",
     .variable = "PAWL_ALLOW_PRIVATE_ADDRESSES"},
    {.name = "tls-cert",
     .value = "FILE",
     .help = "PEM certificate chain; turns HTTPS on, together with --tls-key",
     .variable = "PAWL_TLS_CERT"},
    {.name = "tls-key",
     .value = "FILE",
     .help = "PEM private key of the certificate; SIGHUP reads both again",
     .variable = "PAWL_TLS_KEY"},
    {.name = "tls-client-ca",
     .value = "FILE",
     .help = "PEM certificates of CAs; accept only clients with a certificate of one of them",
     .variable = "PAWL_TLS_CLIENT_CA"},
    {.name = "public-url",
     .value = "URL",
     .help =
         "Where browsers reach this server, with the prefix that a proxy adds; needed to sign in "
         "at an OpenID provider",
     .variable = "PAWL_PUBLIC_URL"},
    {.name = "oidc-issuer",
     .value = "URL",
     .help = "The OpenID provider where people may sign in to the console",
     .variable = "PAWL_OIDC_ISSUER"},
    {.name = "oidc-client-id",
     .value = "ID",
     .help = "The name of this server at the provider",
     .variable = "PAWL_OIDC_CLIENT_ID"},
    {.name = "oidc-client-secret-file",
     .value = "FILE",
     .help = "The file with the client's secret; without it the client is a public one",
     .variable = "PAWL_OIDC_CLIENT_SECRET_FILE"},
    {.name = "oidc-scope",
     .value = "TEXT",
     .help = "What to ask the provider for",
     .variable = "PAWL_OIDC_SCOPE",
     .fallback = "openid email"},
    {.name = "oidc-actor-claim",
     .value = "NAME",
     .help = "The claim that names the person in timelines and in the audit trail",
     .variable = "PAWL_OIDC_ACTOR_CLAIM",
     .fallback = "email"},
    {.name = "oidc-role-claim",
     .value = "NAME",
     .help = "The claim with the person's role, or with groups; realm_access.roles is a path",
     .variable = "PAWL_OIDC_ROLE_CLAIM",
     .fallback = "roles"},
    {.name = "oidc-role-map",
     .value = "GROUP=ROLE,...",
     .help = "The roles of groups; without it groups are named like roles",
     .variable = "PAWL_OIDC_ROLE_MAP"},
    {.name = "oidc-tenant-claim",
     .value = "NAME",
     .help = "The claim with the person's tenant; * is all tenants",
     .variable = "PAWL_OIDC_TENANT_CLAIM"},
    {.name = "oidc-tenant",
     .value = "TENANT",
     .help = "The tenant of everybody, if there is no --oidc-tenant-claim",
     .variable = "PAWL_OIDC_TENANT",
     .fallback = "default"},
    {.name = "log",
     .kind = OPTION_CHOICE,
     .choices = "text|json",
     .help = "Format of the log on standard error",
     .variable = "PAWL_LOG",
     .fallback = "text"},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .choices = "debug|info|warn|error",
     .help = "The least severe level to log",
     .variable = "PAWL_LOG_LEVEL",
     .fallback = "info"},
    {.name = "log-requests",
     .kind = OPTION_SWITCH,
     .help = "Log each request: method, path, status and duration; `pawl dev` always does",
     .variable = "PAWL_LOG_REQUESTS"},
    {.name = "wal-max-mib",
     .kind = OPTION_NUMBER,
     .value = "N",
     .min = 1,
     .max = WAL_MIB_MAX,
     .unit = "MiB",
     .help = "Refuse writes while the write-ahead log is larger than this and cannot shrink",
     .variable = "PAWL_WAL_MAX_MIB",
     .fallback = "256"},
    {.name = NULL},
};

const struct option DEV_OPTIONS[] = {
    {.name = "watch",
     .value = "DIR",
     .help = "Apply the workflow files (JSON or YAML) of this folder whenever they change",
     .many = true},
    {.name = "demo",
     .kind = OPTION_SWITCH,
     .help = "Run a living example: a shop that starts orders and works on them"},
    {.name = NULL},
};

static void print_help(FILE *out, const struct options *o);
static enum err check_options(const struct options *o, bool dev, struct problem *p);
static enum log_level log_level_of(const char *name);
static void raise_file_limit(void);
static enum serve_exit serve(const struct options *o, bool dev, bool is_dev);

int serve_main(int argc, char **argv, bool dev)
{
    struct options o = {.lists = {dev ? DEV_OPTIONS : NULL, SERVE_OPTIONS}};
    bool is_dev = dev; /* the command, not the option */
    struct problem p;
    enum serve_exit rc = SERVE_DONE;
    problem_init(&p);
    enum err e = options_parse(&o, argc, argv, 2, &p);
    if (e == ERR_OK && !o.help) {
        dev = dev || options_has(&o, "dev");
        e = check_options(&o, dev, &p);
    }
    if (e != ERR_OK) {
        const char *name = is_dev ? "dev" : "serve";
        fprintf(stderr, "pawl: %s\nusage: pawl %s", p.detail, name);
        options_print_usage(stderr, &o);
        fprintf(stderr, "Run `pawl %s --help` for the options.\n", name);
        rc = SERVE_USAGE;
    } else if (o.help) {
        print_help(stdout, &o);
    } else {
        rc = serve(&o, dev, is_dev);
    }
    problem_release(&p);
    return (int)rc;
}

/* Texts are the options'. */
static struct oidc_config oidc_of(const struct options *o)
{
    return (struct oidc_config){
        .issuer = str_of(options_text(o, "oidc-issuer")),
        .client_id = str_of(options_text(o, "oidc-client-id")),
        .scope = str_of(options_text(o, "oidc-scope")),
        .rules = {.actor_claim = str_of(options_text(o, "oidc-actor-claim")),
                  .role_claim = str_of(options_text(o, "oidc-role-claim")),
                  .role_map = str_of(options_text(o, "oidc-role-map")),
                  .tenant_claim = str_of(options_text(o, "oidc-tenant-claim")),
                  .tenant = str_of(options_text(o, "oidc-tenant"))},
    };
}

const char *serve_store_name_at(size_t i)
{
    return engine_store_name_at(i);
}

/* Starts what `pawl dev` runs beside the server. */
static void start_helpers(void *ctx, const char *url)
{
    const struct options *o = ctx;
    size_t at = 0;
    for (const char *folder; (folder = options_next(o, "watch", &at)) != NULL;)
        helper_start((const char *const[]){"workflow", "watch", folder, "--url", url, NULL});
    if (options_has(o, "demo"))
        helper_start((const char *const[]){"demo", "orders", "--url", url, NULL});
}

static enum serve_exit serve(const struct options *o, bool dev, bool is_dev)
{
    bool json = strcmp(options_text(o, "log"), "json") == 0;
    log_setup(json ? LOG_JSON : LOG_TEXT, log_level_of(options_text(o, "log-level")), &ENV_SYSTEM);
    raise_file_limit();
    (void)umask(S_IRWXG | S_IRWXO); /* only the owner may read the data */
    struct server_config config = {
        .listen = options_text(o, "listen"),
        .metrics_listen = options_text(o, "metrics-listen"),
        .store = options_text(o, "store"),
        .node = options_text(o, "node"),
        .advertise = options_text(o, "advertise"),
        .gate = options_text(o, "gate"),
        .node_ca = options_text(o, "node-ca"),
        .bus = options_text(o, "bus"),
        .bus_creds = options_text(o, "bus-creds"),
        .bus_ca = options_text(o, "bus-ca"),
        .bus_queues = options_text(o, "bus-queues"),
        .tls_cert = options_text(o, "tls-cert"),
        .tls_key = options_text(o, "tls-key"),
        .tls_client_ca = options_text(o, "tls-client-ca"),
        .otlp = options_text(o, "otlp"),
        .public_url = options_text(o, "public-url"),
        .oidc = oidc_of(o),
        .oidc_secret_file = options_text(o, "oidc-client-secret-file"),
        .root_key = getenv("PAWL_ROOT_KEY"),
        .wal_bytes_max = options_number(o, "wal-max-mib", 0) * MIB,
        .dev = dev,
        .allow_private_addresses = options_has(o, "allow-private-addresses"),
        .keeps_all = getenv("PAWL_PRIVATE") != NULL,
        .log_requests = is_dev || options_has(o, "log-requests"),
        .on_ready = is_dev ? start_helpers : NULL,
        .on_ready_ctx = (void *)(uintptr_t)o,
    };
    return server_run(&config);
}

/* --- options --- */

static const char NOTES[] =
    "The name in brackets is the environment variable that sets the option; the command line "
    "overrides it.\n\n"
    "PAWL_ROOT_KEY (environment only) is an API key with the role admin for all tenants. It is not "
    "stored. Use it to create the first keys. It must have at least 32 random characters: `openssl "
    "rand -hex 32`.\n\n"
    "Prints `pawl listening on URL` when it is ready. On SIGTERM the server finishes the requests "
    "in flight and exits with code 0.\n";

static void print_help(FILE *out, const struct options *o)
{
    fputs("usage: pawl serve", out);
    options_print_usage(out, o);
    fputs("\nRun the server. `pawl dev` runs it for development.\n\n", out);
    options_print_help(out, o->lists[0]);
    options_print_help(out, o->lists[1]);
    fputc('\n', out);
    options_print_text(out, NOTES);
}

static enum err check_root_key(struct problem *p)
{
    struct str key = str_of(getenv("PAWL_ROOT_KEY"));
    const char *fault = key.len > 0 ? auth_root_key_fault(key) : NULL;
    if (fault == NULL)
        return ERR_OK;
    return problem_set(p, ERR_FIELD_INVALID,
                       "PAWL_ROOT_KEY %s. Make one with `openssl rand -hex 32`", fault);
}

static enum err check_url(const char *option, const char *url, struct problem *p)
{
    const char *fault =
        strpbrk(url, "?#") != NULL ? "must not have a query or a fragment" : url_fault(str_of(url));
    if (fault == NULL)
        return ERR_OK;
    return problem_set(p, ERR_FIELD_INVALID, "--%s: the URL \"%s\" %s", option, url, fault);
}

static enum err check_gate(const char *gate, struct problem *p)
{
    struct redis_url url;
    const char *fault = strcmp(gate, "store") != 0 ? redis_url_parse(str_of(gate), &url) : NULL;
    if (fault == NULL)
        return ERR_OK;
    bool has_password = strchr(gate, '@') != NULL; /* it may be in a log */
    return problem_set(p, ERR_FIELD_INVALID, "--gate: \"%s\" %s. Use store or redis://HOST:PORT.",
                       has_password ? "redis://…@…" : gate, fault);
}

static enum err check_otlp(const char *url, struct problem *p)
{
    return url != NULL ? check_url("otlp", url, p) : ERR_OK;
}

static enum err check_oidc(const struct options *o, bool dev, struct problem *p)
{
    struct oidc_config oidc = oidc_of(o);
    const char *fault = oidc_rules_fault(&oidc.rules);
    if (!options_has(o, "oidc-issuer"))
        return options_has(o, "oidc-client-id")
                   ? problem_set(p, ERR_FIELD_INVALID, "--oidc-client-id needs --oidc-issuer")
                   : ERR_OK;
    if (!options_has(o, "oidc-client-id") || !options_has(o, "public-url"))
        fault = "--oidc-issuer needs --oidc-client-id and --public-url";
    else if (dev)
        fault = "With --dev nobody signs in: leave out --oidc-issuer";
    else if (!str_starts_with(oidc.issuer, STR("https://")) &&
             !options_has(o, "allow-private-addresses"))
        fault = "--oidc-issuer must begin with https://, unless --allow-private-addresses is given";
    if (fault != NULL)
        return problem_set(p, ERR_FIELD_INVALID, "%s", fault);
    enum err e = check_url("oidc-issuer", oidc.issuer.ptr, p);
    return e == ERR_OK ? check_url("public-url", options_text(o, "public-url"), p) : e;
}

/* Options that need each other, or a certain form. */
static enum err check_options(const struct options *o, bool dev, struct problem *p)
{
    bool bus_details =
        options_has(o, "bus-creds") || options_has(o, "bus-ca") || options_has(o, "bus-queues");
    if (bus_details && !options_has(o, "bus"))
        return problem_set(p, ERR_FIELD_INVALID,
                           "--bus-creds, --bus-ca and --bus-queues need --bus");
    if (options_has(o, "tls-cert") != options_has(o, "tls-key"))
        return problem_set(p, ERR_FIELD_INVALID, "--tls-cert and --tls-key need each other");
    if (options_has(o, "tls-client-ca") && !options_has(o, "tls-cert"))
        return problem_set(p, ERR_FIELD_INVALID, "--tls-client-ca needs --tls-cert and --tls-key");
    enum err e = check_gate(options_text(o, "gate"), p);
    if (e == ERR_OK)
        e = check_otlp(options_text(o, "otlp"), p);
    if (e == ERR_OK && options_has(o, "advertise"))
        e = check_url("advertise", options_text(o, "advertise"), p);
    if (e == ERR_OK)
        e = check_oidc(o, dev, p);
    if (e != ERR_OK)
        return e;
    const char *listen = options_text(o, "listen");
    if (dev && !options_has(o, "dev-insecure") && !http_is_loopback(listen))
        return problem_set(p, ERR_FIELD_INVALID,
                           "--dev asks for no API keys, so it listens on loopback addresses only, "
                           "not on %s. To allow it anyway, add --dev-insecure.",
                           listen);
    return check_root_key(p);
}

static enum log_level log_level_of(const char *name)
{
    static const char *const NAMES[] = {"debug", "info", "warn", "error"};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(NAMES) && strcmp(name, NAMES[i]) != 0)
        i++;
    return (enum log_level)i;
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)(HTTP_CONNECTIONS_MAX * 2));
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
