// SPDX-License-Identifier: Apache-2.0
/* The control group's limits, which bound every result: the tightest on the way up to the root. */
#include "harness/probe/facts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- limits ---- */

struct limits {
    double cpus;               /* quota over period; 0: none found */
    long long memory;          /* bytes; 0: none found */
    char cpuset[TREE_LINE];    /* "": none found */
    char unread[3][TREE_LINE]; /* by enum limit: a file that could hold a tighter one; or "" */
};

enum limit { LIMIT_CPUS, LIMIT_MEMORY, LIMIT_CPUSET };

/* A file that a group is known not to have limits nothing (the root of a hierarchy has none); one that
 * was not read may. */
static void note_unread(const struct tree *tree, const char *folder, const char *file, int rc,
                        char *unread)
{
    struct path path = tree_join(folder, file);

    if (!unread[0] && !tree_absent(tree, path.s))
        snprintf(unread, TREE_LINE, "/%.180s: %.60s", path.s, fact_errno(rc));
}

static void keep_tighter(struct limits *limits, long long quota, long long period)
{
    double cpus = (double)quota / (double)period;

    if (quota > 0 && period > 0 && (!limits->cpus || cpus < limits->cpus))
        limits->cpus = cpus;
}

static void keep_smaller(struct limits *limits, long long bytes)
{
    if (bytes > 0 && (!limits->memory || bytes < limits->memory))
        limits->memory = bytes;
}

/* Ours is the one of the innermost group that has one. */
static void read_cpuset(const struct tree *tree, const char *folder, const char *file,
                        struct limits *limits)
{
    int rc;

    if (limits->cpuset[0])
        return;
    rc = tree_line_at(tree, folder, file, limits->cpuset, sizeof(limits->cpuset));
    if (rc)
        limits->cpuset[0] = '\0';
    if (rc)
        note_unread(tree, folder, file, rc, limits->unread[LIMIT_CPUSET]);
}

