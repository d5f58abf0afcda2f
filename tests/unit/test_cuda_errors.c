/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module when something fails, on simulated devices: what the caller is told, that a device
 * that was lost stays so until it is opened again, and that the others go on. Each case in a process of
 * its own: faults are read when the driver starts.
 */
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

#include "core/clock.h"
#include "core/hw/gpu_kernels.h"
#include "cuda_fixture.h"

#define TEXT_BYTES 2048
#define LONG_BYTES (64u << 20) /* 100 times it, set, take 60 ms and more */

struct ctx {
    struct gpus *gpus;
    const struct gpu_ops *ops;
    struct gpu *gpu;
    char *text;
    size_t len;
};

struct scenario {
    const char *fault, *machine;
    void (*run)(struct ctx *c);
    const char *description; /* of the machine, in place of its name */
    double silent_s;         /* the least time for which a GPU is said not to have answered */
};

/* A line of the report: what was called, its result and the sentence. */
static void note(struct ctx *c, const char *what, int err)
{
    size_t used = strlen(c->text);

    snprintf(c->text + used, c->len - used, "%s=%s%s%s\n", what, err ? strerrorname_np(-err) : "0",
             err && c->gpu ? " " : "", err && c->gpu ? gpu_error(c->gpu) : "");
}

static void play(void *arg, char *text, size_t len)
{
    const struct scenario *s = arg;
    char error[GPU_ERROR_BYTES] = "";
    const char *why = "";
    struct ctx c = {.text = text, .len = len};

    setenv("PLUMB_SIM_FAULT", s->fault, 1);
    c.gpus = gpus_open();
    c.ops = gpus_module(c.gpus, &why);
    if (!c.ops) {
        snprintf(text, len, "no module: %s\n", why);
        return;
    }
    int err = gpus_get(c.gpus, 0, &c.gpu, error, sizeof(error));
    if (err)
        snprintf(text, len, "open=%s %s\n", strerrorname_np(-err), error);
    else
        s->run(&c);
    gpus_close(c.gpus);
}

/* A machine by its description, in a file that the caller removes. */
static void describe(const char *description, char path[32])
{
    snprintf(path, 32, "/tmp/plumb-machine-XXXXXX");
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, description, strlen(description)), strlen(description));
    close(fd);
    setenv("PLUMB_SIM_MACHINE", path, 1);
}

/* How long the first silence that the text tells of was; -1 where it tells of none. */
static double told_silence_s(const char *text)
{
    static const char before[] = "has not answered for ";
    const char *at = strstr(text, before);

    return at ? strtod(at + strlen(before), NULL) : -1;
}

static void expect(const struct scenario *s, const char *const *wanted)
{
    char text[TEXT_BYTES], path[32] = "";

    if (!cuda_fixture_simulate(s->machine ? s->machine : "two"))
        skip();
    if (cuda_fixture_real()) {
        print_message("faults are the simulated device's\n");
        skip();
    }
    if (s->description)
        describe(s->description, path);
    cuda_fixture_child(play, (void *)s, text, sizeof(text));
    if (path[0])
        unlink(path);
    for (; *wanted; wanted++)
        if (!strstr(text, *wanted))
            fail_msg("'%s' is not in:\n%s", *wanted, text);
    if (s->silent_s > 0 && told_silence_s(text) < s->silent_s)
        fail_msg("no silence of %g s or more in:\n%s", s->silent_s, text);
}

#define EXPECT(fault, machine, run, ...) EXPECT_SILENT(0, fault, machine, run, __VA_ARGS__)
#define EXPECT_SILENT(silent_s, fault, machine, run, ...)                                          \
    expect(&(struct scenario){fault, machine, run, NULL, silent_s},                                \
           (const char *const[]){__VA_ARGS__, NULL})

