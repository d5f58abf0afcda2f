/* SPDX-License-Identifier: Apache-2.0 */
/* plumb history: the command. */
#include "harness/history/history.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/exit_code.h"
#include "harness/command.h"
#include "harness/compare/pairs.h"
#include "harness/compare/text.h"
#include "harness/history/history_db_build.h"
#include "harness/history/pick.h"

#define DATABASE "results/history.db"
#define FOLDER   "results"

#define FAILED_NAMED 3 /* cases in the line that says why the exit is 1 */

struct options {
    const char *history, *pattern, *host, *suite, *since, *html, *csv;
    uint64_t within;
    double steal;
    bool json, all, fail, help;
};

#define TEXT(field, shown, text)                                                                   \
    {                                                                                              \
        .name = #field, .type = OPT_STRING, .offset = offsetof(struct options, field),             \
        .arg = shown, .help = text                                                                 \
    }

static const struct opt history_table[] = {
    {.name = "history",
     .type = OPT_STRING,
     .offset = offsetof(struct options, history),
     .arg = "FILE",
     .help = "database of the history, as in plumb check; the same as DB"},
    {.name = "case",
     .type = OPT_STRING,
     .offset = offsetof(struct options, pattern),
     .arg = "PATTERN",
     .help = "only cases that match; docs/suites.md has the rules of patterns"},
    {.name = "only",
     .type = OPT_STRING,
     .offset = offsetof(struct options, pattern),
     .arg = "PATTERN",
     .help = "the same as --case, with the name of other commands"},
    TEXT(host, "H", "only runs of this host"),
    TEXT(suite, "S", "only runs of this suite"),
    TEXT(since, "DATE",
         "only runs since this date: 2025-01-31, 2025-01-31T02:00, or 30d, the last 30 days"),
    {.name = "steal",
     .type = OPT_FRACTION,
     .offset = offsetof(struct options, steal),
     .def = STEAL_DEFAULT,
     .arg = "SHARE",
     .help = STEAL_HELP STEAL_NONE},
    {.name = "all",
     .type = OPT_FLAG,
     .offset = offsetof(struct options, all),
     .help = "also show cases without a change"},
    TEXT(html, "FILE",
         "write a page with plots; the plots are also in a folder, FILE's name with -plots"),
    TEXT(csv, "FILE", "write the changes as CSV, one per line; '-' is stdout, instead of the text"),
    {.name = "json",
     .type = OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print everything as JSON instead"},
    {.name = "fail-on-change",
     .type = OPT_FLAG,
     .offset = offsetof(struct options, fail),
     .help = "exit with 1 if the newest run is the first to show a change for the worse"},
    {.name = "within",
     .type = OPT_U64,
     .offset = offsetof(struct options, within),
     .def = "1",
     .min = 1,
     .max = 100000,
     .help = "number of newest runs that --fail-on-change checks"},
    {.name = "help",
     .letter = 'h',
     .type = OPT_FLAG,
     .offset = offsetof(struct options, help),
     .help = "show this text"},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb history: when did the level of a case change, over many runs?\n\n"
         "usage: plumb history [DB or FOLDER...] [--case PATTERN] [--html FILE]\n\n"
         "Reads the database of plumb check --update-baseline, run folders, or folders of them. "
         "Default:\n" DATABASE ", or else " FOLDER "/. In a folder without runs, it reads "
         "history.db or runs/.\n\n"
         "For each case it names the run at which the level changed, and by how much, and draws "
         "the\n"
         "series. A slip is a gradual change: it has a first and a last run. After two months of "
         "runs,\n"
         "it finds a step of 3 % in noise of 1 % by the 5th run, and a larger one by the 3rd. It "
         "finds a\n"
         "slip of 0.3 % a run by the time it has lost 6 %. One outlier is no change. "
         "docs/history.md\n"
         "has the method and its limits.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit: 0 good, with or without changes, 1 see --fail-on-change, 2 usage or no run found, "
         "4 a file\n"
         "      could not be written, 5 the database or a run folder is damaged. A damaged run "
         "folder is named\n"
         "      on stderr and left out; if all are damaged, nothing is shown. If 1 and 5 apply, it "
         "is 1");
}

static int exit_code(int err)
{
    switch (err) {
    case 0:
        return EXIT_GOOD;
    case -EBADMSG:
    case -EPROTO:
        return EXIT_DAMAGED;
    case -ENOENT:
    case -ENOTDIR:
    case -EINVAL:
    case -ENOSYS:
        return EXIT_USAGE;
    default:
        return EXIT_INCOMPLETE;
    }
}

static int read_db(const char *path, const struct options *o, const char *const *only,
                   struct history *h, char *error, size_t len)
{
    int err = 0;
    struct history_db *db = history_db_open(path, false, &err, error, len);

    if (!db)
        return err;
    err =
        history_db_read(db, o->host ? o->host : "", o->suite ? o->suite : "", only, h, error, len);
    history_db_close(db);
    return err;
}

static int read_history(const struct pick_source *s, const struct options *options,
                        struct history *h, char *error, size_t len)
{
    const char *only[] = {options->pattern, NULL};

    return s->db ? read_db(s->db, options, only, h, error, len)
                 : history_read_folders(s->paths, s->n, only, h, error, len);
}

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static int write_csv(const char *path, const struct trends *t, char *error, size_t len)
{
    FILE *out = is_stdout(path) ? stdout : fopen(path, "we");
    int err = 0;

    if (out) {
        trends_csv(out, t);
        err = fflush(out) || ferror(out) ? -EIO : 0;
        if (out != stdout && fclose(out) && !err)
            err = -errno;
    } else {
        err = -errno;
    }
    if (err)
        snprintf(error, len, "cannot write '%s': %s", path, strerror(-err));
    /* Whatever kept it from being written: that is no damage of what was read. */
    return err ? -EIO : 0;
}

