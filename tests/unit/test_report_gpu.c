/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the report's rules for GPUs: which rows make a headline, what stands beside it, how
 * several GPUs and pairs of them compare, what is said where there is none, and that what was not
 * measured is marked wherever it is shown. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/series.h"
#include "harness/text.h"
#include "tests/unit/fake_run.h"
#include "tests/unit/verdict_said.h"

#define META "{\"schema\": 1, \"run\": \"one\", \"machine\": {}}\n"

static const char *const gemm_params[] = {"device", "dtype", "data", "library", "search",
                                          "m",      "n",     "k",    "kernel",  "address"};
static const char *const memory_params[] = {"device", "op",    "launch", "engine",
                                            "size",   "level", "address"};
static const char *const copy_params[] = {"engine", "source", "destination", "direction", "memory",
                                          "op",     "access", "together",    "size",      "address",
                                          "numa",   "path",   "load"};
static const char *const launch_params[] = {"device", "op", "address"};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* The rows of one benchmark, written one by one; begin() starts another one. */
struct writer {
    struct fake_run f;
    FILE *rows, *plan;
    const char *bench;
    const char *const *params;
    size_t n_params;
    unsigned cases;
    bool launched; /* FAKE_LAUNCHES times, each, so that there is an interval */
    char number[16];
};

static int make_folder(void **state)
{
    struct writer *w = calloc(1, sizeof(*w));

    fake_run_init(&w->f);
    fake_run_write(&w->f, "run.json", META);
    w->plan = fake_run_open(&w->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, w->plan);
    *state = w;
    return 0;
}

static int remove_folder(void **state)
{
    struct writer *w = *state;

    fake_run_release(&w->f);
    free(w);
    return 0;
}

static void begin(struct writer *w, const char *bench, const char *const *params, size_t n)
{
    char name[64];

    if (w->rows)
        fclose(w->rows);
    w->bench = bench;
    w->params = params;
    w->n_params = n;
    snprintf(name, sizeof(name), "%s.csv", bench);
    w->rows = fake_run_open(&w->f, name, "w");
    row_print_csv_header(w->rows, params, n);
}

static struct report loaded(struct writer *w)
{
    const char *paths[] = {w->f.path};
    struct report r;
    char error[512] = "";

    fclose(w->rows);
    fclose(w->plan);
    if (report_load(&r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    return r;
}

static struct headlines headlines_of(struct report *r)
{
    struct headlines h;

    assert_int_equal(headlines_make(r, &h), 0);
    return h;
}

static struct row row_of(struct writer *w, const char *metric, const char *unit, double value)
{
    struct row row;

    snprintf(w->number, sizeof(w->number), "%u", ++w->cases);
    fake_row_init(&row, w->number, 1, metric, unit, value);
    return row;
}

/* Writes a row with these values of its parameters; "" behind those that are given. */
static void add(struct writer *w, struct row *row, ...)
{
    va_list args;

    va_start(args, row);
    row->param_names = w->params;
    row->n_params = w->n_params;
    for (size_t i = 0; i < w->n_params; i++)
        row->params[i] = va_arg(args, const char *);
    va_end(args);
    double value = row->value, percent = row->percent_of_limit;
    for (unsigned i = 0; i < (w->launched ? FAKE_LAUNCHES : 1); i++) {
        row->repeat += i > 0;
        row->value = w->launched ? fake_launch(value, i) : value;
        row->percent_of_limit = percent * row->value / value;
        row_print_csv(w->rows, row);
        fprintf(w->plan, "done,0001,1,%s,%llu,%s,,60\n", row->case_id,
                (unsigned long long)row->repeat, w->bench);
    }
}

static void add_gemm(struct writer *w, const char *device, const char *dtype, const char *data,
                     const char *library, const char *size, double value)
{
    struct row row = row_of(w, "throughput", "TFLOP/s", value);

    row.limit = 1000;
    row.limit_source = "datasheet: x";
    row.percent_of_limit = value / 10;
    add(w, &row, device, dtype, data, library, "", size, size, size,
        strcmp(device, "host") ? "cuBLASLt" : "avx512", strcmp(device, "host") ? device : "");
}

static const struct headline *line(const struct headlines *h, const char *pipe, const char *label)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp(h->all[i].pipe, pipe) && !strcmp(h->all[i].label, label))
            return &h->all[i];
    fail_msg("no headline %s, %s", pipe, label);
    return NULL;
}

static bool has_line(const struct headlines *h, const char *pipe)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp(h->all[i].pipe, pipe))
            return true;
    return false;
}

static void says(const struct headline *h, const char *text)
{
    if (!strstr(verdict_said(&h->runs[0].verdict), text))
        fail_msg("'%s' does not say '%s'", verdict_said(&h->runs[0].verdict), text);
}

static void says_not(const struct headline *h, const char *text)
{
    if (strstr(verdict_said(&h->runs[0].verdict), text))
        fail_msg("'%s' says '%s'", verdict_said(&h->runs[0].verdict), text);
}

static void near(double x, double y)
{
    if (!(fabs(x - y) <= 1e-6 * fabs(y))) /* NaN is near nothing */
        fail_msg("%g is not %g", x, y);
}

/* ---- headlines */

