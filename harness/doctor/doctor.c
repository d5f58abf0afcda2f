/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of plumb doctor: see doctor.h. */
#include "harness/doctor/doctor.h"

#include <errno.h>
#include <string.h>

#include "core/program.h"
#include "harness/child.h"
#include "harness/command.h"
#include "harness/doctor/measure.h"
#include "harness/hosts/launcher.h"

#define MEASURE_FOUND "found" /* of --measure: the causes that were found */

struct options {
    const char *sysroot, *explain, *measure, *peer;
    uint64_t measure_time_ns, watch_ns;
    double measure_width;
    bool json, list, help;
    struct hosts_options hosts;
    int launcher;
};

#define AT(member) offsetof(struct options, member)

static const struct opt doctor_table[] = {
    {OPTION("sysroot", OPT_STRING, sysroot, "DIR",
            "examine a tree recorded by scripts/record-machine, not this machine")},
    {OPTION("json", OPT_FLAG, json, NULL,
            "one JSON object on stdout: docs/doctor.md lists its keys")},
    {OPTION("watch", OPT_DURATION, watch_ns, NULL,
            "this machine: read its counters again after TIME, to see what is lost now"),
     .def = "1s"},
    {OPTION("list", OPT_FLAG, list, NULL, "list the checks, each with its question")},
    {OPTION("explain", OPT_STRING, explain, "ID",
            "show one check of --list: how it is seen, its cost and the source")},
    {OPTION("measure", OPT_STRING, measure, "ID,..|all",
            "measure what causes cost here, with and without, in turn: these, all that there are, "
            "or without a value those that were found")},
    {OPTION("measure-time", OPT_DURATION, measure_time_ns, NULL,
            "--measure: time for each cause, after its first turns"),
     .def = "60s"},
    {OPTION("measure-width", OPT_FRACTION, measure_width, NULL,
            "--measure: stop when the cost is known to +/- SHARE"),
     .def = "1%"},
    {OPTION("peer", OPT_STRING, peer, "HOST",
            "--measure: the other end of networks, a host on which the benchmark runs with "
            "--listen; default: this machine")},
    {OPTION("hosts", OPT_STRING, hosts.file, "FILE",
            "examine all hosts of the file (docs/hosts.md), and name those that differ")},
    {OPTION("launcher", OPT_CHOICE, launcher, NULL, "--hosts: what starts plumb on them"),
     .choices = launcher_names + 1, .def = "ssh"},
    {OPTION("rsh", OPT_STRING, hosts.rsh, "PROGRAM",
            "--hosts: program instead of ssh, called as PROGRAM HOST COMMAND; or $PLUMB_RSH")},
    {OPTION("remote-dir", OPT_STRING, hosts.remote_dir, "DIR",
            "--hosts: folder of plumb on the hosts; default: the folder here")},
    {OPTION("host-wait", OPT_DURATION, hosts.wait_ns, NULL,
            "--hosts: time after which a host counts as missing; default: 20s")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{

    fputs("plumb doctor: why this machine is slow\n\n"
          "usage: plumb doctor [options] [A [B]]\n\n",
          stdout);
    doctor_entry(0, "", 0,
                 "Finds what makes a machine slow, what each cause costs, and the remedy. A and B "
                 "are machines: a run folder, a recorded tree, or a file of plumb probe --json or "
                 "plumb doctor --json. Without A: this machine.");
    fputs("\nexamples:\n", stdout);
    doctor_entry(2, "plumb doctor", 30, "this machine, without root");
    doctor_entry(2, "plumb doctor --measure", 30, "also what the causes found cost here");
    doctor_entry(2, "plumb doctor RUN", 30, "the machine of a run folder");
    doctor_entry(2, "plumb doctor A B", 30, "what differs between two machines or nights");
    doctor_entry(2, "plumb doctor --hosts FILE", 30, "all hosts of a cluster");
    fputs("\noptions:\n", stdout);
    opts_help(o, stdout);
    fputc('\n', stdout);
    doctor_entry(
        0, "", 0,
        "exit status: 0 nothing found, 1 something found, 2 wrong usage, or a file that is "
        "missing or cannot be read, 3 something that matters is not known, 4 interrupted, "
        "or the output could not be written completely, 5 a file is damaged");
}

static int fail(int status, const char *why)
{
    fprintf(stderr, "plumb doctor: %s\n", why);
    return status;
}

/* Of nearly the same id: --explain governorr. */
static int no_check(const char *id)
{
    const char *names[256];
    const char *near;
    size_t n = 0;

    for (const struct exam_area *area = exam_areas; area->name; area++)
        for (const struct exam_check *c = area->checks; c->id && n < 255; c++)
            names[n++] = c->id;
    names[n] = NULL;
    near = opts_nearest(id, names);
    fprintf(stderr, "plumb doctor: no check '%s'%s%s%s\n", id, near ? ": did you mean '" : "",
            near ? near : ": see plumb doctor --list", near ? "'?" : "");
    return EXIT_USAGE;
}

/* live: it is this machine, now. */
static void show(struct exam *x, bool as_json, bool live, const struct measures *m)
{
    if (as_json) {
        json_t *json = doctor_json(x);

        if (m)
            json_object_set_new(json, "measured", measures_json(m));
        doctor_put(json);
    } else {
        struct patient one = {.x = x};
        const struct ward w = {.all = &one, .n = 1, .n_answered = 1};

        doctor_entry(0, "", 0, doctor_machine_text(x));
        doctor_print_counts(&w);
        doctor_print_results(&w, live);
        if (m && m->n)
            measure_print(m);
        doctor_print_first(&w, live, m && m->n);
    }
}

/* "governor,huge-pages": the checks that found something. */
static const char *found_checks(struct exam *x)
{
    const char *text = "", *last = "";

    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_FOUND || !strcmp(last, r->check->id))
            continue;
        last = r->check->id;
        text = exam_format(x, "%s%s%s", text, *text ? "," : "", last);
    }
    return text;
}

