/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices that `copy` runs on share: see copy_work.h. */
#include "benches/copy/copy_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/remote.h"
#include "core/hw/gpu.h"

const char *const copy_engines[] = {"auto", "memcpy", "ce", "sm", NULL};
const char *const copy_directions[] = {"one-way", "both", NULL};
const char *const copy_memories[] = {"auto",        "pageable", "huge",    "hugetlb", "pinned",
                                     "pinned-huge", "wc",       "managed", NULL};
const char *const copy_ops[] = {"write", "read", NULL};

/* Of one GPU there are no pairs: that is how the machine is, not a name that is wrong. */
static int refuse_lonely(struct point *pt, const struct place ends[2])
{
    struct gpu *gpu;

    if (!ends[0].gpu || !ends[1].gpu || ends[0].index == ends[1].index ||
        gpus_count(point_gpus(pt)) != 1)
        return 0;
    int err = point_gpu(pt, 0, &gpu);
    return err ? err
               : point_reason(pt, -ENODEV,
                              "a pair takes two GPUs: this machine shows one, " PLACE_GPU_PREFIX
                              "0");
}

bool copy_is_all(const char *name)
{
    return !strcmp(name, COPY_ALL);
}

int copy_peer_end(const struct copy_params *p)
{
    return !strcmp(p->source, COPY_PEER) ? 0 : !strcmp(p->destination, COPY_PEER) ? 1 : -1;
}

static bool is_named(const char *name)
{
    return !copy_is_all(name) && strcmp(name, COPY_PEER) != 0;
}

/* The other GPU has the same number, in its own machine. */
static int stand_for_peer(struct point *pt, struct place ends[2])
{
    int peer = copy_peer_end(pt->params);

    if (peer < 0)
        return 0;
    if (!ends[1 - peer].gpu)
        return point_reason(pt, -EOPNOTSUPP,
                            "copies to and from " COPY_PEER
                            " are those of one GPU here: name it as the other end");
    ends[peer] = ends[1 - peer];
    return 0;
}

/* Of all GPUs the first that is not the other end. */
static void stand_for_all(const char *const names[2], struct place ends[2])
{
    for (int i = 0; i < 2; i++)
        if (copy_is_all(names[i]))
            ends[i] = (struct place){true, (ends[1 - i].gpu && ends[1 - i].index == 0) ||
                                                   (copy_is_all(names[1 - i]) && i)
                                               ? 1
                                               : 0};
}

int copy_session_meet(struct copy_session *s, const volatile int *cancel)
{
    struct channel *c = NULL;
    char error[MEET_ERROR_BYTES] = "";

    if (s->remote && copy_remote_broken(s->remote)) {
        copy_remote_close(s->remote);
        s->remote = NULL;
    }
    if (s->remote || s->unreachable)
        return s->unreachable;
    int err =
        pair_open(&c, &s->pair, copy_remote_protocol(), &s->secret, cancel, error, sizeof(error));
    if (!err && (err = copy_remote_open(&s->remote, c))) {
        snprintf(error, sizeof(error), "%s",
                 s->remote ? copy_remote_error(s->remote) : strerror(-err));
        copy_remote_close(s->remote);
        s->remote = NULL;
    }
    if (!err)
        return 0;
    s->unreachable =
        err == -ENODEV || err == -EOPNOTSUPP ? -EIO : err; /* asked for, and not there */
    snprintf(s->why_unreachable, sizeof(s->why_unreachable), "%s",
             error[0] ? error : strerror(-err));
    return s->unreachable;
}

int copy_ends(struct point *pt, struct place ends[2])
{
    const struct copy_params *p = pt->params;
    const char *const names[2] = {p->source, p->destination};
    char error[160];
    int err = 0;

    if (!point_topo(pt))
        return -EIO;
    for (int i = 0; !err && i < 2; i++)
        if (is_named(names[i]))
            err = place_find(names[i], point_topo(pt), &ends[i], error, sizeof(error));
    if (copy_peer_end(p) < 0)
        stand_for_all(names, ends);
    for (int i = 0; !err && i < 2; i++) /* one name each, however it was asked for */
        point_option(pt, i ? "destination" : "source", "%s",
                     is_named(names[i]) ? place_name(ends[i]).text : names[i]);
    if (err)
        return point_reason(pt, err, "%s", error);
    err = stand_for_peer(pt, ends);
    return err ? err : refuse_lonely(pt, ends);
}

const struct device_work *copy_work_of(const struct place ends[2])
{
    return ends[0].gpu || ends[1].gpu ? &gpu_copy_work : &host_copy_work;
}

struct series *copy_series(struct point *pt, const char *direction, double bytes)
{
    const struct copy_params *p = pt->params;
    struct series *s = p->metric == COPY_LATENCY ? point_series(pt, "latency", "us", bytes)
                       : p->metric == COPY_LOAD_LATENCY
                           ? point_series(pt, "load-latency", "ns", 1)
                           : point_series(pt, "bandwidth", "GB/s", bytes);

    s->set[0].column = "direction";
    s->set[0].value = direction;
    return s;
}

bool copy_wanted(struct point *pt)
{
    const struct copy_params *p = pt->params;
    struct place from, to;
    char error[160];

    return place_parse(p->source, PLACE_GPU, &from, error, sizeof(error)) ||
           place_parse(p->destination, PLACE_GPU, &to, error, sizeof(error)) ||
           from.index != to.index;
}
