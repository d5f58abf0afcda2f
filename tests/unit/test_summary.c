/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what every output begins with: the grade of trust from what the launches could show, the
 * weakest component, what is healthy, what is not known; also of broken runs. */
#include "harness/report/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/decide/decide.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/fake_run.h"

#define MACHINE                                                                                    \
    "\"machine\": {\"host\": {\"hostname\": \"box\"}, \"cpu\": {\"model\": \"Planted 9000\", "     \
    "\"threads\": 4}, \"memory\": {\"total_bytes\": 8589934592}, \"virtualization\": "             \
    "{\"hypervisor\": \"none\"}}"
#define META                                                                                       \
    "{\"schema\": 1, \"run\": \"one\", \"suite\": \"quick\", \"started_utc\": "                    \
    "\"2026-11-23T12:02:03Z\", \"harness_cost\": {\"benchmarks_ms\": 120000}, " MACHINE "}\n"

static const char *const memory_params[] = {"op", "stores", "size", "level"};
static const char *const gpu_params[] = {"device", "op", "size", "level"};
static const char *const net_params[] = {"transport", "pattern", "size"};

struct planted {
    struct fake_run f;
    FILE *plan;
    size_t cases;
};

static int set_up(void **state)
{
    struct planted *p = calloc(1, sizeof(*p));

    fake_run_init(&p->f);
    fake_run_write(&p->f, "run.json", META);
    p->plan = fake_run_open(&p->f, "plan.csv", "w");
    fputs(FAKE_PLAN_HEADER, p->plan);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct planted *p = *state;

    fake_run_release(&p->f);
    free(p);
    return 0;
}

struct rows {
    struct planted *p;
    FILE *out;
    const char *bench;
    const char *const *params;
    size_t n_params;
};

static struct rows begin(struct planted *p, const char *bench, const char *const *params, size_t n)
{
    struct rows r = {p, NULL, bench, params, n};
    char name[64];

    snprintf(name, sizeof(name), "%s.csv", bench);
    r.out = fake_run_open(&p->f, name, "w");
    row_print_csv_header(r.out, params, n);
    return r;
}

/* Launches of one case around a value, which differ by `spread` (logarithms) from each to the
 * next. */
struct plant {
    const char *values[4];
    const char *metric, *unit, *status, *origin, *reason, *noise, *disturbed;
    double value, spread, limit, steal, elapsed;
    unsigned launches;
    bool is_lost; /* no value */
};

static void plant(struct rows *r, const struct plant *what)
{
    char id[16];

    snprintf(id, sizeof(id), "%zu", ++r->p->cases);
    for (unsigned i = 0; i < what->launches; i++) {
        struct row row;

        fake_row_init(&row, id, i + 1, what->metric, what->unit,
                      what->value * exp(what->spread * ((double)i - (what->launches - 1) / 2.0)));
        row.param_names = r->params;
        row.n_params = r->n_params;
        for (size_t k = 0; k < r->n_params; k++)
            row.params[k] = what->values[k];
        row.limit = what->limit > 0 ? what->limit : NAN;
        row.status = what->status ? what->status : "ok";
        row.origin = what->origin ? what->origin : "measured";
        row.reason = what->reason ? what->reason : "";
        row.noise = what->noise;
        row.disturbed = what->disturbed ? what->disturbed : "";
        row.ledger.steal_percent = what->steal;
        row.ledger.elapsed_s = what->elapsed > 0 ? what->elapsed : NAN;
        if (what->is_lost || (what->status && !strcmp(what->status, "failed")))
            row.value = NAN;
        row_print_csv(r->out, &row);
        fprintf(r->p->plan,
                "%s,0001,1,%s,%u,%s,--%s %s --size 1 --budget 200ms --warmup 100ms,60\n",
                !what->status                      ? "done"
                : !strcmp(what->status, "failed")  ? "fail"
                : !strcmp(what->status, "skipped") ? "skip"
                                                   : "done",
                id, i + 1, r->bench, r->params[0], what->values[0]);
    }
}

static void end(struct rows *r)
{
    fclose(r->out);
}

/* What an output begins with, at 80 columns, and what its table says. */
struct seen {
    char *answers, *table;
    struct trust trust;
};

static char *text_of(const struct document *d, size_t width)
{
    const struct document_terminal at = {.width = width};
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(document_write_terminal(d, &at, out), 0);
    fclose(out);
    return text;
}