static void host_and_gpu_do_not_mix(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "host", "bf16", "random", "onednn", "1024", 3);
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 790);
    add_gemm(w, "cuda:0", "bf16", "zeros", "cublaslt", "8192", 900);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    near(line(&h, "Matrix core", "bf16")->runs[0].point->value, 3);
    near(line(&h, "GPU matrix core", "bf16")->runs[0].point->value, 790);
    assert_int_equal(line(&h, "GPU matrix core", "bf16")->runs[0].verdict.kind, VERDICT_NORMAL);
    assert_string_equal(h.no_gpu, "");
    report_release(&r);
}

static void zeros_and_the_librarys_choice_stand_beside(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 760);
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt-best", "8192", 800);
    add_gemm(w, "cuda:0", "bf16", "zeros", "cublaslt", "8192", 874);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_int_equal(h.contrasts.n, 2);
    near(h.contrasts.all[0].change, 0.15);
    near(h.contrasts.all[1].change, -0.05);
    says(line(&h, "GPU matrix core", "bf16"), "zeros are 15 % faster: they take less power");
    says(line(&h, "GPU matrix core", "bf16"),
         "the library's own choice is 5 % slower than the best of its candidates");
    report_release(&r);
}

/* Two sizes or two types are no pair; and what lies within the intervals is no proven difference. */
static void only_like_is_set_beside_like(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 760);
    add_gemm(w, "cuda:0", "bf16", "zeros", "cublaslt", "4096", 900);
    add_gemm(w, "cuda:0", "f16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:0", "f16", "zeros", "cublaslt", "8192", 812);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_int_equal(h.contrasts.n, 1);
    says_not(line(&h, "GPU matrix core", "bf16"), "zeros");
    says(line(&h, "GPU matrix core", "f16"), "not proven: zeros are 1.5 % faster");
    report_release(&r);
}

/* Nor is "no difference" told of launches that say nothing of it. */
static void one_launch_proves_no_difference_and_no_likeness(void **state)
{
    struct writer *w = *state;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 760);
    add_gemm(w, "cuda:0", "bf16", "zeros", "cublaslt", "8192", 874);
    add_gemm(w, "cuda:0", "f16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:0", "f16", "zeros", "cublaslt", "8192", 801);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU matrix core", "bf16"), "not proven: zeros are 15 % faster");
    says(line(&h, "GPU matrix core", "f16"), "not proven: zeros make no difference");
    report_release(&r);
}

static void a_gpu_behind_the_others_is_named(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    static const double values[] = {800, 795, 700, 805};
    struct writer *w = *state;

    fake_run_write(&w->f, "run.json",
                   "{\"schema\": 1, \"run\": \"one\", \"machine\": {\"gpus\": {\"devices\": ["
                   "{\"address\": \"A\", \"driver\": \"nvidia\", \"cuda\": \"cuda:2\","
                   " \"power_limit_watts\": 500, \"power_default_watts\": 700},"
                   "{\"address\": \"B\", \"driver\": \"nvidia\", \"cuda\": \"cuda:3\","
                   " \"power_limit_watts\": 600, \"power_default_watts\": 700}]}}}\n");
    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    for (size_t i = 0; i < 4; i++)
        add_gemm(w, devices[i], "bf16", "random", "cublaslt", "8192", values[i]);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct headline *bf16 = line(&h, "GPU matrix core", "bf16");
    says(bf16, "4 GPUs: 805.0 to 700.0, slowest: cuda:2");
    says(bf16, "A: the power limit is 500 W, by default 700 W");
    says_not(bf16, "600 W");
    says_not(bf16, "not proven");
    assert_int_equal(bf16->runs[0].verdict.tone, TONE_LOW);
    report_release(&r);
}

/* One launch each has no interval: the values are told, and none is an alarm or a likeness. */
static void one_launch_puts_no_gpu_behind(void **state)
{
    struct writer *w = *state;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "bf16", "random", "cublaslt", "8192", 810);
    add_gemm(w, "cuda:2", "bf16", "random", "cublaslt", "8192", 700);
    add_gemm(w, "cuda:0", "f16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "f16", "random", "cublaslt", "8192", 800);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct headline *bf16 = line(&h, "GPU matrix core", "bf16");
    says(bf16, "3 GPUs: 810.0 to 700.0, slowest: cuda:2 (not proven to be behind)");
    assert_int_equal(bf16->runs[0].verdict.tone, TONE_NONE);
    says_not(line(&h, "GPU matrix core", "f16"), "alike");
    report_release(&r);
}

/* Five launches whose interval reaches what the others give: the mean is 10 % behind, and may be by chance. */
static void a_gpu_that_varies_is_not_behind(void **state)
{
    static const double values[] = {500, 900, 600, 850, 720};
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "bf16", "random", "cublaslt", "8192", 810);
    w->launched = false;
    for (size_t i = 0; i < COUNT(values); i++) {
        w->cases -= i > 0;
        struct row row = row_of(w, "throughput", "TFLOP/s", values[i]);
        row.repeat = i + 1;
        row.limit = 1000;
        row.limit_source = "datasheet: x";
        row.percent_of_limit = values[i] / 10;
        add(w, &row, "cuda:2", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "cuBLASLt",
            "cuda:2");
    }
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct headline *bf16 = line(&h, "GPU matrix core", "bf16");
    says(bf16, "slowest: cuda:2 (not proven to be behind)");
    assert_int_equal(bf16->runs[0].verdict.tone, TONE_NONE);
    report_release(&r);
}

