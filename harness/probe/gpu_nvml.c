/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of one GPU. Every question may go unanswered: older drivers lack some, and vGPUs
 * and slices of MIG answer few. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hw/gpu.h"
#include "harness/probe/facts.h"

enum { INSTANCES_MAX = 16 };

typedef int ask_number(struct nvml_device *, unsigned *);

/* key: the number, or null and why. */
static int set_number(json_t *object, const char *key, ask_number *ask, struct nvml_device *device)
{
    unsigned value = 0;
    int status = ask ? ask(device, &value) : NVML_NO_FUNCTION;

    if (status)
        fact_set_unknown(object, key, "%s", nvml_why(status));
    else
        fact_set_number(object, key, value);
    return status;
}

static void set_watts(json_t *object, const char *key, int status, unsigned milliwatts)
{
    if (status)
        fact_set_unknown(object, key, "%s", nvml_why(status));
    else
        fact_set_real(object, key, milliwatts / 1e3);
}

static void set_bool(json_t *object, const char *key, int status, unsigned value)
{
    if (status)
        fact_set_unknown(object, key, "%s", nvml_why(status));
    else
        fact_set_bool(object, key, value != 0);
}

/* The name for a number of NVML's; null where there is none for it. */
static void set_name(json_t *object, const char *key, int status, unsigned value,
                     const char *const *names, size_t count)
{
    if (!status && value < count && names[value])
        fact_set_text(object, key, names[value]);
    else if (status)
        fact_set_unknown(object, key, "%s", nvml_why(status));
    else
        fact_set_unknown(object, key, "NVML says %u, which is not known here", value);
}

#define NAMES(names) (names), sizeof(names) / sizeof(*(names))

void nvml_fill_system(const struct nvml *nvml, json_t *gpus)
{
    struct nvml_confidential state = {0};
    char text[TREE_LINE] = "";
    int cuda = 0, status;

    fact_set_text_or(gpus, "driver_version",
                     NVML_ASK(nvml, driver_version, text, sizeof(text)) ? text : NULL,
                     "NVML does not say");
    status = NVML_CALL(nvml, cuda_version, &cuda);
    snprintf(text, sizeof(text), "%d.%d", cuda / 1000, cuda % 1000 / 10); /* 12040 is 12.4 */
    fact_set_text(gpus, "cuda_version", status ? NULL : text);
    status = NVML_CALL(nvml, confidential, &state);
    set_bool(gpus, "confidential_computing", status, state.feature);
}

unsigned nvml_count(const struct nvml *nvml)
{
    unsigned count = 0;

    return NVML_ASK(nvml, count, &count) ? count : 0;
}

int nvml_address(const struct nvml *nvml, unsigned index, char *buf, size_t size)
{
    struct nvml_device *device = NULL;
    struct nvml_pci info = {.legacy_id = ""};

    if (!NVML_ASK(nvml, by_index, index, &device) || !NVML_ASK(nvml, pci, device, &info))
        return -ENODEV;
    snprintf(buf, size, "%04x:%02x:%02x.0", info.domain, info.bus, info.device);
    return 0;
}

static void fill_pcie(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    json_t *pcie = fact_object(gpu, "pcie");

    set_number(pcie, "generation", nvml->pcie_generation, device);
    set_number(pcie, "max_generation", nvml->pcie_generation_max, device);
    set_number(pcie, "width", nvml->pcie_width, device);
    set_number(pcie, "max_width", nvml->pcie_width_max, device);
    set_number(pcie, "replays", nvml->pcie_replays, device);
}