/* Any word of the answers, and only the first 12 lines are above the table: the rest is below. */
static void check_lines(const struct document *answers, size_t width)
{
    char *text = text_of(answers, width), *wide = text_of(answers, 100000);
    const char *end = strstr(text, "\n\n");
    size_t lines = 0;

    for (const char *c = text; *c && c <= (end ? end : c); c++)
        lines += *c == '\n';
    if (lines > DOCUMENT_ANSWER_LINES)
        fail_msg("%zu lines of %zu columns:\n%s", lines, width, text);
    for (char *at, *word = strtok_r(wide, " \n(),", &at); word;
         word = strtok_r(NULL, " \n(),", &at))
        if (strlen(word) < 40 && !strstr(text, word)) /* longer ones are cut */
            fail_msg("\"%s\" is nowhere in:\n%s", word, text);
    free(text);
    free(wide);
}

static struct seen seen_of(const char *path)
{
    const struct document_terminal at = {.width = 80};
    struct report r;
    struct headlines h;
    struct seen seen;
    const char *paths[] = {path};
    char error[512] = "";
    size_t len;

    if (report_load(&r, paths, 1, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(headlines_make(&r, &h), 0);
    struct document *answers = document_new(&r.pool), *table = document_new(&r.pool);
    FILE *out = open_memstream(&seen.answers, &len);

    assert_int_equal(trust_make(&r, 0, &seen.trust), 0);
    assert_int_equal(summary_answers(&r, &h, 0, answers), 0);
    assert_int_equal(document_write_terminal(answers, &at, out), 0);
    fclose(out);
    out = open_memstream(&seen.table, &len);
    summary_table(&r, &h, table);
    assert_int_equal(document_write_terminal(table, &at, out), 0);
    fclose(out);
    check_lines(answers, 80);
    check_lines(answers, 60);
    report_release(&r);
    return seen;
}

static struct seen seen_planted(struct planted *p)
{
    fclose(p->plan);
    return seen_of(p->f.path);
}

static void release(struct seen *s)
{
    free(s->answers);
    free(s->table);
}

static void assert_says(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no \"%s\" in:\n%s", what, text);
}

static void assert_not(const char *text, const char *what)
{
    if (strstr(text, what))
        fail_msg("\"%s\" in:\n%s", what, text);
}

static const struct plant triad = {.values = {"triad", "regular", "1073741824", "DRAM"},
                                   .metric = "bandwidth",
                                   .unit = "GB/s",
                                   .value = 90,
                                   .spread = 0.001,
                                   .limit = 100,
                                   .launches = 5};

/* Many cases of one spread, so that their variances are known as one: Student's t with many
 * degrees of freedom. `n` cases, and the healthy triad is the first. */
static void plant_many(struct rows *r, size_t n, double spread, unsigned launches)
{
    static const char *const sizes[] = {"1024",   "2048",   "4096",    "8192",
                                        "16384",  "32768",  "65536",   "131072",
                                        "262144", "524288", "1048576", "2097152"};

    for (size_t i = 0; i < n; i++) {
        struct plant p = triad;

        p.values[0] = "copy";
        p.values[2] = sizes[i];
        p.values[3] = "L2";
        p.spread = spread;
        p.launches = launches;
        plant(r, &p);
    }
}

static void a_healthy_machine_is_said_to_be(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);

    plant(&r, &triad);
    plant_many(&r, 12, 0.001, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Answer   nothing is proven slow: 1 of 1 judged test is normal\n"
                           "Machine  Planted 9000, 4 CPUs, 8.0 GiB\n");
    assert_says(s.answers,
                "Run      quick on box (bare metal), 2026-11-23 12:02 UTC, 65 launches\n");
    assert_says(s.answers, "Trust    A: smallest detectable loss ");
    assert_says(s.answers, "Weakest  normal: Memory, triad, is at 90 % of its limit\n"
                           "         to look closer: plumb memory --op triad --size 1\n");
    assert_says(s.answers, "Healthy  Memory\n");
    assert_not(s.answers, "--repeat");
    assert_not(s.answers, "disturbed");
    release(&s);
}

static struct seen seen_of_machine(struct planted *p, const char *virtualization)
{
    char meta[1024];