/* A row of a GPU on which it has another status than ok. */
static void add_lost_gemm(struct writer *w, const char *device, const char *status)
{
    struct row row = row_of(w, "throughput", "TFLOP/s", NAN);

    row.status = status;
    row.reason = "a reason";
    add(w, &row, device, "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "", device);
}

static void gpus_without_a_value_are_told(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "bf16", "random", "cublaslt", "8192", 801);
    add_lost_gemm(w, "cuda:2", "failed");
    add_lost_gemm(w, "cuda:3", "skipped");
    add_gemm(w, "cuda:0", "f16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "f16", "random", "cublaslt", "8192", 770);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct headline *bf16 = line(&h, "GPU matrix core", "bf16");
    says(bf16, "2 of 4 GPUs, cuda:2 failed, 1 skipped, the others alike");
    assert_int_equal(bf16->runs[0].verdict.kind, VERDICT_PARTLY_FAILED);
    says(line(&h, "GPU matrix core", "f16"), "2 GPUs: 800.0 to 770.0, slowest: cuda:1");
    report_release(&r);
}

/* What a card lacks is no alarm; and a launch that died early does not know what it measures. */
static void skipped_gpus_are_no_alarm_and_dead_ones_count(void **state)
{
    struct writer *w = *state;
    struct row row;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 800);
    add_lost_gemm(w, "cuda:1", "skipped");
    add_gemm(w, "cuda:0", "f16", "random", "cublaslt", "8192", 800);
    row = row_of(w, "", "", NAN);
    row.status = "failed";
    row.reason = "killed by signal 9";
    add(w, &row, "cuda:1", "f16", "", "cublaslt", "", "8192", "8192", "8192", "", "");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU matrix core", "bf16"), "1 of 2 GPUs, 1 skipped");
    assert_int_equal(line(&h, "GPU matrix core", "bf16")->runs[0].verdict.kind, VERDICT_NORMAL);
    says(line(&h, "GPU matrix core", "f16"), "1 of 2 GPUs, cuda:1 failed");
    report_release(&r);
}

static void gpus_that_do_not_differ_are_alike(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 800);
    add_gemm(w, "cuda:1", "bf16", "random", "cublaslt", "8192", 799.9);
    add_gemm(w, "cuda:2", "bf16", "random", "cublaslt", "8192", 800);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU matrix core", "bf16"), "3 GPUs alike");
    says_not(line(&h, "GPU matrix core", "bf16"), "slowest");
    report_release(&r);
}

static void add_copy(struct writer *w, const char *source, const char *destination,
                     const char *memory, const char *address, const char *numa, double value)
{
    struct row row = row_of(w, "bandwidth", "GB/s", value);

    row.limit = 63;
    row.limit_source = "sysfs: x";
    row.percent_of_limit = 100 * value / 63;
    add(w, &row, "ce", source, destination, "one-way", memory, "", "", "none", "268435456", address,
        numa, "", "");
}

static void far_memory_gets_a_verdict(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "copy", copy_params, COUNT(copy_params));
    add_copy(w, "node0", "cuda:0", "pinned", "A", "local", 55);
    add_copy(w, "node1", "cuda:0", "pinned", "A", "remote", 42.35);
    add_copy(w, "cuda:0", "node0", "pinned", "A", "local", 54);
    add_copy(w, "cuda:0", "node1", "pinned", "A", "remote", 54);
    add_copy(w, "node0", "cuda:0", "pageable", "A", "local", 11);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU copies", "host to GPU, pinned"), "from the remote node it is 23 % slower");
    says(line(&h, "GPU copies", "host to GPU, pinned"), "from pageable memory it is 80 % slower");
    says(line(&h, "GPU copies", "GPU to host, pinned"), "to the remote node it is as fast");
    report_release(&r);
}

/* Each GPU is near to one of the nodes: the best of each counts. */
static void gpus_are_compared_from_their_own_node(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    begin(w, "copy", copy_params, COUNT(copy_params));
    add_copy(w, "node0", "cuda:0", "pinned", "A", "local", 55);
    add_copy(w, "node1", "cuda:0", "pinned", "A", "remote", 40);
    add_copy(w, "node0", "cuda:1", "pinned", "B", "remote", 41);
    add_copy(w, "node1", "cuda:1", "pinned", "B", "local", 53.5);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU copies", "host to GPU, pinned"), "2 GPUs: 55.00 to 53.50, slowest: cuda:1");
    assert_int_equal(line(&h, "GPU copies", "host to GPU, pinned")->runs[0].verdict.kind,
                     VERDICT_NORMAL);
    report_release(&r);
}

/* A GPU whose link has the width `width` of 16 lanes: in "pci", and in "gpus". */
#define GPU_IN_PCI(address, width)                                                                 \
    "{\"address\": \"" address "\", \"kind\": \"gpu\", \"link\": {\"device\": \"" address          \
    "\", \"now_gt_s\": 16, \"best_gt_s\": 16, \"now_width\": " width ", \"best_width\": 16,"       \
    " \"downtrained\": true}}"
#define GPUS(...)                                                                                  \
    "{\"schema\": 1, \"run\": \"one\", \"machine\": {\"gpus\": {\"devices\": [{\"address\": "      \
    "\"0000:3b:00.0\"}, {\"address\": \"0000:3b:00.1\"}, {\"address\": \"B\"}]}, \"pci\": "        \
    "[" __VA_ARGS__ "]}}\n"

