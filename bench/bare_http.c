/* The yardstick: a libmicrohttpd server with default settings that does nothing but answer, with as
 * many bytes as bare_own.
 *
 *     bare_http [PORT]        prints `listening PORT`; port 0, the default, picks a free one
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static enum MHD_Result answer(void *response, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **seen)
{
    static char marker;
    (void)url, (void)method, (void)version, (void)upload;

    /* An answer queued before the body was read would make libmicrohttpd close the connection. */
    if (*seen == NULL) {
        *seen = &marker;
        return MHD_YES;
    }
    if (*upload_size != 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

static bool add_headers(struct MHD_Response *response)
{
    static const struct {
        const char *name;
        const char *value;
    } HEADERS[] = {{"Content-Type", "application/json"},
                   {"Cache-Control", "no-store"},
                   {"X-Content-Type-Options", "nosniff"},
                   {"X-Trace-Id", "4a314f161b7a1ebffada545a5d0a5568"}};
    for (size_t i = 0; i < sizeof(HEADERS) / sizeof(HEADERS[0]); i++) {
        if (MHD_add_response_header(response, HEADERS[i].name, HEADERS[i].value) != MHD_YES)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static char body[] = "{\"run_id\":\"0190a1b2c3d47e5f8a9b\",\"created\":true}\n";
    char *end = NULL;
    long port = argc > 1 ? strtol(argv[1], &end, 10) : 0;
    if (argc > 2 || (end != NULL && (*end != '\0' || end == argv[1])) || port < 0 || port > 65535) {
        fprintf(stderr, "usage: bare_http [PORT]\n");
        return 1;
    }

    /* Blocked before the server's thread exists, so that only sigwait below receives them. */
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);

    int result = 1;
    struct MHD_Daemon *daemon = NULL;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof body - 1, body, MHD_RESPMEM_PERSISTENT);
    if (response == NULL || !add_headers(response)) {
        fprintf(stderr, "bare_http: no memory for the response\n");
        goto out;
    }
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, (uint16_t)port, NULL, NULL, answer,
                              response, MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "bare_http: cannot listen on 127.0.0.1:%ld\n", port);
        goto out;
    }
    const union MHD_DaemonInfo *bound = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (bound == NULL) {
        fprintf(stderr, "bare_http: the port is unknown\n");
        goto out;
    }
    printf("listening %u\n", (unsigned)bound->port);
    fflush(stdout);

    int caught = 0;
    sigwait(&stop, &caught);
    result = 0;
out:
    if (daemon != NULL)
        MHD_stop_daemon(daemon);
    if (response != NULL)
        MHD_destroy_response(response);
    return result;
}
