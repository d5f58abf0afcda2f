/* SPDX-License-Identifier: Apache-2.0 */
/* ssh, or another program that is called as `PROGRAM HOST COMMAND`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts/launcher.h"

/* No question that nobody would answer; a host that is gone is noticed, at the start and, within 10 s, later. */
static const char *const ssh_options[] = {
    "-o", "BatchMode=yes",         "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=3",
    "-o", "ServerAliveCountMax=3", NULL};

static const char *program_of(const struct hosts_run *run)
{
    return run->rsh && *run->rsh ? run->rsh : "ssh";
}

static bool is_ssh(const char *program)
{
    const char *slash = strrchr(program, '/');

    return !strcmp(slash ? slash + 1 : program, "ssh");
}

const char *launcher_hint(const struct hosts_run *run, const char *host,
                          char text[LAUNCHER_HINT_SIZE])
{
    struct words w = {0};

    if (!run->launcher->ranks)
        words_split(&w, program_of(run));
    text[0] = 0;
    if (w.n && is_ssh(w.all[0]))
        snprintf(text, LAUNCHER_HINT_SIZE, "; see '%s -o BatchMode=yes %s true'", program_of(run),
                 host);
    words_release(&w);
    return text;
}

static int check(struct hosts_run *run, char *error, size_t len)
{
    struct words w = {0};
    int err = 0;

    words_split(&w, program_of(run));
    if (w.err || !w.n || !launcher_has_program(w.all[0])) {
        snprintf(error, len, "the program '%s', which is to reach the hosts, is not here",
                 program_of(run));
        err = -ENOENT;
    }
    words_release(&w);
    return err;
}

/* This machine needs no connection: the same script, started at once. */
static void command(const struct hosts_order *order, struct words *w)
{
    struct words far = {0};
    char *text;

    if (order->host->here) {
        script_command(order, w);
        return;
    }
    words_split(w, program_of(order->run));
    if (w->n && is_ssh(w->all[0]))
        words_add_all(w, ssh_options);
    words_add(w, order->host->name);
    if (order->shown) {
        script_command(order, w);
        return;
    }
    words_add(&far, "exec");
    script_command(order, &far);
    text = far.err ? NULL : words_quoted(&far, 0);
    if (text)
        words_add(w, text);
    else
        w->err = -ENOMEM;
    free(text);
    words_release(&far);
}

const struct launcher launcher_ssh = {
    .name = "ssh",
    .help = "a listener on one host and a leader on the other, by ssh or --rsh",
    .check = check,
    .command = command,
};
