/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iperf3 (JSON), sockperf and qperf: what their figures are of was read in their
 * sources or found by trying.
 *
 *   iperf3    bits/s that the receiver got over the time, without the omitted seconds (-O); no more
 *             than was asked for, where a rate was (-b, --fq-rate)
 *   sockperf  half round trips, or whole ones with --full-rtt; without its first 400 ms, its last
 *             50 ms and messages that got no answer. Under load, messages do not wait for answers,
 *             and by default each hundredth gets one
 *   qperf     latency: time over messages of both ways, the mean of half round trips. Bandwidth:
 *             bytes that the receiver got over its time. Its units are powers of 1000
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/foreign/foreign.h"

/* ---- iperf3 ---- */

/* Of --bidir the start has a flag since 3.13. From 3.8 on the reverse sums have names of their own;
 * before, they stand there twice under one. Each direction has its streams. */
static bool is_both(const struct foreign_reading *r)
{
    const json_t *test = reading_at(r->json, "start.test_start");

    return json_integer_value(json_object_get(test, "bidir")) == 1 || strstr(r->twice, "sum") ||
           reading_at(r->json, "end.sum_sent_bidir_reverse") ||
           reading_at(r->json, "end.sum_received_bidir_reverse") ||
           (json_integer_value(json_object_get(test, "num_streams")) > 0 &&
            (json_int_t)json_array_size(reading_at(r->json, "end.streams")) >
                json_integer_value(json_object_get(test, "num_streams")));
}

/* Was a rate asked for? Versions have it at one place or two; old ones do not tell. */
static bool is_paced(const struct foreign_reading *r)
{
    static const char *const places[] = {"start.test_start.target_bitrate", "start.target_bitrate",
                                         "start.test_start.fqrate", "start.fq_rate"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (json_number_value(reading_at(r->json, places[i])) > 0)
            return true;
    return false;
}

static void iperf3_start(struct foreign_reading *r, struct foreign_line *line)
{
    const json_t *test = reading_at(r->json, "start.test_start");
    const json_t *size = json_object_get(test, "blksize"),
                 *n = json_object_get(test, "num_streams");
    const json_t *seconds = reading_at(r->json, "start.timestamp.timesecs");
    bool reverse = json_integer_value(json_object_get(test, "reverse")) == 1;
    bool both = is_both(r);
    time_t when = (time_t)json_integer_value(seconds);
    struct tm utc;
    char text[32];

    r->out->version =
        reading_match(r, reading_json_text(r, r->json, "start.version"), "([0-9][0-9.]*)");
    r->out->host =
        reading_match(r, reading_json_text(r, r->json, "start.system_info"), "^[^ ]+ ([^ ]+) ");
    if (seconds && gmtime_r(&when, &utc) &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
        r->out->started = pool_text(&r->out->pool, "%s", text);
    reading_fact(r, line, "protocol", "%s", reading_json_text(r, test, "protocol"));
    reading_fact(r, line, "direction", "%s", both ? "both" : reverse ? "reverse" : "forward");
    if (json_is_integer(size))
        reading_fact(r, line, "size", "%lld", (long long)json_integer_value(size));
    if (json_is_integer(n))
        reading_fact(r, line, "streams", "%lld", (long long)json_integer_value(n));
    reading_fact(r, line, "paced", "%s", is_paced(r) ? "1" : "");
    reading_fact(r, line, "congestion", "%s",
                 reading_json_text(r, r->json, "end.sender_tcp_congestion"));
}

int read_iperf3(struct foreign_reading *r)
{
    const char *error = reading_json_text(r, r->json, "error");
    struct foreign_line *line;
    double bits;

    if (*error) {
        snprintf(r->error, r->len, "iperf3 failed: %s", error);
        return -EIO;
    }
    int err = reading_json_number(r, r->json, "end.sum_received.bits_per_second", &bits);
    if (err)
        return err;
    line = reading_add(r);
    if (!line)
        return -ENOMEM;
    iperf3_start(r, line);
    reading_figure(line, "average_bandwidth", "", bits, PRINTED_BIT_S);
    return 0;
}

/* ---- sockperf ---- */

/* Several messages are on their way at once: not each one is answered, or they go in bursts. */
static bool is_under_load(struct foreign_reading *r)
{
    const char *valid = strstr(r->text, "[Valid Duration]");
    double sent = strtod(reading_match(r, valid ? valid : "", "SentMessages=([0-9]+)"), NULL),
           got = strtod(reading_match(r, valid ? valid : "", "ReceivedMessages=([0-9]+)"), NULL);

    return sent > 1.5 * got || *reading_match(r, r->text, "Summary: .* of (burst) of ");
}

int read_sockperf(struct foreign_reading *r)
{
    static const struct {
        const char *statistic, *pattern;
    } figures[] = {
        {"p50", "percentile 50\\.000 = *([0-9.]+)"}, {"p95", "percentile 95\\.000 = *([0-9.]+)"},
        {"p99", "percentile 99\\.000 = *([0-9.]+)"}, {"p999", "percentile 99\\.900 = *([0-9.]+)"},
        {"max", "<MAX> observation = *([0-9.]+)"},   {"min", "<MIN> observation = *([0-9.]+)"},
        {"mean", "avg-(latency|rtt)=([0-9.]+)"},
    };
    bool whole = *reading_match(r, r->text, "Summary: (Round trip)") != 0;
    struct foreign_line *line;
    double value;

    size_t results = reading_count(r->text, figures[0].pattern);

    if (!results)
        return reading_bad(r, "it has no percentiles of a latency");
    if (results > 1)
        return reading_bad(r,
                           "it holds %zu results under one head, as of several servers at once: no "
                           "benchmark here measures that",
                           results);
    if (!*reading_match(r, r->text, figures[5].pattern))
        return reading_bad(r, "it is cut off: its last percentile is missing");
    line = reading_add(r);
    if (!line)
        return -ENOMEM;
    r->out->version = reading_match(r, r->text, "version #?([0-9.]+)");
    reading_fact(r, line, "protocol", "%s",
                 reading_match(r, r->text, "PORT = *[0-9]+ # (TCP|UDP)"));
    reading_fact(r, line, "size", "%s", reading_match(r, r->text, "[Mm]sg-?[Ss]ize[ =]+([0-9]+)"));
    reading_fact(r, line, "load", "%s", is_under_load(r) ? "1" : "");
    line->samples = strtoull(reading_match(r, r->text, "Total ([0-9]+) observations"), NULL, 10);
    for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
        const char *text = reading_match(r, r->text, figures[i].pattern);

        if (i == 6)
            text = reading_match(r, r->text, whole ? "avg-rtt=([0-9.]+)" : "avg-latency=([0-9.]+)");
        if (*text && !reading_number(r, text, &value))
            reading_figure(line, whole ? "round_trip" : "latency", figures[i].statistic, value,
                           PRINTED_US);
    }
    return foreign_find(line, whole ? "round_trip" : "latency", "p50")
               ? 0
               : reading_bad(r, "its median is no number above 0");
}

/* ---- qperf ---- */

/* A number with a unit of powers of 1000: "4.04 us", "1520959488 bytes/sec", "1.5 GB/sec". */
static int qperf_value(struct foreign_reading *r, const struct words *w, size_t at, double *value,
                       bool *is_time)
{
    static const struct {
        const char *name;
        double factor; /* into ns, or bytes a second */
        bool time;
    } units[] = {
        {"ns", 1, true},        {"us", 1e3, true},        {"ms", 1e6, true},
        {"sec", 1e9, true},     {"bytes/sec", 1, false},  {"KB/sec", 1e3, false},
        {"MB/sec", 1e6, false}, {"GB/sec", 1e9, false},   {"bits/sec", 0.125, false},
        {"Kb/sec", 125, false}, {"Mb/sec", 125e3, false}, {"Gb/sec", 125e6, false},
    };
    int err = reading_number(r, at < w->n ? w->all[at] : "", value);

    for (size_t i = 0; !err && i < sizeof(units) / sizeof(*units); i++)
        if (at + 1 < w->n && !strcmp(w->all[at + 1], units[i].name)) {
            *value *= units[i].factor;
            *is_time = units[i].time;
            return 0;
        }
    return err ? err : reading_bad(r, "a figure of it has no unit that is known");
}

/* Its parameters are told with -v: "msg_size  =  64 KiB", in powers of 1024 there. */
static const char *qperf_size(struct foreign_reading *r, const struct words *w)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double value;

    for (size_t i = 0; i < 4; i++)
        if (w->n == 4 && !strcmp(w->all[3], units[i]) && !reading_number(r, w->all[2], &value))
            return pool_text(&r->out->pool, "%.0f", value * (double)(1ull << (10 * i)));
    return w->n == 3 ? w->all[2] : "";
}