    snprintf(meta, sizeof(meta),
             "{\"schema\": 1, \"run\": \"one\", \"suite\": \"quick\", \"machine\": {\"host\": "
             "{\"hostname\": \"box\"}, \"cpu\": {\"model\": \"Planted 9000\", \"threads\": 64}, "
             "\"memory\": {\"total_bytes\": 549755813888}, \"virtualization\": {%s}}}\n",
             virtualization);
    fake_run_write(&p->f, "run.json", meta);
    return seen_planted(p);
}

static void a_container_has_what_it_is_allowed(void **state)
{
    struct seen s =
        seen_of_machine(*state, "\"hypervisor\": \"none\", \"container\": \"docker\", \"limits\": "
                                "{\"cpu_quota\": 2.5, \"memory_bytes\": 8589934592}");

    assert_says(s.answers, "Machine  Planted 9000, 2.5 of 64 CPUs, 8.0 of 512.0 GiB\n");
    assert_says(s.answers, "Run      quick on box (docker on bare metal), ");
    release(&s);
}

/* A set of CPUs limits as a quota does. */
static void a_set_of_cpus_is_a_limit(void **state)
{
    struct seen s = seen_of_machine(*state, "\"hypervisor\": \"none\", \"container\": \"docker\", "
                                            "\"limits\": {\"allowed_cpus\": \"0-3,8\"}");

    assert_says(s.answers, "Machine  Planted 9000, 5 of 64 CPUs, ");
    release(&s);
}

static void the_lower_of_two_limits_counts(void **state)
{
    struct seen s = seen_of_machine(*state, "\"limits\": {\"cpu_quota\": 2.5, "
                                            "\"allowed_cpus\": \"0-63\"}");

    assert_says(s.answers, "Machine  Planted 9000, 2.5 of 64 CPUs, ");
    release(&s);
}

/* The kernel's word for no limit is a number beyond the machine, of schema 1 a text. */
static void a_container_without_limits_has_all(void **state)
{
    struct seen s =
        seen_of_machine(*state, "\"hypervisor\": \"kvm\", \"container\": \"podman\", \"limits\": "
                                "{\"cpu_quota\": \"none\", \"memory_bytes\": 9223372036854771712}");

    assert_says(s.answers, "Machine  Planted 9000, 64 CPUs, 512.0 GiB\n");
    assert_says(s.answers, "Run      quick on box (podman, virtual: kvm), ");
    release(&s);
}

/* The spread is planted, so that the loss that could be shown is known by the judge's own
 * formula for one such case: the grade lies where that is, and not at the smallest of the cases. */
static char grade_of_spread(struct planted *p, double spread)
{
    struct rows r = begin(p, "memory", memory_params, 4);

    plant(&r, &triad); /* quiet: one case must not lift the grade */
    plant_many(&r, 12, spread, 5);
    end(&r);
    struct seen s = seen_planted(p);
    char grade = s.trust.grade;
    double log_loss = -log1p(-s.trust.smallest), error = spread * sqrt(2.5) * sqrt(2.0 / 5);

    /* By hand: 13 cases are proven at 0.005 / 13, in 80 % of runs. That is 3.37 + 0.84 standard
     * errors of a normal value, and 5.27 + 0.89 of Student's t with 8 degrees of freedom. */
    assert_true(log_loss > 3.7 * error && log_loss < 6.2 * error);
    release(&s);
    return grade;
}

static void grades_follow_the_smallest_loss(void **state)
{
    assert_int_equal(grade_of_spread(*state, 0.001), 'A');
}

static void a_wider_spread_is_b(void **state)
{
    assert_int_equal(grade_of_spread(*state, 0.006), 'B');
}

static void a_wide_one_is_c(void **state)
{
    assert_int_equal(grade_of_spread(*state, 0.013), 'C');
}

static void the_widest_is_d(void **state)
{
    assert_int_equal(grade_of_spread(*state, 0.05), 'D');
}

/* More launches, and how long they take: two minutes for five launches. */
static void advice_has_launches_and_minutes(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);

    plant_many(&r, 12, 0.02, 5);
    end(&r);
    struct seen s = seen_planted(*state);
    double shrink = log1p(-s.trust.smallest) / log1p(-0.05);
    size_t repeats = (size_t)ceil(5 * shrink * shrink);
    char command[128];

    assert_int_equal(s.trust.repeats, repeats);
    snprintf(command, sizeof(command),
             "to detect a loss of 5 %%, about %.0f min: plumb run quick --repeat %zu\n",
             ceil(2.0 * (double)repeats / 5), repeats);
    assert_says(s.answers, command);
    release(&s);
}

