// SPDX-License-Identifier: Apache-2.0
/* Kernel, distribution, clock source, mitigations, and the kernel's options that move results. */
#include "harness/probe/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* The release is the third word of "Linux version 6.1.0-13-amd64 (...) ...". */
static void host_kernel(struct probe *p, json_t *host)
{
    char line[TREE_LINE], release[128];

    if (!tree_line(&p->tree, "proc/sys/kernel/osrelease", line, sizeof(line)))
        fact_set_text(host, "kernel", line);
    else if (!tree_line(&p->tree, "proc/version", line, sizeof(line)) &&
             sscanf(line, "Linux version %127s", release) == 1)
        fact_set_text(host, "kernel", release);
    else
        fact_set_unknown(host, "kernel", "/proc/version: not there");
}

/* A recorded tree says it in proc/sys/kernel/arch (Linux 6.1 and newer), or record-machine does. */
static void host_architecture(struct probe *p, json_t *host)
{
    struct utsname name;
    char line[TREE_LINE];

    if (p->tree.live && !uname(&name))
        fact_set_text(host, "architecture", name.machine);
    else if (!tree_line(&p->tree, "proc/sys/kernel/arch", line, sizeof(line)))
        fact_set_text(host, "architecture", line);
    else
        fact_set_unknown(host, "architecture", "/proc/sys/kernel/arch: not there");
}

static void host_distro(struct probe *p, json_t *host)
{
    static const char *const files[] = {"etc/os-release", "usr/lib/os-release"};
    char text[4096], *at;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (tree_read(&p->tree, files[i], text, sizeof(text), NULL))
            continue;
        at = strstr(text, "PRETTY_NAME=");
        if (!at || (at != text && at[-1] != '\n'))
            continue;
        at += strlen("PRETTY_NAME=");
        at += strspn(at, "\"'");
        at[strcspn(at, "\"'\n")] = '\0';
        fact_set_text(host, "distro", at);
        return;
    }
    fact_set_unknown(host, "distro", "/etc/os-release: not there or without PRETTY_NAME");
}

static void host_clocksource(struct probe *p, json_t *host)
{
    static const char base[] = "sys/devices/system/clocksource/clocksource0";
    char line[TREE_LINE], *save = NULL;
    json_t *available;
    int rc = tree_line_at(&p->tree, base, "available_clocksource", line, sizeof(line));

    fact_set_line(host, "clocksource", &p->tree, tree_join(base, "current_clocksource").s);
    if (rc) {
        fact_set_unknown(host, "clocksources", "/%s/available_clocksource: %s", base,
                         fact_errno(rc));
        return;
    }
    available = fact_list(host, "clocksources");
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
        json_array_append_new(available, fact_text(word));
}

/* Options that change what is measured. The rest may hold addresses or secrets and is not kept. */
static bool option_matters(const char *word)
{
    static const char *const keys[] = {"amd_iommu",
                                       "amd_pstate",
                                       "clocksource",
                                       "cpuidle.off",
                                       "default_hugepagesz",
                                       "hugepages",
                                       "hugepagesz",
                                       "idle",
                                       "intel_iommu",
                                       "intel_idle.max_cstate",
                                       "intel_pstate",
                                       "iommu",
                                       "iommu.passthrough",
                                       "iommu.strict",
                                       "isolcpus",
                                       "maxcpus",
                                       "mitigations",
                                       "nohz",
                                       "nohz_full",
                                       "nosmt",
                                       "nr_cpus",
                                       "numa",
                                       "numa_balancing",
                                       "pci",
                                       "pcie_aspm",
                                       "preempt",
                                       "processor.max_cstate",
                                       "rcu_nocbs",
                                       "spectre_v2",
                                       "transparent_hugepage",
                                       "tsc",
                                       "mem"};
    size_t n = strcspn(word, "=");

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (strlen(keys[i]) == n && !strncmp(word, keys[i], n))
            return true;
    return false;
}

static void host_kernel_options(struct probe *p, json_t *host)
{
    char text[4096], *save = NULL;
    int rc = tree_read(&p->tree, "proc/cmdline", text, sizeof(text), NULL);
    json_t *options;

    if (rc) {
        fact_set_unknown(host, "kernel_options", "/proc/cmdline: %s", fact_errno(rc));
        return;
    }
    options = fact_list(host, "kernel_options");
    for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        if (!strcmp(word, "--")) /* what follows is for init */
            break;
        if (option_matters(word))
            json_array_append_new(options, fact_text(word));
    }
}

static void host_mitigations(struct probe *p, json_t *host)
{
    static const char base[] = "sys/devices/system/cpu/vulnerabilities";
    struct names names;
    char line[TREE_LINE];
    int rc = tree_list(&p->tree, base, &names);
    json_t *all;

    if (rc) {
        fact_set_unknown(host, "mitigations", "/%s: %s", base, fact_errno(rc));
        return;
    }
    all = fact_object(host, "mitigations");
    for (size_t i = 0; i < names.count; i++) {
        rc = tree_line_at(&p->tree, base, names.name[i], line, sizeof(line));
        fact_set_text_or(all, names.name[i], rc ? NULL : line, "/%s/%s: %s", base, names.name[i],
                         fact_errno(rc));
    }
    names_free(&names);
}

/* Who made the machine. Serial numbers and UUIDs stand beside these files and are left there. */
static void host_product(struct probe *p, json_t *host)
{
    fact_set_line(host, "vendor", &p->tree, "sys/class/dmi/id/sys_vendor");
    fact_set_line(host, "product", &p->tree, "sys/class/dmi/id/product_name");
    fact_set_line(host, "bios", &p->tree, "sys/class/dmi/id/bios_version");
}

void probe_host(struct probe *p)
{
    json_t *host = fact_object(p->machine, "host");

    fact_set_line(host, "hostname", &p->tree, "proc/sys/kernel/hostname");
    host_product(p, host);
    host_kernel(p, host);
    host_architecture(p, host);
    host_distro(p, host);
    host_kernel_options(p, host);
    host_clocksource(p, host);
    host_mitigations(p, host);
}
