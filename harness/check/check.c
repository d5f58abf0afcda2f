/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: the command. */
#include "harness/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/option.h"
#include "core/program.h"
#include "core/text.h"
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
                                     {o->mail, "we", output_mail},
                                     {o->github ? "-" : NULL, "we", output_github},
                                     {summary && *summary ? summary : NULL, "ae", output_markdown}};
    bool text = true;
    int err = 0;

    for (size_t i = 0; i < 4; i++)
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
    switch (err) {
    case -EBADMSG:
        return EXIT_DAMAGED;
    default:
        return EXIT_USAGE;
    }
}

static const struct decide_options gate_view = {.unchanged = true, .b_stays = true};

static int load(struct check_command *c, const struct baseline *b, struct pairs *p)
{
    const struct check_options *o = &c->options;
    struct pairs_options options = {.margin = o->margin,
                                    .forced = c->forced,
                                    .steal_limit = steal_limit(o->steal),
                                    .only = c->only && *c->only && !o->accept ? c->only : NULL,
                                    .fast = true,
                                    .decide = gate_view,
                                    .name_a = b->n ? "the baseline" : CHECK_RUN_NAME,
                                    .name_b = CHECK_RUN_NAME,
                                    .roles = b->choice.roles,
                                    .n_roles = b->choice.n_roles};
    /* Without a baseline the run stands on both sides, so that its cases are known. */
    const char *const *a = b->n ? (const char *const *)b->paths : &c->run;
    int err = pairs_load(p, a, b->n ? b->n : 1, &c->run, 1, &options, c->error, sizeof(c->error));

    if (!err && b->n)
        err = pairs_refuse_same(p, c->error,
                                sizeof(c->error)); /* a copy of the run in its baseline */
    if (!err && o->best_of && b->n)
        err = gate_pick_best(p, o->best_of, &options.decide);
    if (err == -ENOMEM)
        snprintf(c->error, sizeof(c->error), "out of memory");
    if (!err && !p->n) {
        snprintf(c->error, sizeof(c->error),
                 "no case matches --only '%s': see plumb check RUN "
                 "--json - for the keys",
                 options.only ? options.only[0] : "");
        err = -ENOENT;
    }
    return err;
}

static bool in_history(const struct check_options *o)
{
    return o->update || (o->accept && !o->beside);
}

static const char *best_text(struct pool *pool, uint64_t n, const struct baseline *b)
{
    if (baseline_levels(b) == 1)
        return b->text;
    if (n == 1)
        return pool_text(pool, "the last of %s", b->text);
    return pool_text(pool, "the best, case by case, of the last %" PRIu64 " of %s", n, b->text);
}

/* Of a level that was accepted nothing is left to complain of, but of the other cases. That some of
 * these could not be decided is not why somebody called. */
static int exit_of_rest(const struct check_kept *kept)
{
    enum gate_verdict verdict = kept->rest.verdict;

    return kept->acceptance.n_keys && (verdict == GATE_LOST || verdict == GATE_INCOMPLETE)
               ? gate_exit(verdict)
               : EXIT_GOOD;
}

/* What was judged, judged anew. A loss is never hidden behind a file that could not be written, but
 * one that was accepted is none. */
static int tell(struct check_command *c, struct check_result *r)
{
    const struct check_options *o = &c->options;
    int err = in_history(o) ? check_update(c, &r->gate, &r->kept) : 0;

    if (r->kept.taken && r->gate.options.first)
        r->advice = ""; /* it told of the baseline that this run would be */
    r->accepted = o->accept && !o->beside && !err;
    r->exit = r->accepted ? exit_of_rest(&r->kept) : gate_exit(r->gate.verdict);
    if (r->accepted && r->exit &&
        gate_accept(&r->gate, r->kept.acceptance.keys, r->kept.acceptance.n_keys)) {
        err = -ENOMEM;
        snprintf(c->error, sizeof(c->error), "out of memory");
    }
    if (err) {
        fprintf(stderr, "plumb check: %s\n", c->error);
        r->advice = "";
    }
    int unwritten = o->mail ? check_since(c, r) : 0;
    unwritten = unwritten ? unwritten : check_write(c, r);
    if (unwritten)
        fprintf(stderr, "plumb check: %s\n", c->error);
    if (r->exit && r->exit != EXIT_UNDECIDED)
        return r->exit;
    return !err && unwritten == -EIO ? EXIT_INCOMPLETE : err || unwritten ? exit_of(err) : r->exit;
}

