/* pawl serve: options, their checks, and what the process needs before the server starts. */
#include "serve/serve.h"

#include "api/api.h"
#include "base/limits.h"
#include "base/log.h"
#include "serve/server.h"

#include <sys/resource.h>
#include <sys/stat.h>

struct flag_values {
    const char *listen;
    const char *metrics_listen;
    const char *store;
    const char *gate;
    const char *bus;
    const char *bus_creds;
    const char *bus_ca;
    const char *bus_queues;
    const char *log;
    const char *log_level;
    const char *tls_cert;
    const char *tls_key;
    const char *wal_max_mib;
    const char *dev;
    const char *dev_insecure;
    const char *allow_private_addresses;
};

/* Every flag of `serve` has an environment variable; the flag wins. */
static const struct flag {
    const char *name;
    const char *variable;
    bool is_switch;
    size_t offset;
    const char *value;
    const char *help;
} FLAGS[] = {
    {"--listen", "PAWL_LISTEN", false, offsetof(struct flag_values, listen), "HOST:PORT",
     "where to listen (127.0.0.1:7295; port 0 picks one)"},
    {"--store", "PAWL_STORE", false, offsetof(struct flag_values, store), "sqlite:PATH",
     "the data file (sqlite:pawl.db)"},
    {"--gate", "PAWL_GATE", false, offsetof(struct flag_values, gate), "store",
     "the admission gate (store)"},
    {"--bus", "PAWL_BUS", false, offsetof(struct flag_values, bus), "nats://HOST:PORT",
     "NATS JetStream, where events go (tls:// too; several with commas)"},
    {"--bus-creds", "PAWL_BUS_CREDS", false, offsetof(struct flag_values, bus_creds), "FILE",
     "NATS credentials file (JWT and seed)"},
    {"--bus-ca", "PAWL_BUS_CA", false, offsetof(struct flag_values, bus_ca), "FILE",
     "PEM certificates that the bus's own may come from: speak TLS with it"},
    {"--bus-queues", "PAWL_BUS_QUEUES", false, offsetof(struct flag_values, bus_queues), "Q,Q",
     "queues whose jobs are offered to workers on the bus too"},
    {"--metrics-listen", "PAWL_METRICS_LISTEN", false, offsetof(struct flag_values, metrics_listen),
     "HOST:PORT", "serve /metrics, /healthz and /readyz here too, without a key (plain HTTP)"},
    {"--dev", "PAWL_DEV", true, offsetof(struct flag_values, dev), NULL,
     "no API keys: X-Tenant-ID and X-Actor say who it is"},
    {"--dev-insecure", "PAWL_DEV_INSECURE", true, offsetof(struct flag_values, dev_insecure), NULL,
     "allow --dev on an address that other machines reach"},
    {"--allow-private-addresses", "PAWL_ALLOW_PRIVATE_ADDRESSES", true,
     offsetof(struct flag_values, allow_private_addresses), NULL,
     "let http steps and webhooks call private and loopback addresses (--dev: loopback anyway)"},
    {"--tls-cert", "PAWL_TLS_CERT", false, offsetof(struct flag_values, tls_cert), "FILE",
     "PEM certificate chain: speak HTTPS"},
    {"--tls-key", "PAWL_TLS_KEY", false, offsetof(struct flag_values, tls_key), "FILE",
     "PEM private key of it"},
    {"--log", "PAWL_LOG", false, offsetof(struct flag_values, log), "text|json",
     "form of the log on standard error (text)"},
    {"--log-level", "PAWL_LOG_LEVEL", false, offsetof(struct flag_values, log_level),
     "debug|info|warn|error", "what is worth a line (info)"},
    {"--wal-max-mib", "PAWL_WAL_MAX_MIB", false, offsetof(struct flag_values, wal_max_mib), "N",
     "refuse writes when the write-ahead log cannot shrink and is larger (256)"},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: pawl serve [flags]\n\n");
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "%s %s", FLAGS[i].name,
                       FLAGS[i].value != NULL ? FLAGS[i].value : "");
        fprintf(out, "  %-34s %s [%s]\n", left, FLAGS[i].help, FLAGS[i].variable);
    }
    fprintf(out,
            "\n  PAWL_ROOT_KEY (environment only) is an API key that is an admin of all tenants\n"
            "  and is kept nowhere: for the first set-up. At least 32 random characters, as\n"
            "  `openssl rand -hex 32` makes them.\n"
            "\nPrints `pawl listening on URL` when it is ready. SIGTERM drains and exits 0.\n");
}

static const char **option_at(struct flag_values *o, const struct flag *flag)
{
    return (const char **)(void *)((char *)o + flag->offset);
}

static const struct flag *find_flag(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        if (str_is(name, FLAGS[i].name))
            return &FLAGS[i];
    }
    return NULL;
}

