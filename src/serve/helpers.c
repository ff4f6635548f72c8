/* Starts commands of this binary as children. */
#include "serve/helpers.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Between fork and exec: system calls only. The server has blocked the signals that it reads. */
static void become(pid_t parent, char *const argv[])
{
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
        execv("/proc/self/exe", argv);
    _exit(127);
}

void helper_start(const char *const words[static 1])
{
    static char self[] = "pawl";
    char *argv[HELPER_WORDS_MAX + 2] = {self};
    size_t count = 0;
    for (; words[count] != NULL; count++) {
        assert(count < HELPER_WORDS_MAX);
        argv[count + 1] = (char *)(uintptr_t)words[count];
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(parent, argv);
    if (pid < 0)
        LOG(LOG_ERROR, "cannot start a helper", LOG_Z("command", words[0]),
            LOG_Z("error", strerror(errno)));
}
