/* SPDX-License-Identifier: Apache-2.0 */
/* plumb probe: what this machine is. See probe.h. */
#include "harness/probe/probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/alloc.h"
#include "core/program.h"
#include "harness/command.h"
#include "harness/probe/facts.h"

/* Kernel, distribution, clock source, mitigations, and the kernel's options that move results. */

/* The release is the third word of "Linux version 6.1.0-13-amd64 (...) ...". */
static void host_kernel(struct probe *p, json_t *host)
{
    char line[SYS_LINE], release[128];

    if (!sys_line(p->root, line, sizeof(line), "proc/sys/kernel/osrelease"))
        fact_set_text(host, "kernel", line);
    else if (!sys_line(p->root, line, sizeof(line), "proc/version") &&
             sscanf(line, "Linux version %127s", release) == 1)
        fact_set_text(host, "kernel", release);
    else
        fact_set_unknown(host, "kernel", "/proc/version: not there");
}

/* A recorded tree says it in proc/sys/kernel/arch (Linux 6.1 and newer), or record-machine does. */
static void host_architecture(struct probe *p, json_t *host)
{
    struct utsname name;
    char line[SYS_LINE];

    if (!p->root && !uname(&name))
        fact_set_text(host, "architecture", name.machine);
    else if (!sys_line(p->root, line, sizeof(line), "proc/sys/kernel/arch"))
        fact_set_text(host, "architecture", line);
    else
        fact_set_unknown(host, "architecture", "/proc/sys/kernel/arch: not there");
}

static void host_distro(struct probe *p, json_t *host)
{
    static const char *const files[] = {"etc/os-release", "usr/lib/os-release"};
    char text[4096], *at;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (sys_read(p->root, text, sizeof(text), NULL, "%s", files[i]))
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
    int rc = sys_read(p->root, text, sizeof(text), NULL, "proc/cmdline");
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
    int rc = sys_list(p->root, &names, "%s", base);
    json_t *all;

    if (rc) {
        fact_set_unknown(host, "mitigations", "/%s: %s", base, fact_errno(rc));
        return;
    }
    all = fact_object(host, "mitigations");
    for (size_t i = 0; i < names.count; i++)
        fact_set_file(p, all, names.name[i], FACT_LINE, "%s/%s", base, names.name[i]);
    names_free(&names);
}

static void probe_host(struct probe *p)
{
    /* Who made the machine. Serial numbers and UUIDs stand beside these files and are left there. */
    static const struct fact_file made[] = {{"vendor", "sys_vendor", FACT_LINE},
                                            {"product", "product_name", FACT_LINE},
                                            {"bios", "bios_version", FACT_LINE}};
    static const struct fact_file clock[] = {{"clocksource", "current_clocksource", FACT_LINE},
                                             {"clocksources", "available_clocksource", FACT_WORDS}};
    json_t *host = fact_object(p->machine, "host");

    fact_set_file(p, host, "hostname", FACT_LINE, "proc/sys/kernel/hostname");
    fact_set_files(p, host, "sys/class/dmi/id", FACT_FILES(made));
    host_kernel(p, host);
    host_architecture(p, host);
    host_distro(p, host);
    host_kernel_options(p, host);
    fact_set_files(p, host, "sys/devices/system/clocksource/clocksource0", FACT_FILES(clock));
    host_mitigations(p, host);
}

/* Puts the parts together in a fixed order, so that the object's keys always stand alike. */

enum { SCHEMA = 3, ABSENT_MAX = 4 << 20 };

static void probe_all(struct probe *p)
{
    fact_set_number(p->machine, "probe_schema", SCHEMA);
    fact_set_text(p->machine, "source", !p->root ? "this machine" : "recorded tree");
    probe_host(p);
    p->pci_rc = pci_load(p, &p->pci);
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
    if (p->root)
        probe_again(p, "plumb/later/", p->machine);
}

int probe_machine(const char *sysroot, json_t **machine)
{
    struct probe p = {.root = sysroot && *sysroot ? sysroot : NULL};
    struct stat st;
    int rc = sys_stat(p.root, &st, ".");

    *machine = NULL;
    if (!rc && !sys_exists(p.root, "sys") && !sys_exists(p.root, "proc"))
        rc = -ENODATA;
    if (rc)
        return rc;
    if (p.root) {
        char *text = xrealloc(NULL, ABSENT_MAX), *save = NULL;

        p.absent = json_object();
        sys_read(p.root, text, ABSENT_MAX, NULL, "plumb/absent");
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            json_object_set_new(p.absent, line, json_true());
        free(text);
    }
    *machine = p.machine = json_object();
    probe_all(&p);
    json_decref(p.absent);
    pci_free(p.pci);
    return 0;
}

/* ---- plumb probe [--json] [--sysroot DIR] ---- */

struct options {
    const char *sysroot;
    uint64_t watch_ns;
    bool json, help;
};

#define AT(member) offsetof(struct options, member)

static const struct opt table[] = {
    {OPTION("json", OPT_FLAG, json, NULL,
            "one JSON object on stdout instead of the table (keys: docs/probe.md)")},
    {OPTION("sysroot", OPT_STRING, sysroot, "DIR",
            "read a tree recorded by scripts/record-machine, not this machine")},
    {OPTION("watch", OPT_DURATION, watch_ns, "TIME",
            "read the counters again after TIME, such as 1s, and add how they grew")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb probe: what this machine is\n"
         "\n"
         "usage: plumb probe [--json] [--sysroot DIR | --watch TIME]\n"
         "\n"
         "Shows processor, memory, PCI links, network and GPUs of this machine, whether it is\n"
         "virtual (and the evidence), and faults that limit the results.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit status: 0 good, 2 usage error, 4 incomplete: the processor could not be read, or\n"
         "the output could not be written completely");
}

static int run(const struct opts *o, void *context)
{
    const struct options *options = context;
    const char *sysroot = options->sysroot;
    bool complete;
    json_t *machine;
    int rc = -EINVAL;

    if (o->n_args)
        fprintf(stderr, "plumb probe: unexpected '%s'; probe takes options only\n", o->args[0]);
    else if (sysroot && !*sysroot)
        fprintf(stderr, "plumb probe: --sysroot needs a folder\n");
    else if ((rc = probe_machine(sysroot, &machine)))
        fprintf(stderr,
                "plumb probe: cannot read '%s': %s; give the folder that holds the tree's 'sys' "
                "and 'proc'\n",
                sysroot ? sysroot : "/", rc == -ENODATA ? "it holds neither" : strerror(-rc));
    if (rc)
        return EXIT_USAGE;
    if (options->watch_ns && !sysroot) /* a recording has a second reading of its own */
        probe_watch(machine, (double)options->watch_ns / 1e9);
    if (options->json) {
        rc = json_dumpf(machine, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        rc = probe_print(stdout, machine);
    }
    complete = json_is_integer(fact_at(machine, "cpu.threads"));
    json_decref(machine);
    if (!complete)
        fprintf(stderr,
                "plumb probe: the processor could not be read; the rest is as far as it goes\n");
    return complete && !rc ? EXIT_GOOD : EXIT_INCOMPLETE;
}

int cmd_probe(int argc, char **argv)
{
    struct options options = {.sysroot = NULL};
    const struct command command = {.name = "probe",
                                    .table = table,
                                    .options = &options,
                                    .help = &options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &options};

    return command_run(&command, argc, argv);
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
