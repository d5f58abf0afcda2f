/* SPDX-License-Identifier: Apache-2.0 */
/* See wires.h. A file of its own, so that a test which names one wire needs no other. */
#include "core/wire/wires.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"
#include "core/row.h"
#include "core/units.h"

#define ADDRESS(word, name, what) &wire_##word,
#define NAME(word, name, what)    name,

static const struct wire_ops *const wires[] = {WIRES(ADDRESS) NULL};
const char *const wire_names[] = {WIRES(NAME) NULL};

const struct wire_ops *wire_find(const char *name)
{
    for (size_t i = 0; wires[i]; i++)
        if (!strcmp(wires[i]->name, name))
            return wires[i];
    return NULL;
}

void wire_backends(backend_say_fn *say, void *arg)
{
    for (size_t i = 0; wires[i]; i++)
        if (wires[i]->backends)
            wires[i]->backends(say, arg);
        else
            say(arg, &(struct backend){.name = wires[i]->name, .state = BACKEND_PRESENT});
}

/* ---- What a rail can carry ---- */

/* TCP as a rail has it. The headers of a full segment are what the MTU holds beside the payload;
 * where a smaller MSS is in use they are not known: the least that there may be, with the
 * timestamps that Linux sends. */
static struct framing_tcp rail_tcp(const struct nic_rail *r)
{
    struct framing_tcp f = {.mtu = r->mtu_bytes,
                            .options = FRAMING_TCP_TIMESTAMPS,
                            .ipv6 = r->ipv6,
                            .vlan = r->vlan,
                            .payload = r->segment_bytes};
    unsigned base = framing_tcp_header(f.ipv6);

    if (f.mtu >= f.payload + base && f.mtu - f.payload - base <= 40 && f.payload)
        f.options = f.mtu - f.payload - base;
    return f;
}

static const char *tag_text(const struct nic_rail *r)
{
    return r->vlan ? " with a VLAN tag" : "";
}

static double rdma_fraction(const struct nic_rail *r, const struct wire_load *p, char *how,
                            size_t len)
{
    unsigned mtu = r->mtu_bytes ? r->mtu_bytes : p->mtu;
    enum framing_rdma_kind k = r->protocol == NIC_INFINIBAND ? FRAMING_INFINIBAND
                               : r->protocol == NIC_ROCE_V1  ? FRAMING_ROCE_V1
                               : r->ipv6                     ? FRAMING_ROCE_V2_IPV6
                                                             : FRAMING_ROCE_V2_IPV4;

    if (!mtu) {
        snprintf(how, len, "the path's MTU is not known");
        return NAN;
    }
    snprintf(how, len, "%s framing%s at MTU %u", nic_protocol_name(r->protocol), tag_text(r), mtu);
    return framing_rdma_fraction(k, p->verb, p->message_bytes, mtu, r->vlan);
}

/* Payload's part of what the line carries, and how that is known; NAN: it is not. */
static double payload_fraction(const struct nic_rail *r, const struct wire_load *p, char *how,
                               size_t len)
{
    struct framing_tcp f = rail_tcp(r);

    switch (r->protocol) {
    case NIC_TCP:
        snprintf(how, len, "TCP/IPv%d framing%s at MTU %u, %u bytes a segment", f.ipv6 ? 6 : 4,
                 tag_text(r), f.mtu, framing_tcp_payload(&f));
        return framing_tcp_fraction(&f);
    case NIC_IWARP:
        snprintf(how, len, "iWARP framing%s at MTU %u", tag_text(r), f.mtu);
        return framing_iwarp_fraction(&f, p->verb, p->message_bytes);
    case NIC_INFINIBAND:
    case NIC_ROCE_V1:
    case NIC_ROCE_V2:
        return rdma_fraction(r, p, how, len);
    default:
        snprintf(how, len, "the framing of '%.40s' is not known", r->name);
        return NAN;
    }
}

