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

#define TICK_MS  200
#define POLL_MS  10             /* where nothing wakes us when a process ends */
#define GRACE_NS 2000000000ull  /* between the request to end and the kill */
#define DRAIN_NS 1000000000ull  /* after the end, for pipes that another process holds open */
#define LEAVE_NS 10000000000ull /* for a server without work to end: it may close devices */

/* ---- A process with pipes ---- */

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

/* In the child: between fork and exec only calls that are safe there. ends: of its standard input and
 * of its pipes. */
static void become(const struct child_spec *spec, enum process_kind kind, int *ends, pid_t parent)
{
    sigset_t none;

    if (kind != PROCESS_END)
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* the parent died before the line above */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (ends[0] < 0)
        ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* The pipes' own numbers may be 0 to 4: move them out of the way first. */
    for (int i = 0; i <= PROCESS_PIPES; i++)
        if (ends[i] >= 0 && ends[i] <= PROCESS_PIPES &&
            (ends[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, PROCESS_PIPES + 1)) < 0)
            _exit(127);
    for (int i = 0; i <= PROCESS_PIPES; i++)
        if (ends[i] >= 0)
            dup2(ends[i], i);
    if (spec->body)
        _exit(spec->body(spec->body_arg));
    execvp(spec->argv[0], (char *const *)spec->argv);
    _exit(127);
}

