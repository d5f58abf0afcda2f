/* SPDX-License-Identifier: Apache-2.0 */
/* The report's rules for GPUs: which rows make a headline, what stands beside it, how several GPUs and pairs of them compare,
 * what is said where there is none, and that what was not measured is marked. */
#include <math.h>

#include "harness/report/report.h"
#include "tests/unit/report_scene.h"

static const char *const gemm_params[] = {"device", "dtype", "data", "library", "search",
                                          "m",      "n",     "k",    "kernel",  NULL};
static const char *const memory_params[] = {"device", "op", "launch", "engine", "size", NULL};
static const char *const copy_params[] = {"engine", "source", "destination", "direction",
                                          "memory", "access", "together",    "address",
                                          "numa",   "path",   NULL};
static const char *const launch_params[] = {"device", "op", "node", NULL};

#define CORE "GPU matrix core"

static void gemm(struct scene *s, const char *values, double value)
{
    put(s, "throughput", value, 1000, NULL, values);
}

static void host_and_gpu_do_not_mix(void **state)
{
    struct scene *s = *state;

    begin(s, true, "gemm", gemm_params);
    gemm(s, "host bf16 random onednn", 3);
    gemm(s, "cuda:0 bf16 random cublaslt", 790);
    gemm(s, "cuda:0 bf16 zeros cublaslt", 900);
    load(s);
    assert_int_equal(s->h.n, 2);
    near(s->h.all[1].runs[0].point->value, 3);
    near(s->h.all[0].runs[0].point->value, 790);
    assert_string_equal(s->h.all[0].pipe, CORE);
    assert_int_equal(verdict_of(s, CORE, "GPU GEMM bf16")->kind, VERDICT_NORMAL);
    assert_string_equal(s->h.no_gpu, "");
}

/* Zeros and the best of a library's candidates stand beside what is like them but for that, where it is proven. */
static void like_is_set_beside_like(void **state)
{
    struct scene *s = *state;

    for (int launched = 0; launched < 2; launched++) {
        begin(s, launched, "gemm", gemm_params);
        gemm(s, "cuda:0 bf16 random cublaslt - 8192", 760);
        gemm(s, "cuda:0 bf16 random cublaslt-best - 8192", 800);
        gemm(s, "cuda:0 bf16 zeros cublaslt - 8192", 874);
        gemm(s, "cuda:0 f16 random cublaslt - 8192", 800);
        gemm(s, "cuda:0 f16 zeros cublaslt - 8192", launched ? 812 : 801);
        gemm(s, "cuda:0 tf32 random cublaslt - 8192", 760);
        gemm(s, "cuda:0 tf32 zeros cublaslt - 4096", 900);
        load(s);
        assert_int_equal(s->h.contrasts.n, 3);
        near(s->h.contrasts.all[0].change, 0.15);
        near(s->h.contrasts.all[launched ? 2 : 1].change, launched ? -0.05 : 0.00125);
        says(s, CORE, "GPU GEMM bf16",
             launched ? "zeros are 15 %|5 % slower|!not proven" : "not proven: zeros");
        says(s, CORE, "GPU GEMM f16",
             launched ? "!not proven|zeros make no difference" : "not proven: zeros");
        says(s, CORE, "GPU GEMM tf32", "!zeros");
    }
}

/* Several GPUs: who is behind, who failed, and what a single launch does not prove. */
static void gpus_are_set_side_by_side(void **state)
{
    static const struct {
        bool launched;
        double values[4]; /* 0: no such GPU */
        const char *status[4];
        const char *says;
        enum verdict_kind kind;
    } cases[] = {
        {true, {800, 795, 700, 805}, {0}, "4 GPUs|slowest: cuda:2|!not proven", VERDICT_SLOW},
        {true, {800, 770}, {0}, "2 GPUs|slowest: cuda:1", VERDICT_NORMAL},
        {true, {800, 799.9, 800}, {0}, "3 GPUs alike|!slowest", VERDICT_NORMAL},
        {false, {800, 810, 700}, {0}, "slowest: cuda:2 (not proven", VERDICT_UNDECIDED},
        {false, {800, 800}, {0}, "!alike", VERDICT_UNDECIDED},
        {true,
         {800, 801, NAN, NAN},
         {NULL, NULL, "failed", "skipped"},
         "2 of 4 GPUs|cuda:2 failed|1 skipped|alike",
         VERDICT_PARTLY_FAILED},
        {true, {800, NAN}, {NULL, "skipped"}, "1 of 2 GPUs|1 skipped", VERDICT_NORMAL},
        {true, {800, NAN}, {NULL, "failed"}, "1 of 2 GPUs|cuda:1 failed", VERDICT_PARTLY_FAILED},
    };
    struct scene *s = *state;

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        begin(s, cases[c].launched, "gemm", gemm_params);
        for (size_t i = 0; i < 4 && cases[c].values[i] != 0; i++) {
            char values[64];
            bool died = c == 7 && i == 1; /* early: it does not know what it measures */

            snprintf(values, sizeof(values), "cuda:%zu bf16 %s cublaslt - 8192 8192 8192", i,
                     died ? "-" : "random");
            put(s, died ? "" : "throughput", cases[c].values[i], 1000, cases[c].status[i], values);
        }
        load(s);
        says(s, CORE, "GPU GEMM bf16", cases[c].says);
        if (verdict_of(s, CORE, "GPU GEMM bf16")->kind != cases[c].kind)
            fail_msg("case %zu: %s", c, verdict_said(verdict_of(s, CORE, "GPU GEMM bf16")));
    }
}

