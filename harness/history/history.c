/* SPDX-License-Identifier: Apache-2.0 */
/* plumb history: the command. */
#include "harness/history/history.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/command.h"
#include "harness/compare/compare.h"
#include "harness/compare/pairs.h"
#include "harness/document/utf8.h"
#include "harness/history/history_db.h"
#include "harness/plan/plan.h"
#include "harness/text.h"

/* ---- What plumb history is asked for ---- */

/* --- since --- */

/* Whole parts of a start, as far as they go. */
static bool is_shaped(const char *text)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t n = strlen(text);

    if (n != 4 && n != 7 && n != 10 && n != 16 && n != 19 && n != 20)
        return false;
    for (size_t i = 0; i < n; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != shape[i])
            return false;
    return true;
}

/* There is no 30th of February. */
static int since_date(const char *text, struct tm *t)
{
    struct tm asked = {.tm_mon = 1, .tm_mday = 1};

    if (!is_shaped(text) ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &asked.tm_year, &asked.tm_mon, &asked.tm_mday,
               &asked.tm_hour, &asked.tm_min, &asked.tm_sec) < 1)
        return -EINVAL;
    asked.tm_year -= 1900;
    asked.tm_mon--;
    *t = asked;
    timegm(t);
    return t->tm_year == asked.tm_year && t->tm_mon == asked.tm_mon &&
                   t->tm_mday == asked.tm_mday && t->tm_hour == asked.tm_hour &&
                   t->tm_min == asked.tm_min && t->tm_sec == asked.tm_sec
               ? 0
               : -EINVAL;
}

int pick_since(const char *text, time_t now, char *since, size_t len)
{
    size_t digits = strspn(text, "0123456789");
    struct tm t;
    long days = digits <= 5 ? strtol(text, NULL, 10) : 0;
    time_t then = now - (time_t)days * 86400;

    int err = digits && !strcmp(text + digits, "d") ? (days && gmtime_r(&then, &t) ? 0 : -EINVAL)
                                                    : since_date(text, &t);

    return err ? err : strftime(since, len, "%Y-%m-%dT%H:%M:%SZ", &t) ? 0 : -EINVAL;
}

/* ---- Where the runs lie that plumb history is asked for ---- */

#define FOLDER "results"
#define BEGIN                                                                                      \
    "plumb run SUITE --out " FOLDER "/NAME makes a run, plumb check RUN --update-baseline begins " \
    "the history " FOLDER "/history.db"

