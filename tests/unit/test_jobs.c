/* SPDX-License-Identifier: Apache-2.0 */
/* What a report says of a job: planted ways that are faster, and none. The runs are made up, with their noise; what is said of
 * rows is the built benchmark's. */
#include "core/rng.h"
#include "harness/report/series.h"
#include "tests/unit/made_run.h"
#include "tests/unit/unit.h"
#include "tests/unit/verdict_said.h"

static const char *const params[] = {"model",     "ranks",     "bucket", "overlap", "nodes",
                                     "rank",      "part",      "dp",     "batch",   "micro_batches",
                                     "simulated", "transport", "buffer", "update",  "compute_ms"};
#define N_PARAMS (sizeof(params) / sizeof(*params))
#define BUCKETS  3

/* A job, and what its time is with other buckets. */
struct plan {
    unsigned launches;
    double ms;
    double of[BUCKETS]; /* times the job's time; 0: not measured */
    double launch_sd;
};

static const struct plan plain = {.launches = 3, .ms = 250, .of = {1, 1, 1}, .launch_sd = 0.01};

static struct rng rng = {{1, 2, 3, 4}};

static void add_row(struct scene *s, unsigned launch, const char *bucket, const char *metric,
                    const char *unit, double value)
{
    const char *values[] = {"resnet50", "4", bucket, "backward", "2", "",     "",          "4",
                            "32",       "1", "",     "tcp",      "0", "none", "77.7570484"};
    char number[16];
    struct row row;

    snprintf(number, sizeof(number), "%u", s->cases);
    fake_row_init(&row, number, launch, metric, unit, value);
    row.origin = "measured";
    scene_row(s, &row, params, values, N_PARAMS);
}

/* Batch 32 on 4 ranks. */
static void add_case(struct scene *s, const struct plan *p, const char *bucket, double of)
{
    s->cases++;
    for (unsigned l = 1; l <= p->launches; l++) {
        double ms = p->ms * of * exp(p->launch_sd * rng_normal(&rng));

        add_row(s, l, bucket, "step_time", "ms", ms);
        add_row(s, l, bucket, "throughput", "samples/s", 128e3 / ms);
        add_row(s, l, bucket, "exposed", "percent", 61);
        fprintf(s->plan, "done,0003,%u,%u,%u,step,,60\n", s->cases, s->cases, l);
    }
}

static void measure(struct scene *s, const struct plan *p)
{
    static const char *const buckets[BUCKETS] = {"1048576", "5242880", "104857600"};

    scene_begin(s, "step", params, N_PARAMS);
    add_case(s, p, "26214400", 1);
    for (unsigned i = 0; i < BUCKETS; i++)
        if (p->of[i] > 0)
            add_case(s, p, buckets[i], p->of[i]);
    scene_read(s);
    assert_int_equal(s->h.jobs.n, 1);
}

static void says(struct scene *s, const char *texts)
{
    char *text = scene_answers(s);

    assert_says(text, texts);
    free(text);
}

TEST(a_way_that_saves_time_is_the_answer)
{
    struct plan p = plain;
    struct scene s;
    p.of[0] = 0.91;
    p.of[1] = 0.75;
    measure(&s, &p);
    const struct run_job *j = &s.h.jobs.all[0];
    assert_non_null(j->way);
    assert_string_equal(report_param(j->bench, j->way, "bucket"), "5242880");
    assert_true(j->saving > 21 && j->saving < 29 && j->low < j->saving && j->high > j->saving);
    says(&s, "61 %|5 MiB");
    /* the table has the job, too, and not the fastest way */
    assert_ptr_equal(s.h.all[0].runs[0].best, j->c);
    assert_non_null(strstr(verdict_said(&s.h.all[0].runs[0].verdict), "first of 4"));
    scene_release(&s);
}

TEST(what_is_in_the_noise_is_not_advised)
{
    struct plan p = plain;
    struct scene s;
    p.of[0] = 0.99; /* less than is worth it, and proven */
    p.launch_sd = 1e-4;
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    says(&s, "!buckets of|--overlap none,backward"); /* nobody measured it */
    scene_release(&s);
    p = plain;
    p.of[0] = 0.8;
    p.launches = 1; /* no interval */
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    scene_release(&s);
    p.launches = 3;
    p.launch_sd = 0.3;
    measure(&s, &p);
    assert_null(s.h.jobs.all[0].way);
    scene_release(&s);
}

/* Where all ways take as long, one of 100 runs may advise one; and the interval of a real saving holds it, in 95 of 100. */
TEST(advice_is_right_as_often_as_it_says)
{
    unsigned advised = 0, inside = 0, found = 0;
    const unsigned runs = 60;
    struct plan p = plain;
    struct scene s;
    for (unsigned i = 0; i < 2 * runs; i++) {
        p.of[0] = i % 2 ? 0.8 : 1;
        measure(&s, &p);
        const struct run_job *j = &s.h.jobs.all[0];
        advised += !(i % 2) && j->way;
        found += i % 2 && j->way;
        inside += i % 2 && j->way && j->low <= 20 && j->high >= 20;
        scene_release(&s);
    }
    assert_true(advised <= 4 && found >= runs * 9 / 10 && inside >= found * 88 / 100);
}

TESTS_WITH(told_ask, told_forget);
