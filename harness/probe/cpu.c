/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor is, the vector features that decide a GEMM, and who steers its clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

static const char freq[] = "sys/devices/system/cpu/cpufreq";

static const char *const x86_features[] = {"sse4_2",      "avx",         "fma",      "avx2",
                                           "avx_vnni",    "avx512f",     "avx512bw", "avx512_vnni",
                                           "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8",
                                           "amx_bf16",    "amx_fp16",    NULL};

static const char *const arm_features[] = {"asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve",
                                           "sve2",  "svei8mm", "svebf16", "sme",  NULL};

static const char *const armv7_features[] = {"neon", "vfpv3", "vfpv4", NULL};
static const char *const loongarch_features[] = {"lsx", "lasx", NULL};

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

/* MIDR_EL1 implementers, from the same file. */
static const struct {
    long implementer;
    const char *vendor;
} arm_vendors[] = {
    {0x41, "ARM"},       {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x46, "Fujitsu"},
    {0x48, "HiSilicon"}, {0x4e, "NVIDIA"},   {0x50, "APM"},    {0x51, "Qualcomm"},
    {0x53, "Samsung"},   {0x56, "Marvell"},  {0x61, "Apple"},  {0x69, "Intel"},
    {0x6d, "Microsoft"}, {0x70, "Phytium"},  {0xc0, "Ampere"},
};

static void arm_name(json_t *cpu, const char *text)
{
    char implementer[32] = "?", part[32] = "?", name[SYS_LINE] = "";
    const char *model = NULL, *vendor = NULL;

    text_field(text, "CPU implementer", implementer, sizeof(implementer));
    text_field(text, "CPU part", part, sizeof(part));
    for (size_t i = 0; i < sizeof(arm_parts) / sizeof(*arm_parts); i++)
        if (strtol(implementer, NULL, 16) == arm_parts[i].implementer &&
            strtol(part, NULL, 16) == arm_parts[i].part)
            model = arm_parts[i].model;
    if (!model && text_field(text, "model name", name, sizeof(name)))
        model = name;
    for (size_t i = 0; i < sizeof(arm_vendors) / sizeof(*arm_vendors); i++)
        if (strtol(implementer, NULL, 16) == arm_vendors[i].implementer)
            vendor = arm_vendors[i].vendor;
    fact_set_text_or(cpu, "vendor", vendor, "implementer %s is not in our table", implementer);
    fact_set_text_or(cpu, "model", model, "implementer %s, part %s is not in our table",
                     implementer, part);
}

static void cpu_name(json_t *cpu, const char *text)
{
    /* x86 has one, PowerPC, LoongArch and old ARM another. */
    static const char *const models[] = {"model name", "Model Name", "cpu", "Processor"};
    char field[SYS_LINE];
    size_t i = 0;

    if (text_field(text, "CPU implementer", field, sizeof(field))) {
        arm_name(cpu, text);
        return;
    }
    if (!text_field(text, "vendor_id", field, sizeof(field)))
        field[0] = '\0';
    fact_set_text_or(cpu, "vendor", field, "/proc/cpuinfo has no vendor_id");
    while (i < 4 && !text_field(text, models[i], field, sizeof(field)))
        i++;
    fact_set_text_or(cpu, "model", i < 4 ? field : NULL, "/proc/cpuinfo has no model name");
}

/* Numbers that identify the generation where a hypervisor has cut the name short ("AMD EPYC").
 * Other architectures use the fields for words. */
static void cpu_family(json_t *cpu, const char *text)
{
    static const struct {
        const char *field, *key;
    } numbers[] = {{"cpu family", "family"}, {"model", "model_number"}, {"stepping", "stepping"}};
    char field[SYS_LINE];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        bool there = text_field(text, numbers[i].field, field, sizeof(field));

        fact_set(cpu, numbers[i].key,
                 there && digits_number(field) >= 0 ? json_integer(digits_number(field)) : NULL,
                 "/proc/cpuinfo: \"%s\" is %s", numbers[i].field,
                 there ? "no number" : "not there");
    }
    if (!text_field(text, "microcode", field, sizeof(field)))
        field[0] = '\0';
    fact_set_text_or(cpu, "microcode", field, "/proc/cpuinfo: \"microcode\" is not there");
}

/* Which features count, by the words' own kind. */
static const char *const *features_of(const char *text, const char *words)
{
    char field[SYS_LINE];

    if (text_field(text, "CPU implementer", field, sizeof(field)) ||
        text_field(text, "Processor", field, sizeof(field)))
        return text_word(words, "asimd") || text_word(words, "fp") ? arm_features : armv7_features;
    return text_word(words, "lsx") || text_word(words, "cpucfg") ? loongarch_features
                                                                 : arm_features;
}

static void cpu_features(json_t *cpu, const char *text)
{
    char words[8192];
    const char *const *features = x86_features;
    json_t *set;

    if (!text_field(text, "flags", words, sizeof(words))) {
        if (!text_field(text, "Features", words, sizeof(words))) {
            fact_set_unknown(cpu, "features", "/proc/cpuinfo has neither flags nor Features");
            return;
        }
        features = features_of(text, words);
    }
    set = fact_object(cpu, "features");
    for (; *features; features++)
        fact_set_bool(set, *features, text_word(words, *features));
}

