/* SPDX-License-Identifier: Apache-2.0 */
/* What CPUs spend: the bytes are those that our own backends say that they sent; the time is held against what the kernel says. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "benches/allreduce/work.h"
#include "tests/unit/session_fixture.h"
#include "tests/unit/unit.h"

#define ELEMENTS   (3u << 14) /* in blocks for 2, 3 and 4 */
#define OPERATIONS 3          /* since the mark: whole() */
#define BARRIERS   0.01       /* that their messages may add */

/* All ranks' bytes of all operations, as each tells what it sent to each device. */
static double told_gb(const struct fixture *f, unsigned n)
{
    double bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct collective_report *told = session_report(f->s, i);
        assert_non_null(told);
        for (uint32_t k = 0; k < told->n_flows; k++)
            bytes += told->flows[k].out_bytes;
    }
    return bytes / 1e9;
}

static const struct bench_column columns_of_rows[] = {
    {.name = "nodes"}, {.name = "vector_bytes"}, {.name = "chosen"},
    {.name = "rank"},  {.name = "rank_host"},    {.name = "scope"},
    {.name = "pages"}, {.name = "detail"},       {.name = NULL}};
static const struct bench_rows rows = {.columns = columns_of_rows};

/* The same by the row: of threads that ran for a second. */
static double row_gb(const struct fixture *f, unsigned n)
{
    static const struct bench columns = {.rows = &rows};
    struct collective_work *w = calloc(1, sizeof(*w));
    struct collective_params params = {0};
    struct point pt = {.bench = &columns, .params = &params};
    double cost = NAN;

    assert_non_null(w);
    w->ranks.world = f->w;
    w->ranks.session = f->s;
    w->point = f->point;
    w->n = w->size = n;
    memcpy(w->members, all_ranks, n * sizeof(*w->members));
    w->vector_bytes = f->point.count * collective_type_bytes(f->point.type);
    w->operations = OPERATIONS;
    w->each[0].cpu_ns = 1e9;
    rows_finish(&pt, w);
    for (const struct figure *figure = pt.figures; figure; figure = figure->next)
        if (!strcmp(figure->metric, "cpu_per_gb"))
            cost = figure->values[0];
    figures_release(&pt);
    free(w);
    return 1 / cost;
}

static void measure(struct fixture *f, const char *backend, unsigned op, unsigned n)
{
    char why[256];

    snprintf(f->point.backend, sizeof(f->point.backend), "%s", backend);
    f->point.op = op;
    if (collective_find(backend)->supports(&f->point, n, why, sizeof(why)))
        fail_msg("%s, %s: %s", backend, collective_ops_names[op], why);
    ok(f, begin(f, n));
    ok(f, run(f, 2));
    ok(f, session_mark(f->s));
    ok(f, run(f, OPERATIONS));
    ok(f, session_end(f->s));
    double told = told_gb(f, n), row = row_gb(f, n);
    if (!(told >= row && told <= row * (1 + BARRIERS)))
        fail_msg("%s of %u by %s: %.9g GB were sent, the row counts %.9g", collective_ops_names[op],
                 n, backend, told, row);
    session_finish(f->s);
}

/* Of each operation by what sends each byte once. */
TEST(test_wire_bytes)
{
    struct fixture f;

    fork_ranks(&f, 4, session_serve, collective_find);
    open_session(&f, collective_find);
    f.point = (struct collective_point){
        .type = COLLECTIVE_F32, .count = ELEMENTS, .seed = 17, .transport = "shm"};
    for (unsigned op = 0; op < COLLECTIVE_OPS; op++)
        for (unsigned n = 2; n <= 4; n++)
            measure(&f, "ring", op, n);
    measure(&f, "halving", COLLECTIVE_ALLREDUCE, 4);
    measure(&f, "halving", COLLECTIVE_BROADCAST, 4);
    stop(&f);
}

/* --- the CPU time of operations --- */

#define RUNS     20
#define EACH     25 /* operations of a run */
#define SLEEP_NS 500000u
#define TURNS    100000u /* some 100 us */

struct work { /* of one operation; shared by all ranks */
    uint64_t turns, sleep_ns;
};
static struct work *work;

static void spin(uint64_t turns)
{
    static volatile uint64_t x = 1;

    for (uint64_t i = 0; i < turns; i++)
        x = x * 6364136223846793005u + 1;
}

static int do_work(struct collective *c, unsigned call)
{
    (void)c;
    (void)call;
    spin(work->turns);
    if (work->sleep_ns)
        nanosleep(&(struct timespec){.tv_nsec = (long)work->sleep_ns}, NULL);
    return 0;
}

static struct collective_ops working;

static const struct collective_ops *find_working(const char *name)
{
    (void)name;
    return &working;
}