/* Five launches whose interval reaches what the others give: the mean is 10 % behind, and may be by chance. */
static void a_gpu_that_varies_is_not_behind(void **state)
{
    static const double values[] = {500, 900, 600, 850, 720};
    struct scene *s = *state;

    begin(s, true, "gemm", gemm_params);
    gemm(s, "cuda:0 bf16 random cublaslt", 800);
    gemm(s, "cuda:1 bf16 random cublaslt", 810);
    s->launched = false;
    for (size_t i = 0; i < 5; i++) {
        s->cases -= i > 0;
        struct row row = row_of(s, "throughput", "TFLOP/s", values[i]);
        row.repeat = i + 1;
        row.limit = 1000;
        add(s, &row, "cuda:2 bf16 random cublaslt");
    }
    load(s);
    says(s, CORE, "GPU GEMM bf16", "slowest: cuda:2 (not proven");
    assert_int_equal(verdict_of(s, CORE, "GPU GEMM bf16")->tone, TONE_NONE);
}

/* Host copies: far and pageable memory, and each GPU from the node that it is near to. */
static void copies_are_compared(void **state)
{
    struct scene *s = *state;

    begin(s, true, "copy", copy_params);
    put(s, "bandwidth", 55, 63, NULL, "ce node0 cuda:0 one-way pinned - none A local");
    put(s, "bandwidth", 42.35, 63, NULL, "ce node1 cuda:0 one-way pinned - none A remote");
    put(s, "bandwidth", 54, 63, NULL, "ce cuda:0 node0 one-way pinned - none A local");
    put(s, "bandwidth", 54, 63, NULL, "ce cuda:0 node1 one-way pinned - none A remote");
    put(s, "bandwidth", 11, 63, NULL, "ce node0 cuda:0 one-way pageable - none A local");
    load(s);
    says(s, "GPU copies", "host to GPU, pinned", "remote node|23 %|pageable|80 %");
    says(s, "GPU copies", "GPU to host, pinned", "remote node|as fast");
    begin(s, true, "copy", copy_params);
    put(s, "bandwidth", 55, 63, NULL, "ce node0 cuda:0 one-way pinned - none A local");
    put(s, "bandwidth", 40, 63, NULL, "ce node1 cuda:0 one-way pinned - none A remote");
    put(s, "bandwidth", 41, 63, NULL, "ce node0 cuda:1 one-way pinned - none B remote");
    put(s, "bandwidth", 53.5, 63, NULL, "ce node1 cuda:1 one-way pinned - none B local");
    load(s);
    says(s, "GPU copies", "host to GPU, pinned", "2 GPUs: 55.00 to 53.50, slowest: cuda:1");
    assert_int_equal(verdict_of(s, "GPU copies", "host to GPU, pinned")->kind, VERDICT_NORMAL);
}

#define LINK(address, width)                                                                       \
    "{\"address\": \"" address "\", \"kind\": \"gpu\", \"link\": {\"device\": \"" address          \
    "\", \"now_gt_s\": 16, \"best_gt_s\": 16, \"now_width\": " width ", \"best_width\": 16,"       \
    " \"downtrained\": true}}"
#define POWER(address, watts)                                                                      \
    "{\"address\": \"" address "\", \"driver\": \"nvidia\", \"cuda\": \"cuda:0\","                 \
    " \"power_limit_watts\": " watts ", \"power_default_watts\": 700}"

