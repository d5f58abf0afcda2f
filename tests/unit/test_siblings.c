/* SPDX-License-Identifier: Apache-2.0 */
/* Which rail a report names: planted slow ones, a slow and a missing GPUDirect, and nobody on machines that are well. The
 * runs are made up, with their noise; what is said of rows is the built benchmark's. */
#include "harness/report/cases.h"
#include "harness/report/siblings.h"
#include "tests/unit/made_run.h"
#include "tests/unit/unit.h"

static const char *const params[] = {
    "transport",   "pattern",    "direction",       "size",        "from",
    "to",          "rail",       "memory",          "peer_memory", "rail_gpu",
    "rail_device", "gpu_direct", "rail_peer_device"};
#define N_PARAMS (sizeof(params) / sizeof(*params))
#define RAILS    8
#define LINE     384.0 /* Gb/s */

#define LAUNCHES_MAX 16
#define ROWS_MAX     1024
#define TEXT_MAX     24

/* A cluster: what each rail carries of its line, and of that from GPU memory. */
struct cluster {
    unsigned hosts, rails, launches;
    double of_line[RAILS], of_gpu[RAILS]; /* 0: GPU memory is refused */
    unsigned
        slow_host; /* hosts + 1: of_line holds between all hosts; else from and to this one alone */
    double rail_sd, launch_sd, stall_share; /* of launches, which lose a fifth to a half */
    double common_share;                    /* of launches, in which all lose 30 % at once */
    double heavy; /* what a launch usually loses beside: log-normal, with sigma 1 */
    const char *origin;
};

static const struct cluster healthy = {.hosts = 2,
                                       .rails = RAILS,
                                       .launches = 2,
                                       .of_line = {1, 1, 1, 1, 1, 1, 1, 1},
                                       .of_gpu = {1, 1, 1, 1, 1, 1, 1, 1},
                                       .slow_host = 3,
                                       .rail_sd = 0.01,
                                       .launch_sd = 0.01,
                                       .origin = "measured"};

static uint64_t seed = 88172645463325252u;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double u = uniform(), v = uniform();

    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

struct is {
    unsigned from, to, rail;
    const char *direction;
    bool gpu;
};

static void add_row(struct scene *s, const struct cluster *c, const struct is *is, uint64_t launch,
                    double value)
{
    char number[16], from[16], to[16], rail[16], device[24], gpu[24], peer[24];
    const char *memory = is->gpu ? "rail" : "host";
    const char *direct = !is->gpu ? "" : isnan(value) ? "refused" : "yes";
    const char *values[] = {"rdma",
                            "bandwidth",
                            is->direction,
                            "4194304",
                            from,
                            to,
                            rail,
                            memory,
                            memory,
                            gpu,
                            device,
                            direct,
                            isnan(value) ? "" : peer};
    struct row row;

    snprintf(number, sizeof(number), "%u", s->cases);
    snprintf(from, sizeof(from), "node%u", is->from);
    snprintf(to, sizeof(to), "node%u", is->to);
    snprintf(rail, sizeof(rail), "%u", is->rail);
    snprintf(device, sizeof(device), "mlx5_%u:1", is->rail);
    snprintf(gpu, sizeof(gpu), "cuda:%u", is->rail);
    snprintf(peer, sizeof(peer), "ib%u:1", is->rail);
    fake_row_init(&row, number, launch, "bandwidth", "Gb/s", value);
    row.origin = c->origin;
    if (isnan(value)) {
        row.status = "skipped";
        row.reason = "memory 'cuda:0' cannot be registered";
        row.samples = 0;
        row.stop = "";
    }
    scene_row(s, &row, params, values, N_PARAMS);
    fprintf(s->plan, "%s,0001,%u,%u,%u,net,,60\n", isnan(value) ? "skip" : "done", s->cases,
            s->cases, (unsigned)launch);
}

/* Of all launches of each rail, and of all rails in each launch. */
static void draw_levels(const struct cluster *c, double rails[RAILS], double common[LAUNCHES_MAX])
{
    for (unsigned i = 0; i < c->rails; i++)
        rails[i] = exp(c->rail_sd * normal());
    for (unsigned i = 0; i < c->launches; i++)
        common[i] = uniform() < c->common_share ? 0.7 : 1;
}