static void fill_memory(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    struct nvml_memory memory = {0};
    unsigned bits = 0, mhz = 0;
    int status = NVML_CALL(nvml, memory, device, &memory), clock;

    if (status)
        fact_set_unknown(gpu, "memory_bytes", "%s", nvml_why(status));
    else
        fact_set_number(gpu, "memory_bytes", (long long)memory.total);
    status = set_number(gpu, "memory_bus_bits", nvml->bus_width, device);
    bits = (unsigned)fact_integer(gpu, "memory_bus_bits", 0);
    clock = NVML_CALL(nvml, max_clock, device, NVML_CLOCK_MEMORY, &mhz);
    if (clock)
        fact_set_unknown(gpu, "memory_max_mhz", "%s", nvml_why(clock));
    else
        fact_set_number(gpu, "memory_max_mhz", mhz);
    if (!status && !clock && bits && mhz)
        fact_set_real(gpu, "memory_gbytes_per_s", 2.0 * mhz * 1e6 * bits / 8 / 1e9);
    else
        fact_set_unknown(gpu, "memory_gbytes_per_s", "NVML gives no memory clock or bus width");
}

/* The window through which other devices reach the GPU's memory. */
static void fill_bar1(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    struct nvml_memory bar1 = {0};
    long long memory = fact_integer(gpu, "memory_bytes", 0);
    int status = NVML_CALL(nvml, bar1, device, &bar1);

    if (status || !bar1.total) {
        fact_set_unknown(gpu, "bar1_bytes", "%s", nvml_why(status));
        return;
    }
    fact_set_number(gpu, "bar1_bytes", (long long)bar1.total);
    if (memory)
        fact_set_bool(gpu, "bar1_covers_memory", (long long)bar1.total >= memory);
}

/* Cores of a multiprocessor, by compute capability (CUDA C++ Programming Guide, arithmetic
 * throughput of 32-bit floating-point addition per clock). */
static unsigned cores_per_sm(int major, int minor)
{
    static const struct {
        int major, minor;
        unsigned cores;
    } table[] = {{6, 0, 64},   {6, 1, 128},  {6, 2, 128},  {7, 0, 64},   {7, 2, 64},  {7, 5, 64},
                 {8, 0, 64},   {8, 6, 128},  {8, 7, 128},  {8, 9, 128},  {9, 0, 128}, {10, 0, 128},
                 {10, 1, 128}, {10, 3, 128}, {11, 0, 128}, {12, 0, 128}, {12, 1, 128}};

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].major == major && table[i].minor == minor)
            return table[i].cores;
    return 0;
}

static void fill_sms(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    int major = 0, minor = 0, status = NVML_CALL(nvml, capability, device, &major, &minor);
    unsigned cores = 0, each = cores_per_sm(major, minor);
    char text[32];

    snprintf(text, sizeof(text), "%d.%d", major, minor);
    if (status)
        fact_set_unknown(gpu, "compute_capability", "%s", nvml_why(status));
    else
        fact_set_text(gpu, "compute_capability", text);
    status = NVML_CALL(nvml, cores, device, &cores);
    if (status)
        fact_set_unknown(gpu, "sms", "%s", nvml_why(status));
    else if (!each || cores % each)
        fact_set_unknown(gpu, "sms", "how many of its %u cores make a multiprocessor is not known",
                         cores);
    else
        fact_set_number(gpu, "sms", cores / each);
}

static void fill_engine(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const modes[] = {"default", NULL, "prohibited", "exclusive process"};
    unsigned value = 0;
    int status;

    fill_sms(nvml, device, gpu);
    status = NVML_CALL(nvml, max_clock, device, NVML_CLOCK_SM, &value);
    if (status)
        fact_set_unknown(gpu, "sm_max_mhz", "%s", nvml_why(status));
    else
        fact_set_number(gpu, "sm_max_mhz", value);
    status = NVML_CALL(nvml, compute_mode, device, &value);
    set_name(gpu, "compute_mode", status, value, NAMES(modes));
    status = NVML_CALL(nvml, persistence, device, &value);
    set_bool(gpu, "persistence_mode", status, value);
}

