// SPDX-License-Identifier: Apache-2.0
/*
 * In a container or not, and the control group's limits, which bound every result. A mark file alone
 * settles nothing where the kernel shows that we are in its first namespaces: disk images are often
 * made from container images and keep the file.
 */
#include "harness/probe/facts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inside {
    struct probe *p;
    json_t *because;
    const char *sure;  /* the runtime that a decisive sign names */
    const char *maybe; /* one that a mark file names */
    bool overlay;      /* the root is a container runtime's overlay */
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

/* Marks of a container's own group; docker.service and the like, on a host, must not match. */
static const char *runtime_in_path(const char *text)
{
    static const struct {
        const char *mark, *name;
    } marks[] = {
        {"kubepods", "kubernetes"},
        {"libpod-", "podman"},
        {"/docker/", "docker"},
        {"/docker-", "docker"},
        {"/lxc/", "lxc"},
        {"lxc.payload", "lxc"},
        {"cri-containerd", "kubernetes"},
        {"machine-", "systemd-nspawn"},
        {"/garden/", "garden"},
    };

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (strstr(text, marks[i].mark))
            return marks[i].name;
    return NULL;
}

static void look_files(struct inside *in)
{
    char line[TREE_LINE];

    if (tree_exists(&in->p->tree, ".dockerenv")) {
        fact_say(in->because, "/.dockerenv is there");
        in->maybe = "docker";
    }
    if (tree_exists(&in->p->tree, "run/.containerenv")) {
        fact_say(in->because, "/run/.containerenv is there");
        in->sure = "podman";
    }
    if (!tree_line(&in->p->tree, "run/systemd/container", line, sizeof(line))) {
        fact_say(in->because, "/run/systemd/container says \"%s\"", line);
        in->sure = runtime_called(line);
    }
    if (tree_exists(&in->p->tree, "run/secrets/kubernetes.io") ||
        tree_exists(&in->p->tree, "var/run/secrets/kubernetes.io")) {
        fact_say(in->because, "/run/secrets/kubernetes.io is there");
        in->sure = "kubernetes";
    }
}

/* Only the one variable is looked at; the rest of the environment may hold secrets. */
static void look_environment(struct inside *in)
{
    char text[32768];
    size_t length, at = 0;

    if (tree_read(&in->p->tree, "proc/1/environ", text, sizeof(text), &length))
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
        if (tree_read(&in->p->tree, files[i], text, sizeof(text), NULL))
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
    char text[32768], device[TREE_LINE], point[TREE_LINE], type[64], *save = NULL;

    if (tree_read(&in->p->tree, "proc/mounts", text, sizeof(text), NULL))
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%255s %255s %63s", device, point, type) != 3 || strcmp(point, "/"))
            continue;
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
    char line[TREE_LINE];

    if (!tree_line(&in->p->tree, "proc/2/comm", line, sizeof(line)) && !strcmp(line, "kthreadd")) {
        fact_say(in->because, "/proc/2 is kthreadd: the kernel's own threads are visible");
        in->init = true;
    } else if (!tree_link(&in->p->tree, "proc/self/ns/pid", line, sizeof(line))) {
        in->init = !strcmp(line, "pid:[4026531836]");
        fact_say(in->because, "the PID namespace is %sthe kernel's first", in->init ? "" : "not ");
    }
}

static void conclude(struct inside *in, json_t *virtualization)
{
    const char *name = in->sure;

    if (!name && in->maybe && (in->overlay || !in->init))
        name = in->maybe;
    if (!name && in->overlay && !in->init)
        name = "unknown kind";
    if (!name && in->maybe)
        fact_say(in->because,
                 "so the mark file is a left-over of the image, not a sign of a container");
    fact_set_text(virtualization, "container", name ? name : "none");
    json_object_set_new(virtualization, "container_because", json_incref(in->because));
}

