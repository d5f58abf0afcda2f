/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OSU's micro-benchmarks and IMB: text.
 *
 *   OSU  latencies are half round trips, and a mean; those of collectives are the mean over
 *        operations and ranks, and with -f the least and the largest rank's mean as well. "MB/s" are
 *        1e6 bytes; of both directions all bytes over the time, of several pairs all bytes over the
 *        mean of the pairs' times. Where the buffers are is said of GPUs alone, and of several pairs
 *        never. Of derived types (-D) the size is that of the buffer: less of it is sent
 *   IMB  t_max is the mean of the slowest rank, t_avg the mean over ranks. Its build for GPUs has
 *        "(GPU)" in its title, and buffers there unless -mem_alloc_type says otherwise; whose GPUs
 *        they are is not told. With -multi, groups of ranks run at once, and the benchmark is called
 *        Multi-NAME where there are several: with 0 a line is of all of them, with 1 of the group in
 *        its first column. Built with CHECK it compares data: a line is wrong from IMB's own
 *        tolerance on
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

/* ---- OSU ---- */

/* Names of columns have single blanks in them: they are parted by two or more. */
static void cut_columns(struct foreign_reading *r, const char *line, struct words *w)
{
    w->n = 0;
    for (line += strspn(line, "# \t"); *line && w->n < READING_WORDS;) {
        const char *end = strstr(line, "  ");
        size_t n = end ? (size_t)(end - line) : strlen(line);

        while (n && isspace((unsigned char)line[n - 1]))
            n--;
        w->all[w->n++] = (char *)pool_text(&r->out->pool, "%.*s", (int)n, line);
        line += n;
        line += strspn(line, " \t\r");
    }
}

/* What a column is of; NULL: nothing that is known. */
static const char *osu_quantity(const char *column, const char **statistic, enum foreign_unit *unit)
{
    static const struct {
        const char *column, *quantity, *statistic;
        enum foreign_unit unit;
    } columns[] = {
        {"Latency (us)", "latency", "mean", PRINTED_US},
        {"Avg Latency(us)", "latency", "mean", PRINTED_US},
        {"Avg Lat(us)", "latency", "mean", PRINTED_US},
        {"Max Latency(us)", "slowest", "mean", PRINTED_US},
        {"P50 Tail Lat(us)", "latency", "p50", PRINTED_US},
        {"P95 Tail Lat(us)", "latency", "p95", PRINTED_US},
        {"P99 Tail Lat(us)", "latency", "p99", PRINTED_US},
        {"Bandwidth (MB/s)", "average_bandwidth", "", PRINTED_MB_S},
        {"MB/s", "average_bandwidth", "", PRINTED_MB_S},
        {"Messages/s", "message_rate", "", PRINTED_OP_S},
    };

    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
        if (!strcmp(columns[i].column, column)) {
            *statistic = columns[i].statistic;
            *unit = columns[i].unit;
            return columns[i].quantity;
        }
    return NULL;
}

/* What a whole output says. */
struct osu {
    const char *test, *memory, *dtype, *pairs;
    const char *sender, *receiver; /* places of their buffers; "" is not told */
};

/* "D" is a GPU's memory, of NVIDIA's where it is by CUDA; "H" is the host's. Managed memory ("MD") is
 * at none of them for sure, and other makers' GPUs ("ROCM") have no name here. */
static const char *osu_place(struct foreign_reading *r, const char *pattern, const char *memory)
{
    const char *where = reading_match(r, r->text, pattern);

    if (*reading_match(r, r->text, "^# \\[ (pairs):"))
        return "";
    return !*memory || !strcmp(where, "H")                  ? "host"
           : !strcmp(where, "D") && !strcmp(memory, "CUDA") ? "cuda:*"
                                                            : "";
}

static int osu_row(struct foreign_reading *r, const struct words *header, const struct words *w,
                   const struct osu *of)
{
    struct foreign_line *line;
    int err = 0;

    if (w->n != header->n)
        return reading_bad(r, "a line of its results has %zu columns, not %zu", w->n, header->n);
    line = reading_add(r);
    if (!line)
        return -ENOMEM;
    reading_fact(r, line, "test", "%s", of->test);
    reading_fact(r, line, "memory", "%s", of->memory);
    reading_fact(r, line, "size", "%s", w->all[0]);
    reading_fact(r, line, "dtype", "%s", reading_dtype(of->dtype));
    reading_fact(r, line, "sender", "%s", of->sender);
    reading_fact(r, line, "receiver", "%s", of->receiver);
    reading_fact(r, line, "pairs", "%s", of->pairs);
    for (size_t i = 1; !err && i < w->n; i++) {
        enum foreign_unit unit;
        const char *statistic, *quantity = osu_quantity(header->all[i], &statistic, &unit);
        double value;

        if (!strcmp(header->all[i], "Transmit Size"))
            reading_fact(r, line, "sent", "%s", w->all[i]);
        if (!strcmp(header->all[i], "Iterations"))
            line->samples = strtoull(w->all[i], NULL, 10);
        if (!strcmp(header->all[i], "Validation") && strcmp(w->all[i], "Pass") != 0) {
            line->status = "wrong";
            line->reason = "the program found wrong data";
        }
        err = quantity ? reading_number(r, w->all[i], &value) : 0;
        if (!err && quantity)
            reading_figure(line, quantity, statistic, value, unit);
    }
    reading_fact(r, line, "full", "%s", foreign_find(line, "slowest", "mean") ? "1" : "");
    return err || line->n_figures ? err : reading_bad(r, "it has no column that is known");
}

