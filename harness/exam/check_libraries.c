/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of variables that steer libraries, and of GPUDirect Storage. See exam.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/matrix/library.h"
#include "harness/exam/exam.h"

static const char *value_of(const struct exam *x, const char *name)
{
    return exam_name(json_object_get(exam_machine(x), "library_settings"), name);
}

/* ---- Ways that are switched off */

static bool has_active_adapter(const struct exam *x)
{
    const json_t *device, *port;
    size_t i, k;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, device)
        json_array_foreach (json_object_get(device, "ports"), k, port)
            if (exam_is(port, "state", "ACTIVE") && exam_does_rdma(x, device))
                return true;
    return false;
}

static bool has_gpus(const struct exam *x)
{
    return json_array_size(json_object_get(json_object_get(exam_machine(x), "gpus"), "devices")) >
           0;
}

static bool has_feature(const struct exam *x, const char *name)
{
    const json_t *features = json_object_get(json_object_get(exam_machine(x), "cpu"), "features");

    return json_is_true(json_object_get(features, name));
}

static bool has_avx512(const struct exam *x)
{
    return has_feature(x, "avx512f");
}

static bool always(const struct exam *x)
{
    (void)x;
    return true;
}

/* Values that cost, by patterns of the shell with '|' between. */
static const struct steering {
    const char *name, *values, *effect;
    bool (*applies)(const struct exam *x);
    bool sockets; /* of the check "sockets"; else of "settings" */
} steering[] = {
    {"NCCL_IB_DISABLE", "1", "NCCL uses sockets, not RDMA", has_active_adapter, true},
    {"NCCL_NET", "Socket|socket", "NCCL uses sockets, not RDMA", has_active_adapter, true},
    {"UCX_TLS", "tcp|tcp,*self|self,tcp|sm,tcp|tcp,sm", "UCX uses sockets, not RDMA",
     has_active_adapter, true},
    {"OMPI_MCA_btl", "tcp|tcp,*|self,tcp*|*,tcp", "Open MPI uses sockets, not RDMA",
     has_active_adapter, true},
    {"FI_PROVIDER", "tcp|tcp;*|sockets", "libfabric uses sockets, not RDMA", has_active_adapter,
     true},
    {"NCCL_P2P_DISABLE", "1", "GPUs do not read each other's memory", has_gpus, false},
    {"NCCL_P2P_LEVEL", "LOC|0", "GPUs do not read each other's memory", has_gpus, false},
    {"NCCL_SHM_DISABLE", "1", "processes of one host use the network", has_gpus, false},
    {"NCCL_NET_GDR_LEVEL", "LOC|0", "adapters do not reach GPU memory", has_gpus, false},
    {"NCCL_DMABUF_ENABLE", "0", "adapters reach GPU memory by nvidia_peermem only", has_gpus,
     false},
    {"NCCL_PROTO", "LL|LL128|LL,LL128|LL128,LL|^Simple*",
     "large messages use a protocol for small ones", has_gpus, false},
    {"NCCL_ALGO", "*[a-z]*", "NCCL does not choose the algorithm by size", has_gpus, false},
    {"NCCL_MAX_NCHANNELS", "[1-3]", "few channels use few links", has_gpus, false},
    {"CUDA_LAUNCH_BLOCKING", "1", "each kernel is waited for", has_gpus, false},
    {"MKL_ENABLE_INSTRUCTIONS", "SSE4_2|AVX", "MKL leaves vector units unused", always, false},
    {"MKL_ENABLE_INSTRUCTIONS", "AVX2", "MKL leaves vector units unused", has_avx512, false},
    {"DNNL_MAX_CPU_ISA", "SSE41|AVX", "oneDNN leaves vector units unused", always, false},
    {"DNNL_MAX_CPU_ISA", "AVX2*", "oneDNN leaves vector units unused", has_avx512, false},
    {"ONEDNN_MAX_CPU_ISA", "SSE41|AVX", "oneDNN leaves vector units unused", always, false},
    {"ONEDNN_MAX_CPU_ISA", "AVX2*", "oneDNN leaves vector units unused", has_avx512, false},
    {"MALLOC_PERTURB_", "*", "each allocation is filled", always, false},
};