/* What a launch measures; 0: refused. */
static double draw(const struct cluster *c, unsigned rail, bool gpu, double level, double common)
{
    double stall = uniform() < c->stall_share ? 0.5 + 0.3 * uniform() : 1;
    double loss = c->launch_sd * normal() - (c->heavy > 0 ? c->heavy * exp(normal()) : 0);

    return LINE * level * common * stall * exp(loss) * (gpu ? c->of_gpu[rail] : 1);
}

static void add_case(struct scene *s, const struct cluster *c, const struct is *is, double level,
                     const double *common)
{
    bool here = c->slow_host > c->hosts || is->from == c->slow_host || is->to == c->slow_host;
    double of_line = here ? c->of_line[is->rail] : 1;

    s->cases++;
    for (unsigned l = 0; l < c->launches; l++) {
        double value = of_line * draw(c, is->rail, is->gpu, level, common[l]);

        add_row(s, c, is, l + 1, value > 0 ? value : NAN);
    }
}

/* A ring of hosts, both ways, over each rail, from host memory and from GPU memory. */
static void measure(struct scene *s, const struct cluster *c)
{
    static const char *const ways[] = {"forward", "reverse"};
    unsigned pairs = c->hosts > 2 ? c->hosts : 1;
    double rails[RAILS], common[LAUNCHES_MAX];

    scene_begin(s, "net", params, N_PARAMS);
    draw_levels(c, rails, common);
    for (unsigned rail = 0; rail < c->rails; rail++) {
        for (unsigned pair = 0; pair < pairs; pair++)
            for (unsigned k = 0; k < 4; k++)
                add_case(s, c,
                         &(struct is){pair, (pair + 1) % c->hosts, rail, ways[k % 2], k / 2 == 1},
                         rails[rail], common);
    }
    scene_read(s);
}

/* What is proven of this rail: by a slow rail, or, `gpu`, by GPU memory against host memory. */
static const struct sibling *named(const struct scene *s, const char *rail, bool gpu)
{
    for (size_t i = 0; i < s->h.siblings.n; i++) {
        const struct sibling *at = &s->h.siblings.all[i];
        if (at->proven && !strcmp(at->value, rail) && (at->rule->against != NULL) == gpu)
            return at;
    }
    return NULL;
}

static size_t count(const struct scene *s, bool proven)
{
    size_t n = 0;

    for (size_t i = 0; i < s->h.siblings.n; i++)
        n += s->h.siblings.all[i].proven == proven;
    return n;
}

TEST(a_slow_rail_is_named)
{
    struct cluster c = healthy;
    struct scene s;

    c.of_line[3] = 0.52;
    measure(&s, &c);
    const struct sibling *at = named(&s, "3", false);
    assert_non_null(at);
    assert_true(fabs(at->ratio - 0.52) < 0.03 && at->low < 0.53 && at->high > 0.51 &&
                at->high < 0.6);
    assert_int_equal(at->found, 2);
    assert_int_equal(at->compared, 2);
    assert_int_equal(count(&s, true), 2); /* from host memory, and from GPU memory */
    assert_int_equal(count(&s, false), 0);
    char *text = scene_answers(&s);
    assert_says(text, "rail 3 (mlx5\\_3:1, cuda:3, peer ib3:1)");
    assert_says(text, "node0 and node1, in 2 of 2");
    assert_says(text, "1 problem ");
    free(text);
    scene_release(&s);
}

/* Two slow ones of eight, of which each would make the others' spread large; and of two rails one. */
TEST(slow_rails_do_not_hide_each_other)
{
    struct cluster c = healthy;
    struct scene s;

    c.of_line[0] = 0.5;
    c.of_line[6] = 0.7;
    measure(&s, &c);
    assert_non_null(named(&s, "0", false));
    assert_non_null(named(&s, "6", false));
    assert_int_equal(count(&s, true), 4);
    scene_release(&s);
    c = healthy;
    c.rails = 2;
    c.launches = 3; /* of so few rails two may stall together too often */
    c.of_line[1] = 0.5;
    measure(&s, &c);
    assert_non_null(named(&s, "1", false));
    assert_null(named(&s, "0", false));
    scene_release(&s);
}

