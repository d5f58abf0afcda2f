/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: the command. */
#include "harness/check/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/command.h"
#include "harness/compare/compare.h"
#include "harness/compare/pairs.h"
#include "harness/plan/plan.h"

/* ---- plumb check: its files, and what goes to stdout ---- */

struct writer {
    const char *path, *mode;
    int (*write)(FILE *out, const struct check_result *r);
};

static int write_file(struct check_command *c, const struct check_result *r, const struct writer *w)
{
    FILE *out = strcmp(w->path, "-") ? fopen(w->path, w->mode) : stdout;
    int err = out ? w->write(out, r) : -errno;
    int lost = out ? stream_finish(out) : 0;

    err = lost ? lost : err;
    if (err)
        snprintf(c->error, sizeof(c->error), "cannot write '%.400s': %s", w->path, strerror(-err));
    return err && out ? -EIO : err; /* else it is the option's value that is wrong */
}

/* Everything that was asked for. 0, or -errno with c->error set. A step of GitHub has a page of its
 * own, which grows. */
static int check_write(struct check_command *c, const struct check_result *r)
{
    const struct check_options *o = &c->options;
    const char *summary = o->github ? getenv("GITHUB_STEP_SUMMARY") : NULL;
    const struct writer writers[] = {{o->junit, "we", output_junit},
                                     {o->markdown, "we", output_markdown},
                                     {o->json, "we", output_json},
                                     {o->github ? "-" : NULL, "we", output_github},
                                     {summary && *summary ? summary : NULL, "ae", output_markdown}};
    bool text = true;
    int err = 0;

    for (size_t i = 0; i < 3; i++)
        text = text && !(writers[i].path && !strcmp(writers[i].path, "-"));
    /* What others write must not be lost for one that cannot be written. */
    for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++)
        if (writers[i].path) {
            int one = write_file(c, r, &writers[i]);
            err = err ? err : one;
        }
    if (text)
        output_text(stdout, r);
    return err;
}

/* ---- plumb check: from a run and a baseline to a verdict ---- */

#define CHECK_RUN_NAME "this run"

static int exit_of(int err)
{
    return err == -EBADMSG ? EXIT_DAMAGED : EXIT_USAGE;
}

static const struct decide_options gate_view = {.unchanged = true, .b_stays = true};

static int load(struct check_command *c, const struct baseline *b, struct pairs *p)
{
    const struct check_options *o = &c->options;
    struct pairs_options options = {.margin = o->margin,
                                    .forced = c->forced,
                                    .steal_limit = steal_limit(o->steal),
                                    .only = c->only && *c->only && !o->accept ? c->only : NULL,
                                    .decide = gate_view,
                                    .name_a = b->n ? "the baseline" : CHECK_RUN_NAME,
                                    .name_b = CHECK_RUN_NAME,
                                    .roles = b->choice.roles,
                                    .n_roles = b->choice.n_roles};
    options.decide.later.runs_most = b->runs_most;
    /* Without a baseline the run stands on both sides, so that its cases are known. */
    int err = pairs_load(p, b->n ? b->paths : &c->run, b->n ? b->n : 1, &c->run, 1, &options,
                         c->error, sizeof(c->error));

    if (!err && !p->n) {
        snprintf(c->error, sizeof(c->error),
                 "no case matches --only '%s': see plumb check RUN --json - for the keys",
                 options.only ? options.only[0] : "");
        err = -ENOENT;
    }
    return err;
}

/* What was judged, judged anew. A loss is never hidden behind a file that could not be written, but
 * one that was accepted is none. */