static void a_low_copy_is_explained_by_its_link(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    fake_run_write(&w->f, "run.json",
                   GPUS(GPU_IN_PCI("0000:3b:00.0", "8") ", " GPU_IN_PCI("0000:3b:00.1", "4")));
    begin(w, "copy", copy_params, COUNT(copy_params));
    add_copy(w, "node0", "cuda:0", "pinned", "0000:3b:00.0", "local", 27);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct headline *to = line(&h, "GPU copies", "host to GPU, pinned");
    says(to, "low; 0000:3b:00.0: the link runs at x8, 16.0 GT/s");
    says_not(to, "x4");
    report_release(&r);
}

/* A row between two GPUs names both. */
static void either_end_may_be_the_reason(void **state)
{
    struct writer *w = *state;
    struct row row;

    w->launched = true;
    fake_run_write(&w->f, "run.json", GPUS(GPU_IN_PCI("B", "8")));
    begin(w, "copy", copy_params, COUNT(copy_params));
    row = row_of(w, "bandwidth", "GB/s", 20);
    row.limit = 63;
    row.percent_of_limit = 100 * 20 / 63.0;
    add(w, &row, "ce", "cuda:0", "cuda:1", "one-way", "", "write", "on", "", "268435456", "A+B", "",
        "peer access", "");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU peers", "peer access"), "low; B: the link runs at x8");
    report_release(&r);
}

/* Each GPU is driven from the node that it is near to; where none may be used it is skipped. */
static void launches_are_compared_across_nodes(void **state)
{
    static const char *const params[] = {"device", "op", "node", "address"};
    static const char *const rows[][2] = {
        {"cuda:0", "0"}, {"cuda:1", "1"}, {"cuda:2", "any"}, {"cuda:3", "any"}};
    struct writer *w = *state;

    begin(w, "launch", params, COUNT(params));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct row row = row_of(w, "latency", "us", i < 2 ? 2.0 + 0.08 * (double)i : NAN);

        row.status = i < 2 ? "ok" : "skipped";
        row.reason = i < 2 ? "" : "no CPU of node 1 may be used here";
        add(w, &row, rows[i][0], "launch", rows[i][1], rows[i][0]);
    }
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU launch", "launch"),
         "2 of 4 GPUs, 2 skipped: 2.000 to 2.080, slowest: cuda:1");
    report_release(&r);
}

static void launches_tell_their_tail(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "launch", launch_params, COUNT(launch_params));
    row = row_of(w, "latency", "us", 2.1);
    row.summary.p999 = 12.5;
    row.samples = 1000;
    add(w, &row, "cuda:0", "launch", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU launch", "launch"), "p99.9 is 12.50 us");
    report_release(&r);
}

/* That of a few samples is their largest, and no tail. */
static void few_samples_have_no_tail(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "launch", launch_params, COUNT(launch_params));
    row = row_of(w, "latency", "us", 2.1);
    row.summary.p999 = 12.5;
    row.samples = 999;
    add(w, &row, "cuda:0", "launch", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says_not(line(&h, "GPU launch", "launch"), "p99.9");
    report_release(&r);
}

static void a_gpu_that_was_held_back_says_so(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    row = row_of(w, "throughput", "TFLOP/s", 700);
    row.gpu_throttle = "power cap";
    row.gpu_clocks_set = "application clocks";
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "", "A");
    row = row_of(w, "throughput", "TFLOP/s", 60);
    row.gpu_clocks_set = "application clocks";
    add(w, &row, "cuda:0", "f64", "random", "cublaslt", "", "8192", "8192", "8192", "", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU matrix core", "bf16"), "GPU held back by power cap");
    says_not(line(&h, "GPU matrix core", "f64"), "held back");
    report_release(&r);
}

/* ---- cases */

/* What a library takes may differ from launch to launch, and a search may find another shape: one
 * case all the same. */
static void outcomes_make_no_case(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    row = row_of(w, "throughput", "TFLOP/s", 700);
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "algo 1", "A");
    row.repeat = 2;
    row.value = 710;
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "algo 2", "A");
    row = row_of(w, "throughput", "TFLOP/s", 750);
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "10s", "8192", "9216", "4096", "", "A");
    row.repeat = 2;
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "10s", "9216", "9216", "4096", "", "A");
    struct report r = loaded(w);
    assert_int_equal(r.benches[0].n_cases, 2);
    assert_int_equal(r.benches[0].cases[0].points[0].n_values, 2);
    near(r.benches[0].cases[0].points[0].value, sqrt(700.0 * 710));
    assert_int_equal(r.benches[0].cases[1].points[0].n_values, 2);
    report_release(&r);
}

/* ---- no GPU */

static void add_skipped(struct writer *w)
{
    static const char why[] = "no CUDA driver: install one";
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "host", "f32", "random", "onednn", "1024", 800);
    row = row_of(w, "throughput", "TFLOP/s", NAN);
    row.status = "skipped";
    row.reason = why;
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "", "");
    begin(w, "launch", launch_params, COUNT(launch_params));
    row = row_of(w, "latency", "us", NAN);
    row.status = "skipped";
    row.reason = why;
    add(w, &row, "cuda:0", "launch", "");
}

static void no_gpu_is_one_quiet_line(void **state)
{
    struct writer *w = *state;
    struct buffer page = {0};
    char path[128], error[256] = "";

    add_skipped(w);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_string_equal(h.no_gpu, "no CUDA driver: install one");
    assert_string_equal(headlines_no_gpu_text(&r.pool, &h),
                        "no GPU was measured: no CUDA driver: install one");
    assert_int_equal(h.n, 1);
    assert_false(has_line(&h, "GPU matrix core"));
    assert_null(strstr(h.missing, "GPU"));
    report_release(&r);

    const char *paths[] = {w->f.path};
    assert_int_equal(report_make(paths, 1, NULL, error, sizeof(error)), 0);
    snprintf(path, sizeof(path), "%s/report.html", w->f.path);
    assert_int_equal(file_read(path, 10u << 20, &page), 0);
    assert_non_null(strstr(page.text, "<li>no GPU was measured: no CUDA driver: install one</li>"));
    assert_null(strstr(page.text, "d-low' data-of"));
    assert_null(strstr(page.text, "d-bad' data-of"));
    buffer_release(&page);
}

