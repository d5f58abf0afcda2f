/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module when something fails, on simulated devices: what the caller is told, that a device
 * that was lost stays so until it is opened again, and that the others go on. Each case in a process of
 * its own: faults are read when the driver starts.
 */
#include "core/hw/gpu_kernels.h"
#include "cuda_fixture.h"
#include "tests/unit/unit.h"

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
    const char *fault;
    void (*run)(struct ctx *c);
    const char *wanted[14]; /* what its text has in it */
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

static void expect(const struct scenario *s)
{
    char text[TEXT_BYTES];

    if (!cuda_fixture_simulate("two"))
        skip();
    if (cuda_fixture_real()) {
        print_message("faults are the simulated device's\n");
        skip();
    }
    cuda_fixture_child(play, (void *)s, text, sizeof(text));
    for (size_t i = 0; s->wanted[i]; i++)
        assert_says(text, s->wanted[i]);
}

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

/* Whether the silence that was told of was as long as the device's patience. */
static int short_silence(struct ctx *c)
{
    static const char before[] = "answered for ";
    const char *at = strstr(c->text, before);

    return at && strtod(at + strlen(before), NULL) >= 0.2 ? 0 : -ERANGE;
}

/* A kernel never ends: the wait does, and nothing that is done then waits for it. */
static void silent_device(struct ctx *c)
{
    struct gpu_stream *stream;
    struct gpu_event *event;
    struct gpu *second;
    char error[GPU_ERROR_BYTES] = "";
    void *kept = NULL, *at;

    gpu_base(c->gpu)->patience_ns = 200000000;
    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "event", c->ops->event_open(c->gpu, &event));
    note(c, "take", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &kept));
    note(c, "launch", launch_empty(c, stream));
    note(c, "record", c->ops->event_record(event, stream));
    note(c, "wait", c->ops->event_wait(event));
    note(c, "silence", short_silence(c));
    note(c, "silent", gpus_silent(c->gpus) ? 0 : -ENOENT);
    note(c, "again", c->ops->stream_wait(stream));
    note(c, "alloc", c->ops->alloc(c->gpu, GPU_DEVICE, 64, &at));
    c->ops->event_close(event);
    c->ops->free(c->gpu, GPU_DEVICE, kept);
    c->ops->stream_close(stream);
    note(c, "second", gpus_get(c->gpus, 1, &second, error, sizeof(error)));
    note(c, "second_alloc", c->ops->alloc(second, GPU_DEVICE, 64, &at));
    note(c, "reopen", gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error)));
    c->gpu = NULL;
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
    note(c, "reopen", gpus_get(c->gpus, 0, &c->gpu, error, sizeof(error)));
}

static void allocate(struct ctx *c)
{
    void *at;

    note(c, "device", c->ops->alloc(c->gpu, GPU_DEVICE, 1 << 20, &at));
    note(c, "after", c->ops->alloc(c->gpu, GPU_DEVICE, 1 << 20, &at));
    note(c, "lost", gpu_base(c->gpu)->lost);
    note(c, "managed", c->ops->alloc(c->gpu, GPU_MANAGED, 4096, &at));
    note(c, "pinned", c->ops->alloc(c->gpu, GPU_PINNED, 1 << 20, &at));
    note(c, "null", at ? -EFAULT : 0);
}

static void reach_peer(struct ctx *c)
{
    struct gpu *other;
    char error[GPU_ERROR_BYTES];

    note(c, "second", gpus_get(c->gpus, 1, &other, error, sizeof(error)));
    note(c, "peer", c->ops->peer(c->gpu, other, true));
    note(c, "lost", gpu_base(c->gpu)->lost);
}

static void open_stream(struct ctx *c)
{
    struct gpu_stream *stream;

    note(c, "stream", c->ops->stream_open(c->gpu, &stream));
    note(c, "null", stream ? -EFAULT : 0);
}