static void fill_power(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned least = 0, most = 0;
    int status = NVML_CALL(nvml, power_limit, device, &most);

    set_watts(gpu, "power_limit_watts", status, most);
    status = NVML_CALL(nvml, power_default, device, &most);
    set_watts(gpu, "power_default_watts", status, most);
    status = NVML_CALL(nvml, power_range, device, &least, &most);
    set_watts(gpu, "power_min_watts", status, least);
    set_watts(gpu, "power_max_watts", status, most);
}

/* What keeps the clocks down now, of those reasons that take speed; "idle" stands beside them. */
static void fill_clock_reasons(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const struct {
        unsigned long long bit;
        const char *name;
    } reasons[] = {{NVML_REASON_IDLE, "idle"},
                   {NVML_REASON_APPLICATION_CLOCKS, "application clocks"},
                   {NVML_REASON_POWER_CAP, "power cap"},
                   {NVML_REASON_HW_SLOWDOWN, "hardware slowdown"},
                   {NVML_REASON_SYNC_BOOST, "sync boost"},
                   {NVML_REASON_SW_THERMAL, "temperature (driver)"},
                   {NVML_REASON_HW_THERMAL, "temperature (hardware)"},
                   {NVML_REASON_POWER_BRAKE, "power brake"},
                   {NVML_REASON_DISPLAY_CLOCKS, "display clocks"}};
    unsigned long long bits = 0;
    int status = NVML_CALL(nvml, reasons, device, &bits);
    json_t *list;

    if (status)
        status = NVML_CALL(nvml, reasons_old, device, &bits);
    if (status) {
        fact_set_unknown(gpu, "clock_reasons", "%s", nvml_why(status));
        return;
    }
    list = fact_list(gpu, "clock_reasons");
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (bits & reasons[i].bit)
            json_array_append_new(list, fact_text(reasons[i].name));
}

/* Seconds for which its clocks were held down, since the driver was loaded, by each reason. What this
 * GPU does not count is no key. */
static void fill_held(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const struct {
        const char *key;
        enum nvml_held what;
    } counts[] = {{"held_by_power_seconds", NVML_HELD_POWER},
                  {"held_by_heat_seconds", NVML_HELD_HEAT},
                  {"held_by_hardware_heat_seconds", NVML_HELD_HARDWARE_HEAT},
                  {"held_by_power_brake_seconds", NVML_HELD_POWER_BRAKE},
                  {"held_by_board_limit_seconds", NVML_HELD_BOARD_LIMIT},
                  {"held_by_reliability_seconds", NVML_HELD_RELIABILITY}};
    json_t *counters = json_object();
    int status = NVML_UNSUPPORTED;

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        double ns;
        int answer = nvml_held_ns(nvml, device, counts[i].what, &ns);

        if (answer)
            status = answer;
        else
            fact_set_real(counters, counts[i].key, ns / 1e9);
    }
    if (json_object_size(counters))
        json_object_set(gpu, "counters", counters);
    else
        fact_set_unknown(gpu, "counters", "%s", nvml_why(status));
    json_decref(counters);
}

void nvml_fill_counters(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    fill_held(nvml, device, gpu);
    fill_pcie(nvml, device, gpu);
}

static void fill_ecc_errors(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const struct {
        const char *key;
        int kind, scope;
    } counts[] = {{"corrected", NVML_CORRECTED, NVML_SINCE_LOAD},
                  {"uncorrected", NVML_UNCORRECTED, NVML_SINCE_LOAD},
                  {"corrected_ever", NVML_CORRECTED, NVML_EVER},
                  {"uncorrected_ever", NVML_UNCORRECTED, NVML_EVER}};
    json_t *errors = fact_object(gpu, "ecc_errors");

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        unsigned long long count = 0;
        int status = NVML_CALL(nvml, ecc_total, device, counts[i].kind, counts[i].scope, &count);

        if (status)
            fact_set_unknown(errors, counts[i].key, "%s", nvml_why(status));
        else
            fact_set_number(errors, counts[i].key, (long long)count);
    }
}

