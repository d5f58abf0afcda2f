/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iperf3 (JSON): bits/s that the receiver got over the time, without the omitted seconds (-O); no
 * more than was asked for, where a rate was (-b, --fq-rate).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/foreign/foreign.h"

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
    bool both = json_integer_value(json_object_get(test, "bidir")) == 1 ||
                strstr(r->twice, "sum") || reading_at(r->json, "end.sum_sent_bidir_reverse") ||
                reading_at(r->json, "end.sum_received_bidir_reverse") ||
                (json_integer_value(json_object_get(test, "num_streams")) > 0 &&
                 (json_int_t)json_array_size(reading_at(r->json, "end.streams")) >
                     json_integer_value(json_object_get(test, "num_streams")));
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
    iperf3_start(r, line);
    reading_figure(line, "average_bandwidth", "", bits, PRINTED_BIT_S);
    return 0;
}