/* Facts are compared word by word. */
static const char *hyphened(struct foreign_reading *r, const char *text)
{
    char *copy = (char *)pool_text(&r->out->pool, "%s", text);

    for (char *at = copy; (at = strchr(at, ' ')) != NULL;)
        *at = '-';
    return copy;
}

/* With -T all a title has a table for each type, and each table names its own. */
int read_osu(struct foreign_reading *r)
{
    const char *title = reading_match(r, r->text, "^# OSU (.*)$"), *at = r->text, *line;
    const char *memory = reading_match(r, title, "^MPI-([A-Z]+)");
    const char *test = reading_match(r, title, "^MPI[-A-Z]* (.*) v[0-9]");
    struct osu of = {.test = hyphened(r, test),
                     .memory = memory,
                     .dtype = "",
                     .pairs = reading_match(r, r->text, "^# \\[ pairs: *([0-9]+) *\\]"),
                     .sender = osu_place(r, "^# Send Buffer on [A-Z ]*\\(([A-Z]+)\\)", memory),
                     .receiver = osu_place(
                         r, "^# Send Buffer on .*Receive Buffer on [A-Z ]*\\(([A-Z]+)\\)", memory)};
    struct words header = {.n = 0}, w;
    int err = 0;

    r->out->version = reading_match(r, title, " v([0-9.]+)");
    while (!err && reading_line(r, &at, &line)) {
        reading_words(r, line, &w);
        if (w.n > 2 && !strcmp(w.all[0], "#") && !strcmp(w.all[1], "Datatype:")) {
            of.dtype = reading_match(r, line, "Datatype: *([A-Z_0-9]+)");
            header.n = 0;
        } else if (w.n > 2 && !strcmp(w.all[0], "#") && !strcmp(w.all[1], "Size")) {
            if (header.n)
                return reading_bad(r, "it holds several tables, and one title that says of what");
            cut_columns(r, line, &header);
        } else if (header.n && w.n && isdigit((unsigned char)*w.all[0]))
            err = osu_row(r, &header, &w, &of);
    }
    if (!err && r->text[strlen(r->text) - 1] != '\n')
        err = reading_bad(r, "it is cut off: its last line has no end");
    return err;
}

/* ---- IMB ---- */

#define IMB_DEFECT 0.01 /* TOL of its sources */

/* Up to 2018 a long one goes on in further lines, which begin with blanks. */
static const char *imb_command(struct foreign_reading *r)
{
    const char *from = strstr(r->text, "# Calling sequence was:"), *line, *command = "";
    struct words w;

    if (from)
        from += strcspn(from, "\n");
    while (from && reading_line(r, &from, &line)) {
        reading_words(r, line, &w);
        if (w.n < 2 && *command)
            break;
        for (size_t i = 1; i < w.n; i++)
            command = pool_text(&r->out->pool, "%s%s%s", command, *command ? " " : "", w.all[i]);
    }
    return command;
}

/* By default each operation follows a barrier. */
static bool no_barrier(struct foreign_reading *r)
{
    return *reading_match(r, r->out->command, " -sync +(off|0|no|disable)( |$)");
}

static bool on_gpus(struct foreign_reading *r)
{
    return *reading_match(r, r->text, "MPI Benchmarks .*\\((GPU)\\)") &&
           !*reading_match(r, r->out->command, " -mem_alloc_type +(cpu|host)( |$)");
}

/* What a table is of. */
struct imb_table {
    const char *benchmark;
    unsigned long long ranks, groups; /* of a group; how many run at once. 0: not told */
    struct words header;              /* none: its lines are still to come */
};

/* What ended a benchmark before its time stands in place of the values. */
static const char *imb_failure(const struct words *w)
{
    static const char *const failures[] = {"out-of-mem.;", "int-overflow;", "time-out.;"};

    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < sizeof(failures) / sizeof(*failures); k++)
            if (!strcmp(w->all[i], failures[k]))
                return k == 0   ? "the program had too little memory for it"
                       : k == 1 ? "the program's numbers were too small for it"
                                : "the program's time for it was over";
    return NULL;
}