/* ---- clock ---- */

/* What of the policies is told, each read once. A file that one policy has and another has not
 * leaves its fact unknown: what is missing could be the extreme. */
struct policies {
    const struct probe *p;
    struct names names;
    bool none; /* known: the kernel has no policy */
    char why[SYS_LINE];
};

static void policies_read(struct policies *all, const struct probe *p)
{
    int rc = sys_list(p->root, &all->names, "%s", freq);
    size_t kept = 0;

    all->p = p;
    for (size_t i = 0; i < all->names.count; i++)
        if (!strncmp(all->names.name[i], "policy", 6)) {
            char *name = all->names.name[i];

            all->names.name[i] = all->names.name[kept];
            all->names.name[kept++] = name;
        }
    all->none = rc ? probe_absent(p, "%s", freq) : !kept;
    snprintf(all->why, sizeof(all->why), "%s",
             all->none ? "no cpufreq policy: firmware or hypervisor steers the clock" : "");
    if (rc && !all->none)
        snprintf(all->why, sizeof(all->why), "/%s: %s", freq, fact_errno(rc));
    while (all->names.count > kept)
        free(all->names.name[--all->names.count]);
}

/* The distinct lines of a file over all policies; null and why where one lacks it. */
static void set_distinct(struct policies *all, json_t *clock, const char *key, const char *file)
{
    json_t *list = json_array(), *seen;
    char line[SYS_LINE];

    for (size_t i = 0; i < all->names.count; i++) {
        struct path policy = path_join(freq, all->names.name[i]);
        bool known = false;
        size_t k;
        int rc = sys_line(all->p->root, line, sizeof(line), "%s/%s", policy.s, file);

        if (rc) {
            fact_set_unknown(clock, key, "/%s/%s: %s", policy.s, file, fact_errno(rc));
            json_decref(list);
            return;
        }
        json_array_foreach (list, k, seen)
            known = known || !strcmp(json_string_value(seen), line);
        if (!known)
            json_array_append_new(list, fact_text(line));
    }
    json_object_set_new(clock, key, list);
}

/* The lists are null where the policies are unknown, and empty where there are none. */
static void set_lists(struct policies *all, json_t *clock)
{
    static const char *const keys[][2] = {{"drivers", "scaling_driver"},
                                          {"governors", "scaling_governor"},
                                          {"energy_preferences", "energy_performance_preference"}};
    char why_key[64];

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        snprintf(why_key, sizeof(why_key), "%s_why", keys[i][0]);
        if (all->names.count)
            set_distinct(all, clock, keys[i][0], keys[i][1]);
        else if (!all->none)
            fact_set_unknown(clock, keys[i][0], "%s", all->why);
        else {
            fact_list(clock, keys[i][0]);
            fact_set_text(clock, why_key, all->why);
        }
    }
}

/* The smallest (sign -1) or largest of all policies, in kHz; 0 where one lacks it, which *lacking
 * names. */
static long long extreme_khz(const struct policies *all, const char *file, int sign,
                             struct path *lacking)
{
    long long value = 0, now;

    for (size_t i = 0; i < all->names.count; i++) {
        struct path at = path_join(path_join(freq, all->names.name[i]).s, file);

        if (sys_number(all->p->root, &now, "%s", at.s) || now <= 0) {
            *lacking = at;
            return 0;
        }
        if (!value || sign * now > sign * value)
            value = now;
    }
    return value;
}

static void set_mhz(const struct policies *all, json_t *clock, const char *key, const char *file,
                    int sign)
{
    struct path lacking = {""};
    long long khz = extreme_khz(all, file, sign, &lacking);

    if (khz)
        fact_set_real(clock, key, (double)khz / 1e3);
    else if (all->names.count)
        fact_set_unknown(clock, key, "/%s: no number there", lacking.s);
    else
        fact_set_unknown(clock, key, "%s", all->why);
}

/* base_frequency is intel_pstate's; others have the firmware's CPPC table, in MHz. */
static void set_base(const struct policies *all, json_t *clock)
{
    bool own = false;
    long long mhz;

    for (size_t i = 0; i < all->names.count; i++)
        own = own || sys_exists(all->p->root, "%s/%s/base_frequency", freq, all->names.name[i]);
    if (own ||
        sys_number(all->p->root, &mhz, "sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq") ||
        mhz <= 0)
        set_mhz(all, clock, "base_mhz", "base_frequency", 1);
    else
        fact_set_real(clock, "base_mhz", (double)mhz);
}

/* The policy that is held down most: its limit, and what its cores can do. intel_pstate has a second
 * limit, in percent. Cores of one machine may differ in their clocks. */