static bool is_among(const char *value, const char *patterns)
{
    char one[64];

    for (;; patterns++) {
        size_t n = strcspn(patterns, "|");

        if (n < sizeof(one)) {
            memcpy(one, patterns, n);
            one[n] = 0;
            if (!fnmatch(one, value, 0))
                return true;
        }
        patterns += n;
        if (!*patterns)
            return false;
    }
}

/* Kernels of OpenBLAS that use less than this CPU has. Others that fit it cost nothing. */
static bool find_kernels(struct exam *x)
{
    static const char name[] = "OPENBLAS_CORETYPE";
    const char *asked = value_of(x, name), *better;
    const struct cpu_features features = {
        .avx2 = has_feature(x, "avx2"),
        .fma = has_feature(x, "fma"),
        .avx512 = has_feature(x, "avx512f") && has_feature(x, "avx512bw"),
        .sve = has_feature(x, "sve"),
    };

    better = *asked ? openblas_better_core(&features, asked) : NULL;
    if (better)
        exam_remedy(x,
                    exam_found(x, name,
                               "with its value \"%.40s\", OpenBLAS leaves vector units unused",
                               asked),
                    "export %s=%s", name, better);
    return better;
}

/* A finding for each variable that costs; else one "fine" for all. */
static void look_at(struct exam *x, bool sockets)
{
    const json_t *settings = exam_fact(x, "environment", NULL, "library_settings");
    bool found = settings && !sockets && find_kernels(x);

    for (size_t i = 0; settings && i < sizeof(steering) / sizeof(*steering); i++) {
        const struct steering *s = &steering[i];
        const char *value = value_of(x, s->name);

        if (s->sockets != sockets || !*value || !is_among(value, s->values) || !s->applies(x))
            continue;
        found = true;
        exam_remedy(x, exam_found(x, s->name, "with its value \"%.40s\", %s", value, s->effect),
                    "unset %s", s->name);
    }
    if (settings && !found)
        exam_fine(x, "environment");
}

/* Without them, libraries take sockets and do not say so. */
static void look_verbs(struct exam *x)
{
    bool opens, loads;

    if (!exam_flag(x, "process", NULL, "process.verbs_device_opens", &opens) ||
        !exam_flag(x, "process", NULL, "process.verbs_library_loads", &loads))
        return;
    if (!opens && exam_contained(x))
        exam_unknown(x, "process",
                     "whether it should have an RDMA device: the host has, the container has none");
    else if (!opens)
        exam_remedy(x,
                    exam_found(x, "process",
                               "it can open no RDMA device in /dev/infiniband, and one is active"),
                    "let the user read and write /dev/infiniband/uverbs* (docker: "
                    "--device=/dev/infiniband)");
    else if (!loads)
        exam_remedy(x,
                    exam_found(x, "process",
                               "libibverbs.so.1 cannot be loaded: libraries use sockets, not RDMA"),
                    "install libibverbs1 (rdma-core) where the program runs");
    else
        exam_fine(x, "process");
}

static void look_sockets(struct exam *x)
{
    if (!has_active_adapter(x))
        return;
    look_verbs(x);
    look_at(x, true);
}

static void look_settings(struct exam *x)
{
    look_at(x, false);
}

/* ---- Threads */

/* "primary" puts all threads into the place of the first, which is one core where places are not
 * said to be larger. */
static bool is_one_place(const struct exam *x)
{
    const char *bind = value_of(x, "OMP_PROC_BIND"), *places = value_of(x, "OMP_PLACES");

    return (!strcasecmp(bind, "primary") || !strcasecmp(bind, "master")) &&
           (!*places || !strcasecmp(places, "cores") || !strcasecmp(places, "threads"));
}

static void find_one_place(struct exam *x, double cores)
{
    struct exam_result *r = exam_found(
        x, "OMP_PROC_BIND", "with its value \"%.40s\", all threads of a process share one core",
        value_of(x, "OMP_PROC_BIND"));

    exam_price(x, r, 1 - 1 / cores, "CPU compute of a process alone on the machine",
               "1 - 1/%.0f cores", cores);
    exam_remedy(x, r, "export OMP_PROC_BIND=close");
}

