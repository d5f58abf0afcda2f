/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a launch: see end.h. */
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

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/child.h"
#include "harness/hosts/launcher.h"

/* ---- The stream of a host ---- */

const char *stream_find(const char *text, const char *word, const char *token)
{
    char mark[64];
    int n = snprintf(mark, sizeof(mark), "plumb-%s %s ", word, token);

    for (const char *at = text; (at = strstr(at, mark)) != NULL; at++)
        if (at == text || at[-1] == '\n')
            return at + n;
    return NULL;
}

char *stream_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = '?';
    return text;
}

struct stream_hello stream_hello(const char *text, const char *word, const char *token)
{
    struct stream_hello hello = {0};
    const char *at = stream_find(text, word, token), *end = at ? strchr(at, '\n') : NULL;
    const char *bar = end ? memchr(at, '|', (size_t)(end - at)) : NULL;

    if (!bar)
        return hello;
    hello.there = true;
    snprintf(hello.name, sizeof(hello.name), "%.*s", (int)(bar - at), at);
    snprintf(hello.version, sizeof(hello.version), "%.*s", (int)(end - bar - 1), bar + 1);
    stream_printable(hello.name);
    stream_printable(hello.version);
    return hello;
}

/* A line with a number, and where the next begins. */
static const char *numbered(const char *at, const char *word, const char *token, size_t *number)
{
    char mark[64], *end;
    int n = snprintf(mark, sizeof(mark), "plumb-%s %s ", word, token);

    if (strncmp(at, mark, (size_t)n) != 0 || at[n] < '0' || at[n] > '9')
        return NULL;
    *number = strtoull(at + n, &end, 10);
    return *end == '\n' ? end + 1 : NULL;
}

/* A line with a number of bytes, these bytes, and what follows them. */
static const char *take_section(const char *at, const char *end, const char *word,
                                const char *token, const char **bytes, size_t *n)
{
    at = at ? numbered(at, word, token, n) : NULL;
    if (!at || *n > (size_t)(end - at))
        return NULL;
    *bytes = at;
    return at + *n;
}

bool stream_is_whole(const char *text, size_t size, const char *token)
{
    size_t at = size ? size - 1 : 0, status;

    while (at > 0 && text[at - 1] != '\n' && size - at < 64)
        at--;
    return size && text[size - 1] == '\n' && numbered(text + at, "end", token, &status);
}

int stream_parts(const char *text, size_t size, const char *token, struct stream_parts *parts)
{
    const char *end = text + size, *at = stream_find(text, "r", token);
    size_t status;

    *parts = (struct stream_parts){0};
    if (at)
        while (at > text && at[-1] != '\n')
            at--;
    at = take_section(at, end, "r", token, &parts->rows, &parts->n_rows);
    at = take_section(at, end, "s", token, &parts->samples, &parts->n_samples);
    if (!at || !numbered(at, "end", token, &status) || status > 255)
        return -EBADMSG;
    parts->status = (int)status;
    return 0;
}

