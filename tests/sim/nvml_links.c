/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated NVML: NVLink, what lies between two GPUs, and fields by number. */
#include "tests/sim/nvml.h"

#include "tests/sim/nvml_fields.h"

#include <string.h>

enum { SPEED_COMMON = 90, SPEED = 164 };
enum { NVSWITCH = 2 };
enum { P2P_WRITE = 1, P2P_NVLINK = 2, P2P_ATOMICS = 3, P2P_GOOD = 0, P2P_NOT_SUPPORTED = 5 };

/* Lane number `lane` of a GPU: lanes are counted over its peers in their order. -1: it has not so many. */
static int peer_of(const struct device *device, unsigned lane, const struct sim_link **link)
{
    const struct sim_machine *m = nvml_machine();
    bool switched = m && m->nvswitch_gbps > 0; /* every lane goes to a switch, whoever is beyond */

    for (unsigned peer = 0; m && peer < m->gpus; peer++) {
        if (peer == device->index || sim_link(m, device->index, peer)->kind != SIM_NVLINK)
            continue;
        *link = sim_link(m, device->index, peer);
        if (lane < (*link)->lanes)
            return (int)peer;
        if (switched)
            return -1;
        lane -= (unsigned)(*link)->lanes;
    }
    return -1;
}

static int lane_of(struct device *device, unsigned lane, const struct sim_link **link, int *peer)
{
    if (!nvml_gpu(device) || device->slice)
        return INVALID;
    *peer = peer_of(device, lane, link);
    return *peer < 0 ? INVALID : GOOD;
}

int nvmlDeviceGetNvLinkState(struct device *device, unsigned lane, unsigned *active);
int nvmlDeviceGetNvLinkState(struct device *device, unsigned lane, unsigned *active)
{
    const struct sim_link *link;
    int peer, rc = lane_of(device, lane, &link, &peer);

    *active = rc == GOOD && lane >= link->dark_lanes;
    return rc;
}

int nvmlDeviceGetNvLinkVersion(struct device *device, unsigned lane, unsigned *version);
int nvmlDeviceGetNvLinkVersion(struct device *device, unsigned lane, unsigned *version)
{
    static const unsigned codes[] = {0, 1, 2, 4, 6, 7}; /* 2.2 and 3.1 count, too */
    const struct sim_link *link;
    int peer, rc = lane_of(device, lane, &link, &peer);
    unsigned wanted = rc ? 0 : nvml_gpu(device)->nvlink_version;

    if (!rc)
        *version = wanted < sizeof(codes) / sizeof(*codes) ? codes[wanted] : 0;
    return rc;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *device, unsigned lane,
                                        struct pci_info *info);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *device, unsigned lane, struct pci_info *info)
{
    const struct sim_link *link;
    int peer, rc = lane_of(device, lane, &link, &peer);

    if (!rc && nvml_machine()->nvswitch_gbps > 0)
        nvml_fill_pci(&(struct sim_gpu){.address = "0000:05:00.0"}, info);
    else if (!rc)
        nvml_fill_pci(&nvml_machine()->gpu[peer], info);
    return rc;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct device *device, unsigned lane, unsigned *type);
int nvmlDeviceGetNvLinkRemoteDeviceType(struct device *device, unsigned lane, unsigned *type)
{
    const struct sim_link *link;
    int peer, rc = lane_of(device, lane, &link, &peer);

    if (nvml_lacks("NvLinkRemoteDeviceType"))
        return UNSUPPORTED;
    *type = !rc && nvml_machine()->nvswitch_gbps > 0 ? NVSWITCH : 0 /* a GPU */;
    return rc;
}

int nvmlDeviceGetP2PStatus(struct device *one, struct device *other, int what, unsigned *status);
int nvmlDeviceGetP2PStatus(struct device *one, struct device *other, int what, unsigned *status)
{
    const struct sim_link *link;
    unsigned kind;

    if (!nvml_gpu(one) || !nvml_gpu(other) || one->index == other->index || what < 0 || what > 4)
        return INVALID;
    link = sim_link(nvml_machine(), one->index, other->index);
    kind = link->kind;
    if (what == P2P_NVLINK || what == P2P_ATOMICS)
        *status = kind == SIM_NVLINK ? P2P_GOOD : P2P_NOT_SUPPORTED;
    else
        *status = kind == SIM_NO_LINK ||
                          (what == P2P_WRITE && one->index > other->index && link->write_one_way)
                      ? P2P_NOT_SUPPORTED
                      : P2P_GOOD;
    return GOOD;
}

struct field { /* nvmlFieldValue_t */
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned type, status;
    unsigned long long value;
};

static bool field_value(struct device *device, const struct field *field, unsigned long long *value)
{
    const struct sim_link *link;

    if (field->id == SPEED || field->id == SPEED_COMMON) {
        if (device->slice || (field->id == SPEED && nvml_lacks("NvLinkSpeed")) ||
            peer_of(device, field->id == SPEED ? field->scope : 0, &link) < 0)
            return false;
        *value = (unsigned long long)(link->lane_gbps * 1e3);
        return true;
    }
    return nvml_health_field(device, field->id, value);
}

int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields);
int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields)
{
    if (!nvml_gpu(device) || count < 0)
        return INVALID;
    for (int i = 0; i < count; i++) {
        fields[i].value = 0;
        fields[i].status = field_value(device, &fields[i], &fields[i].value) ? GOOD : UNSUPPORTED;
        fields[i].type = 3; /* unsigned long long */
    }
    return GOOD;
}

struct fabric_v1 { /* nvmlGpuFabricInfo_t */
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

struct fabric { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    struct fabric_v1 v1;
    unsigned health;
};

static int fabric_of(struct device *device, struct fabric_v1 *out)
{
    const struct sim_gpu *gpu = nvml_gpu(device);

    if (!gpu || !gpu->fabric_state)
        return UNSUPPORTED;
    *out = (struct fabric_v1){.clique = 9, .state = (unsigned char)gpu->fabric_state};
    return GOOD;
}

int nvmlDeviceGetGpuFabricInfoV(struct device *device, struct fabric *out);
int nvmlDeviceGetGpuFabricInfoV(struct device *device, struct fabric *out)
{
    if (nvml_lacks("GpuFabricInfoV"))
        return UNSUPPORTED;
    if (out->version != (sizeof(*out) | 2u << 24))
        return BAD_VERSION;
    out->health = nvml_gpu(device) && nvml_gpu(device)->fabric_degraded ? 1 : 2;
    return fabric_of(device, &out->v1);
}

int nvmlDeviceGetGpuFabricInfo(struct device *device, struct fabric_v1 *out);
int nvmlDeviceGetGpuFabricInfo(struct device *device, struct fabric_v1 *out)
{
    return fabric_of(device, out);
}