/* Without the folder that is there already, and as a shell takes it. */
/* Of two minutes, two launches took 100 s and 60 launches 10 s; 62 starts took the other 10 s. */
static void cases_of_fewer_launches_cost_what_they_take(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant dear = triad;

    dear.launches = 2;
    dear.elapsed = 50;
    dear.spread = 0.03;
    plant(&r, &dear);
    plant_many(&r, 12, 0.03, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_true(s.trust.repeats > 5);
    assert_true(s.trust.minutes * 60 > 50.0 * (double)s.trust.repeats);
    assert_true(s.trust.minutes * 60 < 55.0 * (double)s.trust.repeats);
    release(&s);
}

static void advice_is_the_command_of_the_run(void **state)
{
    struct planted *p = *state;

    fake_run_write(&p->f, "run.json",
                   "{\"schema\": 1, \"run\": \"one\", \"suite\": \"two\", \"command\": "
                   "[\"/opt/plumb\", \"run\", \"my suite.yaml\", \"--out\", \"here\", \"--hosts\", "
                   "\"h\", \"--repeat=1\"], " MACHINE "}\n");
    struct rows r = begin(p, "memory", memory_params, 4);
    struct plant one = triad;

    one.launches = 1;
    plant(&r, &one);
    end(&r);
    struct seen s = seen_planted(p);

    assert_says(s.answers,
                "         to detect any loss: plumb run 'my suite.yaml' --hosts h --repeat 5\n");
    release(&s);
}

static void where_launches_do_not_help_a_quiet_machine_does(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant noisy = triad;

    noisy.disturbed = "steal 12.3 %";
    noisy.spread = 0.4;
    plant(&r, &noisy);
    plant_many(&r, 12, 0.4, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_int_equal(s.trust.repeats, 0);
    assert_says(s.answers, "measure again when quieter");
    assert_not(s.answers, "--repeat");
    release(&s);
}

/* Nothing disturbed it: another hour would be the same. */
static void where_nothing_disturbed_no_quiet_machine_is_asked_for(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);

    plant_many(&r, 12, 0.4, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers,
                "         to detect a loss of 10 %, each case needs more than 50 launches\n");
    assert_not(s.answers, "quieter");
    release(&s);
}

/* One wide case of twelve: below five launches its spread counts for all, however wide. */
static void few_launches_ask_for_five(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant wide = triad;

    wide.spread = 0.4;
    wide.launches = 4;
    plant(&r, &wide);
    plant_many(&r, 12, 0.001, 4);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_true(s.trust.smallest > 0.5);
    assert_int_equal(s.trust.repeats, DECIDE_FEW_LAUNCHES);
    assert_says(s.answers, " % (13 cases of 4 launches)\n");
    assert_says(s.answers,
                "         to detect smaller losses, about 3 min: plumb run quick --repeat 5\n");
    assert_not(s.answers, "quieter");
    assert_not(s.answers, "median");
    release(&s);
}

static void a_single_launch_shows_nothing(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant one = triad;

    one.launches = 1;
    plant(&r, &one);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_int_equal(s.trust.grade, 'D');
    assert_says(s.answers, "Trust    D: a single launch of each case shows no loss (1 case)\n");
    assert_says(s.answers, "plumb run quick --repeat 5\n");
    assert_says(s.answers,
                "Weakest  undecided: Memory, triad, is at 90 % of its limit in a single");
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    assert_says(s.answers, "Unknown  undecided: Memory");
    release(&s);
}

/* Two minutes for 12 x 1 + 6 x 5 launches of 18 cases. */
static void where_most_cases_have_one_launch_they_are_counted(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant five = triad;

    plant_many(&r, 12, 0.001, 1);
    for (size_t i = 0; i < 6; i++) {
        five.values[2] = (const char *const[]){"1", "2", "3", "4", "5", "6"}[i];
        plant(&r, &five);
    }
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers,
                "Trust    D: 12 of 18 cases have a single launch, which shows no loss\n");
    assert_true(fabs(s.trust.minutes - 2.0 * 18 * 5 / 42) < 1e-9);
    assert_says(s.answers,
                "         to detect any loss, about 5 min: plumb run quick --repeat 5\n");
    release(&s);
}