/* Rows of memory that were found bad and replaced by spare ones. */
static void fill_remapped(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    int status =
        NVML_CALL(nvml, remapped_rows, device, &corrected, &uncorrected, &pending, &failed);
    json_t *rows;

    if (status) {
        fact_set_unknown(gpu, "remapped_rows", "%s", nvml_why(status));
        return;
    }
    rows = fact_object(gpu, "remapped_rows");
    fact_set_number(rows, "corrected", corrected);
    fact_set_number(rows, "uncorrected", uncorrected);
    fact_set_bool(rows, "pending", pending != 0);
    fact_set_bool(rows, "failed", failed != 0);
}

static void fill_ecc(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned now = 0, pending = 0, factory = 0;
    int status = NVML_CALL(nvml, ecc, device, &now, &pending), status_default;

    set_bool(gpu, "ecc", status, now);
    status_default = NVML_CALL(nvml, ecc_default, device, &factory);
    set_bool(gpu, "ecc_default", status_default, factory);
    if (!status && now != pending)
        fact_set_bool(gpu, "ecc_after_reboot", pending != 0);
    if (!status && now)
        fill_ecc_errors(nvml, device, gpu);
    else
        fact_set_unknown(gpu, "ecc_errors", "%s", status ? nvml_why(status) : "ECC is off");
    fill_remapped(nvml, device, gpu);
}

static void fill_virtualization(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const modes[] = {"none", "passthrough", "vgpu", "host-vgpu", "host-vsga"};
    unsigned mode = 0;
    int status = NVML_CALL(nvml, virtualization, device, &mode);

    set_name(gpu, "virtualization", status, mode, NAMES(modes));
}

/* NVSwitches and GPUs make a fabric, which a service on the machine must have set up. */
static void fill_fabric(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const states[] = {NULL, "not started", "in progress", "completed"};
    struct nvml_fabric info;
    int status = nvml_fabric(nvml, device, &info);
    json_t *fabric;

    if (status || !info.state) {
        fact_set_unknown(gpu, "fabric", "%s", status ? nvml_why(status) : "not part of a fabric");
        return;
    }
    fabric = fact_object(gpu, "fabric");
    set_name(fabric, "state", 0, info.state, NAMES(states));
    fact_set_number(fabric, "status", info.status);
    fact_set_number(fabric, "clique", info.clique);
    /* Two bits: 1 yes, 2 no, 0 not told. */
    if ((info.health & 3) == 1 || (info.health & 3) == 2)
        fact_set_bool(fabric, "degraded", (info.health & 3) == 1);
    else
        fact_set_unknown(fabric, "degraded", "NVML gives no health of the fabric");
}

static void fill_instance(const struct nvml *nvml, struct nvml_device *instance, json_t *list)
{
    struct nvml_attributes a = {0};
    struct nvml_memory memory = {0};
    char name[96] = "";
    json_t *json = json_object();
    bool answered = NVML_ASK(nvml, name, instance, name, sizeof(name));

    json_array_append_new(list, json);
    fact_set_text_or(json, "name", answered ? name : NULL, "NVML does not say");
    if (NVML_ASK(nvml, memory, instance, &memory))
        fact_set_number(json, "memory_bytes", (long long)memory.total);
    else
        fact_set_unknown(json, "memory_bytes", "NVML gives no answer");
    if (NVML_ASK(nvml, attributes, instance, &a)) {
        fact_set_number(json, "sms", a.sms);
        fact_set_number(json, "copy_engines", a.copy_engines);
        fact_set_number(json, "slices", a.slices);
        fact_set_number(json, "compute_slices", a.compute_slices);
    } else {
        fact_set_unknown(json, "sms", "NVML gives no attributes of the slice");
    }
    fact_set_text(json, "nature", "mig");
}

