/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked before anything long starts: see check.h. */
#include "harness/hosts/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/child.h"
#include "harness/hosts/host_launch.h"
#include "harness/hosts/stream.h"
#include "harness/hosts/talk.h"

static bool is_waiting(const struct launch *l, const struct host *h)
{
    return l->state == LAUNCH_TODO && launch_needs_host(l, h->name);
}

static int add_program(struct host *h, const char *bench)
{
    struct host_program *grown;

    for (size_t i = 0; i < h->n_programs; i++)
        if (!strcmp(h->programs[i].bench, bench))
            return 0;
    grown = realloc(h->programs, (h->n_programs + 1) * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    h->programs = grown;
    grown[h->n_programs++] = (struct host_program){.bench = bench};
    return 0;
}

/* Which benchmarks wait for the host. */
static int add_programs(struct host *h, const struct bench_list *benches, const struct plan *plan)
{
    int err = 0;

    for (size_t i = 0; !err && i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        const struct bench_info *bench =
            is_waiting(l, h) ? bench_list_find(benches, l->bench) : NULL;
        if (bench)
            err = add_program(h, bench->name);
    }
    return err;
}

static int own_version(const struct bench_info *bench, uint64_t wait_ns,
                       char version[STREAM_TEXT_MAX])
{
    const char *argv[] = {bench->path, "--version", NULL};
    struct child_result r = {0};
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = wait_ns}, &r);

    version[0] = 0;
    if (!err && !r.status)
        snprintf(version, STREAM_TEXT_MAX, "%.*s", (int)strcspn(r.out.text, "\n"), r.out.text);
    child_result_release(&r);
    return err;
}

static int compare_build(struct host *h, const char *bench, const char *ours)
{
    char theirs_text[STREAM_TEXT_MAX], ours_text[STREAM_TEXT_MAX], problem[768];

    for (size_t i = 0; i < h->n_programs; i++) {
        struct host_program *p = &h->programs[i];
        if (strcmp(p->bench, bench) != 0 || !p->version)
            continue;
        host_build(p->version, theirs_text, sizeof(theirs_text));
        host_build(ours, ours_text, sizeof(ours_text));
        if (!strcmp(theirs_text, ours_text))
            continue;
        talk_say_other_build(h->name, p->version, ours, problem, sizeof(problem));
        p->problem = strdup(problem);
        if (!p->problem)
            return -ENOMEM;
    }
    return 0;
}

static int compare_builds(struct hosts_run *run, const struct bench_info *bench)
{
    char ours[STREAM_TEXT_MAX];
    int err = own_version(bench, run->wait_ns, ours);

    for (size_t i = 0; !err && i < run->hosts.n; i++)
        err = compare_build(&run->hosts.all[i], bench->name, ours);
    return err;
}

static bool is_asked_for(const struct hosts_run *run, const char *bench)
{
    for (size_t i = 0; i < run->hosts.n; i++)
        for (size_t k = 0; k < run->hosts.all[i].n_programs; k++)
            if (!strcmp(run->hosts.all[i].programs[k].bench, bench))
                return true;
    return false;
}

/* A trial makes sense where every host could take part. */
static bool can_try(const struct hosts_run *run, const struct bench_info *bench)
{
    if (!bench_needs(bench, "group"))
        return false;
    for (size_t i = 0; i < run->hosts.n; i++)
        if (host_problem(&run->hosts.all[i], bench->name))
            return false;
    return true;
}

int check_all(struct hosts_run *run, const struct bench_list *benches, const struct plan *plan)
{
    int err = 0;

    for (size_t i = 0; !err && i < run->hosts.n; i++)
        err = add_programs(&run->hosts.all[i], benches, plan);
    if (!err)
        err = check_ask(run, benches);
    for (size_t i = 0; !err && i < benches->n; i++) {
        const struct bench_info *bench = &benches->benches[i];
        if (!is_asked_for(run, bench->name))
            continue;
        err = compare_builds(run, bench);
        if (!err && can_try(run, bench))
            err = check_trial(run, bench);
    }
    if (!err)
        check_say(run, plan);
    return err;
}
