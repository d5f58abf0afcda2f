/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module on a machine where it cannot start: each reason is told apart, and has a remedy. */
#include "benches/net/net_work.h"
#include "cuda_fixture.h"
#include "tests/unit/unit.h"

#define TEXT_BYTES 1024

/* What a child starts the module with: two variables, which may be NULL. */
struct surroundings {
    const char *name, *value, *other_name, *other_value;
};

static void start(void *arg, char *text, size_t len)
{
    const struct surroundings *world = arg;

    unsetenv("CUDA_DEVICE_ORDER");
    setenv(world->name, world->value, 1);
    if (world->other_name)
        setenv(world->other_name, world->other_value, 1);
    struct gpus *gpus = gpus_open();
    const char *why = NULL;
    if (gpus_module(gpus, &why))
        snprintf(text, len, "started: %u GPUs, %s", gpus_count(gpus), getenv("CUDA_DEVICE_ORDER"));
    else
        snprintf(text, len, "%s", why);
}

static int module_there(void **state)
{
    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    return 0;
}

/* Each reason has its remedy, whole. As nvidia-smi numbers devices, unless somebody wants them
 * otherwise. */
TEST(reasons)
{
    static const struct {
        struct surroundings world;
        const char *says;
    } cases[] = {
        {{"PLUMB_CUDA_MODULE", "/nowhere/cuda.so", NULL, NULL}, "/nowhere/cuda.so"},
        {{"PLUMB_LIBCUDA", "/nowhere/libcuda.so", NULL, NULL}, "/nowhere/libcuda.so"},
        {{"PLUMB_LIBCUDA", "libm.so.6", NULL, NULL}, "cuDriverGetVersion"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=802", NULL, NULL}, "nvidia-fabricmanager"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=803", NULL, NULL}, "restart"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=804", NULL, NULL}, "cuda-compat"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=102", NULL, NULL}, "vGPU"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=805", NULL, NULL}, "nvidia-cuda-mps-control"},
        {{"PLUMB_SIM_FAULT", "error:call=cuInit:code=46", NULL, NULL}, "nvidia-smi"},
        {{"PLUMB_SIM_FAULT", "error:call=cuDeviceGetCount:code=999", NULL, NULL}, "999"},
        {{"PLUMB_SIM_FAULT", "old_driver:version=10020", NULL, NULL}, "10.2"},
        {{"PLUMB_SIM_FAULT", "no_device", "CUDA_VISIBLE_DEVICES", "7"}, "CUDA_VISIBLE_DEVICES"},
        {{"PLUMB_SIM_FAULT", "", NULL, NULL}, "started: 2 GPUs, PCI_BUS_ID"},
        {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST", NULL, NULL}, "started: 2 GPUs, FASTEST_FIRST"},
    };
    char text[TEXT_BYTES];

    if (!cuda_fixture_simulate("two") || cuda_fixture_real())
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cuda_fixture_child(start, (void *)&cases[i].world, text, sizeof(text));
        if (!strstr(text, cases[i].says) || strlen(text) >= GPU_ERROR_BYTES - 1)
            fail_msg("'%s' does not say '%s'", text, cases[i].says);
    }
}

static void ask_again(void *arg, char *text, size_t len)
{
    const char *why = NULL;
    struct gpus *gpus = gpus_open();
    struct gpu *gpu;
    char error[GPU_ERROR_BYTES] = "";

    (void)arg;
    assert_true(!gpus_module(gpus, &why));
    gpus_get(gpus, 0, &gpu, error, sizeof(error));
    snprintf(text, len, "%s and %s", why, error);
}

/* This process is a child of the test; what it forks once it has used a GPU has none, and a peer of
 * plumb-net's that would need one is not forked. One that needs none is. */
static void use_and_fork(void *arg, char *text, size_t len)
{
    struct net_params params = {.peer_memory = "cuda:0"};
    struct channel *c = NULL;
    char below[TEXT_BYTES], error[512];
    struct gpus *gpus = gpus_open();

    (void)arg;
    assert_false(gpus_used());
    gpus_module(gpus, NULL);
    assert_true(gpus_used());
    cuda_fixture_child(ask_again, NULL, below, sizeof(below));
    int refused = net_peer_open(&c, &params, NULL, NULL, error, sizeof(error));
    params.peer_memory = "host";
    int none = net_peer_open(&c, &params, NULL, NULL, error, sizeof(error));
    channel_close(c);
    gpus_close(gpus);
    snprintf(text, len, "%s; %d %d", below, refused, none);
}

TEST(children_of_one_that_used_a_gpu)
{
    char text[4 * TEXT_BYTES], want[64];

    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    cuda_fixture_child(use_and_fork, NULL, text, sizeof(text));
    snprintf(want, sizeof(want), "; %d 0", -EBUSY);
    if (!strstr(text, "forked") || !strstr(text, want))
        fail_msg("%s", text);
}

TESTS_WITH(module_there, NULL);
