/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perftest's ib_* programs: text, and JSON (--out_json). Read in its sources, versions 4.5 to 6.29.
 *
 * Bandwidth is in "MB/sec" (later "MiB/sec") of 2^20 bytes, or in 1e9 bits with --report_gbits; its
 * average is bytes over time. The JSON does not tell which of the two: the rate of messages, which
 * stands beside it, does. Of both directions it is the sum. Latencies are half round trips, but
 * whole ones of reads and atomics; t_typical is the median, without the two slowest. Not taken are
 * t_max, which is the second slowest, and t_stdev, which is of deviations cut to whole us.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

/* What the names of its test say: "RDMA_Write Bidirectional BW Test". */
static void add_test(struct foreign_reading *r, struct foreign_line *line, const char *title)
{
    reading_fact(r, line, "verb", "%s",
                 strcasestr(title, "Write_imm") || strstr(title, "Write with") ? "write-imm"
                 : strstr(title, "RDMA_Write")                                 ? "write"
                 : strstr(title, "RDMA_Read")                                  ? "read"
                 : strcasestr(title, "Send_imm")                               ? "send-imm"
                 : strstr(title, "Send")                                       ? "send"
                 : strstr(title, "Atomic")                                     ? "atomic"
                                                                               : "");
    reading_fact(r, line, "test", "%s",
                 strstr(title, "Latency") ? "latency"
                 : strstr(title, "BW")    ? "bandwidth"
                                          : "");
    if (*title)
        reading_fact(r, line, "direction", "%s",
                     strstr(title, "Bidirectional") ? "both" : "forward");
    reading_fact(r, line, "post_list", "%s", strstr(title, "Post") ? "1" : "");
    reading_fact(r, line, "way", "%s",
                 strstr(title, "forwarding")  ? "forwarding"
                 : strstr(title, "Multicast") ? "multicast"
                                              : "");
}

/* Of this end's buffers. Where none is named they are the host's, or those of a GPU that an older
 * version does not name. */
static void add_memory(struct foreign_reading *r, struct foreign_line *line, bool other, bool gpu)
{
    reading_fact(r, line, "memory", "%s", other ? "other" : gpu ? "cuda:*" : "");
}

static bool near(double a, double b, double slack)
{
    return fabs(a - b) <= slack * b;
}

/* Its bandwidth against the rate of messages (1e6 a second, to 1e-6), by both units. 0, or
 * -EBADMSG: it is neither. Too few messages to tell leave what the text says. */
static int unit_of(struct foreign_reading *r, double size, double average, double mops, bool told,
                   enum foreign_unit *unit)
{
    double gbits = 8 * mops * size / 1e3, slack = 0.005 / average + 0.0000006 / mops + 0.002;

    if (!(mops > 0) || slack > 0.02)
        return told ? 0 : reading_bad(r, "too few messages to tell the unit of its bandwidth");
    if (told && near(average * reading_scale(*unit), gbits, slack))
        return 0;
    if (!told && near(average * reading_scale(PRINTED_MIB_S), gbits, slack))
        *unit = PRINTED_MIB_S;
    else if (!told && near(average * reading_scale(PRINTED_GBIT_S), gbits, slack))
        *unit = PRINTED_GBIT_S;
    else
        return reading_bad(r,
                           "its bandwidth, %g, and its rate of %g million messages of %.0f bytes "
                           "contradict each other",
                           average, mops, size);
    return 0;
}

static int add_bandwidth(struct foreign_reading *r, struct foreign_line *line, double size,
                         double average, double mops, bool told, enum foreign_unit unit)
{
    int err = unit_of(r, size, average, mops, told, &unit);

    if (err)
        return err;
    reading_figure(line, "average_bandwidth", "", average, unit);
    if (mops > 0)
        reading_figure(line, "message_rate", "", mops, PRINTED_MOP_S);
    return 0;
}

/* ---- Text ---- */

