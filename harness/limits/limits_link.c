// SPDX-License-Identifier: Apache-2.0
// The formulas from a link's figures to the payload that it can carry: each is written out in
// harness/limits/limits.h.
#include "harness/limits/limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "core/hw/framing.h"

#define PCIE_GEN_MAX     7
#define PCIE_WIDTH_MAX   32
#define PCIE_PAYLOAD_MAX 4096
#define IB_WIDTH_MAX     12

static int figure(const struct limits *l, const char *kind, const char *entry, const char *name,
                  double *value)
{
    char key[128];
    snprintf(key, sizeof(key), "%s.%s.%s", kind, entry, name);
    return limits_lookup(l, key, value, NULL, NULL);
}

static int pcie_figure(const struct limits *l, int gen, const char *name, double *value)
{
    char entry[16];
    snprintf(entry, sizeof(entry), "gen%d", gen);
    return figure(l, "pcie", entry, name, value);
}

int limits_pcie(const struct limits *l, int gen, int width, int mps, double *gbytes_per_s)
{
    double gt_s = 0, data = 0, line = 1, header = 0, framing = 0;
    if (width < 1 || width > PCIE_WIDTH_MAX || mps < 0 || mps > PCIE_PAYLOAD_MAX)
        return -EINVAL;
    if (pcie_figure(l, gen, "gt_s", &gt_s) || pcie_figure(l, gen, "data_bits", &data) ||
        pcie_figure(l, gen, "line_bits", &line) || pcie_figure(l, gen, "header_bytes", &header) ||
        pcie_figure(l, gen, "framing_bytes", &framing))
        return -ENOENT;
    double payload = mps ? mps / (mps + header + framing) : 1;
    *gbytes_per_s = width * gt_s * data / line / 8 * payload;
    return 0;
}

int limits_pcie_gen(const struct limits *l, double gt_s)
{
    double have = 0;
    for (int gen = 1; gen <= PCIE_GEN_MAX; gen++)
        if (!pcie_figure(l, gen, "gt_s", &have) && fabs(have - gt_s) < 0.01)
            return gen;
    return -ENOENT;
}

int limits_infiniband(const struct limits *l, const char *rate, int width, double *gbits_per_s)
{
    double lane = 0;
    if (width < 1 || width > IB_WIDTH_MAX)
        return -EINVAL;
    int rc = figure(l, "infiniband", rate, "lane_data_gbits_per_s", &lane);
    if (!rc)
        *gbits_per_s = lane * width;
    return rc;
}

double limits_tcp_fraction(int mtu, int options)
{
    struct framing_tcp f = {.mtu = (unsigned)mtu, .options = (unsigned)options};
    return framing_tcp_fraction(&f);
}

double limits_roce_fraction(int payload)
{
    return payload / (payload + (double)framing_packet_bytes(FRAMING_ROCE_V2_IPV4));
}
