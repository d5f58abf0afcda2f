/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: the command. */
#include "harness/crosscheck/crosscheck.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/option.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/child.h"
#include "harness/plan/bench_info.h"
#include "harness/store/store.h"

#define PATH_BYTES_MAX 4096

/* ---- Which comparisons there are, and which can be made here ---- */

#define VERSION_NS 5000000000ull

static bool matches(const char *patterns, const struct witness *w)
{
    char *all = strdup(patterns), *save = all, *one;
    bool found = false;

    while (all && !found && (one = strsep(&save, ",")) != NULL)
        found = *one && (!fnmatch(one, w->name, 0) || !fnmatch(one, w->program, 0));
    free(all);
    return found;
}

/* What it says of its version, in text; as a number, or 0. */
static unsigned ask_version(const struct crosscheck *c, const struct witness *w, const char *path,
                            char *text, size_t len)
{
    const char *argv[] = {path, w->version, NULL};
    struct child_result r = {0};
    unsigned version = 0;

    text[0] = 0;
    if (!w->version)
        return 0;
    if (!child_run(
            &(struct child_spec){.argv = argv, .timeout_ns = VERSION_NS, .cancel = c->cancel},
            &r)) {
        version = foreign_version(r.out.text, text, len);
        if (!version && !*text)
            version = foreign_version(r.err.text, text, len);
    }
    child_result_release(&r);
    return version;
}

/* The first RDMA device by name, port 1, unless one is asked for. */
static void choose_device(struct crosscheck *c)
{
    struct dirent **names = NULL;
    int n;

    snprintf(c->device_port, sizeof(c->device_port), "1");
    if (c->options.device) {
        size_t name = strcspn(c->options.device, ":");
        snprintf(c->device, sizeof(c->device), "%.*s", (int)name, c->options.device);
        if (c->options.device[name])
            snprintf(c->device_port, sizeof(c->device_port), "%s", c->options.device + name + 1);
        return;
    }
    n = scandir("/sys/class/infiniband", &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (!*c->device && names[i]->d_name[0] != '.')
            snprintf(c->device, sizeof(c->device), "%.63s", names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static int is_gpu(const struct dirent *d)
{
    return !strncmp(d->d_name, "nvidia", 6) && d->d_name[6] &&
           strspn(d->d_name + 6, "0123456789") == strlen(d->d_name + 6);
}

/* The GPUs that this process may open, but 1 where there is none: then it is said why. */
static uint64_t count_gpus(void)
{
    struct dirent **names = NULL;
    int n = scandir("/dev", &names, is_gpu, NULL);

    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return n > 0 ? (uint64_t)n : 1;
}

/* NULL: the one that it takes is not here. */
static char *find_launcher(const struct witness *w)
{
    char name[32];

    if (!w->launcher)
        return strdup("");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(w->launcher, " "), w->launcher);
    return path_program(name);
}

static void look(struct crosscheck *c, struct comparison *m)
{
    const struct witness *w = m->w;
    char *path = path_program(w->program), *ours = bench_find_program(w->bench);
    char *launcher = find_launcher(w);

    if (!path) {
        m->state = COMPARISON_ABSENT;
        snprintf(m->reason, sizeof(m->reason), "'%s' is not on PATH (%s%s)", w->program,
                 w->package ? "Debian: " : "no package of Debian: build it from ",
                 w->package ? w->package : w->source);
    } else if (!launcher) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "'%.*s' is not on PATH (Debian: openmpi-bin)",
                 (int)strcspn(w->launcher, " "), w->launcher);
    } else if (!ours) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "our own plumb-%s is not here", w->bench);
    } else if (w->rdma && !*c->device) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "this machine has no RDMA device");
    }
    free(path);
    free(ours);
    free(launcher);
}

/* Of two rows of one name that are for different versions, the one that fits. */
static bool fits(const struct crosscheck *c, const struct witness *w, char *version, size_t len)
{
    char *path = path_program(w->program);
    bool known = !path || witness_fits(w, ask_version(c, w, path, version, len));

    if (!path) /* absent: shown once */
        known = !w->from;
    free(path);
    return known;
}

/* Makes the comparisons that --only leaves, and says of each whether its program is here. 0;
 * -ENOENT: --only leaves none; -ENOMEM. With c->error. */