static void imb_facts(struct foreign_reading *r, const struct imb_table *t, const struct words *w,
                      struct foreign_line *line)
{
    size_t at = words_find(&t->header, "#bytes", 0), group = words_find(&t->header, "Group", 0);
    unsigned long long size = at < w->n ? strtoull(w->all[at], NULL, 10) : 0;

    reading_fact(r, line, "test", "%s", t->benchmark);
    if (t->ranks)
        reading_fact(r, line, "ranks", "%llu", t->ranks);
    if (t->groups > 1)
        reading_fact(r, line, "groups", "%llu", t->groups);
    if (t->groups > 1 && group < w->n)
        reading_fact(r, line, "group", "%s", w->all[group]);
    reading_fact(r, line, "dtype", "%s",
                 reading_dtype(
                     reading_match(r, r->text, "^# MPI_Datatype for reductions +: +([A-Z_0-9]+)")));
    reading_fact(r, line, "size", "%llu", size);
    if (t->ranks)
        reading_fact(r, line, "total", "%llu", size * t->ranks);
    reading_fact(r, line, "sync", "%s", no_barrier(r) ? "off" : "");
    reading_fact(r, line, "memory", "%s", on_gpus(r) ? "gpu" : "");
}

static int imb_values(struct foreign_reading *r, const struct imb_table *t, const struct words *w,
                      struct foreign_line *line)
{
    static const char *const columns[][3] = {{"t_max[usec]", "slowest", "mean"},
                                             {"t_avg[usec]", "latency", "mean"},
                                             {"t[usec]", "latency", "mean"}};
    size_t count = words_find(&t->header, "#repetitions", 0),
           defects = words_find(&t->header, "defects", 0);
    double value = 0;
    int err = 0;

    if (count < w->n)
        line->samples = strtoull(w->all[count], NULL, 10);
    for (size_t i = 0; !err && i < sizeof(columns) / sizeof(*columns); i++) {
        size_t at = words_find(&t->header, columns[i][0], 0);

        if (at >= w->n)
            continue;
        err = reading_number(r, w->all[at], &value);
        if (!err)
            reading_figure(line, columns[i][1], columns[i][2], value, PRINTED_US);
    }
    if (err || defects >= w->n || (reading_amount(w->all[defects], &value) && value <= IMB_DEFECT))
        return err;
    line->status = "wrong";
    line->reason = "the program found wrong data";
    return 0;
}

static int imb_row(struct foreign_reading *r, const struct imb_table *t, const struct words *w)
{
    const char *failure = imb_failure(w);
    struct foreign_line *line;

    if (!failure && w->n != t->header.n)
        return reading_bad(r, "a line of its results has %zu columns, not %zu", w->n, t->header.n);
    line = reading_add(r);
    if (!line)
        return -ENOMEM;
    imb_facts(r, t, w, line);
    if (!failure)
        return imb_values(r, t, w, line);
    line->status = "failed";
    line->reason = failure;
    return 0;
}

/* Lines of the head of a table: what is in it, and its columns. */
static bool imb_head(const struct words *w, struct imb_table *t)
{
    if (w->n > 2 && !strcmp(w->all[1], "Benchmarking"))
        *t = (struct imb_table){.benchmark = w->all[2]};
    else if (w->n > 3 && !strcmp(w->all[1], "#processes"))
        t->ranks = strtoull(w->all[3], NULL, 10);
    else if (w->n > 5 && !strcmp(w->all[1], "(") && !strcmp(w->all[3], "groups")) {
        t->groups = strtoull(w->all[2], NULL, 10);
        t->ranks = strtoull(w->all[5], NULL, 10);
    } else if (w->n > 2 && (!strcmp(w->all[0], "#bytes") || !strcmp(w->all[1], "#bytes")))
        t->header = *w;
    else
        return false;
    return true;
}

int read_imb(struct foreign_reading *r)
{
    const char *at = r->text, *line;
    bool whole = !strstr(r->text, "MPI Benchmarks") || strstr(r->text, "entering MPI_Finalize");
    struct imb_table table = {.benchmark = ""};
    struct words w;
    int err = 0;

    r->out->version = reading_match(r, r->text, "MPI Benchmarks ([0-9.]+)");
    r->out->command = imb_command(r);
    while (!err && reading_line(r, &at, &line)) {
        reading_words(r, line, &w);
        if (!imb_head(&w, &table) && table.header.n && w.n && isdigit((unsigned char)*w.all[0]))
            err = imb_row(r, &table, &w);
    }
    return err || whole ? err : reading_bad(r, "it is cut off: it does not say that it ended");
}
