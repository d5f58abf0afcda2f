/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OSU's micro-benchmarks: text. Latencies are half round trips, and a mean; those of collectives are
 * the mean over operations and ranks, and with -f the least and the largest rank's mean as well.
 * "MB/s" are 1e6 bytes; of both directions all bytes over the time, of several pairs all bytes over
 * the mean of the pairs' times. Where the buffers are is said of GPUs alone, and of several pairs
 * never. Of derived types (-D) the size is that of the buffer: less of it is sent.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

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
    int err = 0;

    if (words_columns(r, w, header->n) || words_columns(r, header, w->n))
        return -EBADMSG;
    struct foreign_line *line = reading_add(r);
    const char *const facts[][2] = {{"test", of->test},     {"memory", of->memory},
                                    {"size", w->all[0]},    {"dtype", reading_dtype(of->dtype)},
                                    {"sender", of->sender}, {"receiver", of->receiver},
                                    {"pairs", of->pairs}};
    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        reading_fact(r, line, facts[i][0], "%s", facts[i][1]);
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

/* With -T all a title has a table for each type, and each table names its own. */
int read_osu(struct foreign_reading *r)
{
    const char *title = reading_match(r, r->text, "^# OSU (.*)$"), *at = r->text, *line;
    const char *memory = reading_match(r, title, "^MPI-([A-Z]+)");
    const char *test = reading_match(r, title, "^MPI[-A-Z]* (.*) v[0-9]");
    /* Facts are compared word by word. */
    char *copy = (char *)pool_text(&r->out->pool, "%s", test);

    for (char *blank = copy; (blank = strchr(blank, ' ')) != NULL;)
        *blank = '-';
    struct osu of = {.test = copy,
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
