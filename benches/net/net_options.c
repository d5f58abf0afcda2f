/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of the benchmark `net` may be, and what they are where nobody says: see net_work.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/units.h"

#define MOST_SAMPLES "20000000" /* that -D and -n keep: with what is made of them, 1 GB */

const char *const net_patterns[] = {"bandwidth", "latency", "rate", "loaded-latency", NULL};
const char *const net_ways[] = {"forward", "reverse", "both", NULL};
const char *const net_waits[] = {"block", "spin", NULL};
const char *const net_injects[] = {"none", "corrupt", "elsewhere", NULL};

int net_parse_node(const char *text, void *value, char *error, size_t len)
{
    uint64_t number;

    if (!strcmp(text, "near") || !strcmp(text, "far")) {
        *(int *)value = text[0] == 'n' ? NET_NODE_NEAR : NET_NODE_FAR;
        return 0;
    }
    if (units_parse_u64(text, &number) || number > 65535) {
        snprintf(error, len, "'%s' is not near, far or a node's number", text);
        return -EINVAL;
    }
    *(int *)value = (int)number;
    return 0;
}

/* "mlx5_0" is its port 1. */
static size_t device_chars(const char *name)
{
    size_t n = strcspn(name, "+"), port = strcspn(name, ":+");

    return n == port + 2 && !strncmp(name + port, ":1", 2) ? port : n;
}

int net_parse_devices(const char *text, void *value, char *error, size_t len)
{
    const char *next;

    *(const char **)value = text;
    if (strlen(text) >= sizeof(((struct net_local *)NULL)->devices)) {
        snprintf(error, len, "'%.40s...' is too long a list of devices", text);
        return -EINVAL;
    }
    for (const char *one = text; *one; one = next + (*next == '+')) {
        next = one + strcspn(one, "+");
        for (const char *other = next; *other; other += strcspn(other, "+")) {
            size_t n = device_chars(one);
            if (n != device_chars(++other) || strncmp(one, other, n) != 0)
                continue;
            snprintf(error, len, "'%s' names '%.*s' twice: each device once", text, (int)n, one);
            return -EINVAL;
        }
    }
    return 0;
}

/* A latency of which nobody says how long or how often ends by our choice; else so many samples are kept as are asked for. */
static int default_samples(struct opts *o, bool told)
{
    if (told)
        return opts_default(o, "max-samples", MOST_SAMPLES);
    return opts_values(o, "max-samples")->given ? 0 : opts_set(o, "samples-chosen", "true");
}

/* perftest's and iperf3's users write the host alone, and know -D and -n. */
int net_bench_defaults(struct opts *o)
{
    bool told = opts_values(o, "duration")->given || opts_values(o, "iterations")->given;
    int err = 0;

    if (o->n_args == 1) {
        err = opts_set(o, "host", o->args[0]);
        if (!err)
            o->n_args = 0;
    }
    if (!err && opts_values(o, "duration")->given)
        err = opts_default(o, "budget", opts_values(o, "duration")->texts[0]);
    else if (!err && opts_values(o, "iterations")->given)
        err = opts_default(o, "budget", "1h");
    if (!err && told)
        err = opts_default(o, "min-samples", "1000000000"); /* it never converges */
    if (!err)
        err = default_samples(o, told);
    if (!err && (opts_values(o, "host")->n || opts_values(o, "listen")->n))
        err = opts_default(o, "transport", "tcp,rdma");
    if (!err && !opts_values(o, "size")->given)
        err = opts_set(o, "sizes-chosen", "true");
    return err;
}
