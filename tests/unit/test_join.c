/* SPDX-License-Identifier: Apache-2.0 */
/* Limits joined to rows: the right rows, the right limit, and no other. */
#include "harness/limits/limits_row.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/unit.h"

/* GPUs A and B have NVLinks between them, as A, E and F do; C has some, but to none of them. The way of B to the root is
 * slower than its link. */
static const struct {
    const char *key, *unit, *source, *address;
    double value;
} known[] = {
    {"dram.gbytes_per_s", "GB/s", "sysfs", "", 307.2},
    {"gpu.0.bf16_tflops", "TFLOP/s", "datasheet", "A", 1000},
    {"gpu.1.bf16_tflops", "TFLOP/s", "nvml", "B", 500},
    {"gpu.0.f64_tflops", "TFLOP/s", "datasheet", "A", 30},
    {"gpu.0.f64_tensor_tflops", "TFLOP/s", "datasheet", "A", 60},
    {"gpu.0.fp8_tflops", "TFLOP/s", "datasheet", "A", 300},
    {"gpu.0.fp8_f16acc_tflops", "TFLOP/s", "datasheet", "A", 600},
    {"gpu.0.int8_tops", "TOP/s", "datasheet", "A", 2000},
    {"gpu.0.memory_gbytes_per_s", "GB/s", "datasheet", "A", 4000},
    {"gpu.4.memory_gbytes_per_s", "GB/s", "nvml", "E", 0.5},
    {"pcie.A.gbytes_per_s", "GB/s", "sysfs", "", 63},
    {"pcie.B.gbytes_per_s", "GB/s", "sysfs", "", 63},
    {"pcie.B.path_gbytes_per_s", "GB/s", "sysfs", "", 31.5},
    {"pcie.C.gbytes_per_s", "GB/s", "sysfs", "", 15.75},
    {"pcie.C.path_gbytes_per_s", "GB/s", "sysfs", "", 0}, /* not known: none */
    {"gpu.0.nvlink_gbytes_per_s", "GB/s", "nvml", "A", 450},
    {"gpu.1.nvlink_gbytes_per_s", "GB/s", "nvml", "B", 400},
    {"gpu.2.nvlink_gbytes_per_s", "GB/s", "nvml", "C", 300},
    {"gpu.4.nvlink_gbytes_per_s", "GB/s", "nvml", "E", 400},
    {"gpu.5.nvlink_gbytes_per_s", "GB/s", "nvml", "F", 300},
    {"p2p.A+B.nvlink_gbytes_per_s", "GB/s", "nvml", "", 100},
    {"p2p.A+E.nvlink_gbytes_per_s", "GB/s", "nvml", "", 450},
    {"p2p.B+F.nvlink_gbytes_per_s", "GB/s", "nvml", "", 60},
    {"p2p.A+F.nvlink_gbytes_per_s", "GB/s", "nvml", "", 400},
};

static json_t *limits;
static double cores = 64;
static struct bench_list benches;

static int load(void **state)
{
    (void)state;
    limits = json_array();
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        json_array_append_new(limits,
                              json_pack("{s:s,s:f,s:s,s:s,s:s}", "key", known[i].key, "value",
                                        known[i].value, "unit", known[i].unit, "source",
                                        known[i].source, "address", known[i].address));
    benches = built_benches();
    return 0;
}

static int release(void **state)
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
    int found = limits_row(limits, cores, rows_of(&benches, bench)->limits, &t, 0, out);
    table_release(&t);
    return found ? out->value : NAN;
}

struct joined {
    const char *row;
    double limit;
};

static void check(const char *bench, const char *header, const struct joined *all, size_t n)
{
    struct joined_limit l;

    for (size_t i = 0; i < n; i++) {
        double limit = limit_of(bench, header, all[i].row, &l);
        const char *value = strrchr(all[i].row, ',') + 1;

        if (isnan(limit) != isnan(all[i].limit) || fabs(limit - all[i].limit) > 1e-9)
            fail_msg("%s: %s: limit %g", bench, all[i].row, limit);
        if (!isnan(limit) && *value)
            assert_float_equal(l.percent, 100 * atof(value) / limit, 1e-9);
        assert_true(isnan(limit) || isnan(l.percent) == !*value);
    }
}

#define CHECK(bench, header, ...)                                                                  \
    check(bench, header, (const struct joined[]){__VA_ARGS__},                                     \
          sizeof((const struct joined[]){__VA_ARGS__}) / sizeof(struct joined))

