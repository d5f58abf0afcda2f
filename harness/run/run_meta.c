/* SPDX-License-Identifier: Apache-2.0 */
/* run.json: see run.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/program.h"
#include "core/row.h"
#include "harness/limits/limits.h"
#include "harness/machine/fact.h"
#include "harness/plan/suite.h"
#include "harness/probe/probe.h"
#include "harness/run/launch.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"

json_t *run_meta_command(int argc, char **argv)
{
    json_t *words = json_array();

    json_array_append_new(words, json_string("plumb"));
    for (int i = 0; i < argc; i++)
        json_array_append_new(words, json_string(argv[i]));
    return words;
}

/* The limits of this machine; where they cannot be read the run goes on without, and says so. */
static json_t *machine_limits(const json_t *machine)
{
    char error[512] = "", *configs = suite_configs_folder();
    struct limits *limits = configs ? limits_load(configs, NULL, error, sizeof(error)) : NULL;
    json_t *list = NULL;

    if (limits)
        limits_machine(limits, machine, &list);
    else
        fprintf(stderr, "plumb run: no datasheet limits: %s\n",
                configs ? error : "no folder 'configs'");
    limits_free(limits);
    free(configs);
    return list ? list : json_array();
}

json_t *run_meta_make(const struct run_meta *m)
{
    char hash[17], utc[24];
    json_t *machine = NULL, *meta = json_object();
    /* FNV-1a, 64 bits: tells two configurations apart; it is no protection against a forger. */
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < m->config_size; i++)
        h = (h ^ (unsigned char)m->config[i]) * 1099511628211u;
    snprintf(hash, 17, "%016llx", (unsigned long long)h);
    if (probe_machine(NULL, &machine) || !machine)
        machine = json_null();
    json_object_set_new(meta, "schema", json_integer(ROW_SCHEMA_VERSION));
    json_object_set_new(meta, "program", json_string("plumbline"));
    json_object_set_new(meta, "version", json_string(PLUMB_VERSION));
    json_object_set_new(meta, "commit",
                        *build_commit() ? json_string(build_commit()) : json_null());
    json_object_set_new(meta, "compiler", json_string(build_compiler()));
    json_object_set_new(meta, "flags", json_string(build_flags()));
    json_object_set_new(meta, "run", json_string(m->name));
    json_object_set_new(meta, "suite", json_string(m->suite));
    json_object_set_new(meta, "seed", json_integer((json_int_t)m->seed));
    json_object_set_new(meta, "only", m->only ? json_string(m->only) : json_null());
    json_object_set_new(meta, "processes",
                        json_string(m->processes ? m->processes : process_rules[PROCESS_CASE]));
    if (m->pairs)
        json_object_set_new(
            meta, "gpu_pairs",
            json_pack("{s:i, s:i}", "sampled", (int)m->pairs, "of", (int)m->pairs_of));
    if (m->hosts)
        json_object_set_new(meta, "hosts", m->hosts);
    json_object_set_new(meta, "command", run_meta_command(m->argc, m->argv));
    json_object_set_new(meta, "started_utc", json_string(clock_utc(utc, sizeof(utc))));
    json_object_set_new(meta, "finished_utc", json_null());
    json_object_set_new(meta, "state", json_string("running"));
    struct clock_quality q = clock_measure();

    json_object_set_new(meta, "clock",
                        json_pack("{s:s, s:I, s:f}", "name", "CLOCK_MONOTONIC_RAW", "resolution_ns",
                                  (json_int_t)q.resolution_ns, "cost_ns", q.cost_ns));
    json_object_set_new(meta, "config_hash", json_string(hash));
    json_object_set_new(meta, "config", json_stringn_nocheck(m->config, m->config_size));
    json_object_set_new(meta, "machine", machine);
    json_object_set_new(meta, "library_settings", probe_settings((const char *const *)environ));
    json_object_set_new(meta, "limits", machine_limits(machine));
    /* What each benchmark that is here says of its rows: a report needs no benchmark. */
    json_t *all = json_object();

    for (size_t i = 0; i < m->benches->n; i++)
        json_object_set(all, m->benches->benches[i].name, m->benches->benches[i].described);
    json_object_set_new(meta, "benchmarks", all);
    return meta;
}

static int differs(const char *what, const char *then, const char *now, char *error, size_t len)
{
    if (!*then || !strcmp(then, now))
        return 0;
    snprintf(error, len, "this run was begun %s '%s', and this is '%s': start a new run", what,
             then, now);
    return -ESTALE;
}

int run_meta_same(const json_t *meta, char *error, size_t len)
{
    char now[256] = "";
    int err = differs("by commit", fact_name(meta, "commit"), build_commit(), error, len);

    if (!err)
        err = differs("by version", fact_name(meta, "version"), PLUMB_VERSION, error, len);
    if (!err && !gethostname(now, sizeof(now) - 1))
        err = differs("on host", fact_name(meta, "machine.host.hostname"), now, error, len);
    return err;
}

int run_has_wrong(const char *path, bool *wrong, char *error, size_t len)
{
    struct run_folder folder;
    int err = run_folder_load(path, &folder, error, len);

    if (err)
        return err;
    for (size_t i = 0; i < folder.n_benches; i++)
        for (size_t row = 0; row < folder.benches[i].rows.n_rows; row++)
            *wrong |= !strcmp(table_text(&folder.benches[i].rows, row, "status"), "wrong");
    run_folder_release(&folder);
    return 0;
}

/* A run that was resumed has the cost of its earlier sessions. */
void run_meta_spent(json_t *meta, uint64_t planned_ns, uint64_t stored_ns, uint64_t benchmarks_ns)
{
    const struct {
        const char *key;
        uint64_t ns;
    } spent[] = {
        {"planning_ms", planned_ns}, {"storing_ms", stored_ns}, {"benchmarks_ms", benchmarks_ns}};
    const json_t *before = fact_at(meta, "harness_cost");
    json_t *cost = json_object();

    for (size_t i = 0; i < sizeof(spent) / sizeof(*spent); i++)
        json_object_set_new(
            cost, spent[i].key,
            json_real(fact_number(before, spent[i].key, 0) + (double)spent[i].ns * 1e-6));
    json_object_set_new(meta, "harness_cost", cost);
}

void run_meta_finish(json_t *meta, const char *state, uint64_t planned_ns, uint64_t stored_ns,
                     uint64_t benchmarks_ns)
{
    char utc[24];

    run_meta_spent(meta, planned_ns, stored_ns, benchmarks_ns);
    json_object_set_new(meta, "state", json_string(state));
    json_object_set_new(meta, "finished_utc", json_string(clock_utc(utc, sizeof(utc))));
}
