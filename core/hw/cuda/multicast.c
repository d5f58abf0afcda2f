/* SPDX-License-Identifier: Apache-2.0 */
/* One address for the memory of several devices: what is stored there, the NVLink switches bring to
 * all of them. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/hw/cuda/gpu_cuda.h"

/* What can be shared with other processes, as NCCL has it. Object and memory must agree in it. */
#define SHAREABLE           1 /* as a POSIX file descriptor */
#define GRAIN_MINIMUM       0
#define GRAIN_RECOMMENDED   1
#define RESULT_NOT_PERMIT   ((CUresult)800)
#define RESULT_ILLEGAL      ((CUresult)401)
#define RESULT_SYSTEM_READY ((CUresult)802)

struct room { /* addresses of one device, and what is mapped there */
    CUdeviceptr at;
    bool mapped;
};

struct member {
    struct gpu *gpu;
    CUmemGenericAllocationHandle memory;
    bool made, bound;
    struct room room;
};

struct gpu_multicast {
    unsigned n;
    size_t bytes, grain;
    CUmemGenericAllocationHandle object;
    bool made;
    struct room all; /* of the first member */
    struct member member[];
};

/* The errors of all members are shown at the first one. */
static int say(struct gpu_multicast *group, struct gpu *gpu, int err)
{
    struct gpu *first = group->member[0].gpu;

    return err && gpu != first
               ? cuda_error(first, err, "cuda:%u: %.280s", gpu->base.index, gpu_error(gpu))
               : err;
}

static int refuse(struct gpu *const *gpus, unsigned n)
{
    const struct cuda_driver *driver = gpus[0]->driver;

    if (!driver->cuMulticastCreate || !driver->cuMulticastGetGranularity ||
        !driver->cuMulticastAddDevice || !driver->cuMulticastBindMem ||
        !driver->cuMulticastUnbind || !driver->cuMemCreate)
        return cuda_error(gpus[0], -EOPNOTSUPP, "this CUDA driver has no multicast: 12.1 has");
    for (unsigned i = 0; i < n; i++)
        if (!gpus[i]->base.facts.multicast)
            return cuda_error(gpus[0], -EOPNOTSUPP,
                              "the CUDA driver has no multicast for cuda:%u: it wants a GPU of "
                              "compute capability 9.0 or newer, and NVLink over switches",
                              gpus[i]->base.index);
    return 0;
}

/* The switches are set up by a service, without which the driver refuses. */
static int check(struct gpu *gpu, CUresult result, const char *call)
{
    int err = cuda_check(gpu, result, call);

    if (result == RESULT_NOT_PERMIT || result == RESULT_ILLEGAL || result == RESULT_SYSTEM_READY)
        return cuda_error_add(gpu, -EOPNOTSUPP,
                              "; nvidia-fabricmanager sets the switches up: systemctl status "
                              "nvidia-fabricmanager");
    return err;
}

/* ---- Calls that may never return ---- */

/*
 * The driver binds memory and maps the object when it has all devices, and waits for that without
 * end: where it never gets one, because a switch or its service does not answer, the thread of such
 * a call is lost. So it is made by a thread of its own.
 */
enum call_kind { ADD_DEVICE, BIND_MEMORY, MAP };
static const char *const call_names[] = {"cuMulticastAddDevice", "cuMulticastBindMem", "cuMemMap"};

struct call {
    enum call_kind kind;
    const struct cuda_driver *driver;
    CUcontext context;
    CUdevice device;
    CUmemGenericAllocationHandle object, memory;
    CUdeviceptr at;
    size_t bytes;
    CUresult result;
    _Atomic bool done;
    _Atomic int users; /* the thread, and the one who waits: who leaves last frees it */
};

static void leave(struct call *c)
{
    if (atomic_fetch_sub(&c->users, 1) == 1)
        free(c);
}

