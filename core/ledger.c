/* SPDX-License-Identifier: Apache-2.0 */
/* The noise ledger: see ledger.h. */
#include "core/ledger.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"

/* A row is called disturbed above these. */
#define STEAL_PERCENT     1.0
#define INVOLUNTARY_PER_S 100.0
#define CLOCK_CHANGE      0.05
#define MAJOR_FAULTS      0.0
#define QUOTA_SHARE       0.001

#define CHAIN_ADDS  20000
#define CHAIN_TRIES 5

/* CHAIN_ADDS additions, each waiting for the one before: one cycle each on every x86-64 and arm64
 * core in use. The addend is a register, for some cores fold additions of constants. */
static double chain_ns(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    uint64_t x = 1, y = 3, begin = clock_now_ns();

    for (int i = 0; i < CHAIN_ADDS / 20; i++) {
#if defined(__x86_64__)
#define ADD "add %1, %0\n\t"
#else
#define ADD "add %0, %0, %1\n\t"
#endif
#define ADD5 ADD ADD ADD ADD ADD
        __asm__ volatile(ADD5 ADD5 ADD5 ADD5 : "+r"(x) : "r"(y));
    }
    return (double)(clock_now_ns() - begin);
#else
    return NAN;
#endif
}

double ledger_cpu_mhz(void)
{
    double best_ns = NAN;

    for (int i = 0; i < CHAIN_TRIES; i++) {
        double ns = chain_ns();
        if (!(best_ns <= ns))
            best_ns = ns;
    }
    return CHAIN_ADDS / best_ns * 1e3;
}

static void read_stat(struct ledger_mark *mark)
{
    double t[8] = {0};
    FILE *f = fopen("/proc/stat", "re");

    mark->steal_ticks = mark->total_ticks = mark->idle_ticks = NAN;
    if (!f)
        return;
    int got = fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4],
                     &t[5], &t[6], &t[7]);
    fclose(f);
    if (got < 8)
        return;
    mark->steal_ticks = t[7];
    mark->idle_ticks = t[3] + t[4];
    mark->total_ticks = 0;
    for (int i = 0; i < 8; i++)
        mark->total_ticks += t[i];
}

static bool is_one_of(unsigned cpu, const unsigned *cpus, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (cpus[i] == cpu)
            return true;
    return false;
}

void ledger_ticks(FILE *stat, const unsigned *cpus, unsigned n, struct ledger_ticks *out)
{
    char line[512];
    unsigned cpu, found = 0;
    double t[8];

    *out = (struct ledger_ticks){0};
    while (found < n && fgets(line, sizeof(line), stat)) {
        if (sscanf(line, "cpu%u %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[0], &t[1], &t[2], &t[3],
                   &t[4], &t[5], &t[6], &t[7]) != 9 ||
            !is_one_of(cpu, cpus, n))
            continue;
        found++;
        out->idle += t[3] + t[4];
        out->steal += t[7];
        for (int i = 0; i < 8; i++)
            out->total += t[i];
    }
    if (!n || found < n)
        *out = (struct ledger_ticks){NAN, NAN, NAN};
}

static double read_number(const char *path)
{
    double value = NAN;
    FILE *f = fopen(path, "re");

    if (!f)
        return NAN;
    if (fscanf(f, "%lf", &value) != 1)
        value = NAN;
    fclose(f);
    return value;
}

double ledger_throttles(const char *folder, long cpus)
{
    static const char *const files[] = {"core_throttle_count", "package_throttle_count"};
    double sum = NAN;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        for (long cpu = 0; cpu < cpus; cpu++) {
            char path[512];
            snprintf(path, sizeof(path), "%s/cpu%ld/thermal_throttle/%s", folder, cpu, files[i]);
            double count = read_number(path);
            if (isnan(count) && cpu == 0)
                break; /* this machine does not tell: do not ask each CPU */
            if (!isnan(count))
                sum = isnan(sum) ? count : sum + count;
        }
    return sum;
}

static double read_keyed(const char *path, const char *format)
{
    char line[256];
    double value = NAN;
    FILE *f = fopen(path, "re");

    while (f && isnan(value) && fgets(line, sizeof(line), f))
        if (sscanf(line, format, &value) != 1)
            value = NAN;
    if (f)
        fclose(f);
    return value;
}

/* Is this one of the controllers, which have commas between them? */
static bool is_listed(const char *controllers, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = controllers; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (len == n && !strncmp(at, name, n))
            return true;
        at += len;
    }
    return false;
}

/* Of version 2: cuts the group to the innermost one with a quota, which may be above. Its pauses are
 * no part of what the groups below count. Where none has a quota, it stays as it is. */
