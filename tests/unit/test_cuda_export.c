/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory for other devices: exported as a file, and what they wrote seen after a flush. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda_fixture.h"
#include "tests/sim/export.h"

#define BYTES 262144u

/* A process of its own for each machine: "KEY = VALUE" of its GPU. */
struct scene {
    const char *line, *fault;
    void (*run)(struct cuda_fixture *bed, void *at, char *text, size_t len);
};

static void play(void *arg, char *text, size_t len)
{
    const struct scene *scene = arg;
    char path[64];
    struct cuda_fixture bed;
    void *at = NULL;

    snprintf(path, sizeof(path), "/tmp/plumb-export-%d.conf", (int)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "[machine]\ngpus = 1\n[gpu]\n%s\n", scene->line);
    fclose(f);
    assert_true(cuda_fixture_simulate("one"));
    setenv("PLUMB_SIM_MACHINE", path, 1);
    if (scene->fault)
        setenv("PLUMB_SIM_FAULT", scene->fault, 1);
    char error[GPU_ERROR_BYTES] = "";
    bed = (struct cuda_fixture){.gpus = gpus_open()};
    bed.ops = gpus_module(bed.gpus, NULL);
    unlink(path);
    assert_non_null(bed.ops);
    assert_int_equal(gpus_get(bed.gpus, 0, &bed.gpu, error, sizeof(error)), 0);
    OK(&bed, bed.ops->stream_open(bed.gpu, &bed.stream));
    OK(&bed, bed.ops->alloc(bed.gpu, GPU_DEVICE, BYTES, &at));
    scene->run(&bed, at, text, len);
    cuda_fixture_close(&bed);
}

static void run_scene(const struct scene *scene, char *text, size_t len)
{
    if (!cuda_fixture_simulate("one") || cuda_fixture_real())
        skip();
    cuda_fixture_child(play, (void *)(uintptr_t)scene, text, len);
}

static void ranges(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    struct sim_export export = {0};
    const struct gpu_facts *facts = &gpu_base(bed->gpu)->facts;
    int fd = -1;

    assert_true(facts->rdma && facts->dmabuf);
    OK(bed, bed->ops->export_memory(bed->gpu, (char *)at + 65536, 131072, &fd));
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &export, sizeof(export), 0), sizeof(export));
    assert_int_equal(export.at, (uintptr_t)at + 65536);
    assert_int_equal(export.bytes, 131072);
    close(fd);
    assert_int_equal(bed->ops->export_memory(bed->gpu, (char *)at + 8, 65536, &fd), -EINVAL);
    assert_int_equal(fd, -1);
    assert_int_equal(bed->ops->export_memory(bed->gpu, at, 65536 + 8, &fd), -EINVAL);
    assert_int_equal(bed->ops->export_memory(bed->gpu, at, 0, &fd), -EINVAL);
    snprintf(text, len, "%s", gpu_error(bed->gpu));
    assert_true(bed->ops->export_memory(bed->gpu, at, 2 * BYTES, &fd) < 0); /* beyond its end */
    assert_int_equal(fd, -1);
    assert_non_null(strstr(gpu_error(bed->gpu), "cuMemGetHandleForAddressRange: "));
}

static void test_whole_pages_are_exported(void **state)
{
    char text[GPU_ERROR_BYTES];

    (void)state;
    run_scene(&(struct scene){"", NULL, ranges}, text, sizeof(text));
    assert_non_null(strstr(text, "whole pages"));
}

static void refused(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    int fd = 7;

    assert_int_equal(bed->ops->export_memory(bed->gpu, at, BYTES, &fd), -EOPNOTSUPP);
    assert_int_equal(fd, -1);
    snprintf(text, len, "%s", gpu_error(bed->gpu));
}