static int crosscheck_plan(struct crosscheck *c)
{
    size_t all = 0;

    choose_device(c);
    if (!c->options.gpus)
        c->options.gpus = count_gpus();
    while (witness_table[all].name)
        all++;
    c->comparisons = calloc(all + 1, sizeof(*c->comparisons));
    if (!c->comparisons) {
        snprintf(c->error, sizeof(c->error), "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < all; i++) {
        struct comparison *m = &c->comparisons[c->n];
        *m = (struct comparison){.w = &witness_table[i],
                                 .streams = witness_table[i].gpus ? c->options.gpus
                                                                  : witness_table[i].streams};
        if ((c->options.only && !matches(c->options.only, m->w)) ||
            !fits(c, m->w, m->version, sizeof(m->version)))
            continue;
        look(c, m);
        c->n++;
    }
    if (c->n)
        return 0;
    snprintf(c->error, sizeof(c->error),
             "no witness is named as --only '%s' says; there are:", c->options.only);
    for (size_t i = 0; i < all; i++) {
        size_t at = strlen(c->error);
        if (!i || strcmp(witness_table[i].name, witness_table[i - 1].name) != 0)
            snprintf(c->error + at, sizeof(c->error) - at, " %s", witness_table[i].name);
    }
    return -ENOENT;
}

static void crosscheck_release(struct crosscheck *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->comparisons[i].ours);
        free(c->comparisons[i].theirs);
        free(c->comparisons[i].printed);
    }
    free(c->comparisons);
    free(c->folder);
}

/* ---- The folder ---- */

/*
 * The files of a crosscheck:
 *   crosscheck.csv    a line a comparison      crosscheck.json   the same and more, for programs
 *   pairs.csv         a line a pair, written as they end
 *   log/              what every run of both printed: NAME-PAIR-WHAT
 */

static int fail(struct crosscheck *c, const char *what, const char *path)
{
    int err = errno ? -errno : -EIO;

    snprintf(c->error, sizeof(c->error), "cannot %s '%.400s': %s", what, path, strerror(-err));
    return err;
}

static int fail_folder(struct crosscheck *c)
{
    int err = -errno;

    snprintf(c->error, sizeof(c->error),
             "cannot make the folder '%.400s': %s; name another with --out", c->folder,
             strerror(-err));
    /* c->folder is freed with c; the analyzer takes it for overwritten by what is printed beside it. */
    return err; /* NOLINT(clang-analyzer-unix.Malloc) */
}

/* folder/name */
static const char *crosscheck_path(const struct crosscheck *c, const char *name,
                                   char path[PATH_BYTES_MAX])
{
    snprintf(path, PATH_BYTES_MAX, "%s/%s", c->folder, name);
    return path;
}

static int choose_folder(struct crosscheck *c)
{
    char path[64];
    time_t now = time(NULL);
    struct tm tm;

    if (c->options.out) {
        c->folder = strdup(c->options.out);
    } else {
        gmtime_r(&now, &tm);
        strftime(path, sizeof(path), "results/crosscheck-%Y%m%d-%H%M%S", &tm);
        int err = store_make_results(c->error, sizeof(c->error));
        if (err)
            return err;
        c->folder = strdup(path);
    }
    if (c->folder && strlen(c->folder) < PATH_BYTES_MAX - 128)
        return 0;
    errno = c->folder ? ENAMETOOLONG : ENOMEM;
    return fail(c, "make", c->options.out ? c->options.out : path);
}

/* Makes the folder, log/ in it and pairs.csv. 0 or -errno with c->error. */
static int crosscheck_open_folder(struct crosscheck *c)
{
    char path[PATH_BYTES_MAX];
    int err = choose_folder(c);

    if (err)
        return err;
    if (mkdir(c->folder, 0755)) /* one that is there holds another's results */
        return fail_folder(c);
    if (mkdir(crosscheck_path(c, "log", path), 0755))
        return fail(c, "make", path);
    c->pairs_file = fopen(crosscheck_path(c, "pairs.csv", path), "we");
    if (!c->pairs_file)
        return fail(c, "write", path);
    fputs("witness,pair,first,unit,ours,theirs,ratio,printed,printed_unit,cpus,detail\n",
          c->pairs_file);
    return fflush(c->pairs_file) ? fail(c, "write", path) : 0;
}

static int crosscheck_close_folder(struct crosscheck *c)
{
    char path[PATH_BYTES_MAX];
    int failed = c->pairs_file && fclose(c->pairs_file);

    c->pairs_file = NULL;
    return failed ? fail(c, "write", crosscheck_path(c, "pairs.csv", path)) : 0;
}

