/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a container or not. A mark file alone settles nothing where the kernel shows that we are in
 * its first namespaces: disk images are often made from container images and keep the file.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

/* The control group's limits, which bound every result: the tightest on the way up to the root. */

/* The path after "controller:" (v1) or "0::" (v2) in /proc/self/cgroup. */
static bool cgroup_path(const struct probe *p, const char *controller, char *buf, size_t size)
{
    char text[8192], *save = NULL;

    if (sys_read(p->root, text, sizeof(text), NULL, "proc/self/cgroup"))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

        if (!path)
            continue;
        *path++ = '\0';
        for (char *c = ++names; *c; c++)
            *c = *c == ',' ? ' ' : *c;
        if (*controller ? text_word(names, controller) : !*names) {
            snprintf(buf, size, "%s", path);
            return true;
        }
    }
    return false;
}

/* ---- limits ---- */

struct limits {
    const char *below;         /* the folder of a second reading of counters; NULL: none */
    double cpus;               /* quota over period; 0: none found */
    long long memory;          /* bytes; 0: none found */
    char cpuset[SYS_LINE];     /* "": none found */
    long long periods, paused; /* of the group that was paused most often; 0 */
    char unread[4][SYS_LINE];  /* by enum limit: a file that could hold a tighter one; or "" */
};

enum limit { LIMIT_CPUS, LIMIT_MEMORY, LIMIT_CPUSET, LIMIT_STAT };

/* A file that a group is known not to have limits nothing (the root of a hierarchy has none); one
 * that was not read may. */
static void note_unread(const struct probe *p, const char *folder, const char *file, int rc,
                        char *unread)
{
    struct path path = path_join(folder, file);

    if (!unread[0] && !probe_absent(p, "%s", path.s))
        snprintf(unread, SYS_LINE, "/%.180s: %.60s", path.s, fact_errno(rc));
}

/* How many of the periods with work ended early because the quota was used up, "nr_periods 10",
 * "nr_throttled 3", since the group was made. */
static void read_cpu_stat(const struct probe *p, const char *folder, bool v2, struct limits *limits)
{
    (void)v2;
    char text[2048];
    const char *periods, *paused;
    long long all, some;
    struct path path = limits->below ? path_join(limits->below, folder) : path_join(folder, "");
    int rc = sys_read(p->root, text, sizeof(text), NULL, "%s/cpu.stat", path.s);

    if (rc && !limits->below) /* a group that a second reading lacks did not grow */
        note_unread(p, folder, "cpu.stat", rc, limits->unread[LIMIT_STAT]);
    if (rc)
        return;
    periods = strstr(text, "nr_periods ");
    paused = strstr(text, "nr_throttled ");
    if (periods && paused && sscanf(periods, "nr_periods %lld", &all) == 1 &&
        sscanf(paused, "nr_throttled %lld", &some) == 1 && some >= limits->paused) {
        limits->periods = all;
        limits->paused = some;
    }
}

/* One level of a hierarchy, for each controller. Each of version 1 has a hierarchy of its own, whose
 * root has these files too. */

/* "max 100000" or "200000 100000"; a file each in version 1. */
static void read_cpu(const struct probe *p, const char *folder, bool v2, struct limits *limits)
{
    const char *file = v2 ? "cpu.max" : "cpu.cfs_quota_us";
    long long quota = 0, period = 0;
    char line[SYS_LINE];
    int rc = sys_line(p->root, line, sizeof(line), "%s/%s", folder, file);

    read_cpu_stat(p, folder, v2, limits);
    if (!rc && v2 && strncmp(line, "max", 3) != 0) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
            rc = -EINVAL;
    } else if (!rc && !v2) {
        rc = sys_number(p->root, &quota, "%s/%s", folder, file);
        if (!rc && quota > 0)
            rc = sys_number(p->root, &period, "%s/%s", folder, file = "cpu.cfs_period_us");
    }
    if (rc)
        note_unread(p, folder, file, rc, limits->unread[LIMIT_CPUS]);
    else if (quota > 0 && period > 0 &&
             (!limits->cpus || (double)quota / (double)period < limits->cpus))
        limits->cpus = (double)quota / (double)period;
}

