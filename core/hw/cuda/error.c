/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's error codes mean here: an errno, whether the device is lost, and what to do. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/cuda/gpu_cuda.h"

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

const char *cuda_error_hint(CUresult result)
{
    return find(result)->hint;
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
    const struct meaning *meaning = find(result);
    char text[160];

    if (result == CUDA_SUCCESS)
        return 0;
    if (result == CUDA_ERROR_NOT_READY) /* an answer, not an error */
        return -EAGAIN;
    gpu->base.lost |= meaning->lost;
    return cuda_error(gpu, meaning->err, "%s: %s%s%s", call,
                      cuda_error_text(gpu->driver, result, text, sizeof(text)),
                      meaning->hint[0] ? "; " : "", meaning->hint);
}

/* The context that this thread made its own, and when: the call that does so would else be in every launch that is timed. (By its model it is
 * reached without a call of the loader's, which the module would have to be linked with.) */
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
