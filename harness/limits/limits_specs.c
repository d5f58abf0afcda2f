// SPDX-License-Identifier: Apache-2.0
// The one table of what configs/hardware may state: kind, figure, unit, bounds.
#include "harness/limits/limits_table.h"

#define REQUIRED true
#define OPTIONAL false

const char *const limits_kinds[] = {"gpu",      "sm",         "pcie",   "nvlink", "nic",
                                    "ethernet", "infiniband", "memory", NULL};

// clang-format off
const struct figure_spec limits_specs[] = {
    // Dense rates. "_f16acc": with a 16-bit accumulator, where that is faster than the 32-bit one.
    {"gpu", "f64_tflops",            "TFLOP/s", 0.01,  1000, OPTIONAL},
    {"gpu", "f64_tensor_tflops",     "TFLOP/s", 0.01,  1000, OPTIONAL},
    {"gpu", "f32_tflops",            "TFLOP/s", 0.1,   1000, OPTIONAL},
    {"gpu", "f32_matrix_tflops",     "TFLOP/s", 0.1,   1000, OPTIONAL},
    {"gpu", "tf32_tflops",           "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "f16_tflops",            "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "f16_f16acc_tflops",     "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "bf16_tflops",           "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "fp8_tflops",            "TFLOP/s", 1,    20000, OPTIONAL},
    {"gpu", "fp8_f16acc_tflops",     "TFLOP/s", 1,    20000, OPTIONAL},
    {"gpu", "fp4_tflops",            "TFLOP/s", 1,    50000, OPTIONAL},
    {"gpu", "int8_tops",             "TOP/s",   1,    20000, OPTIONAL},
    {"gpu", "memory_gb",             "GB",      1,     1000, REQUIRED},
    {"gpu", "memory_gbytes_per_s",   "GB/s",   10,    50000, REQUIRED},
    {"gpu", "l2_mib",                "MiB",     0.5,   1000, OPTIONAL},
    {"gpu", "pcie_gen",              "",        1,        7, OPTIONAL},
    {"gpu", "pcie_lanes",            "",        1,       32, OPTIONAL},
    {"gpu", "nvlink_gen",            "",        1,        6, OPTIONAL},
    {"gpu", "nvlink_links",          "",        1,       36, OPTIONAL},
    {"gpu", "nvlink_gbytes_per_s",   "GB/s",    1,     4000, OPTIONAL},
    {"gpu", "c2c_gbytes_per_s",      "GB/s",    1,     4000, OPTIONAL},
    {"gpu", "xgmi_gbytes_per_s",     "GB/s",    1,     4000, OPTIONAL},

    // Operations of one streaming multiprocessor in one clock.
    {"sm", "f64_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "f32_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "tf32_per_clock",         "",        1,   100000, OPTIONAL},
    {"sm", "f16_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "bf16_per_clock",         "",        1,   100000, OPTIONAL},
    {"sm", "fp8_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "int8_per_clock",         "",        1,   100000, OPTIONAL},

    {"pcie", "gt_s",                 "GT/s",    1,      128, REQUIRED},
    {"pcie", "data_bits",            "",        1,      256, REQUIRED},
    {"pcie", "line_bits",            "",        1,      260, REQUIRED},
    {"pcie", "lane_gbytes_per_s",    "GB/s",    0.1,     16, REQUIRED},
    {"pcie", "header_bytes",         "bytes",   0,       16, REQUIRED},
    {"pcie", "framing_bytes",        "bytes",   0,       16, REQUIRED},

    {"nvlink", "link_gbytes_per_s",  "GB/s",    1,      200, REQUIRED},

    {"nic", "port_gbits_per_s",      "Gb/s",    1,     1600, OPTIONAL},
    {"nic", "pcie_gen",              "",        1,        7, OPTIONAL},
    {"nic", "pcie_lanes",            "",        1,       32, OPTIONAL},

    {"ethernet", "data_gbits_per_s", "Gb/s",    0.01,  1600, REQUIRED},

    {"infiniband", "lane_signal_gbits_per_s", "Gb/s", 1, 500, REQUIRED},
    {"infiniband", "data_bits",               "",     1, 256, REQUIRED},
    {"infiniband", "line_bits",               "",     1, 260, REQUIRED},
    {"infiniband", "lane_data_gbits_per_s",   "Gb/s", 1, 500, REQUIRED},

    {"memory", "interface_bits",     "",       16,     4096, REQUIRED},
    {"memory", "max_mt_s",           "MT/s",  200,    20000, REQUIRED},
    {"memory", "gbytes_per_s",       "GB/s",    1,     5000, REQUIRED},
    {0},
};
// clang-format on