/* "max" or bytes; "no limit" of version 1 is LONG_MAX rounded down to a page. */
static void read_memory(const struct probe *p, const char *folder, bool v2, struct limits *limits)
{
    const char *file = v2 ? "memory.max" : "memory.limit_in_bytes";
    long long bytes = 0;
    char line[SYS_LINE];
    int rc = sys_line(p->root, line, sizeof(line), "%s/%s", folder, file);

    if (!rc && strcmp(line, "max") != 0)
        rc = sys_number(p->root, &bytes, "%s/%s", folder, file);
    if (rc)
        note_unread(p, folder, file, rc, limits->unread[LIMIT_MEMORY]);
    else if (bytes > 0 && bytes < LLONG_MAX - (1 << 20) &&
             (!limits->memory || bytes < limits->memory))
        limits->memory = bytes;
}

/* Ours is the one of the innermost group that has one. */
static void read_cpuset(const struct probe *p, const char *folder, bool v2, struct limits *limits)
{
    const char *file = v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
    int rc;

    if (limits->cpuset[0])
        return;
    rc = sys_line(p->root, limits->cpuset, sizeof(limits->cpuset), "%s/%s", folder, file);
    if (rc) {
        limits->cpuset[0] = '\0';
        note_unread(p, folder, file, rc, limits->unread[LIMIT_CPUSET]);
    }
}

typedef void level_fn(const struct probe *, const char *folder, bool v2, struct limits *);

/*
 * From our own group up to the root: a parent's limit holds for us too. A container's path may be
 * the host's and not be there; then the walk finds its files at the mount's root.
 */
static void limits_walk(const struct probe *p, const char *mount, const char *path, level_fn *read,
                        bool v2, struct limits *limits)
{
    char folder[SYS_PATH];
    size_t base = strlen(mount);

    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", mount, path) >= sizeof(folder))
        return;
    for (size_t n = strlen(folder); n > base && folder[n - 1] == '/'; n--)
        folder[n - 1] = '\0';
    while (strlen(folder) >= base) {
        char *slash = strrchr(folder, '/');

        read(p, folder, v2, limits);
        if (strlen(folder) == base || !slash)
            break;
        *slash = '\0';
    }
}

static const struct controller {
    const char *name, *mount, *other; /* v1's places */
    level_fn *read;
} controllers[] = {{"cpu", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", read_cpu},
                   {"memory", "sys/fs/cgroup/memory", NULL, read_memory},
                   {"cpuset", "sys/fs/cgroup/cpuset", NULL, read_cpuset}};

/* A controller is in one hierarchy: v1's where /proc/self/cgroup names it, else v2's. Returns the
 * version, 0: in none. */
static int read_controller(const struct probe *p, const struct controller *c, struct limits *limits)
{
    static const char beside[] = "sys/fs/cgroup/unified"; /* v2's, beside v1's hierarchies */
    const char *mount = c->mount;
    char path[SYS_PATH];

    if (cgroup_path(p, c->name, path, sizeof(path))) {
        if (!sys_exists(p->root, "%s", mount) && c->other)
            mount = c->other;
        limits_walk(p, mount, path, c->read, false, limits);
        return 1;
    }
    if (!cgroup_path(p, "", path, sizeof(path)))
        return 0;
    mount = sys_exists(p->root, "%s", beside) ? beside : "sys/fs/cgroup";
    limits_walk(p, mount, path, c->read, true, limits);
    return 2;
}

/* A number, "none" where it is known that there is none, else null and why. */
static void set_limit(json_t *json, const char *key, json_t *value, const char *unread)
{
    if (unread[0])
        fact_set_unknown(json, key, "%s", unread);
    else if (value)
        json_object_set(json, key, value);
    else
        fact_set_text(json, key, "none");
    json_decref(value);
}

static void set_paused(json_t *json, const struct limits *limits, const char *unread)
{
    const char *why = unread                          ? unread
                      : limits->unread[LIMIT_CPUS][0] ? limits->unread[LIMIT_CPUS]
                                                      : limits->unread[LIMIT_STAT];
    json_t *counters;

    if (why[0]) {
        fact_set_unknown(json, "counters", "%s", why);
        return;
    }
    counters = fact_object(json, "counters");
    fact_set_number(counters, "periods", limits->periods);
    fact_set_number(counters, "throttled_periods", limits->paused);
}

static void probe_limits(struct probe *p, json_t *virtualization)
{
    static const char no_groups[] = "/proc/self/cgroup: not there or without groups";
    json_t *json = fact_object(virtualization, "limits");
    struct limits limits = {0};
    char text[8192], allowed[SYS_LINE];
    const char *unread;
    int version = 0; /* of the first controller that has one; they may differ */
    bool known;

    /* A controller that no hierarchy has, where others have one, limits nothing. */
    for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
        int its = read_controller(p, &controllers[i], &limits);
        version = version ? version : its;
    }
    unread = version ? NULL : no_groups;
    fact_set(json, "cgroup_version", version ? json_integer(version) : NULL, "%s", no_groups);
    set_limit(json, "cpu_quota", limits.cpus > 0 ? json_real(limits.cpus) : NULL,
              unread ? unread : limits.unread[LIMIT_CPUS]);
    set_paused(json, &limits, unread);
    set_limit(json, "memory_bytes", limits.memory ? json_integer(limits.memory) : NULL,
              unread ? unread : limits.unread[LIMIT_MEMORY]);
    set_limit(json, "cpuset", limits.cpuset[0] ? fact_text(limits.cpuset) : NULL,
              unread ? unread : limits.unread[LIMIT_CPUSET]);
    known = !sys_read(p->root, text, sizeof(text), NULL, "proc/self/status");
    fact_set_text_or(
        json, "allowed_cpus",
        known && text_field(text, "Cpus_allowed_list", allowed, sizeof(allowed)) ? allowed : NULL,
        "/proc/self/status: not there");
    fact_set_text_or(
        json, "allowed_memory_nodes",
        known && text_field(text, "Mems_allowed_list", allowed, sizeof(allowed)) ? allowed : NULL,
        "/proc/self/status: %s", known ? "without Mems_allowed_list" : "not there");
}

