/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of rows on GPUs: found by the PCI address, by the type of the sums, by the way that a copy
 * takes; and none where the GPU is not known, is a share, or where a simulated row would get a real
 * card's figure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/limits/limits_row.h"
#include "tests/unit/built_benches.h"

/* Two GPUs with NVLink between them, a third one without and of another rate; the second one's way
 * to the root is slower than its link. */
static const char limits_text[] =
    "["
    "{\"key\": \"gpu.0.bf16_tflops\", \"value\": 1000, \"unit\": \"TFLOP/s\", \"source\": "
    "\"datasheet\","
    " \"detail\": \"a sheet\", \"address\": \"A\"},"
    "{\"key\": \"gpu.1.bf16_tflops\", \"value\": 500, \"unit\": \"TFLOP/s\", \"source\": \"nvml\","
    " \"detail\": \"clocks\", \"address\": \"B\"},"
    "{\"key\": \"gpu.0.f64_tflops\", \"value\": 30, \"unit\": \"TFLOP/s\", \"source\": "
    "\"datasheet\","
    " \"address\": \"A\"},"
    "{\"key\": \"gpu.0.f64_tensor_tflops\", \"value\": 60, \"unit\": \"TFLOP/s\","
    " \"source\": \"datasheet\", \"address\": \"A\"},"
    "{\"key\": \"gpu.0.fp8_tflops\", \"value\": 300, \"unit\": \"TFLOP/s\", \"source\": "
    "\"datasheet\","
    " \"address\": \"A\"},"
    "{\"key\": \"gpu.0.fp8_f16acc_tflops\", \"value\": 600, \"unit\": \"TFLOP/s\","
    " \"source\": \"datasheet\", \"address\": \"A\"},"
    "{\"key\": \"gpu.0.int8_tops\", \"value\": 2000, \"unit\": \"TOP/s\", \"source\": "
    "\"datasheet\","
    " \"address\": \"A\"},"
    "{\"key\": \"gpu.0.memory_gbytes_per_s\", \"value\": 4000, \"unit\": \"GB/s\","
    " \"source\": \"datasheet\", \"address\": \"A\"},"
    "{\"key\": \"pcie.A.gbytes_per_s\", \"value\": 63, \"unit\": \"GB/s\", \"source\": \"sysfs\","
    " \"detail\": \"link\"},"
    "{\"key\": \"pcie.B.gbytes_per_s\", \"value\": 63, \"unit\": \"GB/s\", \"source\": \"sysfs\"},"
    "{\"key\": \"pcie.B.path_gbytes_per_s\", \"value\": 31.5, \"unit\": \"GB/s\","
    " \"source\": \"sysfs\", \"detail\": \"path\"},"
    "{\"key\": \"pcie.C.gbytes_per_s\", \"value\": 15.75, \"unit\": \"GB/s\", \"source\": "
    "\"sysfs\"},"
    "{\"key\": \"gpu.0.nvlink_gbytes_per_s\", \"value\": 450, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"detail\": \"18 NVLinks\", \"address\": \"A\"},"
    "{\"key\": \"gpu.1.nvlink_gbytes_per_s\", \"value\": 400, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"detail\": \"16 NVLinks\", \"address\": \"B\"},"
    "{\"key\": \"gpu.2.nvlink_gbytes_per_s\", \"value\": 300, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"address\": \"C\"},"
    "{\"key\": \"p2p.A+B.nvlink_gbytes_per_s\", \"value\": 100, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"detail\": \"4 NVLinks\"},"
    "{\"key\": \"gpu.4.nvlink_gbytes_per_s\", \"value\": 400, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"detail\": \"16 NVLinks\", \"address\": \"E\"},"
    "{\"key\": \"gpu.5.nvlink_gbytes_per_s\", \"value\": 300, \"unit\": \"GB/s\","
    " \"source\": \"nvml\", \"address\": \"F\"},"
    "{\"key\": \"p2p.A+E.nvlink_gbytes_per_s\", \"value\": 450, \"unit\": \"GB/s\","
    " \"source\": \"nvml\"},"
    "{\"key\": \"p2p.B+F.nvlink_gbytes_per_s\", \"value\": 60, \"unit\": \"GB/s\","
    " \"source\": \"nvml\"},"
    "{\"key\": \"p2p.A+F.nvlink_gbytes_per_s\", \"value\": 400, \"unit\": \"GB/s\","
    " \"source\": \"nvml\"}]";

static json_t *limits;
static struct bench_list benches;

static int load_limits(void **state)
{
    (void)state;
    limits = json_loads(limits_text, 0, NULL);
    benches = built_benches();
    return limits ? 0 : -1;
}

