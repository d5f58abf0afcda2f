/* SPDX-License-Identifier: Apache-2.0 */
/* What else runs here, and what this process may take: "load", which changes from call to call, and
 * "process". */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/probe/facts.h"

enum { VMSTAT = 65536 };

/* "1132.96 1249.73": since boot. That of a container of LXC may be of the container. */
static void set_uptime(struct probe *p, json_t *load)
{
    static const char path[] = "proc/uptime";
    const char *container = fact_string(p->machine, "virtualization.container");
    char line[SYS_LINE];
    double seconds;
    int rc = sys_line(p->root, line, sizeof(line), "%s", path);

    if (container && !strcmp(container, "lxc"))
        fact_set_unknown(load, "uptime_seconds",
                         "in a container of LXC, it may be the container's");
    else if (!rc && sscanf(line, "%lf", &seconds) == 1 && seconds > 0 && seconds < 1e10)
        fact_set_real(load, "uptime_seconds", seconds);
    else
        fact_set_unknown(load, "uptime_seconds", "/%s: %s", path,
                         rc ? fact_errno(rc) : "no number of seconds");
}

/* Whether two records are of one boot: the kernel's number of it, hashed (FNV-1a of 64 bits). A
 * recording has the hash alone. */
static void set_boot(struct probe *p, json_t *load)
{
    const char *path = p->root ? "plumb/boot" : "proc/sys/kernel/random/boot_id";
    char line[SYS_LINE], text[20];
    uint64_t hash = 14695981039346656037u;
    int rc = sys_line(p->root, line, sizeof(line), "%s", path);

    for (const char *c = line; !rc && *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
    fact_set(load, "boot", rc ? NULL : fact_text(p->root ? line : text), "/%s: %s", path,
             fact_errno(rc));
}

/* "0.29 0.33 1.68 5/87 23730". The averages count tasks that wait for a disk or a server as well; 5
 * have a CPU or wait for one, this one included. */
static void set_averages(struct probe *p, json_t *load)
{
    static const char *const keys[] = {"average_1min", "average_5min", "average_15min"};
    char line[SYS_LINE];
    double average[3];
    unsigned running, tasks;
    int rc = sys_line(p->root, line, sizeof(line), "proc/loadavg"),
        n = rc ? 0
               : sscanf(line, "%lf %lf %lf %9u/%9u", &average[0], &average[1], &average[2],
                        &running, &tasks);

    for (size_t i = 0; i < 3; i++)
        fact_set(load, keys[i],
                 n >= 3 && average[i] >= 0 && average[i] < 1e9 ? fact_real(average[i]) : NULL,
                 "/proc/loadavg: %s", rc ? fact_errno(rc) : "not three numbers");
    fact_set(load, "running_tasks", n == 5 ? json_integer(running) : NULL, "/proc/loadavg: %s",
             rc ? fact_errno(rc) : "no number of tasks that run");
}

/* "some avg10=4.62 avg60=4.37 avg300=3.31 total=35197412316": the share of the time in which some
 * task waited for the resource. */
static void set_pressure(struct probe *p, json_t *load, const char *resource)
{
    char line[SYS_LINE], key[32];
    double ten, sixty;
    int rc = sys_line(p->root, line, sizeof(line), "proc/pressure/%s", resource),
        n = rc ? 0 : sscanf(line, "some avg10=%lf avg60=%lf", &ten, &sixty);

    snprintf(key, sizeof(key), "%s_pressure", resource);
    fact_set(load, key,
             n == 2 ? json_pack("{s:o, s:o}", "percent_10s", fact_real(ten), "percent_60s",
                                fact_real(sixty))
                    : NULL,
             "/proc/pressure/%s: %s", resource, rc ? fact_errno(rc) : "not two numbers");
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in hundredths of a second
 * since boot. A CPU that is idle wants no time, so none can be stolen from it. */
void load_fill_steal(const struct probe *p, json_t *load, const char *below)
{
    unsigned long long user, nice, system, idle, wait, irq, softirq, steal;
    char line[SYS_LINE];
    int rc = sys_line(p->root, line, sizeof(line), "%s/proc/stat", *below ? below : ".");

    if (!rc && sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                      &idle, &wait, &irq, &softirq, &steal) == 8) {
        double wanted = (double)user + (double)nice + (double)system + (double)irq +
                        (double)softirq + (double)steal;

        fact_set_real(load, "wanted_cpu_seconds", wanted / 100);
        fact_set_real(load, "stolen_cpu_seconds", (double)steal / 100);
        return;
    }
    fact_set_unknown(load, "wanted_cpu_seconds|stolen_cpu_seconds", "/proc/stat: %s",
                     rc ? fact_errno(rc) : "no times of the CPUs");
}

/* The numbers of lines such as "pswpin 0" in /proc/vmstat, since boot. */
static void set_events(struct probe *p, json_t *load)
{
    static const char *const events[][2] = {{"swapped_in_pages", "pswpin "},
                                            {"swapped_out_pages", "pswpout "}};
    char *text = xrealloc(NULL, VMSTAT);
    int rc = sys_read(p->root, text, VMSTAT, NULL, "proc/vmstat");
    unsigned long long count;

    for (size_t i = 0; i < 2; i++) {
        const char *at = rc ? NULL : strstr(text, events[i][1]);
        bool known = at && sscanf(at + strlen(events[i][1]), " %llu", &count) == 1;

        fact_set(load, events[i][0], known ? json_integer((json_int_t)(count & INT64_MAX)) : NULL,
                 "/proc/vmstat: %s", rc ? fact_errno(rc) : "not told there");
    }
    free(text);
}

/* Bytes of swap in use, and of memory that programs could still have. */
static void set_memory(struct probe *p, json_t *load)
{
    char text[8192] = "";
    int rc = sys_read(p->root, text, sizeof(text), NULL, "proc/meminfo");
    long long total = rc ? -1 : meminfo_bytes(text, "SwapTotal"),
              unused = rc ? -1 : meminfo_bytes(text, "SwapFree"),
              available = rc ? -1 : meminfo_bytes(text, "MemAvailable");
    const char *why = rc ? fact_errno(rc) : "not told there";

    fact_set(load, "swap_used_bytes",
             total >= unused && unused >= 0 ? json_integer(total - unused) : NULL,
             "/proc/meminfo: %s", why);
    fact_set(load, "memory_available_bytes", available >= 0 ? json_integer(available) : NULL,
             "/proc/meminfo: %s", why);
}

/* What /dev/shm holds: asked of the kernel, or the line "BYTES FREE" of a recording. */
static void set_shared_memory(struct probe *p, json_t *process, json_t *load)
{
    struct statvfs st;
    unsigned long long bytes = 0, free_bytes = 0;
    char line[SYS_LINE];
    bool known;

    if (!p->root) {
        known = !statvfs("/dev/shm", &st);
        bytes = known ? (unsigned long long)st.f_blocks * st.f_frsize : 0;
        free_bytes = known ? (unsigned long long)st.f_bavail * st.f_frsize : 0;
    } else {
        known = !sys_line(p->root, line, sizeof(line), "plumb/shm") &&
                sscanf(line, "%llu %llu", &bytes, &free_bytes) == 2;
    }
    known = known && bytes >> 62 == 0 && free_bytes <= bytes;
    fact_set(process, "shared_memory_bytes", known ? json_integer((json_int_t)bytes) : NULL,
             "/dev/shm could not be asked");
    fact_set(load, "shared_memory_free_bytes", known ? json_integer((json_int_t)free_bytes) : NULL,
             "/dev/shm could not be asked");
}

/* CAP_IPC_LOCK: bit 14 of the effective capabilities; with it, no limit of locked memory holds. */
static void set_lock_right(struct probe *p, json_t *process)
{
    static const char path[] = "proc/self/uid_map";
    char text[8192], field[64], line[SYS_LINE];
    unsigned inside, outside, count;
    bool first, known, capable;

    if (sys_read(p->root, text, sizeof(text), NULL, "proc/self/status") ||
        !text_field(text, "CapEff", field, sizeof(field))) {
        fact_set_unknown(process, "may_lock_memory", "/proc/self/status: without CapEff");
        return;
    }
    /* In a user namespace of its own, where ids are mapped, a capability is none towards the
     * kernel. */
    int rc = sys_line(p->root, line, sizeof(line), "%s", path);
    known = !rc || probe_absent(p, "%s", path);
    first = rc || (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && !inside &&
                   !outside && count == UINT32_MAX);
    capable = strtoull(field, NULL, 16) >> 14 & 1;
    fact_set(process, "may_lock_memory", known || !capable ? json_boolean(capable && first) : NULL,
             "/proc/self/uid_map: not readable");
}

/* May this process open a device of RDMA? What a device group forbids only open() tells. */
static bool opens_verbs(void)
{
    glob_t found;
    bool opens = false;

    if (glob("/dev/infiniband/uverbs*", 0, NULL, &found))
        return false;
    for (size_t i = 0; i < found.gl_pathc && !opens; i++) {
        int fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);

        opens = fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    globfree(&found);
    return opens;
}

/* Asked of the kernel, or the line "OPENS LOADS" of a recording, each 0 or 1. */
static void set_verbs(struct probe *p, json_t *process)
{
    char line[SYS_LINE];
    int opens = 0, loads = 0;
    bool known = !p->root;

    if (known) {
        void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);

        opens = opens_verbs();
        loads = library != NULL;
        if (library)
            dlclose(library);
    } else {
        known = !sys_line(p->root, line, sizeof(line), "plumb/verbs") &&
                sscanf(line, "%1d %1d", &opens, &loads) == 2;
    }
    fact_set(process, "verbs_device_opens", known ? json_boolean(opens) : NULL,
             "it was not recorded");
    fact_set(process, "verbs_library_loads", known ? json_boolean(loads) : NULL,
             "it was not recorded");
}