/* Between three hosts, slow at one of them alone: in the comparisons of its two pairs. */
TEST(where_it_is_slow_is_told)
{
    struct cluster c = healthy;
    struct scene s;

    c.hosts = 3;
    c.slow_host = 1;
    c.of_line[2] = 0.6;
    measure(&s, &c);
    const struct sibling *at = named(&s, "2", false);
    assert_non_null(at);
    assert_int_equal(at->found, 4);
    assert_int_equal(at->compared, 6);
    assert_says(at->sentence, "node0 and node1; node1 and node2, in 4 of 6");
    scene_release(&s);
}

TEST(gpudirect_that_is_slow_or_missing_is_named)
{
    struct cluster c = healthy;
    struct scene s;

    c.of_gpu[5] = 0.3;
    measure(&s, &c);
    const struct sibling *at = named(&s, "5", true);
    assert_non_null(at);
    assert_true(!at->absent && fabs(at->ratio - 0.3) < 0.03);
    assert_null(named(&s, "4", true));
    scene_release(&s);
    for (unsigned i = 0; i < RAILS; i++)
        c.of_gpu[i] = 0;
    measure(&s, &c);
    assert_int_equal(count(&s, true), RAILS);
    assert_true(named(&s, "0", true)->absent);
    char *text = scene_answers(&s);
    assert_says(text, "rail 0 (mlx5\\_0:1, cuda:0)");
    assert_says(text, "GPUDirect");
    assert_says(text, "1 problem |and 5 more");
    free(text);
    scene_release(&s);
}

/* One launch proves nothing; what is simulated is no fact on this machine. */
TEST(what_is_not_proven_only_looks_slow)
{
    struct cluster c = healthy;
    struct scene s;

    c.of_line[3] = 0.52;
    c.launches = 1;
    c.rails = 2;
    c.of_line[1] = 0.52;
    measure(&s, &c);
    assert_int_equal(count(&s, true), 0);
    assert_int_equal(count(&s, false), 2);
    char *text = scene_answers(&s);
    assert_says(text, "--repeat");
    free(text);
    scene_release(&s);
    c.launches = 3;
    c.origin = "simulated";
    measure(&s, &c);
    text = scene_answers(&s);
    assert_says(text, "(simulated)");
    assert_null(strstr(text, "looked into"));
    free(text);
    scene_release(&s);
}

static char texts[ROWS_MAX][TEXT_MAX]; /* of values that were drawn again */

/* ---- How often: the same runs, drawn again in memory */

#define REDRAWN 50 /* before the pool of a report is given back */

/* Another run of the same cases. The text of a value has room for that of another. */
static void draw_again(struct scene *s, const struct cluster *c)
{
    struct report_bench *b = &s->r.benches[0];
    struct report_rows *rows = &b->rows[0];
    double rails[RAILS], common[LAUNCHES_MAX];

    draw_levels(c, rails, common);
    for (size_t i = 0; i < b->n_cases; i++) {
        struct report_case *one = &b->cases[i];
        unsigned rail = (unsigned)atoi(report_param(b, one, "rail"));
        bool gpu = !strcmp(report_param(b, one, "memory"), "rail");

        for (size_t l = 0; l < one->points->n_rows; l++) {
            size_t cell = one->points->rows[l] * rows->table->n_columns + rows->fields[FIELD_VALUE];
            double value = draw(c, rail, gpu, rails[rail], common[l]) * c->of_line[rail];

            snprintf(texts[one->points->rows[l]], TEXT_MAX, "%.9g", value);
            rows->table->cells[cell] = texts[one->points->rows[l]];
        }
        combine_launches(&s->r.pool, rows, one->points);
    }
}

struct tally {
    unsigned runs, named;    /* runs in which a rail is named */
    unsigned found, covered; /* rail 3 is named, and its interval has what was planted */
    unsigned others;         /* runs in which another is named as slow */
};