static int usage(const char *what, const char *about)
{
    fprintf(stderr, "pawl serve: %s%s (see pawl serve --help)\n", what, about);
    return SERVE_USAGE;
}

/* 0, or the exit code after a message. */
static int parse_options(int argc, char **argv, struct flag_values *o)
{
    for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
        const char *value = getenv(FLAGS[i].variable);
        if (value != NULL && value[0] != '\0' && !(FLAGS[i].is_switch && strcmp(value, "0") == 0))
            *option_at(o, &FLAGS[i]) = value;
    }
    for (int i = 2; i < argc; i++) {
        struct str name;
        struct str value;
        bool joined = str_cut(str_of(argv[i]), '=', &name, &value);
        const struct flag *flag = find_flag(name);
        if (flag == NULL)
            return usage("there is no flag ", argv[i]);
        if (flag->is_switch && joined)
            return usage("takes no value: ", flag->name);
        if (!flag->is_switch && !joined && i + 1 == argc)
            return usage("needs a value: ", flag->name);
        *option_at(o, flag) = flag->is_switch ? "1" : joined ? value.ptr : argv[++i];
    }
    return 0;
}

static int check_root_key(void)
{
    struct str key = str_of(getenv("PAWL_ROOT_KEY"));
    const char *fault = key.len > 0 ? auth_root_key_fault(key) : NULL;
    if (fault == NULL)
        return 0;
    fprintf(stderr, "pawl serve: PAWL_ROOT_KEY %s. Make one with: openssl rand -hex 32\n", fault);
    return SERVE_USAGE;
}

static int check_options(const struct flag_values *o, int64_t *ret_wal_mib)
{
    if (strcmp(o->gate, "store") != 0)
        return usage("this version has the gate `store` only, not ", o->gate);
    if (o->bus == NULL && (o->bus_creds != NULL || o->bus_ca != NULL || o->bus_queues != NULL))
        return usage("--bus-creds, --bus-ca and --bus-queues need --bus", "");
    if ((o->tls_cert == NULL) != (o->tls_key == NULL))
        return usage("--tls-cert and --tls-key go together", "");
    if (strcmp(o->log, "text") != 0 && strcmp(o->log, "json") != 0)
        return usage("--log is text or json, not ", o->log);
    if (o->dev != NULL && o->dev_insecure == NULL && !http_is_loopback(o->listen))
        return usage("--dev asks nobody for a key, so it listens on loopback only (or say "
                     "--dev-insecure): ",
                     o->listen);
    *ret_wal_mib = 0;
    if (o->wal_max_mib != NULL && (!str_to_i64(str_of(o->wal_max_mib), ret_wal_mib) ||
                                   *ret_wal_mib < 1 || *ret_wal_mib > 1024 * 1024))
        return usage("--wal-max-mib is a number of MiB, not ", o->wal_max_mib);
    return 0;
}

static bool log_level_of(const char *name, enum log_level *ret)
{
    static const char *const NAMES[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)(HTTP_CONNECTIONS_MAX * 2));
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

int serve_main(int argc, char **argv, bool dev)
{
    struct flag_values o = {.listen = "127.0.0.1:7295",
                            .store = "sqlite:pawl.db",
                            .gate = "store",
                            .log = "text",
                            .log_level = "info",
                            .dev = dev ? "1" : NULL};
    if (asks_for_help(argc, argv)) {
        print_help(stdout);
        return SERVE_DONE;
    }
    int64_t wal_mib;
    enum log_level level;
    int rc = parse_options(argc, argv, &o);
    if (rc == 0)
        rc = check_options(&o, &wal_mib);
    if (rc == 0)
        rc = check_root_key();
    if (rc == 0 && !log_level_of(o.log_level, &level))
        rc = usage("--log-level is debug, info, warn or error, not ", o.log_level);
    if (rc != 0)
        return rc;
    log_setup(strcmp(o.log, "json") == 0 ? LOG_JSON : LOG_TEXT, level, &ENV_SYSTEM);
    raise_file_limit();
    (void)umask(S_IRWXG | S_IRWXO); /* only the owner may read the data */
    struct server_config config = {
        .listen = o.listen,
        .metrics_listen = o.metrics_listen,
        .store = o.store,
        .bus = o.bus,
        .bus_creds = o.bus_creds,
        .bus_ca = o.bus_ca,
        .bus_queues = o.bus_queues,
        .tls_cert = o.tls_cert,
        .tls_key = o.tls_key,
        .root_key = getenv("PAWL_ROOT_KEY"),
        .wal_bytes_max = wal_mib * MIB,
        .dev = o.dev != NULL,
        .allow_private_addresses = o.allow_private_addresses != NULL,
        .keeps_all = getenv("PAWL_PRIVATE") != NULL,
    };
    return (int)server_run(&config);
}
