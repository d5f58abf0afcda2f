/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, kernels by name, launches; and work that the simulated cuBLASLt brings. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u

void sim_modules_free(struct sim_device *device)
{
    while (device->modules) {
        struct sim_module *module = device->modules;

        device->modules = module->next;
        while (module->functions) {
            struct sim_function *function = module->functions;

            module->functions = function->next;
            function->magic = 0;
            free(function);
        }
        module->magic = 0;
        free(module);
    }
}

static bool is_fatbin(const void *image)
{
    uint32_t magic;
    uint64_t bytes;

    if (!image)
        return false;
    memcpy(&magic, image, sizeof(magic));
    memcpy(&bytes, (const char *)image + 8, sizeof(bytes)); /* of what follows the header */
    return magic == FATBIN_MAGIC && bytes;
}

CUresult cuModuleLoadData(CUmodule *handle, const void *image)
{
    struct sim_module *module = NULL;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuModuleLoadData");

    if (!rc && !is_fatbin(image))
        rc = CUDA_ERROR_INVALID_IMAGE;
    if (!rc && sim_fault_has(&sim->machine, SIM_OLD_DRIVER, -1, -1))
        rc = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    if (!rc && !(module = calloc(1, sizeof(*module))))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        module->magic = SIM_MODULE_MAGIC;
        module->gpu = device->index;
        module->next = device->modules;
        device->modules = module;
        *handle = (CUmodule)module;
    }
    return sim_leave(sim, rc);
}

static struct sim_module **module_at(struct sim_device *device, CUmodule handle)
{
    struct sim_module **at = &device->modules;

    while (*at && *at != (struct sim_module *)handle)
        at = &(*at)->next;
    return at;
}

CUresult cuModuleUnload(CUmodule handle)
{
    struct sim_module **at, *module, *rest;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuModuleUnload");

    at = rc ? NULL : module_at(device, handle);
    if (!rc && !*at)
        rc = CUDA_ERROR_INVALID_HANDLE;
    if (!rc) {
        module = *at;
        rest = module->next;
        *at = rest;
        module->next = NULL;
        rest = device->modules;
        device->modules = module;
        sim_modules_free(device);
        device->modules = rest;
    }
    return sim_leave(sim, rc);
}

CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name)
{
    struct sim_function *function;
    struct sim_module *module;
    struct sim_device *device;
    struct sim_kernel kernel;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuModuleGetFunction");

    module = rc ? NULL : *module_at(device, module_handle);
    if (!rc && !module)
        rc = CUDA_ERROR_INVALID_HANDLE;
    if (!rc && (!sim_kernel_by_name(name, &kernel) ||
                sim_fault_strikes(
                    &sim->machine, SIM_NO_KERNEL,
                    (struct sim_event){.gpu = (int)device->index, .peer = -1, .kernel = name})))
        rc = CUDA_ERROR_NOT_FOUND;
    if (rc)
        return sim_leave(sim, rc);
    for (function = module->functions; function; function = function->next)
        if (!strcmp(function->kernel.name, name)) {
            *handle = (CUfunction)function;
            return sim_leave(sim, CUDA_SUCCESS);
        }
    function = calloc(1, sizeof(*function));
    if (!function)
        return sim_leave(sim, CUDA_ERROR_OUT_OF_MEMORY);
    function->magic = SIM_FUNCTION_MAGIC;
    function->kernel = kernel;
    function->gpu = device->index;
    function->next = module->functions;
    module->functions = function;
    *handle = (CUfunction)function;
    return sim_leave(sim, CUDA_SUCCESS);
}

static CUresult function_of(const struct sim_device *device, CUfunction handle,
                            struct sim_function **function)
{
    *function = (struct sim_function *)handle;
    return *function && (*function)->magic == SIM_FUNCTION_MAGIC &&
                   (*function)->gpu == device->index
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction handle)
{
    struct sim_function *function;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuFuncGetAttribute");

    rc = rc ? rc : function_of(device, handle, &function);
    if (!rc && which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        *value = 1024;
    else if (!rc && which == CU_FUNC_ATTRIBUTE_NUM_REGS)
        *value = (int)function->kernel.registers;
    else if (!rc)
        rc = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(sim, rc);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int block,
                                                     size_t shared)
{
    struct sim_function *function;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuOccupancyMaxActiveBlocksPerMultiprocessor");

    rc = rc ? rc : function_of(device, handle, &function);
    if (!rc && (block <= 0 || shared))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc)
        *blocks = (int)sim_kernel_occupancy(&sim->machine.gpu[device->index], &function->kernel,
                                            (unsigned)block);
    return sim_leave(sim, rc);
}

/* The first use of a kernel loads it: the driver waits until the device is idle. Where a stream is
 * held meanwhile, that is when the hold gives up. */
static CUresult load_lazily(struct sim *sim, const struct sim_device *device, bool *loaded)
{
    double us = sim->machine.gpu[device->index].lazy_load_us;
    bool first = !*loaded;

    *loaded = true;
    if (!first || us <= 0 || sim_capturing(sim))
        return CUDA_SUCCESS;
    CUresult rc = sim_wait_device(sim, device->index);
    sim_busy(sim, us);
    return rc;
}

CUresult cuFuncLoad(CUfunction handle)
{
    struct sim_function *function;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuFuncLoad");

    rc = rc ? rc : function_of(device, handle, &function);
    return sim_leave(sim, rc ? rc : load_lazily(sim, device, &function->loaded));
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream_handle, void **params, void **extra)
{
    struct sim_op op = {.kind = SIM_OP_KERNEL};
    struct sim_function *function;
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuLaunchKernel");

    rc = rc ? rc : function_of(device, handle, &function);
    rc = rc ? rc : sim_stream_of(sim, device, stream_handle, &stream);
    if (!rc && (!grid_x || grid_x > 0x7fffffff || grid_y != 1 || grid_z != 1 || !block_x ||
                block_x > 1024 || block_y != 1 || block_z != 1 || shared || !params || !params[0] ||
                extra))
        rc = CUDA_ERROR_INVALID_VALUE;
    rc = rc ? rc : load_lazily(sim, device, &function->loaded);
    if (rc)
        return sim_leave(sim, rc);
    op.launch.kernel = function->kernel;
    op.launch.grid = grid_x;
    op.launch.block = block_x;
    memcpy(&op.launch.args, params[0], function->kernel.args_bytes);
    return sim_leave(sim, sim_submit(sim, stream, &op));
}

CUresult plumb_sim_submit(CUstream handle, const struct sim_task *task)
{
    struct sim_op op = {.kind = SIM_OP_TASK, .task = *task};
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "plumb_sim_submit");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && !strcmp(task->name, "gemm"))
        rc = load_lazily(sim, device, &device->products_loaded);
    return sim_leave(sim, rc ? rc : sim_submit(sim, stream, &op));
}

bool plumb_sim_captures(CUstream handle)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "plumb_sim_captures");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    bool captures = !rc && stream->capture;
    sim_leave(sim, rc);
    return captures;
}