static void cut_to_quota(const char *root, char *where)
{
    char group[512], path[1024], *slash = group;

    snprintf(group, sizeof(group), "%s", where);
    while (slash) {
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/cpu.max", root, group);
        if (!isnan(read_number(path))) { /* not "max 100000" */
            where[strlen(group)] = 0;
            return;
        }
        slash = strrchr(group, '/');
        if (slash)
            *slash = 0;
    }
}

/* "0::/path" is version 2, with all in cpu.stat; in version 1 the controllers cpu (throttled_time,
 * ns) and cpuacct (cpuacct.usage, ns) may be one or two. */
void ledger_quota(const char *root, struct ledger_mark *mark)
{
    char line[512], path[1024];
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");

    mark->quota_throttled_ms = mark->quota_used_ms = NAN;
    while (f && fgets(line, sizeof(line), f)) {
        char *controllers = strchr(line, ':'),
             *where = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!where)
            continue;
        *where++ = 0;
        where[strcspn(where, "\n")] = 0;
        controllers++;
        if (!*controllers && isnan(mark->quota_throttled_ms)) {
            cut_to_quota(root, where);
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s/cpu.stat", root, where);
            mark->quota_throttled_ms = read_keyed(path, "throttled_usec %lf") * 1e-3;
            mark->quota_used_ms = read_keyed(path, "usage_usec %lf") * 1e-3;
        }
        if (is_listed(controllers, "cpu")) {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s%s/cpu.stat", root, controllers,
                     where);
            mark->quota_throttled_ms = read_keyed(path, "throttled_time %lf") * 1e-6;
        }
        if (is_listed(controllers, "cpuacct")) {
            snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s%s/cpuacct.usage", root, controllers,
                     where);
            mark->quota_used_ms = read_number(path) * 1e-6;
        }
    }
    if (f)
        fclose(f);
}

/* Adds what a child that still runs has seen so far: getrusage knows only those that were waited
 * for. */
static void add_child(struct ledger_mark *mark, long pid)
{
    char path[64];
    double minor, major;

    snprintf(path, sizeof(path), "/proc/%ld/status", pid);
    double voluntary = read_keyed(path, "voluntary_ctxt_switches: %lf");
    double involuntary = read_keyed(path, "nonvoluntary_ctxt_switches: %lf");
    mark->ctx_voluntary += isnan(voluntary) ? 0 : voluntary;
    mark->ctx_involuntary += isnan(involuntary) ? 0 : involuntary;
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (f &&
        fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %lf %*u %lf", &minor, &major) == 2) {
        mark->faults_minor += minor;
        mark->faults_major += major;
    }
    if (f)
        fclose(f);
}

/* ---- energy ---- */

#define PACKAGE_WATTS_MOST 1000.0

/* Zones of packages are intel-rapl:N on AMD, too, their parts intel-rapl:N:M. What a package's
 * parts draw is in the package's own, but for its memory's. */
static int is_zone(const struct dirent *d)
{
    return !strncmp(d->d_name, "intel-rapl:", 11);
}

static void add_zone(const char *folder, const char *zone, struct ledger_energy *e)
{
    char path[512], name[64] = "";

    snprintf(path, sizeof(path), "%s/%s/name", folder, zone);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%63s", name) != 1)
        name[0] = 0;
    if (f)
        fclose(f);
    if (e->n == LEDGER_ENERGIES || (strncmp(name, "package-", 8) != 0 && strcmp(name, "dram") != 0))
        return;
    snprintf(path, sizeof(path), "%s/%s/energy_uj", folder, zone);
    e->joules[e->n] = read_number(path) * 1e-6;
    snprintf(path, sizeof(path), "%s/%s/max_energy_range_uj", folder, zone);
    e->range[e->n++] = read_number(path) * 1e-6;
}

void ledger_energy(const char *folder, struct ledger_energy *out)
{
    struct dirent **zones = NULL;
    int n = scandir(folder, &zones, is_zone, alphasort);

    *out = (struct ledger_energy){0};
    for (int i = 0; i < n; i++) {
        add_zone(folder, zones[i]->d_name, out);
        free(zones[i]);
    }
    free(zones);
    for (unsigned i = 0; i < out->n; i++)
        if (isnan(out->joules[i])) {
            out->n = 0; /* a part of the energy is none */
            return;
        }
}

double ledger_watts(const struct ledger_energy *before, const struct ledger_energy *after,
                    double elapsed_s)
{
    double joules = 0;

    if (!before->n || before->n != after->n || !(elapsed_s > 0))
        return NAN;
    for (unsigned i = 0; i < before->n; i++) {
        double grown = after->joules[i] - before->joules[i];

        if (!(before->range[i] > PACKAGE_WATTS_MOST * elapsed_s))
            return NAN;
        joules += grown < 0 ? grown + before->range[i] : grown;
    }
    return joules / elapsed_s;
}

