/* The process of a command that works on one job: a process group of its own and three pipes.
 *
 * Nothing here blocks: the caller polls the file descriptors and calls job_process_pump. The
 * command inherits the given environment, the working directory and the resource limits, nothing
 * else. It is killed when we die. */
#ifndef PAWL_CLI_WORKER_JOB_PROCESS_H
#define PAWL_CLI_WORKER_JOB_PROCESS_H

#include "base/buf.h"

#include <curl/curl.h>
#include <sys/types.h>

enum {
    JOB_PROCESS_FDS_MAX = 4,
    JOB_PROCESS_STDERR_MAX = 4 * 1024, /* keeps the end, which has the reason */
};

struct job_process {
    pid_t pid; /* and process group; 0: not running */
    int pidfd; /* these are -1 when closed */
    int stdin_fd;
    int stdout_fd;
    int stderr_fd;
    struct buf input;
    size_t input_done;
    struct buf output;     /* from standard output */
    bool output_too_large; /* there was more, which was discarded */
    char err[2 * JOB_PROCESS_STDERR_MAX];
    size_t err_len;
    int status; /* from waitpid, after its end */
};

void job_process_init(struct job_process *p, size_t output_max);
void job_process_release(struct job_process *p); /* not while it runs */

/* An empty buffer for the standard input of the next command. */
struct buf *job_process_input(struct job_process *p);
/* 0, or an errno: then there is no process. */
MUST_CHECK int job_process_start(struct job_process *p, char *const *argv, char *const *env);

/* Fills in the file descriptors to poll; returns their number. */
size_t job_process_fds(const struct job_process *p,
                       struct curl_waitfd fds[static JOB_PROCESS_FDS_MAX]);
/* Moves bytes through the pipes. True when the command has ended: then the processes that it left
 * in its group have been killed, and output, stderr and status are complete. */
MUST_CHECK bool job_process_pump(struct job_process *p);
/* Signals the whole group. */
void job_process_signal(const struct job_process *p, int signal);

/* All of standard output as it is, or the end of standard error with ? in place of NULs and bytes
 * that are not UTF-8; both without trailing line ends. Valid until the next start. */
struct str job_process_stdout_text(const struct job_process *p);
struct str job_process_stderr_text(struct job_process *p);

#endif