static void *make_call(void *arg)
{
    struct call *c = arg;

    c->result = c->driver->cuCtxSetCurrent(c->context);
    if (c->result == CUDA_SUCCESS)
        c->result = c->kind == ADD_DEVICE ? c->driver->cuMulticastAddDevice(c->object, c->device)
                    : c->kind == BIND_MEMORY
                        ? c->driver->cuMulticastBindMem(c->object, 0, c->memory, 0, c->bytes, 0)
                        : c->driver->cuMemMap(c->at, c->bytes, 0, c->object, 0);
    atomic_store(&c->done, true);
    leave(c);
    return NULL;
}

static int is_done(void *arg)
{
    const struct call *c = arg;

    return atomic_load(&c->done) ? 0 : -EAGAIN;
}

/* What the driver is at is not known any more: no device of the group is asked anything again. */
static int give_up(struct gpu_multicast *group, struct gpu *gpu, enum call_kind kind)
{
    char waited[GPU_ERROR_BYTES];

    snprintf(waited, sizeof(waited), "%s", gpu_error(gpu));
    for (unsigned i = 0; i < group->n; i++)
        gpu_base(group->member[i].gpu)->lost = gpu_base(group->member[i].gpu)->silent = true;
    return cuda_error(
        gpu, -ETIMEDOUT, "%s did not return%s: %.120s; systemctl status nvidia-fabricmanager",
        call_names[kind],
        kind == ADD_DEVICE ? "" : ", as if a GPU of the group were still to be added", waited);
}

static int call_within(struct gpu_multicast *group, struct gpu *gpu, const struct call *what)
{
    struct call *c = xmemdup(what, sizeof(*what));
    pthread_t thread;

    c->driver = gpu->driver;
    c->context = gpu->context;
    c->device = gpu->device;
    c->object = group->object;
    c->bytes = group->bytes;
    atomic_init(&c->done, false);
    atomic_init(&c->users, 2);
    int err = pthread_create(&thread, NULL, make_call, c);
    if (err) {
        free(c);
        return cuda_error(gpu, -err, "no thread for a call of the driver");
    }
    err = cuda_wait(gpu, is_done, c);
    if (err == -ETIMEDOUT) {
        pthread_detach(thread);
        err = give_up(group, gpu, what->kind);
    } else {
        pthread_join(thread, NULL);
        err = check(gpu, c->result, call_names[what->kind]);
    }
    leave(c);
    return err;
}

/* ---- A group, step by step ---- */

/* The size that both a multicast object and the memory of a device can have. Large pages serve large
 * messages best, and small ones need none. */
static int choose_bytes(struct gpu_multicast *group, size_t bytes)
{
    struct gpu *gpu = group->member[0].gpu;
    struct cuda_multicast object = {group->n, bytes, SHAREABLE, 0};
    CUmemAllocationProp memory = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)SHAREABLE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device}};
    size_t least = 0, best = 0, pages = 0;
    int err = CUDA(gpu, cuMulticastGetGranularity, &least, &object, GRAIN_MINIMUM);

    if (!err)
        err = CUDA(gpu, cuMulticastGetGranularity, &best, &object, GRAIN_RECOMMENDED);
    if (!err)
        err = CUDA(gpu, cuMemGetAllocationGranularity, &pages, &memory,
                   CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (err)
        return err;
    group->grain = bytes >= best ? best : least;
    group->grain = group->grain > pages ? group->grain : pages; /* both are powers of two */
    group->bytes = (bytes + group->grain - 1) / group->grain * group->grain;
    return 0;
}

static int map(struct gpu_multicast *group, struct gpu *gpu, CUmemGenericAllocationHandle memory,
               struct room *room)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int err = CUDA(gpu, cuMemAddressReserve, &room->at, group->bytes, group->grain, 0, 0);

    if (err) {
        room->at = 0;
        return err;
    }
    if (memory == group->object)
        err = call_within(group, gpu, &(struct call){.kind = MAP, .at = room->at});
    else
        err = check(gpu, gpu->driver->cuMemMap(room->at, group->bytes, 0, memory, 0), "cuMemMap");
    room->mapped = !err;
    return err ? err : CUDA(gpu, cuMemSetAccess, room->at, group->bytes, &access, 1);
}

