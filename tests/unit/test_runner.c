/* SPDX-License-Identifier: Apache-2.0 */
/* The runner, over a benchmark whose samples are made up: what a row says of its limit. */
#include "core/bench/runner.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/nvml.h"
#include "core/row.h"
#include "tests/unit/unit.h"

/* One operation of 1000 bytes takes 1000 ns: 1 GB/s, or 1000 ns. */
struct params {
    double limit;
    const char *source;
    unsigned kind;                  /* enum limit_kind */
    bool is_time, endless, unknown; /* the limit is infinite, or no number */
    bool both;                      /* a latency and a bandwidth, of times that differ too much */
    bool slower;                    /* each sample than the one before */
    bool watched;                   /* a GPU sends a packet again in each sample */
    bool steps;                     /* 40 samples alike, then 40 others 0.2 % slower */
    bool unchecked;                 /* its check ends by an error */
};

struct nvml_device {
    unsigned replays;
};

static struct nvml_device gpu;

static int by_address(const char *address, struct nvml_device **device)
{
    (void)address;
    *device = &gpu;
    return 0;
}

static int replays_of(struct nvml_device *device, unsigned *replays)
{
    *replays = device->replays;
    return 0;
}

static const struct nvml nvml = {.by_address = by_address, .pcie_replays = replays_of};

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    struct series *s = p->is_time ? point_series(pt, "latency", "ns", 0)
                                  : point_series(pt, "bandwidth", "GB/s", 1000);

    if (p->watched) {
        pt->watch = gpu_watch_open_on(&nvml);
        gpu_watch_add(pt->watch, "0000:3b:00.0");
    }
    if (p->both)
        point_series(pt, "latency", "ns", 0);
    s->limit = p->endless ? INFINITY : p->unknown ? NAN : p->limit;
    s->limit_kind = (enum limit_kind)p->kind;
    s->limit_source = p->source;
    s->parts = (struct limit_parts){.place = {"the only path"}, .rate = {p->limit}, .share = 1};
    return 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    static unsigned n;
    const struct params *p = pt->params;

    gpu.replays++;
    ns[0] = 1000 * inner;
    if (p->slower)
        ns[0] = 10 * inner * (100 + n++);
    if (p->steps)
        ns[0] = (1000 + 2 * (n++ / 40 % 2)) * inner;
    if (p->both)
        ns[0] = ns[1] = 500 * inner * (1 + n++ % 7);
    return 0;
}

static int check(struct point *pt)
{
    const struct params *p = pt->params;

    return p->unchecked ? -EIO : 0;
}

static void teardown(struct point *pt)
{
    (void)pt;
}

#define OPTION(called, of, member, ...)                                                            \
    {                                                                                              \
        .name = called, .type = of, .offset = offsetof(struct params, member), .help = "-",        \
        ##__VA_ARGS__                                                                              \
    }

static const struct opt options[] = {
    OPTION("limit", OPT_DOUBLE, limit, .def = "1", .max = 1000000),
    OPTION("kind", OPT_CHOICE, kind, .def = "told", .choices = limit_kinds),
    OPTION("source", OPT_STRING, source, .def = "sysfs: made up"),
    OPTION("time", OPT_FLAG, is_time),
    OPTION("endless", OPT_FLAG, endless),
    OPTION("unknown", OPT_FLAG, unknown),
    OPTION("both", OPT_FLAG, both),
    OPTION("slower", OPT_FLAG, slower),
    OPTION("watched", OPT_FLAG, watched),
    OPTION("steps", OPT_FLAG, steps),
    OPTION("unchecked", OPT_FLAG, unchecked),
    {.name = NULL}};

static const struct bench fake = {.name = "fake",
                                  .help = "-",
                                  .about = "-",
                                  .options = options,
                                  .params_size = sizeof(struct params),
                                  .setup = setup,
                                  .sample = sample,
                                  .check = check,
                                  .teardown = teardown};

static uint64_t samples = 50;

/* The rows of a run, as CSV or as a table; to be freed. */
static char *rows_of(char **words, int n, bool csv, uint64_t rows)
{
    static const volatile int never = 0;
    const struct opt *tables[] = {options, NULL};
    const struct bench_common common = {.budget_ns = 1000000000,
                                        .warmup_ns = 1000000,
                                        .confidence = 0.95,
                                        .width = 0.01,
                                        .min_samples = samples,
                                        .max_samples = samples,
                                        .repeats = 1,
                                        .seed = 1,
                                        .csv = csv};
    struct runner_session session = {0};
    struct runner_result result;
    struct opts o;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(opts_init(&o, tables), 0);
    assert_int_equal(opts_parse(&o, n, words), 0);
    assert_int_equal(runner_run(&fake, &o, &common, out, &never, &session, &result), 0);
    assert_int_equal(result.rows, rows);
    assert_false(result.stuck);
    runner_session_release(&fake, &session);
    fclose(out);
    opts_release(&o);
    return text;
}

