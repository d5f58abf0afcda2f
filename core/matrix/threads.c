/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of libraries: see library.h. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <hwloc/linux.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/hw/topo.h"
#include "core/matrix/library.h"

int threads_unbind_self(const struct topo *topo)
{
    unsigned n = topo_cpus(topo), *cpus = xcalloc(n, sizeof(*cpus));
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    int err = all ? topo_spread(topo, -1, n, cpus) : -ENOMEM;

    for (unsigned i = 0; !err && i < n; i++)
        hwloc_bitmap_set(all, cpus[i]);
    if (!err && hwloc_set_cpubind(topo_hwloc(topo), all, HWLOC_CPUBIND_THREAD))
        err = -errno;
    hwloc_bitmap_free(all);
    free(cpus);
    return err;
}

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

int tasks_read(struct task_list *out)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;

    *out = (struct task_list){0};
    if (!dir)
        return -errno;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            *ARRAY_ADD(out->ids, out->n) = (pid_t)atoi(entry->d_name);
    closedir(dir);
    if (out->n)
        qsort(out->ids, out->n, sizeof(*out->ids), by_number);
    return 0;
}

void tasks_add_new(struct task_list *mine, const struct task_list *before,
                   const struct task_list *after)
{
    for (size_t i = 0; i < after->n; i++)
        if (!bsearch(&after->ids[i], before->ids, before->n, sizeof(pid_t), by_number))
            *ARRAY_ADD(mine->ids, mine->n) = after->ids[i];
}

int task_bind(const struct topo *topo, pid_t task, unsigned cpu)
{
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    int err = one ? hwloc_bitmap_only(one, cpu) : -1;

    if (err)
        err = -ENOMEM;
    else if (hwloc_linux_set_tid_cpubind(topo_hwloc(topo), task, one))
        err = -errno;
    hwloc_bitmap_free(one);
    return err;
}

/* The entry point of OpenMP regions that gcc's run-time has and clang's keeps for its sake. */
typedef void parallel_fn(void (*fn)(void *), void *arg, unsigned threads, unsigned flags);

struct omp_job {
    const struct gemm_threads *threads;
    int (*number)(void);
    _Atomic unsigned seen;
    _Atomic int err;
};

static void omp_member(void *arg)
{
    struct omp_job *job = arg;
    unsigned number = (unsigned)job->number();
    const struct gemm_threads *threads = job->threads;
    int err = number < threads->n ? 0 : -ERANGE;

    if (!err && threads->topo)
        err = topo_bind_self(threads->topo, threads->cpus[number]);

    if (err)
        atomic_store(&job->err, err);
    atomic_fetch_add(&job->seen, 1);
}

int omp_bind(void *handle, const struct gemm_threads *threads, char *why)
{
    struct {
        parallel_fn *parallel;
        int (*number)(void);
        void (*set_threads)(int), (*set_dynamic)(int);
    } omp;
    static const struct gemm_symbol symbols[] = {
        {"GOMP_parallel", offsetof(__typeof__(omp), parallel), 0},
        {"omp_get_thread_num", offsetof(__typeof__(omp), number), 0},
        {"omp_set_num_threads", offsetof(__typeof__(omp), set_threads), 0},
        {"omp_set_dynamic", offsetof(__typeof__(omp), set_dynamic), 0},
        {NULL, 0, 0},
    };
    struct omp_job job = {.threads = threads};

    if (gemm_dlsym(handle, symbols, &omp, why))
        return -EOPNOTSUPP;
    omp.set_dynamic(0); /* else it may use fewer threads when the machine is busy */
    omp.set_threads((int)threads->n);
    job.number = omp.number;
    omp.parallel(omp_member, &job, threads->n, 0);
    unsigned seen = atomic_load(&job.seen);
    int err = atomic_load(&job.err);
    if (seen != threads->n)
        return gemm_why(why, -EOPNOTSUPP, "OpenMP gives %u of %u threads: is OMP_THREAD_LIMIT set?",
                        seen, threads->n);
    return err ? gemm_why(why, err, "cannot bind an OpenMP thread: %s", strerror(-err)) : 0;
}

void omp_release(void *handle)
{
    enum { OMP_PAUSE_HARD = 2 };
    int (*pause_all)(int kind);
    void *at = dlsym(handle, "omp_pause_resource_all");

    if (!at)
        return;
    memcpy(&pause_all, &at, sizeof(pause_all));
    pause_all(OMP_PAUSE_HARD);
}

/* utime, stime (fields 14 and 15, ticks) and the CPU it was last on (39) of one task. */
static int read_task_time(pid_t task, struct task_time *out)
{
    char path[64], line[1024];
    unsigned long long user, kernel;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)task);
    FILE *f = fopen(path, "re");
    if (!f)
        return -errno;
    size_t n = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[n] = 0;
    const char *after_name = strrchr(line, ')');
    if (!after_name ||
        sscanf(after_name,
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
               "%*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u",
               &user, &kernel, &out->cpu) != 3)
        return -EIO;
    out->task = task;
    out->used_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
    return 0;
}

int task_times_read(struct task_times *out)
{
    struct task_list tasks;
    int err = tasks_read(&tasks);

    *out = (struct task_times){.list = xcalloc(tasks.n, sizeof(*out->list))};
    for (size_t i = 0; i < tasks.n; i++)
        if (!read_task_time(tasks.ids[i], &out->list[out->n]))
            out->n++; /* else it has ended since */
    free(tasks.ids);
    return err;
}

double task_times_since(const struct task_times *begin, const struct task_times *now, unsigned cpu)
{
    double used_s = 0;

    for (size_t i = 0; i < now->n; i++) {
        const struct task_time *t = &now->list[i];
        if (t->cpu != cpu)
            continue;
        used_s += t->used_s;
        for (size_t b = 0; b < begin->n; b++)
            if (begin->list[b].task == t->task)
                used_s -= begin->list[b].used_s;
    }
    return used_s;
}