static int launch_empty(struct ctx *c, struct gpu_stream *stream)
{
    const struct gpu_empty_args none = {0};
    struct gpu_kernel *kernel;
    int err = c->ops->kernel(c->gpu, "empty", &kernel);

    return err ? err : c->ops->launch(stream, kernel, 1, 32, &none);
}

/* A kernel fails; then whatever is asked; then the device is opened again. */
static void failing_kernel(struct ctx *c)
{
    struct gpu_stream *stream, *other;
    struct gpu *second;
    char error[GPU_ERROR_BYTES];
    uint64_t bytes;
    void *at;

    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "launch", launch_empty(c, stream));
    note(c, "wait", c->ops->stream_wait(stream));
    note(c, "lost", gpu_base(c->gpu)->lost ? 0 : -ENOENT);
    note(c, "alloc", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &at));
    note(c, "free_bytes", c->ops->free_bytes(c->gpu, &bytes));
    note(c, "again", c->ops->stream_wait(stream));
    c->ops->stream_close(stream);
    note(c, "second", gpus_get(c->gpus, 1, &second, error, sizeof(error)));
    note(c, "second_alloc", c->ops->alloc(second, GPU_DEVICE, 64, &at));
    note(c, "reopen", gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error)));
    note(c, "stream_after", c->ops->stream_open(c->gpu, &other));
    note(c, "launch_after", launch_empty(c, other));
    note(c, "wait_after", c->ops->stream_wait(other));
    c->ops->stream_close(other);
}

#define GOES_ON                                                                                    \
    "lost=0\n", "alloc=EIO ", "free_bytes=EIO ", "again=EIO ", "second=0\n", "second_alloc=0\n",   \
        "reopen=0\n", "stream_after=0\n", "launch_after=0\n", "wait_after=0\n"

static void kernel_that_fails(void **state)
{
    (void)state;
    EXPECT("launch_failed:kernel=empty", NULL, failing_kernel, "launch=0\n", "wait=EIO cuStream",
           "CUDA_ERROR_LAUNCH_FAILED", "xid", GOES_ON);
}

static void bad_address(void **state)
{
    (void)state;
    EXPECT("illegal_address:kernel=empty", NULL, failing_kernel,
           "wait=EIO cuStreamQuery: ", "CUDA_ERROR_ILLEGAL_ADDRESS", "compute-sanitizer", GOES_ON);
}

static void bad_memory(void **state)
{
    (void)state;
    EXPECT("ecc:kernel=empty", NULL, failing_kernel, "wait=EIO ", "CUDA_ERROR_ECC_UNCORRECTABLE",
           "nvidia-smi -q -d ECC", GOES_ON);
}

/* A kernel never ends: the wait does, and nothing that is done then waits for it. */
static void silent_device(struct ctx *c)
{
    struct gpu_stream *stream;
    struct gpu_event *event;
    struct gpu *second;
    char error[GPU_ERROR_BYTES] = "";
    uint64_t begin_ns = clock_now_ns();
    void *kept = NULL, *at;

    gpu_base(c->gpu)->patience_ns = 200000000;
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "event", c->ops->event_open(c->gpu, &event));
    note(c, "take", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &kept));
    note(c, "launch", launch_empty(c, stream));
    note(c, "record", c->ops->event_record(event, stream));
    note(c, "wait", c->ops->event_wait(event));
    note(c, "silent", gpus_silent(c->gpus) ? 0 : -ENOENT);
    note(c, "again", c->ops->stream_wait(stream));
    note(c, "alloc", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &at));
    c->ops->event_close(event);
    c->ops->free(c->gpu, GPU_DEVICE, kept);
    c->ops->stream_close(stream);
    note(c, "second", gpus_get(c->gpus, 1, &second, error, sizeof(error)));
    note(c, "second_alloc", c->ops->alloc(second, GPU_DEVICE, 64, &at));
    note(c, "reopen", gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error)));
    snprintf(c->text + strlen(c->text), c->len - strlen(c->text), "said=%s\n", error);
    note(c, "soon", clock_now_ns() - begin_ns < 20000000000 ? 0 : -ETIME);
    c->gpu = NULL;
}

