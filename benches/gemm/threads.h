/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting the threads of others where they belong. A library starts its threads itself; they are
 * bound from outside: OpenMP's by running a parallel region of our own on the same threads, plain
 * ones by their task numbers.
 */
#ifndef PLUMB_BENCHES_GEMM_THREADS_H
#define PLUMB_BENCHES_GEMM_THREADS_H

#include <stddef.h>
#include <sys/types.h>

#include "benches/gemm/library.h"

/* Lets the calling thread use every CPU of the topology again. 0 or -errno. */
int threads_unbind_self(const struct topo *topo);

/* The tasks (threads) of this process, ascending. A list belongs to the caller: free(ids). */
struct task_list {
    pid_t *ids;
    size_t n;
};
int tasks_read(struct task_list *out); /* 0, -ENOMEM or -errno of /proc */

/* Appends to `mine` what is in `after` and not in `before`. 0 or -ENOMEM. */
int tasks_add_new(struct task_list *mine, const struct task_list *before,
                  const struct task_list *after);

int task_bind(const struct topo *topo, pid_t task, unsigned cpu); /* 0 or -errno */

/* Has the OpenMP run-time behind a library's handle use threads->n threads for regions that the
 * caller starts, and binds them, the caller first. 0; -EOPNOTSUPP: no such run-time, or it gives
 * fewer threads; -errno. */
int omp_bind(void *handle, const struct gemm_threads *threads, char *why);

/* Ends the threads that the OpenMP run-time behind a handle keeps waiting, where it
 * can (OpenMP 5). */
void omp_release(void *handle);

/* The CPU time of each task of this process. A list belongs to the caller: free(list). */
struct task_time {
    pid_t task;
    unsigned cpu; /* the system's number of the one it was last on */
    double used_s;
};
struct task_times {
    struct task_time *list;
    size_t n;
};
int task_times_read(struct task_times *out); /* 0, -ENOMEM or -errno of /proc */

/* What the tasks that are now on `cpu` have used since `begin`. Steps of 10 ms. */
double task_times_since(const struct task_times *begin, const struct task_times *now, unsigned cpu);

#endif
