/* SPDX-License-Identifier: Apache-2.0 */
/* Processes at the ends of a launch: see end.h. */
#include "harness/hosts/end.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/child.h"
#include "harness/hosts/stream.h"

#define DRAIN_NS 1000000000ull /* after its end, for what another process may still hold open */
#define SLICE_MS 50            /* between two looks whether it has ended */
#define KILL_NS  1000000000ull /* between the request to end and the kill */

/* In the child: between fork and exec only calls that are safe there. */
static void become(const struct end *e, int in, int out, int err, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    signal(SIGPIPE, SIG_DFL);
    execvp(e->command.all[0], e->command.all);
    _exit(127);
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int open_pipes(int pipes[3][2])
{
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC))
            return -errno;
    return 0;
}

int end_start(struct end *e)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    pid_t self = getpid();

    e->in = e->out = e->err = -1;
    int err = e->command.err ? e->command.err : e->command.n ? open_pipes(pipes) : -EINVAL;
    if (!err) {
        e->pid = fork();
        if (e->pid == 0)
            become(e, pipes[0][0], pipes[1][1], pipes[2][1], self);
        err = e->pid < 0 ? -errno : 0;
    }
    close_one(&pipes[0][0]);
    close_one(&pipes[1][1]);
    close_one(&pipes[2][1]);
    e->in = pipes[0][1];
    e->out = pipes[1][0];
    e->err = pipes[2][0];
    if (err)
        e->pid = 0;
    return err ? err : buffer_add(&e->output, "", 0);
}

void end_tell(struct end *e, const char *text)
{
    if (e->in >= 0)
        write_all(e->in, text, strlen(text)); /* one that is gone shows by its end */
}

void end_hang_up(struct end *e)
{
    close_one(&e->in);
}

bool end_is_over(const struct end *e)
{
    return e->ended && ((e->out < 0 && e->err < 0) || clock_now_ns() >= e->ended_ns + DRAIN_NS);
}

static bool says_anything(const char *line)
{
    for (; *line; line++)
        if (isalpha((unsigned char)*line))
            return true;
    return false;
}

/* "rank 3: " for a line that begins with "plumb-rank 3 "; *text: what follows. Returns the number, or -1. */
static long take_rank(const char **text, char *rank, size_t len)
{
    static const char mark[] = "plumb-rank ";
    char *end;

    rank[0] = 0;
    if (strncmp(*text, mark, sizeof(mark) - 1) != 0)
        return -1;
    unsigned long number = strtoul(*text + sizeof(mark) - 1, &end, 10);
    if (*end != ' ' || number > UINT_MAX)
        return -1;
    snprintf(rank, len, "rank %lu: ", number);
    *text = end + 1;
    return (long)number;
}

static void take_cause(struct end_cause *cause, const struct notice *n, long speaker)
{
    bool found = cause->lost.kind != NOTICE_NONE;

    if (speaker < 0 || n->rank == (unsigned long)speaker || (found && (speaker || !cause->speaker)))
        return;
    *cause = (struct end_cause){.lost = *n, .speaker = (unsigned)speaker};
}

static void take_notice(struct end *e, const struct notice *n, long speaker, const char *rank,
                        const char *text)
{
    e->listening |= n->kind == NOTICE_LISTENING;
    e->taken |= n->kind == NOTICE_PORT_TAKEN;
    if (n->kind == NOTICE_LOST)
        snprintf(e->loss, sizeof(e->loss), "%s%.440s", rank, text);
    if (n->kind == NOTICE_GONE || n->kind == NOTICE_SILENT)
        take_cause(&e->cause, n, speaker);
}

static void take_line(struct end *e)
{
    const char *text = e->line;
    struct notice notice;
    char rank[40];

    if (e->line_len && e->line[e->line_len - 1] == '\r') /* ssh's own lines end so */
        e->line_len--;
    e->line[e->line_len] = 0;
    e->line_len = 0;
    stream_printable(e->line);
    long speaker = take_rank(&text, rank, sizeof(rank));
    text = notice_read(text, &notice);
    take_notice(e, &notice, speaker, rank, text);
    if (!says_anything(text))
        return;
    if (notice.kind != NOTICE_LISTENING)
        e->said_ns = clock_now_ns();
    if (!*e->first)
        snprintf(e->first, sizeof(e->first), "%s%.440s", rank, text);
    snprintf(e->last, sizeof(e->last), "%s%.440s", rank, text);
    if (!e->silent)
        dprintf(STDERR_FILENO, "%s%s%s%s\n", e->name, *rank ? " " : ": ", rank, text);
}

