/* pawl: picks the subcommand, and for `serve` wires the parts together and turns the loop. */
#include "api/api.h"
#include "base/limits.h"
#include "base/log.h"
#include "bus/nats_bus.h"
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    DRAIN_MS_MAX = 20 * 1000, /* systemd's own patience is 90 s */
    FAILED_DRAIN_MS_MAX = 1000,
    LINGER_NS = 100 * 1000,
};

struct options {
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
    {"--listen", "PAWL_LISTEN", false, offsetof(struct options, listen), "HOST:PORT",
     "where to listen (127.0.0.1:7295; port 0 picks one)"},
    {"--store", "PAWL_STORE", false, offsetof(struct options, store), "sqlite:PATH",
     "the data file (sqlite:pawl.db)"},
    {"--gate", "PAWL_GATE", false, offsetof(struct options, gate), "store",
     "the admission gate (store)"},
    {"--bus", "PAWL_BUS", false, offsetof(struct options, bus), "nats://HOST:PORT",
     "NATS JetStream, where events go (tls:// too; several with commas)"},
    {"--bus-creds", "PAWL_BUS_CREDS", false, offsetof(struct options, bus_creds), "FILE",
     "NATS credentials file (JWT and seed)"},
    {"--bus-ca", "PAWL_BUS_CA", false, offsetof(struct options, bus_ca), "FILE",
     "PEM certificates that the bus's own may come from: speak TLS with it"},
    {"--bus-queues", "PAWL_BUS_QUEUES", false, offsetof(struct options, bus_queues), "Q,Q",
     "queues whose jobs are offered to workers on the bus too"},
    {"--metrics-listen", "PAWL_METRICS_LISTEN", false, offsetof(struct options, metrics_listen),
     "HOST:PORT", "serve /metrics, /healthz and /readyz here too, without a key (plain HTTP)"},
    {"--dev", "PAWL_DEV", true, offsetof(struct options, dev), NULL,
     "no API keys: X-Tenant-ID and X-Actor say who it is"},
    {"--dev-insecure", "PAWL_DEV_INSECURE", true, offsetof(struct options, dev_insecure), NULL,
     "allow --dev on an address that other machines reach"},
    {"--allow-private-addresses", "PAWL_ALLOW_PRIVATE_ADDRESSES", true,
     offsetof(struct options, allow_private_addresses), NULL,
     "let http steps and webhooks call private and loopback addresses (--dev: loopback anyway)"},
    {"--tls-cert", "PAWL_TLS_CERT", false, offsetof(struct options, tls_cert), "FILE",
     "PEM certificate chain: speak HTTPS"},
    {"--tls-key", "PAWL_TLS_KEY", false, offsetof(struct options, tls_key), "FILE",
     "PEM private key of it"},
    {"--log", "PAWL_LOG", false, offsetof(struct options, log), "text|json",
     "form of the log on standard error (text)"},
    {"--log-level", "PAWL_LOG_LEVEL", false, offsetof(struct options, log_level),
     "debug|info|warn|error", "what is worth a line (info)"},
    {"--wal-max-mib", "PAWL_WAL_MAX_MIB", false, offsetof(struct options, wal_max_mib), "N",
     "refuse writes when the write-ahead log cannot shrink and is larger (256)"},
};

/* --- help --- */

static void print_serve_help(FILE *out)
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

static void print_help(FILE *out)
{
    fprintf(out,
            "pawl %s: a durable workflow control plane in which every retry is safe\n\n"
            "usage: pawl COMMAND …          pawl COMMAND --help says more\n\n"
            "  serve      run the server\n"
            "  dev        the same as `serve --dev`\n"
            "  version    print the version\n",
            PAWL_VERSION);
    cli_help(out);
}

/* --- options --- */

static const char **option_at(struct options *o, const struct flag *flag)
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
    return EXIT_USAGE;
}

/* 0, or the exit code after a message. */
static int parse_options(int argc, char **argv, struct options *o)
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
    return EXIT_USAGE;
}

static int check_options(const struct options *o, int64_t *ret_wal_mib)
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

/* --- the loop --- */

struct server {
    struct metrics *metrics;
    struct bus *bus; /* NULL: none */
    struct str bus_queues[BUS_QUEUES_MAX];
    size_t bus_queue_count;
    struct engine *engine;
    struct api *api;
    struct http_server *http;
    struct http_server *aside; /* at --metrics-listen; NULL: none */
    int signal_fd;
    bool draining;
    int64_t drain_until_ms;
};

/* systemd's protocol: one datagram to the socket it names. */
static void tell_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, strlen(path));
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        to.sun_path[0] = '\0'; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        sendto(fd, state, strlen(state), 0, (const struct sockaddr *)(const void *)&to, len) < 0)
        LOG(LOG_WARN, "cannot tell systemd", LOG_Z("state", state),
            LOG_Z("error", strerror(errno)));
    if (fd >= 0)
        close(fd);
}