static void fill_mig(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned now = 0, pending = 0, count = 0;
    struct nvml_device *instance = NULL;
    int status = NVML_CALL(nvml, mig_mode, device, &now, &pending);
    json_t *mig, *list;

    if (status) {
        fact_set_unknown(gpu, "mig", "%s", nvml_why(status));
        return;
    }
    mig = fact_object(gpu, "mig");
    fact_set_bool(mig, "enabled", now != 0);
    list = fact_list(mig, "instances");
    if (!now || !NVML_ASK(nvml, mig_count, device, &count))
        return;
    for (unsigned i = 0; i < count && i < INSTANCES_MAX; i++)
        if (NVML_ASK(nvml, mig_handle, device, i, &instance))
            fill_instance(nvml, instance, list);
}

void nvml_fill_gpu(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    char name[96] = "";

    if (NVML_ASK(nvml, name, device, name, sizeof(name))) {
        json_object_del(gpu, "name_why");
        fact_set_text(gpu, "name", name);
    }
    fill_memory(nvml, device, gpu);
    fill_bar1(nvml, device, gpu);
    fill_engine(nvml, device, gpu);
    fill_power(nvml, device, gpu);
    fill_clock_reasons(nvml, device, gpu);
    nvml_fill_counters(nvml, device, gpu);
    fill_ecc(nvml, device, gpu);
    fill_virtualization(nvml, device, gpu);
    fill_mig(nvml, device, gpu);
    nvml_fill_links(nvml, device, gpu);
    fill_fabric(nvml, device, gpu);
}

/* What CUDA shows to a program of this build, and which toolkit this machine has. Nothing is
 * started on a GPU: only the driver is asked. */

static json_t *find_gpu(const json_t *list, const char *address)
{
    json_t *gpu;
    size_t i;

    json_array_foreach (list, i, gpu)
        if (!strcmp(fact_string(gpu, "address"), address))
            return gpu;
    return NULL;
}

/* Replaces null and its why; leaves what is known. */
static void settle(json_t *gpu, const char *key, json_t *value)
{
    char why[64];

    if (json_is_null(json_object_get(gpu, key)) || !json_object_get(gpu, key)) {
        snprintf(why, sizeof(why), "%s_why", key);
        json_object_del(gpu, why);
        json_object_set(gpu, key, value);
    }
    json_decref(value);
}

static void set_version(json_t *object, const char *key, int version)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    fact_set_text_or(object, key, version ? text : NULL, "the module does not say");
}

/* Of a GPU with MIG a program is given one slice: its figures are not the GPU's. */
static void fill_device(json_t *gpu, const struct gpu_ops *ops, unsigned index,
                        const struct gpu_facts *f)
{
    char text[32];

    snprintf(text, sizeof(text), "%s:%u", ops->name, index);
    fact_set_text(gpu, "cuda", text);
    fact_set_number(gpu, "cuda_sms", f->sms);
    fact_set_number(gpu, "copy_engines", f->copy_engines);
    fact_set_number(gpu, "l2_bytes", (long long)f->l2_bytes);
    if (f->numa_node >= 0)
        settle(gpu, "numa_node", json_integer(f->numa_node));
    if (fact_true(json_object_get(gpu, "mig"), "enabled"))
        return;
    snprintf(text, sizeof(text), "%u.%u", f->major, f->minor);
    settle(gpu, "compute_capability", fact_text(text));
    settle(gpu, "sms", json_integer(f->sms));
    settle(gpu, "memory_bytes", json_integer((json_int_t)f->memory_bytes));
}

static void fill_devices(json_t *gpus, struct gpus *opened, const struct gpu_ops *ops, json_t *cuda)
{
    json_t *list = json_object_get(gpus, "devices");
    unsigned count = gpus_count(opened);
    struct gpu_facts facts;

    fact_set_number(cuda, "devices", count);
    for (unsigned i = 0; i < count; i++) {
        json_t *gpu;

        if (ops->facts(i, &facts) || !facts.address[0])
            continue;
        set_version(cuda, "toolkit_version", facts.toolkit_version);
        set_version(cuda, "driver_version", facts.driver_version);
        gpu = find_gpu(list, facts.address);
        if (!gpu) {
            gpu = gpu_add_unseen(list, facts.address, "cuda");
            if (fact_true(cuda, "simulated"))
                fact_set_text(gpu, "nature", "simulated");
        }
        settle(gpu, "name", fact_text(facts.name));
        fill_device(gpu, ops, i, &facts);
    }
}

