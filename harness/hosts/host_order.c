/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a launch over hosts: see host_launch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/secret.h"
#include "harness/hosts/host_launch.h"

void host_program_path(const struct hosts_run *run, const struct host *host, const char *program,
                       char *path, size_t len)
{
    const char *slash = strrchr(program, '/');

    if (run->remote_dir && !host->here)
        snprintf(path, len, "%s/%s", run->remote_dir, slash ? slash + 1 : program);
    else
        snprintf(path, len, "%s", program);
}

const char *host_build(const char *version, char *text, size_t len)
{
    const char *blank = strchr(version, ' ');

    version = blank ? blank + 1 : version;
    snprintf(text, len, "%.*s%s", (int)strcspn(version, ","), version,
             strchr(version, '(') ? ")" : "");
    return text;
}

int host_token(char token[HOSTS_TOKEN_SIZE])
{
    unsigned char bytes[(HOSTS_TOKEN_SIZE - 1) / 2];
    int err = secret_random(bytes, sizeof(bytes));

    for (size_t i = 0; !err && i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return err;
}

unsigned host_port(const struct host_launch *l, unsigned attempt)
{
    return (unsigned)l->run->port + (l->number + attempt * 7) % HOSTS_PORTS;
}

static void seat_group(const struct hosts *hosts, struct host_seat *seats, unsigned *n)
{
    unsigned rank = 1;

    seats[(*n)++] = (struct host_seat){&hosts->all[0], TASK_GROUP_LEAD, 0, 1};
    for (size_t i = 0; i < hosts->n; i++) {
        const struct host *h = &hosts->all[i];
        unsigned left = h->slots - (i == 0);
        if (left)
            seats[(*n)++] = (struct host_seat){h, TASK_GROUP_JOIN, rank, left};
        rank += left;
    }
}

struct host_seat *host_seats(const struct host_launch *l, unsigned *n)
{
    const struct hosts *hosts = &l->run->hosts;
    struct host_seat *seats = calloc(hosts->n + 2, sizeof(*seats));

    *n = 0;
    if (!seats)
        return NULL;
    if (l->run->launcher->ranks) {
        seats[(*n)++] =
            l->from ? (struct host_seat){l->from, TASK_RANKS, 0, 2}
                    : (struct host_seat){&hosts->all[0], TASK_GROUP_RANKS, 0, hosts_slots(hosts)};
    } else if (l->from) {
        seats[(*n)++] = (struct host_seat){l->to, TASK_LISTEN, 0, 1};
        seats[(*n)++] = (struct host_seat){l->from, TASK_LEAD, 0, 1};
    } else {
        seat_group(hosts, seats, n);
    }
    return seats;
}

/* The arguments of the case, but for a group's --np: here the hosts' slots say it. */
static void add_arguments(const struct host_launch *l, struct words *w)
{
    for (size_t i = 0; l->arguments[i]; i++) {
        const char *word = l->arguments[i];
        if (!l->from && !strcmp(word, "--np") && l->arguments[i + 1])
            i++;
        else if (l->from || strncmp(word, "--np=", 5) != 0)
            words_add(w, word);
    }
}

/* How the ends meet. */
static void add_meeting(const struct host_launch *l, enum hosts_task task, unsigned port,
                        struct words *w)
{
    const struct hosts *hosts = &l->run->hosts;
    const char *first = hosts->all[0].address;

    if (task == TASK_GROUP_LEAD || task == TASK_GROUP_JOIN)
        words_addf(w, "--np=%u", hosts_slots(hosts));
    if (task == TASK_LISTEN)
        words_add_all(w, (const char *[]){"--listen", l->to->address, NULL});
    else if (task == TASK_LEAD)
        words_add(w, l->to->address);
    else if (task == TASK_GROUP_LEAD)
        words_add_all(w, (const char *[]){"--rank=0", "--listen", first, NULL});
    else
        words_add_all(w, (const char *[]){"--leader", first, NULL});
    words_addf(w, "--port=%u", port);
    words_add(w, "--secret-file=-");
    if (task == TASK_LISTEN)
        words_add(w, "--runs=1");
}

/* A job has one path for all its hosts: the first that is not this machine says where the program is. */
static const struct host *host_for_path(const struct host_launch *l, const struct host_seat *seat)
{
    const struct hosts *hosts = &l->run->hosts;

    if (seat->task == TASK_RANKS)
        return l->from->here ? l->to : l->from;
    for (size_t i = 0; seat->task == TASK_GROUP_RANKS && i < hosts->n; i++)
        if (!hosts->all[i].here)
            return &hosts->all[i];
    return seat->host;
}

void host_order(const struct host_launch *l, const struct host_seat *seat, const char *token,
                unsigned port, bool shown, struct words *out)
{
    bool joins = seat->task == TASK_GROUP_JOIN;
    char program[4096];
    struct words a = {0};

    if (!task_is_job(seat->task))
        add_meeting(l, seat->task, port, &a);
    if (!joins && seat->task != TASK_LISTEN)
        add_arguments(l, &a);
    if (joins && shown && seat->n > 1)
        words_addf(&a, "--rank=%u..%u", seat->first, seat->first + seat->n - 1);
    else if (joins && shown)
        words_addf(&a, "--rank=%u", seat->first);
    host_program_path(l->run, host_for_path(l, seat), l->program, program, sizeof(program));
    l->run->launcher->command(&(struct hosts_order){.run = l->run,
                                                    .task = seat->task,
                                                    .host = seat->host,
                                                    .other = l->to,
                                                    .first_rank = seat->first,
                                                    .n_ranks = seat->n,
                                                    .token = token,
                                                    .program = program,
                                                    .arguments = (const char *const *)a.all,
                                                    .shown = shown},
                              out);
    out->err = out->err ? out->err : a.err;
    words_release(&a);
}

char *host_launch_commands(const struct host_launch *l)
{
    unsigned n = 0;
    struct host_seat *seats = host_seats(l, &n);
    char *all = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&all, &size);

    for (unsigned i = 0; text && seats && i < n; i++) {
        struct words w = {0};
        host_order(l, &seats[i], "", host_port(l, 0), true, &w);
        char *line = w.err ? NULL : words_quoted(&w, 0);
        fprintf(text, "%s%s", i ? " ; " : "", line ? line : "");
        free(line);
        words_release(&w);
    }
    if (text)
        fclose(text);
    free(seats);
    return all;
}
