// SPDX-License-Identifier: Apache-2.0
/*
 * In a container or not. A mark file alone settles nothing where the kernel shows that we are in its
 * first namespaces: disk images are often made from container images and keep the file.
 */
#include "harness/probe/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char line[TREE_LINE];

    if (!tree_line(&in->p->tree, "proc/2/comm", line, sizeof(line)) && !strcmp(line, "kthreadd")) {
        fact_say(in->because, "/proc/2 is kthreadd: the kernel's own threads are visible");
        in->namespace = in->init = true;
    } else if (!tree_link(&in->p->tree, "proc/self/ns/pid", line, sizeof(line))) {
        in->namespace = true;
        in->init = !strcmp(line, "pid:[4026531836]");
        fact_say(in->because, "the PID namespace is %sthe kernel's first", in->init ? "" : "not ");
    }
}

/* "none" needs both: the kernel's own threads or first namespace, and a root that no runtime made. */
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