static void begin_drain(struct server *s, const char *why, int64_t patience_ms)
{
    LOG(LOG_INFO, "draining", LOG_Z("why", why));
    tell_systemd("STOPPING=1");
    s->draining = true;
    s->drain_until_ms = env_mono_ms(&ENV_SYSTEM) + patience_ms;
    engine_drain(s->engine);
    api_drain(s->api);
    http_server_drain(s->http);
    if (s->aside != NULL)
        http_server_drain(s->aside);
}

static size_t open_connections(const struct server *s)
{
    return http_server_connections(s->http) +
           (s->aside != NULL ? http_server_connections(s->aside) : 0);
}

static int sleep_ms(const struct server *s)
{
    int wait = engine_timeout_ms(s->engine);
    int others[] = {
        http_server_timeout_ms(s->http),
        s->aside != NULL ? http_server_timeout_ms(s->aside) : -1,
        api_timeout_ms(s->api),
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        wait = others[i] >= 0 ? MIN(wait, others[i]) : wait;
    return wait;
}

/* A client that talks alone sends its next request within moments: looking a little longer costs
 * less than going to sleep and being woken, which on a virtual machine takes as long as half a
 * commit. */
static int wait_for_events(struct server *s, struct pollfd *fds, nfds_t count)
{
    int ms = sleep_ms(s);
    if (ms > 0 && engine_expects_more(s->engine)) {
        int64_t until = env_mono_ns(&ENV_SYSTEM) + LINGER_NS;
        do {
            int rc = poll(fds, count, 0);
            if (rc != 0)
                return rc;
        } while (env_mono_ns(&ENV_SYSTEM) < until);
    }
    return poll(fds, count, ms);
}

static void turn(struct server *s)
{
    struct pollfd fds[] = {
        {http_server_fd(s->http), POLLIN, 0},
        {engine_event_fd(s->engine), POLLIN, 0},
        {s->signal_fd, POLLIN, 0},
        {s->aside != NULL ? http_server_fd(s->aside) : -1, POLLIN, 0},
    };
    int rc = wait_for_events(s, fds, ARRAY_LEN(fds));
    assert(rc >= 0 || errno == EINTR);
    struct signalfd_siginfo info;
    if ((fds[2].revents & POLLIN) != 0 && read(s->signal_fd, &info, sizeof(info)) > 0) {
        if (s->draining)
            s->drain_until_ms = 0; /* asked twice: do not wait any longer */
        else
            begin_drain(s, "asked to stop", DRAIN_MS_MAX);
    }
    engine_poll(s->engine, (fds[1].revents & POLLIN) != 0);
    http_server_turn(s->http);
    if (s->aside != NULL)
        http_server_turn(s->aside);
    api_tick(s->api, env_mono_ms(&ENV_SYSTEM));
    engine_round_end(s->engine);
    if (engine_failed(s->engine) && !s->draining)
        begin_drain(s, "the store failed", FAILED_DRAIN_MS_MAX);
}

/* Until every answer is out, or patience ends. */
static int run_loop(struct server *s)
{
    for (;;) {
        turn(s);
        if (!s->draining)
            continue;
        bool quiet = engine_idle(s->engine) && open_connections(s) == 0;
        if (quiet && engine_failed(s->engine)) {
            LOG(LOG_ERROR, "leaving: the data files stay as the failure left them");
            _exit(EXIT_REFUSED); /* closing the store would write to a disk that has failed */
        }
        if (quiet)
            return EXIT_DONE;
        if (env_mono_ms(&ENV_SYSTEM) > s->drain_until_ms) {
            LOG(LOG_WARN, "stopping with connections open",
                LOG_N("connections", open_connections(s)));
            /* What was acknowledged is on disk; tidying up could hang on what is not. */
            _exit(engine_failed(s->engine) ? EXIT_REFUSED : EXIT_DONE);
        }
    }
}

/* --- serve --- */

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)(HTTP_CONNECTIONS_MAX * 2));
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    /* Before any thread starts, so that all inherit it. */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static enum err read_bus_queues(struct server *s, const char *list, struct problem *p)
{
    struct str rest = str_of(list);
    for (bool more = list != NULL; more;) {
        struct str queue;
        more = str_cut(rest, ',', &queue, &rest);
        queue = str_trim(queue);
        if (queue.len > NAME_MAX_LEN || !str_is_name(queue) || s->bus_queue_count == BUS_QUEUES_MAX)
            return problem_set(p, ERR_FIELD_INVALID, "--bus-queues is up to %d names of queues",
                               BUS_QUEUES_MAX);
        s->bus_queues[s->bus_queue_count++] = queue;
    }
    return ERR_OK;
}