static int tell(struct check_command *c, struct check_result *r)
{
    const struct check_options *o = &c->options;
    int err = o->update || o->accept ? check_update(c, &r->gate, &r->kept) : 0;

    if (err)
        fprintf(stderr, "plumb check: %s\n", c->error);
    /* It told of the baseline that this run would be. */
    if (err || (r->kept.taken && r->gate.options.first))
        r->advice = "";
    /* Then nothing is accepted. */
    if (err && o->accept)
        gate_make(&r->gate, r->gate.p, &r->gate.options);
    r->accepted = o->accept && !err;
    /* That some cases could not be decided is not why somebody accepts the others. */
    bool left = r->gate.verdict == GATE_LOST || r->gate.verdict == GATE_INCOMPLETE;

    r->exit = r->accepted ? (r->kept.acceptance.n_keys && left ? gate_exit(&r->gate) : EXIT_GOOD)
                          : gate_exit(&r->gate);
    r->since = check_since(c, &r->gate);
    int unwritten = check_write(c, r);
    if (unwritten)
        fprintf(stderr, "plumb check: %s\n", c->error);
    if (r->exit && r->exit != EXIT_UNDECIDED)
        return r->exit;
    return !err && unwritten == -EIO ? EXIT_INCOMPLETE : err || unwritten ? exit_of(err) : r->exit;
}

/* 0 or -errno with c->error set. */
static int make_result(struct check_command *c, const struct baseline *b, struct pairs *p,
                       struct check_result *r)
{
    const struct check_options *o = &c->options;
    const struct gate_options options = {
        .detect = o->detect, .history = baseline_is_history(r->spec), .first = !b->n};

    gate_make(&r->gate, p, &options);
    if (o->accept) {
        int err = check_accept(c, &r->gate, &r->kept);
        if (err)
            return err;
        gate_accept(&r->gate, r->kept.acceptance.keys, r->kept.acceptance.n_keys);
    }
    sight_make(&r->sight, &r->gate, &(struct sight_asked){gate_view, b->runs_most});
    if (b->n)
        r->n_differences = pairs_machine_differences(p, &r->differences);
    r->advice = *b->advice || !r->gate.counts[GATE_MISSING] || o->accept ? b->advice
                : baseline_is_history(o->baseline)
                    ? "if a case was taken out of the suite on purpose: --accept CASE, once"
                    : "if a case was taken out of the suite on purpose: take a baseline without it";
    return 0;
}

static int fail(const struct check_command *c, int status)
{
    fprintf(stderr, "plumb check: %s\n", c->error);
    return status;
}

/* Judges, keeps the history, and writes. The exit status. */
static int check_run(struct check_command *c)
{
    const struct check_options *o = &c->options;
    const struct baseline_asked asked = {.spec = o->baseline,
                                         .history = o->history,
                                         .run = c->run,
                                         .update = o->update || o->accept,
                                         .steal_limit = steal_limit(o->steal)};
    struct pairs p = {0};
    struct baseline b = {0};
    struct check_result r = {.run = c->run,
                             .spec = o->baseline,
                             .history = o->history,
                             .baseline = &b,
                             .margin = o->margin,
                             .all = o->all,
                             .kept = {.sentence = ""},
                             .since = ""};
    int err = baseline_find(&b, &asked, c->error, sizeof(c->error));
    int status = exit_of(err);

    if (!err) {
        err = load(c, &b, &p);
        /* Runs in which nothing was measured. */
        status = err == -EINVAL ? EXIT_INCOMPLETE : exit_of(err);
    }
    if (!err) {
        err = make_result(c, &b, &p, &r);
        status = EXIT_USAGE;
    }
    status = err ? fail(c, status) : tell(c, &r);
    pairs_release(&p);
    baseline_release(&b);
    return status;
}

#define AT(member) offsetof(struct check_options, member)