/* Columns of its header: "BW peak[MB/sec]" and "99% percentile[usec]" are one each. */
static void join_columns(struct foreign_reading *r, struct words *w)
{
    static const char *const first[] = {"BW", "99%", "99.9%", "tps", "MsgRate", NULL};
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        bool two = false;

        for (size_t k = 0; first[k]; k++)
            two = two || !strcmp(w->all[i], first[k]);
        if (two && i + 1 < w->n) {
            w->all[n++] = (char *)pool_text(&r->out->pool, "%s %s", w->all[i], w->all[i + 1]);
            i++;
        } else {
            w->all[n++] = w->all[i];
        }
    }
    w->n = n;
}

/* The number in a column; 0: there is no such column, NaN: it is no number above 0. */
static double number_in(struct foreign_reading *r, const struct words *header,
                        const struct words *w, const char *column)
{
    size_t i = words_find(header, column, 0);
    double value;

    if (i >= header->n || i >= w->n)
        return 0;
    return reading_number(r, w->all[i], &value) ? NAN : value;
}

/* By the names of text and JSON. Each output has the first two; the others may be none. */
static const struct {
    const char *statistic, *column, *key;
} latencies[] = {
    {"p50", "t_typical[usec]", "t_typical"},
    {"mean", "t_avg[usec]", "t_avg"},
    {"min", "t_min[usec]", "t_min"},
    {"p99", "99% percentile[usec]", "percentile_99"},
    {"p999", "99.9% percentile[usec]", "percentile_99.9"},
};

#define LATENCIES (sizeof(latencies) / sizeof(*latencies))

static int add_latency(struct foreign_reading *r, struct foreign_line *line,
                       const struct words *header, const struct words *w)
{
    for (size_t i = 0; i < LATENCIES; i++) {
        double value = number_in(r, header, w, latencies[i].column);

        if (isnan(value) && i < 2)
            return -EBADMSG;
        reading_figure(line, "latency", latencies[i].statistic, value, PRINTED_US);
    }
    *r->error = 0;
    return 0;
}

static int read_row(struct foreign_reading *r, const struct words *header, const struct words *w,
                    const char *title)
{
    static const struct {
        const char *column;
        enum foreign_unit unit;
    } averages[] = {{"BW average[MB/sec]", PRINTED_MIB_S},
                    {"BW average[MiB/sec]", PRINTED_MIB_S},
                    {"BW average[Gb/sec]", PRINTED_GBIT_S}};
    struct foreign_line *line = reading_add(r);
    double size, value = 0, mops = number_in(r, header, w, "MsgRate[Mpps]");

    int err = words_columns(r, w, header->n);

    err = err ? err : reading_number(r, w->all[0], &size);
    if (err)
        return err;
    reading_fact(r, line, "size", "%.0f", size);
    add_test(r, line, title);
    line->samples = strtoull(w->all[1], NULL, 10);
    for (size_t i = 0; i < 3; i++) {
        value = number_in(r, header, w, averages[i].column);
        if (value > 0)
            return add_bandwidth(r, line, size, value, isnan(mops) ? 0 : mops, true,
                                 averages[i].unit);
        if (isnan(value))
            return -EBADMSG;
    }
    return add_latency(r, line, header, w);
}

/* By the text's pattern and the JSON's name; NULL: it does not tell. */
static const struct {
    const char *fact, *pattern, *key;
} settings[] = {
    {"device", "[^-_]Device *: *([^ \t]+)", "Device"},
    {"qps", "Number of qps *: ([0-9]+)", "Number_of_qps"},
    {"connection", "Connection type *: *([A-Za-z]+)", "Connection_type"},
    {"depth", "TX depth *: ([0-9]+)", "TX_depth"},
    {"moderation", "CQ Moderation *: ([0-9]+)", "CQ_Moderation"},
    {"mtu", "Mtu *: ([0-9]+)", "Mtu"},
    {"inline", "Max inline data *: ([0-9]+)", "Max_inline_data"},
    {"dual", "Dual-port *: (ON)", NULL},
    {"link", "Link type *: ([A-Za-z]+)", "Link_type"},
    {"received", "Recv Post List *: ([0-9]+)", NULL},
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))

