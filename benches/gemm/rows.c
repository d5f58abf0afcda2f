/* SPDX-License-Identifier: Apache-2.0 */
/* gemm: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "m", .width = 5, .sought_by = "search"},
    {.name = "n", .width = 5, .sought_by = "search"},
    {.name = "k", .width = 5, .sought_by = "search"},
    {.name = "cpus", .flags = COLUMN_OUTCOME},
    {.name = "kernel", .flags = COLUMN_OUTCOME},
    {.name = "address", .flags = COLUMN_OUTCOME},
    {.name = "candidates", .flags = COLUMN_OUTCOME},
    {.name = "gap_percent", .flags = COLUMN_OUTCOME},
    {.name = "algorithm", .flags = COLUMN_OUTCOME, .width = BENCH_COLUMN_ASIDE},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {{.name = "throughput", .units = "TFLOP/s TOP/s"},
                                              {.name = NULL}};

/* Below 70 % of what a loop of multiplications reaches on the same CPUs, the library is at fault or
 * the CPU is busy with other work. On a GPU power is the bound, which leaves 60 to 90 % of the
 * datasheet's rate for random data at 8192. */
static const struct bench_headline headlines[] = {
    {.pipe = "GPU matrix core",
     .label = "GPU GEMM",
     .where = "metric=throughput data!=zeros",
     .by = "dtype",
     .low_below = 55,
     .flags = HEADLINE_GPU},
    {.pipe = "Matrix core",
     .label = "GEMM",
     .where = "metric=throughput data!=zeros",
     .by = "dtype",
     .low_below = 70},
    {.pipe = NULL},
};

static const struct bench_contrast contrasts[] = {
    {.title = "random data against zeros",
     .where = "metric=throughput data=random",
     .column = "data",
     .other = "data=zeros",
     .by = "dtype",
     .lower = "zeros are %s slower",
     .higher = "zeros are %s faster: they take less power, so numbers taken on zeros promise too "
               "much",
     .same = "zeros make no difference: power is not what bounds it",
     .flags = HEADLINE_GPU},
    {.title = "the best candidate against the library's own choice",
     .where = "metric=throughput library=*-best data!=zeros",
     .column = "library",
     .other = "library!=*-best",
     .by = "dtype",
     .lower = "the library's own choice is %s slower than the best of its candidates",
     .higher = "the library's own choice is %s faster than the best that the search found",
     .same = "the library's own choice is as fast as the best of its candidates",
     .flags = HEADLINE_GPU},
    {.title = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "m", .lines = "m n k dtype library", .ignore = "accumulate layout", .square = "m n k"},
    {.x = "m",
     .lines = "dtype library data device m n k",
     .ignore = "threads",
     .square = "m n k",
     .flags = PLOT_GPU},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "GPU matrix core", .flags = HEADLINE_GPU}, {.pipe = "Matrix core"}, {.pipe = NULL}};

/* The highest figure counts: the library takes the faster unit. Sums in 16 bits have a rate of
 * their own on some GPUs. */
#define GPU_RATE(cases, rates)                                                                     \
    {                                                                                              \
        .where = cases, .of = LIMIT_GPU, .figures = rates                                          \
    }

static const struct bench_limit limits[] = {
    GPU_RATE("dtype=f64", "f64_tensor_tflops f64_tflops"),
    GPU_RATE("dtype=f32", "f32_matrix_tflops f32_tflops"),
    GPU_RATE("dtype=tf32", "tf32_tflops"),
    GPU_RATE("dtype=f16 accumulate=f16,*fast*", "f16_tflops f16_f16acc_tflops"),
    GPU_RATE("dtype=f16", "f16_tflops"),
    GPU_RATE("dtype=bf16", "bf16_tflops"),
    GPU_RATE("dtype=e4m3,e5m2 accumulate=f16,*fast*", "fp8_tflops fp8_f16acc_tflops"),
    GPU_RATE("dtype=e4m3,e5m2", "fp8_tflops"),
    GPU_RATE("dtype=int8", "int8_tops"),
    {.where = NULL},
};

#define STEERED(type)                                                                              \
    {                                                                                              \
        .check = "settings", .cause = "variables that steer libraries of the CPU",                 \
        .lost = type " matrix products", .both = "--size 1024 --dtype " type, .with = "",          \
        .without = "", .unset = "OPENBLAS_* GOTO_* MKL_* DNNL_* ONEDNN_* BLIS_*",                  \
        .metric = "throughput", .pipe = "Matrix core"                                              \
    }

static const struct bench_experiment experiments[] = {
    STEERED("f64"), STEERED("f32"), {.check = NULL}};

static const struct bench_part parts[] = {{.where = "metric=throughput data!=zeros",
                                           .of = JOB_PRODUCT,
                                           .measure = "plumb run node --only gemm"},
                                          {.where = NULL}};

static const struct bench_start starts[] = {
    {.what = "driver and context of the GPU, cuBLASLt", .where = "device=cuda:*"},
    {.what = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_COMPUTE,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .plots = plots,
    .pipes = pipes,
    .limits = limits,
    .experiments = experiments,
    .parts = parts,
    .starts = starts,
    .context = "device threads",
    .shown = "m n k library",
};