/* Where the adapter's link to the machine carries less than the line's payload, that bounds it.
 * Gb/s, or 0. */
static double narrower_pcie(const struct nic_rail *r, double payload_gbps, char *source, size_t len)
{
    double gbps = framing_pcie_gbps(&r->pcie);
    char headers[64] = "";

    if (!(gbps > 0 && gbps < payload_gbps))
        return 0;
    if (r->pcie.payload_bytes)
        snprintf(headers, sizeof(headers), " less headers at payloads of %u",
                 r->pcie.payload_bytes);
    snprintf(source, len, "PCIe %s x%u%s: %.4g Gb/s, narrower than the line (%.100s)",
             framing_pcie_generation(r->pcie.gt_s), r->pcie.width, headers, gbps, r->line_source);
    return gbps;
}

double wire_limit_gbps(const struct nic_rail *r, const struct wire_load *p, char *source,
                       size_t len)
{
    char how[96];
    double fraction, pcie_gbps;

    if (r->protocol == NIC_MEMORY && r->line_gbps > 0) {
        snprintf(source, len, "%s", r->line_source);
        return r->line_gbps / 8 * p->threads;
    }
    if (!(r->line_gbps > 0)) {
        snprintf(source, len, "%s",
                 r->line_source[0] ? r->line_source : "the line's rate is not known");
        return NAN;
    }
    fraction = payload_fraction(r, p, how, sizeof(how));
    pcie_gbps = narrower_pcie(r, r->line_gbps * fraction, source, len);
    if (pcie_gbps > 0)
        return pcie_gbps / 8;
    if (isnan(fraction))
        snprintf(source, len, "no limit: %s", how);
    else
        snprintf(source, len, "%s less %s (%.1f %%)", r->line_source, how, 100 * fraction);
    return r->line_gbps / 8 * fraction;
}

enum limit_kind wire_limit_kind(const struct nic_rail *r)
{
    return r->protocol == NIC_MEMORY ? LIMIT_REFERENCE : LIMIT_SYSFS;
}

const char *wire_limit_link(const struct nic_rail *r, const struct wire_load *p)
{
    char how[96], source[200];
    double fraction = r->line_gbps > 0 ? payload_fraction(r, p, how, sizeof(how)) : NAN;

    if (narrower_pcie(r, r->line_gbps * fraction, source, sizeof(source)) > 0)
        return LIMIT_LINK_PCIE;
    if (r->protocol == NIC_INFINIBAND)
        return LIMIT_LINK_INFINIBAND;
    return r->protocol == NIC_ROCE_V1 || r->protocol == NIC_ROCE_V2 ? LIMIT_LINK_ROCE : "";
}

bool wire_switches_may_sum(const struct nic_rail *r)
{
    return r->protocol == NIC_INFINIBAND;
}

const char *const wire_tcp_modes[] = {"blocking", "epoll", NULL};
const char *const wire_verbs[] = {"write", "write-imm", "read", "send", NULL};
const char *const wire_connects[] = {"exchange", "cm", NULL};
const char *const wire_completions[] = {"poll", "event", NULL};

int wire_parse_auto(const char *text, void *value, char *error, size_t len)
{
    uint64_t number;

    *(int *)value = -1;
    if (!strcmp(text, "auto"))
        return 0;
    if (units_parse_u64(text, &number) || number > 65535) {
        snprintf(error, len, "'%s' is not auto or a number", text);
        return -EINVAL;
    }
    *(int *)value = (int)number;
    return 0;
}

int wire_parse_mtu(const char *text, void *value, char *error, size_t len)
{
    uint64_t *mtu = value;

    if (!units_parse_u64(text, mtu) &&
        (!*mtu || (*mtu >= 256 && *mtu <= 4096 && !(*mtu & (*mtu - 1)))))
        return 0;
    snprintf(error, len, "'%s' is not 256, 512, 1024, 2048, 4096 or 0", text);
    return -EINVAL;
}