static void device_that_hangs(void **state)
{
    (void)state;
    EXPECT_SILENT(0.2, "hang:kernel=empty", NULL, silent_device, "record=0\n",
                  "wait=ETIMEDOUT GPU 0 at 0000:10:00.0 has not answered for ", "dmesg",
                  "silent=0\n", "again=EIO GPU 0", "alloc=EIO ", "second=0\n", "second_alloc=0\n",
                  "reopen=EIO\n", "said=not tried: cuda:0 did not answer", "soon=0\n");
}

/* The program is to end: a wait that would be over soon goes on, one that is not ends. */
static void interrupted_waits(struct ctx *c)
{
    static const volatile int yes = 1;
    struct gpu_stream *stream;
    uint64_t begin_ns;

    gpu_base(c->gpu)->cancel = &yes;
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "first", launch_empty(c, stream));
    note(c, "wait", c->ops->stream_wait(stream));
    note(c, "second", launch_empty(c, stream));
    begin_ns = clock_now_ns();
    note(c, "wait_again", c->ops->stream_wait(stream));
    note(c, "soon", clock_now_ns() - begin_ns < 20000000000 ? 0 : -ETIME);
    c->ops->stream_close(stream);
    c->gpu = NULL;
}

static void device_that_hangs_at_the_end(void **state)
{
    (void)state;
    EXPECT_SILENT(1, "hang:kernel=empty:after=1", NULL, interrupted_waits, "wait=0\n",
                  "wait_again=ETIMEDOUT interrupted: GPU 0 at 0000:10:00.0 has not answered for ",
                  "soon=0\n");
}

/* The driver waits for a device of the group without end: the caller does not, is told which call for
 * which device it was, and no device of the group is asked anything again. */
static void endless_multicast(struct ctx *c)
{
    struct gpu *gpus[3] = {c->gpu};
    struct gpu_multicast *group = NULL;
    char error[GPU_ERROR_BYTES] = "";
    uint64_t begin_ns = clock_now_ns();
    void *all, *at[3], *more;

    for (unsigned i = 1; i < 3; i++)
        note(c, "gpu", gpus_get(c->gpus, i, &gpus[i], error, sizeof(error)));
    for (unsigned i = 0; i < 3; i++)
        gpu_base(gpus[i])->patience_ns = 200000000;
    note(c, "open", c->ops->multicast_open(gpus, 3, 1 << 20, &all, at, &group));
    note(c, "group", group ? -EEXIST : 0);
    note(c, "silent", gpus_silent(c->gpus) ? 0 : -ENOENT);
    note(c, "first", c->ops->alloc(gpus[0], GPU_DEVICE, 64, &more));
    note(c, "last", c->ops->alloc(gpus[2], GPU_DEVICE, 64, &more));
    note(c, "soon", clock_now_ns() - begin_ns < 50000000000 ? 0 : -ETIME);
    c->gpu = NULL;
}

static void whole_multicast(struct ctx *c)
{
    struct gpu_multicast *group = NULL;
    void *all, *at;

    note(c, "open", c->ops->multicast_open(&c->gpu, 1, 1 << 20, &all, &at, &group));
    c->ops->multicast_close(group);
    note(c, "silent", gpus_silent(c->gpus) ? -EEXIST : 0);
}

#define MULTICAST "[machine]\ngpus = 3\n[gpu]\nmulticast = yes\n[link all]\nkind = nvlink\n"
#define ENDLESS(fault, ...)                                                                        \
    expect(&(struct scenario){fault, NULL, endless_multicast, MULTICAST, 0.2},                     \
           (const char *const[]){__VA_ARGS__, "group=0\n", "silent=0\n", "first=EIO ",             \
                                 "last=EIO ", "soon=0\n", NULL})

