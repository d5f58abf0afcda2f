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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"

#define PIPES    4 /* stdout, stderr, samples, marks */
#define MARKS    3
#define TICK_MS  200
#define GRACE_NS 2000000000ull  /* between the request to end and the kill */
#define DRAIN_NS 1000000000ull  /* after the child's end, for pipes that a grandchild holds open */
#define LEAVE_NS 10000000000ull /* for a server without work to end: it may close devices */

struct running {
    pid_t pid;
    int pidfd;      /* readable when the child has ended; -1 on kernels before 5.3 */
    int fds[PIPES]; /* read ends; -1: closed */
    int lines;      /* of a server: its stdin */
    struct buffer *buffers[PIPES];
    struct buffer marks;
    struct child_result *result;
    uint64_t deadline_ns, kill_at_ns;
    bool ended;
};

struct child_server {
    struct running r;
    struct child_spec spec;
};

/* In the child: between fork and exec only calls that are safe there. */
static void become(const struct child_spec *spec, int lines, int write_ends[PIPES], pid_t parent)
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
    if (lines < 0)
        lines = open("/dev/null", O_RDONLY);
    if (lines >= 0)
        dup2(lines, STDIN_FILENO);
    /* The pipes' own numbers may be 1 to 4: move them out of the way first. */
    for (int i = 0; i < PIPES; i++)
        if (write_ends[i] >= 0 && write_ends[i] <= PIPES &&
            (write_ends[i] = fcntl(write_ends[i], F_DUPFD_CLOEXEC, PIPES + 1)) < 0)
            _exit(127);
    for (int i = 0; i < PIPES; i++)
        if (write_ends[i] >= 0)
            dup2(write_ends[i], STDOUT_FILENO + i);
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

static int make_pipes(const struct child_spec *spec, struct running *r, int write_ends[PIPES],
                      int *lines)
{
    const bool wanted[PIPES] = {true, true, spec->samples, lines != NULL};
    int ends[2];

    for (int i = 0; i < PIPES; i++) {
        if (!wanted[i])
            continue;
        if (pipe2(ends, O_CLOEXEC))
            return -errno;
        r->fds[i] = ends[0];
        write_ends[i] = ends[1];
        fcntl(ends[0], F_SETPIPE_SZ,
              1 << 20); /* a child that prints much does not wait for us: best effort */
    }
    if (!lines)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -errno;
    r->lines = ends[0];
    *lines = ends[1];
    return 0;
}

/* `serve`: it reads lines and writes marks. */
static int start(const struct child_spec *spec, bool serve, struct running *r)
{
    int write_ends[PIPES] = {-1, -1, -1, -1}, lines = -1;
    pid_t self = getpid();

    r->pidfd = r->lines = -1;
    for (int i = 0; i < PIPES; i++)
        r->fds[i] = -1;
    int err = make_pipes(spec, r, write_ends, serve ? &lines : NULL);
    if (!err) {
        r->pid = fork();
        if (r->pid == 0)
            become(spec, lines, write_ends, self);
        err = r->pid < 0 ? -errno : 0;
        if (!err) {
            setpgid(r->pid, r->pid);
            r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
        }
    }
    close_all(write_ends, PIPES);
    close_all(&lines, 1);
    if (err) {
        close_all(r->fds, PIPES);
        close_all(&r->lines, 1);
    }
    return err;
}

static void stop_group(struct running *r, int signal_number)
{
    kill(-r->pid, signal_number);
    kill(r->pid, signal_number);
    kill(-r->pid, SIGCONT); /* what is stopped would not take it */
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
    return buffer_try(r->buffers[i], chunk, (size_t)n);
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
    for (int i = 0; i < PIPES; i++)
        if (r->fds[i] >= 0)
            return false;
    return true;
}

/* Has a server said the end of its work? Of one that is stopped it does not count. */
static bool has_marked(const struct running *r)
{
    const struct child_result *res = r->result;
    const char *marks = r->marks.text;

    return marks && !res->timed_out && !res->cancelled && !res->flooded &&
           strstr(marks, "end ") != NULL && marks[r->marks.size - 1] == '\n';
}