static void cases_of_different_launches_have_both_numbers(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant one = triad;

    one.launches = 1;
    plant(&r, &one);
    plant_many(&r, 12, 0.02, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "(median of 13 cases of 1 to 5\n         launches)\n");
    release(&s);
}

static void what_disturbed_it_is_counted(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant noisy = triad;

    noisy.disturbed = "steal 12.3 %";
    noisy.steal = 12.3;
    noisy.status = "noisy";
    plant(&r, &noisy);
    plant_many(&r, 3, 0.001, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "disturbed: 5 of 20 rows (steal up to 12 %)\n");
    assert_says(s.table, "normal (1,2)\n");
    release(&s);
}

/* Three stolen ticks of nine are no third of the time: a CPU has 100 ticks in a second, which five
 * launches of 0.16 s do not reach. */
static void steal_of_few_ticks_has_no_figure(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant stolen = triad;

    stolen.disturbed = "steal";
    stolen.steal = 33.3;
    stolen.elapsed = 0.16;
    plant(&r, &stolen);
    plant_many(&r, 3, 0.001, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "disturbed: 5 of 20 rows (steal)\n");
    release(&s);
}

static void steal_is_that_of_the_longer_rows(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant stolen = triad;

    stolen.disturbed = "steal";
    stolen.steal = 33.3;
    stolen.elapsed = 0.16;
    plant(&r, &stolen);
    stolen.values[0] = "read";
    stolen.steal = 4;
    stolen.elapsed = 1.04;
    plant(&r, &stolen);
    plant_many(&r, 3, 0.001, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "disturbed: 10 of 25 rows (steal up to 4 %)\n");
    release(&s);
}

/* Each row is too short to tell; the launches of its case are not. */
static void steal_of_short_rows_is_added_up(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant stolen = triad;

    stolen.disturbed = "steal";
    stolen.steal = 45;
    stolen.elapsed = 0.24;
    plant(&r, &stolen);
    stolen.values[0] = "read";
    stolen.steal = 4;
    stolen.elapsed = 1.04;
    plant(&r, &stolen);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "disturbed: 10 of 10 rows (steal up to 45 %)\n");
    release(&s);
}

/* Cases of a single short launch count together. */
static void steal_of_short_cases_is_added_up(void **state)
{
    static const char *const sizes[] = {"1024", "2048", "4096"};
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant stolen = triad;

    stolen.disturbed = "steal";
    stolen.steal = 45;
    stolen.elapsed = 0.4;
    stolen.launches = 1;
    for (size_t i = 0; i < 3; i++) {
        stolen.values[2] = sizes[i];
        plant(&r, &stolen);
    }
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "disturbed: 3 of 3 rows (steal up to 45 %)\n");
    release(&s);
}

/* The loss grows with the spread: one that is just beyond 10 % is of grade D. */
static void a_loss_beyond_a_grade_does_not_read_as_its_bound(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);

    plant_many(&r, 12, 0.0273, 5);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_true(s.trust.smallest > 0.10 && s.trust.smallest < 0.105);
    assert_says(s.answers, "Trust    D: smallest detectable loss 11 % (");
    assert_says(s.answers, "to detect a loss of 10 %, about ");
    release(&s);
}

static void without_a_limit_nothing_is_weak_or_healthy(void **state)
{
    struct rows r = begin(*state, "net", net_params, 3);
    struct plant p = {.values = {"tcp", "bandwidth", "1048576"},
                      .metric = "bandwidth",
                      .unit = "GB/s",
                      .value = 5,
                      .spread = 0.01,
                      .launches = 5};

    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Weakest  not known: no test has a limit of this machine");
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    assert_says(s.answers, "not judged: Network");
    assert_says(s.table, "  no limit\n");
    release(&s);
}

/* Rules of one pipe need not follow each other: rails come after latencies. */
static void a_pipe_is_healthy_if_all_its_lines_are(void **state)
{
    static const char *const params[] = {"transport", "pattern", "rail", "memory"};
    struct plant p = triad;
    char *told = built_bench_meta("net");

    fake_run_write(&((struct planted *)*state)->f, "run.json", told);
    free(told);
    struct rows r = begin(*state, "net", params, 4);

    memcpy(p.values, ((const char *[]){"tcp", "bandwidth", "", "host"}), sizeof(p.values));
    plant(&r, &p);
    p.metric = "latency";
    p.unit = "us";
    p.limit = 0;
    memcpy(p.values, ((const char *[]){"tcp", "latency", "", "host"}), sizeof(p.values));
    plant(&r, &p);
    p.metric = "bandwidth";
    p.unit = "GB/s";
    p.value = 50;
    p.limit = 100;
    memcpy(p.values, ((const char *[]){"rdma", "bandwidth", "0", "host"}), sizeof(p.values));
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Weakest  low: Network, host memory, rail 0, is at 50 % of its limit");
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    assert_not(strstr(s.table, "Network latency"), "host memory");
    release(&s);
}

