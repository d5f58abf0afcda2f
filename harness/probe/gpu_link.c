/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks, lane by lane and added up for each peer; and how every two GPUs reach one another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/probe/facts.h"

enum { PAIRS_MAX = 4096 };

struct lane {
    unsigned mbytes_per_s; /* 0: not told */
    const char *kind;      /* of the far end */
    char peer[32];         /* its PCI address; "" not told */
};

/* A guest is given an address of ones for a switch that it cannot see. */
static void read_peer(const struct nvml *nvml, struct nvml_device *device, unsigned link,
                      struct lane *lane)
{
    struct nvml_pci pci = {.legacy_id = ""};
    struct nvml_device *gpu = NULL;
    unsigned type = 0;

    lane->kind = "unknown";
    lane->peer[0] = 0;
    if (NVML_ASK(nvml, link_remote, device, link, &pci) && pci.domain <= 0xffffff &&
        pci.bus <= 0xff && pci.device <= 0x1f)
        snprintf(lane->peer, sizeof(lane->peer), "%04x:%02x:%02x.0", pci.domain, pci.bus,
                 pci.device);
    if (NVML_ASK(nvml, link_remote_type, device, link, &type))
        lane->kind = type == NVML_REMOTE_GPU      ? "gpu"
                     : type == NVML_REMOTE_SWITCH ? "nvswitch"
                     : type == NVML_REMOTE_NPU    ? "processor"
                                                  : "unknown";
    else if (lane->peer[0] && NVML_ASK(nvml, by_address, lane->peer, &gpu))
        lane->kind = "gpu";
}

/* Speeds are added as MB/s, which are whole, and scaled at the end. */
static void add_lane(json_t *peers, const struct lane *lane)
{
    json_t *peer = NULL, *entry;
    size_t i;

    json_array_foreach (peers, i, entry)
        if (fact_is(entry, "kind", lane->kind) && fact_is(entry, "address", lane->peer))
            peer = entry;
    if (!peer) {
        peer = fact_append(peers);
        fact_set_text(peer, "kind", lane->kind);
        fact_set(peer, "address", lane->peer[0] ? fact_text(lane->peer) : NULL,
                 "NVML does not tell where the other end is");
        fact_set_number(peer, "links", 0);
        fact_set_real(peer, "gbytes_per_s", 0);
    }
    fact_set_number(peer, "links", fact_integer(peer, "links", 0) + 1);
    if (lane->mbytes_per_s && fact_string(peer, "gbytes_per_s_why") == NULL)
        fact_set_real(peer, "gbytes_per_s",
                      fact_number(peer, "gbytes_per_s", 0) + lane->mbytes_per_s / 1e3);
    else
        fact_set_unknown(peer, "gbytes_per_s", "NVML gives no link speed");
}

void nvml_fill_links(const struct nvml *nvml, struct nvml_device *device, json_t *gpu)
{
    unsigned active = 0, present = 0, up = 0;
    bool all_told = true;
    double mbytes = 0, version = 0;
    json_t *nvlink = fact_object(gpu, "nvlink"), *peers = json_array();

    for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
        struct lane lane;

        if (!NVML_ASK(nvml, link_state, device, link, &active))
            continue;
        present++;
        if (!active)
            continue;
        up++;
        lane.mbytes_per_s = nvml_link_speed(nvml, device, link);
        all_told = all_told && lane.mbytes_per_s;
        mbytes += lane.mbytes_per_s;
        read_peer(nvml, device, link, &lane);
        add_lane(peers, &lane);
        version = version > 0 ? version : nvml_link_version(nvml, device, link);
    }
    fact_set_number(nvlink, "links", present);
    fact_set_number(nvlink, "active", up);
    fact_set(nvlink, "version", version > 0 ? fact_real(version) : NULL, "NVML gives no version");
    fact_set(nvlink, "gbytes_per_s", up && all_told ? fact_real(mbytes / 1e3) : NULL, "%s",
             up ? "NVML gives no link speed" : "no NVLink is active");
    json_object_set_new(nvlink, "peers", peers);
}

/* Lanes from one GPU to another, or to switches (to NULL); *gbytes: their speed, 0 where not told.
 */
static long long lanes_to(const json_t *gpu, const char *kind, const char *to, double *gbytes)
{
    const json_t *peers = fact_at(gpu, "nvlink.peers");
    long long links = 0;
    bool told = true;

    *gbytes = 0;
    FACT_EACH (peers, peer) {
        if (!fact_is(peer, "kind", kind) || (to && !fact_is(peer, "address", to)))
            continue;
        links += fact_integer(peer, "links", 0);
        *gbytes += fact_number(peer, "gbytes_per_s", 0);
        told = told && json_is_number(json_object_get(peer, "gbytes_per_s"));
    }
    *gbytes = told ? *gbytes : 0;
    return links;
}