/* "Max locked memory         8388608              8388608              bytes": the first. */
static void set_limits(struct probe *p, json_t *process)
{
    static const char *const limits[][2] = {{"locked_memory_bytes", "Max locked memory"},
                                            {"open_files", "Max open files"},
                                            {"stack_bytes", "Max stack size"}};
    char text[4096];
    int rc = sys_read(p->root, text, sizeof(text), NULL, "proc/self/limits");

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        const char *at = rc ? NULL : strstr(text, limits[i][1]);
        char value[32] = "";

        if (at && sscanf(at + strlen(limits[i][1]), "%31s", value) == 1 &&
            digits_number(value) >= 0)
            fact_set_number(process, limits[i][0], digits_number(value));
        else
            fact_set(process, limits[i][0], strcmp(value, "unlimited") ? NULL : fact_text(value),
                     "/proc/self/limits: %s", rc ? fact_errno(rc) : "not told there");
    }
}

void probe_load(struct probe *p)
{
    json_t *process = fact_object(p->machine, "process"), *load = fact_object(p->machine, "load");

    set_limits(p, process);
    set_lock_right(p, process);
    set_verbs(p, process);
    set_boot(p, load);
    set_uptime(p, load);
    set_averages(p, load);
    set_pressure(p, load, "cpu");
    set_pressure(p, load, "memory");
    set_pressure(p, load, "io");
    load_fill_steal(p, load, "");
    set_memory(p, load);
    set_events(p, load);
    set_shared_memory(p, process, load);
}
