/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: see child.h. */
#include "harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

#define PIPES    3 /* stdout, stderr, samples */
#define TICK_MS  200
#define GRACE_NS 2000000000ull /* between the request to end and the kill */
#define DRAIN_NS 1000000000ull /* after the child's end, for pipes that a grandchild holds open */

struct running {
    pid_t pid;
    int pidfd;      /* readable when the child has ended; -1 on kernels before 5.3 */
    int fds[PIPES]; /* read ends; -1: closed */
    struct buffer *buffers[PIPES];
    struct child_result *result;
    uint64_t deadline_ns, kill_at_ns;
    bool ended;
};

/* In the child: between fork and exec only calls that are safe there. */
static void become(const struct child_spec *spec, int write_ends[PIPES], pid_t parent)
{
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the parent died before the line above */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    /* The pipes' own numbers may be 1, 2 or 3: move them out of the way first. */
    int high[PIPES] = {-1, -1, -1};
    for (int i = 0; i < PIPES; i++)
        if (write_ends[i] >= 0)
            high[i] = fcntl(write_ends[i], F_DUPFD_CLOEXEC, 16);
    for (int i = 0; i < PIPES; i++)
        if (high[i] >= 0)
            dup2(high[i], STDOUT_FILENO + i);
    if (spec->body)
        _exit(spec->body(spec->body_arg));
    execv(spec->argv[0], (char *const *)spec->argv);
    _exit(127);
}

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int start(const struct child_spec *spec, struct running *r)
{
    int write_ends[PIPES] = {-1, -1, -1}, err = 0;
    pid_t self = getpid();

    for (int i = 0; i < PIPES; i++)
        r->fds[i] = -1;
    for (int i = 0; !err && i < (spec->samples ? PIPES : PIPES - 1); i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC)) {
            err = -errno;
            break;
        }
        r->fds[i] = ends[0];
        write_ends[i] = ends[1];
        fcntl(ends[0], F_SETPIPE_SZ,
              1 << 20); /* a child that prints much does not wait for us: best effort */
    }
    if (!err) {
        r->pid = fork();
        if (r->pid == 0)
            become(spec, write_ends, self);
        err = r->pid < 0 ? -errno : 0;
        if (!err) {
            setpgid(r->pid, r->pid);
            r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
        }
    }
    close_all(write_ends, PIPES);
    if (err)
        close_all(r->fds, PIPES);
    return err;
}

static void stop_group(struct running *r, int signal_number)
{
    kill(-r->pid, signal_number);
    kill(r->pid, signal_number);
}

/* Asks it to end, and later makes it. */
static void keep_deadlines(struct running *r, const struct child_spec *spec)
{
    uint64_t now = clock_now_ns();
    struct child_result *res = r->result;
    bool stop = res->timed_out || res->cancelled || res->flooded;

    if (!stop) {
        res->timed_out = now >= r->deadline_ns;
        res->cancelled = spec->cancel && *spec->cancel;
        if (res->timed_out || res->cancelled || res->flooded) {
            stop_group(r, SIGTERM);
            r->kill_at_ns = now + GRACE_NS;
        }
    } else if (now >= r->kill_at_ns) {
        stop_group(r, SIGKILL);
    }
}

static int read_pipe(struct running *r, int i)
{
    char chunk[65536];
    ssize_t n = read(r->fds[i], chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0) {
        close(r->fds[i]);
        r->fds[i] = -1;
        return 0;
    }
    if (r->buffers[i]->size + (size_t)n > CHILD_OUTPUT_MAX) {
        if (!r->result->flooded)
            stop_group(r, SIGKILL);
        r->result->flooded = true;
        return 0; /* read on and drop: the pipe must not block its end */
    }
    return buffer_add(r->buffers[i], chunk, (size_t)n);
}

/* Waits for output or the child's end. */
static int read_ready(struct running *r, int timeout_ms)
{
    struct pollfd polls[PIPES + 1];
    int map[PIPES], n = 0, err = 0;

    for (int i = 0; i < PIPES; i++) {
        if (r->fds[i] < 0)
            continue;
        polls[n] = (struct pollfd){.fd = r->fds[i], .events = POLLIN};
        map[n++] = i;
    }
    nfds_t all = (nfds_t)n;
    if (!r->ended && r->pidfd >= 0)
        polls[all++] = (struct pollfd){.fd = r->pidfd, .events = POLLIN};
    if (poll(polls, all, all > (nfds_t)n || r->ended ? timeout_ms : 1) < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; !err && i < n; i++)
        if (polls[i].revents)
            err = read_pipe(r, map[i]);
    return err;
}