/* "max 100000" or "200000 100000". */
static int read_cpu_max(const struct tree *tree, const char *folder, struct limits *limits)
{
    long long quota, period;
    char line[TREE_LINE];
    int rc = tree_line_at(tree, folder, "cpu.max", line, sizeof(line));

    if (rc || !strncmp(line, "max", 3))
        return rc;
    if (sscanf(line, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return -EINVAL;
    keep_tighter(limits, quota, period);
    return 0;
}

/* "max" or bytes. */
static int read_memory_max(const struct tree *tree, const char *folder, struct limits *limits)
{
    long long bytes = 0;
    char line[TREE_LINE];
    int rc = tree_line_at(tree, folder, "memory.max", line, sizeof(line));

    if (rc || !strcmp(line, "max"))
        return rc;
    rc = tree_number_at(tree, folder, "memory.max", &bytes);
    keep_smaller(limits, bytes);
    return rc;
}

/* One level of a v2 hierarchy, for each controller. */
static void limits_v2_cpu(const struct tree *tree, const char *folder, struct limits *limits)
{
    int rc = read_cpu_max(tree, folder, limits);

    if (rc)
        note_unread(tree, folder, "cpu.max", rc, limits->unread[LIMIT_CPUS]);
}

static void limits_v2_memory(const struct tree *tree, const char *folder, struct limits *limits)
{
    int rc = read_memory_max(tree, folder, limits);

    if (rc)
        note_unread(tree, folder, "memory.max", rc, limits->unread[LIMIT_MEMORY]);
}

static void limits_v2_cpuset(const struct tree *tree, const char *folder, struct limits *limits)
{
    read_cpuset(tree, folder, "cpuset.cpus.effective", limits);
}

/* Each v1 controller has a hierarchy of its own, whose root has these files too. */
static void limits_v1_cpu(const struct tree *tree, const char *folder, struct limits *limits)
{
    long long quota = 0, period = 0;
    int rc = tree_number_at(tree, folder, "cpu.cfs_quota_us", &quota);

    if (!rc && quota > 0)
        rc = tree_number_at(tree, folder, "cpu.cfs_period_us", &period);
    if (rc)
        note_unread(tree, folder, quota > 0 ? "cpu.cfs_period_us" : "cpu.cfs_quota_us", rc,
                    limits->unread[LIMIT_CPUS]);
    else
        keep_tighter(limits, quota, period);
}

/* "No limit" is LONG_MAX rounded down to a page. */
static void limits_v1_memory(const struct tree *tree, const char *folder, struct limits *limits)
{
    long long bytes;
    int rc = tree_number_at(tree, folder, "memory.limit_in_bytes", &bytes);

    if (rc)
        note_unread(tree, folder, "memory.limit_in_bytes", rc, limits->unread[LIMIT_MEMORY]);
    else if (bytes < LLONG_MAX - (1 << 20))
        keep_smaller(limits, bytes);
}

static void limits_v1_cpuset(const struct tree *tree, const char *folder, struct limits *limits)
{
    read_cpuset(tree, folder, "cpuset.effective_cpus", limits);
}

typedef void level_fn(const struct tree *, const char *folder, struct limits *);

/*
 * From our own group up to the root: a parent's limit holds for us too. A container's path may be the
 * host's and not be there; then the walk finds its files at the mount's root.
 */
static void limits_walk(const struct tree *tree, const char *mount, const char *path,
                        level_fn *read, struct limits *limits)
{
    char folder[TREE_PATH];
    size_t base = strlen(mount);

    if ((size_t)snprintf(folder, sizeof(folder), "%s%s", mount, path) >= sizeof(folder))
        return;
    for (size_t n = strlen(folder); n > base && folder[n - 1] == '/'; n--)
        folder[n - 1] = '\0';
    while (strlen(folder) >= base) {
        char *slash = strrchr(folder, '/');

        read(tree, folder, limits);
        if (strlen(folder) == base || !slash)
            break;
        *slash = '\0';
    }
}

static const struct controller {
    const char *name, *mount, *other; /* v1's places */
    level_fn *v1, *v2;
} controllers[] = {
    {"cpu", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", limits_v1_cpu, limits_v2_cpu},
    {"memory", "sys/fs/cgroup/memory", NULL, limits_v1_memory, limits_v2_memory},
    {"cpuset", "sys/fs/cgroup/cpuset", NULL, limits_v1_cpuset, limits_v2_cpuset}};

/* Beside v1's hierarchies v2's has a folder of its own. */
static const char *mount_v2(const struct tree *tree)
{
    static const char beside[] = "sys/fs/cgroup/unified";

    return tree_exists(tree, beside) ? beside : "sys/fs/cgroup";
}

/* A controller is in one hierarchy: v1's where /proc/self/cgroup names it, else v2's. Returns the
 * version, 0: in none. */
static int read_controller(const struct tree *tree, const struct controller *c,
                           struct limits *limits)
{
    const char *mount = c->mount;
    char path[TREE_PATH];

    if (cgroup_path(tree, c->name, path, sizeof(path))) {
        if (!tree_exists(tree, mount) && c->other)
            mount = c->other;
        limits_walk(tree, mount, path, c->v1, limits);
        return 1;
    }
    if (!cgroup_path(tree, "", path, sizeof(path)))
        return 0;
    limits_walk(tree, mount_v2(tree), path, c->v2, limits);
    return 2;
}

/* The version of the first controller that has one; they may differ. A controller that no hierarchy has,
 * where others have one, limits nothing. */
static int cgroup_read(const struct tree *tree, struct limits *limits)
{
    int version = 0;

    *limits = (struct limits){0};
    for (size_t i = 0; i < sizeof(controllers) / sizeof(*controllers); i++) {
        int its = read_controller(tree, &controllers[i], limits);
        version = version ? version : its;
    }
    return version;
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

void probe_limits(struct probe *p, json_t *virtualization)
{
    static const char no_groups[] = "/proc/self/cgroup: not there or without groups";
    json_t *json = fact_object(virtualization, "limits");
    struct limits limits;
    int version = cgroup_read(&p->tree, &limits);
    char text[8192], allowed[TREE_LINE];
    const char *unread = version ? NULL : no_groups;

    if (version)
        fact_set_number(json, "cgroup_version", version);
    else
        fact_set_unknown(json, "cgroup_version", "%s", no_groups);
    set_limit(json, "cpu_quota", limits.cpus > 0 ? json_real(limits.cpus) : NULL,
              unread ? unread : limits.unread[LIMIT_CPUS]);
    set_limit(json, "memory_bytes", limits.memory ? json_integer(limits.memory) : NULL,
              unread ? unread : limits.unread[LIMIT_MEMORY]);
    set_limit(json, "cpuset", limits.cpuset[0] ? fact_text(limits.cpuset) : NULL,
              unread ? unread : limits.unread[LIMIT_CPUSET]);
    if (!tree_read(&p->tree, "proc/self/status", text, sizeof(text), NULL) &&
        text_field(text, "Cpus_allowed_list", allowed, sizeof(allowed)))
        fact_set_text(json, "allowed_cpus", allowed);
    else
        fact_set_unknown(json, "allowed_cpus", "/proc/self/status: not there");
}