static const char memory[] = "op,threads,node,memory_node,level,address,metric,unit,value";

TEST(test_memory)
{
    CHECK("memory", memory, {"triad,64,any,local,DRAM,,bandwidth,GB/s,150", 307.2},
          {"triad,64,any,local,L3,,bandwidth,GB/s,900", NAN},
          {"triad,64,0,local,DRAM,,bandwidth,GB/s,75", NAN},
          {"triad,64,any,remote,DRAM,,bandwidth,GB/s,40", NAN},
          {"latency,64,any,local,DRAM,,latency,ns,100", NAN},
          {"triad,64,any,local,DRAM,,bandwidth,GB/s,", 307.2}, /* nothing was measured */
          {"triad,32,any,local,DRAM,,bandwidth,GB/s,75", NAN}, /* need not reach all channels */
          {"read,,,,HBM,A,bandwidth,GB/s,3600", 4000}, {"read,,,,DRAM,A,bandwidth,GB/s,3600", 4000},
          {"read,64,any,local,L2,A,bandwidth,GB/s,9000", NAN},
          {"read,,,,HBM,E,bandwidth,GB/s,0.25", 0.5}, {"latency,,,,HBM,A,latency,ns,500", NAN},
          {"read,,,,HBM,B,bandwidth,GB/s,3600", NAN},
          /* a GPU's row does not pass for the host's */
          {"triad,64,any,local,DRAM,B,bandwidth,GB/s,200", NAN});
    CHECK("copy", memory, {"triad,64,any,local,DRAM,,bandwidth,GB/s,150", NAN});
    cores = 0; /* not known */
    CHECK("memory", memory, {"triad,64,any,local,DRAM,,bandwidth,GB/s,150", NAN});
    cores = 64;
}

/* By hand: write moves 2 bytes for each that counts, copy and scale 3 for 2, add and triad 4 for 3. A CPU that notices whole
 * lines fills fewer of them, or none. */
TEST(test_lines_that_stores_fill)
{
    static const struct {
        const char *op, *fills;
        double value, limit, raised_from;
    } cases[] = {
        {"write", "yes", 140, 153.6, NAN},
        {"copy", "yes", 190, 204.8, NAN},
        {"scale", "yes", 190, 204.8, NAN},
        {"add", "yes", 200, 230.4, NAN},
        {"triad", "yes", 200, 230.4, NAN},
        {"read", "no", 290, 307.2, NAN},
        {"triad", "no", 290, 307.2, NAN}, /* stores past the caches */
        {"write", "yes", 260, 307.2, 153.6},
        {"copy", "yes", 206, 307.2, 204.8},
        {"triad", "yes", 302, 307.2, 230.4},
        {"triad", "yes", 231, 231, NAN}, /* by 0.3 %: the clock, or rounding */
        {"triad", "yes", 320, 307.2, 230.4},
        {"triad", "no", 320, 307.2, NAN},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct joined_limit l;
        char row[128];

        snprintf(row, sizeof(row), "%s,%s,64,any,local,DRAM,GB/s,%.17g", cases[i].op,
                 cases[i].fills, cases[i].value);
        double limit = limit_of(
            "memory", "op,write_allocate,threads,node,memory_node,level,unit,value", row, &l);

        if (!(fabs(limit - cases[i].limit) < 1e-9) ||
            !(fabs(l.percent - 100 * cases[i].value / limit) < 1e-9) ||
            isnan(l.raised_from) != isnan(cases[i].raised_from) ||
            fabs(l.raised_from - cases[i].raised_from) > 1e-9)
            fail_msg("%s: limit %.17g, raised from %g", row, limit, l.raised_from);
    }
}

TEST(test_gemm)
{
    CHECK("gemm", "dtype,accumulate,address,unit,origin,value",
          {"bf16,f32,A,TFLOP/s,measured,800", 1000}, {"bf16,f32,B,TFLOP/s,measured,400", 500},
          {"f64,f64,A,TFLOP/s,measured,50", 60}, {"e4m3,f32,A,TFLOP/s,measured,250", 300},
          {"e4m3,f32 fast,A,TFLOP/s,measured,250", 600}, {"int8,s32,A,TOP/s,measured,1500", 2000},
          {"int8,s32,A,TFLOP/s,measured,1500", NAN}, /* not the unit of the limit */
          {"tf32,f32,A,TFLOP/s,measured,250", NAN}, {"bf16,f32,D,TFLOP/s,measured,800", NAN},
          {"bf16,f32,,TFLOP/s,measured,800", NAN},  /* the host */
          {"bf16,f32,A,TFLOP/s,simulated,1", NAN},  /* no real card's figure */
          {"bf16,f32,B,TFLOP/s,simulated,1", 500}); /* what NVML says stands */
}

