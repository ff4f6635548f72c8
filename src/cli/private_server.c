/* A private server for the time of one command. */
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
    START_MS_MAX = 120 * 1000, /* a large file's log may have to be replayed first */
    STOP_MS_MAX = 30 * 1000,   /* draining is bounded by the server itself; this is a last resort */
    STOP_POLL_MS = 5,
};

static const char READY[] = "pawl listening on ";

extern char **environ;

static char **child_environment(char *root_key);
static void become_server(const struct private_server *server, int out_fd, pid_t parent,
                          const char *store, char **environment);
static bool wait_until_ready(struct private_server *server);
static int reap(struct private_server *server);
static void pass_on_log(const struct private_server *server);

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
        fprintf(stderr, "pawl: cannot prepare a private server: %s\n", strerror(errno));
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
        pass_on_log(server);
        fprintf(stderr, "pawl: no private server could be started on %s\n", store);
    } else {
        fprintf(stderr, "pawl: cannot start a process: %s\n", strerror(fork_errno));
    }
    close(server->out_fd);
    close(server->log_fd);
    server->pid = 0;
    return CLI_REFUSED;
}

enum cli_exit private_server_stop(struct private_server *server)
{
    if (server->pid == 0)
        return CLI_DONE;
    int status = reap(server);
    bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well) {
        pass_on_log(server);
        fprintf(stderr, "pawl: the private server did not end well (%s %d)\n",
                WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    close(server->out_fd);
    close(server->log_fd);
    server->pid = 0;
    return ended_well ? CLI_DONE : CLI_REFUSED;
}

/* --- the child --- */

/* Ours without any PAWL_ variable, which might point it elsewhere, and with its key. It does not
 * know of the bus, so it must not remove what that has not been told of. One allocation. */
static char **child_environment(char *root_key)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    static char private_one[] = "PAWL_PRIVATE=1";
    char **list = calloc(count + 3, sizeof(*list));
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!str_starts_with(str_of(environ[i]), STR("PAWL_")))
            list[kept++] = environ[i];
    list[kept++] = root_key;
    list[kept] = private_one;
    return list;
}

/* Between fork and exec: system calls only. The server ends with us, however we end. */
static void become_server(const struct private_server *server, int out_fd, pid_t parent,
                          const char *store, char **environment)
{
    static char self[] = "pawl", serve[] = "serve", listen[] = "--listen", port[] = "127.0.0.1:0",
                flag[] = "--store";
    char *argv[] = {self, serve, listen, port, flag, (char *)(uintptr_t)store, NULL};
    (void)signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
        dup2(out_fd, STDOUT_FILENO) >= 0 && dup2(server->log_fd, STDERR_FILENO) >= 0)
        execve("/proc/self/exe", argv, environment);
    _exit(127);
}

/* --- its life --- */

/* Looks for the line that names the URL; everything else on standard output is skipped. */
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

/* Asks it to end, insists after a while, and returns its wait status. */
static int reap(struct private_server *server)
{
    int status = 0;
    int64_t deadline = env_mono_ms(&ENV_SYSTEM) + STOP_MS_MAX;
    kill(server->pid, SIGTERM);
    for (;;) {
        pid_t gone = waitpid(server->pid, &status, WNOHANG);
        if (gone == server->pid || (gone < 0 && errno != EINTR))
            return status;
        if (env_mono_ms(&ENV_SYSTEM) > deadline)
            kill(server->pid, SIGKILL);
        client_pause(STOP_POLL_MS);
    }
}

static void pass_on_log(const struct private_server *server)
{
    char text[4096];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(server->log_fd, text, sizeof(text), at)) > 0) {
        fwrite(text, 1, (size_t)got, stderr);
        at += got;
    }
}