/* The cell of a row in the only line behind the header, NaN: it is empty; cells hold no commas here. */
static double cell(const char *csv, const char *column)
{
    const char *header = csv, *at = strchr(csv, '\n') + 1;
    size_t n = strlen(column);

    while (strncmp(header, column, n) != 0 || header[n] != ',') {
        header = strchr(header, ',') + 1;
        at = strchr(at, ',') + 1;
    }
    return *at == ',' ? NAN : strtod(at, NULL);
}

static bool is(const char *csv, const char *column, double wanted)
{
    double found = cell(csv, column);

    return isnan(wanted) ? isnan(found) : fabs(found - wanted) <= 1e-6;
}

/* What was measured can be exceeded by a better measurement; what the system says can not. */
TEST(measured_ceilings_are_raised)
{
    static const struct {
        const char *limit, *kind, *flag;
        double becomes, percent,
            from;       /* from NaN: it was not raised, or not by so much that it is told */
        bool is_shared; /* the ceiling that the limit is made of is told, and raised with it */
        bool remark;    /* the table doubts the limit or the path */
    } cases[] = {
        {"0.8", "measured", NULL, 1, 100, 0.8, true, false},
        {"0.8", "reference", NULL, 1, 100, 0.8, true, false},
        {"0.997", "measured", NULL, 1, 100, NAN, true, false},
        {"1.25", "measured", NULL, 1.25, 80, NAN, true, false},
        {"0.8", "told", NULL, 0.8, 125, NAN, false, true},
        {"0.99", "told", NULL, 0.99, 100 / .99, NAN, false, true},
        {"0.997", "told", NULL, 0.997, 100 / .997, NAN, false, false}, /* noise and rounding */
        {"0", "told", NULL, NAN, NAN, NAN, false, false},
        {"1", "told", "--endless", NAN, NAN, NAN, false, false}, /* 0 % of it would be a verdict */
        {"1", "told", "--unknown", NAN, NAN, NAN, false, false},
        {"800", "measured", "--time", 800, 125, NAN, true,
         false}, /* of a time the limit is the least */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *words[] = {"fake",
                         "--limit",
                         (char *)cases[i].limit,
                         "--kind",
                         (char *)cases[i].kind,
                         (char *)cases[i].flag};
        size_t n = cases[i].flag ? 6 : 5;
        char *text = rows_of(words, n, true, 1), *table = rows_of(words, n, false, 1);

        if (!is(text, "limit", cases[i].becomes) ||
            !is(text, "percent_of_limit", cases[i].percent) ||
            !is(text, "limit_raised_from", cases[i].from) ||
            !is(text, "ceiling", cases[i].is_shared ? cases[i].becomes : NAN) ||
            !strstr(table, "limit?") == cases[i].remark)
            fail_msg("case %zu: %s%s", i, text, table);
        free(text);
        free(table);
    }
}

/* What happens while it warms up is none of the samples'. */
TEST(a_gpu_is_watched_from_the_first_sample)
{
    char *words[] = {"fake", "--watched"};
    char *text = rows_of(words, 2, true, 1);
    assert_true(cell(text, "gpu_pcie_replays") == (double)samples);
    free(text);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* A narrow interval of samples that all say the same is no proof, and the row says so. */
TEST(few_independent_samples_are_noisy)
{
    char *words[] = {"fake", "--steps", "--limit", "0"};
    samples = 100;
    char *text = rows_of(words, 4, true, 1);

    samples = 50;
    if (!strstr(text, ",noisy,") || !strstr(text, ",dependent,"))
        fail_msg("%s", text);
    assert_true(cell(text, "effective_samples") < 20);
    free(text);
}

TEST(too_few_samples)
{
    static const struct {
        uint64_t samples;
        const char *flag, *reason;
        uint64_t rows;
    } cases[] = {
        {1, "--both", ",0.01,few,", 2},      {50, "--both", ",0.01,wide,", 2},
        {19, "--slower", ",0.01,few,", 1},   {20, "--slower", ",0.01,alike,", 1},
        {49, "--slower", ",0.01,alike,", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *words[] = {"fake", (char *)cases[i].flag, "--limit", "0"};
        samples = cases[i].samples;
        char *text = rows_of(words, 4, true, cases[i].rows);

        if (count(text, cases[i].reason) != cases[i].rows)
            fail_msg("%u samples: %s", (unsigned)cases[i].samples, text);
        free(text);
    }
    samples = 50;
}

/* A check that ends by an error leaves what was measured. */
TEST(a_failed_check_leaves_the_value)
{
    char *words[] = {"fake", "--unchecked"};
    char *text = rows_of(words, 2, true, 1);

    assert_int_equal(count(text, ",failed,failed,"), 1);
    assert_true(fabs(cell(text, "value") - 1) < 1e-9);
    free(text);
}
