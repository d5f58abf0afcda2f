/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: its library opened, why there is none, and what its errors mean. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hw/cuda/gpu_cuda.h"

/* Codes that older headers have no names for. */
#define CUDA_RESULT_NEEDS_NEWER_DRIVER ((CUresult)36)

/* ---- What the driver's error codes mean here: an errno, whether the device is lost, and what to
 * do. ---- */

struct meaning {
    CUresult result;
    int err;
    bool lost; /* the context is of no use after it */
    const char *hint;
};

#define XID    "the kernel's log (dmesg | grep -i xid) says what the GPU met"
#define MEMORY "a bug in a kernel, or bad memory: compute-sanitizer finds which access"
#define NEWER  "install a newer driver of NVIDIA's, or build with an older CUDA toolkit"

/* What is not here is -EIO, and the device goes on. */
static const struct meaning meanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, -ENOMEM, false, ""},
    {CUDA_ERROR_NOT_READY, -EAGAIN, false, ""},
    {CUDA_ERROR_NO_DEVICE, -ENODEV, false, ""},
    {CUDA_ERROR_INVALID_DEVICE, -ENODEV, false, ""},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, -EBUSY, false,
     "another process has it for itself, or its compute mode forbids all: nvidia-smi -q -d "
     "COMPUTE"},
    {CUDA_ERROR_NOT_SUPPORTED, -EOPNOTSUPP, false, ""},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, -EOPNOTSUPP, false,
     "these two GPUs do not reach each other's memory; a hypervisor or the IOMMU may be why"},
    {CUDA_ERROR_TOO_MANY_PEERS, -EOPNOTSUPP, false,
     "a GPU has so many peers at a time: disable one that is not used"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, -EOPNOTSUPP, false, ""},
    {CUDA_ERROR_INVALID_PTX, -EOPNOTSUPP, false, NEWER},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, -EOPNOTSUPP, false, NEWER},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, -EOPNOTSUPP, false,
     "install the driver's libnvidia-ptxjitcompiler.so.1, or a toolkit that knows this GPU"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, -EOPNOTSUPP, false,
     "unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT, or build with a toolkit that knows this "
     "GPU"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, -EIO, true,
     "the GPU's memory is damaged there: nvidia-smi -q -d ECC,ROW_REMAPPER; reset or replace it"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, -EIO, true, "nvidia-smi nvlink -e counts its errors; " XID},
    {CUDA_RESULT_CONTAINED, -EIO, true, XID},
    {CUDA_ERROR_ILLEGAL_ADDRESS, -EIO, true, MEMORY},
    {CUDA_ERROR_MISALIGNED_ADDRESS, -EIO, true, MEMORY},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, -EIO, true, MEMORY},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, -EIO, true, XID},
    {CUDA_ERROR_INVALID_PC, -EIO, true, XID},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, -EIO, true, XID},
    {CUDA_ERROR_ASSERT, -EIO, true, ""},
    {CUDA_ERROR_LAUNCH_TIMEOUT, -EIO, true,
     "this GPU drives a display, whose watchdog ends what takes long: use another, or stop the "
     "display"},
    {CUDA_ERROR_LAUNCH_FAILED, -EIO, true, XID},
    {CUDA_RESULT_TENSOR_MEMORY_LEAK, -EIO, true, ""},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, -EIO, true, ""},
    {CUDA_RESULT_MPS_CLIENT_ENDED, -EIO, true,
     "the MPS server ended this client: its log says why"},
    {CUDA_ERROR_UNKNOWN, -EIO, true, "the GPU may have fallen off the bus: " XID},
};

static const struct meaning *find(CUresult result)
{
    static const struct meaning other = {.err = -EIO, .hint = ""};

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].result == result)
            return &meanings[i];
    return &other;
}

int cuda_errno(CUresult result)
{
    return result == CUDA_SUCCESS ? 0 : find(result)->err;
}

const char *cuda_error_text(const struct cuda_driver *driver, CUresult result, char *text,
                            size_t len)
{
    const char *name = NULL, *what = NULL;

    if (driver->cuGetErrorName(result, &name) || !name)
        name = "a code that this driver does not know itself";
    if (driver->cuGetErrorString(result, &what) || !what)
        what = "error";
    snprintf(text, len, "%s (%s, %d)", what, name, (int)result);
    return text;
}

int cuda_error(struct gpu *gpu, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(gpu->base.error, sizeof(gpu->base.error), format, args);
    va_end(args);
    return err;
}