/* Of its own GPU, and of either end. */
static void a_low_value_is_explained_by_its_gpu(void **state)
{
    static const char meta[] = "\"machine\": {\"gpus\": {\"devices\": [" POWER(
        "A", "500") ", {\"address\": \"B\"}, "
                    "{\"address\": \"C\"}]}, \"pci\": [" LINK("B", "8") ", " LINK("C", "4") "]}";
    struct scene *s = *state;

    begin(s, true, "copy", copy_params);
    told_write(&s->f, meta);
    put(s, "bandwidth", 27, 63, NULL, "ce node0 cuda:1 one-way pinned - none B local");
    put(s, "bandwidth", 20, 63, NULL, "ce cuda:0 cuda:1 one-way - on - A+B - peer");
    load(s);
    says(s, "GPU copies", "host to GPU, pinned", "low|B: the link runs at x8|!x4|!500 W");
    says(s, "GPU peers", "GPU to GPU by peer", "low|B: the link runs at x8|!x4");
}

static void launches_tell_their_tail_and_their_nodes(void **state)
{
    struct scene *s = *state;

    for (uint64_t samples = 999; samples <= 1000; samples++) {
        begin(s, false, "launch", launch_params);
        struct row row = row_of(s, "latency", "us", 2.1);
        row.summary.p999 = 12.5;
        row.samples = samples;
        add(s, &row, "cuda:0 launch");
        load(s);
        says(s, "GPU launch", "kernel launch", samples < 1000 ? "!p99.9" : "p99.9 is 12.50 us");
    }
    begin(s, false, "launch", launch_params); /* each from the node that it is near to */
    put(s, "latency", 2, NAN, NULL, "cuda:0 launch 0");
    put(s, "latency", 2.08, NAN, NULL, "cuda:1 launch 1");
    put(s, "latency", NAN, NAN, "skipped", "cuda:2 launch any");
    load(s);
    says(s, "GPU launch", "kernel launch",
         "2 of 3 GPUs, 1 skipped: 2.000 to 2.080, slowest: cuda:1");
}

static void a_gpu_that_was_held_back_says_so(void **state)
{
    struct scene *s = *state;

    begin(s, false, "gemm", gemm_params);
    for (int held = 0; held < 2; held++) {
        struct row row = row_of(s, "throughput", "TFLOP/s", 700);

        row.gpu_throttle = held ? "power cap" : NULL;
        row.gpu_clocks_set = "application clocks";
        add(s, &row, held ? "cuda:0 bf16 random cublaslt" : "cuda:0 f64 random cublaslt");
    }
    load(s);
    says(s, CORE, "GPU GEMM bf16", "held back by power cap");
    says(s, CORE, "GPU GEMM f64", "!held back");
}

/* What a library takes may differ from launch to launch, and a search may find another shape. */
static void outcomes_make_no_case(void **state)
{
    static const char *const values[][2] = {{"- 8192 8192 8192 1", "- 8192 8192 8192 2"},
                                            {"10s 8192 9216 4096 -", "10s 9216 9216 4096 -"}};
    struct scene *s = *state;

    begin(s, false, "gemm", gemm_params);
    for (size_t i = 0; i < 4; i++) {
        char text[128];
        struct row row;

        s->cases -= i % 2;
        row = row_of(s, "throughput", "TFLOP/s", 700 + 10 * (double)(i % 2));
        row.repeat = i % 2 + 1;
        snprintf(text, sizeof(text), "cuda:0 bf16 random cublaslt %s", values[i / 2][i % 2]);
        add(s, &row, text);
    }
    load(s);
    assert_int_equal(s->r.benches[0].n_cases, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(s->r.benches[0].cases[i].points[0].n_values, 2);
        near(s->r.benches[0].cases[i].points[0].value, sqrt(700.0 * 710));
    }
}

/* No GPU is one quiet line; a failure is no lack of one, and one that works shows what was skipped. */
static void no_gpu_is_one_quiet_line(void **state)
{
    struct scene *s = *state;

    begin(s, false, "gemm", gemm_params);
    gemm(s, "host f32 random onednn", 800);
    put(s, "throughput", NAN, NAN, "skipped", "cuda:0 bf16 random cublaslt");
    go_on(s, "launch", launch_params);
    put(s, "latency", NAN, NAN, "skipped", "cuda:0 launch");
    load(s);
    assert_string_equal(s->h.no_gpu, "a reason");
    assert_int_equal(s->h.n, 1);
    assert_null(strstr(s->h.missing, "GPU"));
    begin(s, false, "launch", launch_params);
    put(s, "latency", NAN, NAN, "failed", "cuda:0 launch");
    load(s);
    assert_string_equal(s->h.no_gpu, "");
    assert_int_equal(verdict_of(s, "GPU launch", "kernel launch")->tone, TONE_BAD);
    begin(s, false, "gemm", gemm_params);
    told_write(&s->f, "\"machine\": {\"gpus\": {\"devices\": [{}]}}");
    gemm(s, "cuda:0 bf16 random cublaslt", 700);
    put(s, "throughput", NAN, NAN, "skipped", "cuda:0 e4m3 random cublaslt");
    load(s);
    assert_string_equal(s->h.no_gpu, "");
    assert_int_equal(verdict_of(s, CORE, "GPU GEMM e4m3")->kind, VERDICT_NOT_MEASURED);
    assert_non_null(strstr(s->h.missing, "GPU memory"));
    assert_null(strstr(s->h.missing, "GPU peers")); /* needs two */
}