/* Where a GPU works, what it cannot do is said in its line, and nothing else is hidden. */
static void one_that_works_shows_what_was_skipped(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "cuda:0", "bf16", "random", "cublaslt", "8192", 700);
    row = row_of(w, "throughput", "TFLOP/s", NAN);
    row.status = "skipped";
    row.reason = "this GPU has no 8-bit floats";
    add(w, &row, "cuda:0", "e4m3", "random", "cublaslt", "", "8192", "8192", "8192", "", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_string_equal(h.no_gpu, "");
    says(line(&h, "GPU matrix core", "e4m3"), "not measured; this GPU has no 8-bit floats");
    report_release(&r);
}

/* A failure is no lack of a GPU. */
static void a_failed_gpu_is_no_quiet_line(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "launch", launch_params, COUNT(launch_params));
    row = row_of(w, "latency", "us", NAN);
    row.status = "failed";
    row.reason = "it fell off the bus";
    add(w, &row, "cuda:0", "launch", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_string_equal(h.no_gpu, "");
    assert_int_equal(line(&h, "GPU launch", "launch")->runs[0].verdict.tone, TONE_BAD);
    report_release(&r);
}

static void pipes_of_gpus_are_missing_where_there_is_one(void **state)
{
    struct writer *w = *state;

    fake_run_write(
        &w->f, "run.json",
        "{\"schema\": 1, \"run\": \"one\", \"machine\": {\"gpus\": {\"devices\": [{}]}}}\n");
    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    add_gemm(w, "host", "f32", "random", "onednn", "1024", 800);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_non_null(strstr(h.missing, "GPU matrix core"));
    assert_non_null(strstr(h.missing, ", Memory"));
    assert_null(strstr(h.missing, "GPU peers")); /* needs two */
    report_release(&r);
}

/* ---- pairs */

static void add_pair(struct writer *w, int from, int to, const char *direction, double value)
{
    struct row row = row_of(w, "bandwidth", "GB/s", value);
    char source[32], destination[32], address[32];

    snprintf(source, sizeof(source), "cuda:%d", from);
    snprintf(destination, sizeof(destination), "cuda:%d", to);
    snprintf(address, sizeof(address), "A%d+A%d", from, to);
    if (isnan(value)) {
        row.status = "skipped";
        row.reason = "no peer access";
    }
    add(w, &row, "ce", source, destination, direction, "", "write", "on", "", "268435456", address,
        "", "peer access", "");
}

/* Five GPUs: 0 and 1, 2 and 3 with NVLink, the rest over PCIe; one pair of each kind is slow. */
static void write_pairs(struct writer *w)
{
    fake_run_write(&w->f, "run.json",
                   "{\"schema\": 1, \"run\": \"one\", \"gpu_pairs\": {\"sampled\": 19, \"of\": 20},"
                   " \"machine\": {\"gpus\": {\"pairs\": ["
                   "{\"a\": \"A0\", \"b\": \"A1\", \"nvlinks\": 4}, {\"a\": \"A2\", \"b\": \"A3\", "
                   "\"nvlinks\": 4},"
                   "{\"a\": \"A0\", \"b\": \"A2\", \"nvlinks\": 0, \"relation\": \"SYS\"}]}}}\n");
    begin(w, "copy", copy_params, COUNT(copy_params));
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) {
            bool nvlink = i / 2 == k / 2 && i < 4 && k < 4;
            double value = nvlink ? 90 : 20;

            if (i == k || (i == 4 && k == 0))
                continue;
            value *= i == 3 && k == 2 ? 0.6 : i == 1 && k == 4 ? 0.8 : 1;
            add_pair(w, i, k, "one-way", i == 0 && k == 3 ? NAN : value);
        }
}

static void pairs_become_a_matrix(void **state)
{
    struct writer *w = *state;

    write_pairs(w);
    add_pair(w, 0, 1, "sum", 170);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    assert_int_equal(h.matrices.n, 2);
    const struct matrix *m = &h.matrices.all[0];
    assert_int_equal(m->n, 5);
    assert_string_equal(m->ends[4], "cuda:4");
    assert_int_equal(m->measured, 18);
    near(m->high, 90);
    near(m->cells[0 * 5 + 1].point->value, 90);
    near(m->cells[1 * 5 + 4].point->value, 16);
    assert_null(m->cells[4 * 5 + 0].c); /* not in the plan */
    assert_null(m->cells[2 * 5 + 2].c);
    assert_string_equal(m->cells[0 * 5 + 3].point->status, "skipped");
    assert_string_equal(m->cells[0 * 5 + 1].kind, "4 NVLinks, peer access");
    assert_string_equal(m->cells[0 * 5 + 2].kind, "SYS, peer access");
    assert_string_equal(m->cells[0 * 5 + 4].kind, "peer access");
    near(h.matrices.all[1].high, 170);
    report_release(&r);
}

