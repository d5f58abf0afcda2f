/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one state of the simulated driver, and the mark by which every library is known for a stand-in.
 * Nothing here can be used without the mark: each call of the interface begins with sim_enter, which is
 * in the mark's own object file.
 */
#include "tests/sim/sim.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char plumb_simulated[] = "libcuda";

static struct sim the_sim = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread int current = -1; /* the device of the thread's context */

double sim_clock(const struct sim *sim)
{
    return (double)(clock_now_ns() - sim->base_ns);
}

CUresult sim_start(struct sim *sim)
{
    char error[1024];

    if (sim->started)
        return CUDA_SUCCESS;
    if (sim_machine_read(&sim->machine, error, sizeof(error))) {
        fprintf(stderr, "simulated libcuda: %s\n", error);
        return CUDA_ERROR_NO_DEVICE;
    }
    if (sim_fault_has(&sim->machine, SIM_NO_DEVICE, -1, -1))
        return CUDA_ERROR_NO_DEVICE;
    sim->base_ns = clock_now_ns();
    for (unsigned i = 0; i < SIM_GPUS; i++)
        sim->device[i].index = i;
    sim->thread = pthread_self();
    sim->pid = getpid();
    sim->started = true;
    return CUDA_SUCCESS;
}

/* The real driver's answer to every call in a child of a process that it was started in, cuInit among them. */
static bool is_forked(const struct sim *sim)
{
    return sim->started && sim->pid != getpid();
}

CUresult sim_enter(struct sim **sim, const char *call)
{
    const struct sim_fault *fault;

    *sim = &the_sim;
    pthread_mutex_lock(&the_sim.lock);
    if (is_forked(&the_sim))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!plumb_simulated[0] || !the_sim.started)
        return CUDA_ERROR_NOT_INITIALIZED;
    the_sim.many_threads = the_sim.many_threads || !pthread_equal(the_sim.thread, pthread_self());
    sim_poll(*sim);
    fault = sim_fault_strikes(&the_sim.machine, SIM_ERROR,
                              (struct sim_event){.gpu = current, .peer = -1, .call = call});
    return fault ? (CUresult)fault->code : CUDA_SUCCESS;
}

CUresult sim_enter_device(struct sim **sim, struct sim_device **device, const char *call)
{
    CUresult rc = sim_enter(sim, call);

    *device = sim_current(*sim);
    if (rc)
        return rc;
    if (!*device || !(*device)->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!(*device)->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*device)->error;
}

CUresult sim_leave(struct sim *sim, CUresult rc)
{
    pthread_mutex_unlock(&sim->lock);
    return rc;
}

struct sim_device *sim_current(struct sim *sim)
{
    return current < 0 ? NULL : &sim->device[current];
}

/* What calls cost that go to the driver, where the device is remote or shared. */
void sim_busy(const struct sim *sim, double us)
{
    double until = us > 0 ? sim_clock(sim) + us * 1e3 : 0;

    while (us > 0 && sim_clock(sim) < until)
        ;
}

void sim_call_cost(const struct sim *sim, const struct sim_device *device)
{
    sim_busy(sim, sim->machine.gpu[device->index].call_us);
}

CUresult cuInit(unsigned flags)
{
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuInit");

    if (flags)
        return sim_leave(sim, CUDA_ERROR_INVALID_VALUE);
    if (rc == CUDA_ERROR_NOT_INITIALIZED && !is_forked(sim))
        rc = sim_start(sim);
    return sim_leave(sim, rc);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    struct sim_device *device = (struct sim_device *)context;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuCtxSetCurrent");

    if (!rc && device && (device < sim->device || device >= sim->device + SIM_GPUS))
        rc = CUDA_ERROR_INVALID_CONTEXT;
    if (!rc && device && !device->active)
        rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!rc)
        current = device ? (int)device->index : -1;
    if (!rc && device)
        sim_busy(sim, sim->machine.gpu[device->index].context_us);
    return sim_leave(sim, rc);
}

const struct sim_machine *plumb_sim_machine(void)
{
    return &the_sim.machine;
}

int plumb_sim_current(void)
{
    return current;
}

int plumb_sim_turn(int gpu)
{
    int before = current;

    current = gpu;
    return before;
}

uint64_t plumb_sim_ecc_errors(unsigned gpu)
{
    return gpu < SIM_GPUS ? the_sim.device[gpu].ecc_errors : 0;
}

/* Where the library is unloaded, as tests do between machines. */
__attribute__((destructor)) static void unload(void)
{
    sim_space_unmap(&the_sim);
}
