/* Running one command: fork, pipes, and its end. */
#define _GNU_SOURCE /* pipe2, execvpe, close_range */
#include "cli/child.h"

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
    PIECES_PER_TURN = 4, /* one that never stops writing must not keep us from the others */
    PIECES_AT_END = 16,  /* what may lie in a pipe of the largest capacity */
    EXIT_NOT_RUN = 127,  /* as of a shell; the errno travels through a pipe */
};

/* Ours and the command's ends. */
struct pipes {
    int in[2];
    int out[2];
    int err[2];
    int failure[2]; /* closed by a successful exec, else brings its errno */
};

static void become(const struct pipes *p, char *const *argv, char *const *env, pid_t parent);
static int take_failure(int fd);
static void close_fd(int *fd);
static void write_input(struct child *c);
static bool read_output(struct child *c);
static bool read_stderr(struct child *c);

void child_init(struct child *c, size_t output_max)
{
    *c = (struct child){.pidfd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    buf_init(&c->input, HTTP_REPLY_MAX);
    buf_init(&c->output, output_max);
}

void child_release(struct child *c)
{
    assert(c->pid == 0);
    buf_release(&c->input);
    buf_release(&c->output);
}

struct buf *child_input(struct child *c)
{
    assert(c->pid == 0);
    buf_clear(&c->input);
    return &c->input;
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

/* Ends and reaps a process that has not become the command. */
static void discard(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

int child_start(struct child *c, char *const *argv, char *const *env)
{
    assert(c->pid == 0 && c->pidfd < 0 && buf_ok(&c->input));
    struct pipes p;
    int failure = 0;
    pid_t parent = getpid(), pid = -1;
    if (open_pipes(&p))
        pid = fork();
    if (pid < 0) {
        failure = errno;
        close_pipes(&p);
        return failure;
    }
    if (pid == 0)
        become(&p, argv, env, parent);
    (void)setpgid(pid, pid); /* here and there: whoever comes first */
    close_fd(&p.failure[1]);
    int pidfd = pidfd_open(pid, 0);
    failure = pidfd < 0 ? errno : take_failure(p.failure[0]);
    if (failure != 0) {
        discard(pid);
        close_fd(&pidfd);
        close_pipes(&p);
        return failure;
    }
    c->pid = pid;
    c->pidfd = pidfd;
    c->stdin_fd = p.in[1];
    c->stdout_fd = p.out[0];
    c->stderr_fd = p.err[0];
    p.in[1] = p.out[0] = p.err[0] = -1;
    close_pipes(&p);
    c->input_done = 0;
    buf_clear(&c->output);
    c->output_too_large = false;
    c->err_len = 0;
    return 0;
}

/* In the new process, which may call only what is safe in a signal handler. */
static void become(const struct pipes *p, char *const *argv, char *const *env, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    /* A worker in the background of a script has some ignored from birth; a command has none. */
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    /* A job whose worker is gone goes to another: this attempt must not go on beside it. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NOT_RUN);
    if (dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->out[1], STDOUT_FILENO) >= 0 &&
        dup2(p->err[1], STDERR_FILENO) >= 0 &&
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
        (void)execvpe(argv[0], argv, env);
    int failure = errno;
    ssize_t told = write(p->failure[1], &failure, sizeof(failure));
    _exit(told == (ssize_t)sizeof(failure) ? EXIT_NOT_RUN : EXIT_NOT_RUN - 1);
}

/* 0 when the pipe was closed: the command runs. */
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

size_t child_fds(const struct child *c, struct curl_waitfd fds[static CHILD_FDS_MAX])
{
    const struct curl_waitfd all[CHILD_FDS_MAX] = {
        {c->pidfd, CURL_WAIT_POLLIN, 0},
        {c->stdin_fd, CURL_WAIT_POLLOUT, 0},
        {c->stdout_fd, CURL_WAIT_POLLIN, 0},
        {c->stderr_fd, CURL_WAIT_POLLIN, 0},
    };
    size_t count = 0;
    for (size_t i = 0; i < CHILD_FDS_MAX; i++)
        if (all[i].fd >= 0)
            fds[count++] = all[i];
    return count;
}

void child_signal(const struct child *c, int signal)
{
    assert(c->pid > 0);
    (void)kill(-c->pid, signal);
}

static bool has_ended(const struct child *c)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

/* Its end is looked for before its pipes are read: what it wrote lies in them by then. Others who
 * still have them are not waited for. The group is killed before the process is reaped: until then
 * its number cannot be another's. */
bool child_pump(struct child *c)
{
    assert(c->pid > 0);
    bool ended = has_ended(c);
    int pieces = ended ? PIECES_AT_END : PIECES_PER_TURN;
    write_input(c);
    for (int i = 0; i < pieces && read_output(c); i++)
        ;
    for (int i = 0; i < pieces && read_stderr(c); i++)
        ;
    if (!ended)
        return false;
    child_signal(c, SIGKILL);
    while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
        ;
    close_fd(&c->stdin_fd);
    close_fd(&c->stdout_fd);
    close_fd(&c->stderr_fd);
    close_fd(&c->pidfd);
    c->pid = 0;
    return true;
}

/* --- the pipes --- */

static bool is_passing(ssize_t moved)
{
    return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

/* One that does not want its input closes the pipe, which is its own business. */
static void write_input(struct child *c)
{
    while (c->stdin_fd >= 0) {
        size_t left = c->input.len - c->input_done;
        ssize_t wrote = left > 0 ? write(c->stdin_fd, c->input.ptr + c->input_done, left) : 0;
        if (is_passing(wrote))
            return;
        if (wrote <= 0)
            close_fd(&c->stdin_fd);
        else
            c->input_done += (size_t)wrote;
    }
}

/* The number of bytes read; 0: nothing is there, or the pipe is closed. */
static size_t read_piece(int *fd, char piece[static PIECE])
{
    if (*fd < 0)
        return 0;
    ssize_t got = read(*fd, piece, PIECE);
    if (got > 0)
        return (size_t)got;
    if (!is_passing(got))
        close_fd(fd);
    return 0;
}

/* False when there is nothing more to read now. */
static bool read_output(struct child *c)
{
    char piece[PIECE];
    size_t got = read_piece(&c->stdout_fd, piece);
    if (!c->output_too_large)
        buf_put_bytes(&c->output, piece, got);
    c->output_too_large = !buf_ok(&c->output);
    return got > 0;
}

/* Keeps at least the last CHILD_STDERR_MAX bytes. */
static bool read_stderr(struct child *c)
{
    char piece[PIECE];
    size_t got = read_piece(&c->stderr_fd, piece);
    const char *from = piece;
    size_t len = got;
    if (len > CHILD_STDERR_MAX) {
        from += len - CHILD_STDERR_MAX;
        len = CHILD_STDERR_MAX;
    }
    if (c->err_len + len > sizeof(c->err)) {
        memmove(c->err, c->err + c->err_len - CHILD_STDERR_MAX, CHILD_STDERR_MAX);
        c->err_len = CHILD_STDERR_MAX;
    }
    memcpy(c->err + c->err_len, from, len);
    c->err_len += len;
    return got > 0;
}

/* --- as text --- */

static struct str without_line_ends(struct str text)
{
    while (text.len > 0 && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    return text;
}

struct str child_stdout_text(const struct child *c)
{
    return without_line_ends(buf_str(&c->output));
}

struct str child_stderr_text(struct child *c)
{
    char *text = c->err;
    size_t len = c->err_len;
    if (len > CHILD_STDERR_MAX) {
        text += len - CHILD_STDERR_MAX;
        len = CHILD_STDERR_MAX;
        /* Not from the middle of a character on. */
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