/* What the baseline has and the run has not is asked for every night from now on. */
static const char *advice_of(const struct check_options *o, const struct baseline *b,
                             const struct gate *g)
{
    if (*b->advice || !g->counts[GATE_MISSING] || o->accept)
        return b->advice;
    return baseline_is_history(o->baseline)
               ? "if a case was taken out of the suite on purpose: --accept, once, makes this run "
                 "the start of later ones"
               : "if a case was taken out of the suite on purpose: take a baseline without it";
}

static int fail(const struct check_command *c)
{
    fprintf(stderr, "plumb check: %s\n", c->error);
    return EXIT_USAGE;
}

static int judge(struct check_command *c, const struct baseline *b, struct pairs *p)
{
    const struct check_options *o = &c->options;
    const struct gate_options options = {
        .accepted = &c->accepted, .see = o->see, .strict = o->strict, .first = !b->n};
    struct check_result r = {.run = c->run,
                             .baseline = b->text,
                             .baseline_of = b,
                             .best_of = (unsigned)o->best_of,
                             .margin = o->margin,
                             .beside = o->beside,
                             .kept = {.sentence = ""}};
    const char *const *keys;
    size_t n_keys;

    if (o->best_of && b->n)
        r.baseline = best_text(
            &p->report.pool, o->best_of < baseline_levels(b) ? o->best_of : baseline_levels(b), b);
    int err = gate_make(&r.gate, p, &options);
    if (!err && o->beside) {
        if (check_accept_beside(c, &r.gate, &r.kept))
            return fail(c);
        err = accepted_decide(&c->accepted, p, &gate_view);
        err = err ? err : gate_make(&r.gate, p, &options); /* with what is accepted now */
    }
    if (!err)
        err = sight_make(&r.sight, &r.gate, &(struct sight_asked){gate_view, b->runs_most});
    if (!err && b->n)
        r.n_differences = pairs_machine_differences(p, &r.differences);
    if (err || p->report.pool.failed) {
        fputs("plumb check: out of memory\n", stderr);
        return EXIT_USAGE;
    }
    r.advice = advice_of(o, b, &r.gate);
    err = o->accept && !o->beside ? check_accepted_keys(c, &r.gate, &keys, &n_keys) : 0;
    if (!err)
        return tell(c, &r);
    fprintf(stderr, "plumb check: %s\n", c->error);
    return EXIT_USAGE;
}

/* Judges, keeps the history, and writes. The exit status. */
static int check_run(struct check_command *c)
{
    const struct check_options *o = &c->options;
    const struct baseline_asked asked = {.spec = o->baseline,
                                         .history = o->history,
                                         .run = c->run,
                                         .update = in_history(o),
                                         .steal_limit = steal_limit(o->steal),
                                         .least = o->best_of ? o->best_of : BASELINE_LAST};
    struct pairs p = {0};
    struct baseline b = {0};
    int status, err = baseline_find(&b, &asked, c->error, sizeof(c->error));

    if (!err) {
        err = load(c, &b, &p);
        if (!err && !baseline_is_history(o->baseline))
            err = accepted_load(&c->accepted, &p.report.pool, o->baseline, c->error,
                                sizeof(c->error));
        if (!err)
            err = accepted_decide(&c->accepted, &p, &gate_view);
        /* Runs in which nothing was measured. */
        status = err == -EINVAL ? EXIT_INCOMPLETE : exit_of(err);
    } else {
        status = exit_of(err);
    }
    if (err)
        fprintf(stderr, "plumb check: %s\n", c->error);
    else
        status = judge(c, &b, &p);
    if (err && status == EXIT_INCOMPLETE && o->mail && check_mail_unmeasured(c))
        fprintf(stderr, "plumb check: cannot write '%s'\n", o->mail);
    pairs_release(&p);
    baseline_release(&b);
    return status;
}

#define AT(member) offsetof(struct check_options, member)

