/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked before anything long starts: see check.h. */
#include "harness/hosts/check.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/group/world.h"
#include "core/units.h"
#include "harness/child.h"
#include "harness/document/document.h"
#include "harness/hosts/end.h"
#include "harness/hosts/launcher.h"
#include "harness/machine/fact.h"
#include "harness/table.h"

/* ---- Telling what hosts answered ---- */

#define NETWORKS_SHOWN 4

const char *check_network(const json_t *network, char *text, size_t len)
{
    const char *name = json_string_value(json_object_get(network, "name"));
    const char *address =
        json_string_value(json_array_get(json_object_get(network, "addresses"), 0));
    double mbps = json_number_value(json_object_get(network, "speed_mbps"));
    char rate[40] = "";

    if (mbps > 0)
        snprintf(rate, sizeof(rate), " %.4g %s", mbps >= 1000 ? mbps / 1000 : mbps,
                 mbps >= 1000 ? "Gb/s" : "Mb/s");
    text[0] = 0;
    if (name && (address || strchr(name, ':'))) /* a port of an RDMA device has no address */
        snprintf(text, len, "%s%s%s%s", name, address ? " " : "", address ? address : "", rate);
    return text_printable(text);
}

static const char *networks_text(struct pool *pool, const struct host *h)
{
    const char *text = "";
    size_t shown = 0, more = 0;
    char one[200];

    FACT_EACH (h->networks, network) {
        if (!*check_network(network, one, sizeof(one)))
            continue;
        if (shown == NETWORKS_SHOWN)
            more++;
        else
            text = pool_text(pool, "%s%s%s", text, shown++ ? ", " : "", one);
    }
    return more ? pool_text(pool, "%s and %zu more", text, more) : text;
}

/* One build for all its programs, or that they differ. */
static const char *build_text(struct pool *pool, const struct host *h)
{
    char build[HOST_VERSION_MAX] = "none";
    const char *version = NULL;
    bool bad = false;

    for (size_t i = 0; i < h->n_programs; i++) {
        bad |= h->programs[i].problem != NULL;
        version = h->programs[i].version ? h->programs[i].version : version;
    }
    if (version)
        host_build(version, build, sizeof(build));
    return pool_text(pool, "%s%s", build, bad && version ? " see below" : "");
}

static void print_table(const struct hosts_run *run)
{
    static const struct document_column columns[] = {{.name = "host"},
                                                     {.name = "slots", .number = true},
                                                     {.name = "clock"},
                                                     {.name = "build"},
                                                     {.name = "networks"}};
    const struct document_terminal terminal = document_terminal_of(stderr);
    struct pool pool = {0};
    struct document *d = document_new(&pool);
    struct document_table *t = document_table(d, columns, 5);

    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        if (!h->asked)
            continue;
        struct cell *cells = document_row(t);
        cells[0] = cell_text(h->name);
        cells[1] = cell_text(pool_text(&pool, "%u", h->slots));
        cells[2] =
            cell_text(!h->answered ? "no answer"
                      : isnan(h->offset_s)
                          ? "not known"
                          : pool_text(&pool, "%+.2f s +-%.2f",
                                      fabs(h->offset_s) < 0.005 ? 0 : h->offset_s, h->spread_s));
        cells[3] = cell_text(h->answered ? build_text(&pool, h) : "see below");
        cells[4] = cell_text(networks_text(&pool, h));
    }
    document_write_terminal(d, &terminal, stderr);
    pool_release(&pool);
}

static bool is_waiting(const struct launch *l, const struct host *h)
{
    return l->state == LAUNCH_TODO && launch_needs_host(l, h->name);
}

static void say_problem(const struct plan *plan, const struct host *h, const char *problem,
                        const char *bench)
{
    /* How many launches wait for this host, of one benchmark or (NULL) of any. */
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        n += is_waiting(l, h) && (!bench || !strcmp(l->bench, bench));
    }

    fprintf(stderr, "plumb run: %s: %zu %s at once\n", problem, n,
            n == 1 ? "launch that needs it fails" : "launches that need it fail");
}

/* Is the address one of those that the host said it has? */
static bool has_address(const struct host *h, const char *address)
{
    FACT_EACH (h->networks, network)
        FACT_EACH (json_object_get(network, "addresses"), own)
            if (address && !strcmp(json_string_value(own), address))
                return true;
    return false;
}

