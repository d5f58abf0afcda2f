/* SPDX-License-Identifier: Apache-2.0 */
/* copy: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "address", .flags = COLUMN_OUTCOME},
    {.name = "numa", .flags = COLUMN_OUTCOME},
    {.name = "path", .flags = COLUMN_OUTCOME},
    {.name = "atomics", .flags = COLUMN_OUTCOME},
    {.name = "clock", .flags = COLUMN_OUTCOME},
    {.name = "load"},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {{.name = "bandwidth", .units = "GB/s"},
                                              {.name = "latency", .units = "us"},
                                              {.name = "load-latency", .units = "ns"},
                                              {.name = NULL}};

#define HOST_TO_GPU "source!=*:*"
#define GPU_TO_HOST "destination!=*:*"

/* Of a PCIe link, packet headers take 7 to 14 %, and page-locked copies lose some more: 78 % and up. NVLink gives 75 to
 * 90 % to one copy engine. By how much a copy through the kernel stays below memcpy depends on the kernel, and memcpy
 * is held against itself: not judged. */
static const struct bench_headline headlines[] = {
    {.pipe = "GPU copies",
     .label = "host to GPU, pinned",
     .where = "metric=bandwidth direction=one-way " HOST_TO_GPU " memory=pinned together=none",
     .at = "+size",
     .low_below = 70,
     .subjects = "memory numa iommu",
     .flags = HEADLINE_GPU},
    {.pipe = "GPU copies",
     .label = "GPU to host, pinned",
     .where = "metric=bandwidth direction=one-way " GPU_TO_HOST " memory=pinned together=none",
     .at = "+size",
     .low_below = 70,
     .subjects = "memory numa iommu",
     .flags = HEADLINE_GPU},
    {.pipe = "GPU copies",
     .label = "both ways at once, sum",
     .where = "metric=bandwidth direction=sum memory=pinned together=none",
     .at = "+size",
     .subjects = "memory numa iommu",
     .flags = HEADLINE_GPU},
    {.pipe = "GPU copies",
     .label = "host to GPU, pageable",
     .where = "metric=bandwidth direction=one-way " HOST_TO_GPU " memory=pageable",
     .at = "+size",
     .subjects = "memory numa",
     .flags = HEADLINE_GPU},
    {.pipe = "GPU peers",
     .label = "%s",
     .where = "metric=bandwidth direction=one-way source=*:* destination=*:* access=on",
     .by = "path",
     .at = "+size",
     .low_below = 65,
     .subjects = "iommu",
     .flags = HEADLINE_GPU | HEADLINE_QUIET},
    {.pipe = "GPU latency",
     .label = "smallest copy, host to GPU",
     .where = "metric=latency " HOST_TO_GPU " memory=pinned",
     .at = "-size",
     .subjects = "",
     .stage = STAGE_LATENCY,
     .flags = HEADLINE_GPU | HEADLINE_TAIL},
    {.pipe = "Copies",
     .label = "%s",
     .where = "metric=bandwidth direction=one-way engine=memcpy",
     .by = "engine",
     .at = "+size",
     .subjects = "memory numa limits"},
    {.pipe = "Copies",
     .label = "%s",
     .where = "metric=bandwidth direction=one-way engine!=memcpy",
     .by = "engine",
     .at = "+size",
     .subjects = "memory numa limits"},
    {.pipe = "Latency",
     .label = "smallest message, one way, by",
     .where = "metric=latency direction=one-way",
     .by = "engine",
     .at = "-size",
     .low_below = 60,
     .subjects = "numa clock limits",
     .stage = STAGE_LATENCY},
    {.pipe = NULL},
};

#define TO_GPU   "metric=bandwidth direction=one-way " HOST_TO_GPU " together=none "
#define FROM_GPU "metric=bandwidth direction=one-way " GPU_TO_HOST " together=none "

#define IT_IS(where)                                                                               \
    .lower = where "it is %s slower", .higher = where "it is %s faster",                           \
    .same = where "it is as fast"

static const struct bench_contrast contrasts[] = {
    {.title = "host memory near the GPU against far, to the GPU",
     .where = TO_GPU "numa=local memory=pinned engine=ce",
     .column = "source",
     .other = "numa=remote",
     .by = "destination",
     IT_IS("from the remote node "),
     .flags = HEADLINE_GPU},
    {.title = "host memory near the GPU against far, from the GPU",
     .where = FROM_GPU "numa=local memory=pinned engine=ce",
     .column = "destination",
     .other = "numa=remote",
     .by = "source",
     IT_IS("to the remote node "),
     .flags = HEADLINE_GPU},
    {.title = "pinned memory against pageable, to the GPU",
     .where = TO_GPU "memory=pinned engine=ce",
     .column = "memory",
     .other = "memory=pageable",
     .by = "",
     IT_IS("from pageable memory "),
     .flags = HEADLINE_GPU},
    {.title = "pinned memory against pageable, from the GPU",
     .where = FROM_GPU "memory=pinned engine=ce",
     .column = "memory",
     .other = "memory=pageable",
     .by = "",
     IT_IS("to pageable memory "),
     .flags = HEADLINE_GPU},
    {.title = "copy engine against kernel, to the GPU",
     .where = TO_GPU "memory=pinned engine=ce",
     .column = "engine",
     .other = "engine=sm",
     .by = "",
     IT_IS("by a kernel "),
     .flags = HEADLINE_GPU},
    {.title = "copy engine against kernel, from the GPU",
     .where = FROM_GPU "memory=pinned engine=ce",
     .column = "engine",
     .other = "engine=sm",
     .by = "",
     IT_IS("by a kernel "),
     .flags = HEADLINE_GPU},
    {.title = "alone against all GPUs at once",
     .where = "metric=bandwidth load=alone",
     .column = "load",
     .other = "load=together",
     .by = "source destination direction",
     .lower = "while other GPUs copy too it is %s slower: they share a link or the host's memory",
     .higher = "while other GPUs copy too it is %s faster",
     .same = "other GPUs that copy too do not slow it",
     .flags = HEADLINE_GPU},
    {.title = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size", .lines = "engine direction", .ignore = "op access together", .flags = PLOT_BYTES},
    {.x = "size",
     .lines = "memory direction engine source destination",
     .flags = PLOT_BYTES | PLOT_GPU},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "PCIe", .flags = HEADLINE_GPU}, {.pipe = "Copies"}, {.pipe = NULL}};

/* Within a GPU no link is crossed, and how much of it L2 serves the row does not tell: no limit. */
#define ACROSS "path!=within* "

static const struct bench_limit limits[] = {
    {.where = ACROSS "access=off direction=sum",
     .of = LIMIT_HOST_LINK,
     .times = 2,
     .remark = "both directions"},
    {.where = ACROSS "access=off", .of = LIMIT_HOST_LINK},
    {.where = ACROSS "direction=sum",
     .of = LIMIT_PEER_LINK,
     .times = 2,
     .remark = "both directions"},
    {.where = ACROSS, .of = LIMIT_PEER_LINK},
    {.where = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_COPY,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .plots = plots,
    .pipes = pipes,
    .limits = limits,
};
