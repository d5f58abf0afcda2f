/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module on a machine where it cannot start: each reason is told apart, and has a remedy. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "benches/net/net_work.h"
#include "cuda_fixture.h"
#include "scratch_tree.h"

#define TEXT_BYTES 1024

/* What a child sets before it starts the module. */
struct surroundings {
    const char *variables[4][2]; /* a value of NULL: unset */
    bool ordinary_user;
};

static void start(void *arg, char *text, size_t len)
{
    const struct surroundings *world = arg;

    for (size_t i = 0; i < 4 && world->variables[i][0]; i++) {
        if (world->variables[i][1])
            setenv(world->variables[i][0], world->variables[i][1], 1);
        else
            unsetenv(world->variables[i][0]);
    }
    struct gpus *gpus = gpus_open();
    const char *why = NULL;
    if (world->ordinary_user && geteuid() == 0 &&
        (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        _exit(1);
    if (gpus_module(gpus, &why))
        snprintf(text, len, "started: %u GPUs, CUDA_DEVICE_ORDER=%s", gpus_count(gpus),
                 getenv("CUDA_DEVICE_ORDER"));
    else
        snprintf(text, len, "%s", why);
}

/* Sentences are whole: not cut off at the end of the buffer. */
static void says(const struct surroundings *world, const char *one, const char *other)
{
    char text[TEXT_BYTES];

    cuda_fixture_child(start, (void *)world, text, sizeof(text));
    if (!strstr(text, one) || !strstr(text, other))
        fail_msg("'%s' does not say '%s' and '%s'", text, one, other);
    assert_true(strlen(text) < GPU_ERROR_BYTES - 1);
}

static int module_there(void **state)
{
    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    return 0;
}

static void without_module(void **state)
{
    (void)state;
    says(&(struct surroundings){.variables = {{"PLUMB_CUDA_MODULE", "/nonexistent/plumb-cuda.so"}}},
         "does not load", "/nonexistent/plumb-cuda.so");
}

static void library_that_is_named_and_not_there(void **state)
{
    (void)state;
    if (!cuda_fixture_module())
        skip();
    says(&(struct surroundings){.variables = {{"PLUMB_LIBCUDA", "/nonexistent/libcuda.so.1"}}},
         "PLUMB_LIBCUDA", "/nonexistent/libcuda.so.1");
}

static void library_that_is_another(void **state)
{
    (void)state;
    if (!cuda_fixture_module())
        skip();
    says(&(struct surroundings){.variables = {{"PLUMB_LIBCUDA", "libm.so.6"}}}, "no CUDA driver",
         "cuDriverGetVersion");
}

/* A machine's files, as far as they are asked for. */
static void add_pci(struct scratch *tree, const char *vendor, const char *class)
{
    scratch_put(tree, "sys/bus/pci/devices/0000:3b:00.0/vendor", vendor);
    scratch_put(tree, "sys/bus/pci/devices/0000:3b:00.0/class", class);
}

static void no_library(void **state)
{
    struct scratch tree;
    void *library;

    (void)state;
    if (!cuda_fixture_module())
        skip();
    if ((library = dlopen("libcuda.so.1", RTLD_LAZY))) {
        dlclose(library);
        print_message("this machine has a CUDA driver\n");
        skip();
    }
    scratch_open(&tree);
    const struct surroundings world = {
        .variables = {{"PLUMB_SYSROOT", tree.root}, {"PLUMB_LIBCUDA", NULL}}};
    says(&world, "PCI shows no GPU", "--gpus all");
    add_pci(&tree, "0x10de\n", "0x040300\n"); /* its sound device */
    says(&world, "PCI shows no GPU", "--gpus all");
    add_pci(&tree, "0x10de\n", "0x030200\n");
    says(&world, "there is a GPU of NVIDIA's", "install NVIDIA's driver");
    scratch_put(&tree, "proc/driver/nvidia/version", "NVRM version: 580.00\n");
    says(&world, "the kernel has NVIDIA's driver", "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    scratch_close(&tree);
}

/* The toolkit's library to link with, which does nothing. */
static void stub_library(void **state)
{
    static const char *const folders[] = {"lib64/stubs", "lib/stubs"};
    const char *home = getenv("CUDA_HOME");
    char path[512];

    (void)state;
    if (!cuda_fixture_module())
        skip();
    for (size_t i = 0; home && i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s/libcuda.so", home, folders[i]);
        if (!access(path, R_OK)) {
            says(&(struct surroundings){.variables = {{"PLUMB_LIBCUDA", path}}}, "toolkit's stub",
                 "LD_LIBRARY_PATH");
            return;
        }
    }
    print_message("no stub library in $CUDA_HOME\n");
    skip();
}

static void old_driver(void **state)
{
    (void)state;
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    says(&(struct surroundings){.variables = {{"PLUMB_SIM_FAULT", "old_driver:version=10020"}}},
         "the driver supports CUDA 10.2, this build needs", "or newer, or build with an older");
}

/* cuInit's own codes, and what is to be done. */
static void codes(void **state)
{
    static const char *const cases[][3] = {
        {"error:call=cuInit:code=802", "nvidia-fabricmanager", "802"},
        {"error:call=cuInit:code=803", "different versions", "restart"},
        {"error:call=cuInit:code=804", "cuda-compat", "LD_LIBRARY_PATH"},
        {"error:call=cuInit:code=102", "vGPU", "licence"},
        {"error:call=cuInit:code=805", "MPS", "nvidia-cuda-mps-control"},
        {"error:call=cuInit:code=46", "compute mode", "nvidia-smi"},
        {"error:call=cuDeviceGetCount:code=999", "cuDeviceGetCount", "999"},
    };

    (void)state;
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        says(&(struct surroundings){.variables = {{"PLUMB_SIM_FAULT", cases[i][0]}}}, cases[i][1],
             cases[i][2]);
}

/* As nvidia-smi numbers them, unless somebody wants them otherwise. */
static void order_of_devices(void **state)
{
    (void)state;
    if (!cuda_fixture_simulate("two") || cuda_fixture_real())
        skip();
    says(&(struct surroundings){.variables = {{"CUDA_DEVICE_ORDER", NULL}}}, "started: 2 GPUs",
         "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    says(&(struct surroundings){.variables = {{"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}}, "started",
         "CUDA_DEVICE_ORDER=FASTEST_FIRST");
}

static void hidden_devices(void **state)
{
    (void)state;
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    says(&(struct surroundings){.variables = {{"PLUMB_SIM_FAULT", "no_device"},
                                              {"CUDA_VISIBLE_DEVICES", "7"}}},
         "CUDA_VISIBLE_DEVICES='7'", "unset it");
}

static void device_nodes(void **state)
{
    struct scratch tree;
    char node[1024];

    (void)state;
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    scratch_open(&tree);
    struct surroundings world = {
        .variables = {{"PLUMB_SIM_FAULT", "no_device"}, {"PLUMB_SYSROOT", tree.root}}};
    says(&world, "kernel driver is not loaded", "PCI shows no GPU");
    add_pci(&tree, "0x10de\n", "0x030000\n");
    says(&world, "kernel driver is not loaded", "modprobe nvidia");
    scratch_put(&tree, "proc/driver/nvidia/version", "NVRM version: 580.00\n");
    says(&world, "there is no '/dev/nvidiactl'", "nvidia-modprobe");
    scratch_put(&tree, "dev/nvidiactl", "");
    says(&world, "there is no '/dev/nvidia-uvm'", "nvidia-modprobe");
    scratch_put(&tree, "dev/nvidia-uvm", "");
    says(&world, "nvidia-smi -L", "dmesg");
    snprintf(node, sizeof(node), "%s/dev/nvidiactl", tree.root);
    assert_int_equal(chmod(node, 0), 0);
    assert_int_equal(chmod(tree.root, 0755), 0);
    world.ordinary_user = true;
    says(&world, "no permission to open '/dev/nvidiactl'", "usermod -aG");
    scratch_close(&tree);
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

/* This process is a child of the test; what it forks once it has used a GPU has none, and a peer of plumb-net's that would
 * need one is not forked. One that needs none is. */
static void use_and_fork(void *arg, char *text, size_t len)
{
    struct net_params params = {.peer_memory = "cuda:0"};
    struct channel *c = NULL;
    char below[TEXT_BYTES], refused[512] = "", not_refused[512] = "";
    struct gpus *gpus = gpus_open();

    (void)arg;
    bool before = gpus_used();
    gpus_module(gpus, NULL);
    cuda_fixture_child(ask_again, NULL, below, sizeof(below));
    int err = net_peer_open(&c, &params, NULL, NULL, refused, sizeof(refused));
    params.peer_memory = "host";
    int none = net_peer_open(&c, &params, NULL, NULL, not_refused, sizeof(not_refused));
    channel_close(c);
    gpus_close(gpus);
    snprintf(text, len, "%d %d; %s; %d %s; %d", before, gpus_used(), below, err, refused, none);
}

static void children_of_one_that_used_a_gpu(void **state)
{
    char text[4 * TEXT_BYTES], want[64];

    (void)state;
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    cuda_fixture_child(use_and_fork, NULL, text, sizeof(text));
    snprintf(want, sizeof(want), "; %d --peer-memory cuda:0", -EBUSY);
    if (strncmp(text, "0 1; this process was forked from one that had used a GPU", 56) != 0 ||
        !strstr(text, "and this process was forked from one that had used a GPU") ||
        !strstr(text, want) || strcmp(text + strlen(text) - 3, "; 0") != 0)
        fail_msg("%s", text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_module),
        cmocka_unit_test(library_that_is_named_and_not_there),
        cmocka_unit_test(library_that_is_another),
        cmocka_unit_test(no_library),
        cmocka_unit_test(stub_library),
        cmocka_unit_test(old_driver),
        cmocka_unit_test(codes),
        cmocka_unit_test(order_of_devices),
        cmocka_unit_test(hidden_devices),
        cmocka_unit_test(device_nodes),
        cmocka_unit_test(children_of_one_that_used_a_gpu),
    };

    return cmocka_run_group_tests(tests, module_there, NULL);
}