static int show(const struct options *o, const struct trends *t, char *error, size_t len)
{
    int err = 0;

    if (o->json) {
        err = trends_json(stdout, t);
        if (err)
            snprintf(error, len, "cannot print the history: %s", strerror(-err));
    } else if (!is_stdout(o->csv)) {
        trends_print(stdout, t, o->all, forest_locale_is_utf8());
        history_print_accepted(stdout, t->history);
    }
    if (!err && o->csv)
        err = write_csv(o->csv, t, error, len);
    if (!err && o->html && trends_html(o->html, t, o->all, error, len))
        err = -EIO;
    return err;
}

/* Says why, where a change for the worse asks for exit 1. */
static bool has_failed(const struct options *o, const struct trends *t)
{
    size_t n = 0, named = 0;
    FILE *out = o->json || is_stdout(o->csv) ? stderr : stdout;

    for (size_t i = 0; o->fail && i < t->n; i++)
        n += trend_fails(t, &t->all[i], o->within);
    if (!n)
        return false;
    fprintf(out, "--fail-on-change: %zu case%s changed for the worse, first told by ", n,
            n == 1 ? "" : "s");
    if (o->within > 1)
        fprintf(out, "one of the newest %" PRIu64 " runs: ", o->within);
    else
        fputs("the newest run: ", out);
    for (size_t i = 0; i < t->n && named < FAILED_NAMED; i++) {
        if (!trend_fails(t, &t->all[i], o->within))
            continue;
        fputs(named++ ? "; " : "", out);
        trend_put(out, t->all[i].series->label);
    }
    if (n > named)
        fprintf(out, "; and %zu more", n - named);
    fputc('\n', out);
    return true;
}

/* What is wrong with what was asked, before anything is read. */
static int settle(struct options *o, char *since, size_t since_len, char *error, size_t len)
{
    *since = '\0';
    if (o->json && is_stdout(o->csv)) {
        snprintf(error, len, "--json and --csv - both go to stdout: name a file for the CSV");
        return -EINVAL;
    }
    if (!steal_is_share(o->steal)) {
        snprintf(error, len, "%s", STEAL_REFUSED);
        return -EINVAL;
    }
    if (o->since && pick_since(o->since, time(NULL), since, since_len)) {
        snprintf(error, len,
                 "--since '%s' is no date: 2025-01-31, 2025-01-31T02:00, 2025-01 or 30d, the last "
                 "30 days",
                 o->since);
        return -EINVAL;
    }
    return 0;
}

/* The filters left nothing: what there would be without them. */
static int explain(const struct pick_source *s, const struct options *o,
                   const struct trend_filter *filter, char *error, size_t len)
{
    static const struct options none = {0};
    struct history whole = {0};
    int err = read_history(s, &none, &whole, error, len);

    if (!err) {
        err = -ENOENT;
        pick_explain(&whole, filter, o->pattern, o->since, error, len);
    }
    history_release(&whole);
    return err;
}

static void tell_left_out(const struct history *h)
{
    for (size_t i = 0; i < h->n_left_out; i++) {
        fputs("plumb history: left out: ", stderr);
        trend_put(stderr, h->left_out[i]);
        fputc('\n', stderr);
    }
}

static int run_from(const struct pick_source *s, const struct options *options, const char *since,
                    int *status, char *error, size_t len)
{
    const struct trend_filter filter = {options->host ? options->host : "",
                                        options->suite ? options->suite : "", since,
                                        steal_limit(options->steal)};
    struct history h = {0};
    struct trends t = {0};
    int err = read_history(s, options, &h, error, len);

    tell_left_out(&h);
    if (!err)
        err = trends_make(&t, &h, &filter);
    if (!err && !t.n)
        err = explain(s, options, &filter, error, len);
    if (!err)
        err = show(options, &t, error, len);
    if (!err)
        *status = has_failed(options, &t) ? EXIT_BAD : h.n_left_out ? EXIT_DAMAGED : EXIT_GOOD;
    trends_release(&t);
    history_release(&h);
    return err;
}

static int run(const struct opts *o, void *context)
{
    struct options *options = context;
    struct pick_source source = {0};
    char error[1024] = "out of memory", since[PICK_SINCE_BYTES];
    int status = EXIT_GOOD;
    int err = settle(options, since, sizeof(since), error, sizeof(error));
    const char *const *names = options->history ? &options->history : (const char *const *)o->args;
    size_t n_names = options->history ? 1 : o->n_args;

    if (!err && options->history && o->n_args) {
        snprintf(error, sizeof(error), "--history is DB by another name: give one of the two");
        err = -EINVAL;
    }
    if (!err)
        err = pick_source(&source, names, n_names, error, sizeof(error));
    if (!err && source.found && n_names)
        fprintf(stderr, "plumb history: '%s' holds no run itself; read is '%s'\n", names[0],
                source.found);
    if (!err)
        err = run_from(&source, options, since, &status, error, sizeof(error));
    if (err)
        fprintf(stderr, "plumb history: %s\n", error);
    pick_source_release(&source);
    return err ? exit_code(err) : status;
}

int cmd_history(int argc, char **argv)
{
    struct options options = {0};
    const struct command command = {.name = "history",
                                    .table = history_table,
                                    .options = &options,
                                    .help = &options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &options};

    return command_run(&command, argc, argv);
}