static void unmap(const struct gpu_multicast *group, struct gpu *gpu, struct room *room)
{
    if (room->mapped)
        gpu->driver->cuMemUnmap(room->at, group->bytes);
    if (room->at)
        gpu->driver->cuMemAddressFree(room->at, group->bytes);
}

/* All devices, before any memory: what binds some waits for the last of them. */
static int add_devices(struct gpu_multicast *group)
{
    struct cuda_multicast properties = {group->n, group->bytes, SHAREABLE, 0};
    struct gpu *first = group->member[0].gpu;
    int err = cuda_enter(first);

    if (!err)
        err = check(first, first->driver->cuMulticastCreate(&group->object, &properties),
                    "cuMulticastCreate");
    group->made = !err;
    for (unsigned i = 0; !err && i < group->n; i++) {
        struct gpu *gpu = group->member[i].gpu;
        err = call_within(group, gpu, &(struct call){.kind = ADD_DEVICE});
        err = say(group, gpu, err);
    }
    return err;
}

static int bind(struct gpu_multicast *group, struct member *m)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)SHAREABLE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = m->gpu->device}};
    int err = cuda_enter(m->gpu);

    if (!err)
        err = CUDA(m->gpu, cuMemCreate, &m->memory, group->bytes, &prop, 0);
    if (err)
        return err;
    m->made = true;
    err = call_within(group, m->gpu, &(struct call){.kind = BIND_MEMORY, .memory = m->memory});
    m->bound = !err;
    return err ? err : map(group, m->gpu, m->memory, &m->room);
}

static int set_up(struct gpu_multicast *group, size_t bytes)
{
    struct gpu *first = group->member[0].gpu;
    int err = choose_bytes(group, bytes);

    if (!err)
        err = add_devices(group);
    for (unsigned i = 0; !err && i < group->n; i++)
        err = say(group, group->member[i].gpu, bind(group, &group->member[i]));
    if (!err)
        err = cuda_enter(first);
    return err ? err : map(group, first, group->object, &group->all);
}

int cuda_multicast_open(struct gpu *const *gpus, unsigned n, size_t bytes, void **all, void **at,
                        struct gpu_multicast **out)
{
    int err = refuse(gpus, n);

    *out = NULL;
    if (!err)
        err = cuda_enter(gpus[0]);
    if (err)
        return err;
    struct gpu_multicast *group = xcalloc(1, sizeof(*group) + n * sizeof(group->member[0]));
    group->n = n;
    group->member[0].gpu = gpus[0]; /* there is one at least */
    for (unsigned i = 1; i < n; i++)
        group->member[i].gpu = gpus[i];
    if ((err = set_up(group, bytes))) {
        cuda_multicast_close(group);
        return err;
    }
    *all = (void *)(uintptr_t)group->all.at;
    for (unsigned i = 0; i < n; i++)
        at[i] = (void *)(uintptr_t)group->member[i].room.at;
    *out = group;
    return 0;
}

void cuda_multicast_close(struct gpu_multicast *group)
{
    if (!group)
        return;
    if (cuda_enter_quietly(group->member[0].gpu))
        unmap(group, group->member[0].gpu, &group->all);
    for (unsigned i = 0; i < group->n; i++) {
        struct member *m = &group->member[i];
        if (!cuda_enter_quietly(m->gpu))
            continue;
        unmap(group, m->gpu, &m->room);
        if (m->bound)
            m->gpu->driver->cuMulticastUnbind(group->object, m->gpu->device, 0, group->bytes);
        if (m->made)
            m->gpu->driver->cuMemRelease(m->memory);
    }
    if (group->made && cuda_enter_quietly(group->member[0].gpu))
        group->member[0].gpu->driver->cuMemRelease(group->object);
    free(group);
}
