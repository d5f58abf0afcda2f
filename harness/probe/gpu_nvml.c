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

/* key: the value of a call that was answered, or null and why. */
static void put(json_t *object, const char *key, int status, json_t *value)
{
    fact_set_if(object, key, !status, value, "%s", nvml_why(status));
}

#define SET(object, key, call, value)                                                              \
    do {                                                                                           \
        int status_ = (call);                                                                      \
        put(object, key, status_, status_ ? NULL : (value));                                       \
    } while (0)
#define NUMBER(value) json_integer((json_int_t)(value))
#define WATTS(value)  fact_real((value) / 1e3)

/* The name for a number of NVML's; null where there is none for it. */
static void set_name(json_t *object, const char *key, int status, unsigned value,
                     const char *const *names, size_t count)
{
    if (!status && (value >= count || !names[value]))
        fact_set_unknown(object, key, "NVML says %u, which is not known here", value);
    else
        put(object, key, status, status ? NULL : fact_text(names[value]));
}

#define NAMES(names) (names), sizeof(names) / sizeof(*(names))

/* 12040 is 12.4 */
static json_t *version_of(int version)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    return fact_text(text);
}

void nvml_fill_system(const struct nvml *nvml, json_t *gpus)
{
    struct nvml_confidential state = {0};
    char text[SYS_LINE] = "";
    int cuda = 0;

    fact_set_text_or(gpus, "driver_version",
                     NVML_ASK(nvml, driver_version, text, sizeof(text)) ? text : NULL,
                     "NVML does not say");
    json_object_set_new(gpus, "cuda_version",
                        NVML_ASK(nvml, cuda_version, &cuda) ? version_of(cuda) : json_null());
    SET(gpus, "confidential_computing", NVML_CALL(nvml, confidential, &state),
        json_boolean(state.feature));
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

/* BAR1: the window through which other devices reach the GPU's memory. */
static void fill_memory(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    struct nvml_memory memory = {0}, bar1 = {0};
    unsigned bits = 0, mhz = 0;
    int status = NVML_CALL(nvml, memory, device, &memory),
        bus = NVML_CALL(nvml, bus_width, device, &bits),
        clock = NVML_CALL(nvml, max_clock, device, NVML_CLOCK_MEMORY, &mhz);
    unsigned long long total = status ? 0 : memory.total;

    SET(gpu, "memory_bytes", status, NUMBER(total));
    SET(gpu, "memory_bus_bits", bus, NUMBER(bits));
    SET(gpu, "memory_max_mhz", clock, NUMBER(mhz));
    fact_set(gpu, "memory_gbytes_per_s",
             !bus && !clock && bits && mhz ? fact_real(2.0 * mhz * 1e6 * bits / 8 / 1e9) : NULL,
             "NVML gives no memory clock or bus width");
    status = NVML_CALL(nvml, bar1, device, &bar1);
    if (status || !bar1.total) {
        fact_set_unknown(gpu, "bar1_bytes", "%s", nvml_why(status));
        return;
    }
    fact_set_number(gpu, "bar1_bytes", (long long)bar1.total);
    if (total)
        fact_set_bool(gpu, "bar1_covers_memory", bar1.total >= total);
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

static void fill_engine(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const modes[] = {"default", NULL, "prohibited", "exclusive process"};
    int major = 0, minor = 0, status;
    unsigned cores = 0, value = 0, each;

    SET(gpu, "compute_capability", NVML_CALL(nvml, capability, device, &major, &minor),
        version_of(major * 1000 + minor * 10));
    status = NVML_CALL(nvml, cores, device, &cores);
    each = cores_per_sm(major, minor);
    if (!status && (!each || cores % each))
        fact_set_unknown(gpu, "sms", "how many of its %u cores make a multiprocessor is not known",
                         cores);
    else
        put(gpu, "sms", status, status ? NULL : NUMBER(cores / each));
    SET(gpu, "sm_max_mhz", NVML_CALL(nvml, max_clock, device, NVML_CLOCK_SM, &value),
        NUMBER(value));
    status = NVML_CALL(nvml, compute_mode, device, &value);
    set_name(gpu, "compute_mode", status, value, NAMES(modes));
    SET(gpu, "persistence_mode", NVML_CALL(nvml, persistence, device, &value), json_boolean(value));
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
    json_t *list = json_array();

    if (status)
        status = NVML_CALL(nvml, reasons_old, device, &bits);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (bits & reasons[i].bit)
            json_array_append_new(list, fact_text(reasons[i].name));
    put(gpu, "clock_reasons", status, list);
}

/* Seconds for which its clocks were held down, since the driver was loaded, by each reason. What this
 * GPU does not count is no key. */
static void fill_held(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const keys[] = {[NVML_HELD_POWER] = "held_by_power_seconds",
                                       [NVML_HELD_HEAT] = "held_by_heat_seconds",
                                       [NVML_HELD_HARDWARE_HEAT] = "held_by_hardware_heat_seconds",
                                       [NVML_HELD_POWER_BRAKE] = "held_by_power_brake_seconds",
                                       [NVML_HELD_BOARD_LIMIT] = "held_by_board_limit_seconds",
                                       [NVML_HELD_RELIABILITY] = "held_by_reliability_seconds"};
    json_t *counters = json_object();
    int status = NVML_UNSUPPORTED;

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        double ns;
        int answer = nvml_held_ns(nvml, device, (enum nvml_held)i, &ns);

        if (answer)
            status = answer;
        else
            fact_set_real(counters, keys[i], ns / 1e9);
    }
    put(gpu, "counters", json_object_size(counters) ? 0 : status, counters);
}

void nvml_fill_counters(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    fill_held(nvml, device, gpu);
    json_t *pcie = fact_object(gpu, "pcie");
    unsigned n = 0;

    SET(pcie, "generation", NVML_CALL(nvml, pcie_generation, device, &n), NUMBER(n));
    SET(pcie, "max_generation", NVML_CALL(nvml, pcie_generation_max, device, &n), NUMBER(n));
    SET(pcie, "width", NVML_CALL(nvml, pcie_width, device, &n), NUMBER(n));
    SET(pcie, "max_width", NVML_CALL(nvml, pcie_width_max, device, &n), NUMBER(n));
    SET(pcie, "replays", NVML_CALL(nvml, pcie_replays, device, &n), NUMBER(n));
}

static void fill_ecc_errors(const struct nvml *nvml, struct nvml_device *device, json_t *errors)
{
    static const struct {
        const char *key;
        int kind, scope;
    } counts[] = {{"corrected", NVML_CORRECTED, NVML_SINCE_LOAD},
                  {"uncorrected", NVML_UNCORRECTED, NVML_SINCE_LOAD},
                  {"corrected_ever", NVML_CORRECTED, NVML_EVER},
                  {"uncorrected_ever", NVML_UNCORRECTED, NVML_EVER}};
    unsigned long long n = 0;

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        SET(errors, counts[i].key,
            NVML_CALL(nvml, ecc_total, device, counts[i].kind, counts[i].scope, &n), NUMBER(n));
}

/* Rows of memory that were found bad and replaced by spare ones, too. */
static void fill_ecc(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned now = 0, next = 0, factory = 0, corrected = 0, uncorrected = 0, pending = 0,
             failed = 0;
    int status = NVML_CALL(nvml, ecc, device, &now, &next);

    SET(gpu, "ecc", status, json_boolean(now));
    SET(gpu, "ecc_default", NVML_CALL(nvml, ecc_default, device, &factory), json_boolean(factory));
    if (!status && now != next)
        fact_set_bool(gpu, "ecc_after_reboot", next != 0);
    if (!status && now)
        fill_ecc_errors(nvml, device, fact_object(gpu, "ecc_errors"));
    else
        fact_set_unknown(gpu, "ecc_errors", "%s", status ? nvml_why(status) : "ECC is off");
    SET(gpu, "remapped_rows",
        NVML_CALL(nvml, remapped_rows, device, &corrected, &uncorrected, &pending, &failed),
        json_pack("{s:I, s:I, s:b, s:b}", "corrected", (json_int_t)corrected, "uncorrected",
                  (json_int_t)uncorrected, "pending", pending != 0, "failed", failed != 0));
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
    fact_set(fabric, "degraded",
             (info.health & 3) == 1 || (info.health & 3) == 2 ? json_boolean((info.health & 3) == 1)
                                                              : NULL,
             "NVML gives no health of the fabric");
}

static void fill_instance(const struct nvml *nvml, struct nvml_device *instance, json_t *json)
{
    struct nvml_attributes a = {0};
    struct nvml_memory memory = {0};
    char name[96] = "";

    fact_set_text_or(json, "name", NVML_ASK(nvml, name, instance, name, sizeof(name)) ? name : NULL,
                     "NVML does not say");
    fact_set(json, "memory_bytes",
             NVML_ASK(nvml, memory, instance, &memory) ? json_integer((long long)memory.total)
                                                       : NULL,
             "NVML gives no answer");
    if (NVML_ASK(nvml, attributes, instance, &a))
        json_object_update_new(json, json_pack("{s:i, s:i, s:i, s:i}", "sms", a.sms, "copy_engines",
                                               a.copy_engines, "slices", a.slices, "compute_slices",
                                               a.compute_slices));
    else
        fact_set_unknown(json, "sms", "NVML gives no attributes of the slice");
    fact_set_text(json, "nature", "mig");
}

static void fill_mig(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned now = 0, pending = 0, count = 0;
    struct nvml_device *instance = NULL;
    int status = NVML_CALL(nvml, mig_mode, device, &now, &pending);
    json_t *list = json_array();

    SET(gpu, "mig", status, json_pack("{s:b, s:O}", "enabled", now != 0, "instances", list));
    for (unsigned i = 0; !status && now && (i || NVML_ASK(nvml, mig_count, device, &count)) &&
                         i < count && i < INSTANCES_MAX;
         i++)
        if (NVML_ASK(nvml, mig_handle, device, i, &instance)) {
            json_array_append_new(list, json_object());
            fill_instance(nvml, instance, json_array_get(list, json_array_size(list) - 1));
        }
    json_decref(list);
}

void nvml_fill_gpu(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    static const char *const modes[] = {"none", "passthrough", "vgpu", "host-vgpu", "host-vsga"};
    char name[96] = "";
    unsigned mode = 0, mw = 0, least = 0, most = 0;
    int status;

    if (NVML_ASK(nvml, name, device, name, sizeof(name))) {
        json_object_del(gpu, "name_why");
        fact_set_text(gpu, "name", name);
    }
    fill_memory(nvml, device, gpu);
    fill_engine(nvml, device, gpu);
    SET(gpu, "power_limit_watts", NVML_CALL(nvml, power_limit, device, &mw), WATTS(mw));
    SET(gpu, "power_default_watts", NVML_CALL(nvml, power_default, device, &mw), WATTS(mw));
    status = NVML_CALL(nvml, power_range, device, &least, &most);
    SET(gpu, "power_min_watts", status, WATTS(least));
    SET(gpu, "power_max_watts", status, WATTS(most));
    fill_clock_reasons(nvml, device, gpu);
    nvml_fill_counters(nvml, device, gpu);
    fill_ecc(nvml, device, gpu);
    status = NVML_CALL(nvml, virtualization, device, &mode);
    set_name(gpu, "virtualization", status, mode, NAMES(modes));
    fill_mig(nvml, device, gpu);
    nvml_fill_links(nvml, device, gpu);
    fill_fabric(nvml, device, gpu);
}

/* What CUDA shows to a program of this build, and which toolkit this machine has. Nothing is
 * started on a GPU: only the driver is asked. */

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
    if (version)
        json_object_set_new(object, key, version_of(version));
    else
        fact_set_unknown(object, key, "the module does not say");
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
    if (fact_true(gpu, "mig.enabled"))
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
        gpu = (json_t *)fact_one_of(list, "address", facts.address);
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
    text = fact_string(all, "cuda.version");
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
    else
        fact_set(gpus, "toolkit_version",
                 version_of_json(folder, version, sizeof(version)) ||
                         version_of_header(folder, version, sizeof(version))
                     ? fact_text(version)
                     : NULL,
                 "%s has neither version.json nor include/cuda.h", folder);
}

void probe_cuda(struct probe *p, json_t *gpus)
{
    static const char why[] = "CUDA cannot be asked about a recorded machine";
    json_t *cuda = fact_object(gpus, "cuda");

    if (!p->root) {
        find_toolkit(gpus);
        ask_module(gpus, cuda);
        return;
    }
    fact_set_unknown(gpus, "toolkit_version", "%s", why);
    fact_set_unknown(cuda, "works", "%s", why);
}