static const struct opt check_table[] = {
    {.name = "baseline",
     .letter = 'b',
     .type = OPT_STRING,
     .offset = AT(baseline),
     .arg = "B",
     .help =
         "runs with which RUN is compared: a run folder; a folder of several, which also shows how "
         "runs vary; history, or history:N, the last N (10) baselines of this host and suite"},
    {.name = "margin",
     .letter = 'm',
     .type = OPT_FRACTION,
     .offset = AT(margin),
     .def = "2%",
     .arg = "SHARE",
     .help = "largest loss that is no regression; default: that of the suite, or else"},
    {.name = "see",
     .type = OPT_FRACTION,
     .offset = AT(see),
     .def = "5%",
     .arg = "SHARE",
     .help = "loss that a run should be able to detect: the output has the number of cases that "
             "could not. Not less than a --margin that is given"},
    {.name = "steal",
     .type = OPT_FRACTION,
     .offset = AT(steal),
     .def = STEAL_DEFAULT,
     .arg = "SHARE",
     .help = STEAL_HELP ", of RUN and of the baseline" STEAL_NONE},
    {.name = "strict",
     .type = OPT_FLAG,
     .offset = AT(strict),
     .help =
         "exit with 3 if any case could not have shown that loss; without it, only if none could"},
    {.name = "best-of",
     .type = OPT_U64,
     .offset = AT(best_of),
     .min = 1,
     .max = 1000,
     .arg = "N",
     .help = "compare each case with its best of the baseline's last N runs, with a correction for "
             "the choice"},
    {.name = "only",
     .type = OPT_STRING,
     .offset = AT(only),
     .arg = "PATTERN",
     .help = "judge only cases whose key or label match (* ? [..] as in a shell); may be given "
             "again. With --accept: the cases whose level is accepted. Not with --update-baseline, "
             "which adds whole runs"},
    {.name = "junit",
     .type = OPT_STRING,
     .offset = AT(junit),
     .arg = "FILE",
     .help = "write JUnit XML, with a test for each case"},
    {.name = "markdown",
     .type = OPT_STRING,
     .offset = AT(markdown),
     .arg = "FILE",
     .help = "write a summary in Markdown, for a page, a comment or a mail"},
    {.name = "json",
     .type = OPT_STRING,
     .offset = AT(json),
     .arg = "FILE",
     .help = "write everything as JSON, for programs"},
    {.name = "mail",
     .type = OPT_STRING,
     .offset = AT(mail),
     .arg = "FILE",
     .help = "write three lines for a mail: what happened, since when, what changed; an empty file "
             "after a quiet night"},
    {.name = "github",
     .type = OPT_FLAG,
     .offset = AT(github),
     .help = "print annotations for GitHub Actions, and write the summary of the step"},
    {.name = "update-baseline",
     .type = OPT_FLAG,
     .offset = AT(update),
     .help = "add RUN to the history after the verdict; as a baseline unless it regressed or is "
             "incomplete"},
    {.name = "accept",
     .type = OPT_FLAG,
     .offset = AT(accept),
     .help =
         "accept this level; with a CASE, a pattern as of --only, in these cases alone. Against "
         "the "
         "history, RUN is a new start, and no run before it counts. Against a folder B, the level "
         "is kept in B.accepted.json until B contains it"},
    {.name = "reason",
     .type = OPT_STRING,
     .offset = AT(reason),
     .arg = "TEXT",
     .help = "reason for --accept: the history keeps it, and plumb history shows it"},
    {.name = "history",
     .type = OPT_STRING,
     .offset = AT(history),
     .def = HISTORY_DEFAULT,
     .arg = HISTORY_ARG,
     .help = HISTORY_HELP "; the file is made on first use"},
    {.name = "help", .letter = 'h', .type = OPT_FLAG, .offset = AT(help), .help = "show this text"},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb check: is this run slower than its baseline? For CI\n"
         "\n"
         "usage: plumb check RUN --baseline B [options]\n"
         "       plumb check RUN --baseline history --update-baseline     every night\n"
         "       plumb check RUN --accept [CASE] --reason TEXT            accept this level\n"
         "\n"
         "Prints the cases that regressed, failed or are missing, each with its ratio, the "
         "interval, the level\n"
         "of proof and the smallest loss that would have been found. The last line has the number "
         "of cases\n"
         "that could not have shown a loss of --see. One FILE may be '-', which is stdout instead "
         "of the text,\n"
         "but not together with --github.\n");
    opts_help(o, stdout);
    puts(
        "\n"
        "exit: 0 no regression is proven, 1 a case regressed or gave wrong data, 2 usage, no run "
        "found, or a\n"
        "      file that cannot be made, 3 nothing could be decided, or there is no baseline, 4 "
        "the "
        "run is\n"
        "      incomplete: cases failed or are missing; or a file is not whole, 5 a run folder or "
        "the\n"
        "      history is damaged; if several apply, the first of 1, 4, 3\n"
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
    if (c->o.n_args != 1)
        return snprintf(
                   c->error, sizeof(c->error),
                   c->o.n_args
                       ? "one run is judged at a time: name one run folder"
                       : "which run? Name a run folder, such as results/quick-20250101-120000; "
                         "plumb run makes one"),
               -EINVAL;
    c->run = c->o.args[0];
    return 0;
}

