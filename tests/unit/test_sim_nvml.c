/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NVML, and the mark that each simulated library bears. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/sim_bench.h"

#ifdef SIM_BENCH

#include <glob.h>

#include "core/hw/nvml.h"

static void nvml_load(struct nvml *n)
{
    n->library = dlopen(SIM_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        fail_msg("%s", dlerror());
#define NVML_LOAD(member, symbol, arguments) *(void **)&n->member = dlsym(n->library, #symbol);
    NVML_FUNCTIONS(NVML_LOAD)
}

static void nvml_shows_the_same_machine(void **state)
{
    struct bench *b = *state;
    struct nvml n = {0};
    struct nvml_device *device, *peer;
    struct nvml_pci pci;
    struct nvml_memory memory;
    struct nvml_field field = {.field = NVML_FIELD_NVLINK_SPEED, .scope = 1};
    unsigned value = 0, count = 0;

    open_raw(b,
             "[machine]\ngpus = 3\n[gpu]\nmemory_bytes = 8G\npcie_gen = 3\npcie_gen_max = 5\n"
             "[gpu 1]\naddress = 0001:3b:00.0\n[link 1 2]\nkind = nvlink\nlanes = 2\n"
             "lane_gbps = 25\n[link 0 1]\nkind = nvlink\nlanes = 1\n",
             NULL);
    nvml_load(&n);
    assert_int_not_equal(n.count(&count), 0); /* not started */
    assert_int_equal(n.init(), 0);
    assert_int_equal(n.count(&count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(n.by_address("00000001:3B:00.0", &device), 0);
    assert_int_equal(n.by_index(2, &peer), 0);
    assert_int_equal(n.pci(device, &pci), 0);
    assert_int_equal(pci.domain, 1);
    assert_int_equal(pci.bus, 0x3b);
    assert_int_equal(n.memory(device, &memory), 0);
    assert_true(memory.total == UINT64_C(8) << 30);
    assert_int_equal(n.pcie_generation(device, &value), 0);
    assert_int_equal(value, 3);
    assert_int_equal(n.pcie_generation_max(device, &value), 0);
    assert_int_equal(value, 5);
    assert_int_equal(n.link_state(device, 2, &value), 0);
    assert_int_equal(value, 1);
    assert_int_not_equal(n.link_state(device, 3, &value), 0);
    assert_int_equal(n.link_remote(device, 0, &pci), 0);
    assert_int_equal(pci.bus, 0x10);
    assert_int_equal(n.link_remote(device, 1, &pci), 0);
    assert_int_equal(pci.bus, 0x12);
    assert_int_equal(n.link_version(device, 1, &value), 0);
    assert_int_equal(value, 6); /* as NVML counts: 4.0 */
    assert_int_equal(n.fields(device, 1, &field), 0);
    assert_int_equal(field.status, 0);
    assert_int_equal(field.value.wide, 25000);
    assert_int_equal(n.p2p(device, peer, NVML_P2P_NVLINK, &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(n.shutdown(), 0);
    dlclose(n.library);
}

static void nvml_tells_of_trouble(void **state)
{
    struct bench *b = *state;
    struct nvml n = {0};
    struct nvml_device *device;
    struct nvml_violation before, after;
    unsigned long long reasons = 0, errors = 9;
    unsigned mhz = 0;
    CUdeviceptr at;

    open_bench(b, 1, PLAIN "[gpu]\nclock_mhz = 1000\necc_uncorrected = 2\n",
               "throttle:factor=0.6:reason=hw_thermal,ecc");
    nvml_load(&n);
    assert_int_equal(n.init(), 0);
    assert_int_equal(n.by_index(0, &device), 0);
    assert_int_equal(n.clock(device, NVML_CLOCK_SM, &mhz), 0);
    assert_int_equal(mhz, 600);
    assert_int_equal(n.reasons(device, &reasons), 0);
    assert_true(reasons & NVML_REASON_HW_THERMAL);
    assert_int_equal(n.violation(device, NVML_POLICY_THERMAL, &before), 0);
    usleep(2000);
    assert_int_equal(n.violation(device, NVML_POLICY_THERMAL, &after), 0);
    assert_true(after.ns - before.ns >= 2000000);
    assert_int_equal(n.violation(device, NVML_POLICY_POWER, &after), 0);
    assert_int_equal(after.ns, 0);
    at = take(b, 0, 4096);
    struct gpu_pass_args args = {.dst = (void *)at, .bytes = 4096, .passes = 1};
    assert_int_equal(n.ecc_total(device, NVML_UNCORRECTED, NVML_SINCE_LOAD, &errors), 0);
    assert_int_equal(errors, 2);
    launch(b, 0, "write_f32_u1", 1, 32, &args);
    assert_int_equal(b->d.cuStreamSynchronize(b->stream[0]), CUDA_ERROR_ECC_UNCORRECTABLE);
    assert_int_equal(n.ecc_total(device, NVML_UNCORRECTED, NVML_SINCE_LOAD, &errors), 0);
    assert_int_equal(errors, 3);
    n.shutdown();
    dlclose(n.library);
}

static void all_bear_the_mark(void **state)
{
    unsigned seen = 0;
    glob_t found;

    (void)state;
    assert_int_equal(glob(SIM_DIR "/lib*.so.*", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++, seen++) {
        void *library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);

        assert_non_null(library);
        assert_non_null(dlsym(library, "plumb_simulated"));
        dlclose(library);
    }
    assert_true(seen >= 2);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(nvml_shows_the_same_machine),
        SIM_TEST(nvml_tells_of_trouble),
        cmocka_unit_test(all_bear_the_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