static void what_failed_comes_first(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.status = "failed";
    p.reason = "the benchmark was killed by signal 11";
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_int_equal(s.trust.grade, 0);
    assert_says(s.answers,
                "Run      quick on box (bare metal), 2026-11-23 12:02 UTC, 0 of 5 launches, 5\n"
                "         failed\n");
    assert_says(s.answers, "Trust    none: no judged case was measured on this machine\n");
    assert_says(s.answers, "Answer   not healthy, tests failed: ");
    assert_says(s.answers, "Failed   1 of 1 tests: Memory, triad\n"
                           "         the benchmark was killed by signal 11\n");
    assert_says(s.answers, "Weakest  not known");
    assert_says(s.table, "failed (1)\n");
    release(&s);
}

/* Launches before it had a remark: it is no reason of a failure. */
static void the_reason_is_of_the_launch_that_failed(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.reason = "the kernels are slow ones";
    plant(&r, &p);
    p.status = "failed";
    p.reason = "over its time-out of 60 s";
    p.launches = 1;
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "         over its time-out of 60 s; the kernels are slow ones\n");
    release(&s);
}

static void wrong_data_is_never_healthy(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.status = "wrong";
    p.reason = "element 3 is 7";
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Failed   1 of 1 tests: Memory, triad\n");
    assert_says(s.table, "wrong data (1)\n");
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    release(&s);
}

/* The table has the largest size; a smaller one gave wrong data. */
static void wrong_data_beside_the_table_is_told(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    plant(&r, &p);
    p.values[2] = "65536";
    p.status = "wrong";
    p.is_lost = true;
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers,
                "Failed   beside the table: wrong data in cases of memory (1): see the rows\n");
    release(&s);
}

/* Stores that bypass the caches gave wrong data; the regular ones are fine, and no excuse. */
static void assert_lost(struct planted *planted, const char *status, const char *lost,
                        const char *word)
{
    struct rows r = begin(planted, "memory", memory_params, 4);
    struct plant p = triad;

    plant(&r, &p);
    p.values[1] = "nt";
    p.status = status;
    p.reason = "why it was lost";
    p.is_lost = true;
    plant(&r, &p);
    p = triad;
    p.values[0] = "read";
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(planted);
    char failed[128];

    snprintf(failed, sizeof(failed),
             "Failed   1 of 2 tests: Memory, triad (%s)\n         why it was lost\n", lost);
    assert_says(s.answers, failed);
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    assert_says(s.table, word);
    assert_says(s.table, lost);
    release(&s);
}

static void wrong_data_of_one_case_is_never_healthy(void **state)
{
    assert_lost(*state, "wrong", "wrong data in 1 of 2 cases", "wrong data (1)\n");
}

static void a_failed_case_beside_a_good_one_is_never_healthy(void **state)
{
    assert_lost(*state, "failed", "failed launches in 1 of 2 cases", "partly failed (1)\n");
}

/* A case that was skipped hides no failed one. */
static void a_skipped_case_hides_no_failed_one(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.status = "skipped";
    p.reason = "not on this CPU";
    p.is_lost = true;
    plant(&r, &p);
    p.values[1] = "nt";
    p.status = "failed";
    p.reason = "killed by signal 11";
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Failed   1 of 1 tests: Memory, triad\n"
                           "         killed by signal 11\n");
    assert_says(s.table, "failed (1)\n");
    release(&s);
}

static void a_run_that_skipped_all_measured_nothing(void **state)
{
    struct planted *p = *state;
    struct rows r = begin(p, "memory", memory_params, 4);
    struct plant skipped = triad;

    skipped.status = "skipped";
    skipped.reason = "not on this CPU";
    skipped.is_lost = true;
    skipped.launches = 3;
    plant(&r, &skipped);
    end(&r);
    struct seen s = seen_planted(p);

    assert_says(s.answers,
                "Answer   measured nothing: all 3 launches were skipped: not on this CPU\n");
    release(&s);
}

