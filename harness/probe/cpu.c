// SPDX-License-Identifier: Apache-2.0
/* What the processor is, the vector features that decide a GEMM, and who steers its clock. */
#include "harness/probe/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char freq[] = "sys/devices/system/cpu/cpufreq";

static const char *const x86_features[] = {"sse4_2",      "avx",         "fma",      "avx2",
                                           "avx_vnni",    "avx512f",     "avx512bw", "avx512_vnni",
                                           "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
                                           "amx_bf16",    "amx_fp16",    NULL};

static const char *const arm_features[] = {"asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve",
                                           "sve2",  "svei8mm", "svebf16", "sme",  NULL};

/* MIDR_EL1 implementer and part, from Linux' arch/arm64/include/asm/cputype.h. */
static const struct arm_part {
    long implementer, part;
    const char *vendor, *model;
} arm_parts[] = {
    {0x41, 0xd07, "ARM", "Cortex-A57"},   {0x41, 0xd08, "ARM", "Cortex-A72"},
    {0x41, 0xd0c, "ARM", "Neoverse-N1"},  {0x41, 0xd40, "ARM", "Neoverse-V1"},
    {0x41, 0xd49, "ARM", "Neoverse-N2"},  {0x41, 0xd4f, "ARM", "Neoverse-V2"},
    {0x41, 0xd84, "ARM", "Neoverse-V3"},  {0x41, 0xd8e, "ARM", "Neoverse-N3"},
    {0x43, 0x0af, "Cavium", "ThunderX2"}, {0x46, 0x001, "Fujitsu", "A64FX"},
    {0x48, 0xd01, "HiSilicon", "TSV110"}, {0x4e, 0x004, "NVIDIA", "Carmel"},
    {0xc0, 0xac3, "Ampere", "Ampere-1"},  {0xc0, 0xac4, "Ampere", "Ampere-1A"},
};

static void arm_name(json_t *cpu, const char *text)
{
    char implementer[32] = "", part[32] = "";

    text_field(text, "CPU implementer", implementer, sizeof(implementer));
    text_field(text, "CPU part", part, sizeof(part));
    for (size_t i = 0; i < sizeof(arm_parts) / sizeof(*arm_parts); i++) {
        if (strtol(implementer, NULL, 16) != arm_parts[i].implementer ||
            strtol(part, NULL, 16) != arm_parts[i].part)
            continue;
        fact_set_text(cpu, "vendor", arm_parts[i].vendor);
        fact_set_text(cpu, "model", arm_parts[i].model);
        return;
    }
    fact_set_unknown(cpu, "vendor", "implementer %s is not in our table", implementer);
    fact_set_unknown(cpu, "model", "implementer %s, part %s is not in our table", implementer,
                     part);
}

static void cpu_name(json_t *cpu, const char *text)
{
    char field[TREE_LINE];

    if (text_field(text, "CPU implementer", field, sizeof(field))) {
        arm_name(cpu, text);
        return;
    }
    if (text_field(text, "vendor_id", field, sizeof(field)))
        fact_set_text(cpu, "vendor", field);
    else
        fact_set_unknown(cpu, "vendor", "/proc/cpuinfo has no vendor_id");
    if (text_field(text, "model name", field, sizeof(field)) ||
        text_field(text, "cpu", field, sizeof(field)))
        fact_set_text(cpu, "model", field);
    else
        fact_set_unknown(cpu, "model", "/proc/cpuinfo has no model name");
}

/* Numbers that identify the generation where a hypervisor has cut the name short ("AMD EPYC"). */
static void cpu_family(json_t *cpu, const char *text)
{
    static const struct {
        const char *field, *key;
    } numbers[] = {{"cpu family", "family"}, {"model", "model_number"}, {"stepping", "stepping"}};
    char field[TREE_LINE];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (text_field(text, numbers[i].field, field, sizeof(field)))
            fact_set_number(cpu, numbers[i].key, strtoll(field, NULL, 0));
    if (text_field(text, "microcode", field, sizeof(field)))
        fact_set_text(cpu, "microcode", field);
}

static void cpu_features(json_t *cpu, const char *text)
{
    char words[8192];
    const char *const *features = x86_features;
    json_t *set;

    if (!text_field(text, "flags", words, sizeof(words))) {
        features = arm_features;
        if (!text_field(text, "Features", words, sizeof(words))) {
            fact_set_unknown(cpu, "features", "/proc/cpuinfo has neither flags nor Features");
            return;
        }
    }
    set = fact_object(cpu, "features");
    for (; *features; features++)
        fact_set_bool(set, *features, text_word(words, *features));
}

