/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun and srun: both ends of a pair, all ranks of a group are one job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/child.h"
#include "harness/hosts/launcher.h"

#define ASK_TIMEOUT_NS 20000000000ull

static unsigned ranks_of(const struct hosts_order *order)
{
    return order->task == TASK_GROUP_RANKS ? order->n_ranks : order->task == TASK_RANKS ? 2 : 1;
}

/* mpirun takes "a:2,b:2", srun "a,a,b,b": with `arbitrary` a name for each task. */
static char *group_hosts(const struct hosts *hosts, bool colons)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < hosts->n; i++) {
        const struct host *h = &hosts->all[i];
        for (unsigned k = 0; k < (colons ? 1 : h->slots); k++)
            fprintf(out, "%s%s", i || k ? "," : "", h->name);
        if (colons)
            fprintf(out, ":%u", h->slots);
    }
    if (out)
        fclose(out);
    return text;
}

/* The hosts of an order as one word. */
static void add_hosts(const struct hosts_order *order, bool colons, struct words *w)
{
    if (order->task == TASK_RANKS) {
        words_addf(w, "%s,%s", order->host->name, order->other->name);
    } else if (order->task == TASK_GROUP_RANKS) {
        char *names = group_hosts(&order->run->hosts, colons);
        words_add(w, names ? names : "");
        free(names);
    } else {
        words_add(w, order->host->name);
    }
}

static int check_mpirun(struct hosts_run *run, char *error, size_t len)
{
    static const char *const ask[] = {"/bin/sh", "-c", "exec mpirun --version", NULL};
    struct child_result r = {0};

    if (!launcher_has_program("mpirun")) {
        snprintf(error, len,
                 "no mpirun in PATH: install Open MPI or MPICH, or take --launcher ssh");
        return -ENOENT;
    }
    int err = child_run(&(struct child_spec){.argv = ask, .timeout_ns = ASK_TIMEOUT_NS}, &r);
    if (!err && (r.status || r.timed_out)) {
        snprintf(error, len, "mpirun --version ended with status %d: %.200s", r.status,
                 r.err.text ? r.err.text : "");
        err = -ENOEXEC;
    } else if (err) {
        snprintf(error, len, "cannot start mpirun: %s", strerror(-err));
    } else {
        run->hydra = !strstr(r.out.text, "Open MPI") && !strstr(r.out.text, "OpenRTE");
    }
    child_result_release(&r);
    return err;
}

/* Open MPI refuses to be started by root, unless told; containers have no other user. */
static void mpirun_command(const struct hosts_order *order, struct words *w)
{
    bool hydra = order->run->hydra, group = order->task == TASK_GROUP_RANKS;

    if (!geteuid() && !hydra) {
        words_add(w, "env");
        words_add(w, "OMPI_ALLOW_RUN_AS_ROOT=1");
        words_add(w, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    words_add(w, "mpirun");
    words_add(w, hydra ? "-n" : "-np");
    words_addf(w, "%u", ranks_of(order));
    words_add(w, hydra ? "-hosts" : "--host");
    add_hosts(order, true, w);
    if (hydra)
        words_split(w, group ? NULL : "-ppn 1");
    else
        words_split(w, group ? "--map-by slot --bind-to none" : "--map-by node --bind-to none");
    words_split(w, order->run->arguments);
    script_command(order, w);
}

static int check_srun(struct hosts_run *run, char *error, size_t len)
{
    (void)run;
    if (launcher_has_program("srun"))
        return 0;
    snprintf(error, len,
             "no srun in PATH: this is no node of a Slurm cluster; take --launcher ssh");
    return -ENOENT;
}

/* `arbitrary` keeps the order of the list: Slurm would sort it. */
static void srun_command(const struct hosts_order *order, struct words *w)
{
    size_t nodes = order->task == TASK_GROUP_RANKS ? order->run->hosts.n : ranks_of(order);

    words_add(w, "srun");
    words_addf(w, "-N%zu", nodes);
    words_addf(w, "-n%u", ranks_of(order));
    words_add(w, "--distribution=arbitrary");
    words_add(w, "--nodelist");
    add_hosts(order, false, w);
    words_add(w, "--cpu-bind=none");
    words_split(w, order->run->arguments);
    script_command(order, w);
}

const struct launcher launcher_mpirun = {
    .name = "mpirun",
    .help = "both ends, or all ranks, as ranks of one mpirun (Open MPI or MPICH)",
    .ranks = true,
    .check = check_mpirun,
    .command = mpirun_command,
};

const struct launcher launcher_srun = {
    .name = "srun",
    .help = "both ends, or all ranks, as tasks of one srun (Slurm)",
    .ranks = true,
    .check = check_srun,
    .command = srun_command,
};