/* The table, and each problem with how many launches it concerns. */
static void check_say(const struct hosts_run *run, const struct plan *plan)
{
    char by[LAUNCHER_BY_SIZE];

    fprintf(stderr, "plumb run: asked %s:\n", launcher_by(run, by));
    print_table(run);
    /* Two names of one machine: what is measured between them is no network. */
    for (size_t i = 0; i < run->hosts.n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct host *a = &run->hosts.all[k], *b = &run->hosts.all[i];
            if (!has_address(a, b->address) && !has_address(b, a->address))
                continue;
            fprintf(stderr,
                    "plumb run: warning: '%s' and '%s' are one machine, which has the address %s: "
                    "between them no network is measured; list it once\n",
                    a->name, b->name, has_address(a, b->address) ? b->address : a->address);
            break;
        }
    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        if (h->problem)
            say_problem(plan, h, h->problem, NULL);
        for (size_t k = 0; !h->problem && k < h->n_programs; k++)
            if (h->programs[k].problem)
                say_problem(plan, h, h->programs[k].problem, h->programs[k].bench);
    }
    if (run->ranks)
        fprintf(stderr, "plumb run: all %u ranks on %zu %s see each other\n",
                hosts_slots(&run->hosts), run->hosts.n, run->hosts.n == 1 ? "host" : "hosts");
}

/* ---- Do all ranks find each other? ---- */

#define TRIAL_NS 100000000000ull /* ranks wait for each other for a minute */
#define NAME_CUT (WORLD_NAME_MAX - 1)

static unsigned number_of(const struct table *t, size_t row, const char *column)
{
    uint64_t n = 0;

    return units_parse_u64(table_text(t, row, column), &n) || n > UINT32_MAX ? UINT32_MAX
                                                                             : (unsigned)n;
}

/* With a connection of its own a rank is where it is to be; mpirun and srun may choose other hosts.
 * The hosts' own names are compared, if known; a rank's may be cut off. */
static bool is_elsewhere(const struct hosts_run *run, const struct host *h, const char *is)
{
    size_t n = strlen(is);

    return run->launcher->ranks && h->calls &&
           (n < NAME_CUT ? strcmp(h->calls, is) : strncmp(h->calls, is, n)) != 0;
}

/* Is each rank where the hosts file puts it? */
static int check_places(const struct hosts_run *run, const struct table *t, char *error, size_t len)
{
    size_t row = 0;

    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        for (unsigned k = 0; k < h->slots; k++, row++) {
            const char *is = table_text(t, row, "host");
            if (number_of(t, row, "rank") != row) {
                snprintf(error, len, "its rank %zu is missing or out of order", row);
                return -EBADMSG;
            }
            if (!is_elsewhere(run, h, is))
                continue;
            snprintf(error, len,
                     "rank %zu is on '%s', and by the hosts file it belongs on '%s' ('%s'): see "
                     "%s's own options",
                     row, is, h->name, h->calls, run->launcher->name);
            return -EBADMSG;
        }
    }
    return 0;
}

int check_who(const struct hosts_run *run, const char *csv, size_t size, json_t **ranks,
              char *error, size_t len)
{
    unsigned wanted = hosts_slots(&run->hosts);
    struct table t;
    int err = table_parse("who", csv, size, &t, error, len);

    *ranks = NULL;
    if (err)
        return -EBADMSG;
    if (t.n_rows != wanted) {
        snprintf(error, len, "%zu of %u ranks see each other", t.n_rows, wanted);
        err = -EBADMSG;
    } else {
        err = check_places(run, &t, error, len);
    }
    *ranks = err ? NULL : json_array();
    for (size_t row = 0; !err && row < t.n_rows; row++) {
        json_t *one = json_object();

        for (size_t i = 0; i < t.n_columns; i++)
            json_object_set_new(one, t.columns[i], json_string(table_cell(&t, row, i)));
        json_array_append_new(*ranks, one);
    }
    table_release(&t);
    return err;
}

/* Launches plumb-NAME --who over all. 0 or -errno; what is wrong becomes the first host's problem
 * with that benchmark. */
static int check_trial(struct hosts_run *run, const struct bench_info *bench)
{
    static const char *const who[] = {"--who", NULL};
    struct host_launch group = {.run = run, .program = bench->path, .arguments = who};
    struct child_result r = {0};
    json_t *ranks = NULL;
    char why[700] = "";
    int err = child_run(&(struct child_spec){.body = host_launch_body,
                                             .body_arg = &group,
                                             .samples = true,
                                             .timeout_ns = TRIAL_NS + run->wait_ns},
                        &r);

    if (!err && r.timed_out)
        snprintf(why, sizeof(why), "it did not end in %.3g s",
                 (double)(TRIAL_NS + run->wait_ns) * 1e-9);
    else if (!err && r.status)
        text_last_line(r.err.text, why, sizeof(why));
    else if (!err)
        err = check_who(run, r.out.text, r.out.size, &ranks, why, sizeof(why));
    if (ranks && !run->ranks)
        run->ranks = json_object();
    json_object_set_new(run->ranks, bench->name, ranks);
    if (err == -EBADMSG || (!err && (*why || r.status))) {
        struct host *h = &run->hosts.all[0];

        for (size_t i = 0; i < h->n_programs; i++) {
            struct host_program *p = &h->programs[i];
            if (!strcmp(p->bench, bench->name))
                p->problem = xasprintf("a trial of '%s' over all hosts failed: %s", bench->name,
                                       (*why ? why : "it ended without a word"));
        }
        err = 0;
    }
    child_result_release(&r);
    return err;
}