static void add_settings(struct foreign_reading *r, struct foreign_line *line)
{
    const char *events = reading_match(r, r->text, "^ *(Test with events)");

    for (size_t i = 0; i < SETTINGS; i++) {
        const char *value = reading_match(r, r->text, settings[i].pattern);

        reading_fact(r, line, settings[i].fact, "%.*s", (int)strcspn(value, "\t"), value);
    }
    reading_fact(r, line, "completion", "%s", *events ? "event" : "poll");
    add_memory(r, line,
               *reading_match(r, r->text, "(Use (ROCm|MUSA) memory *: ON|Using ROCm)") != 0,
               *reading_match(r, r->text, "(Picking GPU number|GPU buffer)") != 0);
}

/* The figures stand under the header, up to a line of '-'. */
int read_perftest_text(struct foreign_reading *r)
{
    const char *title = reading_match(r, r->text, PERFTEST_TITLE), *at = r->text;
    const char *line;
    struct words header = {.n = 0}, w;
    size_t before = r->out->n;
    bool ended = false;
    int err = 0;

    while (!err && reading_line(r, &at, &line)) {
        reading_words(r, line, &w);
        if (w.n > 2 && !strcmp(w.all[0], "#bytes")) {
            header = w;
            join_columns(r, &header);
        } else if (header.n && w.n && w.all[0][0] == '-') {
            ended = true;
        } else if (header.n && !ended && words_number(&w)) {
            err = read_row(r, &header, &w, title);
        }
    }
    if (!err && (!ended || reading_count(r->text, PERFTEST_TITLE) > 1))
        err = reading_bad(r, "it is cut off: its results have no end");
    for (size_t i = before; !err && i < r->out->n; i++)
        add_settings(r, &r->out->lines[i]);
    return err;
}

/* ---- JSON ---- */

static void add_settings_json(struct foreign_reading *r, struct foreign_line *line)
{
    const json_t *info = json_object_get(r->json, "test_info");

    for (size_t i = 0; i < SETTINGS; i++) {
        const json_t *value = settings[i].key ? json_object_get(info, settings[i].key) : NULL;

        if (json_is_integer(value))
            reading_fact(r, line, settings[i].fact, "%lld", (long long)json_integer_value(value));
        else if (value)
            reading_fact(r, line, settings[i].fact, "%s",
                         reading_json_text(r, info, settings[i].key));
    }
    reading_fact(r, line, "completion", "%s",
                 *reading_json_text(r, info, "Test with events") ? "event" : "poll");
    reading_fact(r, line, "dual", "%s",
                 strcmp(reading_json_text(r, info, "Dual_port"), "ON") ? "" : "ON");
    reading_fact(r, line, "received", "%s", json_object_get(info, "Recv_Post_List") ? "1" : "");
    add_memory(r, line,
               json_object_get(info, "musa_device") ||
                   !strcmp(reading_json_text(r, info, "Use_ROCm_memory"), "ON"),
               json_object_get(info, "cuda_device") != NULL);
}

int read_perftest_json(struct foreign_reading *r)
{
    const json_t *results = json_object_get(r->json, "results");
    const json_t *average = json_object_get(results, "BW_average");
    struct foreign_line *line = reading_add(r);
    double size;
    int err = reading_json_number(r, results, "MsgSize", &size);

    if (err)
        return err;
    reading_fact(r, line, "size", "%.0f", size);
    add_test(r, line, reading_json_text(r, r->json, "test_info.test"));
    add_settings_json(r, line);
    line->samples = (uint64_t)json_integer_value(json_object_get(results, "n_iterations"));
    if (!average) {
        for (size_t i = 0; i < LATENCIES; i++)
            if (latencies[i].key)
                reading_figure(line, "latency", latencies[i].statistic,
                               json_number_value(json_object_get(results, latencies[i].key)),
                               PRINTED_US);
        return line->n_figures ? 0 : reading_bad(r, "its results have no figure that is known");
    }
    return add_bandwidth(r, line, size, json_number_value(average),
                         json_number_value(json_object_get(results, "MsgRate")), false,
                         PRINTED_MIB_S);
}