static void count_run(const struct siblings *s, const struct cluster *c, struct tally *t)
{
    bool proven = false, found = false, covered = false, others = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct sibling *at = &s->all[i];
        bool planted = !strcmp(at->value, "3");

        proven |= at->proven;
        others |= at->proven && !planted;
        if (planted && at->proven && !at->rule->against && !found) {
            found = true;
            covered = at->low < c->of_line[3] && at->high > c->of_line[3];
        }
    }
    t->named += proven;
    t->found += found;
    t->covered += covered;
    t->others += others;
}

static struct tally repeat(const struct cluster *c, unsigned runs)
{
    struct tally t = {.runs = runs};
    struct scene s;

    for (unsigned i = 0; i < runs; i++) {
        struct comparisons asked = {.r = &s.r};
        struct siblings found;

        if (i % REDRAWN == 0)
            measure(&s, c);
        draw_again(&s, c);
        siblings_ask(&s.r, &asked);
        comparisons_decide(&asked);
        siblings_judge(&asked, &found);
        count_run(&found, c, &t);
        if (i % REDRAWN == REDRAWN - 1 || i == runs - 1)
            scene_release(&s);
    }
    return t;
}

/* P(X >= k) of n throws with this chance. */
static double binomial_tail(unsigned k, unsigned n, double chance)
{
    double sum = 0;

    for (unsigned i = k; i <= n; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) + i * log(chance) +
                   (n - i) * log1p(-chance));
    return sum;
}

/* A rate that is held fails one time in many millions, as it is well below. */
static void assert_at_most(const char *what, unsigned k, unsigned n, double chance)
{
    if (k && binomial_tail(k, n, chance) < 1e-3)
        fail_msg("%s: %u of %u are more than %.1f %%", what, k, n, 100 * chance);
}

struct condition {
    const char *what;
    double sd, stall_share, common_share, heavy;
    unsigned rails, launches, runs;
    double missed; /* a planted loss of 25 %, at most; 0: it is not to be found */
    double loss;
};

/* All equal: no rail is named, though many launches stall, both of two or two of five. A planted loss is found, with what disturbs
 * it, and in the fewest launches that show it. */
TEST(rails_are_named_as_promised)
{
    static const struct condition conditions[] = {
        {"normal", .sd = 0.03, .rails = 8, .launches = 2, .runs = 50},
        {"heavy tails", .sd = 0.01, .heavy = 0.02, .rails = 8, .launches = 2, .runs = 50},
        {"all stall", .sd = 0.01, .common_share = 0.1, .rails = 8, .launches = 3, .runs = 50},
        {"10 % stall", .sd = 0.01, .stall_share = 0.1, .rails = 8, .launches = 2, .runs = 100},
        {"10 % stall", .sd = 0.01, .stall_share = 0.1, .rails = 8, .launches = 5, .runs = 50},
        {"10 % stall", .sd = 0.01, .stall_share = 0.1, .rails = 2, .launches = 3, .runs = 100},
        {"quiet", .sd = 0.01, .rails = 8, .launches = 2, .runs = 50, .missed = 0.05, .loss = 0.25},
        {"quiet", .sd = 0.01, .rails = 4, .launches = 3, .runs = 50, .missed = 0.05, .loss = 0.25},
        {"2 % stall", .sd = 0.01, .stall_share = 0.02, .rails = 8, .launches = 3, .runs = 50,
         .missed = 0.15, .loss = 0.25},
        {"9.5 %", .sd = 0.01, .rails = 8, .launches = 2, .runs = 50, .loss = 0.095},
    };

    for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++) {
        const struct condition *at = &conditions[i];
        struct cluster c = healthy;

        c.rails = at->rails;
        c.launches = at->launches;
        c.rail_sd = c.launch_sd = at->sd;
        c.stall_share = at->stall_share;
        c.common_share = at->common_share;
        c.heavy = at->heavy;
        c.of_line[3] = 1 - at->loss;
        struct tally t = repeat(&c, at->runs);
        if (at->missed > 0) {
            assert_at_most("the loss is missed", t.runs - t.found, t.runs, at->missed);
            assert_at_most("its interval lacks it", t.found - t.covered, t.found, 0.1);
        }
        assert_at_most(at->what, at->missed > 0 ? t.others : t.named, t.runs,
                       at->loss > 0 && !(at->missed > 0) ? 0.05 : 0.01);
    }
}

TESTS_WITH(told_ask, told_forget);
