/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a group: see group.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts/group.h"
#include "harness/hosts/pair_order.h"

char *group_names(const struct hosts *hosts)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < hosts->n; i++)
        fprintf(out, "%s%s", i ? ";" : "", hosts->all[i].name);
    if (out)
        fclose(out);
    return text;
}

struct group_seat *group_seats(const struct hosts_run *run, unsigned *n)
{
    const struct hosts *hosts = &run->hosts;
    struct group_seat *seats = calloc(hosts->n + 1, sizeof(*seats));
    unsigned rank = 1;

    *n = 0;
    if (!seats)
        return NULL;
    if (run->launcher->ranks) {
        seats[(*n)++] = (struct group_seat){&hosts->all[0], 0, hosts_slots(hosts)};
        return seats;
    }
    seats[(*n)++] = (struct group_seat){&hosts->all[0], 0, 1};
    for (size_t i = 0; i < hosts->n; i++) {
        const struct host *h = &hosts->all[i];
        unsigned left = h->slots - (i == 0);
        if (left)
            seats[(*n)++] = (struct group_seat){h, rank, left};
        rank += left;
    }
    return seats;
}

unsigned group_port(const struct group *g, unsigned attempt)
{
    return (unsigned)g->run->port + (g->number + attempt * 7) % HOSTS_PORTS;
}

/* The arguments of the case, but for --np: here the hosts' slots say it. */
static void add_arguments(const struct group *g, struct words *w)
{
    for (size_t i = 0; g->arguments[i]; i++) {
        const char *word = g->arguments[i];
        if (!strcmp(word, "--np") && g->arguments[i + 1])
            i++;
        else if (strncmp(word, "--np=", 5) != 0)
            words_add(w, word);
    }
}

static void add_meeting(const struct group *g, const struct group_seat *seat, unsigned port,
                        struct words *w)
{
    const struct hosts *hosts = &g->run->hosts;

    words_addf(w, "--np=%u", hosts_slots(hosts));
    if (seat->first == 0)
        words_add_all(w, (const char *[]){"--rank=0", "--listen", hosts->all[0].address, NULL});
    else
        words_add_all(w, (const char *[]){"--leader", hosts->all[0].address, NULL});
    words_addf(w, "--port=%u", port);
    words_add(w, "--secret-file=-");
}

/* The first host that is not this machine says where the program is: one path for all. */
static const struct host *host_for_path(const struct group *g, const struct group_seat *seat)
{
    const struct hosts *hosts = &g->run->hosts;

    for (size_t i = 0; g->run->launcher->ranks && i < hosts->n; i++)
        if (!hosts->all[i].here)
            return &hosts->all[i];
    return seat->host;
}

static enum hosts_task task_of(const struct group *g, const struct group_seat *seat)
{
    if (g->run->launcher->ranks)
        return TASK_GROUP_RANKS;
    return seat->first ? TASK_GROUP_JOIN : TASK_GROUP_LEAD;
}

void group_order(const struct group *g, const struct group_seat *seat, const char *token,
                 unsigned port, bool shown, struct words *out)
{
    enum hosts_task task = task_of(g, seat);
    char program[4096];
    struct words a = {0};

    if (task != TASK_GROUP_RANKS)
        add_meeting(g, seat, port, &a);
    if (task != TASK_GROUP_JOIN)
        add_arguments(g, &a);
    else if (shown && seat->n > 1)
        words_addf(&a, "--rank=%u..%u", seat->first, seat->first + seat->n - 1);
    else if (shown)
        words_addf(&a, "--rank=%u", seat->first);
    pair_program(g->run, host_for_path(g, seat), g->program, program, sizeof(program));
    g->run->launcher->command(&(struct hosts_order){.run = g->run,
                                                    .task = task,
                                                    .host = seat->host,
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

char *group_commands(const struct group *g)
{
    unsigned n = 0;
    struct group_seat *seats = group_seats(g->run, &n);
    char *all = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&all, &size);

    for (unsigned i = 0; text && seats && i < n; i++) {
        struct words w = {0};
        group_order(g, &seats[i], "", group_port(g, 0), true, &w);
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