int cuda_error_add(struct gpu *gpu, int err, const char *format, ...)
{
    size_t used = strlen(gpu->base.error);
    va_list args;

    va_start(args, format);
    vsnprintf(gpu->base.error + used, sizeof(gpu->base.error) - used, format, args);
    va_end(args);
    return err;
}

int cuda_check(struct gpu *gpu, CUresult result, const char *call)
{
    char text[160];

    if (result == CUDA_SUCCESS) /* first and alone: it is in every call that is timed */
        return 0;
    if (result == CUDA_ERROR_NOT_READY) /* an answer, not an error */
        return -EAGAIN;
    const struct meaning *meaning = find(result);
    gpu->base.lost |= meaning->lost;
    return cuda_error(gpu, meaning->err, "%s: %s%s%s", call,
                      cuda_error_text(gpu->driver, result, text, sizeof(text)),
                      meaning->hint[0] ? "; " : "", meaning->hint);
}

/* The context that this thread made its own, and when: the call that does so would else be in every
 * launch that is timed. (By its model it is reached without a call of the loader's, which the
 * module would have to be linked with.) */
static __thread __attribute__((tls_model("initial-exec"))) struct {
    CUcontext context;
    unsigned epoch;
} entered;

static atomic_uint epoch = 1;

void cuda_forget_contexts(void)
{
    atomic_fetch_add(&epoch, 1);
}

static CUresult make_current(struct gpu *gpu)
{
    unsigned now = atomic_load_explicit(&epoch, memory_order_relaxed);

    if (entered.context == gpu->context && entered.epoch == now)
        return CUDA_SUCCESS;
    CUresult result = gpu->driver->cuCtxSetCurrent(gpu->context);
    entered.context = result == CUDA_SUCCESS ? gpu->context : NULL;
    entered.epoch = now;
    return result;
}

int cuda_enter(struct gpu *gpu)
{
    if (gpu->base.lost) /* gpu_error() still says why */
        return -EIO;
    return cuda_check(gpu, make_current(gpu), "cuCtxSetCurrent");
}

bool cuda_enter_quietly(struct gpu *gpu)
{
    return !gpu->base.silent && make_current(gpu) == CUDA_SUCCESS;
}

const char *cuda_size_text(uint64_t bytes, char *text, size_t len)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(text, len, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* ---- Why there is no CUDA here, and what to do ---- */

#define CONTAINER "in a container: start it with its GPUs (--gpus all, by nvidia-container-toolkit)"

static const char *root(void)
{
    const char *set = getenv("PLUMB_SYSROOT");

    return set ? set : "";
}

static bool exists(const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root(), path);
    return access(full, F_OK) == 0;
}

static bool kernel_driver(void)
{
    return exists("/proc/driver/nvidia/version") || exists("/sys/module/nvidia");
}