/* The path after "controller:" (v1) or "0::" (v2) in /proc/self/cgroup. */
static bool cgroup_path(const struct tree *tree, const char *controller, char *buf, size_t size)
{
    char text[8192], *save = NULL;

    if (tree_read(tree, "proc/self/cgroup", text, sizeof(text), NULL))
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

struct limits {
    double cpus;      /* quota over period; 0: none */
    long long memory; /* bytes; 0: none */
    char cpuset[TREE_LINE];
};

/* One level of a v2 hierarchy: "max 100000" or "200000 100000"; "max" or bytes. */
static void limits_v2(const struct tree *tree, const char *folder, struct limits *limits)
{
    char line[TREE_LINE];
    long long quota, period, bytes;

    if (!tree_line_at(tree, folder, "cpu.max", line, sizeof(line)) &&
        sscanf(line, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0 &&
        (!limits->cpus || (double)quota / (double)period < limits->cpus))
        limits->cpus = (double)quota / (double)period;
    if (!tree_number_at(tree, folder, "memory.max", &bytes) && bytes > 0 &&
        (!limits->memory || bytes < limits->memory))
        limits->memory = bytes;
    if (!limits->cpuset[0] &&
        tree_line_at(tree, folder, "cpuset.cpus.effective", limits->cpuset, sizeof(limits->cpuset)))
        limits->cpuset[0] = '\0';
}

static void limits_v1(const struct tree *tree, const char *folder, struct limits *limits)
{
    long long quota, period, bytes;

    if (!tree_number_at(tree, folder, "cpu.cfs_quota_us", &quota) &&
        !tree_number_at(tree, folder, "cpu.cfs_period_us", &period) && quota > 0 && period > 0 &&
        (!limits->cpus || (double)quota / (double)period < limits->cpus))
        limits->cpus = (double)quota / (double)period;
    /* "No limit" is LONG_MAX rounded down to a page. */
    if (!tree_number_at(tree, folder, "memory.limit_in_bytes", &bytes) && bytes > 0 &&
        bytes < LLONG_MAX - (1 << 20) && (!limits->memory || bytes < limits->memory))
        limits->memory = bytes;
    if (!limits->cpuset[0] &&
        tree_line_at(tree, folder, "cpuset.effective_cpus", limits->cpuset, sizeof(limits->cpuset)))
        limits->cpuset[0] = '\0';
}

/*
 * From our own group up to the root: a parent's limit holds for us too. A container's path may be the
 * host's and not be there; then the walk finds its files at the mount's root.
 */
static void limits_walk(const struct tree *tree, const char *mount, const char *path,
                        void (*read)(const struct tree *, const char *, struct limits *),
                        struct limits *limits)
{
    char folder[TREE_PATH];
    size_t base = strlen(mount);

    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", mount, path) >= sizeof(folder))
        return;
    while (strlen(folder) >= base) {
        char *slash = strrchr(folder, '/');

        read(tree, folder, limits);
        if (strlen(folder) == base || !slash)
            break;
        *slash = '\0';
    }
}

static void read_v1(const struct tree *tree, struct limits *limits)
{
    static const char *const controllers[][3] = {
        {"cpu", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"},
        {"memory", "sys/fs/cgroup/memory", NULL},
        {"cpuset", "sys/fs/cgroup/cpuset", NULL}};
    char path[TREE_PATH];

    for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
        const char *mount = controllers[i][1];

        if (!tree_exists(tree, mount) && controllers[i][2])
            mount = controllers[i][2];
        if (cgroup_path(tree, controllers[i][0], path, sizeof(path)))
            limits_walk(tree, mount, path, limits_v1, limits);
    }
}

static int cgroup_read(const struct tree *tree, struct limits *limits)
{
    char path[TREE_PATH];

    *limits = (struct limits){0};
    if (cgroup_path(tree, "cpu", path, sizeof(path))) {
        read_v1(tree, limits);
        return 1;
    }
    if (!cgroup_path(tree, "", path, sizeof(path)))
        return 0;
    limits_walk(tree, "sys/fs/cgroup", path, limits_v2, limits);
    return 2;
}

static void probe_limits(struct probe *p, json_t *virtualization)
{
    json_t *json = fact_object(virtualization, "limits");
    struct limits limits;
    int version = cgroup_read(&p->tree, &limits);
    char text[8192], allowed[TREE_LINE];

    if (version)
        fact_set_number(json, "cgroup_version", version);
    else
        fact_set_unknown(json, "cgroup_version", "/proc/self/cgroup: not there or without groups");
    json_object_set_new(json, "cpu_quota", limits.cpus > 0 ? json_real(limits.cpus) : json_null());
    json_object_set_new(json, "memory_bytes",
                        limits.memory ? json_integer(limits.memory) : json_null());
    json_object_set_new(json, "cpuset", fact_text(limits.cpuset[0] ? limits.cpuset : NULL));
    if (!tree_read(&p->tree, "proc/self/status", text, sizeof(text), NULL) &&
        text_field(text, "Cpus_allowed_list", allowed, sizeof(allowed)))
        fact_set_text(json, "allowed_cpus", allowed);
    else
        fact_set_unknown(json, "allowed_cpus", "/proc/self/status: not there");
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
