/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between a GPU here and one of another process, over NVLink between hosts: see gpu_copy.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"
#include "core/hw/nvml.h"
#include "core/row.h"

/* ---- The fabric of a GPU ---- */

#define FABRIC_READY 3 /* state of struct nvml_fabric */

static double nvlinks_gbps(const struct nvml *nvml, struct nvml_device *device)
{
    unsigned active = 0, mbytes = 0, links = 0;
    double version = 0;

    for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
        if (!NVML_ASK(nvml, link_state, device, link, &active) || !active)
            continue;
        unsigned one = nvml_link_speed(nvml, device, link);
        if (!one)
            return NAN;
        version = version > 0 ? version : nvml_link_version(nvml, device, link);
        mbytes += one;
        links++;
    }
    return links ? nvlink_data_gbps(version, links, mbytes / 1e3) : NAN;
}

/* "0123..ef/7": the cluster, and the clique in it. Hosts that are no part of one have zeros. */
static void print_domain(const struct nvml_fabric *info, char *text, size_t len)
{
    static const unsigned char none[sizeof(info->cluster)];
    size_t at = 0;

    text[0] = 0;
    if (!memcmp(info->cluster, none, sizeof(none)))
        return;
    for (size_t i = 0; i < sizeof(info->cluster) && at + 3 < len; i++)
        at += (size_t)snprintf(text + at, len - at, "%02x", info->cluster[i]);
    snprintf(text + at, len - at, "/%u", info->clique);
}

/* As NVML has it; NULL: it is not known, or there is no NVML. nvml_close(*nvml) afterwards in any case. */
static struct nvml_device *look_up(struct gpu *gpu, struct nvml **nvml)
{
    char why[160];

    *nvml = NULL;
    return nvml_open(nvml, why, sizeof(why)) ? NULL
                                             : nvml_find(*nvml, gpu_base(gpu)->facts.address);
}

void gpu_copy_fabric_of(struct gpu *gpu, double *gbps, char *domain, size_t len)
{
    struct nvml *nvml;
    struct nvml_device *device = look_up(gpu, &nvml);
    struct nvml_fabric info;

    *gbps = NAN;
    domain[0] = 0;
    if (device)
        *gbps = nvlinks_gbps(nvml, device);
    if (device && !nvml_fabric(nvml, device, &info) && info.state == FABRIC_READY)
        print_domain(&info, domain, len);
    nvml_close(nvml);
}

const char *gpu_copy_fabric_state(struct gpu *gpu, char *text, size_t len)
{
    static const char *const states[] = {"the GPU is in no NVLink fabric", "not started",
                                         "in progress"};
    struct nvml *nvml;
    struct nvml_device *device = look_up(gpu, &nvml);
    struct nvml_fabric info;

    text[0] = 0;
    int status = device ? nvml_fabric(nvml, device, &info) : NVML_LOST;
    if (!status && info.state < FABRIC_READY)
        snprintf(text, len, " (NVML: %s%s)", info.state ? "the NVLink fabric is not ready: " : "",
                 states[info.state]);
    else if (!status && info.status)
        snprintf(text, len, " (NVML: the GPU could not join the NVLink fabric: error %d)",
                 info.status);
    nvml_close(nvml);
    return text;
}

/* ---- What does not go together ---- */

int gpu_copy_peer_refuse(struct point *pt, struct gpu_copy *c)
{
    struct gpu *gpu = gpu_copy_main(c);
    char why[GPU_FABRIC_TEXT];

    point_column(pt, "path", "NVLink of another process");
    if (!gpu_base(gpu)->facts.fabric)
        return point_reason(pt, -EOPNOTSUPP,
                            "the CUDA driver exports no memory of %s:%u as a fabric handle: it "
                            "takes NVLink over switches, and the fabric manager%s",
                            gpu_ops(gpu)->name, gpu_base(gpu)->index,
                            gpu_copy_fabric_state(gpu, why, sizeof(why)));
    if (pair_kind(&c->params->meet) == PAIR_NONE)
        return point_reason(pt, -EOPNOTSUPP,
                            COPY_PEER " is a GPU of another host: give HOST, where plumb-copy "
                                      "--listen runs, or use mpirun; in a suite, --hosts");
    return 0;
}

