/* The second yardstick: pawl's own HTTP layer, with a handler that does nothing but answer.
 *
 *     bare_own                prints `listening PORT`
 */
#include "http/http.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

static void answer(void *ctx, struct http_request *req)
{
    struct http_reply reply;
    (void)ctx;
    http_reply_init(&reply, 200, STR("application/json"),
                    STR("{\"run_id\":\"0190a1b2c3d47e5f8a9b\",\"created\":true}\n"));
    http_send(req, &reply);
}

static int stop_signals(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    return signalfd(-1, &stop, SFD_CLOEXEC);
}

int main(void)
{
    struct http_config config = {.listen = "127.0.0.1:0", .env = &ENV_SYSTEM, .handler = answer};
    struct http_server *server;
    struct problem p;
    problem_init(&p);
    int signals = stop_signals();
    if (signals < 0 || http_server_start(&config, &p, &server) != ERR_OK) {
        fprintf(stderr, "bare_own: cannot start: %s\n", p.detail);
        return 1;
    }
    printf("listening %s\n", strrchr(http_server_url(server), ':') + 1);
    fflush(stdout);
    struct pollfd fds[] = {{http_server_fd(server), POLLIN, 0}, {signals, POLLIN, 0}};
    while ((fds[1].revents & POLLIN) == 0) {
        (void)poll(fds, ARRAY_LEN(fds), http_server_timeout_ms(server));
        http_server_turn(server);
    }
    http_server_free(server);
    problem_release(&p);
    return 0;
}
