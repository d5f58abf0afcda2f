/* SPDX-License-Identifier: Apache-2.0 */
/* plumb probe: what this machine is. See probe.h. */
#include "harness/probe/probe.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/program.h"
#include "core/units.h"
#include "harness/probe/facts.h"

/* Kernel, distribution, clock source, mitigations, and the kernel's options that move results. */

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

#define CLOCKSOURCE "sys/devices/system/clocksource/clocksource0"

static void probe_host(struct probe *p)
{
    json_t *host = fact_object(p->machine, "host");

    fact_set_line(host, "hostname", &p->tree, "proc/sys/kernel/hostname");
    /* Who made the machine. Serial numbers and UUIDs stand beside these files and are left there. */
    fact_set_line(host, "vendor", &p->tree, "sys/class/dmi/id/sys_vendor");
    fact_set_line(host, "product", &p->tree, "sys/class/dmi/id/product_name");
    fact_set_line(host, "bios", &p->tree, "sys/class/dmi/id/bios_version");
    host_kernel(p, host);
    host_architecture(p, host);
    host_distro(p, host);
    host_kernel_options(p, host);
    fact_set_line(host, "clocksource", &p->tree, CLOCKSOURCE "/current_clocksource");
    fact_set_words(host, "clocksources", &p->tree, CLOCKSOURCE "/available_clocksource");
    host_mitigations(p, host);
}

/* Puts the parts together in a fixed order, so that the object's keys always stand alike. */

enum { SCHEMA = 3 };

static void probe_all(struct probe *p)
{
    fact_set_number(p->machine, "probe_schema", SCHEMA);
    fact_set_text(p->machine, "source", p->tree.live ? "this machine" : "recorded tree");
    probe_host(p);
    p->pci_rc = pci_load(&p->tree, &p->pci);
    probe_virtualization(p);
    probe_cpu(p);
    probe_topology(p);
    probe_memory(p);
    probe_load(p);
    probe_pci(p);
    probe_network(p);
    probe_tcp(p);
    probe_rdma(p);
    probe_gpus(p);
    probe_proximity(p);
    if (!p->tree.live)
        probe_again(&p->tree, "plumb/later/", p->machine);
}

int probe_machine(const char *sysroot, json_t **machine)
{
    struct probe p = {.machine = json_object()};
    int rc = tree_open(&p.tree, sysroot);

    *machine = NULL;
    if (!rc && !tree_exists(&p.tree, "sys") && !tree_exists(&p.tree, "proc"))
        rc = -ENODATA;
    if (!rc)
        probe_all(&p);
    tree_close(&p.tree);
    pci_free(p.pci);
    if (rc)
        json_decref(p.machine);
    else
        *machine = p.machine;
    return rc;
}

/* ---- plumb probe [--json] [--sysroot DIR] ---- */

static const char usage[] =
    "plumb probe: what this machine is\n"
    "\n"
    "usage: plumb probe [--json] [--sysroot DIR | --watch TIME]\n"
    "\n"
    "Shows processor, memory, PCI links, network and GPUs of this machine, whether it is virtual "
    "(and the\n"
    "evidence), and faults that limit the results.\n"
    "\n"
    "  --json         one JSON object on stdout instead of the table (keys: docs/probe.md)\n"
    "  --sysroot DIR  read a tree recorded by scripts/record-machine, not this machine\n"
    "  --watch TIME   read the counters again after TIME, such as 1s, and add how they grew\n"
    "  --help         show this text\n"
    "\n"
    "exit status: 0 good, 2 usage error, 4 incomplete: the processor could not be read, or the "
    "output\n"
    "could not be written completely\n";

