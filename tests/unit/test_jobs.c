/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of a job: planted ways that are faster, and none. The runs are made up, with their noise; what is said of
 * rows is the built benchmark's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "harness/document/document.h"
#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/series.h"
#include "harness/report/summary.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/fake_run.h"

static const char *const params[] = {
    "model", "ranks", "bucket",        "overlap",   "nodes",     "rank",   "part",   "ps",
    "dp",    "batch", "micro_batches", "simulated", "transport", "buffer", "update", "compute_ms"};
#define N_PARAMS (sizeof(params) / sizeof(*params))
#define BUCKETS  3

/* A job, and what its time is with other buckets. */
struct plan {
    unsigned launches;
    double ms, exposed, bubble; /* percent; bubble 0: no such row */
    double of[BUCKETS];         /* times the job's time; 0: not measured */
    double launch_sd;
    const char *nodes, *origin, *servers, *micro, *simulated;
    const char *status; /* of the job's own last launch; NULL: as the others */
    double
        product; /* share of its limit that products reach, in another benchmark; 0: none are measured */
    bool product_first; /* the suite begins with it */
    bool sums;          /* over ranks are measured, too */
    bool one_node;      /* and these are ranks of one node */
    bool rdma;          /* the same over RDMA, too, slower: its buffer is none of TCP's */
};

static const struct plan plain = {.launches = 3,
                                  .ms = 250,
                                  .exposed = 61,
                                  .of = {1, 1, 1},
                                  .launch_sd = 0.01,
                                  .nodes = "2",
                                  .origin = "measured",
                                  .servers = "0",
                                  .micro = "1",
                                  .simulated = ""};

static struct rng rng;

struct scene {
    struct fake_run f;
    FILE *rows, *plan;
    unsigned cases;
    const char *sum_nodes;
    struct report r;
    struct headlines h;
};

static char *told; /* run.json */

static int ask_bench(void **state)
{
    struct bench_list list = built_benches();
    json_t *meta =
        json_pack("{s:i,s:s,s:{},s:{s:O,s:O,s:O}}", "schema", 1, "run", "made", "machine",
                  "benchmarks", "step", bench_list_find(&list, "step")->described, "gemm",
                  bench_list_find(&list, "gemm")->described, "allreduce",
                  bench_list_find(&list, "allreduce")->described);

    (void)state;
    rng_seed(&rng, 1);
    told = json_dumps(meta, 0);
    json_decref(meta);
    bench_list_release(&list);
    return told ? 0 : -1;
}

static int forget_bench(void **state)
{
    (void)state;
    free(told);
    return 0;
}

static void add_row(struct scene *s, const struct plan *p, unsigned launch, const char *bucket,
                    const char *metric, const char *unit, double value)
{
    bool rdma = p->rdma && s->cases > 1;
    const char *values[] = {"resnet50",
                            "4",
                            bucket,
                            "backward",
                            p->nodes,
                            "",
                            "",
                            p->servers,
                            "4",
                            "32",
                            p->micro,
                            p->simulated,
                            rdma ? "rdma" : "tcp",
                            rdma ? "" : "0",
                            "none",
                            "77.7570484"};
    char number[16];
    struct row row;

    snprintf(number, sizeof(number), "%u", s->cases);
    fake_row_init(&row, number, launch, metric, unit, value);
    row.origin = p->origin;
    if (p->status && s->cases == 1 && launch == p->launches) {
        row.status = p->status;
        row.value = !strcmp(p->status, "failed") ? NAN : row.value;
    }
    row.param_names = params;
    row.n_params = N_PARAMS;
    for (size_t i = 0; i < N_PARAMS; i++)
        row.params[i] = values[i];
    row_print_csv(s->rows, &row);
}

/* Batch 32 on 4 ranks. */
static void add_case(struct scene *s, const struct plan *p, const char *bucket, double of)
{
    s->cases++;
    for (unsigned l = 1; l <= p->launches; l++) {
        double ms = p->ms * of * exp(p->launch_sd * rng_normal(&rng));

        add_row(s, p, l, bucket, "step_time", "ms", ms);
        add_row(s, p, l, bucket, "throughput", "samples/s", 128e3 / ms);
        add_row(s, p, l, bucket, "exposed", "percent", p->exposed);
        if (p->bubble > 0)
            add_row(s, p, l, bucket, "bubble", "percent", p->bubble);
        fprintf(s->plan, "done,000%d,%u,%u,%u,step,,60\n", p->bubble > 0 ? 4 : 3, s->cases,
                s->cases, l);
    }
}

