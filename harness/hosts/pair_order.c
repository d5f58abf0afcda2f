/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a pair, and asking one host: see pair.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/secret.h"
#include "harness/child.h"
#include "harness/hosts/pair.h"
#include "harness/hosts/pair_order.h"
#include "harness/hosts/stream.h"

void pair_program(const struct hosts_run *run, const struct host *host, const char *program,
                  char *path, size_t len)
{
    const char *slash = strrchr(program, '/');

    if (run->remote_dir && !host->here)
        snprintf(path, len, "%s/%s", run->remote_dir, slash ? slash + 1 : program);
    else
        snprintf(path, len, "%s", program);
}

const char *pair_build(const char *version, char *text, size_t len)
{
    const char *blank = strchr(version, ' ');

    version = blank ? blank + 1 : version;
    snprintf(text, len, "%.*s%s", (int)strcspn(version, ","), version,
             strchr(version, '(') ? ")" : "");
    return text;
}

int pair_token(char token[HOSTS_TOKEN_SIZE])
{
    unsigned char bytes[(HOSTS_TOKEN_SIZE - 1) / 2];
    int err = secret_random(bytes, sizeof(bytes));

    for (size_t i = 0; !err && i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return err;
}

/* The words of one end; with ranks, of both. */
void pair_order(const struct pair *p, enum hosts_task task, const char *token, unsigned port,
                bool shown, struct words *out)
{
    const struct host *host = task == TASK_LISTEN ? p->to : p->from;
    struct words a = {0};
    char program[4096];

    if (task == TASK_LISTEN)
        words_add_all(&a, (const char *[]){"--listen", p->to->address, NULL});
    else if (task == TASK_LEAD)
        words_add(&a, p->to->address);
    if (task != TASK_RANKS)
        words_addf(&a, "--port=%u", port);
    if (task != TASK_RANKS)
        words_add(&a, "--secret-file=-");
    if (task == TASK_LISTEN)
        words_add(&a, "--runs=1");
    else
        words_add_all(&a, p->arguments);
    if (task == TASK_RANKS && p->from->here && !p->to->here)
        host = p->to; /* one path for both: the one that is not here says where it is */
    pair_program(p->run, host, p->program, program, sizeof(program));
    p->run->launcher->command(&(struct hosts_order){.run = p->run,
                                                    .task = task,
                                                    .host = task == TASK_LISTEN ? p->to : p->from,
                                                    .other = p->to,
                                                    .token = token,
                                                    .program = program,
                                                    .arguments = (const char *const *)a.all,
                                                    .shown = shown},
                              out);
    out->err = out->err ? out->err : a.err;
    words_release(&a);
}

unsigned pair_port(const struct pair *p, unsigned attempt)
{
    return (unsigned)p->run->port + (p->number + attempt * 7) % HOSTS_PORTS;
}

char *pair_commands(const struct pair *p)
{
    static const enum hosts_task two[] = {TASK_LISTEN, TASK_LEAD}, one[] = {TASK_RANKS};
    bool ranks = p->run->launcher->ranks;
    char *all = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&all, &size);

    for (unsigned i = 0; text && i < (ranks ? 1 : 2); i++) {
        struct words w = {0};
        pair_order(p, ranks ? one[i] : two[i], "", pair_port(p, 0), true, &w);
        char *line = w.err ? NULL : words_quoted(&w, 0);
        fprintf(text, "%s%s", i ? " ; " : "", line ? line : "");
        free(line);
        words_release(&w);
    }
    if (text)
        fclose(text);
    return all;
}

/* ssh says why in its last line, mpirun and srun in their first. */
static void say_unreached(const struct hosts_run *run, const struct host *host,
                          const struct child_result *r, char *error, size_t len)
{
    char by[LAUNCHER_BY_SIZE], said[400] = "", *save = NULL;
    char *text = strdup(r->err.text);

    launcher_by(run, by);
    for (char *line = text ? strtok_r(text, "\r\n", &save) : NULL; line;
         line = strtok_r(NULL, "\r\n", &save))
        if (!run->launcher->ranks || !*said)
            snprintf(said, sizeof(said), "%s", line);
    free(text);
    if (r->timed_out)
        snprintf(error, len, "'%s' does not answer: nothing came from it %s in %.3g s", host->name,
                 by, (double)run->wait_ns * 1e-9);
    else
        snprintf(error, len, "cannot reach '%s' %s: %s (status %d)", host->name, by,
                 *said ? stream_printable(said) : "it ended without a word", r->status);
}

static int read_answer(const struct hosts_run *run, const struct host *host, const char *path,
                       const char *token, const struct child_result *r, char version[256],
                       char *error, size_t len)
{
    struct stream_hello hello = stream_hello(r->out.text, "begin", token);
    struct stream_hello missing = stream_hello(r->out.text, "missing", token);

    snprintf(version, 256, "%s", hello.version);
    if (hello.there)
        return 0;
    if (!missing.there) {
        say_unreached(run, host, r, error, len);
        return -EHOSTUNREACH;
    }
    snprintf(error, len, "'%.200s' does not start on '%s': %s", path, host->name, missing.version);
    return -ENOENT;
}

/* The child that is asked is started through a shell: it looks in PATH. */
int pair_ask(const struct hosts_run *run, const struct host *host, const char *program,
             char version[256], char *error, size_t len)
{
    struct words w = {0};
    struct child_result r = {0};
    char token[HOSTS_TOKEN_SIZE], path[4096];
    int err = pair_token(token);

    version[0] = 0;
    pair_program(run, host, program, path, sizeof(path));
    words_add_all(&w, (const char *[]){"/bin/sh", "-c", "exec \"$@\"", "plumb", NULL});
    run->launcher->command(
        &(struct hosts_order){
            .run = run, .task = TASK_HELLO, .host = host, .token = token, .program = path},
        &w);
    err = err ? err : w.err;
    if (!err)
        err = child_run(
            &(struct child_spec){.argv = (const char *const *)w.all, .timeout_ns = run->wait_ns},
            &r);
    if (err)
        snprintf(error, len, "cannot ask '%s': %s", host->name, strerror(-err));
    else
        err = read_answer(run, host, path, token, &r, version, error, len);
    child_result_release(&r);
    words_release(&w);
    return err;
}
