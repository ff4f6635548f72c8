/* Publishing to a real NATS server while each fallible call below it fails: allocations, sockets,
 * threads and libnats itself. Whatever fails, a message that is reported as stored is in the
 * stream, one that is sent again is there once, and everything works when the fault is over. */
#define _GNU_SOURCE
#include "base/support.h"
#include "fault.h"

#include "base/log.h"
#include "bus/nats_bus.h"
#include "library/library.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ftw.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { MESSAGES = 3, TRIES_MAX = 3000 };

static const struct timespec SHORT = {.tv_nsec = 20 * 1000 * 1000};

/* --- a server of our own --- */

static struct {
    int port;
    pid_t pid;
    char folder[64];
    char url[64];
} server;

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int free_port(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* A connection of the test's own; -1: nobody listens. */
static int connect_plainly(void)
{
    struct sockaddr_in address = loopback(server.port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void run_server(void)
{
    char port[16];
    char log[96];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(port, sizeof(port), "%d", server.port);
    (void)snprintf(log, sizeof(log), "%s/log", server.folder);
    execlp("nats-server", "nats-server", "-js", "-sd", server.folder, "-a", "127.0.0.1", "-p", port,
           "-l", log, (char *)NULL);
    _exit(127);
}

static int start_server(void **state)
{
    (void)state;
    char why[LIBRARY_WHY_MAX];
    if (!library_load(&LIBNATS, why))
        fail_msg("%s", why);
    fault_spare_library("libnats"); /* 3.4.1 crashes in natsConn_create() */
    log_setup(LOG_TEXT, LOG_ERROR, &ENV_SYSTEM);
    (void)snprintf(server.folder, sizeof(server.folder), "/tmp/pawl-torture-XXXXXX");
    assert_non_null(mkdtemp(server.folder));
    server.port = free_port();
    (void)snprintf(server.url, sizeof(server.url), "nats://127.0.0.1:%d", server.port);
    server.pid = fork();
    if (server.pid == 0)
        run_server();
    int fd;
    while ((fd = connect_plainly()) < 0) {
        assert_int_equal(waitpid(server.pid, NULL, WNOHANG), 0);
        nanosleep(&SHORT, NULL);
    }
    close(fd);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int stop_server(void **state)
{
    (void)state;
    (void)kill(server.pid, SIGKILL);
    (void)waitpid(server.pid, NULL, 0);
    return nftw(server.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* How many messages the stream holds, asked over a connection of the test's own. */
static long stored_messages(void)
{
    static const char ASK[] = "CONNECT {\"verbose\":false,\"lang\":\"test\",\"version\":\"1\"}\r\n"
                              "SUB _INBOX.torture 1\r\n"
                              "PUB $JS.API.STREAM.INFO.PAWL _INBOX.torture 0\r\n\r\n";
    char text[16384];
    size_t len = 0;
    int fd = connect_plainly();
    assert_true(fd >= 0);
    assert_int_equal(write(fd, ASK, sizeof(ASK) - 1), sizeof(ASK) - 1);
    const char *found = NULL;
    while (found == NULL) {
        ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
        text[len] = '\0';
        found = strstr(text, "\"messages\":");
        if (found != NULL && strchr(found, ',') == NULL)
            found = NULL;
        if (strstr(text, "stream not found") != NULL)
            break;
    }
    close(fd);
    return found != NULL ? strtol(found + strlen("\"messages\":"), NULL, 10) : 0;
}

/* --- messages --- */

struct fixture {
    struct bus *bus;
    char ids[MESSAGES][32];
    struct bus_message messages[MESSAGES];
};

static void write_messages(struct fixture *f)
{
    static long number;
    for (size_t i = 0; i < MESSAGES; i++) {
        (void)snprintf(f->ids[i], sizeof(f->ids[i]), "m-%ld", ++number);
        f->messages[i] = (struct bus_message){.id = str_of(f->ids[i]),
                                              .subject = STR("pawl.t.run.created"),
                                              .body = STR("{\"type\":\"run.created\"}"),
                                              .result = BUS_UNKNOWN};
    }
}

static long count_stored(const struct fixture *f)
{
    long count = 0;
    for (size_t i = 0; i < MESSAGES; i++) {
        const struct bus_message *m = &f->messages[i];
        if (m->result == BUS_REFUSED)
            fail_msg("a fault of this machine was taken for a refusal (%s)", m->why);
        count += m->result == BUS_STORED;
    }
    return count;
}

static void new_bus(struct fixture *f)
{
    struct nats_bus_config config = {.urls = server.url, .jobs = true};
    struct problem p = {0};
    if (nats_bus_new(&config, &p, &f->bus) != ERR_OK)
        f->bus = NULL;
}

/* As the relay does: the same messages until all of them are stored. */
static void publish_all(struct fixture *f)
{
    if (f->bus == NULL)
        new_bus(f);
    assert_non_null(f->bus);
    for (int tries = 0; count_stored(f) < MESSAGES; tries++) {
        assert_true(tries < TRIES_MAX);
        if (tries > 0) /* the library notices on a thread of its own that a connection is gone */
            (void)nanosleep(&SHORT, NULL);
        if (f->bus->connect(f->bus))
            f->bus->publish(f->bus, f->messages, MESSAGES);
    }
}

/* --- the scenarios: what is done while something fails --- */

static void connect_and_publish(struct fixture *f)
{
    new_bus(f);
    if (f->bus != NULL && f->bus->connect(f->bus))
        f->bus->publish(f->bus, f->messages, MESSAGES);
}

static void publish_more(struct fixture *f)
{
    f->bus->publish(f->bus, f->messages, MESSAGES);
    (void)f->bus->connect(f->bus);
}

static void stop(struct fixture *f)
{
    f->bus->publish(f->bus, f->messages, 1);
    f->bus->interrupt(f->bus);
    f->bus->free(f->bus);
    f->bus = NULL;
}

static const struct scenario {
    const char *name;
    bool warm; /* the bus is connected before */
    void (*run)(struct fixture *f);
} SCENARIOS[] = {
    {"connect and publish", false, connect_and_publish},
    {"publish more", true, publish_more},
    {"stop", true, stop},
};

/* --- one fault after the other --- */

/* True when there was an nth call, which failed. */
static bool survives(const struct scenario *s, enum fault_class class, long n, bool for_good)
{
    struct fixture f = {0};
    if (s->warm) {
        write_messages(&f);
        publish_all(&f);
    }
    long before = stored_messages();
    write_messages(&f);
    fault_arm(class, n, for_good);
    s->run(&f);
    (void)fault_disarm();
    bool hit = fault_hits() > 0;
    assert_true(stored_messages() >= before + count_stored(&f));
    publish_all(&f);
    assert_int_equal(stored_messages(), before + MESSAGES);
    f.bus->free(f.bus);
    return hit;
}

static void torture(enum fault_class class)
{
    long all = 0;
    for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
        long tried = 0;
        for (int for_good = 0; for_good <= 1; for_good++) {
            for (long n = 1; survives(&SCENARIOS[i], class, n, for_good); n = fault_next(n))
                tried++;
        }
        print_message("%s, %s: %ld faults\n", SCENARIOS[i].name, fault_class_name(class), tried);
        all += tried;
    }
    assert_true(all > 0);
}

static void publishing_survives_a_failing_libnats(void **state)
{
    (void)state;
    torture(FAULT_NATS);
}

static void publishing_survives_threads_that_cannot_be_started(void **state)
{
    (void)state;
    torture(FAULT_THREADS);
}

static void publishing_survives_failing_sockets(void **state)
{
    (void)state;
    torture(FAULT_SOCKETS);
}

static void publishing_survives_failing_allocations(void **state)
{
    (void)state;
    torture(FAULT_ALLOC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(publishing_survives_a_failing_libnats),
        cmocka_unit_test(publishing_survives_threads_that_cannot_be_started),
        cmocka_unit_test(publishing_survives_failing_sockets),
        cmocka_unit_test(publishing_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