/* Of a host's processes, each has its share of the cores: launchers say so by variables, and by the
 * CPUs that each may use. */
static void look_threads(struct exam *x)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                        "OPENBLAS_NUM_THREADS", "OMP_THREAD_LIMIT"};
    const json_t *settings = exam_fact(x, "environment", NULL, "library_settings");
    const json_t *launcher = exam_get(x, NULL, "launcher");
    double cores, allowed = exam_allowed(x);
    bool found = false;

    if (!settings || !exam_number(x, "environment", NULL, "cpu.cores", &cores))
        return;
    if (json_is_string(launcher)) {
        exam_fine(x, "environment");
        return;
    }
    if (allowed > 0 && allowed < cores)
        cores = allowed;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        double threads = atof(value_of(x, names[i]));
        struct exam_result *r;

        if (threads < 1 || threads >= cores)
            continue;
        found = true;
        r = exam_found(x, names[i], "libraries use %.0f threads of a process, on %.0f cores",
                       threads, cores);
        exam_price(x, r, 1 - threads / cores, "CPU compute of a process alone on the machine",
                   "1 - %.0f/%.0f cores", threads, cores);
        exam_remedy(x, r, "export %s=%.0f, divided by the processes of the host", names[i], cores);
    }
    if (is_one_place(x) && cores > 1) {
        found = true;
        find_one_place(x, cores);
    }
    if (!found)
        exam_fine(x, "environment");
}

/* ---- GPUDirect Storage */

static void look_storage(struct exam *x)
{
    const json_t *compatible;
    struct exam_result *r;
    bool module;

    if (!has_gpus(x))
        return;
    compatible = exam_fact(x, "gpus", NULL, "gpus.gpudirect.storage_compatible");
    if (!compatible || json_is_string(compatible)) /* it is not installed */
        return;
    if (!exam_flag(x, "gpus", NULL, "gpus.gpudirect.storage", &module))
        return;
    if (module) {
        exam_fine(x, "gpus");
        return;
    }
    r = exam_found(x, "gpus", "nvidia_fs is not loaded: GPUDirect Storage %s",
                   json_is_true(compatible) ? "copies through the host's memory" : "does not work");
    r->aside = true; /* the CUDA toolkit brings its settings to machines that never use it */
    exam_remedy(x, r, "sudo modprobe nvidia_fs");
}

const struct exam_check exam_libraries[] = {
    {.id = "sockets",
     .question = "May collectives use the RDMA adapters?",
     .seen = "open() of /dev/infiniband/uverbs*, libibverbs; variables: NCCL_IB_DISABLE, NCCL_NET, "
             "UCX_TLS, OMPI_MCA_btl, FI_PROVIDER",
     .pipes = "Network|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.33, 0.8, .of = "bandwidth of collectives between hosts",
              .source = "https://github.com/NVIDIA/nccl/issues/465"},
     .look = look_sockets},
    {.id = "settings",
     .question = "Do libraries choose for themselves what is fast here?",
     .seen = "variables that steer them: NCCL_*, CUDA_*, OPENBLAS_*, MKL_*, DNNL_*",
     .pipes = "Matrix core|GPU*|PCIe|" EXAM_GROUP,
     .measured = "@(OPENBLAS|GOTO|MKL|DNNL|ONEDNN|BLIS)_*",
     .look = look_settings},
    {.id = "threads",
     .question = "May CPU libraries use all cores?",
     .seen = "variables: OMP_NUM_THREADS, OMP_THREAD_LIMIT, OMP_PROC_BIND, MKL_NUM_THREADS, "
             "OPENBLAS_NUM_THREADS",
     .pipes = "Matrix core|Training step",
     .look = look_threads},
    {.id = "gpu-storage",
     .question = "Does storage reach GPU memory without copies in the host's?",
     .seen = "/etc/cufile.json, module nvidia_fs",
     .cost = {EXAM_CITED, 0.007, 0.5, .controlled = true, .of = "bytes written from GPU memory",
              .source = "https://gds-bench.farmgpu.net/theory/"},
     .look = look_storage},
    {.id = NULL},
};