#define GOES_ON                                                                                    \
    "lost=0\n", "alloc=EIO ", "free_bytes=EIO ", "again=EIO ", "second=0\n", "second_alloc=0\n",   \
        "reopen=0\n", "stream_after=0\n", "launch_after=0\n", "wait_after=0\n"
#define ALLOC(code) "error:call=cuMemAlloc:code=" code ":times=1"
#define PEER(code)  "error:call=cuCtxEnablePeerAccess:code=" code
#define LOAD(code)  "error:call=cuModuleLoadData:code=" code

/* A device that failed is opened again, and the others go on meanwhile. */
static const struct scenario failing[] = {
    {"launch_failed:kernel=empty", failing_kernel, {"wait=EIO ", "LAUNCH_FAILED", GOES_ON}},
    {"illegal_address:kernel=empty", failing_kernel, {"wait=EIO ", "ILLEGAL_ADDRESS", GOES_ON}},
    {"ecc:kernel=empty", failing_kernel, {"wait=EIO ", "ECC_UNCORRECTABLE", GOES_ON}},
    {"launch_failed:kernel=empty,error:call=cuDevicePrimaryCtxReset:code=101",
     lost_for_good,
     {"reopen=ENODEV"}},
    {"lost:gpu=0", lost_for_good, {"second=0\n", "second_alloc=0\n", "reopen=E"}},
    {NULL}};

/* One that does not answer is not waited for, unless it is known to take long. */
static const struct scenario hanging[] = {
    {"hang:kernel=empty",
     silent_device,
     {"record=0\n", "wait=ETIMEDOUT GPU 0 at 0000:10:00.0", "silence=0\n", "silent=0\n",
      "again=EIO ", "alloc=EIO ", "second=0\n", "second_alloc=0\n", "reopen=EIO\n"}},
    {"",
     patient_waits,
     {"first=0\n", "wait=0\n", "longest=0\n", "second=0\n", "wait_again=0\n", "third=0\n",
      "wait_no_more=ETIMEDOUT "}},
    {NULL}};

/* 999 is what a GPU that fell off the bus gives; 46 passes; 801 is "not here". */
static const struct scenario codes[] = {
    {"out_of_memory:call=cuMemAlloc:times=1",
     allocate,
     {"device=ENOMEM cuMemAlloc", "1.0 MiB", "after=0\n", "lost=0\n"}},
    {"out_of_memory:call=cuMemHostAlloc", allocate, {"pinned=ENOMEM ", "null=0\n"}},
    {ALLOC("999"), allocate, {"device=EIO ", "after=EIO "}},
    {ALLOC("801"), allocate, {"device=EOPNOTSUPP ", "after=0\n", "lost=0\n"}},
    {ALLOC("400"), allocate, {"device=EIO ", "after=0\n", "lost=0\n"}},
    {"error:call=cuDevicePrimaryCtxRetain:code=46", allocate, {"open=EBUSY"}},
    {"no_managed", allocate, {"managed=EOPNOTSUPP "}},
    {"peer_refused:gpu=0:peer=1", reach_peer, {"peer=E", "lost=0\n"}},
    {PEER("217"), reach_peer, {"peer=EOPNOTSUPP "}},
    {PEER("711"), reach_peer, {"peer=EOPNOTSUPP "}},
    {LOAD("209"), open_stream, {"stream=EOPNOTSUPP ", "null=0\n"}},
    {LOAD("222"), open_stream, {"stream=EOPNOTSUPP ", "null=0\n"}},
    {"no_kernel:kernel=spin", open_stream, {"stream=EINVAL ", "'spin'"}},
    {"error:call=cuStreamCreate:code=2", open_stream, {"stream=ENOMEM ", "null=0\n"}},
    {NULL}};

static void all_of(const struct scenario *s)
{
    for (; s->fault; s++)
        expect(s);
}

TEST(devices_that_fail)
{
    all_of(failing);
}

TEST(devices_that_hang)
{
    all_of(hanging);
}

TEST(codes_of_calls)
{
    all_of(codes);
}