static void multicast_that_hangs(void **state)
{
    (void)state;
    ENDLESS("hang:call=cuMulticastAddDevice:gpu=2",
            "open=ETIMEDOUT cuda:2: cuMulticastAddDevice did not return: GPU 2 at 0000:12:00.0 has "
            "not answered for ",
            "systemctl status nvidia-fabricmanager");
    ENDLESS(
        "hang:call=cuMulticastBindMem:gpu=1",
        "open=ETIMEDOUT cuda:1: cuMulticastBindMem did not return, as if a GPU of the group were "
        "still to be added: GPU 1 at 0000:11:00.0 has not answered for ");
    ENDLESS("hang:call=cuMemMap", "open=ETIMEDOUT cuMemMap did not return, as if a GPU");
    expect(&(struct scenario){"", NULL, whole_multicast, MULTICAST, 0},
           (const char *const[]){"open=0\n", "silent=0\n", NULL});
}

/* What is known to take long, and what already took long, is waited for. */
static int queue_long(struct ctx *c, struct gpu_stream *stream, void *at)
{
    int err = 0;

    for (int i = 0; !err && i < 100; i++)
        err = c->ops->set(stream, at, 7, LONG_BYTES);
    return err;
}

static void patient_waits(struct ctx *c)
{
    struct gpu_stream *stream;
    void *at = NULL;

    gpu_base(c->gpu)->patience_ns = 1000000;
    gpu_base(c->gpu)->expected_ns = 20000000000;
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "take", c->ops->alloc(c->gpu, GPU_DEVICE, LONG_BYTES, &at));
    note(c, "first", queue_long(c, stream, at));
    note(c, "wait", c->ops->stream_wait(stream));
    note(c, "longest", gpu_base(c->gpu)->longest_ns >= 20000000 ? 0 : -ERANGE);
    gpu_base(c->gpu)->expected_ns = 0;
    note(c, "second", queue_long(c, stream, at));
    note(c, "wait_again", c->ops->stream_wait(stream));
    gpu_base(c->gpu)->longest_ns = 0;
    note(c, "third", queue_long(c, stream, at));
    note(c, "wait_no_more", c->ops->stream_wait(stream));
    c->ops->stream_close(stream);
}

static void device_that_is_slow(void **state)
{
    (void)state;
    EXPECT("", NULL, patient_waits, "first=0\n", "wait=0\n", "longest=0\n", "second=0\n",
           "wait_again=0\n", "third=0\n", "wait_no_more=ETIMEDOUT ");
}

static void lost_for_good(struct ctx *c)
{
    struct gpu_stream *stream;
    struct gpu *second;
    char error[GPU_ERROR_BYTES] = "";
    void *at;

    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "launch", launch_empty(c, stream));
    note(c, "wait", c->ops->stream_wait(stream));
    c->ops->stream_close(stream);
    note(c, "second", gpus_get(c->gpus, 1, &second, error, sizeof(error)));
    note(c, "second_alloc", c->ops->alloc(second, GPU_DEVICE, 64, &at));
    int err = gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error));
    note(c, "reopen", err);
    snprintf(c->text + strlen(c->text), c->len - strlen(c->text), "said=%s\n", error);
}

static void device_that_is_reset(void **state)
{
    (void)state;
    EXPECT("launch_failed:kernel=empty,error:call=cuDevicePrimaryCtxReset:code=101", NULL,
           lost_for_good, "reopen=ENODEV", "said=cuDevicePrimaryCtxReset: ");
}

static void device_that_is_gone(void **state)
{
    (void)state;
    EXPECT("lost:gpu=0", NULL, lost_for_good, "second=0\n", "second_alloc=0\n", "reopen=E",
           "said=cu", "this GPU was lost before", "xid");
}