static void ask_module(json_t *gpus, json_t *cuda)
{
    struct gpus *opened = gpus_open();
    const char *why;
    const struct gpu_ops *ops = gpus_module(opened, &why);

    fact_set_bool(cuda, "works", ops != NULL);
    if (!ops)
        fact_set_text(cuda, "works_why", why);
    else if (!strcmp(ops->origin(), "simulated")) {
        fact_set_bool(cuda, "simulated", true);
        fact_set_bool(gpus, "simulated", true);
    }
    if (ops)
        fill_devices(gpus, opened, ops, cuda);
    gpus_close(opened);
}

/* The folder of the toolkit: $CUDA_HOME, $CUDA_PATH, or where the first nvcc on the path lies. */
static bool toolkit_folder(char *folder, size_t size)
{
    static const char *const given[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *path = getenv("PATH");
    char file[PATH_MAX], real[PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        const char *home = getenv(given[i]);

        if (home && *home && snprintf(folder, size, "%s", home) < (int)size)
            return true;
    }
    while (path && *path) {
        size_t n = strcspn(path, ":");

        snprintf(file, sizeof(file), "%.*s/nvcc", (int)n, path);
        if (n && !access(file, X_OK) && realpath(file, real)) {
            *strrchr(real, '/') = 0;
            return snprintf(folder, size, "%s/..", real) < (int)size;
        }
        path += n + (path[n] == ':');
    }
    return false;
}

static bool version_of_json(const char *folder, char *version, size_t size)
{
    char path[PATH_MAX + 16];
    json_t *all;
    const char *text;

    snprintf(path, sizeof(path), "%s/version.json", folder);
    all = json_load_file(path, 0, NULL);
    text = fact_string(json_object_get(all, "cuda"), "version");
    if (text)
        snprintf(version, size, "%s", text);
    json_decref(all);
    return text != NULL;
}

/* "#define CUDA_VERSION 13000": 13.0 */
static bool version_of_header(const char *folder, char *version, size_t size)
{
    char path[PATH_MAX + 16], line[512];
    int number = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/include/cuda.h", folder);
    f = fopen(path, "re");
    while (f && !number && fgets(line, sizeof(line), f))
        if (sscanf(line, "#define CUDA_VERSION %9d", &number) != 1)
            number = 0;
    if (f)
        fclose(f);
    snprintf(version, size, "%d.%d", number / 1000, number % 1000 / 10);
    return number > 0;
}

static void find_toolkit(json_t *gpus)
{
    char folder[PATH_MAX], version[32];

    if (!toolkit_folder(folder, sizeof(folder)))
        fact_set_unknown(gpus, "toolkit_version", "no nvcc on the path, and no CUDA_HOME");
    else if (version_of_json(folder, version, sizeof(version)) ||
             version_of_header(folder, version, sizeof(version)))
        fact_set_text(gpus, "toolkit_version", version);
    else
        fact_set_unknown(gpus, "toolkit_version", "%s has neither version.json nor include/cuda.h",
                         folder);
}

void probe_cuda(struct probe *p, json_t *gpus)
{
    static const char why[] = "CUDA cannot be asked about a recorded machine";
    json_t *cuda = fact_object(gpus, "cuda");

    if (p->tree.live) {
        find_toolkit(gpus);
        ask_module(gpus, cuda);
        return;
    }
    fact_set_unknown(gpus, "toolkit_version", "%s", why);
    fact_set_unknown(cuda, "works", "%s", why);
}
