/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step of many ranks in SimGrid, message by message: each rank computes its layers forward, then backward, and a ring sums
 * the gradients of a layer as soon as its backward pass has ended, one sum at a time, while compute goes on. Prints the simulated
 * seconds. scripts/check-forecast compiles and runs it.
 *
 * usage: rings PLATFORM RANKS LAYERS BYTES FORWARD BACKWARD [SLOWER]    bytes and seconds of a layer; the last rank computes SLOWER times
 *                                                                       as long
 */
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <simgrid/semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    int ranks, layers;
    double bytes, forward_s, backward_s, slower;
    sg_sem_t *done; /* backward passes of each rank */
    sg_mailbox_t *mailboxes;
} job;

static void compute(int argc, char **argv)
{
    int rank = argc > 1 ? atoi(argv[1]) : 0;
    double times = rank + 1 == job.ranks ? job.slower : 1;

    for (int i = 0; i < job.layers; i++)
        sg_actor_sleep_for(job.forward_s * times);
    for (int i = 0; i < job.layers; i++) {
        sg_actor_sleep_for(job.backward_s * times);
        sg_sem_release(job.done[rank]);
    }
}

static void sum(int argc, char **argv)
{
    int rank = argc > 1 ? atoi(argv[1]) : 0;

    for (int i = 0; i < job.layers; i++) {
        sg_sem_acquire(job.done[rank]);
        for (int round = 0; round < 2 * (job.ranks - 1); round++) {
            sg_comm_t sent = sg_mailbox_put_async(job.mailboxes[(rank + 1) % job.ranks], &job,
                                                  (long)(job.bytes / job.ranks));

            sg_mailbox_get(job.mailboxes[rank]);
            sg_comm_wait(sent);
        }
    }
}

int main(int argc, char **argv)
{
    simgrid_init(&argc, argv);
    if (argc < 7) {
        fputs("usage: rings PLATFORM RANKS LAYERS BYTES FORWARD BACKWARD [SLOWER]\n", stderr);
        return 2;
    }
    simgrid_load_platform(argv[1]);
    job.ranks = atoi(argv[2]);
    job.layers = atoi(argv[3]);
    job.bytes = atof(argv[4]);
    job.forward_s = atof(argv[5]);
    job.backward_s = atof(argv[6]);
    job.slower = argc > 7 ? atof(argv[7]) : 1;
    job.done = calloc((size_t)job.ranks, sizeof(*job.done));
    job.mailboxes = calloc((size_t)job.ranks, sizeof(*job.mailboxes));
    if ((int)sg_host_count() < job.ranks || !job.done || !job.mailboxes) {
        fputs("rings: too few hosts, or out of memory\n", stderr);
        return 2;
    }
    sg_host_t *hosts = sg_host_list();
    for (int i = 0; i < job.ranks; i++) {
        char number[16];
        char *words[] = {"rank", number, NULL};

        snprintf(number, sizeof(number), "%d", i);
        job.mailboxes[i] = sg_mailbox_by_name(number);
        job.done[i] = sg_sem_init(0);
        sg_actor_create("compute", hosts[i], compute, 2, words);
        sg_actor_create("sum", hosts[i], sum, 2, words);
    }
    simgrid_run();
    printf("%.12g\n", simgrid_get_clock());
    return 0;
}
