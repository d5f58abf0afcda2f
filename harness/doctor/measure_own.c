/* SPDX-License-Identifier: Apache-2.0 */
/* Causes that no option of a benchmark switches: small tests of our own. See measure.h. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/machine.h"
#include "core/hw/topo.h"
#include "core/ledger.h"
#include "core/stats.h"
#include "harness/doctor/measure.h"

#define MS 1000000ull

/* ---- Threads on CPUs ---- */

struct worker {
    pthread_t thread;
    unsigned cpu;
    bool bound, started;
    uint64_t from_ns, begin_ns, end_ns;
    double result;
    struct window *window;
    void *(*work)(void *worker);
};

/* The CPUs that this process may use; how many. */
static unsigned allowed_cpus(unsigned *cpus, unsigned most)
{
    cpu_set_t set;
    unsigned n = 0;

    if (sched_getaffinity(0, sizeof(set), &set))
        return 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && n < most; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[n++] = cpu;
    return n;
}

static void bind_to(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *start_work(void *arg)
{
    struct worker *w = arg;

    if (w->bound)
        bind_to(w->cpu);
    return w->work(w);
}

/* Runs a worker for each CPU, all with these times. *n is how many; results are theirs. 0 or
 * -errno. */
static int run_workers(const struct worker *like, struct worker **all, unsigned *n)
{
    unsigned cpus[CPU_SETSIZE];
    int err = 0;

    *n = allowed_cpus(cpus, CPU_SETSIZE);
    *all = xcalloc(*n, sizeof(**all));
    for (unsigned i = 0; !err && i < *n; i++) {
        struct worker *w = &(*all)[i];
        *w = *like;
        w->cpu = cpus[i];
        err = -pthread_create(&w->thread, NULL, start_work, w);
        w->started = !err;
    }
    for (unsigned i = 0; i < *n; i++)
        if ((*all)[i].started)
            pthread_join((*all)[i].thread, NULL);
    return err ? err : *n ? 0 : -ENODEV;
}

/* ---- Does a thread that wants to run get its CPU? ---- */

#define GAP_NS       20000ull /* a shorter gap between two readings of the clock is no lost time */
#define LEAD_NS      (200 * MS) /* until a quota that was saved up is used */
#define WINDOW_NS    (300 * MS) /* whole periods of the usual quota, 100 ms */
#define WINDOWS_MOST 10

/* What the first thread reads at the begin and at the end of the window, while it runs: so a pause
 * by the quota is over, and counted. */
struct window {
    const unsigned *cpus;
    unsigned n;
    struct ledger_mark marks[2];
    struct ledger_ticks ticks[2];
};

static void read_window(const struct worker *worker, bool end)
{
    struct window *w = worker->window;

    if (worker->cpu != w->cpus[0])
        return;
    ledger_mark(&w->marks[end]);
    FILE *f = fopen("/proc/stat", "re");

    w->ticks[end] = (struct ledger_ticks){NAN, NAN, NAN};
    if (f) {
        ledger_ticks(f, w->cpus, w->n, &w->ticks[end]);
        fclose(f);
    }
}

static void *spin(void *arg)
{
    struct worker *w = arg;
    uint64_t last_ns = w->from_ns, lost_ns = 0;
    bool begun = false;

    while (last_ns < w->end_ns) {
        uint64_t now_ns = clock_now_ns(), until_ns = now_ns < w->end_ns ? now_ns : w->end_ns;
        uint64_t since_ns = last_ns > w->begin_ns ? last_ns : w->begin_ns;
        if (now_ns - last_ns > GAP_NS && until_ns > since_ns)
            lost_ns += until_ns - since_ns;
        last_ns = now_ns;
        if (!begun && now_ns >= w->begin_ns) {
            read_window(w, false);
            begun = true;
            last_ns = clock_now_ns();
        }
    }
    read_window(w, true);
    w->result = 1 - (double)lost_ns / (double)(w->end_ns - w->begin_ns);
    return NULL;
}

/* Shares of the time of our CPUs. */
struct shares {
    double ran;    /* a spinning thread ran */
    double stolen; /* another guest had the CPU, as far as the hypervisor tells */
    double wanted; /* the same, as a share of the time that was not idle */
    double paused; /* the control group stood still for its quota; NaN: not known */
};

static void read_shares(const struct window *w, struct shares *s)
{
    double steal = w->ticks[1].steal - w->ticks[0].steal,
           total = w->ticks[1].total - w->ticks[0].total,
           idle = w->ticks[1].idle - w->ticks[0].idle;
    double ms = (double)(w->marks[1].at_ns - w->marks[0].at_ns) / 1e6 * w->n;

    s->stolen = total > 0 ? steal / total : 0;
    s->wanted = total > idle ? steal / (total - idle) : 0;
    s->paused =
        ms > 0 ? (w->marks[1].quota_throttled_ms - w->marks[0].quota_throttled_ms) / ms : NAN;
}

static int spin_once(struct shares *s)
{
    unsigned cpus[CPU_SETSIZE];
    struct window window = {.cpus = cpus, .n = allowed_cpus(cpus, CPU_SETSIZE)};
    uint64_t now_ns = clock_now_ns();
    struct worker *all, like = {.work = spin,
                                .bound = true,
                                .window = &window,
                                .from_ns = now_ns,
                                .begin_ns = now_ns + LEAD_NS,
                                .end_ns = now_ns + LEAD_NS + WINDOW_NS};
    unsigned n = 0;
    int err = run_workers(&like, &all, &n);

    s->ran = 0;
    for (unsigned i = 0; !err && i < n; i++)
        s->ran += all[i].result / n;
    if (!err)
        read_shares(&window, s);
    free(all);
    return err;
}

/* Where other programs take all the time of a window, further windows count, too. */
static int spin_share(struct shares *s)
{
    double windows = 0;
    int err;

    do {
        err = spin_once(s);
        windows++;
    } while (!err && !(s->ran + s->stolen > 0) && windows < WINDOWS_MOST);
    s->ran /= windows;
    return err;
}

/* Without the cause a thread that wants to run always runs: 1, which takes no time to know. */
static int load_side(bool with, double *value, const char **why)
{
    struct shares s = {.ran = 1};
    int err = with ? spin_share(&s) : 0;

    *value = fmin(1, s.ran + s.stolen);
    if (err || *value > 0)
        return err;
    *why = "other programs left it no CPU time for 5 s: measure again when fewer run";
    return -EAGAIN;
}

/* Pauses alone are the quota's, of the time that no other program and no other guest took. */
static int quota_side(bool with, double *value, const char **why)
{
    struct shares s = {.ran = 1};
    int err = with ? spin_share(&s) : 0;
    bool is_lost = 1 - s.ran - s.stolen > MEASURE_NEAR;

    *value = s.paused > 0 ? s.ran / (s.ran + s.paused) : 1;
    if (!err && isnan(s.paused))
        *why = "the control group does not tell how long it was paused";
    else if (!err && is_lost && !(s.paused > 0))
        *why = "its threads lost time, but its control group was not paused: other programs took "
               "it, or the quota is that of a group above (version 1)";
    return err ? err : *why ? -EOPNOTSUPP : 0;
}

static int steal_side(bool with, double *value, const char **why)
{
    struct shares s = {.ran = 1};
    int err = with ? spin_share(&s) : 0;

    (void)why;
    *value = 1 - s.wanted;
    return err;
}

/* ---- How long does a thread take to wake on a CPU that was idle? ---- */

#define LONG_IDLE_NS  (2 * MS) /* CPUs enter their deepest state well within it */
#define SHORT_IDLE_NS 20000ull /* too short for more than the first one */
#define WAKES         40

struct sleeper {
    unsigned cpu;
    int fd;
    atomic_ulong woken_ns; /* 0: it sleeps */
    atomic_bool stop;
};

static void *sleep_and_wake(void *arg)
{
    struct sleeper *s = arg;
    uint64_t count;

    bind_to(s->cpu);
    while (!atomic_load(&s->stop) && read(s->fd, &count, sizeof(count)) == sizeof(count))
        atomic_store(&s->woken_ns, clock_now_ns());
    return NULL;
}

/* The time from the call that wakes the sleeper, which slept so long, until it runs. */
static double wake_us(struct sleeper *s, uint64_t idle_ns)
{
    const uint64_t one = 1;

    for (uint64_t until_ns = clock_now_ns() + idle_ns; clock_now_ns() < until_ns;)
        cpu_pause();
    atomic_store(&s->woken_ns, 0);
    uint64_t begin_ns = clock_now_ns(), woken_ns;
    if (write(s->fd, &one, sizeof(one)) != sizeof(one))
        return NAN;
    while (!(woken_ns = atomic_load(&s->woken_ns)))
        cpu_pause();
    return (double)(woken_ns - begin_ns) / 1e3;
}

static int measure_wakes(struct sleeper *s, bool with, double *value)
{
    double us[WAKES];
    pthread_t thread;
    int err = -pthread_create(&thread, NULL, sleep_and_wake, s);

    if (err)
        return err;
    for (int i = 0; i < WAKES; i++)
        us[i] = wake_us(s, with ? LONG_IDLE_NS : SHORT_IDLE_NS);
    *value = stats_median(us, WAKES);
    const uint64_t one = 1;

    atomic_store(&s->stop, true);
    if (write(s->fd, &one, sizeof(one)) == sizeof(one))
        pthread_join(thread, NULL);
    return 0;
}

/* The caller wakes from another CPU, to which it is bound meanwhile. */
static int idle_side(bool with, double *value, const char **why)
{
    unsigned cpus[2];
    cpu_set_t before;
    struct topo *topo;
    int err = topo_open(&topo);

    if (!err) { /* of different cores: one whose other thread spins is never idle */
        err = topo_cores(topo) < 2 ? -EOPNOTSUPP : topo_spread(topo, -1, 2, cpus);
        topo_close(topo);
    }

    if (err == -EOPNOTSUPP)
        *why = "the CPUs that it may use are threads of one core";
    if (err)
        return err;
    struct sleeper s = {.cpu = cpus[1], .fd = eventfd(0, EFD_CLOEXEC)};
    if (s.fd < 0)
        return -errno;
    sched_getaffinity(0, sizeof(before), &before);
    bind_to(cpus[0]);
    err = measure_wakes(&s, with, value);
    sched_setaffinity(0, sizeof(before), &before);
    close(s.fd);
    return err;
}

/* ---- Do threads that the system places do as much as those that are bound? ---- */

#define PASS_WORDS (32 * 1024) /* 256 KiB: what a thread leaves behind when it is moved */

/* A million passes a second. One at least, however late it was. */
static void *passes(void *arg)
{
    struct worker *w = arg;
    uint64_t *words = xcalloc(PASS_WORDS, sizeof(*words)), n = 0, now_ns = 0;

    while (clock_now_ns() < w->begin_ns)
        cpu_pause();
    while (now_ns < w->end_ns) {
        for (size_t i = 0; i < PASS_WORDS; i++)
            words[i] = words[i] * 3 + n;
        n++;
        now_ns = clock_now_ns();
    }
    w->result = (double)n / (double)(now_ns - w->begin_ns) * 1e3;
    free(words);
    return NULL;
}

/* A team waits for its slowest thread: all do as much as that one. */
static int binding_side(bool with, double *value, const char **why)
{
    (void)why;
    uint64_t now_ns = clock_now_ns();
    struct worker *all, like = {.work = passes,
                                .bound = !with,
                                .begin_ns = now_ns + 5 * MS,
                                .end_ns = now_ns + 155 * MS};
    unsigned n = 0;
    int err = run_workers(&like, &all, &n);

    *value = INFINITY;
    for (unsigned i = 0; i < n; i++)
        *value = fmin(*value, all[i].result);
    free(all);
    *value *= n;
    return err;
}

#define CPU_CAUSE(id, has, what, of)                                                               \
    .check = id, .cause = has, .lost = what, .metric = of, .pipe = "Processor"

const struct measure_own measure_own[] = {
    {.cause = {CPU_CAUSE("cpu-quota", "a CPU quota", "CPU time", "share"), .machine = "quota!=none",
               .lacks = "it has no CPU quota"},
     .unit = "share",
     .side_ns = (LEAD_NS + WINDOW_NS) / 2,
     .side = quota_side},
    {.cause = {CPU_CAUSE("steal", "other guests on the same CPUs", "CPU time", "share"),
               .machine = "guest!=false", .lacks = "it is no guest"},
     .unit = "share",
     .side_ns = (LEAD_NS + WINDOW_NS) / 2,
     .side = steal_side},
    {.cause = {CPU_CAUSE("other-load", "other programs on the same CPUs", "CPU time", "share"),
               .machine = "quota=none", .lacks = "its CPU quota would be counted, too"},
     .unit = "share",
     .side_ns = (LEAD_NS + WINDOW_NS) / 2,
     .side = load_side},
    {.cause = {CPU_CAUSE("idle-states", "a CPU that was idle for 2 ms in place of 20 us",
                         "time to wake a thread", "latency"),
               .machine = "cpus!=1", .lacks = "it has one CPU"},
     .unit = "us",
     .side_ns = WAKES * LONG_IDLE_NS / 2,
     .side = idle_side},
    {.cause = {CPU_CAUSE("unbound-threads", "threads that the system places in place of bound ones",
                         "work of the slowest thread", "rate"),
               .machine = "cpus!=1", .lacks = "it has one CPU"},
     .unit = "Mop/s",
     .side_ns = 160 * MS,
     .side = binding_side},
    {.cause = {.check = NULL}},
};