/* The child is left as a zombie until the end, so that its number cannot be another process'
 * meanwhile. */
static bool has_ended(const struct running *r)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == r->pid;
}

static bool all_closed(const struct running *r)
{
    return r->fds[0] < 0 && r->fds[1] < 0 && r->fds[2] < 0;
}

static int attend(struct running *r, const struct child_spec *spec)
{
    uint64_t next_tick_ns = clock_now_ns() + TICK_MS * 1000000ull, drain_until_ns = UINT64_MAX;
    int err = 0;

    while (!err && !(r->ended && (all_closed(r) || clock_now_ns() >= drain_until_ns))) {
        err = read_ready(r, r->ended ? 10 : TICK_MS);
        if (!r->ended && has_ended(r)) {
            r->ended = true;
            drain_until_ns = clock_now_ns() + DRAIN_NS;
        }
        if (!r->ended)
            keep_deadlines(r, spec);
        if (spec->tick && clock_now_ns() >= next_tick_ns) {
            spec->tick(spec->tick_arg);
            next_tick_ns = clock_now_ns() + TICK_MS * 1000000ull;
        }
    }
    return err;
}

/* Ends whatever of its group still lives, then takes the child's status. */
static void reap(struct running *r)
{
    int status = 0;

    stop_group(r, SIGKILL);
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    r->result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->result->status = r->result->signal ? 128 + r->result->signal : WEXITSTATUS(status);
    if (r->pidfd >= 0)
        close(r->pidfd);
    close_all(r->fds, PIPES);
}

int child_run(const struct child_spec *spec, struct child_result *result)
{
    struct running r = {.result = result, .pidfd = -1};

    *result = (struct child_result){0};
    r.buffers[0] = &result->out;
    r.buffers[1] = &result->err;
    r.buffers[2] = &result->samples;
    for (int i = 0; i < PIPES; i++)
        if (buffer_add(r.buffers[i], "", 0))
            return -ENOMEM;
    uint64_t begin_ns = clock_now_ns();
    r.deadline_ns = begin_ns + spec->timeout_ns;
    int err = start(spec, &r);
    if (err)
        return err;
    err = attend(&r, spec);
    reap(&r);
    result->elapsed_ns = clock_now_ns() - begin_ns;
    return err;
}

void child_result_release(struct child_result *result)
{
    buffer_release(&result->out);
    buffer_release(&result->err);
    buffer_release(&result->samples);
}

/* Set by the signal handler alone, which has no other way to report. */
static volatile int cancel;

static void on_signal(int number)
{
    (void)number;
    cancel = 1;
}

const volatile int *cancel_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    return &cancel;
}

int path_folders(int (*fn)(const char *folder, void *arg), void *arg)
{
    const char *env = getenv("PATH");
    char *all = strdup(env ? env : "/usr/local/bin:/usr/bin:/bin"), *save = all;
    int stop = 0;

    for (char *folder; !stop && (folder = strsep(&save, ":")) != NULL;)
        if (*folder)
            stop = fn(folder, arg);
    free(all);
    return stop;
}

struct path_search {
    const char *name;
    char *found;
};

static int find_in_folder(const char *folder, void *arg)
{
    struct path_search *s = arg;
    char here[4096] = "", *path = NULL;
    struct stat st;

    if (*folder != '/' && !getcwd(here, sizeof(here)))
        return 0;
    if (asprintf(&path, "%s%s%s/%s", here, *here ? "/" : "", folder, s->name) < 0)
        return 0;
    if (!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
        s->found = path;
    else
        free(path);
    return s->found != NULL;
}

char *path_program(const char *name)
{
    struct path_search s = {.name = name};
    const char *slash = strrchr(name, '/');

    if (!slash) {
        path_folders(find_in_folder, &s);
        return s.found;
    }
    char *folder = slash == name ? strdup("/") : strndup(name, (size_t)(slash - name));

    s.name = slash + 1;
    if (folder && *s.name)
        find_in_folder(folder, &s);
    free(folder);
    return s.found;
}
