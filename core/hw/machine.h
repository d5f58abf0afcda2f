/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which machine this is: do two ends run on one, so that its CPUs must not be counted twice?
 *
 * What the CPUs did: the whole machine's from /proc/stat, a thread's own from its CPU clock.
 *
 *   busy = user + nice + system + irq + softirq      over all CPUs; user and nice hold what
 *     guests of this machine used
 *
 * idle, iowait and steal are not busy: steal is time that the machine wanted and did not get, told
 * apart. The kernel counts in ticks of USER_HZ (10 ms on most), one count a CPU: a difference is
 * good to a tick for each CPU, cpu_tick_ns() x CPUs, so measure for seconds: cpu_ticks_tell(). On
 * kernels without precise accounting of interrupts softirq is a sample of the timer's ticks. In
 * some containers /proc/stat is the container's own, not the machine's.
 */
#ifndef PLUMB_CORE_HW_MACHINE_H
#define PLUMB_CORE_HW_MACHINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_ID_BYTES 64

/* The running kernel's boot_id: new with each boot, the same in all namespaces and containers of a
 * machine (what belongs to a namespace or a container, host name, addresses, machine-id, is left
 * out on purpose). "" where /proc does not tell. Guests that were restored from one snapshot share
 * it: those are taken for one machine. */
void machine_id(char text[MACHINE_ID_BYTES]);

/* Both known, and the same. */
bool machine_same(const char *a, const char *b);

struct cpu_reading {
    uint64_t busy_ns, softirq_ns; /* softirq is a part of busy */
    uint64_t steal_ns;
    uint64_t at_ns; /* of the clock, clock.h */
};

/* 0; -ENODATA or -errno where /proc/stat does not tell: then only at_ns is set, the rest is 0. */
int cpu_read(struct cpu_reading *r);
int cpu_read_at(struct cpu_reading *r, const char *root); /* of a recorded /proc, for tests */

/* In a loop that waits: leaves the core to its other thread for a moment. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

uint64_t cpu_tick_ns(void);
/* Has so long a time enough ticks for what is counted in them: twenty? */
bool cpu_ticks_tell(double seconds);

/* CPUs' worth of work in between: busy seconds per second. NaN where no time went by. */
double cpu_busy(const struct cpu_reading *before, const struct cpu_reading *after);
double cpu_softirq(const struct cpu_reading *before, const struct cpu_reading *after);
/* Both of so long from now on, in which this thread sleeps; NAN: not known. */
void cpu_watch(uint64_t ns, double *busy, double *softirq);

/* CPU time of a thread of this process that has not been joined, user and system, exact; 0 where it
 * cannot be known. */
uint64_t cpu_of_thread(pthread_t thread);

#endif
