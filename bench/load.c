/* An HTTP/1.1 load generator for servers on this machine: one thread, one epoll.
 *
 * In a closed loop each connection keeps exactly one request under way. The run is warm, then
 * measured, then drained; what ends while measured is counted. With --requests the window ends as
 * soon as so many are answered.
 *
 * In an open loop (--rate) requests are due at fixed times, whatever the server does (pace.h). One
 * that is due takes the connection that has been idle the longest, or waits for one; its latency
 * counts from when it was due. All that were due in the window count, also if they are answered
 * later. What is never answered is an error, and counts with the time that it waited.
 */
#define _GNU_SOURCE 1 /* epoll_pwait2 */
#include "latency.h"
#include "load_options.h"
#include "pace.h"
#include "reply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_WAIT_S 2     /* a server that does not accept by then is not running */
#define DRAIN_NS 5000000000u /* the longest wait for replies under way at the end */
#define RETRY_NS 1000000u    /* between tries of a connection that broke */

enum phase { WARM, MEASURED, DRAIN };

struct conn {
    int fd;           /* -1 when closed; opened again by the next request */
    bool waiting;     /* a request is under way */
    bool wants_write; /* epoll also watches for room to send */
    bool measured;    /* an open loop's request: it was due in the window */
    uint64_t from_ns; /* when the request was sent, or in an open loop due */
    size_t spec;
    size_t sent;              /* bytes of the request */
    struct request *requests; /* one for each spec */
    struct reply reply;
};

/* What one kind of request was answered with. */
struct outcome {
    struct latency lat;
    uint64_t codes[REPLY_CODE_END];
};

struct load {
    struct load_options opt;
    struct conn *conns;
    int epoll;
    enum phase phase;
    unsigned char *order; /* of the specs, round by round */
    size_t order_len;
    size_t waiting; /* connections with a request under way */

    struct conn **idle; /* a ring: the others, the longest idle first */
    size_t idle_at, idle_count;

    uint64_t requests;
    uint64_t errors, unsent;
    bool error_told;
    struct pace pace;         /* of an open loop */
    struct latency send_late; /* how long after it was due a request was sent */
    struct latency lat;
    struct outcome *outcomes; /* by spec */

    uint64_t measured_from, measured_to; /* in an open loop to the last measured reply */
    double cpu_s;
};

static bool is_open_loop(const struct load *load)
{
    return load->opt.per_s > 0;
}

/* ---- idle connections ---- */

static void idle_push(struct load *load, struct conn *conn)
{
    assert(load->idle_count < load->opt.connections);
    load->idle[(load->idle_at + load->idle_count++) % load->opt.connections] = conn;
}

static struct conn *idle_pop(struct load *load)
{
    assert(load->idle_count > 0);
    struct conn *conn = load->idle[load->idle_at];
    load->idle_at = (load->idle_at + 1) % load->opt.connections;
    load->idle_count--;
    return conn;
}

/* ---- connections ---- */

static void conn_close(struct conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    conn->wants_write = false;
}

static void conn_idle(struct load *load, struct conn *conn)
{
    conn->waiting = false;
    load->waiting--;
    idle_push(load, conn);
}

static void measure(struct load *load, const struct conn *conn, uint64_t now)
{
    latency_add(&load->lat, now - conn->from_ns);
    latency_add(&load->outcomes[conn->spec].lat, now - conn->from_ns);
    if (is_open_loop(load))
        load->measured_to = now;
}

static bool counts(const struct load *load, const struct conn *conn)
{
    return is_open_loop(load) ? conn->measured : load->phase == MEASURED;
}

/* An exchange that ended without a whole reply. The connection is opened again by its next start,
 * which the main loop makes: from here, a server that always refuses would recurse for ever. */