static const struct opt check_table[] = {
    {OPTION("baseline", OPT_STRING, baseline, "B",
            "runs with which RUN is compared: a run folder; a folder of several; history, or "
            "history:N: the last N (10) good runs of this host and suite, and the first N"),
     .letter = 'b'},
    {OPTION("margin", OPT_FRACTION, margin, "SHARE",
            "largest slowdown that is no regression; default: that of the suite, or else"),
     .letter = 'm', .def = "2%"},
    {OPTION(
        "detect", OPT_FRACTION, detect, "SHARE",
        "exit with 3 if any case could not have shown a slowdown of this size, or a slowdown is in "
        "doubt")},
    {OPTION("steal", OPT_FRACTION, steal, "SHARE",
            STEAL_HELP ", of RUN and of the baseline" STEAL_NONE),
     .def = STEAL_DEFAULT},
    {OPTION("only", OPT_STRING, only, "PATTERN",
            "judge only cases whose key or label match (* ? [..] as in a shell); may be given "
            "again. With --accept: the cases that are accepted. Not with --update-baseline, "
            "which adds whole runs"),
     .flags = OPT_AGAIN},
    {OPTION("all", OPT_FLAG, all, NULL, "also every case, and what is known beside the verdict"),
     .letter = 'a'},
    {OPTION("junit", OPT_STRING, junit, "FILE", "write JUnit XML, with a test for each case")},
    {OPTION("markdown", OPT_STRING, markdown, "FILE",
            "write a summary in Markdown, for a page, a comment or a mail")},
    {OPTION("json", OPT_STRING, json, "FILE", "write everything as JSON, for programs")},
    {OPTION("github", OPT_FLAG, github, NULL,
            "print annotations for GitHub Actions, and write the summary of the step")},
    {OPTION("update-baseline", OPT_FLAG, update, NULL,
            "add RUN to the history after the verdict; it is a baseline of later runs if nothing "
            "in it regressed, is likely slower, failed or is missing")},
    {OPTION("accept", OPT_FLAG, accept, NULL,
            "begin a new reference with RUN in the history: no run before it is a baseline any "
            "more; with a CASE, a pattern as of --only, in these cases alone")},
    {OPTION("reason", OPT_STRING, reason, "TEXT",
            "reason for --accept: the history keeps it, and plumb history shows it")},
    {OPTION("history", OPT_STRING, history, HISTORY_ARG,
            HISTORY_HELP "; the file is made on first use"),
     .def = HISTORY_DEFAULT},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb check: is this run slower than its baseline? For CI\n"
         "\n"
         "usage: plumb check RUN --baseline B [options]\n"
         "       plumb check RUN --baseline history --update-baseline     every night\n"
         "       plumb check RUN --accept [CASE] --reason TEXT            accept the change\n"
         "\n"
         "A good night is one line: the verdict, and the slowdown that would be detected. One FILE "
         "may "
         "be '-',\n"
         "which is stdout instead of the text, but not together with --github.\n");
    opts_help(o, stdout);
    puts(
        "\n"
        "exit: 0 no regression is proven, 1 a case regressed or gave wrong data, 2 usage, no run "
        "found, or a\n"
        "      file that cannot be made, 3 there is no baseline, or --detect is not met, 4 the run "
        "is "
        "incomplete:\n"
        "      cases failed or are missing; or a file is not whole, 5 a run folder or the history "
        "is "
        "damaged;\n"
        "      if several apply, the first of 1, 4, 3\n"
        "docs: check.md, and deciding.md for the method; examples/ci/ for GitHub, GitLab and cron");
}

static int refuse(struct check_command *c, const char *why)
{
    snprintf(c->error, sizeof(c->error), "%s", why);
    return -EINVAL;
}

static bool is_share(double share)
{
    return share > 0 && share < 1;
}

static int settle_run(struct check_command *c)
{
    if (c->o->n_args != 1)
        return snprintf(
                   c->error, sizeof(c->error),
                   c->o->n_args
                       ? "one run is judged at a time: name one run folder"
                       : "which run? Name a run folder, such as results/quick-20250101-120000; "
                         "plumb run makes one"),
               -EINVAL;
    c->run = c->o->args[0];
    return 0;
}

static int refuse_mixed(struct check_command *c)
{
    const struct check_options *o = &c->options;
    const struct output_asked outputs[] = {{"--junit", o->junit},
                                           {"--markdown", o->markdown},
                                           {"--json", o->json},
                                           {"--github", o->github ? "-" : NULL}};

    return outputs_refuse_mixed(outputs, sizeof(outputs) / sizeof(*outputs), c->error,
                                sizeof(c->error));
}