static uint64_t usage_ns(int who)
{
    struct rusage u;

    getrusage(who, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

struct told {            /* of a point's rows */
    double cores, op_ns; /* op_ns: of all ranks, in one operation; NAN: there is none */
    double span_ns;      /* that the cores are of */
    char reason[512];
};

static double figure_of(const struct point *pt, const char *metric)
{
    for (const struct figure *f = pt->figures; f; f = f->next)
        if (!strcmp(f->metric, metric))
            return f->values[0];
    return NAN;
}

static struct told finish(struct collective_work *w)
{
    static const struct bench columns = {.rows = &rows};
    struct collective_params params = {0};
    struct point pt = {.bench = &columns, .params = &params};
    struct told told;

    rows_finish(&pt, w);
    told.cores = figure_of(&pt, "cpu_cores");
    told.op_ns = figure_of(&pt, "cpu_per_gb") * (double)w->vector_bytes; /* n - 1 is 1 */
    snprintf(told.reason, sizeof(told.reason), "%s", pt.reason);
    figures_release(&pt);
    return told;
}

static void sample(struct fixture *f, struct collective_work *w)
{
    const struct collective_times *times;
    struct session_run what = {.operations = EACH};
    uint64_t slowest, begin_ns = clock_now_ns();

    ok(f, session_run(f->s, &what, &times, &slowest));
    rows_count(w, times, slowest, clock_now_ns() - begin_ns);
    w->operations += EACH;
}

/* Broadcasts, each timed by itself, between two ranks. Their data is what it was: that it is wrong is no matter here. */
static struct told told_of(struct fixture *f)
{
    struct collective_work *w = calloc(1, sizeof(*w));
    struct told told;

    assert_non_null(w);
    ok(f, begin(f, 2));
    ok(f, run(f, EACH));
    ok(f, session_mark(f->s));
    w->ranks.world = f->w;
    w->ranks.session = f->s;
    w->point = f->point;
    strcpy(w->point.backend, "ring"); /* which the rows know */
    w->n = w->size = 2;
    memcpy(w->members, all_ranks, 2 * sizeof(*w->members));
    w->n_machines = place_machines(f->w, w->members, 2, w->machine);
    w->vector_bytes = f->point.count * collective_type_bytes(f->point.type);
    for (int i = 0; i < RUNS; i++)
        sample(f, w);
    session_end(f->s);
    told = finish(w);
    told.span_ns = w->machines[0].span_ns;
    session_finish(f->s);
    free(w);
    return told;
}

static void start_working(struct fixture *f)
{
    work = mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(work != MAP_FAILED);
    working = *fake_find("fake");
    working.run = do_work;
    fork_ranks(f, 2, session_serve, find_working);
    open_session(f, find_working);
    f->point.op = COLLECTIVE_BROADCAST;
    f->point.count = 64;
}

/* What is spent in work is told, and no more than the kernel says of all processes together; who sleeps spends nothing. */
TEST(test_work_is_told_as_the_kernel_has_it)
{
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        uint64_t own_ns = usage_ns(RUSAGE_SELF), children_ns = usage_ns(RUSAGE_CHILDREN);
        struct fixture f;

        start_working(&f);
        work->sleep_ns = sleeps ? SLEEP_NS : 0;
        work->turns = sleeps ? 0 : TURNS;
        struct told told = told_of(&f);
        stop(&f);
        double all_ns =
            (double)(usage_ns(RUSAGE_SELF) - own_ns + usage_ns(RUSAGE_CHILDREN) - children_ns);
        double work_ns = told.op_ns * RUNS * EACH;

        print_message("told %.3f ms of %.3f ms, cores %.3f\n", work_ns / 1e6, all_ns / 1e6,
                      told.cores);
        assert_true(isnan(told.op_ns) == !!strstr(told.reason, "no CPU seconds per GB"));
        assert_true(told.cores * told.span_ns <= 1.1 * all_ns);
        assert_true(isnan(told.op_ns) || work_ns <= 1.1 * all_ns);
        if (sleeps)
            assert_true(told.cores < 1 && (isnan(told.op_ns) || told.op_ns < SLEEP_NS));
        else /* nearly all that these processes do */
            assert_true(work_ns >= 0.4 * all_ns);
        munmap(work, sizeof(*work));
    }
}

/* Two ranks that take turns on one CPU, each in a time of its own. */
TEST(test_turns_on_one_cpu_are_one_core)
{
    struct collective_times times[2] = {
        {.ns = 1000, .cpu_ns = 1000, .span_cpu_ns = 1000, .begin_ns = 5000, .end_ns = 6000},
        {.ns = 1000, .cpu_ns = 1000, .span_cpu_ns = 1000, .begin_ns = 6000, .end_ns = 7000}};
    struct collective_work *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->n = w->size = 2;
    w->n_machines = 1;
    rows_count(w, times, 1000, 3000);
    assert_true(fabs(w->machines[0].cpu_ns / w->machines[0].span_ns - 1) < 1e-12);
    assert_false(w->clocks_differ);
    times[1].begin_ns += 1000000000;
    times[1].end_ns += 1000000000;
    rows_count(w, times, 1000, 3000);
    assert_true(w->clocks_differ);
    free(w);
}