static enum err open_bus(struct server *s, const struct options *o, struct problem *p)
{
    if (o->bus == NULL)
        return ERR_OK;
    enum err e = read_bus_queues(s, o->bus_queues, p);
    struct nats_bus_config bus = {
        .urls = o->bus,
        .creds = o->bus_creds,
        .ca = o->bus_ca,
        .jobs = s->bus_queue_count > 0,
    };
    return e == ERR_OK ? nats_bus_new(&bus, p, &s->bus) : e;
}

/* A development server may call this machine, unless others could make it do so. */
static enum address_reach reach_of(const struct options *o)
{
    if (o->allow_private_addresses != NULL)
        return REACH_ALL;
    return o->dev != NULL && http_is_loopback(o->listen) ? REACH_LOOPBACK : REACH_PUBLIC;
}

static enum err start_aside(struct server *s, const struct options *o, struct problem *p)
{
    struct http_config http = {
        .listen = o->metrics_listen,
        .env = &ENV_SYSTEM,
        .handler = api_handle_aside,
        .handler_ctx = s->api,
    };
    enum err e = http_server_start(&http, p, &s->aside);
    if (e == ERR_OK)
        LOG(LOG_INFO, "metrics and health are served", LOG_Z("url", http_server_url(s->aside)));
    return e;
}

static enum err start(struct server *s, const struct options *o, int64_t wal_mib, struct problem *p)
{
    s->signal_fd = open_signals();
    s->metrics = metrics_new();
    if (s->signal_fd < 0 || s->metrics == NULL)
        return problem_set(p, ERR_NO_MEMORY, "cannot start");
    enum err e = open_bus(s, o, p); /* it has threads: behind the signals */
    if (e != ERR_OK)
        return e;
    struct engine_config engine = {
        .store_url = str_of(o->store),
        .root_key = str_of(getenv("PAWL_ROOT_KEY")),
        .env = &ENV_SYSTEM,
        .metrics = s->metrics,
        .log_bytes_max = wal_mib * MIB,
        .bus = s->bus,
        .bus_queues = s->bus_queues,
        .bus_queue_count = s->bus_queue_count,
        .keeps_all = getenv("PAWL_PRIVATE") != NULL, /* it serves one offline command */
        .reach = reach_of(o),
    };
    e = engine_open(&engine, p, &s->engine);
    if (e != ERR_OK)
        return e;
    struct api_config api = {s->engine, s->metrics, &ENV_SYSTEM, o->dev != NULL ? o->listen : NULL};
    s->api = api_new(&api);
    if (s->api == NULL)
        return problem_set(p, ERR_NO_MEMORY, "cannot start");
    struct http_config http = {
        .listen = o->listen,
        .tls_cert = o->tls_cert,
        .tls_key = o->tls_key,
        .env = &ENV_SYSTEM,
        .metrics = s->metrics,
        .handler = api_handle,
        .handler_ctx = s->api,
    };
    e = http_server_start(&http, p, &s->http);
    return e == ERR_OK && o->metrics_listen != NULL ? start_aside(s, o, p) : e;
}

static void stop(struct server *s)
{
    http_server_free(s->http);
    http_server_free(s->aside);
    engine_close(s->engine);
    if (s->bus != NULL)
        s->bus->free(s->bus);
    api_free(s->api);
    metrics_free(s->metrics);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
}

static int serve(int argc, char **argv, bool dev)
{
    struct options o = {.listen = "127.0.0.1:7295",
                        .store = "sqlite:pawl.db",
                        .gate = "store",
                        .log = "text",
                        .log_level = "info",
                        .dev = dev ? "1" : NULL};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_serve_help(stdout);
            return EXIT_DONE;
        }
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
    (void)umask(S_IRWXG | S_IRWXO); /* the data is the owner's alone */
    struct server s = {.signal_fd = -1};
    struct problem p;
    problem_init(&p);
    if (start(&s, &o, wal_mib, &p) != ERR_OK) {
        bool flags_are_wrong = o.bus != NULL && s.bus == NULL && p.err == ERR_FIELD_INVALID;
        fprintf(stderr, "pawl: %s\n", p.detail);
        rc = flags_are_wrong ? EXIT_USAGE : EXIT_REFUSED;
    } else {
        printf("pawl listening on %s\n", http_server_url(s.http));
        fflush(stdout);
        tell_systemd("READY=1");
        rc = run_loop(&s);
    }
    problem_release(&p);
    stop(&s);
    return rc;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "--help";
    if (strcmp(command, "serve") == 0 || strcmp(command, "dev") == 0)
        return serve(argc, argv, strcmp(command, "dev") == 0);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        printf("pawl %s (%s)\n", PAWL_VERSION, engine_store_name());
        return EXIT_DONE;
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 ||
        strcmp(command, "-h") == 0) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? EXIT_DONE : EXIT_USAGE;
    }
    if (cli_knows(command))
        return cli_main(argc, argv);
    fprintf(stderr, "pawl: there is no command \"%s\" (see pawl --help)\n", command);
    return EXIT_USAGE;
}