int read_qperf(struct foreign_reading *r)
{
    struct foreign_line *line = NULL;
    const char *at = r->text, *text;
    struct words w;
    int err = 0;

    while (!err && reading_line(r, &at, &text)) {
        double value;
        bool is_time = false, wants_time;

        reading_words(r, text, &w);
        if (w.n == 1 && w.all[0][strlen(w.all[0]) - 1] == ':') {
            if (line && !line->n_figures)
                return reading_bad(r, "a test of it has no result");
            line = reading_add(r);
            if (!line)
                return -ENOMEM;
            w.all[0][strlen(w.all[0]) - 1] = 0;
            reading_fact(r, line, "test", "%s", w.all[0]);
        } else if (line && w.n > 2 && !strcmp(w.all[0], "msg_size")) {
            reading_fact(r, line, "size", "%s", qperf_size(r, &w));
        } else if (line && w.n > 2 && (!strcmp(w.all[0], "latency") || !strcmp(w.all[0], "bw"))) {
            wants_time = *w.all[0] == 'l';
            err = line->n_figures ? reading_bad(r, "a test of it has two results")
                                  : qperf_value(r, &w, 2, &value, &is_time);
            if (!err && is_time != wants_time)
                err = reading_bad(r, "its %s is in %s", w.all[0], w.all[3]);
            if (!err && is_time)
                reading_figure(line, "latency", "mean", value, PRINTED_NS_US);
            else if (!err)
                reading_figure(line, "average_bandwidth", "", value, PRINTED_BYTE_S);
        }
    }
    return err ? err : !line || !line->n_figures ? reading_bad(r, "a test of it has no result") : 0;
}