static int free_limits(void **state)
{
    (void)state;
    json_decref(limits);
    bench_list_release(&benches);
    return 0;
}

/* The limit of a table's one row; NaN: none. */
static double limit_of(const char *bench, const char *header, const char *row,
                       struct joined_limit *out)
{
    struct table t;
    char text[1024], error[256] = "";

    snprintf(text, sizeof(text), "%s\n%s\n", header, row);
    if (table_parse("t", text, strlen(text), &t, error, sizeof(error)))
        fail_msg("the test's own table: %s", error);
    int found = limits_row(limits, 64, rows_of(&benches, bench)->limits, &t, 0, out);
    table_release(&t);
    return found ? out->value : NAN;
}

static double gemm(const char *row)
{
    struct joined_limit l;

    return limit_of("gemm", "dtype,accumulate,address,unit,value,origin", row, &l);
}

static void test_gemm(void **state)
{
    struct joined_limit l;

    (void)state;
    assert_true(gemm("bf16,f32,A,TFLOP/s,800,measured") == 1000);
    assert_true(gemm("bf16,f32,B,TFLOP/s,400,measured") == 500);
    assert_true(gemm("f64,f64,A,TFLOP/s,50,measured") == 60);
    assert_true(gemm("e4m3,f32,A,TFLOP/s,250,measured") == 300);
    assert_true(gemm("e4m3,f32 fast,A,TFLOP/s,250,measured") == 600);
    assert_true(gemm("int8,s32,A,TOP/s,1500,measured") == 2000);
    assert_true(isnan(gemm("int8,s32,A,TFLOP/s,1500,measured"))); /* not the unit of the limit */
    assert_true(isnan(gemm("tf32,f32,A,TFLOP/s,250,measured")));  /* no such figure */
    assert_true(isnan(gemm("bf16,f32,D,TFLOP/s,800,measured")));  /* no such GPU */
    assert_true(isnan(gemm("bf16,f32,,TFLOP/s,800,measured")));   /* the host */
    limit_of("gemm", "dtype,accumulate,address,unit,value,origin",
             "bf16,f32,A,TFLOP/s,800,measured", &l);
    assert_string_equal(l.source, "datasheet: a sheet");
    assert_true(fabs(l.percent - 80) < 1e-9);
}

static void test_simulated_rows(void **state)
{
    (void)state;
    assert_true(isnan(gemm("bf16,f32,A,TFLOP/s,1,simulated")));
    assert_true(gemm("bf16,f32,B,TFLOP/s,1,simulated") == 500); /* what NVML says stands */
}

static void test_memory(void **state)
{
    static const char header[] = "level,node,memory_node,address,threads,unit,value";
    struct joined_limit l;

    (void)state;
    assert_true(limit_of("memory", header, "HBM,,,A,,GB/s,3600", &l) == 4000);
    assert_true(limit_of("memory", header, "DRAM,,,A,,GB/s,3600", &l) == 4000);
    assert_true(isnan(limit_of("memory", header, "L2,,,A,,GB/s,9000", &l)));
    assert_true(isnan(limit_of("memory", header, "HBM,,,A,,ns,500", &l)));
    assert_true(isnan(limit_of("memory", header, "HBM,,,B,,GB/s,3600", &l)));
}

static double copy(const char *row, struct joined_limit *l)
{
    return limit_of("copy", "source,destination,direction,access,address,unit,value", row, l);
}

static void test_copies(void **state)
{
    struct joined_limit l;

    (void)state;
    assert_true(copy("node0,cuda:0,one-way,,A,GB/s,50", &l) == 63);
    assert_true(copy("cuda:0,node0,forward,,A,GB/s,50", &l) == 63);
    assert_true(copy("cuda:0,node0,sum,,A,GB/s,90", &l) == 126);
    assert_string_equal(l.source, "sysfs: both directions; link");
    assert_true(fabs(l.percent - 100 * 90 / 126.0) < 1e-9);
    assert_true(copy("node0,cuda:1,one-way,,B,GB/s,25", &l) == 31.5);
    assert_string_equal(l.source, "sysfs: path");
    /* Within a GPU, whatever its two names: neither the link's limit nor the memory's. */
    assert_true(isnan(limit_of("copy", "source,destination,direction,path,address,unit,value",
                               "cuda,cuda:0,one-way,within the GPU,A,GB/s,1500", &l)));
    assert_true(isnan(copy("node0,cuda:0,one-way,,,GB/s,50", &l)));
    assert_true(isnan(copy("node0,cuda:0,one-way,,A,us,5", &l)));
}

