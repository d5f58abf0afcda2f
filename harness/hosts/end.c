/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, their messages, and sentences on them: see end.h. */
#include "harness/hosts/end.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/child.h"
#include "harness/hosts/launcher.h"

#define SLICE_MS 50 /* between two looks whether all have ended */
#define KILL_NS                                                                                    \
    3000000000ull /* between the request to end and the kill: mpirun ends its ranks first */

int end_start(struct end *e)
{
    const struct child_spec spec = {.argv = (const char *const *)e->command.all,
                                    .samples = e->has_samples};

    e->answers = json_array();
    return e->command.n ? process_start(&e->p, &spec, PROCESS_END) : -EINVAL;
}

void end_tell(struct end *e, const char *text)
{
    if (e->p.in >= 0)
        write_all(e->p.in, text, strlen(text)); /* one that is gone shows by its end */
}

void end_hang_up(struct end *e)
{
    if (e->p.in >= 0)
        close(e->p.in);
    e->p.in = -1;
}

char *text_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = '?';
    return text;
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

#define LINE_CUT 511 /* of its standard error; what is longer is cut off */

static void take_line(struct end *e, char *begin, size_t n)
{
    char line[LINE_CUT + 1];
    const char *text = line;
    struct notice notice;
    char rank[40];

    n = n > LINE_CUT ? LINE_CUT : n;
    memcpy(line, begin, n);
    line[n && line[n - 1] == '\r' ? n - 1 : n] = 0; /* ssh's own lines end so */
    text_printable(line);
    if (e->mark) {
        dprintf(STDERR_FILENO, "%s%s\n", e->mark, line);
        return;
    }
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

static void take_answer(struct end *e, char *begin, size_t n)
{
    json_t *answer = json_loadb(begin, n, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(answer))
        json_array_append(e->answers, answer);
    else if (!e->stray)
        e->stray = xstrndup(begin, n);
    json_decref(answer);
}

/* Takes whole lines out of a text; at its end what is left, too. `from`: before it no line ends. */
static void take_lines(struct end *e, struct buffer *b, size_t from, bool ends,
                       void (*take)(struct end *e, char *begin, size_t n))
{
    char *begin = b->text, *end;

    while ((end = memchr(b->text + from, '\n', b->size - from)) != NULL) {
        take(e, begin, (size_t)(end - begin));
        begin = end + 1;
        from = (size_t)(begin - b->text);
    }
    b->size -= (size_t)(begin - b->text);
    memmove(b->text, begin, b->size + 1);
    if (ends && b->size) {
        take(e, b->text, b->size);
        b->size = 0;
    }
}

json_t *end_answer(struct end *e)
{
    json_t *answer = json_incref(json_array_get(e->answers, 0));

    json_array_remove(e->answers, 0);
    return answer;
}

json_t *message_text(const char *text)
{
    json_t *valid = json_string(text);

    if (valid)
        return valid;
    char *copy = xstrdup(text);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    valid = json_string(copy);
    free(copy);
    return valid;
}

const char *message_line(const json_t *message, const char *key, char *text, size_t len)
{
    const char *value = json_string_value(json_object_get(message, key));

    snprintf(text, len, "%s", value ? value : "");
    return text_printable(text);
}

int message_send(int fd, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    int err = text ? write_all(fd, text, strlen(text)) : -EILSEQ;

    if (!err)
        err = write_all(fd, "\n", 1);
    free(text);
    json_decref(message);
    return err;
}

void ends_allow(unsigned n)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= 5 * (rlim_t)n + 64)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* a limit that stays shows when a pipe cannot be made */
}