static bool is_file(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* A run, or a folder in which one lies. */
static bool holds_run(const char *path)
{
    struct run_paths runs = {0};

    run_folders_in(path, &runs);
    bool holds = runs.n > 0;
    run_paths_release(&runs);
    return holds;
}

/* NULL: it is not there. */
static char *inside(const char *folder, const char *name, bool (*is)(const char *))
{
    char *path = xasprintf("%s/%s", folder, name);

    if (is(path))
        return path;
    free(path);
    return NULL;
}

int pick_source(struct pick_source *s, const char *const *args, size_t n, char *error, size_t len)
{
    const char *folder = n ? args[0] : FOLDER;

    *s = (struct pick_source){.paths = args, .n = n, .as_folder = FOLDER};
    for (size_t i = 0; i < n; i++) {
        if (!is_file(args[i]))
            continue;
        s->db = args[i];
        if (n == 1)
            return 0;
        snprintf(error, len, "'%s' is a file: name one database alone, or run folders", args[i]);
        return -EINVAL;
    }
    if (n > 1 || (n && !is_folder(folder)))
        return 0; /* what is not there the reader names */
    if (!is_folder(folder)) {
        snprintf(error, len,
                 "there is no folder '" FOLDER "' here, and no history in it: " BEGIN
                 "; or name a history, or a folder of runs");
        return -ENOENT;
    }
    if (!n) {
        s->paths = &s->as_folder;
        s->n = 1;
    }
    /* In a folder that was named its own runs come first, in results/ the history. */
    if (n && holds_run(folder))
        return 0;
    s->db = s->found = inside(folder, HISTORY_FILE, is_file);
    if (s->db || holds_run(folder))
        return 0;
    s->found = inside(folder, "runs", is_folder);
    if (s->found && holds_run(s->found)) {
        s->paths = (const char *const *)&s->found;
        return 0;
    }
    if (access(folder, R_OK | X_OK) && errno == EACCES) {
        snprintf(error, len, "cannot read '%s': %s", folder, strerror(EACCES));
        return -EACCES;
    }
    snprintf(error, len,
             "no run folder in '%s', and no history.db: plumb run makes runs, plumb check RUN "
             "--update-baseline --history '%s/history.db' begins a history",
             folder, folder);
    return -ENOENT;
}

#define DATABASE HISTORY_DEFAULT

#define FAILED_NAMED 3 /* cases in the line that says why the exit is 1 */

struct options {
    const char *history, *pattern, *host, *suite, *since, *html, *csv;
    uint64_t within;
    double steal;
    bool json, all, fail, help;
};

#define AT(member) offsetof(struct options, member)

static const struct opt history_table[] = {
    {OPTION("history", OPT_STRING, history, HISTORY_ARG,
            HISTORY_HELP "; the same as DB or FOLDER")},
    {OPTION("case", OPT_STRING, pattern, "PATTERN",
            "only cases that match; docs/suites.md has the rules of patterns")},
    {OPTION("only", OPT_STRING, pattern, "PATTERN",
            "the same as --case, with the name of other commands")},
    {OPTION("host", OPT_STRING, host, "H", "only runs of this host")},
    {OPTION("suite", OPT_STRING, suite, "S", "only runs of this suite")},
    {OPTION(
        "since", OPT_STRING, since, "DATE",
        "only changes since this date: 2025-01-31, 2025-01-31T02:00, or 30d, the last 30 days")},
    {OPTION("steal", OPT_FRACTION, steal, "SHARE", STEAL_HELP STEAL_NONE), .def = STEAL_DEFAULT},
    {OPTION("all", OPT_FLAG, all, NULL, "also show cases without a change")},
    {OPTION("html", OPT_STRING, html, "FILE",
            "write a page with plots; the plots are also in a folder, FILE's name with -plots")},
    {OPTION("csv", OPT_STRING, csv, "FILE",
            "write the changes as CSV, one per line; '-' is stdout, instead of the text")},
    {OPTION("json", OPT_FLAG, json, NULL, "print everything as JSON instead")},
    {OPTION("fail-on-change", OPT_FLAG, fail, NULL,
            "exit with 1 if the newest run is the first to show a change for the worse, 4 if it "
            "lacks a case")},
    {OPTION("within", OPT_U64, within, NULL, "number of newest runs that --fail-on-change checks"),
     .def = "1", .min = 1, .max = 100000},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
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
         "series. After two months of runs, it finds a step of 3 % in noise of 1 % by the 5th run, "
         "and a\n"
         "larger one by the 3rd. A level that slips by 0.3 % a run is found by the time it has "
         "lost 6 %.\n"
         "One outlier is no change. docs/history.md has the method and its limits.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit: 0 good, with or without changes, 1 see --fail-on-change, 2 usage or no run found, "
         "4 a file\n"
         "      could not be written, or, with --fail-on-change, a case has no value in the newest "
         "run, 5 the\n"
         "      database or a run folder is damaged. A damaged run folder is named on stderr and "
         "left out; if\n"
         "      all are damaged, nothing is shown. If several apply, the first of 1, 5, 4");
}

static int read_history(const struct pick_source *s, const struct options *o, struct history *h,
                        char *error, size_t len)
{
    const char *only[] = {o->pattern, NULL};
    int err = 0;

    if (!s->db)
        return history_read_folders(s->paths, s->n, only, h, error, len);
    struct history_db *db = history_db_open(s->db, false, &err, error, len);
    if (db)
        err = history_db_read(db, o->host ? o->host : "", o->suite ? o->suite : "", only, h, error,
                              len);
    history_db_close(db);
    return err;
}

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static int write_csv(const char *path, const struct trends *t, char *error, size_t len)
{
    FILE *out = is_stdout(path) ? stdout : fopen(path, "we");
    int err = out ? 0 : -errno;

    if (out) {
        trends_csv(out, t);
        err = stream_finish(out);
    }
    if (err)
        snprintf(error, len, "cannot write '%s': %s", path, strerror(-err));
    /* Whatever kept it from being written: that is no damage of what was read. */
    return err ? -EIO : 0;
}

typedef bool fails_fn(const struct trends *all, const struct trend *t, size_t within);