static int refuse_mixed(struct check_command *c)
{
    const struct check_options *o = &c->options;
    const struct output_asked outputs[] = {{"--junit", o->junit},
                                           {"--markdown", o->markdown},
                                           {"--json", o->json},
                                           {"--mail", o->mail},
                                           {"--github", o->github ? "-" : NULL}};

    return outputs_refuse_mixed(outputs, sizeof(outputs) / sizeof(*outputs), c->error,
                                sizeof(c->error));
}

static int settle(struct check_command *c)
{
    struct check_options *o = &c->options;
    const struct opt_values *margin = opts_values(&c->o, "margin"),
                            *see = opts_values(&c->o, "see");

    c->forced = margin && margin->given;
    /* A loss that the margin lets pass is none that a run could show. */
    if (c->forced && !(see && see->given))
        o->see = o->see > o->margin ? o->see : o->margin;
    if (!o->baseline && (o->update || o->accept))
        o->baseline = "history";
    o->beside = o->beside && !baseline_is_history(o->baseline);
    o->history = history_db_path(o->history, c->history, sizeof(c->history));
    if (settle_run(c) || refuse_mixed(c))
        return -EINVAL;
    /* What some cases say is no word on the whole run, which is what the history takes. */
    if (o->only && o->update && !o->accept)
        return refuse(c,
                      "--only judges some cases, and --update-baseline adds the whole run: judge "
                      "it in two calls, plumb check RUN --baseline history --only PATTERN, and "
                      "plumb check RUN --update-baseline without --only");
    if (o->reason && !o->accept)
        return refuse(c, "--reason says why a level is accepted: add --accept, or leave it out");
    if (o->reason && !o->reason[strspn(o->reason, " \t\n")])
        return refuse(c, "--reason is empty: say why the level is meant");
    if (!steal_is_share(o->steal))
        return refuse(c, STEAL_REFUSED);
    if (!is_share(o->margin) || !is_share(o->see))
        return refuse(c, "--margin and --see are shares above 0 and below 100 %, such as 2%");
    if (c->forced && o->see < o->margin)
        return refuse(c, "--see is within --margin, which lets such a loss pass: ask for a smaller "
                         "margin, or to see a larger loss");
    if (!o->baseline)
        return refuse(c, "against what? --baseline RUN holds it against one run, or a folder of "
                         "runs; --baseline history --update-baseline keeps a history, and begins "
                         "one with this run");
    return 0;
}

/* --accept CASE is --accept --only CASE: the word behind it, unless it is an option or RUN. NULL: no
 * memory. */
static char **with_cases(int *argc, char **argv, bool *cases)
{
    static char only[] = "--only";
    char **out = calloc((size_t)*argc + 2, 2 * sizeof(*out));
    struct stat st;
    int n = 0;

    for (int i = 0; out && i < *argc; i++) {
        bool is_accept = i > 0 && !strcmp(argv[i], "--accept");

        out[n++] = argv[i];
        if (!is_accept || i + 1 >= *argc || argv[i + 1][0] == '-' || !stat(argv[i + 1], &st))
            continue;
        out[n++] = only;
        *cases = true;
    }
    *argc = n;
    return out;
}

static int run(struct check_command *c, int argc, char **argv)
{
    int err = opts_parse(&c->o, argc, argv);

    if (!err)
        err = opts_apply(&c->o, check_table, NULL, &c->options);
    if (!err && !(c->only = only_of(argc, argv)))
        err = -ENOMEM;
    if (err) {
        snprintf(c->error, sizeof(c->error), "%s", err == -ENOMEM ? "out of memory" : c->o.error);
        return fail(c);
    }
    if (c->options.help) {
        print_help(&c->o);
        return EXIT_GOOD;
    }
    return settle(c) ? fail(c) : check_run(c);
}

int cmd_check(int argc, char **argv)
{
    const struct opt *tables[] = {check_table, NULL};
    struct check_command c = {0};
    int status = EXIT_USAGE;

    argv = with_cases(&argc, argv, &c.options.beside);
    if (!argv)
        fputs("plumb check: out of memory\n", stderr);
    else if (!opts_init(&c.o, tables))
        status = run(&c, argc, argv);
    else
        fprintf(stderr, "plumb check: %s\n", c.o.error);
    free(c.only);
    free(argv);
    opts_release(&c.o);
    return status;
}
