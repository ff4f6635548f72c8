/* Runs one command: fork, pipes and exit. */
#define _GNU_SOURCE /* pipe2, execvpe, close_range */
#include "cli/worker/job_process.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIECE = 64 * KIB,    /* a pipe's usual capacity */
    PIECES_PER_TURN = 4, /* so that one endless writer does not starve the others */
    PIECES_AT_END = 16,  /* the most that a pipe can hold */
    EXIT_NOT_RUN = 127,  /* as in a shell; the errno comes through a pipe */
};

/* Both ends of each pipe. */
struct pipes {
    int in[2];
    int out[2];
    int err[2];
    int failure[2]; /* closed by a successful exec, else carries its errno */
};

static void become(const struct pipes *p, char *const *argv, char *const *env, pid_t parent);
static int take_failure(int fd);
static void close_fd(int *fd);
static void write_input(struct job_process *p);
static bool read_output(struct job_process *p);
static bool read_stderr(struct job_process *p);

void job_process_init(struct job_process *p, size_t output_max)
{
    *p = (struct job_process){.pidfd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    buf_init(&p->input, HTTP_REPLY_MAX);
    buf_init(&p->output, output_max);
}

void job_process_release(struct job_process *p)
{
    assert(p->pid == 0);
    buf_release(&p->input);
    buf_release(&p->output);
}

struct buf *job_process_input(struct job_process *p)
{
    assert(p->pid == 0);
    buf_clear(&p->input);
    return &p->input;
}

/* --- starting --- */

static bool open_pipes(struct pipes *p)
{
    int(*all[])[2] = {&p->in, &p->out, &p->err, &p->failure};
    *p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (pipe2(*all[i], O_CLOEXEC) != 0)
            return false;
    int ours[] = {p->in[1], p->out[0], p->err[0]};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (fcntl(ours[i], F_SETFL, O_NONBLOCK) != 0)
            return false;
    return true;
}

static void close_pipes(struct pipes *p)
{
    int *all[] = {&p->in[0],  &p->in[1],  &p->out[0],     &p->out[1],
                  &p->err[0], &p->err[1], &p->failure[0], &p->failure[1]};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        close_fd(all[i]);
}

/* Kills and reaps a process that did not get to exec. */
static void discard(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

int job_process_start(struct job_process *p, char *const *argv, char *const *env)
{
    assert(p->pid == 0 && p->pidfd < 0 && buf_ok(&p->input));
    struct pipes pipes;
    int failure = 0;
    pid_t parent = getpid(), pid = -1;
    if (open_pipes(&pipes))
        pid = fork();
    if (pid < 0) {
        failure = errno;
        close_pipes(&pipes);
        return failure;
    }
    if (pid == 0)
        become(&pipes, argv, env, parent);
    (void)setpgid(pid, pid); /* parent and child both do it, so that neither has to wait */
    close_fd(&pipes.failure[1]);
    int pidfd = pidfd_open(pid, 0);
    failure = pidfd < 0 ? errno : take_failure(pipes.failure[0]);
    if (failure != 0) {
        discard(pid);
        close_fd(&pidfd);
        close_pipes(&pipes);
        return failure;
    }
    p->pid = pid;
    p->pidfd = pidfd;
    p->stdin_fd = pipes.in[1];
    p->stdout_fd = pipes.out[0];
    p->stderr_fd = pipes.err[0];
    pipes.in[1] = pipes.out[0] = pipes.err[0] = -1;
    close_pipes(&pipes);
    p->input_done = 0;
    buf_clear(&p->output);
    p->output_too_large = false;
    p->err_len = 0;
    return 0;
}

/* Runs in the child between fork and exec: async-signal-safe calls only. */
static void become(const struct pipes *p, char *const *argv, char *const *env, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    /* A worker in the background of a script inherits ignored signals; its commands must not. */
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    /* When we die, another worker gets the job: this attempt must not continue. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NOT_RUN);
    if (dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->out[1], STDOUT_FILENO) >= 0 &&
        dup2(p->err[1], STDERR_FILENO) >= 0 &&
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        (void)execvpe(argv[0], argv, env);
    int failure = errno;
    ssize_t wrote = write(p->failure[1], &failure, sizeof(failure));
    _exit(wrote == (ssize_t)sizeof(failure) ? EXIT_NOT_RUN : EXIT_NOT_RUN - 1);
}

/* 0 when exec closed the pipe: the command runs. */
static int take_failure(int fd)
{
    int failure = 0;
    ssize_t got;
    while ((got = read(fd, &failure, sizeof(failure))) < 0 && errno == EINTR)
        ;
    if (got < 0)
        return errno;
    return got == (ssize_t)sizeof(failure) ? failure : 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* --- running --- */

size_t job_process_fds(const struct job_process *p,
                       struct curl_waitfd fds[static JOB_PROCESS_FDS_MAX])
{
    const struct curl_waitfd all[JOB_PROCESS_FDS_MAX] = {
        {p->pidfd, CURL_WAIT_POLLIN, 0},
        {p->stdin_fd, CURL_WAIT_POLLOUT, 0},
        {p->stdout_fd, CURL_WAIT_POLLIN, 0},
        {p->stderr_fd, CURL_WAIT_POLLIN, 0},
    };
    size_t count = 0;
    for (size_t i = 0; i < JOB_PROCESS_FDS_MAX; i++)
        if (all[i].fd >= 0)
            fds[count++] = all[i];
    return count;
}

void job_process_signal(const struct job_process *p, int signal)
{
    assert(p->pid > 0);
    (void)kill(-p->pid, signal);
}

static bool has_ended(const struct job_process *p)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

/* Checks for the end before it reads the pipes, so that they hold all that the command wrote. Does
 * not wait for other processes that have the pipes open. Kills the group before it reaps the
 * process: until then no other process can get its number. */
bool job_process_pump(struct job_process *p)
{
    assert(p->pid > 0);
    bool ended = has_ended(p);
    int pieces = ended ? PIECES_AT_END : PIECES_PER_TURN;
    write_input(p);
    for (int i = 0; i < pieces && read_output(p); i++)
        ;
    for (int i = 0; i < pieces && read_stderr(p); i++)
        ;
    if (!ended)
        return false;
    job_process_signal(p, SIGKILL);
    while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
        ;
    close_fd(&p->stdin_fd);
    close_fd(&p->stdout_fd);
    close_fd(&p->stderr_fd);
    close_fd(&p->pidfd);
    p->pid = 0;
    return true;
}

/* --- the pipes --- */

static bool is_transient(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

/* A command may close its standard input without reading it. */
static void write_input(struct job_process *p)
{
    while (p->stdin_fd >= 0) {
        size_t left = p->input.len - p->input_done;
        ssize_t wrote = left > 0 ? write(p->stdin_fd, p->input.ptr + p->input_done, left) : 0;
        if (is_transient(wrote))
            return;
        if (wrote <= 0)
            close_fd(&p->stdin_fd);
        else
            p->input_done += (size_t)wrote;
    }
}

/* The number of bytes read; 0: the pipe is empty or closed. */
static size_t read_piece(int *fd, char piece[static PIECE])
{
    if (*fd < 0)
        return 0;
    ssize_t got = read(*fd, piece, PIECE);
    if (got > 0)
        return (size_t)got;
    if (!is_transient(got))
        close_fd(fd);
    return 0;
}

/* False when there is nothing to read now. */
static bool read_output(struct job_process *p)
{
    char piece[PIECE];
    size_t got = read_piece(&p->stdout_fd, piece);
    if (!p->output_too_large)
        buf_put_bytes(&p->output, piece, got);
    p->output_too_large = !buf_ok(&p->output);
    return got > 0;
}

/* Keeps at least the last JOB_PROCESS_STDERR_MAX bytes. */
static bool read_stderr(struct job_process *p)
{
    char piece[PIECE];
    size_t got = read_piece(&p->stderr_fd, piece);
    const char *from = piece;
    size_t len = got;
    if (len > JOB_PROCESS_STDERR_MAX) {
        from += len - JOB_PROCESS_STDERR_MAX;
        len = JOB_PROCESS_STDERR_MAX;
    }
    if (p->err_len + len > sizeof(p->err)) {
        memmove(p->err, p->err + p->err_len - JOB_PROCESS_STDERR_MAX, JOB_PROCESS_STDERR_MAX);
        p->err_len = JOB_PROCESS_STDERR_MAX;
    }
    memcpy(p->err + p->err_len, from, len);
    p->err_len += len;
    return got > 0;
}

/* --- as text --- */

static struct str without_line_ends(struct str text)
{
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    return text;
}

struct str job_process_stdout_text(const struct job_process *p)
{
    return without_line_ends(buf_str(&p->output));
}

struct str job_process_stderr_text(struct job_process *p)
{
    char *text = p->err;
    size_t len = p->err_len;
    if (len > JOB_PROCESS_STDERR_MAX) {
        text += len - JOB_PROCESS_STDERR_MAX;
        len = JOB_PROCESS_STDERR_MAX;
        /* Start at the beginning of a character. */
        while (len > 0 && ((unsigned char)*text & 0xC0) == 0x80) {
            text++;
            len--;
        }
    }
    str_repair_utf8(text, len);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = '?';
    return without_line_ends((struct str){text, len});
}
