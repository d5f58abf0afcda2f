/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of variables that steer libraries, and of GPUDirect Storage. See exam.h. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/matrix/library.h"
#include "harness/exam/exam.h"

/* ---- Ways that are switched off */

static bool has_active_port(const json_t *device)
{
    FACT_EACH (json_object_get(device, "ports"), port)
        if (exam_is_active(port))
            return true;
    return false;
}

static bool has_active_adapter(struct exam *x)
{
    return exam_has_adapter(x, has_active_port);
}

static bool has_gpus(struct exam *x)
{
    return json_array_size(exam_peek(x, "gpus.devices")) > 0;
}

static bool has_feature(const struct exam *x, const char *name)
{
    return json_is_true(json_object_get(exam_peek(x, "cpu.features"), name));
}

static bool has_avx512(struct exam *x)
{
    return has_feature(x, "avx512f");
}

/* Values that cost, by patterns of the shell with '|' between. */
static const struct steering {
    const char *name, *values, *effect;
    bool (*applies)(struct exam *x); /* NULL: to all machines */
    bool sockets;                    /* of the check "sockets"; else of "settings" */
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
    {"MKL_ENABLE_INSTRUCTIONS", "SSE4_2|AVX", "MKL leaves vector units unused", NULL, false},
    {"MKL_ENABLE_INSTRUCTIONS", "AVX2", "MKL leaves vector units unused", has_avx512, false},
    {"DNNL_MAX_CPU_ISA", "SSE41|AVX", "oneDNN leaves vector units unused", NULL, false},
    {"DNNL_MAX_CPU_ISA", "AVX2*", "oneDNN leaves vector units unused", has_avx512, false},
    {"ONEDNN_MAX_CPU_ISA", "SSE41|AVX", "oneDNN leaves vector units unused", NULL, false},
    {"ONEDNN_MAX_CPU_ISA", "AVX2*", "oneDNN leaves vector units unused", has_avx512, false},
    {"MALLOC_PERTURB_", "*", "each allocation is filled", NULL, false},
};

/* Kernels of OpenBLAS that use less than this CPU has. Others that fit it cost nothing. */
static void judge_kernels(struct exam *x)
{
    static const char name[] = "OPENBLAS_CORETYPE";
    const char *asked = exam_variable(x, name), *better;
    const struct cpu_features features = {
        .avx2 = has_feature(x, "avx2"),
        .fma = has_feature(x, "fma"),
        .avx512 = has_feature(x, "avx512f") && has_feature(x, "avx512bw"),
        .sve = has_feature(x, "sve"),
    };

    better = *asked ? openblas_better_core(&features, asked) : NULL;
    if (better) {
        exam_about(x, name);
        exam_found(x, "with its value \"%.40s\", OpenBLAS leaves vector units unused", asked);
        exam_remedy(x, "export {}=%s", better);
    }
}

/* A finding for each variable that costs. */
static void judge_variables(struct exam *x, bool sockets)
{
    for (size_t i = 0; i < sizeof(steering) / sizeof(*steering); i++) {
        const struct steering *s = &steering[i];
        const char *value = exam_variable(x, s->name);

        if (s->sockets != sockets || !*value || !fact_fits(s->values, value) ||
            (s->applies && !s->applies(x)))
            continue;
        exam_about(x, s->name);
        exam_found(x, "with its value \"%.40s\", %s", value, s->effect);
    }
    exam_about(x, "environment");
}

/* Without them, libraries take sockets and do not say so. */
static void judge_verbs(struct exam *x)
{
    bool opens, loads;

    if (!exam_flag(x, NULL, "process.verbs_device_opens", &opens) ||
        !exam_flag(x, NULL, "process.verbs_library_loads", &loads))
        return;
    if (!opens && exam_contained(x)) {
        exam_unknown(x,
                     "whether it should have an RDMA device: the host has, the container has none");
    } else if (!opens) {
        exam_found(x, "it can open no RDMA device in /dev/infiniband, and one is active");
        exam_remedy(x, "let the user read and write /dev/infiniband/uverbs* (docker: "
                       "--device=/dev/infiniband)");
    } else if (!loads) {
        exam_found(x, "libibverbs.so.1 cannot be loaded: libraries use sockets, not RDMA");
        exam_remedy(x, "install libibverbs1 (rdma-core) where the program runs");
    } else {
        exam_fine(x);
    }
}

static bool judge_sockets(struct exam *x)
{
    size_t findings;

    exam_about(x, "process");
    judge_verbs(x);
    exam_about(x, "environment");
    if (!exam_fact(x, NULL, "library_settings"))
        return false;
    findings = exam_count(x, EXAM_FOUND);
    judge_variables(x, true);
    if (exam_count(x, EXAM_FOUND) == findings)
        exam_fine(x);
    return false;
}