static void set_cap(const struct policies *all, json_t *clock)
{
    long long percent = 100, cap, own;
    double least_cap = 0, least_own = 0;

    if (sys_number(all->p->root, &percent, "sys/devices/system/cpu/intel_pstate/max_perf_pct"))
        percent = 100;
    for (size_t i = 0; i < all->names.count; i++) {
        struct path policy = path_join(freq, all->names.name[i]);

        if (sys_number(all->p->root, &cap, "%s/scaling_max_freq", policy.s) ||
            sys_number(all->p->root, &own, "%s/cpuinfo_max_freq", policy.s) || cap <= 0 ||
            own <= 0) {
            fact_set_unknown(clock, "cap_mhz|cap_of_mhz", "/%s/scaling_max_freq: no limit there",
                             policy.s);
            return;
        }
        if (cap * 100 > own * percent)
            cap = own * percent / 100;
        if (!i || (double)cap * least_own < least_cap * (double)own) {
            least_cap = (double)cap;
            least_own = (double)own;
        }
    }
    if (all->names.count) {
        fact_set_real(clock, "cap_mhz", least_cap / 1e3);
        fact_set_real(clock, "cap_of_mhz", least_own / 1e3);
    } else {
        fact_set_unknown(clock, "cap_mhz|cap_of_mhz", "%s", all->why);
    }
}

static void cpu_clock(struct probe *p, json_t *cpu)
{
    json_t *clock = fact_object(cpu, "clock");
    struct policies all = {0};
    long long off, on;

    policies_read(&all, p);
    set_lists(&all, clock);
    set_base(&all, clock);
    set_mhz(&all, clock, "min_mhz", "cpuinfo_min_freq", -1);
    set_mhz(&all, clock, "max_mhz", "cpuinfo_max_freq", 1);
    set_mhz(&all, clock, "floor_mhz", "scaling_min_freq", -1);
    set_cap(&all, clock);
    if (!sys_number(p->root, &off, "sys/devices/system/cpu/intel_pstate/no_turbo"))
        fact_set_bool(clock, "boost", !off);
    else
        fact_set(clock, "boost",
                 sys_number(p->root, &on, "%s/boost", freq) ? NULL : json_boolean(on),
                 "neither intel_pstate's no_turbo nor cpufreq's boost could be read");
    names_free(&all.names);
}

/* ---- idle states ---- */

static const char cpuidle[] = "sys/devices/system/cpu/cpuidle";
static const char first_states[] = "sys/devices/system/cpu/cpu0/cpuidle";

/* How deep an idle CPU sleeps, and what it needs to wake up: of the first CPU, as all have the same
 * driver. A list that is not whole could lack the deepest. */
static void cpu_idle(struct probe *p, json_t *cpu)
{
    static const struct fact_file files[] = {{"name", "name", FACT_LINE},
                                             {"exit_latency_us", "latency", FACT_NUMBER},
                                             {"disabled", "disable", FACT_BOOL}};
    json_t *idle = fact_object(cpu, "idle"), *states = json_array();
    struct names names;
    int rc = sys_list(p->root, &names, "%s", first_states);

    fact_set_file(p, idle, "driver", FACT_LINE, "%s/current_driver", cpuidle);
    fact_set_file(p, idle, "governor", FACT_LINE,
                  sys_exists(p->root, "%s/current_governor", cpuidle) ? "%s/current_governor"
                                                                      : "%s/current_governor_ro",
                  cpuidle);
    for (size_t i = 0; i < names.count; i++)
        if (!strncmp(names.name[i], "state", 5) && digits_number(names.name[i] + 5) >= 0) {
            json_t *state = fact_append(states);
            fact_set_number(state, "index", digits_number(names.name[i] + 5));
            fact_set_files(p, state, path_join(first_states, names.name[i]).s, FACT_FILES(files));
        }
    fact_set_if(idle, "states", !rc || probe_absent(p, "%s", first_states), states, "/%s: %s",
                first_states, fact_errno(rc));
    names_free(&names);
}

void probe_cpu(struct probe *p)
{
    static const char isolated[] = "sys/devices/system/cpu/isolated";
    json_t *cpu = fact_object(p->machine, "cpu");
    char text[65536];
    int rc = read_cpuinfo(p, text, sizeof(text));

    if (rc) {
        fact_set_unknown(cpu, "vendor|model|family|model_number|stepping|microcode|features",
                         "/proc/cpuinfo: %s", fact_errno(rc));
    } else {
        cpu_name(cpu, text);
        cpu_family(cpu, text);
        cpu_features(cpu, text);
    }
    json_t *smt = fact_object(cpu, "smt");

    fact_set_file(p, smt, "control", FACT_LINE, "sys/devices/system/cpu/smt/control");
    fact_set_file(p, smt, "active", FACT_NUMBER, "sys/devices/system/cpu/smt/active");
    cpu_clock(p, cpu);
    cpu_idle(p, cpu);
    /* CPUs on which the scheduler places nothing by itself: "" none. */
    rc = sys_line(p->root, text, SYS_LINE, "%s", isolated);
    fact_set(cpu, "isolated_cpus", !rc || rc == -ENODATA ? fact_text(text) : NULL, "/%s: %s",
             isolated, fact_errno(rc));
}