/* The first number in a file of /sys; -1 where there is none. */
static long number_in(const char *folder, const char *device, const char *file)
{
    char full[PATH_MAX];
    long value = -1;

    snprintf(full, sizeof(full), "%s/%s/%s", folder, device, file);
    FILE *f = fopen(full, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%li", &value) != 1)
        value = -1;
    fclose(f);
    return value;
}

/* Does PCI show a display or 3D controller of NVIDIA's? */
static bool gpu_on_pci(void)
{
    char folder[PATH_MAX];
    const struct dirent *entry;
    bool found = false;

    snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices", root());
    DIR *dir = opendir(folder);
    while (dir && !found && (entry = readdir(dir)))
        found = number_in(folder, entry->d_name, "vendor") == 0x10de &&
                number_in(folder, entry->d_name, "class") >> 16 == 0x03;
    if (dir)
        closedir(dir);
    return found;
}

/* Why a device node cannot be opened: 0, or -errno. */
static int node_error(const char *path, gid_t *group)
{
    char full[PATH_MAX];
    struct stat st;

    snprintf(full, sizeof(full), "%s%s", root(), path);
    *group = stat(full, &st) ? (gid_t)-1 : st.st_gid;
    int fd = open(full, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static void no_permission(const char *node, int err, gid_t gid, char *error, size_t len)
{
    const struct group *group = getgrgid(gid);

    if (err == -EPERM)
        snprintf(error, len,
                 "no permission to open '%s': this container's or service's device rules forbid "
                 "it; " CONTAINER,
                 node);
    else
        snprintf(error, len,
                 "no permission to open '%s': its group is '%s'; join it (usermod -aG GROUP USER, "
                 "then log in again), or let the administrator open it; in a container: --gpus all",
                 node, group ? group->gr_name : "unknown");
}

/* Nodes that cannot be opened, in the order that the driver opens them. Says so and returns
 * true. */
static bool nodes_explain(char *error, size_t len)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    gid_t group;

    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        int err = node_error(nodes[i], &group);
        if (err == -EACCES || err == -EPERM)
            no_permission(nodes[i], err, group, error, len);
        else if (err == -ENOENT && i != 1) /* a container may have another GPU than the first */
            snprintf(error, len,
                     "there is no '%s', though the kernel has NVIDIA's driver: run nvidia-modprobe "
                     "-c 0 -u as root; " CONTAINER,
                     nodes[i]);
        else
            continue;
        return true;
    }
    return false;
}

/* libcuda.so.1 did not load; `said` is the loader's message. */
static void cuda_reason_library(const char *said, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBCUDA");

    if (given && *given)
        snprintf(error, len, "the CUDA driver named by PLUMB_LIBCUDA does not load: %.200s", said);
    else if (!strstr(said, "libcuda.so.1: cannot open shared object file"))
        snprintf(error, len, "the CUDA driver does not load: %.200s", said);
    else if (kernel_driver())
        snprintf(
            error, len,
            "libcuda.so.1 is not here, though the kernel has NVIDIA's driver: install the "
            "driver's CUDA library (libcuda1, libnvidia-compute); in a container: --gpus all and "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    else if (gpu_on_pci())
        snprintf(
            error, len,
            "no CUDA driver (libcuda.so.1), though there is a GPU of NVIDIA's: install NVIDIA's "
            "driver; " CONTAINER);
    else
        snprintf(error, len,
                 "no CUDA driver (libcuda.so.1), and PCI shows no NVIDIA GPU: where there is "
                 "one, install NVIDIA's driver; " CONTAINER);
}

/* Codes whose own meaning says what to do, whatever the machine's files tell. */
static const char *init_remedy(int code)
{
    switch (code) {
    case CUDA_ERROR_STUB_LIBRARY:
        return "the libcuda.so.1 that was found is the toolkit's stub, to link with: take its "
               "folder "
               "out of LD_LIBRARY_PATH and install NVIDIA's driver";
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return "the GPUs' switches are not set up: start nvidia-fabricmanager (systemctl status "
               "nvidia-fabricmanager), of the driver's own version";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the driver's library and its kernel module are of different versions: load the "
               "module "
               "anew or restart the machine";
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return "this GPU does not run with the forward-compatible libcuda.so.1 of cuda-compat: "
               "take "
               "its folder out of LD_LIBRARY_PATH, or install a newer driver";
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
        return "this vGPU has no licence: nvidia-smi -q | grep -i licen, systemctl status "
               "nvidia-gridd";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
        return "the MPS server does not answer: start nvidia-cuda-mps-control -d, or unset "
               "CUDA_MPS_PIPE_DIRECTORY";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return "another process has the GPU for itself, or its compute mode forbids all: "
               "nvidia-smi "
               "-q -d COMPUTE";
    case CUDA_RESULT_NEEDS_NEWER_DRIVER:
        return "install a newer driver of NVIDIA's";
    default:
        return NULL;
    }
}

/* cuInit failed with `code` (a CUresult), whose text is `said`. */
static void cuda_reason_init(int code, const char *said, char *error, size_t len)
{
    const char *remedy = init_remedy(code), *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (remedy)
        snprintf(error, len, "cuInit: %.100s: %s", said, remedy);
    else if (code == CUDA_ERROR_NO_DEVICE && visible)
        snprintf(error, len, "CUDA_VISIBLE_DEVICES='%.60s' hides all GPUs: unset it, or name one",
                 visible);
    else if (!kernel_driver() && !exists("/dev/nvidiactl"))
        snprintf(
            error, len,
            "cuInit: %.100s: NVIDIA's kernel driver is not loaded: modprobe nvidia (dmesg says why "
            "it does not load)%s",
            said, gpu_on_pci() ? "" : "; PCI shows no NVIDIA GPU");
    else if (!nodes_explain(error, len))
        snprintf(
            error, len,
            "cuInit: %.100s: nvidia-smi -L lists the GPUs that the driver has; the kernel's log "
            "(dmesg | grep -iE 'nvrm|xid') says what is wrong with one",
            said);
}

#define TEXT(x)        #x
#define TEXT_OF(x)     TEXT(x) /* after the header's macros: cuMemAlloc_v2 */
#define FUNCTION(name) {TEXT_OF(name), offsetof(struct cuda_driver, name)},

static const struct {
    const char *symbol;
    size_t offset;
} functions[] = {CUDA_FUNCTIONS(FUNCTION)};

#define OPTIONAL(name)                                                                             \
    {                                                                                              \
#name, offsetof(struct cuda_driver, name)                                                  \
    }

#define LISTED(name) OPTIONAL(name),

static const struct {
    const char *symbol;
    size_t offset;
} optional[] = {OPTIONAL(cuMemGetHandleForAddressRange),
                OPTIONAL(cuFlushGPUDirectRDMAWrites),
                OPTIONAL(cuFuncLoad),
                CUDA_BY_HANDLE(LISTED) OPTIONAL(cuMulticastGetGranularity),
                OPTIONAL(cuMulticastCreate),
                OPTIONAL(cuMulticastAddDevice),
                OPTIONAL(cuMulticastBindMem),
                OPTIONAL(cuMulticastUnbind)};

static void *symbol(struct cuda_driver *driver, const char *name)
{
    return dlsym(driver->library, name);
}

/* Sets all pointers; -EOPNOTSUPP with the name of the first that is missing. */
static int resolve(struct cuda_driver *driver, char *error, size_t len)
{
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *at = dlsym(driver->library, functions[i].symbol);
        if (!at) {
            snprintf(
                error, len,
                "the CUDA driver has no %s: install a newer driver of NVIDIA's, or build with an "
                "older CUDA toolkit",
                functions[i].symbol);
            return -EOPNOTSUPP;
        }
        memcpy((char *)driver + functions[i].offset, &at, sizeof(at));
    }
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
        void *at = dlsym(driver->library, optional[i].symbol);
        memcpy((char *)driver + optional[i].offset, &at, sizeof(at));
    }
    return 0;
}