int ends_attend(struct end *ends, unsigned n, int ms)
{
    struct process **all = xcalloc(n, sizeof(struct process *));

    for (unsigned i = 0; i < n; i++)
        all[i] = &ends[i].p;
    int err = processes_read(all, n, ms);
    for (unsigned i = 0; i < n && !err; i++) {
        struct end *e = &ends[i];
        struct process *p = &e->p;
        siginfo_t info = {0};

        if (!p->texts[PIPE_OUT].text) /* it was never started */
            continue;
        take_lines(e, &p->texts[PIPE_ERR], 0, p->fds[PIPE_ERR] < 0, take_line);
        if (e->talks) {
            take_lines(e, &p->texts[PIPE_OUT], e->n_read, false, take_answer);
            e->n_read = p->texts[PIPE_OUT].size;
        }
        if (p->pid && !p->ended &&
            !waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) && info.si_pid)
            e->stopped_ns = info.si_code == CLD_STOPPED ? clock_now_ns() : 0;
        if (p->ended)
            e->stopped_ns = 0;
        err = p->flooded ? -EFBIG : 0;
    }
    free(all);
    return err;
}

static bool has_ended(const struct end *e)
{
    return e->p.ended;
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
        for (i = 0; i < n && (!ends[i].p.pid || is(&ends[i])); i++)
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
        if (ends[i].p.pid && !ends[i].p.ended)
            kill(ends[i].p.pid, signal_number);
}

void ends_stop(struct end *ends, unsigned n, uint64_t grace_ns)
{
    for (unsigned i = 0; i < n; i++)
        end_hang_up(&ends[i]);
    wait_until_all(ends, n, is_over_or_stopped, grace_ns);
    kill_all(ends, n, SIGTERM);
    kill_all(ends, n, SIGCONT);
    wait_until_all(ends, n, has_ended, KILL_NS); /* another process may still hold their pipes */
    for (unsigned i = 0; i < n; i++) {
        struct end *e = &ends[i];
        process_release(&e->p);
        argv_release(&e->command);
        json_decref(e->answers);
        free(e->stray);
        *e = (struct end){END_NONE, .cause = e->cause};
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

int host_version(const char *program, uint64_t wait_ns, char version[HOST_VERSION_MAX])
{
    const char *argv[] = {program, "--version", NULL};
    struct child_result r = {0};
    int err = access(program, X_OK) ? -errno : 0;

    if (!err)
        err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = wait_ns}, &r);
    if (!err && r.status) {
        err = -ENOEXEC;
        snprintf(version, HOST_VERSION_MAX, "its --version ended with status %d%s%.*s", r.status,
                 r.err.size ? ": " : "", (int)strcspn(r.err.text, "\n"), r.err.text);
    } else if (err) {
        snprintf(version, HOST_VERSION_MAX, "%s", strerror(-err));
    } else {
        snprintf(version, HOST_VERSION_MAX, "%.*s", (int)strcspn(r.out.text, "\n"), r.out.text);
    }
    child_result_release(&r);
    return err;
}

bool host_same_build(const char *host, const char *theirs, const char *ours, char *text, size_t len)
{
    char there[HOST_VERSION_MAX], here[HOST_VERSION_MAX];

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

void host_say_unreached(const struct hosts_run *run, const struct end *e, const char *agent,
                        char *text, size_t len)
{
    char by[LAUNCHER_BY_SIZE], hint[LAUNCHER_HINT_SIZE];

    /* Of a shell: it is not there, or is no program. */
    if (!run->launcher->ranks && (e->p.status == 127 || e->p.status == 126)) {
        host_say_missing(agent, e->name, "", host_why(run, e), text, len);
        return;
    }
    snprintf(text, len, "cannot reach '%s' %s: %s (status %d)%s", e->name, launcher_by(run, by),
             host_why(run, e), e->p.status, launcher_hint(run, e->name, hint));
}

void host_say_mute(const struct hosts_run *run, const struct end *e, char *text, size_t len)
{
    char by[LAUNCHER_BY_SIZE];

    snprintf(text, len, "'%s' does not answer: nothing came from it %s in %.3g s", e->name,
             launcher_by(run, by), (double)run->wait_ns * 1e-9);
}

void host_say_missing(const char *program, const char *host, const char *calls, const char *why,
                      char *text, size_t len)
{
    snprintf(text, len,
             "'%s' does not start on '%s'%s%s%s: %s; install it there at the same place, or say "
             "where with --remote-dir",
             program, host, *calls ? " (" : "", calls, *calls ? ")" : "", why);
}