void limits_fill_counters(const struct probe *p, json_t *json, const char *below)
{
    static const struct controller counting = {"cpu", "sys/fs/cgroup/cpu",
                                               "sys/fs/cgroup/cpu,cpuacct", read_cpu_stat};
    struct limits limits = {.below = *below ? below : NULL};

    if (read_controller(p, &counting, &limits))
        set_paused(json, &limits, NULL);
}

struct inside {
    struct probe *p;
    json_t *because;
    const char *sure;  /* the runtime that a decisive sign names */
    const char *maybe; /* one that a mark file names */
    bool overlay;      /* the root is a container runtime's overlay */
    bool root;         /* what the root file system is was read */
    bool namespace;    /* which PID namespace we are in was read */
    bool init;         /* we see the kernel's own threads or first namespace */
};

/* The value of container=, as runtimes set it for what they start. */
static const char *runtime_called(const char *value)
{
    static const char *const names[] = {"docker",         "podman", "lxc",  "lxc-libvirt",
                                        "systemd-nspawn", "oci",    "crio", "wsl"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(value, names[i]))
            return names[i];
    return "unknown kind";
}

/* Runtimes name a group after the container: "docker-0123456789ab.scope". */
static bool is_id(const char *text)
{
    return strspn(text, "0123456789abcdef") >= 12;
}

/* Marks of a container's own group, one part of the path at a time: "/docker/0123456789ab".
 * Services of a host are none, whatever their names: docker.service,
 * actions.runner.build-machine-1.service. */
static const char *runtime_of_group(const char *before, const char *part)
{
    static const struct {
        const char *mark, *name;
        bool id; /* an identifier follows */
    } marks[] = {
        {"kubepods", "kubernetes", false},
        {"libpod-", "podman", true},
        {"docker-", "docker", true},
        {"lxc.payload", "lxc", false},
        {"cri-containerd-", "kubernetes", false},
        {"crio-", "kubernetes", true},
    };
    size_t n = strlen(part);
    bool scope = n > 6 && !strcmp(part + n - 6, ".scope");

    if (n > 8 && !strcmp(part + n - 8, ".service"))
        return NULL;
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        size_t length = strlen(marks[i].mark);

        if (!strncmp(part, marks[i].mark, length) && (!marks[i].id || is_id(part + length)))
            return marks[i].name;
    }
    if (strstr(part, ":cri-containerd:"))
        return "kubernetes";
    if (scope && !strncmp(part, "machine-", 8))
        return "systemd-nspawn";
    if (!strcmp(before, "docker") && is_id(part))
        return "docker";
    return !strcmp(before, "lxc") ? "lxc" : !strcmp(before, "garden") ? "garden" : NULL;
}

/* `text`: /proc/PID/cgroup, "0::/a/b" in each line; it is cut up. */
static const char *runtime_in_path(char *text)
{
    const char *found = NULL;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line && !found;
         line = strtok_r(NULL, "\n", &save)) {
        char *next = NULL;
        const char *before = "";

        for (char *part = strtok_r(line, "/", &next); part && !found;
             part = strtok_r(NULL, "/", &next)) {
            found = runtime_of_group(before, part);
            before = part;
        }
    }
    return found;
}

