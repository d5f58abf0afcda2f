/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics are judged. */
#include "harness/compare/pairs.h"
#include "tests/unit/pairs_scene.h"
#include "tests/unit/unit.h"

static const char *const params[] = {"size"};
static const char *const values[] = {"64"};

struct metric {
    const char *bench, *name, *unit, *stop;
    uint64_t samples;
    bool judged;
};

/* A row of a figure says how many values it has, as those that were sampled do: its metric decides. */
TEST_WITH(test_which_metrics_are_judged, scene_make, scene_remove)
{
    static const struct metric metrics[] = {
        {"net", "bandwidth", "Gb/s", "converged", 100, true},
        {"net", "average_bandwidth", "Gb/s", "", 1, true},
        {"net", "load_bandwidth", "Gb/s", "", 4, true},
        {"net", "cpu_per_gb", "s/GB", "", 4, true},
        {"net", "limited_by_buffer", "percent", "", 1, false},
        {"net", "rtt", "us", "", 1, false},
        {"net", "retransmits", "count", "", 1, false},
        {"net", "cpu_cores", "cores", "", 4, false},
        /* of another version, or a benchmark of the user's own */
        {"mine", "speed", "GB/s", "time", 50, true},
        {"mine", "share", "percent", "", 1, false},
        {"mine", "share", "percent", "", 0, false},
        {"launch", "rate", "Mop/s", "converged", 100, false}, /* the latency, turned round */
        {"mine", "rate", "Mop/s", "converged", 100, true},
        {"allreduce", "time", "us", "converged", 100, true}};

    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        const struct metric *m = &metrics[i];
        struct scene_run r = scene_begin(*state, "a", m->bench, params, 1);
        struct row row;

        fake_row_init(&row, "1", 1, m->name, m->unit, 10);
        row.stop = m->stop;
        row.samples = m->samples;
        scene_row(&r, &row, values);
        scene_launch(&r, "done", 1, "1", 1, "");
        scene_end(&r);
        struct pairs p = scene_pairs(*state, "a", "a");
        if (p.n != m->judged)
            fail_msg("%s of %s", m->name, m->bench);
        pairs_release(&p);
    }
}

/* A launch leaves a figure out where the machine was busy with other work: that is no case that was lost, but where the launch
 * failed, or it was sampled. */
TEST_WITH(test_a_figure_that_one_side_left_out, scene_make, scene_remove)
{
    static const struct {
        const char *metric, *stop, *launch;
        enum pair_state state;
    } cases[] = {{"cpu_per_gb", "", "done", PAIR_LEFT_OUT},
                 {"cpu_per_gb", "", "fail", PAIR_LOST_B},
                 {"latency", "converged", "done", PAIR_LOST_B}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int side = 0; side < 2; side++) {
            struct scene_run r = scene_begin(*state, side ? "b" : "a", "net", params, 1);
            struct row row;

            fake_row_init(&row, "1", 1, "bandwidth", "Gb/s", 10);
            scene_row(&r, &row, values);
            fake_row_init(&row, "1", 1, cases[i].metric, "s/GB", 0.2);
            row.stop = cases[i].stop;
            if (!side)
                scene_row(&r, &row, values);
            scene_launch(&r, side ? cases[i].launch : "done", side ? 1 : 2, "1", 1, "");
            scene_end(&r);
        }
        struct pairs p = scene_pairs(*state, "a", "b");
        assert_int_equal(p.n, 2);
        assert_int_equal(p.all[0].state, PAIR_READY);
        assert_int_equal(p.all[1].state, cases[i].state);
        pairs_release(&p);
        p = scene_pairs(*state, "b", "a");
        assert_true(i || p.all[1].state == PAIR_LEFT_OUT);
        pairs_release(&p);
    }
}