/* Mapped memory is of no context, so that a reset alone leaves it. */
static void fabric_memory_of_lost(struct ctx *c)
{
    uint64_t before = 0, after = 0;
    char error[GPU_ERROR_BYTES];
    struct gpu_stream *stream;
    void *at = NULL;

    note(c, "before", c->ops->free_bytes(c->gpu, &before));
    note(c, "fabric", c->ops->alloc(c->gpu, GPU_FABRIC, 64u << 20, &at));
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "launch", launch_empty(c, stream));
    note(c, "wait", c->ops->stream_wait(stream));
    c->ops->free(c->gpu, GPU_FABRIC, at);
    c->ops->stream_close(stream);
    note(c, "reopen", gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error)));
    note(c, "after", c->ops->free_bytes(c->gpu, &after));
    note(c, "same", after == before ? 0 : -ENOMEM);
    note(c, "again", c->ops->alloc(c->gpu, GPU_FABRIC, 64u << 20, &at));
    c->ops->free(c->gpu, GPU_FABRIC, at);
    note(c, "freed", c->ops->free_bytes(c->gpu, &after));
    note(c, "all", after == before ? 0 : -ENOMEM);
}

static void memory_that_outlives_a_reset(void **state)
{
    (void)state;
    expect(&(struct scenario){"launch_failed:kernel=empty", NULL, fabric_memory_of_lost,
                              "[machine]\ngpus = 1\n[gpu]\nfabric = yes\n", 0},
           (const char *const[]){"before=0\n", "fabric=0\n", "launch=0\n", "wait=EIO ",
                                 "reopen=0\n", "after=0\n", "same=0\n", "again=0\n", "freed=0\n",
                                 "all=0\n", NULL});
}

static void allocate(struct ctx *c)
{
    void *at;

    note(c, "device", c->ops->alloc(c->gpu, GPU_DEVICE, 1 << 20, &at));
    note(c, "after", c->ops->alloc(c->gpu, GPU_DEVICE, 1 << 20, &at));
    note(c, "lost", gpu_base(c->gpu)->lost);
}

static void memory_that_is_full(void **state)
{
    (void)state;
    EXPECT("out_of_memory:call=cuMemAlloc:times=1", NULL, allocate,
           "device=ENOMEM cuMemAlloc: ", "CUDA_ERROR_OUT_OF_MEMORY", "asked for 1.0 MiB",
           "after=0\n", "lost=0\n");
}

static void allocate_pinned(struct ctx *c)
{
    void *at;

    note(c, "pinned", c->ops->alloc(c->gpu, GPU_PINNED, 1 << 20, &at));
    note(c, "null", at ? -EFAULT : 0);
}

static void host_memory_that_is_full(void **state)
{
    (void)state;
    EXPECT("out_of_memory:call=cuMemHostAlloc", NULL, allocate_pinned,
           "pinned=ENOMEM cuMemHostAlloc", "1.0 MiB of page-locked host memory", "null=0\n");
}

static void code_of_an_allocation(struct ctx *c)
{
    void *at;

    note(c, "alloc", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &at));
    note(c, "after", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &at));
    note(c, "lost", gpu_base(c->gpu)->lost);
}

/* 999 is what a GPU that fell off the bus gives; 46 passes; -EOPNOTSUPP is "not here". */
static void other_codes(void **state)
{
    (void)state;
    EXPECT("error:call=cuMemAlloc:code=999:times=1", NULL, code_of_an_allocation, "alloc=EIO ",
           "fallen off the bus", "after=EIO ");
    EXPECT("error:call=cuMemAlloc:code=801:times=1", NULL, code_of_an_allocation,
           "alloc=EOPNOTSUPP cuMemAlloc", "after=0\n", "lost=0\n");
    EXPECT("error:call=cuMemAlloc:code=400:times=1", NULL, code_of_an_allocation, "alloc=EIO ",
           "after=0\n", "lost=0\n");
    EXPECT("error:call=cuDevicePrimaryCtxRetain:code=46", NULL, code_of_an_allocation, "open=EBUSY",
           "nvidia-smi -q -d COMPUTE");
}