/* Five GPUs: 0 and 1, 2 and 3 with NVLink, the rest over PCIe; one pair of each kind is slow. Each is held against
 * the others of its own kind. */
static void pairs_become_a_matrix(void **state)
{
    struct scene *s = *state;

    begin(s, true, "copy", copy_params);
    told_write(&s->f,
               "\"gpu_pairs\": {\"sampled\": 19, \"of\": 20}, \"machine\": {\"gpus\": {\"pairs\": ["
               "{\"a\": \"A0\", \"b\": \"A1\", \"nvlinks\": 4},"
               "{\"a\": \"A2\", \"b\": \"A3\", \"nvlinks\": 4},"
               "{\"a\": \"A0\", \"b\": \"A2\", \"nvlinks\": 0, \"relation\": \"SYS\"}]}}");
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) {
            double value = i / 2 == k / 2 && i < 4 && k < 4 ? 90 : 20;
            bool lost = i == 0 && k == 3;
            char text[64];

            if (i == k || (i == 4 && k == 0))
                continue;
            value *= i == 3 && k == 2 ? 0.6 : i == 1 && k == 4 ? 0.8 : 1;
            snprintf(text, sizeof(text), "ce cuda:%d cuda:%d one-way - on - A%d+A%d - peer", i, k,
                     i, k);
            put(s, "bandwidth", lost ? NAN : value, NAN, lost ? "skipped" : NULL, text);
        }
    put(s, "bandwidth", 170, NAN, NULL, "ce cuda:0 cuda:1 sum - on - A0+A1 - peer");
    load(s);
    assert_int_equal(s->h.matrices.n, 2);
    near(s->h.matrices.all[1].high, 170);
    const struct matrix *m = &s->h.matrices.all[0];
    assert_int_equal(m->n, 5);
    assert_string_equal(m->ends[4], "cuda:4");
    assert_int_equal(m->measured, 18);
    near(m->high, 90);
    near(m->cells[0 * 5 + 1].point->value, 90);
    near(m->cells[1 * 5 + 4].point->value, 16);
    assert_null(m->cells[4 * 5 + 0].c); /* not in the plan */
    assert_null(m->cells[2 * 5 + 2].c);
    assert_string_equal(m->cells[0 * 5 + 3].point->status, "skipped");
    assert_string_equal(m->cells[0 * 5 + 1].kind, "4 NVLinks, peer");
    assert_string_equal(m->cells[0 * 5 + 2].kind, "SYS, peer");
    assert_string_equal(m->cells[0 * 5 + 4].kind, "peer");
    assert_int_equal(m->slow, 2);
    assert_true(m->cells[3 * 5 + 2].slow && m->cells[1 * 5 + 4].slow);
    assert_non_null(strstr(matrix_slow_text(&s->r, m, 3 * 5 + 2), " 0.60 ("));
    says(s, "GPU peers", "GPU to GPU by peer",
         "4 pairs (4 NVLinks): 90.00 to 54.00, slowest: cuda:3 -> cuda:2, "
         "1 slow|2 pairs (SYS) alike: 20.00|12 of 13 pairs");
    const struct verdict *v = verdict_of(s, "GPU peers", "GPU to GPU by peer");
    assert_int_equal(v->kind, VERDICT_SLOW);
    assert_non_null(v->look_case); /* the slowest pair for its kind, and not the best pair */
    assert_string_equal(report_param(&s->r.benches[0], v->look_case, "source"), "cuda:3");
    assert_string_equal(report_param(&s->r.benches[0], v->look_case, "destination"), "cuda:2");
    assert_int_equal(s->figures.n, 0); /* many pairs are not drawn as lines */
}

