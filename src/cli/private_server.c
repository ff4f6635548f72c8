/* Starts, watches and stops a private server. */
#define _GNU_SOURCE /* memfd_create, pipe2 */
#include "cli/private_server.h"

#include "base/env.h"
#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_MS_MAX = 120 * 1000, /* SQLite may have to replay a large log first */
    STOP_MS_MAX = 30 * 1000,   /* the server limits its own drain; this is the last resort */
    STOP_POLL_MS = 5,
};

static const char READY[] = "pawl listening on ";

extern char **environ;

static char **child_environment(char *root_key);
static void become_server(const struct private_server *server, int out_fd, pid_t parent,
                          const char *store, char **environment);
static bool wait_until_ready(struct private_server *server);
static int reap(struct private_server *server);
static void print_log(const struct private_server *server);

enum cli_exit private_server_start(struct private_server *server, const char *store)
{
    unsigned char secret[32];
    char variable[sizeof("PAWL_ROOT_KEY=") + sizeof(server->key)];
    int out[2] = {-1, -1};
    env_random(&ENV_SYSTEM, secret, sizeof(secret));
    for (size_t i = 0; i < sizeof(secret); i++)
        (void)snprintf(server->key + 2 * i, 3, "%02x", secret[i]);
    (void)snprintf(variable, sizeof(variable), "PAWL_ROOT_KEY=%s", server->key);

    char **environment = child_environment(variable);
    server->log_fd = memfd_create("pawl-log", MFD_CLOEXEC);
    if (environment == NULL || server->log_fd < 0 || pipe2(out, O_CLOEXEC) != 0) {
        fprintf(stderr, "pawl: Cannot prepare a private server: %s\n", strerror(errno));
        if (server->log_fd >= 0)
            close(server->log_fd);
        free(environment);
        return CLI_REFUSED;
    }
    server->out_fd = out[0];
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid == 0)
        become_server(server, out[1], parent, store, environment);
    int fork_errno = errno;
    close(out[1]);
    free(environment);
    if (server->pid > 0 && wait_until_ready(server))
        return CLI_DONE;

    if (server->pid > 0) {
        reap(server);
        print_log(server);
        fprintf(stderr, "pawl: Cannot start a private server on %s\n", store);
    } else {
        fprintf(stderr, "pawl: Cannot start a process: %s\n", strerror(fork_errno));
    }
    close(server->out_fd);
    close(server->log_fd);
    server->pid = 0;
    return CLI_REFUSED;
}

void private_server_kill(struct private_server *server)
{
    assert(server->pid > 0);
    kill(server->pid, SIGKILL);
    (void)reap(server);
    close(server->out_fd);
    close(server->log_fd);
    server->pid = 0;
}

enum cli_exit private_server_stop(struct private_server *server)
{
    if (server->pid == 0)
        return CLI_DONE;
    int status = reap(server);
    bool stopped_cleanly = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!stopped_cleanly) {
        print_log(server);
        fprintf(stderr, "pawl: The private server failed (%s %d)\n",
                WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    close(server->out_fd);
    close(server->log_fd);
    server->pid = 0;
    return stopped_cleanly ? CLI_DONE : CLI_REFUSED;
}

/* --- starting --- */

/* Our environment with the root key, but without any other PAWL_ variable. PAWL_PRIVATE: it does
 * not know the bus, so it must not delete events that have not been published. One allocation. */
static char **child_environment(char *root_key)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    static char is_private[] = "PAWL_PRIVATE=1";
    char **list = calloc(count + 3, sizeof(*list));
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!str_starts_with(str_of(environ[i]), STR("PAWL_")))
            list[kept++] = environ[i];
    list[kept++] = root_key;
    list[kept] = is_private;
    return list;
}

/* Runs between fork and exec: system calls only. The server stops when we die. */
static void become_server(const struct private_server *server, int out_fd, pid_t parent,
                          const char *store, char **environment)
{
    static char self[] = "pawl", serve[] = "serve", listen[] = "--listen", port[] = "127.0.0.1:0",
                option[] = "--store";
    char *argv[] = {self, serve, listen, port, option, (char *)(uintptr_t)store, NULL};
    (void)signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
        dup2(out_fd, STDOUT_FILENO) >= 0 && dup2(server->log_fd, STDERR_FILENO) >= 0)
        execve("/proc/self/exe", argv, environment);
    _exit(127);
}

/* --- running --- */

/* Reads standard output up to the line that has the URL. */
static bool wait_until_ready(struct private_server *server)
{
    char text[4096];
    size_t len = 0;
    int64_t deadline = env_mono_ms(&ENV_SYSTEM) + START_MS_MAX;
    while (len < sizeof(text) - 1) {
        int64_t left = deadline - env_mono_ms(&ENV_SYSTEM);
        struct pollfd output = {.fd = server->out_fd, .events = POLLIN};
        int ready = left > 0 ? poll(&output, 1, (int)left) : 0;
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return false;
        ssize_t got = ready > 0 ? read(server->out_fd, text + len, sizeof(text) - 1 - len) : -1;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        len += got > 0 ? (size_t)got : 0;
        text[len] = '\0';
        const char *line = strstr(text, READY);
        if (line == NULL || strchr(line, '\n') == NULL)
            continue;
        line += sizeof(READY) - 1;
        size_t url_len = strcspn(line, " \r\n");
        return (size_t)snprintf(server->url, sizeof(server->url), "%.*s", (int)url_len, line) <
               sizeof(server->url);
    }
    return false;
}

/* Sends SIGTERM, SIGKILL after a while, and returns the wait status. */
static int reap(struct private_server *server)
{
    int status = 0;
    int64_t deadline = env_mono_ms(&ENV_SYSTEM) + STOP_MS_MAX;
    kill(server->pid, SIGTERM);
    for (;;) {
        pid_t reaped = waitpid(server->pid, &status, WNOHANG);
        if (reaped == server->pid || (reaped < 0 && errno != EINTR))
            return status;
        if (env_mono_ms(&ENV_SYSTEM) > deadline)
            kill(server->pid, SIGKILL);
        client_pause(STOP_POLL_MS);
    }
}

static void print_log(const struct private_server *server)
{
    char text[4096];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(server->log_fd, text, sizeof(text), at)) > 0) {
        fwrite(text, 1, (size_t)got, stderr);
        at += got;
    }
}
