/* SPDX-License-Identifier: Apache-2.0 */
/* plumb report: the command. */
#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/command.h"
#include "harness/report/report.h"

struct options {
    const char *out, *baseline, *markdown;
    bool unfold, notes, help;
};

struct asked {
    struct options options;
    const struct report_judge *judge;
};

struct making {
    const struct report_judge *judge;
    void *verdicts; /* NULL: no baseline was named */
};

#define AT(member) offsetof(struct options, member)

static const struct opt report_table[] = {
    {OPTION("out", OPT_STRING, out, "DIR",
            "folder for report.html, summary.csv, summary.json and plots/; default: the run "
            "folder, if there is one run"),
     .letter = 'o'},
    {OPTION("baseline", OPT_STRING, baseline, "RUN",
            "a run, or a folder of runs, with which RUN is compared: adds the verdicts of plumb "
            "compare"),
     .letter = 'b'},
    {OPTION("markdown", OPT_STRING, markdown, "FILE",
            "also write the answers and the table into FILE, as Markdown")},
    {OPTION("notes", OPT_FLAG, notes, NULL,
            "say all that is known beside each line of the table, as the page does")},
    {OPTION("unfold", OPT_FLAG, unfold, NULL,
            "unfold the sections of the page, so that it is printed with them; not the rows")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb report: one HTML page and plots of a run, or of several side by side\n"
         "\n"
         "usage: plumb report RUN... [--out DIR]\n"
         "       plumb report RUN --baseline RUN\n"
         "\n"
         "RUN is a run folder, such as results/quick-20250101-120000. The page needs no other "
         "file. Each\n"
         "chart is also in plots/, as an SVG file.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit: 0 good, 2 usage or no run found, 4 the report could not be written, 5 a run folder "
         "is damaged");
}

static int exit_code(int err)
{
    switch (err) {
    case 0:
        return EXIT_GOOD;
    case -EBADMSG:
        return EXIT_DAMAGED;
    case -ENOENT:
    case -EINVAL:
        return EXIT_USAGE;
    default:
        return EXIT_INCOMPLETE;
    }
}

/* The table that plumb run ends with. The folder has just been read without an error. */
static void print_summary(const char *path, bool notes)
{
    struct run_folder run;
    char error[256];

    if (run_folder_load(path, &run, error, sizeof(error)))
        return;
    report_summary(stdout, &run, notes);
    run_folder_release(&run);
    putchar('\n');
}

static int write_markdown(const char *path, const char *const *runs, size_t n, char *error,
                          size_t len)
{
    bool to_stdout = !strcmp(path, "-");
    FILE *out = to_stdout ? stdout : fopen(path, "we");

    if (!out) {
        snprintf(error, len, "cannot write \"%s\": %s", path, strerror(errno));
        return -EIO; /* -ENOENT would say that there is no run */
    }
    int err = report_markdown(out, runs, n, error, len);
    int lost = stream_finish(out);
    if (lost)
        snprintf(error, len, "cannot write \"%s\": %s", path, strerror(-lost));
    return lost ? -EIO : err;
}

static int make(struct making *m, const struct opts *o, const struct options *options)
{
    const char *runs[REPORT_RUNS_MAX];
    char error[1024] = "";
    uint64_t begin_ns = clock_now_ns();
    struct report_section section = {.write = m->judge ? m->judge->section : NULL};
    int err = 0, lost = 0;

    for (size_t i = 0; i < o->n_args; i++)
        runs[i] = o->args[i];
    if (options->baseline)
        err = m->judge->open(runs[0], options->baseline, &m->verdicts, error, sizeof(error));
    section.context = m->verdicts;
    if (!err)
        err = report_make(runs, o->n_args, options->out, m->verdicts ? &section : NULL,
                          options->unfold, error, sizeof(error));
    if (err == -EIO) { /* a file that cannot be written hides no answer */
        fprintf(stderr, "plumb report: %s\n", error);
        lost = err;
        err = 0;
    }
    if (!err && options->markdown)
        err = write_markdown(options->markdown, runs, o->n_args, error, sizeof(error));
    if (!err) {
        if (o->n_args == 1)
            print_summary(o->args[0], options->notes);
        else
            report_runs(stdout, runs, o->n_args);
        if (m->verdicts)
            m->judge->line(stdout, m->verdicts);
        if (!lost)
            printf("%s/report.html\n", options->out ? options->out : o->args[0]);
        fflush(stdout); /* a log has it before what goes to stderr */
        if (!lost)
            fprintf(stderr, "plumb report: made in %.1f s\n",
                    (double)(clock_now_ns() - begin_ns) * 1e-9);
    }
    if (m->verdicts)
        m->judge->close(m->verdicts);
    if (err)
        fprintf(stderr, "plumb report: %s%s\n", error,
                err == -ENOENT ? ": plumb run makes one, for example plumb run quick" : "");
    return exit_code(err ? err : lost);
}

static int check_and_make(const struct opts *o, void *context)
{
    const struct asked *asked = context;
    const struct options *options = &asked->options;
    const struct report_judge *judge = asked->judge;
    struct making m = {.judge = judge};

    if (!o->n_args) {
        fputs("plumb report: which run? Name a run folder, such as results/quick-20250101-120000; "
              "plumb run makes one\n",
              stderr);
    } else if (o->n_args > REPORT_RUNS_MAX) {
        fprintf(stderr, "plumb report: %zu runs are too many for one page: at most %d\n", o->n_args,
                REPORT_RUNS_MAX);
    } else if (options->baseline && (!judge || o->n_args > 1)) {
        fputs("plumb report: --baseline is for one run: name one, or hold several against others "
              "with plumb compare\n",
              stderr);
    } else {
        return make(&m, o, options);
    }
    return EXIT_USAGE;
}

int report_command(int argc, char **argv, const struct report_judge *judge)
{
    struct asked asked = {.judge = judge};
    const struct command command = {.name = "report",
                                    .table = report_table,
                                    .options = &asked.options,
                                    .help = &asked.options.help,
                                    .print_help = print_help,
                                    .run = check_and_make,
                                    .context = &asked};

    return command_run(&command, argc, argv);
}