static int attend(struct running *r, const struct child_spec *spec)
{
    uint64_t next_tick_ns = clock_now_ns() + TICK_MS * 1000000ull,
             drain_until_ns = r->ended ? clock_now_ns() + DRAIN_NS : UINT64_MAX;
    int err = 0;

    while (!err && !has_marked(r) &&
           !(r->ended && (all_closed(r) || clock_now_ns() >= drain_until_ns))) {
        err = read_ready(r, r->ended ? 10 : TICK_MS);
        if (!r->ended && has_ended(r)) {
            r->ended = true;
            drain_until_ns = clock_now_ns() + DRAIN_NS;
        }
        if (!r->ended) {
            /* Asks it to end, and later makes it. */
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
    r->result->ended = true;
    if (r->pidfd >= 0)
        close(r->pidfd);
    close_all(r->fds, PIPES);
    close_all(&r->lines, 1);
    buffer_release(&r->marks);
}

static void empty_result(struct running *r, struct child_result *result)
{
    struct buffer *buffers[PIPES] = {&result->out, &result->err, &result->samples, &r->marks};

    *result = (struct child_result){0};
    r->result = result;
    r->marks.size = 0;
    for (int i = 0; i < PIPES; i++) {
        r->buffers[i] = buffers[i];
        buffer_add(buffers[i], "", 0);
    }
}

int child_run(const struct child_spec *spec, struct child_result *result)
{
    struct running r = {.pidfd = -1};
    uint64_t begin_ns = clock_now_ns();

    empty_result(&r, result);
    r.deadline_ns = begin_ns + spec->timeout_ns;
    int err = start(spec, false, &r);
    if (err) {
        buffer_release(&r.marks);
        return err;
    }
    err = attend(&r, spec);
    reap(&r);
    result->elapsed_ns = clock_now_ns() - begin_ns;
    return err;
}

int child_server_start(const struct child_spec *spec, struct child_server **server)
{
    struct child_server *s = xcalloc(1, sizeof(*s));

    s->spec = *spec;
    int err = start(spec, true, &s->r);
    if (err)
        free(s);
    else
        *server = s;
    return err;
}

int child_server_ask(struct child_server *s, const char *line, uint64_t timeout_ns,
                     struct child_result *result)
{
    struct running *r = &s->r;
    int err = has_ended(r) ? -ESRCH : 0;

    empty_result(r, result);
    result->ended = true; /* until it has said the end */
    uint64_t begin_ns = clock_now_ns();
    r->deadline_ns = begin_ns + timeout_ns;
    if (!err) {
        char *text = xasprintf("%s\n", line);
        ssize_t n = (ssize_t)strlen(text);

        for (ssize_t sent, at = 0; !err && at < n; at += sent)
            if ((sent = send(s->r.lines, text + at, (size_t)(n - at), MSG_NOSIGNAL)) < 0) {
                err = errno == EPIPE || errno == ECONNRESET ? -ESRCH : errno == EINTR ? 0 : -errno;
                sent = 0;
            }
        free(text);
    }
    if (!err)
        err = attend(r, &s->spec);
    /* What was written before the end was said. */
    for (bool more = true; !err && more;) {
        more = false;
        for (int i = 0; !err && i < MARKS; i++) {
            struct pollfd p = {.fd = r->fds[i], .events = POLLIN};
            if (r->fds[i] < 0 || poll(&p, 1, 0) <= 0)
                continue;
            more = true;
            err = read_pipe(r, i);
        }
    }
    result->elapsed_ns = clock_now_ns() - begin_ns;
    if (err)
        return err;
    if (has_marked(r)) {
        result->status = atoi(strstr(r->marks.text, "end ") + strlen("end "));
        result->ended = r->ended;
        return 0;
    }
    bool begun = r->marks.size > 0;
    reap(r);
    r->pid = 0;
    return begun || result->timed_out || result->cancelled || result->flooded ? 0 : -ESRCH;
}

void child_server_end(struct child_server *s)
{
    struct child_result result;

    if (!s)
        return;
    if (s->r.pid) {
        close_all(&s->r.lines, 1);
        s->r.lines = -1;
        s->spec.cancel = NULL;
        s->r.deadline_ns = clock_now_ns() + LEAVE_NS;
        empty_result(&s->r, &result);
        attend(&s->r, &s->spec);
        reap(&s->r);
        child_result_release(&result);
    }
    free(s);
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
    char *all = xstrdup(env ? env : "/usr/local/bin:/usr/bin:/bin"), *save = all;
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
    char here[4096] = "";
    struct stat st;

    if (*folder != '/' && !getcwd(here, sizeof(here)))
        return 0;
    char *path = xasprintf("%s%s%s/%s", here, *here ? "/" : "", folder, s->name);
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
    char *folder = slash == name ? xstrdup("/") : xstrndup(name, (size_t)(slash - name));

    s.name = slash + 1;
    if (*s.name)
        find_in_folder(folder, &s);
    free(folder);
    return s.found;
}
