/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of plumb doctor: see doctor.h. */
#include "harness/doctor/doctor.h"

#include <errno.h>
#include <string.h>

#include "core/program.h"
#include "harness/command.h"

struct options {
    const char *sysroot, *explain;
    bool json, list, help;
};

static const struct opt doctor_table[] = {
    {.name = "sysroot",
     .type = OPT_STRING,
     .offset = offsetof(struct options, sysroot),
     .arg = "DIR",
     .help = "examine a tree recorded by scripts/record-machine, not this machine"},
    {.name = "json",
     .type = OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "one JSON object on stdout: docs/doctor.md lists its keys"},
    {.name = "list",
     .type = OPT_FLAG,
     .offset = offsetof(struct options, list),
     .help = "show the checks: the question, how it is seen, the cost and its source"},
    {.name = "explain",
     .type = OPT_STRING,
     .offset = offsetof(struct options, explain),
     .arg = "ID",
     .help = "show one check"},
    {.name = "help",
     .letter = 'h',
     .type = OPT_FLAG,
     .offset = offsetof(struct options, help),
     .help = "show this text"},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    fputs("usage: plumb doctor [options] [RUN | DIR | FILE]\n"
          "\n"
          "Finds what makes a machine slow, what each cause costs, and the remedy. Examines this\n"
          "machine, or the machine of a run folder, of a recorded tree, or of a file of --json.\n"
          "\n",
          stdout);
    opts_help(o, stdout);
    fputs(
        "\n"
        "exit status: 0 nothing found, 1 something found, 2 usage error, 3 something that matters\n"
        "is not known, 4 the output could not be written completely, 5 a file is damaged\n",
        stdout);
}

static int fail(int status, const char *why)
{
    fprintf(stderr, "plumb doctor: %s\n", why);
    return status;
}

/* Of nearly the same id: --explain governer. */
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

static int written(int status)
{
    if (fflush(stdout) || ferror(stdout))
        return fail(EXIT_INCOMPLETE, "cannot write the whole output");
    return status;
}

static void show(struct exam *x, bool as_json, const char *name)
{
    json_t *json = as_json ? doctor_json(x) : NULL;

    if (as_json) {
        json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        doctor_print(stdout, x, name);
    }
    json_decref(json);
}

static int examine(const char *path, bool as_json)
{
    char error[1024];
    json_t *machine;
    struct exam *x;
    int status, err = doctor_load(path, &machine, error, sizeof(error));

    if (err)
        return fail(err == -EBADMSG ? EXIT_DAMAGED : EXIT_USAGE, error);
    x = exam_new(machine);
    if (!x) {
        json_decref(machine);
        return fail(EXIT_INCOMPLETE, "out of memory");
    }
    show(x, as_json, NULL);
    status = doctor_status(x);
    exam_free(x);
    json_decref(machine);
    return written(status);
}

static int run(const struct opts *o, void *context)
{
    const struct options *options = context;

    if (options->list || options->explain) {
        if (doctor_print_checks(stdout, options->explain))
            return no_check(options->explain);
        return written(EXIT_GOOD);
    }
    if (o->n_args > 1)
        return fail(EXIT_USAGE, "more than one machine: give one run folder, tree or file");
    if (options->sysroot && (o->n_args || !*options->sysroot))
        return fail(EXIT_USAGE, "--sysroot is the machine: give a folder, and nothing beside it");
    return examine(o->n_args ? o->args[0] : options->sysroot, options->json);
}

int cmd_doctor(int argc, char **argv)
{
    struct options options = {0};
    const struct command command = {.name = "doctor",
                                    .table = doctor_table,
                                    .options = &options,
                                    .help = &options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &options};

    return command_run(&command, argc, argv);
}