/* A judged test. */
static void add_product(struct scene *s, const struct plan *p)
{
    static const char *const names[] = {"dtype", "m", "n", "k"};
    FILE *out = fake_run_open(&s->f, "gemm.csv", "w");
    char number[16];

    snprintf(number, sizeof(number), "%u", ++s->cases);
    row_print_csv_header(out, names, 4);
    for (unsigned l = 1; l <= p->launches; l++) {
        struct row row;
        fake_row_init(&row, number, l, "throughput", "TFLOP/s", fake_launch(p->product, l - 1));
        row.param_names = names;
        row.n_params = 4;
        row.params[0] = "f32";
        row.params[1] = row.params[2] = row.params[3] = "1024";
        row.limit = 1;
        row.limit_kind = "measured";
        row.percent_of_limit = 100 * row.value;
        row_print_csv(out, &row);
        fprintf(s->plan, "done,0001,%u,%u,%u,gemm,,60\n", s->cases, s->cases, l);
    }
    fclose(out);
}

static void add_sum(struct scene *s)
{
    static const char *const names[] = {"op", "ranks", "size", "model", "overlap", "nodes"};
    const char *values[] = {"allreduce", "4", "1048576", "", "", s->sum_nodes};
    FILE *out = fake_run_open(&s->f, "allreduce.csv", "w");
    char number[16];
    struct row row;

    snprintf(number, sizeof(number), "%u", ++s->cases);
    fake_row_init(&row, number, 1, "time", "us", 900);
    row.param_names = names;
    row.n_params = 6;
    memcpy(row.params, values, sizeof(values));
    row_print_csv_header(out, names, 6);
    row_print_csv(out, &row);
    fprintf(s->plan, "done,0001,%u,%u,1,allreduce,,60\n", s->cases, s->cases);
    fclose(out);
}