static int read_err(struct end *e)
{
    char chunk[4096];
    ssize_t n = read(e->err, chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    for (ssize_t i = 0; i < n; i++) {
        if (chunk[i] != '\n' && e->line_len + 1 < sizeof(e->line))
            e->line[e->line_len++] = chunk[i];
        if (chunk[i] == '\n')
            take_line(e);
    }
    if (n == 0) {
        close_one(&e->err);
        if (e->line_len)
            take_line(e);
    }
    return 0;
}

static int read_out(struct end *e)
{
    char chunk[65536];
    ssize_t n = read(e->out, chunk, sizeof(chunk));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    if (n == 0)
        close_one(&e->out);
    if (e->output.size + (size_t)n > CHILD_OUTPUT_MAX)
        return -EFBIG;
    return buffer_add(&e->output, chunk, (size_t)n);
}

static void look_whether_ended(struct end *e)
{
    int status;

    if (e->ended || !e->pid || waitpid(e->pid, &status, WNOHANG) != e->pid)
        return;
    e->ended = true;
    e->ended_ns = clock_now_ns();
    e->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ends_allow(unsigned n)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= 4 * (rlim_t)n + 64)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* a limit that stays shows when a pipe cannot be made */
}

static int read_all(struct end *ends, unsigned n, const struct pollfd *polls)
{
    int err = 0;

    for (unsigned i = 0; i < n && !err; i++) {
        if (polls[2 * i].revents)
            err = read_out(&ends[i]);
        if (!err && polls[2 * i + 1].revents)
            err = read_err(&ends[i]);
        look_whether_ended(&ends[i]);
    }
    return err;
}

int ends_attend(struct end *ends, unsigned n, int ms)
{
    struct pollfd *polls = calloc(2 * (size_t)n + 1, sizeof(*polls));
    int err = 0;

    if (!polls)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        polls[2 * i] = (struct pollfd){.fd = ends[i].out, .events = POLLIN};
        polls[2 * i + 1] = (struct pollfd){.fd = ends[i].err, .events = POLLIN};
    }
    if (poll(polls, 2 * (nfds_t)n, ms < SLICE_MS ? ms : SLICE_MS) < 0 && errno != EINTR)
        err = -errno;
    if (!err)
        err = read_all(ends, n, polls);
    free(polls);
    return err;
}

static bool has_ended(const struct end *e)
{
    return e->ended;
}

static void wait_until_all(struct end *ends, unsigned n, bool (*is)(const struct end *e),
                           uint64_t for_ns)
{
    uint64_t until_ns = clock_now_ns() + for_ns;
    unsigned i = 0;

    while (i < n && clock_now_ns() < until_ns) {
        for (i = 0; i < n && (!ends[i].pid || is(&ends[i])); i++)
            continue;
        if (i < n && ends_attend(ends, n, SLICE_MS))
            break;
    }
}

void ends_wait(struct end *ends, unsigned n, uint64_t for_ns)
{
    wait_until_all(ends, n, end_is_over, for_ns);
}

static void kill_all(struct end *ends, unsigned n, int signal_number)
{
    for (unsigned i = 0; i < n; i++)
        if (ends[i].pid && !ends[i].ended)
            kill(ends[i].pid, signal_number);
}

void ends_stop(struct end *ends, unsigned n, uint64_t grace_ns)
{
    for (unsigned i = 0; i < n; i++)
        end_hang_up(&ends[i]);
    ends_wait(ends, n, grace_ns);
    kill_all(ends, n, SIGTERM);
    wait_until_all(ends, n, has_ended, KILL_NS); /* who holds their pipes still says nothing more */
    kill_all(ends, n, SIGKILL);
    for (unsigned i = 0; i < n; i++) {
        struct end *e = &ends[i];
        if (e->pid && !e->ended)
            waitpid(e->pid, NULL, 0);
        close_one(&e->out);
        close_one(&e->err);
        words_release(&e->command);
        buffer_release(&e->output);
        *e = (struct end){.in = -1, .out = -1, .err = -1, .cause = e->cause};
    }
}
