/* SPDX-License-Identifier: Apache-2.0 */
/* How every program begins and ends: see program.h. */
#include "core/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"

#define PATIENCE_S 10

static volatile sig_atomic_t ended; /* the status, for a handler that has no other way to know it */

/* Some library's own end does not end. */
static void leave(int number)
{
    (void)number;
    _exit(ended);
}

void program_begin(void)
{
    struct rlimit files;
    sigset_t none;

    for (int fd = 0; fd <= STDERR_FILENO; fd++) /* the other way round, so that its use fails */
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", fd ? O_RDONLY : O_WRONLY);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); /* then the write says it */
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    umask(umask(077) & (mode_t)~0700u);
}

int program_end(const char *program, int status)
{
    int err = stream_finish(stdout), fd = dup(STDOUT_FILENO);

    if (fd >= 0 && close(fd) && !err) /* some file systems tell it then */
        err = -errno;
    if (err)
        fprintf(stderr, "%s: cannot write the whole output: %s\n", program, strerror(-err));
    ended = err ? EXIT_INCOMPLETE : status;
    signal(SIGALRM, leave);
    alarm(PATIENCE_S);
    return ended;
}