/* The calls below may fail before all is resolved. */
static int explain(struct cuda_driver *driver, CUresult result, char *error, size_t len)
{
    char text[160] = "error";

    if (driver->cuGetErrorName && driver->cuGetErrorString)
        cuda_error_text(driver, result, text, sizeof(text));
    cuda_reason_init((int)result, text, error, len);
    return result == CUDA_RESULT_NEEDS_NEWER_DRIVER ? -EOPNOTSUPP : -ENODEV;
}

/* Asked before the functions that only a newer driver has, so that its age is what is complained
 * of. */
static int check_version(struct cuda_driver *driver, char *error, size_t len)
{
    __typeof__(&cuDriverGetVersion) get = symbol(driver, "cuDriverGetVersion");

    driver->cuGetErrorName = symbol(driver, "cuGetErrorName");
    driver->cuGetErrorString = symbol(driver, "cuGetErrorString");
    if (!get) {
        snprintf(error, len,
                 "the libcuda.so.1 that was found is no CUDA driver: it has no "
                 "cuDriverGetVersion");
        return -EOPNOTSUPP;
    }
    CUresult result = get(&driver->version);
    if (result != CUDA_SUCCESS)
        return explain(driver, result, error, len);
    /* Within a major version any driver runs what any toolkit made for its GPU. */
    if (driver->version / 1000 < CUDA_VERSION / 1000) {
        /* The oldest that runs programs of a major version: CUDA's release notes, table of drivers
         * (minor version compatibility). */
        snprintf(
            error, len,
            "the driver supports CUDA %d.%d, this build needs %d.0: install driver %s or newer, or "
            "build with an older CUDA toolkit",
            driver->version / 1000, driver->version % 1000 / 10, CUDA_VERSION / 1000,
            (CUDA_VERSION / 1000) == 11   ? "450"
            : (CUDA_VERSION / 1000) == 12 ? "525"
            : (CUDA_VERSION / 1000) == 13 ? "580"
                                          : "that came with it");
        return -ELIBBAD;
    }
    return 0;
}

static bool launches_wait(void)
{
    const char *set = getenv("CUDA_LAUNCH_BLOCKING");

    return set && *set && strcmp(set, "0") != 0;
}

int cuda_driver_open(struct cuda_driver *driver, char *error, size_t len)
{
    const char *given = getenv("PLUMB_LIBCUDA");

    driver->library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver->library) {
        cuda_reason_library(dlerror(), error, len);
        return -ENODEV;
    }
    int err = check_version(driver, error, len);
    if (!err)
        err = resolve(driver, error, len);
    if (err)
        return err;
    if (launches_wait()) {
        snprintf(
            error, len,
            "CUDA_LAUNCH_BLOCKING is set: every launch would wait for its end, and no stream can "
            "be held for timing: unset it");
        return -EOPNOTSUPP;
    }
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* numbers as nvidia-smi's; a user's own stays */
    CUresult result = driver->cuInit(0);
    return result == CUDA_SUCCESS ? 0 : explain(driver, result, error, len);
}
