/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the description of a machine. */
#include "tests/sim/machine.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 4 /* of include */

struct reader {
    struct sim_machine *m;
    char *error;
    size_t len;
    bool again; /* the second time through: [gpu N], which [gpu] of any place must not undo */
    /* of the section */
    const struct sim_keys *keys;
    void *object, *first, *last; /* `last` is not NULL: the same for all of them, `size` apart */
    size_t size;
    char kind[16];
    unsigned node;
};

__attribute__((format(printf, 2, 3))) static int bad(struct reader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->error, r->len, format, args);
    va_end(args);
    return -1;
}

static char *trim(char *text)
{
    char *end;

    text += strspn(text, " \t");
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

static void section(struct reader *r, const struct sim_keys *keys, void *object, const char *kind)
{
    r->keys = keys;
    r->object = object;
    r->last = NULL;
    snprintf(r->kind, sizeof(r->kind), "%s", kind);
}

static int open_switch(struct reader *r, const char *name)
{
    struct sim_machine *m = r->m;
    unsigned i = 0;

    while (i < m->switches && strcmp(m->at[i].name, name))
        i++;
    if (i == SIM_SWITCHES || strlen(name) >= sizeof(m->at[i].name))
        return bad(r, "too many switches, or too long a name: '%s'", name);
    if (i == m->switches) {
        sim_key_defaults(&sim_switch_keys, &m->at[i]);
        memcpy(m->at[i].name, name, strlen(name) + 1);
        m->switches++;
    }
    section(r, &sim_switch_keys, &m->at[i], "switch");
    return 0;
}

static int open_link(struct reader *r, const char *rest)
{
    unsigned i, j;
    char more;

    if (!strcmp(rest, "all")) {
        section(r, &sim_link_keys, NULL, "all links");
        return 0;
    }
    if (sscanf(rest, "%u %u %c", &i, &j, &more) != 2 || i >= SIM_GPUS || j >= SIM_GPUS || i == j)
        return bad(r, "no pair of GPUs: '%s'", rest);
    section(r, &sim_link_keys, &r->m->link[i < j ? i : j][i < j ? j : i], "link");
    return 0;
}

static int open_numbered(struct reader *r, const char *kind, const char *rest)
{
    bool gpu = !strcmp(kind, "gpu");
    unsigned limit = gpu ? SIM_GPUS : SIM_NODES, i;
    char more;

    if (sscanf(rest, "%u %c", &i, &more) != 1 || i >= limit)
        return bad(r, "no number of a %s: '%s'", kind, rest);
    if (gpu)
        section(r, &sim_gpu_keys, &r->m->gpu[i], "gpu");
    r->node = i;
    if (!gpu)
        section(r, NULL, NULL, "node");
    return 0;
}

static int open_section(struct reader *r, char *name)
{
    char *rest = strchr(name, ' ');

    if (rest)
        *rest++ = '\0';
    rest = rest ? trim(rest) : name + strlen(name);
    if (!strcmp(name, "machine") && !*rest)
        return section(r, &sim_machine_keys, r->m, name), 0;
    if (!strcmp(name, "fault") && !*rest)
        return section(r, NULL, NULL, name), 0;
    if (!strcmp(name, "gpu") && !*rest)
        return section(r, &sim_gpu_keys, NULL, "all gpus"), 0;
    if (!strcmp(name, "gpu") || !strcmp(name, "node"))
        return open_numbered(r, name, rest);
    if (!strcmp(name, "switch") && *rest)
        return open_switch(r, rest);
    if (!strcmp(name, "link") && *rest)
        return open_link(r, rest);
    return bad(r, "unknown section '%s'", name);
}

/* "0-3,8" */
static int read_cpus(cpu_set_t *cpus, const char *text)
{
    unsigned from, to;
    int used;

    CPU_ZERO(cpus);
    while (sscanf(text, "%u%n", &from, &used) == 1) {
        text += used;
        to = from;
        if (*text == '-' && sscanf(text, "-%u%n", &to, &used) == 1)
            text += used;
        for (unsigned cpu = from; cpu <= to && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, cpus);
        if (*text != ',')
            break;
        text++;
    }
    return *text ? -1 : 0;
}

/* Sections for all GPUs or links are read first, those of one in the second pass. */
static int set_value(struct reader *r, const char *key, const char *value)
{
    struct sim_machine *m = r->m;
    bool all_gpus = !strcmp(r->kind, "all gpus"), all_links = !strcmp(r->kind, "all links");
    int rc = 0;

    if (!strcmp(r->kind, "node"))
        return strcmp(key, "cpus") || read_cpus(&m->cpus[r->node], value)
                   ? bad(r, "a node has 'cpus', as 0-3,8: not '%s'", key)
                   : 0;
    if (!strcmp(r->kind, "fault"))
        return strcmp(key, "fault") ? bad(r, "unknown key '%s'", key)
               : r->again           ? sim_faults_add(m, value, r->error, r->len)
                                    : 0;
    if (!r->keys)
        return bad(r, "'%s' is in no section", key);
    if ((all_gpus || all_links) == r->again)
        return 0;
    for (unsigned i = 0; all_gpus && i < SIM_GPUS && !rc; i++)
        rc = sim_key_set(r->keys, &m->gpu[i], key, value, r->error, r->len);
    for (unsigned i = 0; all_links && i < SIM_GPUS && !rc; i++)
        for (unsigned j = i + 1; j < SIM_GPUS && !rc; j++)
            rc = sim_key_set(r->keys, &m->link[i][j], key, value, r->error, r->len);
    return all_gpus || all_links ? rc
                                 : sim_key_set(r->keys, r->object, key, value, r->error, r->len);
}

static int read_file(struct reader *r, const char *path, unsigned depth);

static int include(struct reader *r, const char *path, const char *name, unsigned depth)
{
    const char *slash = strrchr(path, '/');
    char beside[4096];

    if (depth == DEPTH)
        return bad(r, "too many files include one another");
    snprintf(beside, sizeof(beside), "%.*s%s", slash && *name != '/' ? (int)(slash - path + 1) : 0,
             path, name);
    return read_file(r, beside, depth + 1);
}

static int read_line(struct reader *r, const char *path, char *line, unsigned depth)
{
    char *text, *equals;

    line[strcspn(line, "#\n")] = '\0';
    text = trim(line);
    if (!*text)
        return 0;
    if (*text == '[' && text[strlen(text) - 1] == ']') {
        text[strlen(text) - 1] = '\0';
        return open_section(r, trim(text + 1));
    }
    equals = strchr(text, '=');
    if (!equals)
        return bad(r, "neither a section nor key = value: '%s'", text);
    *equals = '\0';
    text = trim(text);
    if (!strcmp(text, "include"))
        return include(r, path, trim(equals + 1), depth);
    return set_value(r, text, trim(equals + 1));
}

static int read_file(struct reader *r, const char *path, unsigned depth)
{
    FILE *file = fopen(path, "re");
    unsigned number = 0;
    char line[1024], why[512];
    int rc = 0;

    if (!file)
        return bad(r, "cannot read '%s': %s", path, strerror(errno));
    while (!rc && fgets(line, sizeof(line), file)) {
        number++;
        rc = read_line(r, path, line, depth);
        if (rc) {
            snprintf(why, sizeof(why), "%s", r->error);
            bad(r, "%s:%u: %s", path, number, why);
        }
    }
    fclose(file);
    return rc;
}

static void defaults(struct sim_machine *m)
{
    memset(m, 0, sizeof(*m));
    sim_key_defaults(&sim_machine_keys, m);
    for (unsigned i = 0; i < SIM_GPUS; i++) {
        sim_key_defaults(&sim_gpu_keys, &m->gpu[i]);
        for (unsigned j = i + 1; j < SIM_GPUS; j++)
            sim_key_defaults(&sim_link_keys, &m->link[i][j]);
    }
}

static int find_switch(struct reader *r, struct sim_gpu *gpu)
{
    gpu->at_switch = -1;
    for (unsigned i = 0; i < r->m->switches; i++)
        if (!strcmp(r->m->at[i].name, gpu->switch_name))
            gpu->at_switch = (int)i;
    return *gpu->switch_name && gpu->at_switch < 0
               ? bad(r, "no section [switch %s]", gpu->switch_name)
               : 0;
}

/* What is not said follows from the rest. */
static int complete(struct reader *r)
{
    struct sim_machine *m = r->m;
    int rc = 0;

    if (!m->gpus || m->gpus > SIM_GPUS)
        return bad(r, "1 to %u GPUs, not %u", SIM_GPUS, m->gpus);
    for (unsigned i = 0; i < m->gpus && !rc; i++) {
        struct sim_gpu *gpu = &m->gpu[i];

        if (!*gpu->address)
            snprintf(gpu->address, sizeof(gpu->address), "0000:%02x:00.0", 0x10 + i);
        if (!*gpu->uuid)
            snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-51300000-0000-0000-0000-%012u", i);
        gpu->pcie_gen_max = gpu->pcie_gen_max ? gpu->pcie_gen_max : gpu->pcie_gen;
        gpu->pcie_width_max = gpu->pcie_width_max ? gpu->pcie_width_max : gpu->pcie_width;
        gpu->cores = gpu->cores ? gpu->cores : gpu->sms * 128;
        gpu->power_default_watts =
            gpu->power_default_watts > 0 ? gpu->power_default_watts : gpu->power_limit_watts;
        if (gpu->numa_node >= SIM_NODES)
            rc = bad(r, "numa_node of GPU %u: at most %u", i, SIM_NODES - 1);
        rc = rc ? rc : find_switch(r, gpu);
    }
    for (unsigned i = 0; i < m->gpus; i++)
        for (unsigned j = i + 1; j < m->gpus; j++)
            if (m->link[i][j].both_gbps == 0)
                m->link[i][j].both_gbps = 2 * m->link[i][j].gbps;
    return rc;
}

int sim_machine_read(struct sim_machine *m, char *error, size_t len)
{
    const char *path = getenv("PLUMB_SIM_MACHINE"), *faults = getenv("PLUMB_SIM_FAULT");
    const char *node = getenv("PLUMB_SIM_HOST_NODE");
    struct reader r = {.m = m, .error = error, .len = len};
    int rc;

    defaults(m);
    if (!path || !*path)
        return bad(&r, "PLUMB_SIM_MACHINE is not set");
    rc = read_file(&r, path, 0);
    r.again = true;
    section(&r, NULL, NULL, "");
    rc = rc ? rc : read_file(&r, path, 0);
    if (!rc && node && *node)
        rc = sim_key_set(&sim_machine_keys, m, "host_node", node, error, len);
    rc = rc ? rc : complete(&r);
    if (!rc && faults && *faults)
        rc = sim_faults_add(m, faults, error, len);
    return rc;
}

const struct sim_link *sim_link(const struct sim_machine *m, unsigned i, unsigned j)
{
    return &m->link[i < j ? i : j][i < j ? j : i];
}

unsigned sim_host_node(const struct sim_machine *m)
{
    cpu_set_t bound, common;

    if (sched_getaffinity(0, sizeof(bound), &bound) || (getenv("PLUMB_SIM_HOST_NODE")))
        return m->host_node;
    for (unsigned node = 0; node < SIM_NODES; node++) {
        CPU_AND(&common, &bound, &m->cpus[node]);
        if (CPU_COUNT(&common) && CPU_EQUAL(&common, &bound))
            return node;
    }
    return m->host_node;
}
