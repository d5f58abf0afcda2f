/* SPDX-License-Identifier: Apache-2.0 */
/* This machine and its CPUs: see machine.h. */
#include "core/hw/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hw/sys.h"

/* ---- What the CPUs did ---- */

/* Columns of the line "cpu"; guest and guest_nice follow, and are in user and nice already. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

uint64_t cpu_tick_ns(void)
{
    long hz = sysconf(_SC_CLK_TCK);

    return 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
}

bool cpu_ticks_tell(double seconds)
{
    return seconds * 1e9 >= 20 * (double)cpu_tick_ns();
}

int cpu_read_at(struct cpu_reading *r, const char *root)
{
    uint64_t t[COLUMNS] = {0}, tick_ns = cpu_tick_ns();
    char line[SYS_LINE];
    int rc = sys_line(root, line, sizeof(line), "proc/stat");

    *r = (struct cpu_reading){.at_ns = clock_now_ns()};
    if (rc)
        return rc;
    if (sscanf(line,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
               &t[STEAL]) < COLUMNS)
        return -ENODATA;
    r->busy_ns = (t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ]) * tick_ns;
    r->softirq_ns = t[SOFTIRQ] * tick_ns;
    r->steal_ns = t[STEAL] * tick_ns;
    return 0;
}

int cpu_read(struct cpu_reading *r)
{
    return cpu_read_at(r, NULL);
}

/* Counts of the kernel may go back a little where a CPU is taken off: not below nothing. */
static double per_second(uint64_t before, uint64_t after, uint64_t ns)
{
    if (!ns)
        return NAN;
    return after > before ? (double)(after - before) / (double)ns : 0;
}

double cpu_busy(const struct cpu_reading *before, const struct cpu_reading *after)
{
    return per_second(before->busy_ns, after->busy_ns, after->at_ns - before->at_ns);
}

double cpu_softirq(const struct cpu_reading *before, const struct cpu_reading *after)
{
    return per_second(before->softirq_ns, after->softirq_ns, after->at_ns - before->at_ns);
}

void cpu_watch(uint64_t ns, double *busy, double *softirq)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct cpu_reading before, after;
    bool known = !cpu_read(&before);

    while (nanosleep(&t, &t) && errno == EINTR) {
    }
    known = known && !cpu_read(&after);
    *busy = known ? cpu_busy(&before, &after) : NAN;
    *softirq = known ? cpu_softirq(&before, &after) : NAN;
}

uint64_t cpu_of_thread(pthread_t thread)
{
    struct timespec t;
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Which machine this is ---- */

void machine_id(char text[MACHINE_ID_BYTES])
{
    if (sys_line(NULL, text, MACHINE_ID_BYTES, "proc/sys/kernel/random/boot_id"))
        text[0] = '\0';
}

bool machine_same(const char *a, const char *b)
{
    return a[0] && !strcmp(a, b);
}
