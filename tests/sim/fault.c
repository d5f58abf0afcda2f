/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: reading them, and whether one strikes. */
#include "tests/sim/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* times: how often it strikes unless said; 0: without end. */
static const struct {
    const char *name;
    unsigned times;
} kinds[SIM_FAULT_KINDS] = {
    [SIM_OUT_OF_MEMORY] = {"out_of_memory", 0},
    [SIM_LAUNCH_FAILED] = {"launch_failed", 1},
    [SIM_ILLEGAL_ADDRESS] = {"illegal_address", 1},
    [SIM_ECC] = {"ecc", 1},
    [SIM_LOST] = {"lost", 1},
    [SIM_HANG] = {"hang", 1},
    [SIM_CORRUPT] = {"corrupt", 0},
    [SIM_PEER_REFUSED] = {"peer_refused", 0},
    [SIM_SLOW_LINK] = {"slow_link", 0},
    [SIM_THROTTLE] = {"throttle", 0},
    [SIM_NO_DEVICE] = {"no_device", 0},
    [SIM_OLD_DRIVER] = {"old_driver", 0},
    [SIM_NO_MANAGED] = {"no_managed", 0},
    [SIM_NO_KERNEL] = {"no_kernel", 0},
    [SIM_NO_NVML] = {"no_nvml", 0},
    [SIM_ERROR] = {"error", 0},
};

static int set_word(char *at, size_t room, const char *value)
{
    if (strlen(value) >= room)
        return -1;
    snprintf(at, room, "%s", value);
    return 0;
}

static int set_key(struct sim_fault *fault, const char *key, const char *value)
{
    const struct {
        const char *key;
        int *number;
        uint64_t *wide;
    } numbers[] = {
        {"gpu", &fault->gpu, NULL},           {"peer", &fault->peer, NULL},
        {"code", &fault->code, NULL},         {"version", &fault->version, NULL},
        {"after", NULL, &fault->after},       {"times", NULL, &fault->times},
        {"above", NULL, &fault->above_bytes}, {"from_ms", NULL, &fault->from_ms},
        {"for_ms", NULL, &fault->for_ms},
    };
    char *end;

    if (!strcmp(key, "call"))
        return set_word(fault->call, sizeof(fault->call), value);
    if (!strcmp(key, "kernel"))
        return set_word(fault->kernel, sizeof(fault->kernel), value);
    if (!strcmp(key, "reason"))
        return set_word(fault->reason, sizeof(fault->reason), value);
    if (!strcmp(key, "factor")) {
        fault->factor = strtod(value, &end);
        return *value && !*end && fault->factor > 0 ? 0 : -1;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        unsigned long long number;

        if (strcmp(numbers[i].key, key))
            continue;
        number = strtoull(value, &end, 10);
        if (!*value || *end || *value == '-')
            return -1;
        if (numbers[i].wide)
            *numbers[i].wide = number;
        else
            *numbers[i].number = (int)number;
        return 0;
    }
    return -1;
}

static int read_one(struct sim_fault *fault, char *text)
{
    char *save = NULL, *part = strtok_r(text, ":", &save), *value;
    int kind = 0;

    *fault = (struct sim_fault){
        .gpu = -1, .peer = -1, .factor = 0.5, .reason = "power", .code = 999, .version = 11040};
    while (kind < SIM_FAULT_KINDS && (!part || strcmp(kinds[kind].name, part)))
        kind++;
    if (kind == SIM_FAULT_KINDS)
        return -1;
    fault->kind = (enum sim_fault_kind)kind;
    fault->times = kinds[kind].times;
    while ((part = strtok_r(NULL, ":", &save))) {
        value = strchr(part, '=');
        if (!value)
            return -1;
        *value++ = '\0';
        if (set_key(fault, part, value))
            return -1;
    }
    return 0;
}

int sim_faults_add(struct sim_machine *m, const char *text, char *error, size_t len)
{
    char copy[512], one[512], *save = NULL;

    if (strlen(text) >= sizeof(copy)) {
        snprintf(error, len, "too long a list of faults");
        return -1;
    }
    memcpy(copy, text, strlen(text) + 1);
    for (char *part = strtok_r(copy, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
        part += strspn(part, " ");
        memcpy(one, part, strlen(part) + 1);
        if (m->faults == SIM_FAULTS || read_one(&m->fault[m->faults], one)) {
            snprintf(error, len, "no such fault: '%s'", part);
            return -1;
        }
        m->faults++;
    }
    return 0;
}

static bool for_devices(const struct sim_fault *fault, int gpu, int peer)
{
    bool as_given =
        (fault->gpu < 0 || fault->gpu == gpu) && (fault->peer < 0 || fault->peer == peer);
    bool other_way =
        (fault->gpu < 0 || fault->gpu == peer) && (fault->peer < 0 || fault->peer == gpu);

    return as_given || (fault->kind == SIM_SLOW_LINK && other_way);
}

static bool for_event(const struct sim_fault *fault, const struct sim_event *event)
{
    if (!for_devices(fault, event->gpu, event->peer))
        return false;
    if (*fault->call && (!event->call || strcmp(fault->call, event->call)))
        return false;
    if (*fault->kernel && (!event->kernel || strcmp(fault->kernel, event->kernel)))
        return false;
    return !fault->above_bytes || event->bytes > fault->above_bytes;
}

struct sim_fault *sim_fault_strikes(struct sim_machine *m, enum sim_fault_kind kind,
                                    struct sim_event event)
{
    struct sim_fault *strikes = NULL;

    for (unsigned i = 0; i < m->faults; i++) {
        struct sim_fault *fault = &m->fault[i];
        uint64_t seen;

        if (fault->kind != kind || !for_event(fault, &event))
            continue;
        seen = fault->seen++;
        if (seen >= fault->after && (!fault->times || seen - fault->after < fault->times))
            strikes = fault;
    }
    return strikes;
}

double sim_fault_held_ns(const struct sim_fault *fault, double running_ns)
{
    double from_ns = 1e6 * (double)fault->from_ms, most_ns = 1e6 * (double)fault->for_ms;
    double held_ns = running_ns > from_ns ? running_ns - from_ns : 0;

    return fault->for_ms && held_ns > most_ns ? most_ns : held_ns;
}

bool sim_fault_holds(const struct sim_fault *fault, double running_ns)
{
    double since_ns = running_ns - 1e6 * (double)fault->from_ms;

    return since_ns >= 0 && (!fault->for_ms || since_ns < 1e6 * (double)fault->for_ms);
}

const struct sim_fault *sim_fault_has(const struct sim_machine *m, enum sim_fault_kind kind,
                                      int gpu, int peer)
{
    for (unsigned i = 0; i < m->faults; i++)
        if (m->fault[i].kind == kind && for_devices(&m->fault[i], gpu, peer))
            return &m->fault[i];
    return NULL;
}