static bool is_database(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && !strcmp(path + n - 3, ".db");
}

static int settle(struct check_command *c)
{
    struct check_options *o = &c->options;
    const struct opt_values *margin = opts_values(c->o, "margin"),
                            *detect = opts_values(c->o, "detect");

    if (opts_values(c->o, "baseline")->times > 1)
        return refuse(c,
                      "--baseline is there more than once: name a folder that holds the runs, or "
                      "keep them with --update-baseline and name history");
    c->forced = margin && margin->given;
    if (!o->baseline && (o->update || o->accept))
        o->baseline = "history";
    o->history = history_db_path(o->history, c->history, sizeof(c->history));
    if ((o->update || o->accept) && access(o->history, F_OK) && !is_database(o->history))
        return refuse(c, "--history is neither a folder nor a file: make the folder, or name a new "
                         "file with .db at its end");
    if (settle_run(c) || refuse_mixed(c))
        return -EINVAL;
    /* What some cases say is no word on the whole run, which is what the history takes. */
    if (o->only && o->update && !o->accept)
        return refuse(c,
                      "--only judges some cases, and --update-baseline adds the whole run: judge "
                      "it in two calls, plumb check RUN --baseline history --only PATTERN, and "
                      "plumb check RUN --update-baseline without --only");
    if (o->accept && !baseline_is_history(o->baseline))
        return refuse(c, "--accept is of the history, and not of a folder of runs: use --baseline "
                         "history, which --update-baseline keeps");
    if (o->reason && !o->accept)
        return refuse(c, "--reason says why a change is accepted: add --accept, or leave it out");
    if (o->reason && !o->reason[strspn(o->reason, " \t\n")])
        return refuse(c, "--reason is empty: say why the change is meant");
    if (!steal_is_share(o->steal))
        return refuse(c, STEAL_REFUSED);
    if (!is_share(o->margin) || (detect && detect->given && !is_share(o->detect)))
        return refuse(c, "--margin and --detect are shares above 0 and below 100 %, such as 2%");
    if (c->forced && o->detect > 0 && o->detect < o->margin)
        return refuse(c, "--detect is within --margin, which lets such a slowdown pass: ask for a "
                         "smaller margin, or to detect a larger slowdown");
    if (!o->baseline)
        return refuse(c, "against what? --baseline RUN holds it against one run, or a folder of "
                         "runs; --baseline history --update-baseline keeps a history, and begins "
                         "one with this run");
    return 0;
}

/* --accept CASE is --accept --only CASE: the word behind it, unless it is an option or RUN. */
static char **with_cases(int *argc, char **argv)
{
    static char only[] = "--only";
    char **out = xcalloc((size_t)*argc + 2, 2 * sizeof(*out));
    struct stat st;
    int n = 0;

    for (int i = 0; i < *argc; i++) {
        bool is_accept = i > 0 && !strcmp(argv[i], "--accept");

        out[n++] = argv[i];
        if (!is_accept || i + 1 >= *argc || argv[i + 1][0] == '-' || !stat(argv[i + 1], &st))
            continue;
        out[n++] = only;
    }
    *argc = n;
    return out;
}

static int run(const struct opts *o, void *context)
{
    struct check_command *c = context;

    c->o = o;
    c->only = (const char *const *)opts_values(o, "only")->texts;
    return settle(c) ? fail(c, EXIT_USAGE) : check_run(c);
}

int cmd_check(int argc, char **argv)
{
    struct check_command c = {.only = NULL};
    char **words = with_cases(&argc, argv);
    const struct command command = {.name = "check",
                                    .table = check_table,
                                    .options = &c.options,
                                    .help = &c.options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &c};

    int status = command_run(&command, argc, words);

    free(words);
    return status;
}