static bool judge_settings(struct exam *x)
{
    if (!exam_fact(x, NULL, "library_settings"))
        return false;
    judge_kernels(x);
    judge_variables(x, false);
    return true;
}

/* ---- Threads */

/* "primary" puts all threads into the place of the first, which is one core where places are not
 * said to be larger. */
static bool is_one_place(const struct exam *x)
{
    const char *bind = exam_variable(x, "OMP_PROC_BIND"), *places = exam_variable(x, "OMP_PLACES");

    return (!strcasecmp(bind, "primary") || !strcasecmp(bind, "master")) &&
           (!*places || !strcasecmp(places, "cores") || !strcasecmp(places, "threads"));
}

/* Of a host's processes, each has its share of the cores: launchers say so by variables, and by the
 * CPUs that each may use. */
static bool judge_threads(struct exam *x)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                        "OPENBLAS_NUM_THREADS", "OMP_THREAD_LIMIT"};
    const json_t *settings = exam_fact(x, NULL, "library_settings");
    bool launched = exam_launched(x);
    double cores, allowed = exam_allowed(x);

    if (!settings || !exam_number(x, NULL, "cpu.cores", &cores))
        return false;
    if (launched)
        return true;
    if (allowed > 0 && allowed < cores)
        cores = allowed;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        double threads = atof(exam_variable(x, names[i]));

        if (threads < 1 || threads >= cores)
            continue;
        exam_about(x, names[i]);
        exam_found(x, "libraries use %.0f threads of a process, on %.0f cores", threads, cores);
        exam_price_rest(x, threads, cores, "CPU compute of a process alone on the machine",
                        "cores");
        exam_remedy(x, "export {}=%.0f, divided by the processes of the host", cores);
    }
    if (is_one_place(x) && cores > 1) {
        exam_about(x, "OMP_PROC_BIND");
        exam_found(x, "with its value \"%.40s\", all threads of a process share one core",
                   exam_variable(x, "OMP_PROC_BIND"));
        exam_price_rest(x, 1, cores, "CPU compute of a process alone on the machine", "cores");
    }
    exam_about(x, "environment");
    return true;
}

/* ---- GPUDirect Storage */

static bool judge_storage(struct exam *x)
{
    const json_t *compatible = exam_fact(x, NULL, "gpus.gpudirect.storage_compatible");
    bool module;

    if (!compatible || json_is_string(compatible) || /* it is not installed */
        !exam_flag(x, NULL, "gpus.gpudirect.storage", &module))
        return false;
    if (!module) /* the CUDA toolkit brings its settings to machines that never use it: aside */
        exam_found(x, "nvidia_fs is not loaded: GPUDirect Storage %s",
                   json_is_true(compatible) ? "copies through the host's memory" : "does not work")
            ->aside = true;
    return true;
}

const struct exam_check exam_libraries[] = {
    {.id = "sockets",
     .question = "May collectives use the RDMA adapters?",
     .seen = "open() of /dev/infiniband/uverbs*, libibverbs; variables: NCCL_IB_DISABLE, NCCL_NET, "
             "UCX_TLS, OMPI_MCA_btl, FI_PROVIDER",
     .pipes = "Network|" EXAM_GROUP,
     .cost = {EXAM_CITED, 0.33, 0.8, .of = "bandwidth of collectives between hosts",
              .source = "https://github.com/NVIDIA/nccl/issues/465"},
     .remedy = "unset {}",
     .when = has_active_adapter,
     .subject = "environment",
     .judge = judge_sockets},
    {.id = "settings",
     .question = "Do libraries choose for themselves what is fast here?",
     .seen = "variables that steer them: NCCL_*, CUDA_*, OPENBLAS_*, MKL_*, DNNL_*",
     .pipes = "Matrix core|GPU*|PCIe|" EXAM_GROUP,
     .measured = "@(OPENBLAS|GOTO|MKL|DNNL|ONEDNN|BLIS)_*",
     .remedy = "unset {}",
     .subject = "environment",
     .judge = judge_settings},
    {.id = "threads",
     .question = "May CPU libraries use all cores?",
     .seen = "variables: OMP_NUM_THREADS, OMP_THREAD_LIMIT, OMP_PROC_BIND, MKL_NUM_THREADS, "
             "OPENBLAS_NUM_THREADS",
     .pipes = "Matrix core|Training step",
     .remedy = "export OMP_PROC_BIND=close",
     .subject = "environment",
     .judge = judge_threads},
    {.id = "gpu-storage",
     .question = "Does storage reach GPU memory without copies in the host's?",
     .seen = "/etc/cufile.json, module nvidia_fs",
     .cost = {EXAM_CITED, 0.007, 0.5, .controlled = true, .of = "bytes written from GPU memory",
              .source = "https://gds-bench.farmgpu.net/theory/"},
     .remedy = "sudo modprobe nvidia_fs",
     .when = has_gpus,
     .subject = "gpus",
     .judge = judge_storage},
    {.id = NULL},
};