#define DRAIN_NS 1000000000ull /* after its end, for what another process may still hold open */
#define SLICE_MS 50            /* between two looks whether it has ended */
#define KILL_NS                                                                                    \
    3000000000ull /* between the request to end and the kill: mpirun ends its ranks first */

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
    int err = e->command.n ? open_pipes(pipes) : -EINVAL;
    if (!err) {
        e->pid = fork();
        if (e->pid == 0) {
            /* In the child: between fork and exec only calls that are safe there. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != self)
                _exit(127);
            if (dup2(pipes[0][0], STDIN_FILENO) < 0 || dup2(pipes[1][1], STDOUT_FILENO) < 0 ||
                dup2(pipes[2][1], STDERR_FILENO) < 0)
                _exit(127);
            signal(SIGPIPE, SIG_DFL);
            execvp(e->command.all[0], e->command.all);
            _exit(127);
        }
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
    buffer_text(&e->output, "");
    return err;
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

/* "rank 3: " for a line that begins with "plumb-rank 3 "; *text then is the rest of the line.
 * Returns the number, or -1. */
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
    e->listening |= notice.kind == NOTICE_LISTENING;
    e->taken |= notice.kind == NOTICE_PORT_TAKEN;
    if (notice.kind == NOTICE_LOST)
        snprintf(e->loss, sizeof(e->loss), "%s%.440s", rank, text);
    if (notice.kind == NOTICE_GONE || notice.kind == NOTICE_SILENT) {
        bool found = e->cause.lost.kind != NOTICE_NONE;

        if (speaker >= 0 && notice.rank != (unsigned long)speaker &&
            (!found || (!speaker && e->cause.speaker)))
            e->cause = (struct end_cause){.lost = notice, .speaker = (unsigned)speaker};
    }
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
    return buffer_try(&e->output, chunk, (size_t)n);
}

static void look_whether_ended(struct end *e)
{
    int status;

    if (e->ended || !e->pid || waitpid(e->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != e->pid)
        return;
    e->stopped_ns = WIFSTOPPED(status) ? clock_now_ns() : 0;
    if (WIFSTOPPED(status) || WIFCONTINUED(status))
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

int ends_attend(struct end *ends, unsigned n, int ms)
{
    struct pollfd *polls = xcalloc(2 * (size_t)n, sizeof(*polls));
    int err = 0;

    for (unsigned i = 0; i < n; i++) {
        polls[2 * i] = (struct pollfd){.fd = ends[i].out, .events = POLLIN};
        polls[2 * i + 1] = (struct pollfd){.fd = ends[i].err, .events = POLLIN};
    }
    if (poll(polls, 2 * (nfds_t)n, ms < SLICE_MS ? ms : SLICE_MS) < 0 && errno != EINTR)
        err = -errno;
    for (unsigned i = 0; i < n && !err; i++) {
        if (polls[2 * i].revents)
            err = read_out(&ends[i]);
        if (!err && polls[2 * i + 1].revents)
            err = read_err(&ends[i]);
        look_whether_ended(&ends[i]);
    }
    free(polls);
    return err;
}

static bool has_ended(const struct end *e)
{
    return e->ended;
}

/* What is stopped does not end before it goes on. */
static bool is_over_or_stopped(const struct end *e)
{
    return end_is_over(e) || e->stopped_ns;
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
    wait_until_all(ends, n, is_over_or_stopped, grace_ns);
    kill_all(ends, n, SIGTERM);
    kill_all(ends, n, SIGCONT);
    wait_until_all(ends, n, has_ended, KILL_NS); /* another process may still hold their pipes */
    kill_all(ends, n, SIGKILL);
    for (unsigned i = 0; i < n; i++) {
        struct end *e = &ends[i];
        if (e->pid && !e->ended)
            waitpid(e->pid, NULL, 0);
        close_one(&e->out);
        close_one(&e->err);
        argv_release(&e->command);
        buffer_release(&e->output);
        *e = (struct end){.in = -1, .out = -1, .err = -1, .cause = e->cause};
    }
}

/* ---- Sentences on hosts ---- */

const char *host_build(const char *version, char *text, size_t len)
{
    const char *blank = strchr(version, ' ');

    version = blank ? blank + 1 : version;
    snprintf(text, len, "%.*s%s", (int)strcspn(version, ","), version,
             strchr(version, '(') ? ")" : "");
    return text;
}

int host_own_version(const char *program, uint64_t wait_ns, char version[STREAM_TEXT_MAX])
{
    const char *argv[] = {program, "--version", NULL};
    struct child_result r = {0};
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = wait_ns}, &r);

    version[0] = 0;
    if (!err && r.status)
        err = -ENOEXEC;
    if (!err)
        snprintf(version, STREAM_TEXT_MAX, "%.*s", (int)strcspn(r.out.text, "\n"), r.out.text);
    child_result_release(&r);
    return err;
}

bool host_same_build(const char *host, const char *theirs, const char *ours, char *text, size_t len)
{
    char there[STREAM_TEXT_MAX], here[STREAM_TEXT_MAX];

    host_build(theirs, there, sizeof(there));
    host_build(ours, here, sizeof(here));
    if (!strcmp(there, here))
        return true;
    snprintf(text, len,
             "the version on '%s' differs: it has %s, this machine %s; install the same build on "
             "all hosts",
             host, there, here);
    return false;
}

const char *host_why(const struct hosts_run *run, const struct end *e)
{
    const char *why = run->launcher->ranks ? e->first : e->last;

    return *why ? why : "it ended without a word";
}

void host_say_unreached(const struct hosts_run *run, const struct end *e, char *text, size_t len)
{
    char by[LAUNCHER_BY_SIZE], hint[LAUNCHER_HINT_SIZE];

    snprintf(text, len, "cannot reach '%s' %s: %s (status %d)%s", e->name, launcher_by(run, by),
             host_why(run, e), e->status, launcher_hint(run, e->name, hint));
}

void host_say_mute(const struct hosts_run *run, const struct end *e, char *text, size_t len)
{
    char by[LAUNCHER_BY_SIZE];

    snprintf(text, len, "'%s' does not answer: nothing came from it %s in %.3g s", e->name,
             launcher_by(run, by), (double)run->wait_ns * 1e-9);
}

void host_say_missing(const char *program, const char *host, const struct stream_hello *missing,
                      char *text, size_t len)
{
    snprintf(text, len,
             "'%s' does not start on '%s' (%s): %s; install it there at the same place, or say "
             "where with --remote-dir",
             program, host, missing->name, missing->version);
}
