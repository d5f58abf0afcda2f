/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs together: see crosscheck.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/crosscheck/crosscheck.h"
#include "harness/text.h"

#define TEMPLATE_WORDS_MAX 96

#define LISTEN_NS  5000000000ull /* until the server listens */
#define LEAVE_NS   300000000ull  /* for a server that ends by itself after its client */
#define LOOK_US    5000
#define TABLE_MAX  (16u << 20)
#define TCP_LISTEN 0x0a /* in /proc/net/tcp */

struct serving {
    const struct tandem_spec *spec;
    struct child_result *result;
    int stop; /* child_spec.cancel */
    int err;
    atomic_bool ended;
};

unsigned tandem_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port = 0;

    if (fd < 0)
        return 0;
    if (!bind(fd, (struct sockaddr *)&at, len) && !getsockname(fd, (struct sockaddr *)&at, &len))
        port = ntohs(at.sin_port);
    close(fd);
    return port;
}

bool tandem_listens(const char *text, unsigned port)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        unsigned at, state;
        line += *line == '\n';
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &at, &state) == 2 &&
            at == port && state == TCP_LISTEN)
            return true;
    }
    return false;
}

static bool listens_now(unsigned port)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool found = false;

    for (int i = 0; i < 2 && !found; i++) {
        struct buffer b = {0};
        found = !file_read(tables[i], TABLE_MAX, &b) && tandem_listens(b.text, port);
        buffer_release(&b);
    }
    return found;
}

struct tandem_cpus tandem_cpus_parse(const char *text, const char **end)
{
    struct tandem_cpus c = {0};
    char *after;

    for (;;) {
        unsigned long cpu = strtoul(text, &after, 10);
        if (after == text || cpu >= CPU_SETSIZE || c.n == TANDEM_CPUS_MAX)
            break;
        c.cpus[c.n++] = (unsigned)cpu;
        text = after;
    }
    if (end)
        *end = text;
    return c;
}

/* A child has the CPUs of the thread that starts it. */
static void bind_thread(const struct tandem_cpus *c, cpu_set_t *before)
{
    cpu_set_t set;

    if (before)
        sched_getaffinity(0, sizeof(*before), before);
    CPU_ZERO(&set);
    for (unsigned i = 0; i < c->n; i++)
        CPU_SET(c->cpus[i], &set);
    if (c->n)
        sched_setaffinity(0, sizeof(set), &set);
}

static void *serve(void *arg)
{
    struct serving *s = arg;

    bind_thread(&s->spec->server_cpus, NULL);
    s->err = child_run(&(struct child_spec){.argv = (const char *const *)s->spec->server,
                                            .timeout_ns = s->spec->timeout_ns + LISTEN_NS,
                                            .cancel = &s->stop},
                       s->result);
    atomic_store(&s->ended, true);
    return NULL;
}