static void measure(struct scene *s, const struct plan *p)
{
    static const char *const buckets[BUCKETS] = {"1048576", "5242880", "104857600"};
    const char *paths[1];
    char error[512] = "";

    *s = (struct scene){.sum_nodes = p->one_node ? "1" : "4"};
    fake_run_init(&s->f);
    paths[0] = s->f.path;
    fake_run_write(&s->f, "run.json", told);
    s->plan = fake_run_open(&s->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, s->plan);
    s->rows = fake_run_open(&s->f, "step.csv", "w");
    row_print_csv_header(s->rows, params, N_PARAMS);
    if (p->product_first)
        add_product(s, p);
    add_case(s, p, "26214400", 1);
    if (p->rdma)
        add_case(s, p, "26214400", 2);
    for (unsigned i = 0; i < BUCKETS; i++)
        if (p->of[i] > 0)
            add_case(s, p, buckets[i], p->of[i]);
    if (p->product > 0 && !p->product_first)
        add_product(s, p);
    if (p->sums)
        add_sum(s);
    fclose(s->rows);
    fclose(s->plan);
    if (report_load(&s->r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(headlines_make(&s->r, &s->h), 0);
    assert_int_equal(s->h.jobs.n, 1);
}

static void release(struct scene *s)
{
    report_release(&s->r);
    fake_run_release(&s->f);
}

static char *answers(struct scene *s)
{
    struct document *d = document_new(&s->r.pool);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(summary_answers(&s->r, &s->h, 0, d), 0);
    assert_int_equal(document_write_markdown(d, out), 0);
    fclose(out);
    return text;
}

static void says(struct scene *s, const char *part, bool wanted)
{
    char *text = answers(s);

    if (!strstr(text, part) == wanted)
        fail_msg("'%s' is %s in:\n%s", part, wanted ? "not" : "", text);
    free(text);
}

static void a_way_that_saves_time_is_the_answer(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.of[0] = 0.91;
    p.of[1] = 0.75;
    measure(&s, &p);
    const struct run_job *j = &s.h.jobs.all[0];
    assert_non_null(j->way);
    assert_string_equal(report_param(j->bench, j->way, "bucket"), "5242880");
    assert_true(j->saving > 21 && j->saving < 29 && j->low < j->saving && j->high > j->saving);
    says(&s,
         "- **Answer**: resnet50 is bounded by the network: 61 % of the step waits for it; buckets "
         "of 5 MiB would save 2",
         true);
    says(&s, "- **Training**: resnet50 on 4 ranks: 5", true);
    says(&s, "Weakest", false);
    /* the table has the job, too, and not the fastest way */
    assert_ptr_equal(s.h.all[0].runs[0].best, j->c);
    assert_non_null(strstr(headline_what(&s.r.pool, &s.h.all[0].runs[0]), "first of 4"));
    release(&s);
}

static void what_is_in_the_noise_is_not_advised(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.of[0] = 0.99; /* less than is worth it, and proven */
    p.launch_sd = 1e-4;
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    says(&s, "would save most", true); /* a faster network */
    says(&s, "buckets of", false);
    says(&s, "--overlap none,backward", true); /* nobody measured it */
    release(&s);
    p = plain;
    p.of[0] = 0.8;
    p.launches = 1; /* no interval */
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    release(&s);
    p.launches = 3;
    p.launch_sd = 0.3;
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    release(&s);
}

static void bounds_are_by_the_largest_share(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.exposed = 12;
    p.origin = "simulated";
    p.simulated = "compute";
    measure(&s, &p);
    says(&s, "resnet50 is bounded by compute: 88 % of the step computes", true);
    says(&s, "(compute is stated, not measured)", true);
    release(&s);
    p.simulated = "network"; /* and its compute is real */
    measure(&s, &p);
    says(&s, "compute is stated", false);
    says(&s, "(simulated)", true);
    release(&s);
    p.exposed = 77;
    p.nodes = "1";
    p.of[0] = p.of[1] = p.of[2] = 0;
    measure(&s, &p);
    says(&s, "bounded by communication inside the host: 77 % of the step waits for it", true);
    says(&s, "not measured, and perhaps faster: `--bucket 1M,5M,25M,100M, --overlap none,backward`",
         true);
    release(&s);
    p.servers = "1"; /* its update may be what they wait for, and not bytes */
    measure(&s, &p);
    says(&s, "bounded by parameter servers and the way to them: 77 % of the step waits for them",
         true);
    says(&s, "more servers (--ps), fewer bytes", true);
    says(&s, "--dtype bf16 in place of f32) or, for gradients, a larger batch", true);
    release(&s);
}

/* 32 samples can be cut into more micro-batches, but into no more than 32. */
static void a_micro_batch_has_a_sample_at_least(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.bubble = 70;
    p.exposed = 3;
    p.of[0] = p.of[1] = p.of[2] = 0;
    p.micro = "8";
    measure(&s, &p);
    says(&s,
         "bounded by the pipeline: ranks wait for other stages in 70 % of the step; more "
         "micro-batches make",
         true);
    release(&s);
    p.micro = "32";
    measure(&s, &p);
    says(&s, "70 % of the step; a larger batch in more micro-batches makes", true);
    release(&s);
}

/* Cases over TCP and RDMA: the transport tells them apart, and not an option that TCP alone has. */
static void what_always_has_one_value_is_not_told(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.of[0] = p.of[1] = p.of[2] = 0;
    p.rdma = true;
    measure(&s, &p);
    const char *what = s.h.all[0].runs[0].what;
    if (!strstr(what, "tcp") || strstr(what, "buffer"))
        fail_msg("'%s'", what);
    release(&s);
}

/* Below the plot of a metric is what its benchmark says of it. */
static void a_plot_says_what_its_metric_is(void **state)
{
    struct figures *figures = calloc(1, sizeof(*figures));
    struct plan p = plain;
    struct scene s;
    size_t found = 0;

    (void)state;
    measure(&s, &p);
    assert_int_equal(figures_make(&s.r, figures), 0);
    for (size_t i = 0; i < figures->n; i++)
        if (strstr(figures->all[i].plot.name, "exposed"))
            found +=
                strstr(figures->all[i].note, "Share of the step in which compute waits") != NULL;
    assert_int_equal(found, 1);
    free(figures);
    release(&s);
}

/* Where the run has what a forecast needs, the command is there, with the job's own compute. */
static void the_command_of_a_forecast_is_told(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    measure(&s, &p);
    says(&s, "plumb forecast", false);
    release(&s);
    p.sums = true;
    measure(&s, &p);
    says(&s, "on more nodes: `plumb forecast /tmp/", true);
    says(&s, " --model resnet50 --batch 32 --update none --compute 77.76ms`", true);
    release(&s);
    p.one_node =
        true; /* no forecast of more nodes comes of it: what to measure is told in its place */
    measure(&s, &p);
    says(&s, "plumb forecast", false);
    says(&s, "on more nodes: `plumb run train --hosts FILE`", true);
    release(&s);
}

/* A suite that begins with a job is about that, unless something is slow. */
static void what_the_suite_begins_with_is_the_answer(void **state)
{
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.of[0] = p.of[1] = p.of[2] = 0;
    p.product = 0.95;
    measure(&s, &p);
    says(&s, "- **Answer**: resnet50 is bounded by the network", true);
    says(&s, "- **Healthy**: Matrix core", true);
    release(&s);
    p.product = 0.3;
    measure(&s, &p);
    says(&s, "- **Answer**: 1 test is to be looked into", true);
    says(&s, "- **Training**: resnet50 on 4 ranks: 5", true);
    release(&s);
    p.product = 0.95;
    p.product_first = true;
    measure(&s, &p);
    says(&s, "- **Answer**: nothing is proven slow: 1 of 1 judged test is normal", true);
    says(&s, "bounded by the network", true);
    release(&s);
}

/* Another way that is right is not shown in its place, and nothing is advised. */
static void a_job_that_failed_is_told(void **state)
{
    static const char *const statuses[] = {"failed", "wrong"};
    struct plan p = plain;
    struct scene s;

    (void)state;
    p.of[0] = 0.75;
    for (int i = 0; i < 2; i++) {
        p.status = statuses[i];
        measure(&s, &p);
        assert_null(s.h.jobs.all[0].way);
        says(&s, "- **Training**: resnet50 on 4 ranks: failed\n", true);
        says(&s, "buckets of", false);
        release(&s);
    }
}

/* Where all ways take as long, one of 100 runs may advise one; and the interval of a real saving holds it, in 95 of 100. */
static void advice_is_right_as_often_as_it_says(void **state)
{
    unsigned advised = 0, inside = 0, found = 0;
    const unsigned runs = 200;
    struct plan p = plain;
    struct scene s;

    (void)state;
    for (unsigned i = 0; i < runs; i++) {
        p.of[0] = 1;
        measure(&s, &p);
        advised += s.h.jobs.all[0].way != NULL;
        release(&s);
        p.of[0] = 0.8;
        measure(&s, &p);
        const struct run_job *j = &s.h.jobs.all[0];
        found += j->way != NULL;
        inside += j->way && j->low <= 20 && j->high >= 20;
        release(&s);
    }
    print_message("%u of %u advised where nothing is faster; %u found, %u inside\n", advised, runs,
                  found, inside);
    assert_true(advised <= 7); /* more have a chance of 1 in 10,000 at 1 % */
    assert_true(found >= runs * 9 / 10);
    assert_true(inside >= found * 88 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_that_saves_time_is_the_answer),
        cmocka_unit_test(what_is_in_the_noise_is_not_advised),
        cmocka_unit_test(bounds_are_by_the_largest_share),
        cmocka_unit_test(a_micro_batch_has_a_sample_at_least),
        cmocka_unit_test(what_always_has_one_value_is_not_told),
        cmocka_unit_test(a_job_that_failed_is_told),
        cmocka_unit_test(what_the_suite_begins_with_is_the_answer),
        cmocka_unit_test(a_plot_says_what_its_metric_is),
        cmocka_unit_test(the_command_of_a_forecast_is_told),
        cmocka_unit_test(advice_is_right_as_often_as_it_says),
    };

    return cmocka_run_group_tests(tests, ask_bench, forget_bench);
}