/* The reason that is shown is that of the worst case. */
static void wrong_data_is_shown_before_a_failure(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.status = "failed";
    p.reason = "killed by signal 11";
    plant(&r, &p);
    p.values[1] = "nt";
    p.status = "wrong";
    p.reason = "17 words differ";
    p.is_lost = true;
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "         17 words differ\n");
    assert_says(s.table, "stores nt");
    assert_says(s.table, ") 17 words differ\n");
    release(&s);
}

static void a_simulated_device_says_nothing_of_this_machine(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.origin = "simulated";
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_int_equal(s.trust.grade, 0);
    assert_says(s.answers, "Trust    none: no judged case was measured on this machine\n");
    assert_says(s.answers, "Weakest  not known");
    assert_says(s.answers, "simulated, modelled or imported: Memory; not in");
    assert_says(s.table, "simulated\n");
    release(&s);
}

static void the_lowest_share_of_what_is_called_low_is_weakest(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant low = triad;

    plant(&r, &triad);
    low.values[0] = "read";
    low.value = 40;
    low.reason = "why it is low";
    plant(&r, &low);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers,
                "Answer   1 test is to be looked into: 1 of 2 judged tests are normal\n");
    assert_says(s.answers, "Weakest  low: Memory, read, is at 40 % of its limit\n"
                           "         why it is low\n"
                           "         to look closer: plumb memory --op read --size 1\n");
    assert_says(s.answers, "Healthy  no component");
    release(&s);
}

/* With launches that ended early, on a machine whose time is limited. */
static struct seen seen_low(struct planted *p, const char *reason)
{
    struct rows r = begin(p, "memory", memory_params, 4);
    struct plant low = triad;

    low.value = 40;
    low.status = "noisy";
    low.noise = ROW_NOISE_FEW;
    low.reason = reason;
    plant(&r, &low);
    end(&r);
    return seen_of_machine(p, "\"hypervisor\": \"none\", \"limits\": {\"cpu_quota\": 2.5}");
}

static void what_is_low_is_explained_by_its_rows(void **state)
{
    struct seen s = seen_low(*state, "why it is low");

    assert_says(s.answers, "Weakest  low: Memory, triad, is at 40 % of its limit\n"
                           "         why it is low\n");
    release(&s);
}

/* How wide an interval is makes nothing low. */
static void what_is_low_is_explained_by_the_machine(void **state)
{
    struct seen s = seen_low(*state, "");

    assert_says(s.answers,
                "Weakest  low: Memory, triad, is at 40 % of its limit\n"
                "         processor: the control group allows the time of 2.5 of 64 CPUs");
    release(&s);
}

/* Launches too short for intervals of their own. */
static struct seen seen_short(struct planted *p, unsigned launches)
{
    struct rows r = begin(p, "memory", memory_params, 4);
    struct plant what = triad;

    what.launches = launches;
    what.status = "noisy";
    what.noise = ROW_NOISE_FEW;
    plant(&r, &what);
    end(&r);
    return seen_planted(p);
}

static void short_launches_have_one_interval_together(void **state)
{
    struct seen s = seen_short(*state, 4);

    assert_null(strstr(s.table, "too few samples for an interval"));
    release(&s);
}

static void one_short_launch_says_that_it_has_none(void **state)
{
    struct seen s = seen_short(*state, 1);

    assert_says(s.table, "too few samples for an interval");
    release(&s);
}

/* The best GPU is near its limit: the one to look at is the slow one. */
static void the_slow_gpu_is_looked_at_and_not_the_best(void **state)
{
    static const char *const names[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    struct rows r = begin(*state, "memory", gpu_params, 4);

    for (size_t i = 0; i < 4; i++) {
        struct plant p = triad;
        bool slow = i == 2;

        p.values[0] = names[i];
        p.values[1] = "triad";
        p.values[2] = "1073741824";
        p.values[3] = "HBM";
        p.value = slow ? 50 : 90 + 0.1 * (double)i;
        p.reason = slow ? "ECC errors were corrected" : "";
        plant(&r, &p);
    }
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Weakest  slow: GPU memory, triad: 4 GPUs: 90.30 to 50.00, slowest: "
                           "cuda:2\n"
                           "         ECC errors were corrected\n"
                           "         to look closer: plumb memory --device cuda:2 --size 1\n");
    assert_says(s.answers, "Healthy  no component is proven to be\n");
    assert_says(s.table, "slow (1)\n");
    assert_not(s.table, "normal");
    release(&s);
}

