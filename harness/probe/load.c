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
    const char *container = fact_string(json_object_get(p->machine, "virtualization"), "container");
    char line[TREE_LINE];
    double seconds;
    int rc = tree_line(&p->tree, path, line, sizeof(line));

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
    const char *path = p->tree.live ? "proc/sys/kernel/random/boot_id" : "plumb/boot";
    char line[TREE_LINE], text[20];
    uint64_t hash = 14695981039346656037u;
    int rc = tree_line(&p->tree, path, line, sizeof(line));

    for (const char *c = line; !rc && *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
    fact_set_text_or(load, "boot",
                     rc             ? NULL
                     : p->tree.live ? text
                                    : line,
                     "/%s: %s", path, fact_errno(rc));
}

/* "0.29 0.33 1.68 5/87 23730". The averages count tasks that wait for a disk or a server as well; 5
 * have a CPU or wait for one, this one included. */
static void set_averages(struct probe *p, json_t *load)
{
    static const char *const keys[] = {"average_1min", "average_5min", "average_15min"};
    char line[TREE_LINE];
    double average[3];
    unsigned running, tasks;
    int rc = tree_line(&p->tree, "proc/loadavg", line, sizeof(line)),
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
    struct path file = tree_join("proc/pressure", resource);
    char line[TREE_LINE], key[32];
    double ten, sixty;
    int rc = tree_line(&p->tree, file.s, line, sizeof(line));

    snprintf(key, sizeof(key), "%s_pressure", resource);
    if (rc || sscanf(line, "some avg10=%lf avg60=%lf", &ten, &sixty) != 2) {
        fact_set_unknown(load, key, "/%s: %s", file.s, rc ? fact_errno(rc) : "not two numbers");
        return;
    }
    json_t *pressure = fact_object(load, key);
    fact_set_real(pressure, "percent_10s", ten);
    fact_set_real(pressure, "percent_60s", sixty);
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in hundredths of a second
 * since boot. A CPU that is idle wants no time, so none can be stolen from it. */
void load_fill_steal(const struct tree *tree, json_t *load, const char *below)
{
    unsigned long long user, nice, system, idle, wait, irq, softirq, steal;
    char line[TREE_LINE];
    int rc = tree_line(tree, tree_join(*below ? below : ".", "proc/stat").s, line, sizeof(line));

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

/* The number of the line "pswpin 0" in /proc/vmstat, since boot. */
static void set_event(json_t *load, const char *key, const char *text, const char *event,
                      const char *why)
{
    const char *at = text ? strstr(text, event) : NULL;
    unsigned long long count;

    if (at && sscanf(at + strlen(event), " %llu", &count) == 1)
        fact_set_number(load, key, (long long)(count & INT64_MAX));
    else
        fact_set_unknown(load, key, "/proc/vmstat: %s", text ? "not told there" : why);
}

/* Bytes of swap in use, and of memory that programs could still have. */
static void set_memory(struct probe *p, json_t *load)
{
    char text[8192] = "";
    int rc = tree_read(&p->tree, "proc/meminfo", text, sizeof(text), NULL);
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
    char line[TREE_LINE];
    bool known;

    if (p->tree.live) {
        known = !statvfs("/dev/shm", &st);
        bytes = known ? (unsigned long long)st.f_blocks * st.f_frsize : 0;
        free_bytes = known ? (unsigned long long)st.f_bavail * st.f_frsize : 0;
    } else {
        known = !tree_line(&p->tree, "plumb/shm", line, sizeof(line)) &&
                sscanf(line, "%llu %llu", &bytes, &free_bytes) == 2;
    }
    if (known && bytes >> 62 == 0 && free_bytes <= bytes) {
        fact_set_number(process, "shared_memory_bytes", (long long)bytes);
        fact_set_number(load, "shared_memory_free_bytes", (long long)free_bytes);
        return;
    }
    fact_set_unknown(process, "shared_memory_bytes", "/dev/shm could not be asked");
    fact_set_unknown(load, "shared_memory_free_bytes", "/dev/shm could not be asked");
}

/* "Max locked memory         8388608              8388608              bytes": the first. */
static void set_limit(json_t *process, const char *key, const char *text, const char *name,
                      const char *why)
{
    const char *at = text ? strstr(text, name) : NULL;
    char value[32] = "";

    if (at && sscanf(at + strlen(name), "%31s", value) == 1 && digits_number(value) >= 0)
        fact_set_number(process, key, digits_number(value));
    else if (!strcmp(value, "unlimited"))
        fact_set_text(process, key, value);
    else
        fact_set_unknown(process, key, "/proc/self/limits: %s", text ? "not told there" : why);
}

/* In a user namespace of its own, where ids are mapped, a capability is none towards the kernel. */
static bool is_first_namespace(struct probe *p, bool *known)
{
    static const char path[] = "proc/self/uid_map";
    unsigned inside, outside, count;
    char line[TREE_LINE];
    int rc = tree_line(&p->tree, path, line, sizeof(line));

    *known = !rc || tree_absent(&p->tree, path);
    return rc || (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && !inside && !outside &&
                  count == UINT32_MAX);
}

/* CAP_IPC_LOCK: bit 14 of the effective capabilities; with it, no limit of locked memory holds. */
static void set_lock_right(struct probe *p, json_t *process)
{
    char text[8192], field[64];
    bool first, known;

    if (tree_read(&p->tree, "proc/self/status", text, sizeof(text), NULL) ||
        !text_field(text, "CapEff", field, sizeof(field))) {
        fact_set_unknown(process, "may_lock_memory", "/proc/self/status: without CapEff");
        return;
    }
    first = is_first_namespace(p, &known);
    if (!(strtoull(field, NULL, 16) >> 14 & 1))
        fact_set_bool(process, "may_lock_memory", false);
    else if (known)
        fact_set_bool(process, "may_lock_memory", first);
    else
        fact_set_unknown(process, "may_lock_memory", "/proc/self/uid_map: not readable");
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

static bool loads_verbs(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);

    if (library)
        dlclose(library);
    return library != NULL;
}

/* Asked of the kernel, or the line "OPENS LOADS" of a recording, each 0 or 1. */
static void set_verbs(struct probe *p, json_t *process)
{
    char line[TREE_LINE];
    int opens = 0, loads = 0;
    bool known = p->tree.live;

    if (known) {
        opens = opens_verbs();
        loads = loads_verbs();
    } else {
        known = !tree_line(&p->tree, "plumb/verbs", line, sizeof(line)) &&
                sscanf(line, "%1d %1d", &opens, &loads) == 2;
    }
    if (known) {
        fact_set_bool(process, "verbs_device_opens", opens != 0);
        fact_set_bool(process, "verbs_library_loads", loads != 0);
    } else {
        fact_set_unknown(process, "verbs_device_opens|verbs_library_loads", "it was not recorded");
    }
}

static void set_limits(struct probe *p, json_t *process)
{
    char text[4096];
    int rc = tree_read(&p->tree, "proc/self/limits", text, sizeof(text), NULL);
    const char *limits = rc ? NULL : text, *why = fact_errno(rc);

    set_limit(process, "locked_memory_bytes", limits, "Max locked memory", why);
    set_limit(process, "open_files", limits, "Max open files", why);
    set_limit(process, "stack_bytes", limits, "Max stack size", why);
    set_lock_right(p, process);
    set_verbs(p, process);
}

void probe_load(struct probe *p)
{
    json_t *process = fact_object(p->machine, "process"), *load = fact_object(p->machine, "load");

    set_limits(p, process);
    set_boot(p, load);
    set_uptime(p, load);
    set_averages(p, load);
    set_pressure(p, load, "cpu");
    set_pressure(p, load, "memory");
    set_pressure(p, load, "io");
    load_fill_steal(&p->tree, load, "");
    set_memory(p, load);
    char *text = xrealloc(NULL, VMSTAT);
    int rc = tree_read(&p->tree, "proc/vmstat", text, VMSTAT, NULL);

    set_event(load, "swapped_in_pages", rc ? NULL : text, "pswpin ", fact_errno(rc));
    set_event(load, "swapped_out_pages", rc ? NULL : text, "pswpout ", fact_errno(rc));
    free(text);
    set_shared_memory(p, process, load);
}
