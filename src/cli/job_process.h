/* A command that works on one job: a process group of its own, three pipes and its end.
 *
 * Nothing here waits: whoever runs it polls its file descriptors and pumps. It inherits nothing of
 * ours but the environment given, the working directory and the limits, and is killed when we die.
 */
#ifndef PAWL_CLI_JOB_PROCESS_H
#define PAWL_CLI_JOB_PROCESS_H

#include "base/buf.h"

#include <curl/curl.h>
#include <sys/types.h>

enum {
    JOB_PROCESS_FDS_MAX = 4,
    JOB_PROCESS_STDERR_MAX = 4 * 1024, /* its end is kept: that is where the reason stands */
};

struct job_process {
    pid_t pid; /* and its process group; 0: it is not running */
    int pidfd; /* these are -1 when closed */
    int stdin_fd;
    int stdout_fd;
    int stderr_fd;
    struct buf input;
    size_t input_done;
    struct buf output;     /* of standard output */
    bool output_too_large; /* there was more than fits; the rest is thrown away */
    char err[2 * JOB_PROCESS_STDERR_MAX];
    size_t err_len;
    int status; /* as of waitpid, once it is over */
};

void job_process_init(struct job_process *p, size_t output_max);
void job_process_release(struct job_process *p); /* of one that does not run */

/* Empty, for what the next one reads from its standard input. */
struct buf *job_process_input(struct job_process *p);
/* 0, or the errno of what cannot be done: then there is no process. */
MUST_CHECK int job_process_start(struct job_process *p, char *const *argv, char *const *env);

/* Those to wait for; the number of them. */
size_t job_process_fds(const struct job_process *p,
                       struct curl_waitfd fds[static JOB_PROCESS_FDS_MAX]);
/* Moves what can be moved. True when the command is over: then what it left running in its group
 * has been killed, and output, stderr and status are complete. */
MUST_CHECK bool job_process_pump(struct job_process *p);
/* To the whole group. */
void job_process_signal(const struct job_process *p, int signal);

/* All of its standard output, as it is, or the end of its standard error, with ? for what is not
 * UTF-8 and for NULs; both without trailing line ends. Valid until the next start. */
struct str job_process_stdout_text(const struct job_process *p);
struct str job_process_stderr_text(struct job_process *p);

#endif