/* Says of which cases --fail-on-change complains, and of what. False: of none. */
static bool complains(const struct options *o, const struct trends *t, fails_fn *fails,
                      const char *what)
{
    struct pool *pool = &t->history->pool;
    const char **names = pool_alloc(pool, t->n, sizeof(*names));
    size_t n = 0;
    FILE *out = o->json || is_stdout(o->csv) ? stderr : stdout;

    for (size_t i = 0; o->fail && i < t->n; i++)
        if (fails(t, &t->all[i], o->within))
            names[n++] = t->all[i].series->label;
    if (!n)
        return false;
    fprintf(out, "--fail-on-change: %s %s ", text_count(n, "case").text, what);
    if (fails == trend_fails && o->within > 1)
        fprintf(out, "one of the newest %" PRIu64 " runs: ", o->within);
    else
        fputs("the newest run: ", out);
    fprintf(out, "%s\n", utf8_text(pool, pool_list(pool, names, n, FAILED_NAMED, "; "), true));
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

/* What there is where the filters leave no case of a history that was read without them. */
static void explain_none(const struct history *whole, const struct options *o, char *error,
                         size_t len)
{
    const char *const filters[][2] = {
        {"host", o->host}, {"suite", o->suite}, {"case", o->pattern}, {"since", o->since}};
    const struct history_series *newest = NULL;
    size_t used = 0;

    for (size_t i = 0; i < whole->n_series; i++) {
        const struct history_series *s = &whole->series[i];

        if (!newest ||
            strcmp(s->runs[s->n - 1]->started_utc, newest->runs[newest->n - 1]->started_utc) > 0)
            newest = s;
    }
    if (!newest) {
        snprintf(error, len,
                 "no case there: plumb run makes runs, plumb check RUN --update-baseline keeps "
                 "them");
        return;
    }
    used = (size_t)snprintf(error, len, "no case there: ");
    for (size_t i = 0; i < sizeof(filters) / sizeof(*filters) && used < len / 2; i++)
        if (filters[i][1])
            used += (size_t)snprintf(error + used, len - used, "--%s '%.100s' ", filters[i][0],
                                     filters[i][1]);
    snprintf(
        error + used, len - used,
        "leaves none of %zu, such as '%s' of host '%s' and suite '%s', whose last run began %s",
        whole->n_series, newest->label, newest->host, newest->suite,
        newest->runs[newest->n - 1]->started_utc);
}

static int run_from(const struct pick_source *s, const struct options *options, const char *since,
                    int *status, char *error, size_t len)
{
    const struct trend_filter filter = {options->host ? options->host : "",
                                        options->suite ? options->suite : "", since,
                                        steal_limit(options->steal)};
    struct history h = {0};
    struct trends t = {0};
    int err = read_history(s, options, &h, error, len), lost = 0;

    for (size_t i = 0; i < h.n_left_out; i++)
        fprintf(stderr, "plumb history: left out: %s\n", utf8_text(&h.pool, h.left_out[i], true));
    if (!err)
        trends_make(&t, &h, &filter);
    if (!err && !t.n) {
        /* The filters left nothing: what there would be without them. */
        static const struct options none = {0};
        struct history whole = {0};
        err = read_history(s, &none, &whole, error, len);

        if (!err) {
            err = -ENOENT;
            explain_none(&whole, options, error, len);
        }
        history_release(&whole);
    }
    if (!err) {
        if (options->json) {
            err = trends_json(stdout, &t);
            if (err)
                snprintf(error, len, "cannot print the history: %s", strerror(-err));
        } else if (!is_stdout(options->csv)) {
            trends_print(stdout, &t, options->all);
        }
        if (!err && options->csv)
            err = write_csv(options->csv, &t, error, len);
        if (!err && options->html && trends_html(options->html, &t, options->all, error, len))
            lost = -EIO; /* a file that cannot be written hides no verdict */
    }
    if (!err) {
        bool failed =
            complains(options, &t, trend_fails, "changed for the worse, first detected by");
        bool incomplete = complains(options, &t, trend_fails_to_show, "without a value in");

        *status = failed         ? EXIT_BAD
                  : h.n_left_out ? EXIT_DAMAGED
                  : incomplete   ? EXIT_INCOMPLETE
                                 : EXIT_GOOD;
        err = failed ? 0 : lost;
        if (failed && lost)
            fprintf(stderr, "plumb history: %s\n", error);
    }
    trends_release(&t);
    history_release(&h);
    return err;
}

static int run(const struct opts *o, void *context)
{
    struct options *options = context;
    struct pick_source source = {0};
    char error[1024] = "", since[PICK_SINCE_BYTES], path[1024];
    int status = EXIT_GOOD;
    int err = settle(options, since, sizeof(since), error, sizeof(error));
    const char *file =
        options->history ? history_db_path(options->history, path, sizeof(path)) : NULL;
    const char *const *names = options->history ? &options->history : (const char *const *)o->args;
    size_t n_names = options->history ? 1 : o->n_args;

    if (file && is_file(file))
        options->history = file;
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
    free(source.found);
    return !err                                                  ? status
           : err == -EBADMSG || err == -EPROTO                   ? EXIT_DAMAGED
           : err == -ENOENT || err == -ENOTDIR || err == -EINVAL ? EXIT_USAGE
                                                                 : EXIT_INCOMPLETE;
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