/* Each line speaks of the pairs with its own path, and of those that never knew theirs. */
static void paths_are_counted_by_themselves(void **state)
{
    struct scene *s = *state;

    begin(s, false, "copy", copy_params);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            bool near_by = i + k == 1, lost = i == 2 && k == 0;
            char text[64];

            if (i == k)
                continue;
            snprintf(text, sizeof(text), "ce cuda:%d cuda:%d one-way - on - A - %s", i, k,
                     lost      ? "-"
                     : near_by ? "near"
                               : "far");
            put(s, "bandwidth",
                lost      ? NAN
                : near_by ? 44
                          : 12 - k,
                NAN, lost ? "skipped" : NULL, text);
        }
    load(s);
    says(s, "GPU peers", "GPU to GPU by near", "2 pairs alike: 44.00|5 of 6 pairs|!cuda:2");
    says(s, "GPU peers", "GPU to GPU by far", "3 pairs: 11.00 to 10.00, slowest: |!44");
}

/* It says nothing about this machine: neither normal nor low. What was lost is told all the same. */
static void simulated_rows_are_not_judged(void **state)
{
    struct scene *s = *state;

    begin(s, false, "gemm", gemm_params);
    for (int i = 0; i < 4; i++) {
        s->cases -= i == 3;
        struct row row = row_of(s, "throughput", "TFLOP/s", i == 3 ? NAN : i ? 10 : 20);

        row.origin = "simulated";
        row.limit = 1000;
        row.percent_of_limit = 2;
        row.repeat = i == 3 ? 2 : 1;
        row.status = i == 3 ? "failed" : i ? "ok" : "noisy";
        add(s, &row,
            i < 2 ? i ? "cuda:1 bf16 random cublaslt" : "cuda:0 bf16 random cublaslt"
                  : "cuda:0 f16 random cublaslt");
    }
    load(s);
    says(s, CORE, "GPU GEMM bf16", "simulated|2 GPUs: 20.00 to 10.00, slowest: cuda:1");
    assert_int_equal(verdict_of(s, CORE, "GPU GEMM bf16")->tone, TONE_NONE);
    says(s, CORE, "GPU GEMM f16", "1 of 2 launches failed");
    assert_int_equal(verdict_of(s, CORE, "GPU GEMM f16")->tone, TONE_BAD);
}

/* A plot counts the GPUs of its own cases; a limit is drawn where it holds, and a line is marked where one of its values is. */
static void plots_of_memory(void **state)
{
    static const char *const sizes[] = {"1048576", "16777216", "268435456", "1073741824"};
    struct scene *s = *state;

    begin(s, false, "memory", memory_params);
    for (int i = 0; i < 24; i++) {
        int kind = i / 4; /* read and triad of one GPU, read of three more, latency */
        char text[64];
        struct row row =
            row_of(s, kind < 5 ? "bandwidth" : "latency", kind < 5 ? "GB/s" : "ns", 4000);

        row.limit = kind < 5 && i % 4 >= 2 ? 4800 : NAN;
        row.origin = kind == 1 ? "simulated" : "measured";
        snprintf(text, sizeof(text), "cuda:%d %s - kernel %s", kind > 1 && kind < 5 ? kind - 1 : 0,
                 kind == 5   ? "latency"
                 : kind == 1 ? "triad"
                             : "read",
                 sizes[i % 4]);
        add(s, &row, text);
    }
    load(s);
    assert_int_equal(s->figures.n, 2);
    const struct plot *plot = &s->figures.all[0].plot;
    assert_non_null(strstr(s->figures.all[0].note, "3 more"));
    assert_string_equal(s->figures.all[1].note, "");
    assert_int_equal(plot->n_marks, 1);
    near(plot->marks[0].at, 4.8); /* TB/s */
    near(plot->marks[0].from, 268435456);
    near(plot->marks[0].to, 1073741824);
    assert_int_equal(plot->n_lines, 2);
    assert_string_equal(plot->lines[0].label, "read");
    assert_string_equal(plot->lines[1].label, "triad (simulated)");
    assert_string_equal(plot->watermark, "simulated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(host_and_gpu_do_not_mix),
                                       TEST(like_is_set_beside_like),
                                       TEST(gpus_are_set_side_by_side),
                                       TEST(a_gpu_that_varies_is_not_behind),
                                       TEST(copies_are_compared),
                                       TEST(a_low_value_is_explained_by_its_gpu),
                                       TEST(launches_tell_their_tail_and_their_nodes),
                                       TEST(a_gpu_that_was_held_back_says_so),
                                       TEST(outcomes_make_no_case),
                                       TEST(no_gpu_is_one_quiet_line),
                                       TEST(pairs_become_a_matrix),
                                       TEST(paths_are_counted_by_themselves),
                                       TEST(simulated_rows_are_not_judged),
                                       TEST(plots_of_memory)};

    return cmocka_run_group_tests(tests, told_ask, told_forget);
}