static void cpu_smt(struct probe *p, json_t *cpu)
{
    json_t *smt = fact_object(cpu, "smt");

    fact_set_line(smt, "control", &p->tree, "sys/devices/system/cpu/smt/control");
    fact_set_file_number(smt, "active", &p->tree, "sys/devices/system/cpu/smt/active");
}

/* Adds the line to the list unless it is there: policies mostly agree. */
static void add_distinct(json_t *list, const struct tree *tree, const char *folder,
                         const char *file)
{
    char line[TREE_LINE];
    json_t *seen;
    size_t i;

    if (tree_line_at(tree, folder, file, line, sizeof(line)))
        return;
    json_array_foreach (list, i, seen)
        if (!strcmp(json_string_value(seen), line))
            return;
    json_array_append_new(list, fact_text(line));
}

static void keep_extreme(const struct tree *tree, const char *folder, const char *file,
                         long long *value, int sign)
{
    long long now;

    if (!tree_number_at(tree, folder, file, &now) && now > 0 &&
        (*value <= 0 || sign * now > sign * *value))
        *value = now;
}

static void set_mhz(json_t *clock, const char *key, long long khz, const char *why)
{
    if (khz > 0)
        fact_set_real(clock, key, (double)khz / 1e3);
    else
        fact_set_unknown(clock, key, "%s", why);
}

/* base_frequency is intel_pstate's; others have the firmware's CPPC table, in MHz. */
static long long base_khz(const struct tree *tree, const char *policy)
{
    long long khz = 0, mhz = 0;

    keep_extreme(tree, policy, "base_frequency", &khz, 1);
    if (khz <= 0 && !tree_number(tree, "sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq", &mhz))
        khz = mhz * 1000;
    return khz;
}

static void clock_boost(struct probe *p, json_t *clock)
{
    long long value;

    if (!tree_number(&p->tree, "sys/devices/system/cpu/intel_pstate/no_turbo", &value))
        fact_set_bool(clock, "boost", !value);
    else if (!tree_number_at(&p->tree, freq, "boost", &value))
        fact_set_bool(clock, "boost", value != 0);
    else
        fact_set_unknown(clock, "boost", "the kernel shows no switch for it");
}

static void cpu_clock(struct probe *p, json_t *cpu)
{
    static const char hidden[] = "no cpufreq policy: firmware or hypervisor steers the clock";
    json_t *clock = fact_object(cpu, "clock"), *drivers, *governors, *preferences;
    long long min = 0, max = 0, base = 0;
    struct names names = {0};

    drivers = fact_list(clock, "drivers");
    governors = fact_list(clock, "governors");
    preferences = fact_list(clock, "energy_preferences");
    tree_list(&p->tree, freq, &names);
    for (size_t i = 0; i < names.count; i++) {
        struct path policy = tree_join(freq, names.name[i]);

        if (strncmp(names.name[i], "policy", 6))
            continue;
        add_distinct(drivers, &p->tree, policy.s, "scaling_driver");
        add_distinct(governors, &p->tree, policy.s, "scaling_governor");
        add_distinct(preferences, &p->tree, policy.s, "energy_performance_preference");
        keep_extreme(&p->tree, policy.s, "cpuinfo_min_freq", &min, -1);
        keep_extreme(&p->tree, policy.s, "cpuinfo_max_freq", &max, 1);
        if (!base)
            base = base_khz(&p->tree, policy.s);
    }
    names_free(&names);
    if (!json_array_size(drivers))
        fact_set_text(clock, "drivers_why", hidden);
    set_mhz(clock, "base_mhz", base, max ? "neither base_frequency nor acpi_cppc" : hidden);
    set_mhz(clock, "min_mhz", min, hidden);
    set_mhz(clock, "max_mhz", max, hidden);
    clock_boost(p, clock);
}

void probe_cpu(struct probe *p)
{
    json_t *cpu = fact_object(p->machine, "cpu");
    char text[16384];
    int rc = tree_read(&p->tree, "proc/cpuinfo", text, sizeof(text), NULL);

    if (rc) {
        fact_set_unknown(cpu, "vendor", "/proc/cpuinfo: %s", fact_errno(rc));
        fact_set_unknown(cpu, "model", "/proc/cpuinfo: %s", fact_errno(rc));
        fact_set_unknown(cpu, "features", "/proc/cpuinfo: %s", fact_errno(rc));
    } else {
        cpu_name(cpu, text);
        cpu_family(cpu, text);
        cpu_features(cpu, text);
    }
    cpu_smt(p, cpu);
    cpu_clock(p, cpu);
}
