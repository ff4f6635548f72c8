/* A closed-loop HTTP/1.1 load generator for servers on this machine: one thread, one epoll.
 *
 * Each connection keeps exactly one request under way. A request is rendered once per connection;
 * sending the next one only overwrites its unique digits, so the client takes as little as it can
 * of the cores that it shares with the server.
 *
 * The run is warm, then measured, then drained. Only what ends while measured is counted; the drain
 * waits for the replies still under way, and one that never comes is an error. With --requests the
 * window ends as soon as so many are answered.
 */
#define _GNU_SOURCE 1 /* memmem */
#include "latency.h"
#include "reply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096 /* at 16 KiB each this stays well under 100 MiB */
#define HEADERS_MAX 16       /* more than any of our requests has */
#define REQUEST_MAX 65536    /* one send should take it whole */
#define SECONDS_MAX 3600.0   /* a window that is longer was mistyped */
#define REQUESTS_MAX 1e9     /* nobody waits for more */
#define CONNECT_WAIT_S 2     /* a server that does not accept by then is not running */
#define DRAIN_NS 5000000000u /* the longest wait for replies under way at the end */
#define UNIQUE_DIGITS 16     /* a 64-bit number in hex */
#define UNIQUE_SLOTS_MAX 8   /* places of {u} in one request */

enum phase { WARM, MEASURED, DRAIN };

struct options {
    uint16_t port;
    size_t connections;
    double warm_s, measured_s;
    const char *method, *path, *body;
    const char *headers[HEADERS_MAX];
    size_t header_count;
    uint64_t seed;
    uint64_t requests; /* 0: as many as the window lets */
    bool burst;
};

struct conn {
    int fd;           /* -1 when closed; opened again by the next request */
    bool waiting;     /* a request is under way */
    bool wants_write; /* epoll also watches for room to send */
    uint64_t sent_ns;

    char *request;
    size_t request_len, request_sent;
    size_t unique_at[UNIQUE_SLOTS_MAX];
    size_t unique_count;

    struct reply reply;
};

struct load {
    struct options opt;
    struct conn *conns;
    int epoll;
    enum phase phase;
    bool bodiless;  /* the method is HEAD */
    size_t waiting; /* connections with a request under way */
    uint64_t requests;
    uint64_t errors;
    bool error_told;
    uint64_t codes[REPLY_CODE_END];
    struct latency lat;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- requests ---- */

/* A bijection on 64 bits (Stafford's mix 13): numbers that differ give texts that differ. */
static void unique_digits(uint64_t number, char *ret_digits)
{
    static const char hex[] = "0123456789abcdef";
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    number ^= number >> 31;
    for (int i = UNIQUE_DIGITS - 1; i >= 0; i--, number >>= 4)
        ret_digits[i] = hex[number & 15];
}

static void request_put(struct conn *conn, const char *text, size_t len)
{
    if (len > REQUEST_MAX - conn->request_len)
        die("a request is longer than %d bytes", REQUEST_MAX);
    memcpy(conn->request + conn->request_len, text, len);
    conn->request_len += len;
}

static void request_template(struct conn *conn, const char *text, size_t number)
{
    for (const char *at = text; *at != '\0';) {
        if (strncmp(at, "{u}", 3) == 0) {
            if (conn->unique_count == UNIQUE_SLOTS_MAX)
                die("{u} stands in more than %d places", UNIQUE_SLOTS_MAX);
            conn->unique_at[conn->unique_count++] = conn->request_len;
            request_put(conn, "0000000000000000", UNIQUE_DIGITS);
            at += 3;
        } else if (strncmp(at, "{c}", 3) == 0) {
            char digits[24];
            int len = snprintf(digits, sizeof digits, "%zu", number);
            request_put(conn, digits, (size_t)len);
            at += 3;
        } else {
            request_put(conn, at++, 1);
        }
    }
}

static void request_line(struct conn *conn, const char *name, const char *value, size_t number)
{
    request_template(conn, name, number);
    request_template(conn, value, number);
    request_put(conn, "\r\n", 2);
}

/* Small blocks side by side: pages of their own would compete for the same cache lines. */
static void request_fit(struct conn *conn)
{
    conn->request = realloc(conn->request, conn->request_len);
    if (conn->request == NULL)
        die("out of memory");
}

static void request_build(const struct options *opt, struct conn *conn, size_t number)
{
    conn->request = malloc(REQUEST_MAX);
    if (conn->request == NULL)
        die("out of memory");

    char text[32];
    bool typed = false;
    request_template(conn, opt->method, number);
    request_put(conn, " ", 1);
    request_line(conn, opt->path, " HTTP/1.1", number);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)opt->port);
    request_line(conn, "Host: ", text, number);
    for (size_t i = 0; i < opt->header_count; i++) {
        request_line(conn, opt->headers[i], "", number);
        typed = typed || strncasecmp(opt->headers[i], "Content-Type:", 13) == 0;
    }
    if (opt->body == NULL) {
        request_put(conn, "\r\n", 2);
        request_fit(conn);
        return;
    }
    if (!typed)
        request_line(conn, "Content-Type: ", "application/json", number);

    /* The length stands before the body, whose width {c} decides: leave room, fill it in after. */
    request_line(conn, "Content-Length: ", "     \r\n", number);
    size_t body_at = conn->request_len;
    request_template(conn, opt->body, number);
    static_assert(REQUEST_MAX <= 99999, "the room for the length is five digits wide");
    snprintf(text, sizeof text, "%5zu", conn->request_len - body_at);
    memcpy(conn->request + body_at - 4 - 5, text, 5);
    request_fit(conn);
}

