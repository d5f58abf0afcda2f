/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory for other devices: exported as a file, and what they wrote seen after a flush. */
#include <dlfcn.h>

#include "cuda_fixture.h"
#include "tests/sim/export.h"
#include "tests/unit/unit.h"

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
    const struct gpu_facts *facts = &gpu_base(bed->gpu)->facts;
    static const size_t bad[][2] = {{8, 65536}, {0, 65536 + 8}, {0, 0}};
    struct sim_export export = {0};
    int fd = -1;

    assert_true(facts->rdma && facts->dmabuf);
    OK(bed, bed->ops->export_memory(bed->gpu, (char *)at + 65536, 131072, &fd));
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &export, sizeof(export), 0), sizeof(export));
    assert_int_equal(export.at, (uintptr_t)at + 65536);
    assert_int_equal(export.bytes, 131072);
    close(fd);
    for (size_t i = 0; i < 3; i++) {
        fd = 7;
        assert_int_equal(bed->ops->export_memory(bed->gpu, (char *)at + bad[i][0], bad[i][1], &fd),
                         -EINVAL);
        assert_int_equal(fd, -1);
    }
    assert_true(bed->ops->export_memory(bed->gpu, at, 2 * BYTES, &fd) < 0); /* beyond its end */
    assert_int_equal(fd, -1);
    snprintf(text, len, "done");
}

static void refused(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    int fd = 7;

    assert_int_equal(bed->ops->export_memory(bed->gpu, at, BYTES, &fd), -EOPNOTSUPP);
    assert_int_equal(fd, -1);
    snprintf(text, len, "refused");
}

/* Whole pages, of a device that has dma-buf by a driver that gives it. */
TEST(test_whole_pages_are_exported)
{
    static const char fault[] = "error:call=cuMemGetHandleForAddressRange:code=801";
    static const struct scene cases[] = {
        {"", NULL, ranges}, {"dmabuf = no", NULL, refused}, {"", fault, refused}};
    char text[GPU_ERROR_BYTES];

    for (size_t i = 0; i < 3; i++) {
        run_scene(&cases[i], text, sizeof(text));
        assert_string_equal(text, i ? "refused" : "done");
    }
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

static void failed_flush(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    (void)at;
    OK(bed, bed->ops->flush_writes(bed->gpu));
    snprintf(text, len, "%d", bed->ops->flush_writes(bed->gpu));
}

static void written(struct cuda_fixture *bed, void *at, char *text, size_t len)
{
    unsigned char *bytes = share(at);
    void *pinned = NULL;
    unsigned seen_first, second;

    assert_non_null(bytes);
    OK(bed, bed->ops->alloc(bed->gpu, GPU_PINNED, 64, &pinned));
    bytes[0] = 5;
    OK(bed, bed->ops->flush_writes(bed->gpu));
    seen_first = seen(bed, at, pinned);
    bytes[0] = 6;
    second = seen(bed, at, pinned); /* for want of a flush, where the device wants one */
    int err = bed->ops->flush_writes(bed->gpu);
    snprintf(text, len, "%u %u %u %d", seen_first, second, seen(bed, at, pinned), err);
    bed->ops->free(bed->gpu, GPU_PINNED, pinned);
}

/* A device that keeps the order by itself is not asked for a flush. */
TEST(test_writes_are_flushed)
{
    static const char fault[] = "error:call=cuFlushGPUDirectRDMAWrites:code=999:after=1",
                      always[] = "error:call=cuFlushGPUDirectRDMAWrites:code=999";
    static const struct {
        struct scene scene;
        const char *seen;
    } cases[] = {{{"rdma_flush = yes", NULL, written}, "5 249 6 0"},
                 {{"rdma_flush = no", always, written}, "5 6 6 0"},
                 {{"rdma_flush = yes", fault, failed_flush}, "-5"}};
    char text[64];

    for (size_t i = 0; i < 3; i++) {
        run_scene(&cases[i].scene, text, sizeof(text));
        assert_string_equal(text, cases[i].seen);
    }
}