/* Each against the median of its own kind, not against the faster kind. */
static void slow_pairs_are_named(void **state)
{
    struct writer *w = *state;

    w->launched = true;
    write_pairs(w);
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    const struct matrix *m = &h.matrices.all[0];
    assert_int_equal(m->slow, 2);
    assert_true(m->cells[3 * 5 + 2].slow);
    assert_true(m->cells[1 * 5 + 4].slow);
    assert_string_equal(matrix_slow_text(&r, m, 3 * 5 + 2),
                        "cuda:3 -> cuda:2 is 40 % below the median of its kind (4 NVLinks, peer "
                        "access: 90.00 GB/s)");
    says(line(&h, "GPU peers", "peer access"),
         "4 pairs (4 NVLinks): 90.00 to 54.00, slowest: cuda:3 -> cuda:2, 1 slow for its kind; "
         "2 pairs (SYS) alike: 20.00; 12 of 13 pairs (link not known): 20.00 to 16.00, slowest: "
         "cuda:1 -> cuda:4, 1 slow for its kind");
    const struct verdict *v = &line(&h, "GPU peers", "peer access")->runs[0].verdict;
    assert_int_equal(v->kind, VERDICT_SLOW);
    assert_non_null(v->look_case); /* the slowest pair for its kind, and not the best pair */
    assert_string_equal(report_param(&r.benches[0], v->look_case, "source"), "cuda:3");
    assert_string_equal(report_param(&r.benches[0], v->look_case, "destination"), "cuda:2");
    report_release(&r);
}

/* Each line speaks of the pairs with its own path, and of those that never knew theirs. */
static void paths_are_counted_by_themselves(void **state)
{
    static const char *const ends[] = {"cuda:0", "cuda:1", "cuda:2"};
    struct writer *w = *state;

    begin(w, "copy", copy_params, COUNT(copy_params));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            bool near_by = i + k == 1, lost = i == 2 && k == 0;
            struct row row = row_of(w, "bandwidth", "GB/s", lost ? NAN : near_by ? 44 : 12 - k);

            if (i == k)
                continue;
            row.status = lost ? "skipped" : "ok";
            row.reason = lost ? "no peer access" : "";
            add(w, &row, "ce", ends[i], ends[k], "one-way", "", "write", "on", "", "4096", "A", "",
                lost      ? ""
                : near_by ? "rank 0"
                          : "rank 1",
                "");
        }
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU peers", "rank 0"),
         "2 pairs alike: 44.00; in all, 5 of 6 pairs have a value");
    says_not(line(&h, "GPU peers", "rank 0"), "cuda:2");
    says(line(&h, "GPU peers", "rank 1"), "3 pairs: 11.00 to 10.00, slowest: ");
    says_not(line(&h, "GPU peers", "rank 1"), "44");
    report_release(&r);
}

static void many_pairs_are_not_drawn_as_lines(void **state)
{
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));

    write_pairs(w);
    add_copy(w, "node0", "cuda:0", "pinned", "A0", "local", 55);
    add_copy(w, "node0", "cuda:1", "pinned", "A1", "local", 54);
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    assert_int_equal(figures->n, 1);
    assert_int_equal(figures->all[0].plot.n_ticks, 2);
    free(figures);
    report_release(&r);
}

/* The page says how many of the pairs there are, and which cells have no value and why. */
static void the_page_has_the_matrix(void **state)
{
    struct writer *w = *state;
    struct buffer page = {0};
    char path[128], error[256] = "";
    const char *paths[] = {w->f.path};

    w->launched = true;
    write_pairs(w);
    fclose(w->rows);
    fclose(w->plan);
    assert_int_equal(report_make(paths, 1, NULL, error, sizeof(error)), 0);
    snprintf(path, sizeof(path), "%s/report.html", w->f.path);
    assert_int_equal(file_read(path, 10u << 20, &page), 0);
    assert_non_null(strstr(page.text, "<span>(sampled 18 of 20 pairs)</span>"));
    assert_non_null(
        strstr(page.text, "<td class='skipped' title='skipped: no peer access'>n/a</td>"));
    assert_non_null(strstr(page.text, "<td class='none' title='not in this run'></td>"));
    assert_non_null(strstr(page.text, " style='--shade:60%'>90.0</td>"));
    assert_non_null(strstr(page.text, " class='slow'>54.0</td>"));
    buffer_release(&page);
}

/* ---- origin */

static void simulated_rows_are_marked_everywhere(void **state)
{
    static const char *const marks[] = {
        "Not measured here: 4 of 4 rows of <b>copy</b> in one, simulated",
        "<b>55.00</b> GB/s <span class='badge'>simulated</span>",       /* headline */
        "data-of='word'>simulated",                                     /* its sentence */
        "node0 <b>55.00</b> GB/s <span class='badge'>simulated</span>", /* side by side */
        "</span> <span class='badge'>simulated</span></figcaption>",    /* matrix */
        "(simulated)</li>",                                             /* legend */
        "[\"origin\",\"measured, modelled, simulated, or imported (another program printed "
        "it)\",0]", /* a column of the rows */
    };
    struct writer *w = *state;
    struct buffer page = {0};
    char path[128], error[256] = "";
    const char *paths[] = {w->f.path};
    struct row row;

    begin(w, "copy", copy_params, COUNT(copy_params));
    for (int i = 0; i < 2; i++) {
        row = row_of(w, "bandwidth", "GB/s", i ? 42 : 55);
        row.origin = "simulated";
        row.disturbed = "GPU held back for 3 ms (power cap)";
        add(w, &row, "ce", i ? "node1" : "node0", "cuda:0", "one-way", "pinned", "", "", "none",
            "268435456", "A", i ? "remote" : "local", "", "");
        row = row_of(w, "bandwidth", "GB/s", 20 + i);
        row.origin = "simulated";
        add(w, &row, "ce", i ? "cuda:1" : "cuda:0", i ? "cuda:0" : "cuda:1", "one-way", "", "write",
            "on", "", "268435456", "A+B", "", "peer access", "");
    }
    fclose(w->rows);
    fclose(w->plan);
    assert_int_equal(report_make(paths, 1, NULL, error, sizeof(error)), 0);
    snprintf(path, sizeof(path), "%s/report.html", w->f.path);
    assert_int_equal(file_read(path, 10u << 20, &page), 0);
    for (size_t i = 0; i < COUNT(marks); i++) {
        bool plotted =
            strcmp(marks[i], "(simulated)</li>") || strstr(page.text, "<ul class='legend'>");
        if (plotted && !strstr(page.text, marks[i]))
            fail_msg("the page lacks '%s'", marks[i]);
    }
    buffer_release(&page);
}

