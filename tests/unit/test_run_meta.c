/* SPDX-License-Identifier: Apache-2.0 */
/* run.json of a run that was measured in several sessions. */
#include "harness/run/run.h"
#include "tests/unit/unit.h"

#define MS 1000000u

static void assert_cost(const json_t *meta, const char *key, double ms)
{
    const json_t *cost = json_object_get(meta, "harness_cost");

    assert_float_equal(json_number_value(json_object_get(cost, key)), ms, 1e-6);
}

/* What a session told before it was killed stays, and costs of resumed sessions add up. */
TEST(costs_of_sessions_add_up)
{
    json_t *meta = json_pack("{s:n}", "harness_cost");

    run_meta_spent(meta, 1 * MS, 0, 200 * MS);
    run_meta_spent(meta, 0, 2 * MS, 100 * MS);
    assert_null(json_object_get(meta, "finished_utc"));
    run_meta_finish(meta, "interrupted", 0, 0, 50 * MS);
    run_meta_finish(meta, "complete", 3 * MS, 4 * MS, 5 * MS);
    assert_string_equal(json_string_value(json_object_get(meta, "state")), "complete");
    assert_cost(meta, "planning_ms", 4);
    assert_cost(meta, "storing_ms", 6);
    assert_cost(meta, "benchmarks_ms", 355);
    json_decref(meta);
}