static void test_peers(void **state)
{
    struct joined_limit l;

    (void)state;
    assert_true(copy("cuda:0,cuda:1,one-way,on,A+B,GB/s,90", &l) == 100);
    assert_true(copy("cuda:1,cuda:0,one-way,on,B+A,GB/s,90", &l) == 100);
    assert_true(copy("cuda:0,cuda:1,sum,on,A+B,GB/s,180", &l) == 200);
    assert_true(copy("cuda:0,cuda:1,one-way,off,A+B,GB/s,20", &l) == 31.5); /* through the host */
    assert_true(copy("cuda:0,cuda:2,one-way,on,A+C,GB/s,12", &l) == 15.75); /* the slower link */
    assert_true(isnan(copy("cuda:0,cuda:3,one-way,on,A+D,GB/s,12", &l)));
}

static double collective(const char *row, struct joined_limit *l)
{
    return limit_of("allreduce",
                    "metric,backend,nodes,model,rehearsal,gpu_addresses,busbw_per_link,unit,value",
                    row, l);
}

static double operation(const char *row, struct joined_limit *l)
{
    return limit_of(
        "allreduce",
        "op,metric,backend,nodes,model,rehearsal,gpu_addresses,busbw_per_link,unit,value", row, l);
}

static void test_collectives_of_one_node(void **state)
{
    struct joined_limit l;

    (void)state;
    /* Gather and scatter load the root's links alone, which need not be the slowest. */
    assert_true(operation("reduce,busbw,nccl,1,,,A+B,1,GB/s,75", &l) == 100);
    assert_true(isnan(operation("gather,busbw,nccl,1,,,A+B,1,GB/s,75", &l)));
    assert_true(isnan(operation("scatter,busbw,nccl,1,,,A+B,1,GB/s,75", &l)));
    /* Of 450 and 400 GB/s, 100 lead from one to the other: a mesh. */
    assert_true(collective("busbw,nccl,1,,,A+B,1,GB/s,75", &l) == 100);
    assert_true(collective("busbw,nccl,1,,,B+A,1,GB/s,75", &l) == 100);
    assert_string_equal(l.link, "nvlink");
    assert_true(fabs(l.percent - 75) < 1e-9);
    /* By switches each reaches each by all of its links. */
    assert_true(collective("busbw,nccl,1,,,A+E,1,GB/s,300", &l) == 400); /* the slowest GPU's */
    assert_true(collective("busbw,nccl,1,,,E+A,1,GB/s,300", &l) == 400);
    assert_string_equal(l.source, "nvml: NVLink of the slowest GPU to the others, one direction, "
                                  "times busbw_per_link; 16 NVLinks");
    assert_true(collective("busbw,nccl,1,,,A+E,1.75,GB/s,630", &l) == 700); /* switches add */
    /* A mesh of three: 100 and 60 lead from B to the others, of its 400. */
    assert_true(collective("busbw,nccl,1,,,A+B+F,1,GB/s,75", &l) == 160);
    assert_true(isnan(collective("busbw,nccl,1,,,A+B,,GB/s,300", &l)));  /* who adds is not told */
    assert_true(isnan(collective("busbw,nccl,1,,,A+C,1,GB/s,300", &l))); /* no NVLink between */
    assert_true(isnan(collective("busbw,nccl,1,,,A+B+C,1,GB/s,300", &l)));
    assert_true(isnan(collective("busbw,nccl,1,,,A+D,1,GB/s,300", &l))); /* not known */
    assert_true(isnan(collective("busbw,nccl,1,,yes,A+B,1,GB/s,300", &l)));
    assert_true(isnan(collective("busbw,nccl,2,,,A+B,1,GB/s,300", &l)));
    assert_true(isnan(collective("algbw,nccl,1,,,A+B,1,GB/s,300", &l)));
    assert_true(isnan(collective("busbw,mpi,1,,,A+B,1,GB/s,300", &l)));
}

/* The host's rule asks for threads on all cores and for DRAM: a GPU's row does not pass for one. */
static void test_the_host_keeps_its_own(void **state)
{
    static const char header[] = "level,node,memory_node,address,threads,unit,value";
    json_t *dram = json_pack("[{s:s,s:f,s:s,s:s}]", "key", "dram.gbytes_per_s", "value", 300.0,
                             "unit", "GB/s", "source", "sysfs");
    json_t *kept = limits;
    struct joined_limit l;

    (void)state;
    limits = dram;
    assert_true(limit_of("memory", header, "DRAM,any,local,,64,GB/s,200", &l) == 300);
    assert_true(isnan(limit_of("memory", header, "DRAM,any,local,A,64,GB/s,200", &l)));
    limits = kept;
    json_decref(dram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_simulated_rows),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_collectives_of_one_node),
        cmocka_unit_test(test_the_host_keeps_its_own),
    };

    return cmocka_run_group_tests(tests, load_limits, free_limits);
}