static void look_files(struct inside *in)
{
    char line[SYS_LINE];

    if (sys_exists(in->p->root, ".dockerenv")) {
        fact_say(in->because, "/.dockerenv is there");
        in->maybe = "docker";
    }
    if (sys_exists(in->p->root, "run/.containerenv")) {
        fact_say(in->because, "/run/.containerenv is there");
        in->sure = "podman";
    }
    if (!sys_line(in->p->root, line, sizeof(line), "run/systemd/container")) {
        fact_say(in->because, "/run/systemd/container says \"%s\"", line);
        in->sure = runtime_called(line);
    }
    if (sys_exists(in->p->root, "run/secrets/kubernetes.io") ||
        sys_exists(in->p->root, "var/run/secrets/kubernetes.io")) {
        fact_say(in->because, "/run/secrets/kubernetes.io is there");
        in->sure = "kubernetes";
    }
}

/* Only the one variable is looked at; the rest of the environment may hold secrets. */
static void look_environment(struct inside *in)
{
    char text[32768];
    size_t length, at = 0;

    if (sys_read(in->p->root, text, sizeof(text), &length, "proc/1/environ"))
        return;
    while (at < length) {
        if (!strncmp(text + at, "container=", 10)) {
            fact_say(in->because, "/proc/1/environ has container=%s", text + at + 10);
            in->sure = runtime_called(text + at + 10);
        }
        at += strlen(text + at) + 1;
    }
}

static void look_cgroup(struct inside *in)
{
    static const char *const files[] = {"proc/1/cgroup", "proc/self/cgroup"};
    char text[8192];
    const char *name;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (sys_read(in->p->root, text, sizeof(text), NULL, "%s", files[i]))
            continue;
        name = runtime_in_path(text);
        if (name) {
            fact_say(in->because, "/%s: the control group's path names %s", files[i], name);
            in->sure = in->sure ? in->sure : name;
            return;
        }
    }
}

static void look_root(struct inside *in)
{
    char text[32768], device[SYS_LINE], point[SYS_LINE], type[64], *save = NULL;

    if (sys_read(in->p->root, text, sizeof(text), NULL, "proc/mounts"))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%255s %255s %63s", device, point, type) != 3 || strcmp(point, "/"))
            continue;
        in->root = true;
        in->overlay = !strcmp(type, "overlay") || !strcmp(type, "fuse-overlayfs");
        if (in->overlay)
            fact_say(in->because, "the root file system is an overlay");
        else if (in->maybe)
            fact_say(in->because, "the root file system is %s on %s", type, device);
        return;
    }
}

/* 4026531836 is the first PID namespace of every kernel since 3.8 (include/linux/proc_ns.h). */
static void look_namespace(struct inside *in)
{
    char line[SYS_LINE];

    if (!sys_line(in->p->root, line, sizeof(line), "proc/2/comm") && !strcmp(line, "kthreadd")) {
        fact_say(in->because, "/proc/2 is kthreadd: the kernel's own threads are visible");
        in->namespace = in->init = true;
    } else if (!sys_link(in->p->root, line, sizeof(line), "proc/self/ns/pid")) {
        in->namespace = true;
        in->init = !strcmp(line, "pid:[4026531836]");
        fact_say(in->because, "the PID namespace is %sthe kernel's first", in->init ? "" : "not ");
    }
}

/* "none" needs both: the kernel's own threads or first namespace, and a root that no runtime made.
 */
static void conclude(struct inside *in, json_t *virtualization)
{
    const char *name = in->sure;

    if (!name && in->maybe && (in->overlay || (in->namespace && !in->init)))
        name = in->maybe;
    if (!name && in->overlay && in->namespace && !in->init)
        name = "unknown kind";
    if (name)
        fact_set_text(virtualization, "container", name);
    else if (in->init && in->root && !in->overlay)
        fact_set_text(virtualization, "container", "none");
    else
        fact_set_unknown(
            virtualization, "container", "%s",
            !in->root     ? "what the root file system is could not be read"
            : in->overlay ? "the root is an overlay, though the kernel's own threads are visible"
                          : "no mark of a container, but the namespaces are not the kernel's first "
                            "or could not be read");
    if (!name && in->maybe && in->init && in->root)
        fact_say(in->because,
                 "so the mark file is a left-over of the image, not a sign of a container");
    json_object_set_new(virtualization, "container_because", json_incref(in->because));
}

void probe_container(struct probe *p, json_t *virtualization)
{
    struct inside in = {.p = p, .because = json_array()};

    look_files(&in);
    look_environment(&in);
    look_cgroup(&in);
    look_root(&in);
    look_namespace(&in);
    conclude(&in, virtualization);
    json_decref(in.because);
    probe_limits(p, virtualization);
}