/* ---- connections ---- */

static void conn_close(struct load *load, struct conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    conn->wants_write = false;
    if (conn->waiting)
        load->waiting--;
    conn->waiting = false;
}

/* An exchange that ended without a whole reply. The connection is opened again by its next start,
 * which the main loop makes: from here, a server that always refuses would recurse for ever. */
static void conn_broken(struct load *load, struct conn *conn, const char *why)
{
    if (load->phase != WARM)
        load->errors++;
    if (!load->error_told)
        fprintf(stderr, "load: %s\n", why);
    load->error_told = true;
    conn_close(load, conn);
}

static void conn_open(struct load *load, struct conn *conn)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(load->opt.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wait = {.tv_sec = CONNECT_WAIT_S};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    int on = 1;
    assert(conn->fd < 0 && !conn->waiting);

    /* Blocking, so that the send time-out bounds connect; the transfers below never block. */
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 || setsockopt(conn->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) != 0 ||
        setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        connect(conn->fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        die("127.0.0.1:%u: %s", (unsigned)load->opt.port, strerror(errno));
}

static void conn_watch_write(struct load *load, struct conn *conn, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = conn};
    if (conn->wants_write == on)
        return;
    if (epoll_ctl(load->epoll, EPOLL_CTL_MOD, conn->fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
    conn->wants_write = on;
}

static void conn_send(struct load *load, struct conn *conn)
{
    while (conn->request_sent < conn->request_len) {
        ssize_t n = send(conn->fd, conn->request + conn->request_sent,
                         conn->request_len - conn->request_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            conn_watch_write(load, conn, true);
            return;
        }
        if (n < 0) {
            conn_broken(load, conn, strerror(errno));
            return;
        }
        conn->request_sent += (size_t)n;
    }
    conn_watch_write(load, conn, false);
}

static bool may_send(const struct load *load)
{
    return load->phase != DRAIN && (load->opt.requests == 0 || load->requests < load->opt.requests);
}

static void conn_start(struct load *load, struct conn *conn, uint64_t now)
{
    assert(!conn->waiting && may_send(load));
    if (conn->fd < 0) {
        conn_open(load, conn);
        now = now_ns();
    }
    if (conn->unique_count > 0) {
        char *first = conn->request + conn->unique_at[0];
        unique_digits(load->opt.seed + load->requests, first);
        for (size_t i = 1; i < conn->unique_count; i++)
            memcpy(conn->request + conn->unique_at[i], first, UNIQUE_DIGITS);
    }
    load->requests++;
    load->waiting++;
    conn->waiting = true;
    conn->request_sent = 0;
    reply_clear(&conn->reply);
    conn->sent_ns = now;
    conn_send(load, conn);
}

static void conn_receive(struct load *load, struct conn *conn)
{
    struct reply *reply = &conn->reply;
    ssize_t n = recv(conn->fd, reply->bytes + reply->have, REPLY_MAX - reply->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return; /* epoll is level-triggered and asks again */
    if (!conn->waiting) {
        if (n > 0)
            conn_broken(load, conn, "a reply came that nothing had asked for");
        else
            conn_close(load, conn); /* closing an idle connection is the server's right */
        return;
    }
    if (n <= 0) {
        conn_broken(load, conn, n < 0 ? strerror(errno) : "closed before the reply was whole");
        return;
    }
    const char *fault = NULL;
    reply->have += (size_t)n;
    bool whole = reply_take(reply, load->bodiless, &fault);
    if (whole && conn->request_sent < conn->request_len)
        fault = "the reply came before the request was sent";
    if (fault != NULL) {
        conn_broken(load, conn, fault);
        return;
    }
    if (!whole)
        return;

    uint64_t now = now_ns();
    if (load->phase == MEASURED) {
        latency_add(&load->lat, now - conn->sent_ns);
        load->codes[reply->code]++;
    }
    conn->waiting = false;
    load->waiting--;
    if (reply->closes)
        conn_close(load, conn);
    if (may_send(load) && !load->opt.burst)
        conn_start(load, conn, now);
}

/* ---- the run ---- */

/* Starts what stands still: after a broken exchange, or in bursts once the whole round is in. */
static void start_idle(struct load *load)
{
    size_t count = load->opt.connections;
    if (load->waiting == count || (load->opt.burst && load->waiting > 0))
        return;
    for (size_t i = 0; i < count && may_send(load); i++) {
        if (!load->conns[i].waiting)
            conn_start(load, &load->conns[i], now_ns());
    }
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_result(const struct load *load, double seconds, double cpu_s)
{
    const struct latency *lat = &load->lat;
    printf("{\"ops\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"p50_us\":%.1f,\"p95_us\":%.1f,"
           "\"p99_us\":%.1f,\"max_us\":%.1f,\"errors\":%llu,\"codes\":{",
           (unsigned long long)lat->count, seconds, (double)lat->count / seconds,
           latency_percentile_us(lat, 50), latency_percentile_us(lat, 95),
           latency_percentile_us(lat, 99), (double)lat->max_ns / 1000,
           (unsigned long long)load->errors);
    const char *comma = "";
    for (size_t code = 0; code < REPLY_CODE_END; code++) {
        if (load->codes[code] == 0)
            continue;
        printf("%s\"%zu\":%llu", comma, code, (unsigned long long)load->codes[code]);
        comma = ",";
    }
    printf("},\"client_cpu_s\":%.3f}\n", cpu_s);
}

static void run(struct load *load)
{
    struct epoll_event events[256];
    uint64_t now = now_ns();
    uint64_t next = now + (uint64_t)(load->opt.warm_s * 1e9); /* when the phase ends */
    uint64_t measured_from = 0;
    double seconds = 0, cpu_s = 0;

    for (;; now = now_ns()) {
        if (load->phase == WARM && now >= next) {
            load->phase = MEASURED;
            measured_from = now;
            cpu_s = cpu_seconds();
            next = now + (uint64_t)(load->opt.measured_s * 1e9);
        } else if (load->phase == MEASURED &&
                   (now >= next || (!may_send(load) && load->waiting == 0))) {
            load->phase = DRAIN;
            seconds = (double)(now - measured_from) / 1e9;
            cpu_s = cpu_seconds() - cpu_s;
            next = now + DRAIN_NS;
        }
        if (load->phase == DRAIN && (load->waiting == 0 || now >= next))
            break;
        start_idle(load);

        /* Rounded up, or the last millisecond would be spent spinning; short while a connection
         * stands still, so that it is tried again soon but not in a tight loop. */
        int wait_ms = now >= next ? 0 : (int)((next - now + 999999) / 1000000);
        if (load->phase != DRAIN && load->waiting < load->opt.connections && wait_ms > 1)
            wait_ms = 1;
        int n = epoll_wait(load->epoll, events, sizeof events / sizeof events[0], wait_ms);
        if (n < 0 && errno != EINTR)
            die("epoll_wait: %s", strerror(errno));
        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;
            if ((events[i].events & EPOLLOUT) != 0)
                conn_send(load, conn);
            if (conn->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0)
                conn_receive(load, conn);
        }
    }
    load->errors += load->waiting;
    if (load->waiting > 0)
        fprintf(stderr, "load: %zu requests were never answered\n", load->waiting);
    print_result(load, seconds, cpu_s);
}

/* ---- the command line ---- */

static double number_of(const char *name, const char *text, double min, double max)
{
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= min && number <= max))
        die("--%s wants a number from %g to %g", name, min, max);
    return number;
}

static void parse_options(int argc, char **argv, struct options *opt)
{
    static const struct option known[] = {
        {"port", required_argument, NULL, 'p'},   {"connections", required_argument, NULL, 'n'},
        {"warm", required_argument, NULL, 'w'},   {"seconds", required_argument, NULL, 's'},
        {"method", required_argument, NULL, 'm'}, {"path", required_argument, NULL, 'u'},
        {"header", required_argument, NULL, 'h'}, {"body", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 'r'},   {"requests", required_argument, NULL, 'c'},
        {"burst", no_argument, NULL, 'B'},        {NULL, 0, NULL, 0},
    };
    bool wrong = false;
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'p') {
            opt->port = (uint16_t)number_of("port", optarg, 1, 65535);
        } else if (c == 'n') {
            opt->connections = (size_t)number_of("connections", optarg, 1, CONNECTIONS_MAX);
        } else if (c == 'w') {
            opt->warm_s = number_of("warm", optarg, 0, SECONDS_MAX);
        } else if (c == 's') {
            opt->measured_s = number_of("seconds", optarg, 0.001, SECONDS_MAX);
        } else if (c == 'r') {
            opt->seed = (uint64_t)number_of("seed", optarg, 0, 1e15);
        } else if (c == 'c') {
            opt->requests = (uint64_t)number_of("requests", optarg, 1, REQUESTS_MAX);
        } else if (c == 'm') {
            opt->method = optarg;
        } else if (c == 'u') {
            opt->path = optarg;
        } else if (c == 'b') {
            opt->body = optarg;
        } else if (c == 'B') {
            opt->burst = true;
        } else if (c == 'h' && opt->header_count < HEADERS_MAX) {
            opt->headers[opt->header_count++] = optarg;
        } else if (c == 'h') {
            die("more than %d headers", HEADERS_MAX);
        } else {
            wrong = true; /* getopt has said what */
        }
    }
    if (opt->body == NULL && strcmp(opt->method, "GET") != 0 && strcmp(opt->method, "HEAD") != 0)
        opt->body = ""; /* a POST without a body still says that its length is 0 */
    if (wrong || optind != argc || opt->port == 0)
        die("usage: load --port P [--connections N] [--warm S] [--seconds S] [--method M]\n"
            "            [--path X] [--header 'N: v']... [--body B] [--seed N] [--burst]\n"
            "            [--requests N]\n"
            "  in path, headers and body {u} is unique to the request, {c} the connection's "
            "number\n"
            "  --burst: all connections send at once, and again when the last reply is in\n"
            "  --requests: stops when so many are answered, if the window is not over before");
}

int main(int argc, char **argv)
{
    static struct load load = {
        .opt = {.connections = 64, .warm_s = 1, .measured_s = 5, .method = "GET", .path = "/"}};
    /* Two runs against one server must not repeat keys, unless --seed asks for the same ones. */
    if (getrandom(&load.opt.seed, sizeof load.opt.seed, 0) != sizeof load.opt.seed)
        die("getrandom: %s", strerror(errno));
    parse_options(argc, argv, &load.opt);
    load.bodiless = strcmp(load.opt.method, "HEAD") == 0;

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.conns = calloc(load.opt.connections, sizeof *load.conns);
    if (load.epoll < 0 || load.conns == NULL)
        die("%s", strerror(errno));
    for (size_t i = 0; i < load.opt.connections; i++) {
        load.conns[i].fd = -1;
        request_build(&load.opt, &load.conns[i], i);
        conn_open(&load, &load.conns[i]);
    }
    run(&load);
    for (size_t i = 0; i < load.opt.connections; i++) {
        conn_close(&load, &load.conns[i]);
        free(load.conns[i].request);
    }
    free(load.conns);
    close(load.epoll);
    return 0;
}