TEST(test_copies)
{
    struct joined_limit l;

    CHECK("copy", "source,destination,direction,access,path,address,unit,value",
          {"node0,cuda:0,one-way,,,A,GB/s,50", 63}, {"cuda:0,node0,forward,,,A,GB/s,50", 63},
          {"cuda:0,node0,sum,,,A,GB/s,90", 126}, {"node0,cuda:1,one-way,,,B,GB/s,25", 31.5},
          {"node0,cuda:2,one-way,,,C,GB/s,12", 15.75},
          {"cuda,cuda:0,one-way,,within the GPU,A,GB/s,1500", NAN},
          {"node0,cuda:0,one-way,,,,GB/s,50", NAN}, {"node0,cuda:0,one-way,,,A,us,5", NAN},
          {"cuda:0,cuda:1,one-way,on,,A+B,GB/s,90", 100},
          {"cuda:1,cuda:0,one-way,on,,B+A,GB/s,90", 100},
          {"cuda:0,cuda:1,sum,on,,A+B,GB/s,180", 200},
          {"cuda:0,cuda:1,one-way,off,,A+B,GB/s,20", 31.5}, /* through the host */
          {"cuda:0,cuda:2,one-way,on,,A+C,GB/s,12", 15.75}, /* the slower link */
          {"cuda:0,cuda:3,one-way,on,,A+D,GB/s,12", NAN});
    limit_of("copy", "source,destination,direction,access,address,unit,value",
             "cuda:0,node0,sum,,A,GB/s,90", &l);
    assert_non_null(strstr(l.source, "sysfs: both directions"));
}

TEST(test_collectives_of_one_node)
{
    struct joined_limit l;

    CHECK("allreduce",
          "op,metric,backend,nodes,model,rehearsal,gpu_addresses,busbw_per_link,unit,value",
          /* gather and scatter load the root's links alone, which need not be the slowest */
          {"reduce,busbw,nccl,1,,,A+B,1,GB/s,75", 100},
          {"gather,busbw,nccl,1,,,A+B,1,GB/s,75", NAN},
          {"scatter,busbw,nccl,1,,,A+B,1,GB/s,75", NAN},
          /* of 450 and 400 GB/s, 100 lead from one to the other: a mesh */
          {"allreduce,busbw,nccl,1,,,A+B,1,GB/s,75", 100},
          {"allreduce,busbw,nccl,1,,,B+A,1,GB/s,75", 100},
          /* by switches each reaches each by all of its links: the slowest GPU's */
          {"allreduce,busbw,nccl,1,,,A+E,1,GB/s,300", 400},
          {"allreduce,busbw,nccl,1,,,A+E,1.5,GB/s,540", 600}, /* switches add */
          /* a mesh of three: 100 and 60 lead from B to the others, of its 400 */
          {"allreduce,busbw,nccl,1,,,A+B+F,1,GB/s,75", 160},
          {"allreduce,busbw,nccl,1,,,A+B,,GB/s,300", NAN},  /* who adds is not told */
          {"allreduce,busbw,nccl,1,,,A+C,1,GB/s,300", NAN}, /* no NVLink between */
          {"allreduce,busbw,nccl,1,,,A+B+C,1,GB/s,300", NAN},
          {"allreduce,busbw,nccl,1,,,A+D,1,GB/s,300", NAN}, /* not known */
          {"allreduce,busbw,nccl,1,,yes,A+B,1,GB/s,300", NAN},
          {"allreduce,busbw,nccl,2,,,A+B,1,GB/s,300", NAN},
          {"allreduce,algbw,nccl,1,,,A+B,1,GB/s,300", NAN},
          {"allreduce,busbw,mpi,1,,,A+B,1,GB/s,300", NAN});
    limit_of("allreduce", "metric,backend,nodes,model,rehearsal,gpu_addresses,busbw_per_link,unit",
             "busbw,nccl,1,,,A+B,1,GB/s", &l);
    assert_string_equal(l.link, "nvlink");
}

TESTS_WITH(load, release);