/* ---- The other process and its memory ---- */

static int meet(struct point *pt)
{
    struct copy_session *s = pt->bench_state;
    int err = copy_session_meet(s, pt->cancel);

    return err ? point_reason(pt, err, "%s", s->why_unreachable) : 0;
}

int gpu_copy_peer_failed(struct point *pt, const struct gpu_copy *c, int err)
{
    return point_reason(pt, err, "%s", copy_remote_error(c->peer->remote));
}

/* All bytes pass the NVLinks of both. Of both ways the third series is the sum. */
static void set_limit(struct point *pt, const struct gpu_copy *c)
{
    struct gpu_copy_peer *peer = c->peer;
    double gbps = fmin(peer->own_gbps, peer->memory.nvlink_gbps);
    unsigned n = c->each == 2 ? 3 : 1;

    if (isnan(peer->own_gbps) || isnan(peer->memory.nvlink_gbps) || !(gbps > 0) ||
        strcmp(pt->series[0].unit, "GB/s") != 0)
        return;
    for (unsigned both = 0; both < 2; both++)
        snprintf(peer->limit_source[both], sizeof(peer->limit_source[both]),
                 "nvml: %sdata of the NVLinks of the slower GPU, one direction",
                 both ? "both directions; " : "");
    for (unsigned i = 0; i < n; i++) {
        pt->series[i].limit = i == 2 ? 2 * gbps : gbps;
        pt->series[i].limit_kind = LIMIT_NVML;
        pt->series[i].limit_link = LIMIT_LINK_NVLINK;
        pt->series[i].limit_source = peer->limit_source[i == 2];
    }
}

int gpu_copy_peer_open(struct point *pt, struct gpu_copy *c)
{
    const struct copy_session *s = pt->bench_state;
    struct gpu *gpu = gpu_copy_main(c);
    const struct copy_remote_order order = {
        .gpu = gpu_base(gpu)->index, .memories = c->each, .bytes = c->params->size};
    int err = meet(pt);

    if (err)
        return err;
    c->peer = xcalloc(1, sizeof(*c->peer));
    c->peer->remote = s->remote;
    err = copy_remote_alloc(s->remote, &order, &c->peer->memory);
    if (err)
        return gpu_copy_peer_failed(pt, c, err);
    c->peer->taken = true;
    if (!strcmp(c->peer->memory.origin, "simulated"))
        pt->origin = "simulated";
    gpu_copy_fabric_of(gpu, &c->peer->own_gbps, c->peer->own_domain, sizeof(c->peer->own_domain));
    set_limit(pt, c);
    /* A fabric may have parts that no NVLink joins. */
    const struct gpu_copy_peer *peer = c->peer;
    if (!peer->own_domain[0] || !peer->memory.domain[0] ||
        !strcmp(peer->own_domain, peer->memory.domain))
        return 0;
    return point_reason(pt, -EOPNOTSUPP,
                        "no NVLink leads from here to %s of %s: NVML has them in the parts %s and "
                        "%s of the fabric",
                        peer->memory.gpu, peer->memory.host, peer->own_domain, peer->memory.domain);
}

void gpu_copy_peer_evidence(struct point *pt, const struct gpu_copy *c)
{
    evidence_add(pt->evidence, sizeof(pt->evidence), "with %s of %s", c->peer->memory.gpu,
                 c->peer->memory.host);
    if (c->each == 2)
        evidence_add(pt->evidence, sizeof(pt->evidence),
                     "both ways by the GPU here: it writes there, and reads from there");
}

void gpu_copy_peer_close(struct gpu_copy *c)
{
    if (!c->peer)
        return;
    if (c->peer->taken)
        copy_remote_free(c->peer->remote);
    free(c->peer);
    c->peer = NULL;
}