void ledger_mark(struct ledger_mark *mark)
{
    struct rusage self = {0}, children = {0};

    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    mark->ctx_involuntary = (double)(self.ru_nivcsw + children.ru_nivcsw);
    mark->ctx_voluntary = (double)(self.ru_nvcsw + children.ru_nvcsw);
    mark->faults_major = (double)(self.ru_majflt + children.ru_majflt);
    mark->faults_minor = (double)(self.ru_minflt + children.ru_minflt);
    char path[64];
    long pid;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%ld", &pid) == 1)
        add_child(mark, pid);
    if (f)
        fclose(f);
    read_stat(mark);
    mark->throttle_events =
        ledger_throttles("/sys/devices/system/cpu", sysconf(_SC_NPROCESSORS_CONF));
    ledger_quota("", mark);
    mark->cpu_mhz = ledger_cpu_mhz();
    ledger_energy("/sys/class/powercap", &mark->energy);
    mark->at_ns = clock_now_ns();
}

void ledger_none(struct ledger *out)
{
    *out = (struct ledger){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

static double steal_percent(const struct ledger_mark *before, const struct ledger_mark *after,
                            double elapsed_s)
{
    double ticks = after->total_ticks - before->total_ticks;
    double wanted = ticks - (after->idle_ticks - before->idle_ticks);
    double stolen = after->steal_ticks - before->steal_ticks;

    if (!(ticks > 0))
        return NAN;
    double percent = 100 * stolen / fmax(wanted, elapsed_s * (double)sysconf(_SC_CLK_TCK));
    return stolen > 1 ? percent : fmin(percent, STEAL_PERCENT);
}

void ledger_between(const struct ledger_mark *before, const struct ledger_mark *after,
                    struct ledger *out)
{
    out->elapsed_s = (double)(after->at_ns - before->at_ns) * 1e-9;
    out->steal_percent = steal_percent(before, after, out->elapsed_s);
    out->ctx_involuntary = after->ctx_involuntary - before->ctx_involuntary;
    out->ctx_voluntary = after->ctx_voluntary - before->ctx_voluntary;
    out->faults_major = after->faults_major - before->faults_major;
    out->faults_minor = after->faults_minor - before->faults_minor;
    out->cpu_mhz_low = fmin(before->cpu_mhz, after->cpu_mhz);
    out->cpu_mhz_high = fmax(before->cpu_mhz, after->cpu_mhz);
    out->throttle_events = after->throttle_events - before->throttle_events;
    out->quota_throttled_ms = after->quota_throttled_ms - before->quota_throttled_ms;
    double wanted_ms = out->quota_throttled_ms + after->quota_used_ms - before->quota_used_ms;
    out->quota_percent = wanted_ms > 0 ? 100 * out->quota_throttled_ms / wanted_ms : NAN;
    out->cpu_watts = ledger_watts(&before->energy, &after->energy, out->elapsed_s);
}

const char *ledger_disturbance(const struct ledger *l, char *text, size_t len)
{
    FILE *out = fmemopen(text, len, "w");

    text[0] = 0;
    if (!out)
        return text;
    const char *comma = "";
    if (l->steal_percent > STEAL_PERCENT) {
        fprintf(out, "%ssteal %.1f %%", comma, l->steal_percent);
        comma = ", ";
    }
    if (l->ctx_involuntary > INVOLUNTARY_PER_S * l->elapsed_s && l->ctx_involuntary > 5) {
        fprintf(out, "%s%.0f involuntary context switches", comma, l->ctx_involuntary);
        comma = ", ";
    }
    if (l->faults_major > MAJOR_FAULTS) {
        fprintf(out, "%s%.0f major page faults", comma, l->faults_major);
        comma = ", ";
    }
    if (l->cpu_mhz_high - l->cpu_mhz_low > CLOCK_CHANGE * l->cpu_mhz_high) {
        fprintf(out, "%sclock %.0f to %.0f MHz", comma, l->cpu_mhz_low, l->cpu_mhz_high);
        comma = ", ";
    }
    if (l->throttle_events > 0) {
        fprintf(out, "%s%.0f thermal throttle events", comma, l->throttle_events);
        comma = ", ";
    }
    if (l->quota_throttled_ms > QUOTA_SHARE * 1e3 * l->elapsed_s)
        fprintf(out, "%sCPU quota held it %.0f ms", comma, l->quota_throttled_ms);
    fclose(out);
    return text;
}