int crosscheck_keep(struct crosscheck *c, const struct comparison *m, const char *what,
                    const struct buffer *text)
{
    char name[96], path[PATH_BYTES_MAX];

    if (!text->size)
        return 0;
    snprintf(name, sizeof(name), "log/%.40s-%03zu-%.32s", m->w->name, m->pairs + 1, what);
    int fd = open(crosscheck_path(c, name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail(c, "write", path);
    int err = write_all(fd, text->text, text->size);
    if (close(fd) && !err)
        err = -errno;
    errno = -err;
    return err ? fail(c, "write", path) : 0;
}

int crosscheck_keep_pair(struct crosscheck *c, const struct comparison *m, bool ours_first)
{
    char path[PATH_BYTES_MAX];
    FILE *out = c->pairs_file;
    size_t i = m->pairs;

    fprintf(out, "%s,%zu,%s,%s,", m->w->name, i + 1, ours_first ? "ours" : "theirs", m->w->unit);
    csv_print_number(out, m->ours[i]);
    putc(',', out);
    csv_print_number(out, m->theirs[i]);
    putc(',', out);
    csv_print_number(out, m->ours[i] / m->theirs[i]);
    putc(',', out);
    csv_print_number(out, m->printed[i]);
    fprintf(out, ",%s,", m->figure.printed_unit);
    csv_print(out, m->last.cpus);
    putc(',', out);
    csv_print(out, m->last.detail);
    putc('\n', out);
    return fflush(out) ? fail(c, "write", crosscheck_path(c, "pairs.csv", path)) : 0;
}

/* ---- The command ---- */

#define AT(member) offsetof(struct crosscheck_options, member)

static const struct opt table[] = {
    {.name = "only",
     .type = OPT_STRING,
     .offset = AT(only),
     .arg = "PATTERN",
     .help = "only these witnesses or programs (* ? [..] as in a shell; several: a,b)"},
    {.name = "pairs",
     .letter = 'n',
     .type = OPT_U64,
     .offset = AT(pairs),
     .def = "10",
     .min = 1,
     .max = 1000,
     .help = "pairs of runs for each program; below 6 there is no interval"},
    {.name = "seconds",
     .letter = 's',
     .type = OPT_U64,
     .offset = AT(seconds),
     .def = "2",
     .min = 1,
     .max = 600,
     .help = "seconds that each run measures, without its warm-up"},
    {.name = "timeout",
     .type = OPT_DURATION,
     .offset = AT(timeout_ns),
     .arg = "TIME",
     .help = "longest time of a run; one that takes longer is stopped and fails. Default: 30 s and "
             "five times --seconds"},
    {.name = "device",
     .letter = 'd',
     .type = OPT_STRING,
     .offset = AT(device),
     .arg = "DEVICE[:PORT]",
     .help = "device for RDMA; default: the first one"},
    {.name = "gpus",
     .letter = 'g',
     .type = OPT_U64,
     .offset = AT(gpus),
     .def = "0",
     .max = 1024,
     .arg = "N",
     .help = "ranks of NCCL, a GPU each; 0: a rank for each GPU"},
    {.name = "out",
     .letter = 'o',
     .type = OPT_STRING,
     .offset = AT(out),
     .arg = "DIR",
     .help = "folder to make; default: results/crosscheck-TIME"},
    {.name = "csv", .type = OPT_FLAG, .offset = AT(csv), .help = "print CSV, not the table"},
    {.name = "json", .type = OPT_FLAG, .offset = AT(json), .help = "print JSON, not the table"},
    {.name = "help", .letter = 'h', .type = OPT_FLAG, .offset = AT(help), .help = "show this text"},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb crosscheck: compare our figures with those of other programs\n"
         "\n"
         "usage: plumb crosscheck [options]\n"
         "\n"
         "Runs iperf3, perftest (ib_write_bw and similar), "
         "osu_allreduce,\n"
         "nccl-tests and nvbandwidth, if they are in PATH, in turn with our own benchmark. Size, "
         "streams,\n"
         "duration and CPUs are the same, and both ends are on this machine. Nothing is installed. "
         "Prints the "
         "ratio ours /\n"
         "theirs with its interval, after a conversion to one definition, and describes the "
         "conversion.\n");
    opts_help(o, stdout);
    puts("\n"
         "verdicts: agree (the interval is within 2 % of 1; for CPU time within 15 %), ours faster "
         "or slower\n"
         "          (the interval excludes 1), undecided\n"
         "exit: 0 all agree or ours is better, 1 ours is worse in one, or a ratio shows a wrong "
         "definition,\n"
         "      2 usage, 3 one is undecided, 4 one failed, nothing could be run, or an interrupt; "
         "if several\n"
         "      apply, the first of 1, 4, 3");
}

static bool prints_table(const struct crosscheck *c)
{
    return !c->options.csv && !c->options.json;
}

static bool can_run(const struct comparison *m)
{
    return m->state == COMPARISON_TODO;
}

static int run_all(struct crosscheck *c)
{
    int err = 0;

    for (size_t i = 0; !err && i < c->n; i++) {
        struct comparison *m = &c->comparisons[i];
        if (can_run(m)) {
            size_t done = c->progress.done;
            if (!c->progress.out)
                fprintf(stderr, "plumb crosscheck: %s\n", m->w->name);
            err = comparison_run(c, m);
            c->progress.done = done + 2 * (size_t)c->options.pairs; /* also where it failed */
            progress_clear(&c->progress);
        }
        if (prints_table(c) && !err)
            show_comparison(stdout, c, m);
    }
    return err;
}

/* Whatever was measured is kept, also after an interrupt. */
static int write_results(struct crosscheck *c)
{
    static const char *const names[] = {"crosscheck.csv", "crosscheck.json"};
    char path[PATH_BYTES_MAX];
    int err = crosscheck_close_folder(c);

    for (int i = 0; !err && i < 2; i++) {
        FILE *out = fopen(crosscheck_path(c, names[i], path), "we");
        err = out ? 0 : -errno;
        if (out && i == 0)
            show_csv(out, c);
        else if (out)
            err = show_json(out, c);
        int lost = out ? stream_finish(out) : 0;
        err = lost ? lost : err;
        if (err)
            snprintf(c->error, sizeof(c->error), "cannot write '%.400s': %s", path, strerror(-err));
    }
    return err;
}

static int status_of(const struct crosscheck *c)
{
    bool failed = false, undecided = false, worse = false, ran = false;

    for (size_t i = 0; i < c->n; i++) {
        const struct comparison *m = &c->comparisons[i];
        bool done = m->state == COMPARISON_DONE;
        ran = ran || done;
        failed = failed || m->state == COMPARISON_FAILED || m->state == COMPARISON_TODO;
        undecided = undecided || (done && m->judgement.verdict == VERDICT_UNDECIDED);
        worse = worse || (done && (m->judgement.verdict == VERDICT_WORSE || m->judgement.suspect));
    }
    return worse            ? EXIT_BAD
           : failed || !ran ? EXIT_INCOMPLETE
           : undecided      ? EXIT_UNDECIDED
                            : EXIT_GOOD;
}

static int finish(struct crosscheck *c, int err)
{
    int write_err = c->pairs_file ? write_results(c) : 0;

    if (c->options.csv)
        show_csv(stdout, c);
    if (c->options.json && show_json(stdout, c))
        write_err = -ENOMEM;
    if (prints_table(c) && c->folder)
        show_end(stdout, c);
    if (err == -ECANCELED)
        fputs("plumb crosscheck: interrupted\n", stderr);
    else if (err || write_err)
        fprintf(stderr, "plumb crosscheck: %s\n", *c->error ? c->error : "out of memory");
    return err || write_err ? EXIT_INCOMPLETE : status_of(c);
}

static int crosscheck(struct crosscheck *c)
{
    size_t runs = 0;
    int err = crosscheck_plan(c);

    if (err) {
        fprintf(stderr, "plumb crosscheck: %s\n", c->error);
        return err == -ENOENT ? EXIT_USAGE : EXIT_INCOMPLETE;
    }
    for (size_t i = 0; i < c->n; i++)
        runs += can_run(&c->comparisons[i]) ? 2 * (size_t)c->options.pairs : 0;
    if (crosscheck_open_folder(c)) {
        fprintf(stderr, "plumb crosscheck: %s\n", c->error);
        return EXIT_USAGE;
    }
    c->cancel = cancel_on_signals();
    progress_start(&c->progress, stderr, runs, 0);
    c->progress.log = NULL; /* off a terminal: a line a witness */
    if (prints_table(c))
        show_begin(stdout, c);
    err = run_all(c);
    return finish(c, err);
}

int cmd_crosscheck(int argc, char **argv)
{
    const struct opt *tables[] = {table, NULL};
    struct crosscheck c = {0};
    struct opts o;
    int status = EXIT_USAGE, err = opts_init(&o, tables);

    if (!err)
        err = opts_parse(&o, argc, argv);
    if (!err)
        err = opts_apply(&o, table, NULL, &c.options);
    if (err) {
        fprintf(stderr, "plumb crosscheck: %s\n", o.error);
    } else if (c.options.help) {
        print_help(&o);
        status = EXIT_GOOD;
    } else if (o.n_args || (c.options.csv && c.options.json)) {
        fprintf(stderr, "plumb crosscheck: %s\n",
                o.n_args ? "it takes options alone: see --help" : "--csv or --json, not both");
    } else {
        if (!c.options.timeout_ns)
            c.options.timeout_ns = (30 + 5 * c.options.seconds) * 1000000000ull;
        status = crosscheck(&c);
    }
    crosscheck_release(&c);
    opts_release(&o);
    return status;
}
