/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a pair: see pair.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/secret.h"
#include "harness/hosts/pair.h"
#include "harness/hosts/pair_order.h"

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