/* ---- The questions ---- */

#define CLOCK_S 1.0 /* the largest difference that is accepted, beyond its uncertainty */

static void take_clock(struct host *h, const struct host_answer *answer)
{
    const json_t *clock = json_object_get(answer->begin, "clock_s");
    double least = json_number_value(clock) - answer->end_s;
    double most = json_number_value(clock) - answer->begin_s;

    if (!json_is_number(clock))
        return;
    h->offset_s = (least + most) / 2;
    h->spread_s = (most - least) / 2;
    if (fabs(h->offset_s) - h->spread_s <= CLOCK_S)
        return;
    h->problem = xasprintf(
        "the clock of '%s' is %.3g s %s this machine's (known to %.2g s): set both by one time "
        "server, see chronyc tracking or timedatectl",
        h->name, fabs(h->offset_s), h->offset_s > 0 ? "ahead of" : "behind", h->spread_s);
}

void check_take(struct host *h, const struct host_answer *answer)
{
    const json_t *programs = json_object_get(answer->end, "programs");
    char calls[HOST_VERSION_MAX], version[HOST_VERSION_MAX], problem[768];

    h->answered = true;
    h->calls = xstrdup(message_line(answer->begin, "name", calls, sizeof(calls)));
    h->networks = json_incref(json_object_get(answer->end, "networks"));
    take_clock(h, answer);
    for (size_t i = 0; i < h->n_programs; i++) {
        struct host_program *p = &h->programs[i];
        const json_t *said = json_array_get(programs, i);

        message_line(said, "version", version, sizeof(version));
        if (json_integer_value(json_object_get(said, "status"))) {
            host_say_missing(p->path ? p->path : p->bench, h->name, calls, version, problem,
                             sizeof(problem));
            p->problem = xstrdup(problem);
        } else {
            p->version = xstrdup(version);
        }
    }
}

struct check {
    struct hosts_run *run;
    const struct bench_list *benches;
    const struct plan *plan;
};

/* The benchmarks that wait for the host. */
static void order(struct host *h, struct argv *words, void *arg)
{
    const struct check *c = arg;

    for (size_t j = 0; j < c->plan->n; j++) {
        const struct launch *l = &c->plan->launches[j];
        const struct bench_info *bench =
            is_waiting(l, h) ? bench_list_find(c->benches, l->bench) : NULL;
        size_t i = 0;
        char path[4096];

        while (bench && i < h->n_programs && strcmp(h->programs[i].bench, bench->name) != 0)
            i++;
        if (!bench || i < h->n_programs)
            continue;
        host_program_path(c->run, h, bench->path, path, sizeof(path));
        *ARRAY_ADD(h->programs, h->n_programs) =
            (struct host_program){.bench = bench->name, .path = xstrdup(path)};
        argv_add(words, path);
    }
    h->asked = h->n_programs > 0;
}

static void take(struct host *h, const struct host_answer *answer, void *arg)
{
    (void)arg;
    if (answer->end)
        check_take(h, answer);
    else
        h->problem = xstrdup(answer->why);
}

/* Have the hosts our build of it? False: none was asked. */
static bool compare_builds(struct hosts_run *run, const struct bench_info *bench)
{
    char problem[768], ours[HOST_VERSION_MAX] = "";

    for (size_t i = 0; i < run->hosts.n; i++) {
        const struct host *h = &run->hosts.all[i];
        for (size_t k = 0; k < h->n_programs; k++) {
            struct host_program *p = &h->programs[k];
            if (strcmp(p->bench, bench->name) != 0)
                continue;
            if (!*ours) /* without one, every build is another */
                host_version(bench->path, run->wait_ns, ours);
            if (p->version && !host_same_build(h->name, p->version, ours, problem, sizeof(problem)))
                p->problem = xstrdup(problem);
        }
    }
    return *ours;
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
    int err = hosts_ask(run, TASK_CHECK, order, take, &(struct check){run, benches, plan});

    for (size_t i = 0; !err && i < benches->n; i++) {
        const struct bench_info *bench = &benches->benches[i];
        if (compare_builds(run, bench) && can_try(run, bench))
            err = check_trial(run, bench);
    }
    if (!err)
        check_say(run, plan);
    return err;
}