/* Signals are for the thread that waits for the client. */
static int start_server(struct serving *s, pthread_t *thread)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = -pthread_create(thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static int wait_for_listener(struct serving *s, char *error, size_t len)
{
    uint64_t until_ns = clock_now_ns() + LISTEN_NS;

    while (!listens_now(s->spec->port)) {
        if (s->spec->cancel && *s->spec->cancel)
            return -ECANCELED;
        if (atomic_load(&s->ended)) {
            snprintf(error, len, "its server ended before it listened");
            return -EIO;
        }
        if (clock_now_ns() > until_ns) {
            snprintf(error, len, "its server did not listen on port %u in %llu s", s->spec->port,
                     LISTEN_NS / 1000000000u);
            return -ETIME;
        }
        usleep(LOOK_US);
    }
    return 0;
}

static void last_words(const struct child_result *r, char *text, size_t len)
{
    const char *from = r->err.size ? r->err.text : r->out.size ? r->out.text : "";
    size_t n = strlen(from), begin;

    while (n && strchr("\n\r ", from[n - 1]))
        n--;
    for (begin = n; begin && from[begin - 1] != '\n';)
        begin--;
    snprintf(text, len, "%.*s", (int)(n - begin), from + begin);
}

static int judge_client(const struct tandem_spec *spec, const struct child_result *c, char *error,
                        size_t len)
{
    char words[160];

    if (c->cancelled)
        return -ECANCELED;
    if (c->timed_out) {
        snprintf(error, len, "it did not end in %.3g s", (double)spec->timeout_ns / 1e9);
        return -ETIME;
    }
    if (c->flooded) {
        snprintf(error, len, "it printed too much");
        return -EIO;
    }
    if (!c->status)
        return 0;
    last_words(c, words, sizeof(words));
    if (c->signal)
        snprintf(error, len, "it was killed by signal %d", c->signal);
    else
        snprintf(error, len, "it ended with status %d%s%s", c->status, *words ? ": " : "", words);
    return -EIO;
}

static int run_client(const struct tandem_spec *spec, struct tandem_result *r, char *error,
                      size_t len)
{
    cpu_set_t before;

    bind_thread(&spec->client_cpus, &before);
    int err = child_run(&(struct child_spec){.argv = (const char *const *)spec->client,
                                             .timeout_ns = spec->timeout_ns,
                                             .cancel = spec->cancel,
                                             .tick = spec->tick,
                                             .tick_arg = spec->tick_arg},
                        &r->client);
    sched_setaffinity(0, sizeof(before), &before);
    if (err) {
        snprintf(error, len, "cannot run '%s': %s", spec->client[0], strerror(-err));
        return err;
    }
    r->ran = true;
    return judge_client(spec, &r->client, error, len);
}

static void end_server(struct serving *s, pthread_t thread, bool at_once)
{
    uint64_t until_ns = clock_now_ns() + (at_once ? 0 : LEAVE_NS);

    while (!atomic_load(&s->ended) && clock_now_ns() < until_ns)
        usleep(LOOK_US);
    __atomic_store_n(&s->stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
}

int tandem_run(const struct tandem_spec *spec, struct tandem_result *r, char *error, size_t len)
{
    struct serving s = {.spec = spec, .result = &r->server};
    pthread_t thread;

    *r = (struct tandem_result){0};
    snprintf(error, len, "%s", "");
    if (!spec->server)
        return run_client(spec, r, error, len);
    int err = start_server(&s, &thread);
    if (err) {
        snprintf(error, len, "cannot start a thread: %s", strerror(-err));
        return err;
    }
    err = wait_for_listener(&s, error, len);
    if (!err)
        err = run_client(spec, r, error, len);
    end_server(&s, thread, err != 0);
    if (err == -EIO && !r->ran && s.result->err.text) {
        size_t at = strlen(error);
        char words[160];
        last_words(s.result, words, sizeof(words));
        if (*words)
            snprintf(error + at, len - at, ": %s", words);
    }
    return err;
}

void tandem_result_release(struct tandem_result *r)
{
    child_result_release(&r->server);
    child_result_release(&r->client);
}

/* ---- Templates of arguments ---- */

static const char *value_of(const struct template_value *values, const char *name, size_t len)
{
    for (; values->name; values++)
        if (strlen(values->name) == len && !strncmp(values->name, name, len))
            return values->value && *values->value ? values->value : NULL;
    return NULL;
}

/* Writes text[0..n) with its values to out. A name whose value is not known: its text in *unknown.
 */
static void fill(FILE *out, const char *text, size_t n, const struct template_value *values,
                 const char **unknown, size_t *unknown_len)
{
    for (const char *at = text; at < text + n; at++) {
        const char *end = *at == '{' ? memchr(at, '}', (size_t)(text + n - at)) : NULL;
        if (!end) {
            fputc(*at, out);
            continue;
        }
        const char *value = value_of(values, at + 1, (size_t)(end - at - 1));
        if (value) {
            fputs(value, out);
        } else if (!*unknown) {
            *unknown = at + 1;
            *unknown_len = (size_t)(end - at - 1);
        }
        at = end;
    }
}

/* One group in brackets, whole or not at all. */
static int fill_group(FILE *out, const char *text, size_t n, const struct template_value *values)
{
    const char *unknown = NULL;
    char *group = NULL;
    size_t size = 0, unknown_len = 0;
    FILE *part = open_memstream(&group, &size);

    if (!part)
        return -1;
    fill(part, text, n, values, &unknown, &unknown_len);
    int err = fclose(part);
    if (!err && !unknown)
        fwrite(group, 1, size, out);
    free(group);
    return err;
}

/* The whole text with values and without brackets: a new text, or NULL with error. */
static char *expand(const char *text, const struct template_value *values, char *error, size_t len)
{
    const char *unknown = NULL;
    char *whole = NULL;
    size_t size = 0, unknown_len = 0;
    FILE *out = open_memstream(&whole, &size);
    int err = out ? 0 : -1;

    while (!err && *text) {
        const char *end = *text == '[' ? strchr(text, ']') : NULL;
        if (end) {
            err = fill_group(out, text + 1, (size_t)(end - text - 1), values);
            text = end + 1;
        } else {
            size_t n = 1 + strcspn(text + 1, "[");
            fill(out, text, n, values, &unknown, &unknown_len);
            text += n;
        }
    }
    if (out && fclose(out))
        err = -1;
    if (!err && !unknown)
        return whole;
    if (err)
        snprintf(error, len, "out of memory");
    else
        snprintf(error, len, "'%.*s' is not known here", (int)unknown_len, unknown);
    free(whole);
    return NULL;
}

static char **split(const char *program, char *text)
{
    char **words = calloc(TEMPLATE_WORDS_MAX + 2, sizeof(*words));
    size_t n = 0;
    bool failed = !words;

    if (words && program)
        failed = !(words[n++] = strdup(program));
    for (char *save = text, *word; !failed && (word = strsep(&save, " ")) != NULL;) {
        if (!*word)
            continue;
        if (n == 0 && strchr(word, '='))
            failed = !(words[n++] = strdup("env"));
        failed = failed || n >= TEMPLATE_WORDS_MAX || !(words[n++] = strdup(word));
    }
    if (!failed && n)
        return words;
    texts_free(words);
    return NULL;
}

/* The first word becomes a path. */
static int find(char **words, char *error, size_t len)
{
    char *path = path_program(words[0]);

    if (!path) {
        snprintf(error, len, "'%s' is not on PATH", words[0]);
        return -1;
    }
    free(words[0]);
    words[0] = path;
    return 0;
}

char **template_fill(const char *program, const char *text, const struct template_value *values,
                     char *error, size_t len)
{
    char *whole = expand(text, values, error, len);
    char **words = whole ? split(program, whole) : NULL;

    if (whole && !words)
        snprintf(error, len, "too many words, or out of memory");
    free(whole);
    if (words && !program && find(words, error, len)) {
        texts_free(words);
        words = NULL;
    }
    return words;
}