/* What is proven to be low is named before what may be lower, or may not. */
static void a_proven_loss_comes_before_a_likely_one(void **state)
{
    struct rows r = begin(*state, "memory", memory_params, 4);
    struct plant p = triad;

    p.value = 50;
    p.spread = 0.3;
    plant(&r, &p);
    p.values[0] = "read";
    p.value = 55;
    p.spread = 0.001;
    plant(&r, &p);
    end(&r);
    struct seen s = seen_planted(*state);

    assert_says(s.answers, "Weakest  low: Memory, read, is at 55 % of its limit\n");
    assert_says(s.answers, "Unknown  undecided: Memory");
    release(&s);
}

static void reference_runs_have_an_answer(void **state)
{
    static const struct {
        const char *path, *trust, *weakest;
    } runs[] = {
        {"results/reference/epyc-zen4-2vcpu", "Trust    D: ", "Weakest  not known: "},
        {"results/reference/epyc-zen5-2vcpu", "Trust    D: ", "; the machine itself\n"},
        {"results/reference/xeon-amx-2vcpu", "Trust    D: ", "Weakest  not known: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        struct seen s = seen_of(runs[i].path);

        assert_says(s.answers, runs[i].trust);
        assert_says(s.answers, runs[i].weakest);
        release(&s);
    }
}

int main(void)
{
#define PLANTED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        PLANTED(a_healthy_machine_is_said_to_be),
        PLANTED(a_container_has_what_it_is_allowed),
        PLANTED(a_set_of_cpus_is_a_limit),
        PLANTED(the_lower_of_two_limits_counts),
        PLANTED(a_container_without_limits_has_all),
        PLANTED(grades_follow_the_smallest_loss),
        PLANTED(a_wider_spread_is_b),
        PLANTED(a_wide_one_is_c),
        PLANTED(the_widest_is_d),
        PLANTED(advice_has_launches_and_minutes),
        PLANTED(advice_is_the_command_of_the_run),
        PLANTED(where_launches_do_not_help_a_quiet_machine_does),
        PLANTED(where_nothing_disturbed_no_quiet_machine_is_asked_for),
        PLANTED(few_launches_ask_for_five),
        PLANTED(a_single_launch_shows_nothing),
        PLANTED(where_most_cases_have_one_launch_they_are_counted),
        PLANTED(cases_of_different_launches_have_both_numbers),
        PLANTED(what_disturbed_it_is_counted),
        PLANTED(steal_of_few_ticks_has_no_figure),
        PLANTED(steal_is_that_of_the_longer_rows),
        PLANTED(steal_of_short_rows_is_added_up),
        PLANTED(steal_of_short_cases_is_added_up),
        PLANTED(cases_of_fewer_launches_cost_what_they_take),
        PLANTED(a_loss_beyond_a_grade_does_not_read_as_its_bound),
        PLANTED(without_a_limit_nothing_is_weak_or_healthy),
        PLANTED(a_pipe_is_healthy_if_all_its_lines_are),
        PLANTED(what_failed_comes_first),
        PLANTED(the_reason_is_of_the_launch_that_failed),
        PLANTED(wrong_data_beside_the_table_is_told),
        PLANTED(wrong_data_is_never_healthy),
        PLANTED(wrong_data_of_one_case_is_never_healthy),
        PLANTED(a_failed_case_beside_a_good_one_is_never_healthy),
        PLANTED(a_skipped_case_hides_no_failed_one),
        PLANTED(a_run_that_skipped_all_measured_nothing),
        PLANTED(wrong_data_is_shown_before_a_failure),
        PLANTED(a_simulated_device_says_nothing_of_this_machine),
        PLANTED(the_lowest_share_of_what_is_called_low_is_weakest),
        PLANTED(what_is_low_is_explained_by_its_rows),
        PLANTED(what_is_low_is_explained_by_the_machine),
        PLANTED(short_launches_have_one_interval_together),
        PLANTED(one_short_launch_says_that_it_has_none),
        PLANTED(the_slow_gpu_is_looked_at_and_not_the_best),
        PLANTED(a_proven_loss_comes_before_a_likely_one),
        cmocka_unit_test(reference_runs_have_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
