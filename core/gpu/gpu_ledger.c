/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen of a case's GPUs, in words: see gpu_watch.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/evidence.h"
#include "core/gpu/gpu_watch.h"
#include "core/gpu/nvml.h"

/* A row is called disturbed above these. */
#define CLOCK_CHANGE 0.05
#define PCIE_REPLAYS 8.0

/* What holds a device back, and what else bounds its clocks; the names are in order of weight. */
static const struct {
    unsigned bits;
    bool setting;
    const char *name;
} names[] = {
    {NVML_REASON_POWER_CAP, false, "power cap"},
    {NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL, false, "thermal slowdown"},
    {NVML_REASON_POWER_BRAKE, false, "power brake"},
    {NVML_REASON_HW_SLOWDOWN, false, "hardware slowdown"},
    {NVML_REASON_BOARD_LIMIT, false, "board limit"},
    {NVML_REASON_APPLICATION_CLOCKS, true, "application clocks"},
    {NVML_REASON_SYNC_BOOST, true, "sync boost"},
    {NVML_REASON_DISPLAY_CLOCKS, true, "display clocks"},
    {NVML_REASON_RELIABILITY, true, "voltage limit"},
};

#define NAMES (sizeof(names) / sizeof(*names))

const char *gpu_watch_reasons(unsigned seen, char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    if (seen & (NVML_REASON_HW_THERMAL | NVML_REASON_POWER_BRAKE))
        seen &= ~NVML_REASON_HW_SLOWDOWN; /* comes with them */
    for (size_t i = 0, settings = 0; i < NAMES; i++) {
        if (!(seen & names[i].bits) || at >= len)
            continue;
        const char *before = names[i].setting && !settings++ ? (at ? "; set: " : "set: ")
                             : at                            ? ", "
                                                             : "";
        at += (size_t)snprintf(text + at, len - at, "%s%s", before, names[i].name);
    }
    return text;
}

void gpu_ledger_none(struct gpu_ledger *out)
{
    *out = (struct gpu_ledger){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, "", 0};
}

/* NAN where neither knows. */
static double both(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* fmin and fmax pass over NAN. */
void gpu_ledger_add(struct gpu_ledger *l, const struct gpu_ledger *more)
{
    l->clock_mhz_low = fmin(l->clock_mhz_low, more->clock_mhz_low);
    l->clock_mhz_high = fmax(l->clock_mhz_high, more->clock_mhz_high);
    l->memory_clock_mhz = fmin(l->memory_clock_mhz, more->memory_clock_mhz);
    l->temperature_c = fmax(l->temperature_c, more->temperature_c);
    l->power_watts = fmax(l->power_watts, more->power_watts);
    l->throttled_ms = fmax(l->throttled_ms, more->throttled_ms);
    l->looks = both(l->looks, more->looks);
    l->throttled_looks = both(l->throttled_looks, more->throttled_looks);
    l->ecc_errors = both(l->ecc_errors, more->ecc_errors);
    l->pcie_replays = both(l->pcie_replays, more->pcie_replays);
    l->seen |= more->seen;
    gpu_watch_reasons(l->seen, l->throttle, sizeof(l->throttle));
}

void gpu_ledger_add_same(struct gpu_ledger *l, const struct gpu_ledger *more)
{
    double ecc_errors = fmax(l->ecc_errors, more->ecc_errors);
    double pcie_replays = fmax(l->pcie_replays, more->pcie_replays);

    gpu_ledger_add(l, more);
    l->ecc_errors = ecc_errors;
    l->pcie_replays = pcie_replays;
}

static bool is_same(const struct gpu_sight *a, const struct gpu_sight *b)
{
    return a->address[0] && a->machine == b->machine && !strcmp(a->address, b->address);
}

/* Whether one before this one, and after the first, saw the same GPU. */
static bool is_joined(const struct gpu_sight *sights, size_t i)
{
    for (size_t k = 1; k < i; k++)
        if (is_same(&sights[k], &sights[i]))
            return true;
    return false;
}

void gpu_ledger_join(const struct gpu_sight *sights, size_t n, struct gpu_ledger *same,
                     struct gpu_ledger *others)
{
    gpu_ledger_none(same);
    gpu_ledger_none(others);
    for (size_t i = 1; i < n; i++) {
        if (is_joined(sights, i))
            continue;
        struct gpu_ledger gpu = *sights[i].ledger;
        for (size_t k = i + 1; k < n; k++)
            if (is_same(&sights[i], &sights[k]))
                gpu_ledger_add_same(&gpu, sights[k].ledger);
        gpu_ledger_add(is_same(&sights[0], &sights[i]) ? same : others, &gpu);
    }
}

bool gpu_ledger_sound(struct gpu_ledger *l)
{
    const double counts[] = {l->clock_mhz_low,   l->clock_mhz_high, l->memory_clock_mhz,
                             l->power_watts,     l->throttled_ms,   l->looks,
                             l->throttled_looks, l->ecc_errors,     l->pcie_replays};

    l->throttle[sizeof(l->throttle) - 1] = 0;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i] < 0 || isinf(counts[i]))
            return false;
    return !isinf(l->temperature_c);
}

/* Those that hold back come first in the text. */
static int held_length(const char *throttle)
{
    return strncmp(throttle, "set:", 4) ? (int)strcspn(throttle, ";") : 0;
}

const char *gpu_ledger_disturbance(const struct gpu_ledger *l, char *text, size_t len)
{
    int held = held_length(l->throttle);
    char samples[80] = "";

    text[0] = 0;
    if (l->samples > 0)
        snprintf(samples, sizeof(samples), ", %.0f of %.0f samples", l->throttled_samples,
                 l->samples);
    if (l->throttled_looks > 0)
        evidence_add(text, len, "GPU held back in %.0f of %.0f looks (%.*s)%s", l->throttled_looks,
                     l->looks, held, l->throttle, samples);
    else if (held)
        evidence_add(text, len, "GPU held back for %.3g ms (%.*s)%s", l->throttled_ms, held,
                     l->throttle, samples);
    if (l->clock_mhz_high - l->clock_mhz_low > CLOCK_CHANGE * l->clock_mhz_high)
        evidence_add(text, len, "GPU clock %.0f to %.0f MHz", l->clock_mhz_low, l->clock_mhz_high);
    if (l->ecc_errors > 0)
        evidence_add(text, len, "%.0f new memory errors of a GPU", l->ecc_errors);
    if (l->pcie_replays > PCIE_REPLAYS)
        evidence_add(text, len, "%.0f PCIe packets of a GPU sent again", l->pcie_replays);
    return text;
}