static void test_why_there_is_no_export(void **state)
{
    static const struct scene without = {"dmabuf = no", NULL, refused},
                              neither = {"dmabuf = no\nrdma = no", NULL, refused},
                              by_driver = {"", "error:call=cuMemGetHandleForAddressRange:code=801",
                                           refused};
    char text[GPU_ERROR_BYTES];

    (void)state;
    run_scene(&without, text, sizeof(text));
    assert_non_null(strstr(text, "as dma-buf (GPUDirect RDMA is there)"));
    run_scene(&neither, text, sizeof(text));
    assert_non_null(strstr(text, "nor has it GPUDirect RDMA"));
    run_scene(&by_driver, text, sizeof(text));
    assert_non_null(strstr(text, "cuMemGetHandleForAddressRange: operation not supported"));
}

/* What an RDMA device writes: behind the driver's back. */
static unsigned char *share(void *at)
{
    plumb_sim_share_fn *fn;
    void *library = dlopen(getenv("PLUMB_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);

    assert_non_null(library);
    *(void **)&fn = dlsym(library, "plumb_sim_share");
    return fn((uintptr_t)at, BYTES);
}

static unsigned char seen(struct cuda_fixture *bed, void *at, unsigned char *pinned)
{
    OK(bed, bed->ops->copy(bed->stream, pinned, at, 64));
    OK(bed, bed->ops->stream_wait(bed->stream));
    return pinned[0];
}

static void written(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    unsigned char *bytes = share(at);
    void *pinned = NULL;
    unsigned first, second, third;

    assert_non_null(bytes);
    OK(bed, bed->ops->alloc(bed->gpu, GPU_PINNED, 64, &pinned));
    bytes[0] = 5;
    OK(bed, bed->ops->flush_writes(bed->gpu));
    first = seen(bed, at, pinned);
    bytes[0] = 6;
    second = seen(bed, at, pinned); /* for want of a flush, where the device wants one */
    OK(bed, bed->ops->flush_writes(bed->gpu));
    third = seen(bed, at, pinned);
    snprintf(text, len, "%u %u %u", first, second, third);
    bed->ops->free(bed->gpu, GPU_PINNED, pinned);
}

static void test_writes_are_flushed(void **state)
{
    static const struct scene unordered = {"rdma_flush = yes", NULL, written},
                              ordered = {"rdma_flush = no", NULL, written};
    char text[64];

    (void)state;
    run_scene(&unordered, text, sizeof(text));
    assert_string_equal(text, "5 249 6");
    run_scene(&ordered, text, sizeof(text));
    assert_string_equal(text, "5 6 6");
}

static void no_flush(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    (void)at;
    snprintf(text, len, "%d", bed->ops->flush_writes(bed->gpu));
}

/* Not asked of a device that keeps the order by itself. */
static void test_no_flush_where_none_is_needed(void **state)
{
    static const char fault[] = "error:call=cuFlushGPUDirectRDMAWrites:code=999";
    static const struct scene ordered = {"rdma_flush = no", fault, no_flush},
                              unordered = {"rdma_flush = yes", fault, no_flush};
    char text[64];

    (void)state;
    run_scene(&ordered, text, sizeof(text));
    assert_string_equal(text, "0");
    run_scene(&unordered, text, sizeof(text));
    assert_int_equal(atoi(text), -EIO);
}

/* On a real GPU: a file, or why there is none. */
static void test_a_gpu_says_either(void **state)
{
    struct cuda_fixture bed;
    void *at = NULL;
    int fd = -1;

    (void)state;
    if (cuda_fixture_open("one", &bed) || !bed.ops) {
        skip();
        return;
    }
    OK(&bed, bed.ops->alloc(bed.gpu, GPU_DEVICE, 4u << 20, &at));
    int err = bed.ops->export_memory(bed.gpu, at, 4u << 20, &fd);
    if (err)
        print_message("no export: %s\n", gpu_error(bed.gpu));
    assert_true(err ? err == -EOPNOTSUPP && fd == -1 : fd >= 0);
    OK(&bed, bed.ops->flush_writes(bed.gpu));
    if (fd >= 0)
        close(fd);
    bed.ops->free(bed.gpu, GPU_DEVICE, at);
    cuda_fixture_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_pages_are_exported),
        cmocka_unit_test(test_why_there_is_no_export),
        cmocka_unit_test(test_writes_are_flushed),
        cmocka_unit_test(test_no_flush_where_none_is_needed),
        cmocka_unit_test(test_a_gpu_says_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