/* The last cell of the line with this value. */
static void assert_word_of(const char *text, const char *value, const char *word)
{
    const char *line = strstr(text, value), *end = line ? strchr(line, '\n') : NULL;
    const char *found = line ? strstr(line, word) : NULL;

    if (!found || found > end)
        fail_msg("not \"%s\" of \"%s\" in:\n%s", word, value, text);
}

static void the_summary_marks_them_too(void **state)
{
    struct writer *w = *state;
    char *text = NULL, error[256] = "";
    size_t size = 0;
    struct run_folder run;
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    row = row_of(w, "throughput", "TFLOP/s", 700);
    row.origin = "simulated";
    add(w, &row, "cuda:0", "bf16", "random", "cublaslt", "", "8192", "8192", "8192", "", "A");
    add_gemm(w, "host", "f32", "random", "onednn", "1024", 3);
    fclose(w->rows);
    fclose(w->plan);
    assert_int_equal(run_folder_load(w->f.path, &run, error, sizeof(error)), 0);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(report_summary(out, &run), 0);
    fclose(out);
    assert_word_of(text, "700.0 TFLOP/s ", "simulated");
    assert_word_of(text, "3.000 TFLOP/s ", "undecided");
    free(text);
    run_folder_release(&run);
}

/* It says nothing about this machine: neither normal nor low. What was lost is told all the same. */
static void simulated_rows_are_not_judged(void **state)
{
    struct writer *w = *state;
    struct row row;

    begin(w, "gemm", gemm_params, COUNT(gemm_params));
    for (int i = 0; i < 3; i++) {
        row = row_of(w, "throughput", "TFLOP/s", i ? 10 : 20);
        row.origin = "simulated";
        row.limit = 1000;
        row.percent_of_limit = 2;
        row.status = i ? "ok" : "noisy";
        add(w, &row, i == 1 ? "cuda:1" : "cuda:0", i == 2 ? "f16" : "bf16", "random", "cublaslt",
            "", "8192", "8192", "8192", "", "A");
    }
    row.repeat = 2;
    row.value = NAN;
    row.status = "failed";
    row.reason = "it fell off the bus";
    add(w, &row, "cuda:0", "f16", "random", "cublaslt", "", "8192", "8192", "8192", "", "A");
    struct report r = loaded(w);
    struct headlines h = headlines_of(&r);
    says(line(&h, "GPU matrix core", "bf16"), "simulated; ");
    says(line(&h, "GPU matrix core", "bf16"), "2 GPUs: 20.00 to 10.00, slowest: cuda:1");
    assert_int_equal(line(&h, "GPU matrix core", "bf16")->runs[0].verdict.tone, TONE_NONE);
    says(line(&h, "GPU matrix core", "f16"), "1 of 2 launches failed");
    assert_int_equal(line(&h, "GPU matrix core", "f16")->runs[0].verdict.tone, TONE_BAD);
    report_release(&r);
}

/* ---- plots */

static void add_memory(struct writer *w, const char *device, const char *metric, const char *size,
                       double limit)
{
    struct row row = row_of(w, metric, strcmp(metric, "latency") ? "GB/s" : "ns", 4000);

    row.limit = limit;
    add(w, &row, device, strcmp(metric, "latency") ? "read" : "latency", "", "kernel", size, "",
        device);
}

static const struct figure *figure_of(const struct figures *figures, const char *name)
{
    for (size_t i = 0; i < figures->n; i++)
        if (strstr(figures->all[i].plot.name, name))
            return &figures->all[i];
    fail_msg("no figure of %s", name);
    return NULL;
}

static bool has_category(const struct figure *f, const char *label)
{
    for (size_t i = 0; f->plot.categories && i < f->plot.n_ticks; i++)
        if (!strcmp(f->plot.ticks[i].label, label))
            return true;
    return false;
}

/* One end of a copy alone does not say which way it went. */
static void a_label_of_a_copy_names_both_ends(void **state)
{
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));

    begin(w, "copy", copy_params, COUNT(copy_params));
    add_copy(w, "node0", "cuda:0", "pinned", "A", "local", 55);
    add_copy(w, "cuda:0", "node0", "pinned", "A", "local", 54);
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    const struct figure *f = figure_of(figures, "copy");
    assert_true(has_category(f, "node0 to cuda:0"));
    assert_true(has_category(f, "cuda:0 to node0"));
    free(figures);
    report_release(&r);
}