/* Direct lanes, or as many as both have to the switches. */
static void fill_pair_lanes(json_t *pair, const json_t *a, const json_t *b, const char *why)
{
    double speed_a, speed_b;
    long long links = lanes_to(a, "gpu", fact_string(b, "address"), &speed_a);
    const char *via = links ? "direct" : "nvswitch";

    if (!links) {
        long long back = lanes_to(b, "nvswitch", NULL, &speed_b);

        links = lanes_to(a, "nvswitch", NULL, &speed_a);
        speed_a = speed_b < speed_a ? speed_b : speed_a;
        links = back < links ? back : links;
    }
    if (!json_is_object(json_object_get(a, "nvlink")) ||
        !json_is_object(json_object_get(b, "nvlink"))) {
        fact_set_unknown(pair, "nvlinks", "%s", why);
        return;
    }
    fact_set_number(pair, "nvlinks", links);
    if (!links)
        return;
    fact_set_text(pair, "nvlink_via", via);
    fact_set(pair, "nvlink_gbytes_per_s", speed_a > 0 ? fact_real(speed_a) : NULL,
             "NVML gives no link speed");
}

static const char *p2p_text(unsigned status)
{
    static const char *const texts[] = {"ok",
                                        "not with this chipset",
                                        "not with this GPU",
                                        "not over this path through the processors",
                                        "disabled in the driver's registry",
                                        "not supported",
                                        "unknown to NVML"};

    return status < sizeof(texts) / sizeof(*texts) ? texts[status] : "unknown to NVML";
}

/* One capability, asked both ways. */
static void set_p2p(const struct nvml *nvml, json_t *pair, const char *key, int index,
                    struct nvml_device *a, struct nvml_device *b)
{
    unsigned there = 0, back = 0;
    char text[160];
    int status = NVML_CALL(nvml, p2p, a, b, index, &there);

    if (!status)
        status = NVML_CALL(nvml, p2p, b, a, index, &back);
    if (status)
        fact_set_unknown(pair, key, "%s", nvml_why(status));
    else if (there != back) {
        snprintf(text, sizeof(text), "from a: %s; from b: %s", p2p_text(there), p2p_text(back));
        fact_set_text(pair, key, text);
    } else
        fact_set_text(pair, key, p2p_text(there));
}

static void fill_p2p(json_t *pair, const struct nvml *nvml, const char *why)
{
    static const struct {
        const char *key;
        int index;
    } capabilities[] = {{"p2p_read", NVML_P2P_READ},
                        {"p2p_write", NVML_P2P_WRITE},
                        {"p2p_atomics", NVML_P2P_ATOMICS},
                        {"p2p_nvlink", NVML_P2P_NVLINK}};
    struct nvml_device *a = NULL, *b = NULL;

    if (nvml) {
        a = nvml_find(nvml, fact_string(pair, "a"));
        b = nvml_find(nvml, fact_string(pair, "b"));
    }
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++)
        if (a && b)
            set_p2p(nvml, pair, capabilities[i].key, capabilities[i].index, a, b);
        else
            fact_set_unknown(pair, capabilities[i].key, "%s", why);
}

static void fill_relation(struct probe *p, json_t *pair)
{
    const struct pci_device *a = NULL, *b = NULL;
    const char *how = NULL;

    if (p->pci && probe_on_metal(p)) {
        a = pci_find(p->pci, fact_string(pair, "a"));
        b = pci_find(p->pci, fact_string(pair, "b"));
    }
    if (a && b)
        how = pci_relation(p->pci, a, b);
    fact_set(pair, "relation", how ? fact_text(how) : NULL, "%s",
             p->guest          ? "the hypervisor makes up the PCI tree"
             : !p->guest_known ? "whether a hypervisor made up the PCI tree is not known"
                               : "their places on the PCI bus do not show it");
}

void probe_gpu_pairs(struct probe *p, json_t *gpus, const struct nvml *nvml, const char *why)
{
    const json_t *devices = json_object_get(gpus, "devices"), *a, *b;
    json_t *list = fact_list(gpus, "pairs"), *pair;
    bool known = !fact_string(gpus, "devices_why");
    size_t i, k;

    FACT_EACH (devices, gpu) /* one whose driver could not be read may be NVIDIA's too */
        known = known && fact_string(gpu, "driver");
    if (!known)
        fact_set_text(gpus, "pairs_why", "not all GPUs and their drivers are known");
    why = nvml ? "NVML does not show both" : why;
    json_array_foreach (devices, i, a)
        for (k = i + 1; fact_is(a, "driver", "nvidia") && (b = json_array_get(devices, k)); k++) {
            if (json_array_size(list) >= PAIRS_MAX)
                return;
            if (!fact_is(b, "driver", "nvidia"))
                continue;
            pair = fact_append(list);
            fact_set_text(pair, "a", fact_string(a, "address"));
            fact_set_text(pair, "b", fact_string(b, "address"));
            fill_relation(p, pair);
            fill_pair_lanes(pair, a, b, why);
            fill_p2p(pair, nvml, why);
        }
}