static void conn_broken(struct load *load, struct conn *conn, const char *why)
{
    if (is_open_loop(load) ? conn->measured : load->phase != WARM)
        load->errors++;
    if (!load->error_told)
        fprintf(stderr, "load: %s\n", why);
    load->error_told = true;
    conn_close(conn);
    if (!conn->waiting)
        return;
    if (is_open_loop(load) && conn->measured)
        measure(load, conn, now_ns());
    conn_idle(load, conn);
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
    const struct request *request = &conn->requests[conn->spec];
    while (conn->sent < request->len) {
        ssize_t n = send(conn->fd, request->bytes + conn->sent, request->len - conn->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
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
        conn->sent += (size_t)n;
    }
    conn_watch_write(load, conn, false);
}

/* ---- starting requests ---- */

static bool closed_may_send(const struct load *load)
{
    return load->phase != DRAIN && (load->opt.requests == 0 || load->requests < load->opt.requests);
}

static bool is_over(const struct load *load)
{
    return load->waiting == 0 &&
           (is_open_loop(load) ? pace_is_done(&load->pace) : !closed_may_send(load));
}

static void conn_start(struct load *load, struct conn *conn, uint64_t now)
{
    assert(!conn->waiting);
    if (conn->fd < 0) {
        conn_open(load, conn);
        now = now_ns();
    }
    conn->spec = load->order[load->requests % load->order_len];
    conn->from_ns = now;
    if (is_open_loop(load)) {
        conn->from_ns = pace_take(&load->pace, &conn->measured);
        if (conn->measured)
            latency_add(&load->send_late, now - conn->from_ns);
    }
    request_number(&conn->requests[conn->spec], load->requests, load->opt.seed, &load->opt.values);
    load->requests++;
    load->waiting++;
    conn->waiting = true;
    conn->sent = 0;
    reply_clear(&conn->reply);
    conn_send(load, conn);
}

/* Gives idle connections what is to be sent now. Each gets one try: one that breaks at once is idle
 * again, and its turn comes with the next call. */
static void start_due(struct load *load, uint64_t now)
{
    if (load->opt.burst && load->waiting > 0)
        return; /* the round is not in yet */
    for (size_t tries = load->idle_count; tries > 0; tries--) {
        if (!(is_open_loop(load) ? pace_is_due(&load->pace, now) : closed_may_send(load)))
            return;
        conn_start(load, idle_pop(load), now);
    }
}

/* ---- replies ---- */

static void conn_answered(struct load *load, struct conn *conn)
{
    uint64_t now = now_ns();
    if (counts(load, conn)) {
        measure(load, conn, now);
        load->outcomes[conn->spec].codes[conn->reply.code]++;
    }
    if (conn->reply.closes)
        conn_close(conn);
    conn_idle(load, conn);
    if (!load->opt.burst)
        start_due(load, now);
}

static void conn_receive(struct load *load, struct conn *conn)
{
    struct reply *reply = &conn->reply;
    bool bodiless = strcmp(load->opt.specs[conn->spec].method, "HEAD") == 0;
    ssize_t n = recv(conn->fd, reply->bytes + reply->have, REPLY_MAX - reply->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return; /* epoll is level-triggered and asks again */
    if (!conn->waiting) {
        if (n > 0)
            conn_broken(load, conn, "a reply came that nothing had asked for");
        else
            conn_close(conn); /* closing an idle connection is the server's right */
        return;
    }
    if (n <= 0) {
        conn_broken(load, conn, n < 0 ? strerror(errno) : "closed before the reply was whole");
        return;
    }
    const char *fault = NULL;
    reply->have += (size_t)n;
    bool whole = reply_take(reply, bodiless, &fault);
    if (whole && conn->sent < conn->requests[conn->spec].len)
        fault = "the reply came before the request was sent";
    if (fault != NULL)
        conn_broken(load, conn, fault);
    else if (whole)
        conn_answered(load, conn);
}

/* ---- the results ---- */

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_latency(const struct latency *lat, double seconds)
{
    printf("\"ops\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"p50_us\":%.1f,\"p90_us\":%.1f,"
           "\"p95_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f",
           (unsigned long long)lat->count, seconds, (double)lat->count / seconds,
           latency_percentile_us(lat, 50), latency_percentile_us(lat, 90),
           latency_percentile_us(lat, 95), latency_percentile_us(lat, 99),
           latency_percentile_us(lat, 99.9), (double)lat->max_ns / 1000);
}

static void print_codes(const struct outcome *outcomes, size_t count)
{
    const char *comma = "";
    printf(",\"codes\":{");
    for (size_t code = 0; code < REPLY_CODE_END; code++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += outcomes[i].codes[code];
        if (sum == 0)
            continue;
        printf("%s\"%zu\":%llu", comma, code, (unsigned long long)sum);
        comma = ",";
    }
    printf("}");
}

static void print_kinds(const struct load *load, double seconds)
{
    printf(",\"kinds\":{");
    for (size_t i = 0; i < load->opt.spec_count; i++) {
        printf("%s\"%s\":{", i > 0 ? "," : "", load->opt.specs[i].name);
        print_latency(&load->outcomes[i].lat, seconds);
        print_codes(&load->outcomes[i], 1);
        printf("}");
    }
    printf("}");
}

static void print_result(const struct load *load)
{
    double seconds = (double)(load->measured_to - load->measured_from) / 1e9;
    printf("{");
    print_latency(&load->lat, seconds);
    printf(",\"errors\":%llu", (unsigned long long)load->errors);
    print_codes(load->outcomes, load->opt.spec_count);
    printf(",\"sent\":%llu,\"connections\":%zu,\"client_cpu_s\":%.3f",
           (unsigned long long)load->requests, load->opt.connections, load->cpu_s);
    if (is_open_loop(load))
        printf(",\"asked_per_s\":%.1f,\"send_late_p99_us\":%.1f,\"unsent\":%llu", load->opt.per_s,
               latency_percentile_us(&load->send_late, 99), (unsigned long long)load->unsent);
    if (load->opt.spec_count > 1)
        print_kinds(load, seconds);
    printf("}\n");
}

/* ---- the run ---- */

/* Moves on when a phase is over; returns when the next one ends. */
static uint64_t turn_phase(struct load *load, uint64_t now, uint64_t phase_ends)
{
    if (load->phase == WARM && now >= phase_ends) {
        load->phase = MEASURED;
        load->measured_from = now;
        load->cpu_s = cpu_seconds();
        return now + (uint64_t)(load->opt.measured_s * 1e9);
    }
    if (load->phase == MEASURED && (now >= phase_ends || (!is_open_loop(load) && is_over(load)))) {
        load->phase = DRAIN;
        load->measured_to = now;
        load->cpu_s = cpu_seconds() - load->cpu_s;
        return now + DRAIN_NS;
    }
    return phase_ends;
}

/* Until the phase ends; shorter if a request is due before, or a connection is to be tried again.
 */
static uint64_t wait_ns(const struct load *load, uint64_t now, uint64_t phase_ends)
{
    uint64_t wait = phase_ends > now ? phase_ends - now : 0;
    uint64_t sooner = wait;
    if (load->idle_count == 0)
        return wait;
    if (is_open_loop(load) && !pace_is_done(&load->pace))
        sooner = pace_wait_ns(&load->pace, now);
    else if (!is_open_loop(load) && closed_may_send(load) &&
             (!load->opt.burst || load->waiting == 0))
        sooner = RETRY_NS;
    return sooner < wait ? sooner : wait;
}

static void handle_events(struct load *load, uint64_t wait)
{
    struct epoll_event events[256];
    struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000u),
                               .tv_nsec = (long)(wait % 1000000000u)};
    int n = epoll_pwait2(load->epoll, events, sizeof events / sizeof events[0], &timeout, NULL);
    if (n < 0 && errno != EINTR)
        die("epoll_pwait2: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct conn *conn = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) != 0 && conn->fd >= 0)
            conn_send(load, conn);
        if (conn->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            conn_receive(load, conn);
    }
}

/* What has no answer by now counts with the time that it has waited at least. */
static void count_unanswered(struct load *load)
{
    uint64_t now = now_ns();
    load->errors += load->waiting;
    if (load->waiting > 0)
        fprintf(stderr, "load: %zu requests were never answered\n", load->waiting);
    if (!is_open_loop(load))
        return;
    for (size_t i = 0; i < load->opt.connections; i++) {
        const struct conn *conn = &load->conns[i];
        if (conn->waiting && conn->measured)
            measure(load, conn, now);
    }
    while (!pace_is_done(&load->pace)) {
        bool measured = false;
        uint64_t due = pace_take(&load->pace, &measured);
        load->unsent += measured;
        if (measured)
            latency_add(&load->lat, now > due ? now - due : 0);
    }
}

static void run(struct load *load)
{
    uint64_t now = now_ns();
    uint64_t phase_ends = now + (uint64_t)(load->opt.warm_s * 1e9);
    if (is_open_loop(load))
        load->pace = pace_begin(now, load->opt.per_s, load->opt.warm_s, load->opt.measured_s);
    for (;; now = now_ns()) {
        phase_ends = turn_phase(load, now, phase_ends);
        if (load->phase == DRAIN && (is_over(load) || now >= phase_ends))
            break;
        start_due(load, now);
        handle_events(load, wait_ns(load, now, phase_ends));
    }
    count_unanswered(load);
}

static void prepare(struct load *load)
{
    const struct load_options *opt = &load->opt;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->conns = calloc(opt->connections, sizeof *load->conns);
    load->idle = calloc(opt->connections, sizeof *load->idle);
    load->outcomes = calloc(opt->spec_count, sizeof *load->outcomes);
    if (load->epoll < 0 || load->conns == NULL || load->idle == NULL || load->outcomes == NULL)
        die("%s", strerror(errno));
    load->order_len = request_order(opt->specs, opt->spec_count, &load->order);
    for (size_t i = 0; i < opt->connections; i++) {
        struct conn *conn = &load->conns[i];
        conn->fd = -1;
        conn->requests = calloc(opt->spec_count, sizeof *conn->requests);
        if (conn->requests == NULL)
            die("out of memory");
        for (size_t spec = 0; spec < opt->spec_count; spec++)
            conn->requests[spec] = request_render(&opt->specs[spec], opt->port, i, &opt->values);
        conn_open(load, conn);
        idle_push(load, conn);
    }
}

static void release(struct load *load)
{
    for (size_t i = 0; i < load->opt.connections; i++) {
        struct conn *conn = &load->conns[i];
        conn_close(conn);
        for (size_t spec = 0; spec < load->opt.spec_count; spec++)
            request_free(&conn->requests[spec]);
        free(conn->requests);
    }
    free(load->conns);
    free(load->idle);
    free(load->outcomes);
    free(load->order);
    free(load->opt.values.text);
    close(load->epoll);
}

int main(int argc, char **argv)
{
    static struct load load;
    load_options_parse(argc, argv, &load.opt);

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    prctl(PR_SET_TIMERSLACK, 1UL); /* an open loop wakes when a request is due, not 50 us later */
    prepare(&load);
    run(&load);
    print_result(&load);
    release(&load);
    return 0;
}