static void an_end_in_the_title_is_said_once(void **state)
{
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));

    begin(w, "copy", copy_params, COUNT(copy_params));
    add_copy(w, "node0", "cuda:0", "pinned", "A", "local", 55);
    add_copy(w, "node1", "cuda:0", "pinned", "A", "local", 54);
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    const struct figure *f = figure_of(figures, "copy");
    assert_true(has_category(f, "from node0"));
    assert_true(has_category(f, "from node1"));
    free(figures);
    report_release(&r);
}

/* Each metric has its own: another one that more GPUs measured makes nothing of them here. */
static void a_plot_counts_the_gpus_of_its_own_cases(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));

    begin(w, "memory", memory_params, COUNT(memory_params));
    for (size_t i = 0; i < COUNT(devices); i++) {
        add_memory(w, devices[i], "bandwidth", "1048576", NAN);
        add_memory(w, devices[i], "bandwidth", "16777216", NAN);
    }
    struct row row = row_of(w, "bandwidth", "GB/s", 4000);
    add(w, &row, "cuda:4", "copy", "", "kernel", "1048576", "", "A"); /* of none of the plots */
    add_memory(w, "cuda:1", "latency", "1048576", NAN);
    add_memory(w, "cuda:1", "latency", "16777216", NAN);
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    assert_string_equal(figure_of(figures, "bandwidth")->note,
                        "one GPU is drawn, for 3 more see the table of rows");
    assert_string_equal(figure_of(figures, "latency")->note, "");
    free(figures);
    report_release(&r);
}

/* A limit of the device's memory is none of its caches. */
static void a_limit_is_drawn_where_it_holds(void **state)
{
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));

    begin(w, "memory", memory_params, COUNT(memory_params));
    add_memory(w, "cuda:0", "bandwidth", "1048576", NAN);
    add_memory(w, "cuda:0", "bandwidth", "16777216", NAN);
    add_memory(w, "cuda:0", "bandwidth", "268435456", 4800);
    add_memory(w, "cuda:0", "bandwidth", "1073741824", 4800);
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    const struct plot *plot = &figures->all[0].plot;
    assert_int_equal(plot->n_marks, 1);
    near(plot->marks[0].at, 4800);
    near(plot->marks[0].from, 268435456);
    near(plot->marks[0].to, 1073741824);
    free(figures);
    report_release(&r);
}

/* A line is marked where one of its values is; others in the same plot are not. */
static void lines_of_plots_are_marked(void **state)
{
    struct writer *w = *state;
    struct figures *figures = calloc(1, sizeof(*figures));
    struct row row;

    begin(w, "memory", memory_params, COUNT(memory_params));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            static const char *const sizes[] = {"1048576", "16777216", "268435456"};

            row = row_of(w, "bandwidth", "GB/s", 100 + i + k);
            row.origin = i ? "simulated" : "measured";
            add(w, &row, "cuda:0", i ? "triad" : "read", "tuned", "kernel", sizes[k], "HBM", "A");
        }
    struct report r = loaded(w);
    assert_int_equal(figures_make(&r, figures), 0);
    assert_int_equal(figures->n, 1);
    assert_int_equal(figures->all[0].plot.n_lines, 2);
    assert_string_equal(figures->all[0].plot.lines[0].label, "read");
    assert_string_equal(figures->all[0].plot.lines[1].label, "triad (simulated)");
    assert_string_equal(figures->all[0].plot.watermark, "simulated");
    free(figures);
    report_release(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(host_and_gpu_do_not_mix),
        TEST(zeros_and_the_librarys_choice_stand_beside),
        TEST(only_like_is_set_beside_like),
        TEST(one_launch_proves_no_difference_and_no_likeness),
        TEST(a_gpu_behind_the_others_is_named),
        TEST(one_launch_puts_no_gpu_behind),
        TEST(a_gpu_that_varies_is_not_behind),
        TEST(gpus_without_a_value_are_told),
        TEST(skipped_gpus_are_no_alarm_and_dead_ones_count),
        TEST(gpus_that_do_not_differ_are_alike),
        TEST(far_memory_gets_a_verdict),
        TEST(gpus_are_compared_from_their_own_node),
        TEST(a_low_copy_is_explained_by_its_link),
        TEST(either_end_may_be_the_reason),
        TEST(launches_are_compared_across_nodes),
        TEST(launches_tell_their_tail),
        TEST(few_samples_have_no_tail),
        TEST(a_gpu_that_was_held_back_says_so),
        TEST(outcomes_make_no_case),
        TEST(no_gpu_is_one_quiet_line),
        TEST(one_that_works_shows_what_was_skipped),
        TEST(a_failed_gpu_is_no_quiet_line),
        TEST(pipes_of_gpus_are_missing_where_there_is_one),
        TEST(pairs_become_a_matrix),
        TEST(slow_pairs_are_named),
        TEST(paths_are_counted_by_themselves),
        TEST(many_pairs_are_not_drawn_as_lines),
        TEST(the_page_has_the_matrix),
        TEST(simulated_rows_are_marked_everywhere),
        TEST(the_summary_marks_them_too),
        TEST(simulated_rows_are_not_judged),
        TEST(a_label_of_a_copy_names_both_ends),
        TEST(an_end_in_the_title_is_said_once),
        TEST(a_plot_counts_the_gpus_of_its_own_cases),
        TEST(a_limit_is_drawn_where_it_holds),
        TEST(lines_of_plots_are_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