static void reach_peer(struct ctx *c)
{
    struct gpu *other;
    char error[GPU_ERROR_BYTES];

    note(c, "second", gpus_get(c->gpus, 1, &other, error, sizeof(error)));
    note(c, "peer", c->ops->peer(c->gpu, other, true));
    note(c, "lost", gpu_base(c->gpu)->lost);
}

static void peer_that_is_refused(void **state)
{
    (void)state;
    EXPECT("peer_refused:gpu=0:peer=1", NULL, reach_peer, "peer=E",
           "cuCtxEnablePeerAccess: ", "(from 0000:", "lost=0\n");
    EXPECT("error:call=cuCtxEnablePeerAccess:code=217", NULL, reach_peer, "peer=EOPNOTSUPP ",
           "do not reach each other");
    EXPECT("error:call=cuCtxEnablePeerAccess:code=711", NULL, reach_peer, "peer=EOPNOTSUPP ",
           "so many peers");
}

static void take_managed(struct ctx *c)
{
    struct gpu_stream *stream;
    void *at;

    note(c, "managed", c->ops->alloc(c->gpu, GPU_MANAGED, 4096, &at));
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "prefetch", c->ops->prefetch(stream, NULL, 4096, true));
    c->ops->stream_close(stream);
}

static void no_managed_memory(void **state)
{
    (void)state;
    EXPECT("no_managed", NULL, take_managed, "managed=EOPNOTSUPP ", "no managed memory",
           "prefetch=EOPNOTSUPP ");
}

static void open_stream(struct ctx *c)
{
    struct gpu_stream *stream;

    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "null", stream ? -EFAULT : 0);
}

/* The image, or a kernel of it, that a device does not take. */
static void image_that_does_not_load(void **state)
{
    (void)state;
    EXPECT("error:call=cuModuleLoadData:code=209", NULL, open_stream, "stream=EOPNOTSUPP ",
           "code for compute capabilities 7.", "the GPU is ", "null=0\n");
    EXPECT("error:call=cuModuleLoadData:code=222", NULL, open_stream, "stream=EOPNOTSUPP ",
           "newer driver", "null=0\n");
    EXPECT("no_kernel:kernel=spin", NULL, open_stream, "stream=EINVAL ", "no kernel 'spin'");
    EXPECT("error:call=cuStreamCreate:code=2", NULL, open_stream, "stream=ENOMEM ", "null=0\n");
}

static void capture(struct ctx *c)
{
    struct gpu_stream *stream;
    struct gpu_graph *graph;

    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "begin", c->ops->graph_begin(stream));
    note(c, "launch", launch_empty(c, stream));
    note(c, "end", c->ops->graph_end(stream, &graph));
    note(c, "null", graph ? -EFAULT : 0);
    c->ops->stream_close(stream);
}

static void graph_that_is_not_made(void **state)
{
    (void)state;
    EXPECT("error:call=cuGraphInstantiateWithFlags:code=2", NULL, capture, "launch=0\n",
           "end=ENOMEM cuGraphInstantiate", "null=0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_that_fails),
        cmocka_unit_test(bad_address),
        cmocka_unit_test(bad_memory),
        cmocka_unit_test(device_that_hangs),
        cmocka_unit_test(multicast_that_hangs),
        cmocka_unit_test(device_that_hangs_at_the_end),
        cmocka_unit_test(device_that_is_slow),
        cmocka_unit_test(device_that_is_reset),
        cmocka_unit_test(memory_that_outlives_a_reset),
        cmocka_unit_test(device_that_is_gone),
        cmocka_unit_test(memory_that_is_full),
        cmocka_unit_test(host_memory_that_is_full),
        cmocka_unit_test(other_codes),
        cmocka_unit_test(peer_that_is_refused),
        cmocka_unit_test(no_managed_memory),
        cmocka_unit_test(image_that_does_not_load),
        cmocka_unit_test(graph_that_is_not_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