static int probe_and_show(const char *sysroot, uint64_t watch_ns, bool json)
{
    bool complete;
    json_t *machine;
    int rc = probe_machine(sysroot, &machine);

    if (rc) {
        fprintf(stderr,
                "plumb probe: cannot read \"%s\": %s; give the folder that holds the tree's "
                "\"sys\" and \"proc\"\n",
                sysroot ? sysroot : "/", rc == -ENODATA ? "it holds neither" : strerror(-rc));
        return EXIT_USAGE;
    }
    if (watch_ns && !sysroot) /* a recording has a second reading of its own */
        probe_watch(machine, (double)watch_ns / 1e9);
    if (json) {
        rc = json_dumpf(machine, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        rc = probe_print(stdout, machine);
    }
    complete = json_is_integer(json_object_get(json_object_get(machine, "cpu"), "threads"));
    json_decref(machine);
    if (!complete)
        fprintf(stderr,
                "plumb probe: the processor could not be read; the rest is as far as it goes\n");
    return complete && !rc ? EXIT_GOOD : EXIT_INCOMPLETE;
}

int cmd_probe(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"sysroot", required_argument, NULL, 's'},
                                            {"watch", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *sysroot = NULL;
    uint64_t watch_ns = 0;
    bool json = false;
    int option;

    optind = 0; /* main has used getopt before us, or a test has */
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            json = true;
            break;
        case 's':
            sysroot = optarg;
            break;
        case 'w':
            if (units_parse_duration(optarg, &watch_ns)) {
                fprintf(stderr, "plumb probe: --watch \"%s\": give a time, such as 1s\n", optarg);
                return EXIT_USAGE;
            }
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_GOOD;
        default:
            fputs("plumb probe: see \"plumb probe --help\"\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "plumb probe: unexpected \"%s\"; probe takes options only\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (sysroot && !*sysroot) {
        fprintf(stderr, "plumb probe: --sysroot needs a folder\n");
        return EXIT_USAGE;
    }
    return probe_and_show(sysroot, watch_ns, json);
}

/* ---- The variables of the environment that steer libraries ---- */

/* By what their names begin with; those without a '_' at their end are names. The rest of the
 * environment may hold secrets, and is not looked at. */
static const char *const steering[] = {"OMP_",           "GOMP_",
                                       "KMP_",           "MKL_",
                                       "ONEDNN_",        "DNNL_",
                                       "OPENBLAS_",      "GOTO_",
                                       "BLIS_",          "NVPL_",
                                       "CUDA_",          "CUBLAS_",
                                       "CUDNN_",         "NVIDIA_TF32_OVERRIDE",
                                       "NCCL_",          "GLOO_",
                                       "NVSHMEM_",       "UCX_",
                                       "UCC_",           "FI_",
                                       "I_MPI_",         "MPICH_",
                                       "MV2_",           "IBV_",
                                       "MLX5_",          "RDMAV_",
                                       "GLIBC_TUNABLES", "MALLOC_",
                                       "LD_PRELOAD",     "LD_LIBRARY_PATH"};

/* Open MPI's own launcher sets more of these, other ones every time. */
static const char *const steering_mpi[] = {"OMPI_MCA_btl",  "OMPI_MCA_pml", "OMPI_MCA_mtl",
                                           "OMPI_MCA_coll", "OMPI_MCA_osc", "OMPI_MCA_opal",
                                           "OMPI_MCA_mpi"};

/* Not these: what no run folder is to hold, and which of the same devices a job was given this
 * time. */
static const char *const left_out[] = {"SECRET", "TOKEN",      "PASSWORD",
                                       "PASSWD", "CREDENTIAL", "VISIBLE_DEVICES"};

#define VALUE_MAX 1024

static bool is_steering(const char *variable)
{
    for (size_t i = 0; i < sizeof(steering) / sizeof(*steering); i++) {
        size_t n = strlen(steering[i]);

        if (!strncmp(variable, steering[i], n) && (steering[i][n - 1] == '_' || variable[n] == '='))
            return true;
    }
    for (size_t i = 0; i < sizeof(steering_mpi) / sizeof(*steering_mpi); i++)
        if (!strncmp(variable, steering_mpi[i], strlen(steering_mpi[i])))
            return true;
    return false;
}

static void set(json_t *settings, const char *variable)
{
    const char *value = strchr(variable, '=');
    char name[128];

    if (!value || (size_t)(value - variable) >= sizeof(name))
        return;
    memcpy(name, variable, (size_t)(value - variable));
    name[value - variable] = '\0';
    for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
        if (strcasestr(name, left_out[i]))
            return;
    /* Bytes that are no UTF-8 are no text of JSON. */
    json_t *text = json_stringn(value + 1, strnlen(value + 1, VALUE_MAX));
    json_object_set_new(settings, name, text ? text : json_string("(not UTF-8)"));
}

json_t *probe_settings(const char *const *variables)
{
    json_t *settings = json_object();

    for (; variables && *variables; variables++)
        if (is_steering(*variables))
            set(settings, *variables);
    return settings;
}