/* What was measured is the price of its findings. Of several figures of one check the largest loss
 * counts. */
static void take_costs(struct exam *x, const struct measures *m)
{
    for (struct exam_result *r = exam_results(x); r; r = r->next) {
        struct exam_cost cost = {.basis = EXAM_MEASURED};
        if (r->state != EXAM_FOUND || r->keeps_price || !exam_measurable(r->check, r->subject))
            continue;
        for (size_t i = 0; i < m->n; i++) {
            const struct measurement *one = &m->all[i];
            if (!measure_is_of(one, r->check->id, r->subject) || !one->decides ||
                !measure_share(one, &cost.low, &cost.high))
                continue;
            cost.of_time = !one->more_is_better;
            cost.of = one->cause->lost;
            cost.source = one->command;
            if (r->cost.basis != EXAM_MEASURED || exam_loss(&cost) > exam_loss(&r->cost))
                r->cost = cost;
        }
    }
    exam_sort(x);
}

/* Measures, shows, and frees what the figures stand on. An exit status. */
static int measure_and_show(struct exam *x, const struct options *options)
{
    bool found = !strcmp(options->measure, MEASURE_FOUND);
    bool all = !strcmp(options->measure, "all");
    struct measure_options o = {.only = found ? found_checks(x)
                                        : all ? NULL
                                              : options->measure,
                                .named = !found && !all,
                                .peer = options->peer,
                                .machine = exam_machine(x),
                                .rule = {options->measure_width, options->measure_time_ns},
                                .cancel = cancel_on_signals()};
    struct bench_list benches;
    struct measures m;
    char error[1024] = "";
    int status = EXIT_USAGE;

    bench_list_load(&benches);
    if (benches.problems)
        fputs(benches.problems, stderr);
    int err = measure_plan(&m, &benches, &o, error, sizeof(error));
    if (err) {
        status = fail(err == -ENOENT ? EXIT_USAGE : EXIT_INCOMPLETE, error);
    } else {
        if (!m.n)
            fputs("plumb doctor: no cause that was found can be measured; --measure all measures "
                  "those that can\n",
                  stderr);
        err = measure_run(&m, stderr);
        take_costs(x, &m);
        show(x, options->json, true, &m);
        status = err ? EXIT_INCOMPLETE : doctor_status(x);
    }
    measures_release(&m);
    bench_list_release(&benches);
    return status;
}

static int examine(const char *path, const struct options *options)
{
    char error[1024] = "";
    json_t *machine;
    struct exam *x;
    int status, err = doctor_load(path, options->watch_ns, &machine, error, sizeof(error));

    if (err)
        return fail(err == -EBADMSG ? EXIT_DAMAGED : EXIT_USAGE, error);
    x = exam_new(machine);
    if (options->measure) {
        status = measure_and_show(x, options);
    } else {
        show(x, options->json, !path, NULL);
        status = doctor_status(x);
    }
    exam_free(x);
    json_decref(machine);
    return status;
}

static int run(const struct opts *o, void *context)
{
    struct options *options = context;

    if (options->hosts.file) {
        if (o->n_args || options->sysroot || options->measure)
            return fail(EXIT_USAGE, "--hosts examines these hosts alone: name no other machine, "
                                    "and measure on each by itself");
        options->hosts.launcher = launcher_names[1 + options->launcher];
        return doctor_hosts(&options->hosts, options->json);
    }
    if (options->explain)
        return doctor_explain(options->explain) ? no_check(options->explain) : EXIT_GOOD;
    if (options->list) { /* the checks, and the causes that can be priced */
        struct bench_list benches;

        bench_list_load(&benches);
        doctor_list();
        measure_list(&benches);
        bench_list_release(&benches);
        return EXIT_GOOD;
    }
    if (o->n_args > 2)
        return fail(EXIT_USAGE, "more than two machines: give one, or two to set side by side");
    if (options->sysroot && (o->n_args || !*options->sysroot))
        return fail(EXIT_USAGE, "--sysroot is the machine: give a folder, and nothing beside it");
    if (options->measure && (o->n_args || options->sysroot))
        return fail(EXIT_USAGE, "--measure is for this machine: give no other");
    if (o->n_args == 2)
        return doctor_both(o->args, options->json);
    return examine(o->n_args ? o->args[0] : options->sysroot, options);
}

int cmd_doctor(int argc, char **argv)
{
    static char found[] = "--measure=" MEASURE_FOUND;
    struct options options = {0};
    const struct command command = {.name = "doctor",
                                    .table = doctor_table,
                                    .options = &options,
                                    .help = &options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &options};

    for (int i = 1; i < argc; i++) /* --measure alone is --measure=found */
        if (!strcmp(argv[i], "--measure") && (i + 1 == argc || *argv[i + 1] == '-'))
            argv[i] = found;
    return command_run(&command, argc, argv);
}