static int make_pipes(struct process *p, const struct child_spec *spec, enum process_kind kind,
                      int *ends)
{
    const bool wanted[PROCESS_PIPES] = {true, true, spec->samples, kind == PROCESS_SERVER};
    int pair[2];

    for (int i = 0; i < PROCESS_PIPES; i++) {
        if (!wanted[i])
            continue;
        if (pipe2(pair, O_CLOEXEC))
            return -errno;
        p->fds[i] = pair[0];
        ends[1 + i] = pair[1];
        if (kind != PROCESS_END || spec->samples)  /* one that prints much does not wait for us: */
            fcntl(pair[0], F_SETPIPE_SZ, 1 << 20); /* best effort */
    }
    if (kind == PROCESS_SILENT)
        return 0;
    if (kind == PROCESS_END ? pipe2(pair, O_CLOEXEC)
                            : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -errno;
    ends[0] = pair[0];
    p->in = pair[1];
    return 0;
}

int process_start(struct process *p, const struct child_spec *spec, enum process_kind kind)
{
    int ends[1 + PROCESS_PIPES] = {-1, -1, -1, -1, -1};
    pid_t self = getpid();

    *p = (struct process){PROCESS_NONE};
    for (int i = 0; i < PROCESS_PIPES; i++)
        buffer_text(&p->texts[i], "");
    int err = make_pipes(p, spec, kind, ends);
    if (!err) {
        p->pid = fork();
        if (p->pid == 0)
            become(spec, kind, ends, self);
        err = p->pid < 0 ? -errno : 0;
    }
    close_all(ends, 1 + PROCESS_PIPES);
    if (err) {
        p->pid = 0;
        return err;
    }
    if (kind != PROCESS_END)
        setpgid(p->pid, p->pid);
    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    return 0;
}

static int read_pipe(struct process *p, int i)
{
    char chunk[65536];
    ssize_t n = read(p->fds[i], chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0)
        close_all(&p->fds[i], 1);
    p->flooded |= p->texts[i].size + (size_t)n > CHILD_OUTPUT_MAX;
    /* Read on and drop: the pipe must not block its end. */
    return p->flooded ? 0 : buffer_try(&p->texts[i], chunk, (size_t)n);
}

static void look_whether_ended(struct process *p)
{
    siginfo_t info = {0};

    if (!p->pid || p->ended ||
        waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != p->pid)
        return;
    p->ended = true;
    p->ended_ns = clock_now_ns();
    p->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    p->status = p->signal ? 128 + p->signal : info.si_status;
}

int processes_read(struct process *const *all, unsigned n, int ms)
{
    const unsigned each = PROCESS_PIPES + 1;
    struct pollfd *polls = xcalloc((size_t)n * each, sizeof(*polls));
    int err = 0;

    for (unsigned i = 0; i < n * each; i++) {
        const struct process *p = all[i / each];
        int which = (int)(i % each);

        polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (which < PROCESS_PIPES)
            polls[i].fd = p->fds[which];
        else if (p->pid && !p->ended)
            polls[i].fd = p->pidfd;
        if (p->pid && !p->ended && p->pidfd < 0 && ms > POLL_MS)
            ms = POLL_MS;
    }
    if (poll(polls, (nfds_t)n * each, ms) < 0 && errno != EINTR)
        err = -errno;
    for (unsigned i = 0; !err && i < n * each; i++)
        if (polls[i].fd >= 0 && polls[i].revents && i % each < PROCESS_PIPES)
            err = read_pipe(all[i / each], (int)(i % each));
    for (unsigned i = 0; !err && i < n; i++)
        look_whether_ended(all[i]);
    free(polls);
    return err;
}

static bool all_closed(const struct process *p)
{
    for (int i = 0; i < PROCESS_PIPES; i++)
        if (p->fds[i] >= 0)
            return false;
    return true;
}

bool process_is_over(const struct process *p)
{
    return p->ended && (all_closed(p) || clock_now_ns() >= p->ended_ns + DRAIN_NS);
}

void process_release(struct process *p)
{
    if (p->pid) {
        if (!p->ended)
            kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close_all(&p->pidfd, 1);
    close_all(&p->in, 1);
    close_all(p->fds, PROCESS_PIPES);
    for (int i = 0; i < PROCESS_PIPES; i++)
        buffer_release(&p->texts[i]);
    *p = (struct process){PROCESS_NONE};
}

/* ---- One that is waited for ---- */

struct running {
    struct process p;
    struct child_result *result;
    uint64_t deadline_ns, kill_at_ns;
};

struct child_server {
    struct running r;
    struct child_spec spec;
};

static void stop_group(const struct running *r, int signal_number)
{
    kill(-r->p.pid, signal_number);
    kill(r->p.pid, signal_number);
    kill(-r->p.pid, SIGCONT); /* what is stopped would not take it */
}

/* Has a server said the end of its work? Of one that is stopped it does not count. */
static bool has_marked(const struct running *r)
{
    const struct child_result *res = r->result;
    const struct buffer *marks = &r->p.texts[PIPE_MARKS];

    return !res->timed_out && !res->cancelled && !res->flooded && strstr(marks->text, "end ") &&
           marks->text[marks->size - 1] == '\n';
}

static int attend(struct running *r, const struct child_spec *spec)
{
    uint64_t next_tick_ns = clock_now_ns() + TICK_MS * 1000000ull;
    struct process *p = &r->p;
    int err = 0;

    while (!err && !has_marked(r) && !process_is_over(p)) {
        err = processes_read(&p, 1, p->ended ? POLL_MS : TICK_MS);
        if (!p->ended) {
            /* Asks it to end, and later makes it. */
            uint64_t now = clock_now_ns();
            struct child_result *res = r->result;
            bool stop = res->timed_out || res->cancelled || res->flooded;

            if (!stop) {
                res->timed_out = now >= r->deadline_ns;
                res->cancelled = spec->cancel && *spec->cancel;
                res->flooded = p->flooded;
                if (res->timed_out || res->cancelled || res->flooded) {
                    stop_group(r, res->flooded ? SIGKILL : SIGTERM);
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
    r->result->flooded |= p->flooded;
    return err;
}

/* Hands over what was written, and begins anew. */
static void hand_over(struct running *r)
{
    struct buffer *to[] = {&r->result->out, &r->result->err, &r->result->samples};

    for (int i = 0; i < PROCESS_PIPES; i++) {
        struct buffer *text = &r->p.texts[i];

        if (i < PIPE_MARKS) {
            *to[i] = *text;
            *text = (struct buffer){0};
        }
        text->size = 0;
        buffer_text(text, "");
    }
}

/* Ends whatever of its group still lives, then takes the child's status. */
static void reap(struct running *r)
{
    struct process *p = &r->p;

    stop_group(r, SIGKILL);
    while (!p->ended) {
        siginfo_t info;

        waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT);
        look_whether_ended(p);
    }
    r->result->signal = p->signal;
    r->result->status = p->status;
    r->result->ended = true;
    hand_over(r);
    process_release(p);
}

int child_run(const struct child_spec *spec, struct child_result *result)
{
    struct running r = {.result = result};
    uint64_t begin_ns = clock_now_ns();

    *result = (struct child_result){0};
    r.deadline_ns = begin_ns + spec->timeout_ns;
    int err = process_start(&r.p, spec, PROCESS_SILENT);
    if (err) {
        hand_over(&r);
        process_release(&r.p);
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
    int err = process_start(&s->r.p, spec, PROCESS_SERVER);
    if (err) {
        process_release(&s->r.p);
        free(s);
    } else {
        *server = s;
    }
    return err;
}

int child_server_ask(struct child_server *s, const char *line, uint64_t timeout_ns,
                     struct child_result *result)
{
    struct running *r = &s->r;
    struct process *p = &r->p;

    *result = (struct child_result){.ended = true}; /* until it has said the end */
    r->result = result;
    uint64_t begin_ns = clock_now_ns();
    r->deadline_ns = begin_ns + timeout_ns;
    look_whether_ended(p);
    int err = p->ended ? -ESRCH : 0;
    if (!err) {
        char *text = xasprintf("%s\n", line);
        ssize_t n = (ssize_t)strlen(text);

        for (ssize_t sent, at = 0; !err && at < n; at += sent)
            if ((sent = send(p->in, text + at, (size_t)(n - at), MSG_NOSIGNAL)) < 0) {
                err = errno == EPIPE || errno == ECONNRESET ? -ESRCH : errno == EINTR ? 0 : -errno;
                sent = 0;
            }
        free(text);
    }
    if (!err)
        err = attend(r, &s->spec);
    /* What was written before the end was said. */
    for (size_t before = SIZE_MAX, now = 0; !err && now != before;) {
        before = now;
        err = processes_read(&p, 1, 0);
        now = 1 + p->texts[PIPE_OUT].size + p->texts[PIPE_ERR].size + p->texts[PIPE_SAMPLES].size;
    }
    result->elapsed_ns = clock_now_ns() - begin_ns;
    bool begun = p->texts[PIPE_MARKS].size > 0;
    if (!err && has_marked(r)) {
        result->status = atoi(strstr(p->texts[PIPE_MARKS].text, "end ") + strlen("end "));
        result->ended = p->ended;
        hand_over(r);
        return 0;
    }
    if (err) {
        hand_over(r);
        return err;
    }
    reap(r);
    return begun || result->timed_out || result->cancelled || result->flooded ? 0 : -ESRCH;
}

void child_server_end(struct child_server *s)
{
    struct child_result result = {0};

    if (!s)
        return;
    if (s->r.p.pid) {
        close_all(&s->r.p.in, 1);
        s->spec.cancel = NULL;
        s->r.deadline_ns = clock_now_ns() + LEAVE_NS;
        s->r.result = &result;
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
