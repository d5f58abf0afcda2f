/* SPDX-License-Identifier: Apache-2.0 */
/* Watching GPUs: see gpu_watch.h. */
#include "core/hw/gpu_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/nvml.h"
#include "core/row.h"

/* Reasons that hold a device back; others only bound its clocks. */
#define GPU_HELD_BACK                                                                              \
    (NVML_REASON_POWER_CAP | NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL |                     \
     NVML_REASON_POWER_BRAKE | NVML_REASON_HW_SLOWDOWN | NVML_REASON_BOARD_LIMIT)

/* ---- Windows in which a GPU was held back ---- */

static void gpu_held_clear(struct gpu_held *held)
{
    held->n = 0;
    held->always = 0;
}

void gpu_held_add(struct gpu_held *held, uint64_t from_ns, uint64_t to_ns, unsigned reasons)
{
    size_t last = held->n - 1;

    if (!reasons)
        return;
    if (held->n == GPU_HELD_WINDOWS || (held->n && held->windows[last].reasons == reasons &&
                                        held->windows[last].to_ns >= from_ns)) {
        held->windows[last].reasons |= reasons;
        held->windows[last].to_ns = to_ns;
        return;
    }
    held->windows[held->n].from_ns = from_ns;
    held->windows[held->n].to_ns = to_ns;
    held->windows[held->n++].reasons = reasons;
}

/* The first window that ends at `ns` or later. */
static size_t first_window(const struct gpu_held *held, uint64_t ns)
{
    size_t low = 0, high = held->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (held->windows[middle].to_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

unsigned gpu_held_between(const struct gpu_held *held, uint64_t from_ns, uint64_t to_ns)
{
    unsigned reasons = held->always;

    for (size_t i = first_window(held, from_ns); i < held->n && held->windows[i].from_ns <= to_ns;
         i++)
        reasons |= held->windows[i].reasons;
    return reasons;
}

/* ---- What was seen of a case's GPUs, in words ---- */

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

static const char *name_bits(unsigned seen, bool settings, char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    if (seen & (NVML_REASON_HW_THERMAL | NVML_REASON_POWER_BRAKE))
        seen &= ~NVML_REASON_HW_SLOWDOWN; /* comes with them */
    for (size_t i = 0; i < NAMES; i++)
        if (seen & names[i].bits && names[i].setting == settings && at < len)
            at += (size_t)snprintf(text + at, len - at, "%s%s", at ? ", " : "", names[i].name);
    return text;
}

const char *gpu_watch_reasons(unsigned seen, char *text, size_t len)
{
    return name_bits(seen, false, text, len);
}

/* The words of both into the ledger, by its `seen`. */
static void gpu_ledger_name(struct gpu_ledger *l)
{
    name_bits(l->seen, false, l->throttle, sizeof(l->throttle));
    name_bits(l->seen, true, l->clocks_set, sizeof(l->clocks_set));
}

void gpu_ledger_none(struct gpu_ledger *out)
{
    *out = (struct gpu_ledger){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                               NAN, NAN, NAN, NAN, NAN, "",  "",  0};
}

/* NAN where neither knows. */
static double both(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* The mean and its time are one device's: that which drew the most. */
static void take_power(struct gpu_ledger *l, double watts, double seconds)
{
    if (isnan(watts) || watts <= l->mean_watts)
        return;
    l->mean_watts = watts;
    l->energy_s = seconds;
}

/* fmin and fmax pass over NAN. */
void gpu_ledger_add(struct gpu_ledger *l, const struct gpu_ledger *more)
{
    l->clock_mhz_low = fmin(l->clock_mhz_low, more->clock_mhz_low);
    l->clock_mhz_high = fmax(l->clock_mhz_high, more->clock_mhz_high);
    l->memory_clock_mhz = fmin(l->memory_clock_mhz, more->memory_clock_mhz);
    l->temperature_c = fmax(l->temperature_c, more->temperature_c);
    l->power_watts = fmax(l->power_watts, more->power_watts);
    take_power(l, more->mean_watts, more->energy_s);
    l->throttled_ms = fmax(l->throttled_ms, more->throttled_ms);
    l->looks = both(l->looks, more->looks);
    l->throttled_looks = both(l->throttled_looks, more->throttled_looks);
    l->ecc_errors = both(l->ecc_errors, more->ecc_errors);
    l->pcie_replays = both(l->pcie_replays, more->pcie_replays);
    l->seen |= more->seen;
    gpu_ledger_name(l);
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
                             l->throttled_looks, l->ecc_errors,     l->pcie_replays,
                             l->mean_watts,      l->energy_s};

    l->throttle[sizeof(l->throttle) - 1] = 0;
    l->clocks_set[sizeof(l->clocks_set) - 1] = 0;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i] < 0 || isinf(counts[i]))
            return false;
    return !isinf(l->temperature_c);
}

const char *gpu_ledger_disturbance(const struct gpu_ledger *l, char *text, size_t len)
{
    char samples[80] = "";

    text[0] = 0;
    if (l->samples > 0)
        snprintf(samples, sizeof(samples), ", %.0f of %.0f samples", l->throttled_samples,
                 l->samples);
    if (l->throttled_looks > 0)
        evidence_add(text, len, "GPU held back in %.0f of %.0f looks (%s)%s", l->throttled_looks,
                     l->looks, l->throttle, samples);
    else if (l->throttle[0])
        evidence_add(text, len, "GPU held back for %.3g ms (%s)%s", l->throttled_ms, l->throttle,
                     samples);
    if (l->clock_mhz_high - l->clock_mhz_low > CLOCK_CHANGE * l->clock_mhz_high)
        evidence_add(text, len, "GPU clock %.0f to %.0f MHz", l->clock_mhz_low, l->clock_mhz_high);
    if (l->ecc_errors > 0)
        evidence_add(text, len, "%.0f new memory errors of a GPU", l->ecc_errors);
    if (l->pcie_replays > PCIE_REPLAYS)
        evidence_add(text, len, "%.0f PCIe packets of a GPU sent again", l->pcie_replays);
    return text;
}

/* ---- What NVML says of the GPUs of a case ---- */

/* Clocks take some ms to rise when work begins. */
#define FIRST_LOOK_NS 25000000u
/* Clocks are steered by briefly touching the limits: less than this share of the time is no
 * throttling that matters. */
#define HELD_SHARE 0.01

/* Counters of the time that a device was held back. */
static const struct {
    unsigned reason;
    enum nvml_held what;
} counters[] = {
    {NVML_REASON_POWER_CAP, NVML_HELD_POWER},
    {NVML_REASON_SW_THERMAL, NVML_HELD_HEAT},
    {NVML_REASON_HW_THERMAL, NVML_HELD_HARDWARE_HEAT},
    {NVML_REASON_POWER_BRAKE, NVML_HELD_POWER_BRAKE},
    {NVML_REASON_BOARD_LIMIT, NVML_HELD_BOARD_LIMIT},
};

#define COUNTERS (sizeof(counters) / sizeof(*counters))

/* What counts up; NaN where it is not known. */
struct marks {
    double held_ns[COUNTERS], ecc_errors, pcie_replays, millijoules;
    uint64_t energy_ns; /* when those were read */
};

struct gpu_watch {
    const struct nvml *nvml;
    struct nvml *own; /* opened here */
    bool opened;      /* it was tried */
    char blind[160];  /* why a device is not watched */
    struct nvml_device *devices[GPU_WATCH_MAX];
    struct marks begin[GPU_WATCH_MAX], last[GPU_WATCH_MAX]; /* at the begin and at the last look */
    size_t n;
    uint64_t begin_ns, next_ns;
    unsigned seen;        /* reasons */
    uint64_t last_ns;     /* the last look began; or sampling, before the first one */
    unsigned last_held;   /* what it found */
    struct gpu_held held; /* when */
    struct gpu_ledger ledger;
};

struct gpu_watch *gpu_watch_open(void)
{
    struct gpu_watch *watch = xcalloc(1, sizeof(*watch));

    gpu_ledger_none(&watch->ledger);
    return watch;
}

struct gpu_watch *gpu_watch_open_on(const struct nvml *nvml)
{
    struct gpu_watch *watch = gpu_watch_open();

    watch->nvml = nvml;
    watch->opened = true;
    return watch;
}

void gpu_watch_close(struct gpu_watch *watch)
{
    if (!watch)
        return;
    nvml_close(watch->own);
    free(watch);
}

void gpu_watch_clear(struct gpu_watch *watch)
{
    watch->n = 0;
    watch->seen = 0;
    gpu_held_clear(&watch->held);
    watch->last_held = 0;
    if (watch->nvml)
        watch->blind[0] = 0;
    gpu_ledger_none(&watch->ledger);
}

static void open_library(struct gpu_watch *watch)
{
    char why[160];

    watch->opened = true;
    if (!nvml_open(&watch->own, why, sizeof(why)))
        watch->nvml = watch->own;
    else
        snprintf(watch->blind, sizeof(watch->blind), "%s", why);
}

bool gpu_watch_simulated(struct gpu_watch *watch)
{
    if (!watch->opened)
        open_library(watch);
    return watch->nvml && watch->nvml->simulated;
}

const char *gpu_watch_blind(const struct gpu_watch *watch)
{
    return watch->blind;
}

static bool has(const struct gpu_watch *watch, const struct nvml_device *device)
{
    for (size_t i = 0; i < watch->n; i++)
        if (watch->devices[i] == device)
            return true;
    return false;
}

void gpu_watch_add(struct gpu_watch *watch, const char *address)
{
    struct nvml_device *device = NULL;

    if (!watch->opened)
        open_library(watch);
    if (watch->nvml && watch->n < GPU_WATCH_MAX)
        device = nvml_find(watch->nvml, address);
    if (watch->nvml && !device)
        snprintf(watch->blind, sizeof(watch->blind), "NVML does not show %s to this program",
                 address);
    if (device && !has(watch, device))
        watch->devices[watch->n++] = device;
}

static double held_ns(const struct nvml *nvml, struct nvml_device *device, size_t counter)
{
    double ns;

    return nvml_held_ns(nvml, device, counters[counter].what, &ns) ? NAN : ns;
}

/* Since the driver was loaded, corrected and not; of the memory alone where there is no total. */
static double ecc_errors(const struct nvml *nvml, struct nvml_device *device)
{
    double sum = 0;

    for (int kind = NVML_CORRECTED; kind <= NVML_UNCORRECTED; kind++) {
        unsigned long long count = 0;
        if (!NVML_ASK(nvml, ecc_total, device, kind, NVML_SINCE_LOAD, &count) &&
            !NVML_ASK(nvml, memory_errors, device, kind, NVML_SINCE_LOAD, NVML_DRAM, &count))
            return NAN;
        sum += (double)count;
    }
    return sum;
}

static void read_marks(const struct nvml *nvml, struct nvml_device *device, struct marks *marks)
{
    unsigned replays = 0;
    unsigned long long millijoules = 0;

    for (size_t i = 0; i < COUNTERS; i++)
        marks->held_ns[i] = held_ns(nvml, device, i);
    marks->ecc_errors = ecc_errors(nvml, device);
    marks->pcie_replays = NVML_ASK(nvml, pcie_replays, device, &replays) ? replays : NAN;
    uint64_t before_ns = clock_now_ns(); /* an answer may take a few ms */
    marks->millijoules = NVML_ASK(nvml, energy, device, &millijoules) ? (double)millijoules : NAN;
    marks->energy_ns = before_ns + (clock_now_ns() - before_ns) / 2;
}

void gpu_watch_begin(struct gpu_watch *watch)
{
    gpu_ledger_none(&watch->ledger);
    watch->seen = 0;
    gpu_held_clear(&watch->held);
    watch->last_held = 0;
    for (size_t i = 0; i < watch->n; i++) {
        read_marks(watch->nvml, watch->devices[i], &watch->begin[i]);
        watch->last[i] = watch->begin[i];
    }
    if (watch->n)
        watch->ledger.looks = 0;
    watch->begin_ns = clock_now_ns();
    watch->last_ns = watch->begin_ns;
    watch->next_ns = watch->begin_ns + FIRST_LOOK_NS;
}

static bool ask_reasons(const struct nvml *nvml, struct nvml_device *device, unsigned *bits)
{
    unsigned long long answer = 0;
    bool known =
        NVML_ASK(nvml, reasons, device, &answer) || NVML_ASK(nvml, reasons_old, device, &answer);

    *bits = (unsigned)answer & NVML_REASONS_KNOWN; /* later drivers may tell of others */
    return known;
}

/* fmin and fmax pass over NaN. */
static void look_at_clocks(const struct nvml *nvml, struct nvml_device *device,
                           struct gpu_ledger *l)
{
    unsigned mhz = 0;

    if (NVML_ASK(nvml, clock, device, NVML_CLOCK_SM, &mhz)) {
        l->clock_mhz_low = fmin(l->clock_mhz_low, mhz);
        l->clock_mhz_high = fmax(l->clock_mhz_high, mhz);
    }
    if (NVML_ASK(nvml, clock, device, NVML_CLOCK_MEMORY, &mhz))
        l->memory_clock_mhz = fmin(l->memory_clock_mhz, mhz);
}

/* Returns the reasons; *known: the device tells them. An idle device's clocks say nothing. */
static unsigned look_at(struct gpu_watch *watch, struct nvml_device *device, bool *known)
{
    const struct nvml *nvml = watch->nvml;
    struct gpu_ledger *l = &watch->ledger;
    struct nvml_temperature new = {.version = NVML_VERSION(struct nvml_temperature, 1)};
    unsigned bits, milliwatts = 0, old = 0;

    *known = ask_reasons(nvml, device, &bits);
    if (!(bits & NVML_REASON_IDLE))
        look_at_clocks(nvml, device, l);
    if (NVML_ASK(nvml, temperature, device, &new))
        l->temperature_c = fmax(l->temperature_c, new.celsius);
    else if (NVML_ASK(nvml, temperature_old, device, 0, &old))
        l->temperature_c = fmax(l->temperature_c, old);
    if (NVML_ASK(nvml, power, device, &milliwatts))
        l->power_watts = fmax(l->power_watts, milliwatts / 1e3);
    return bits;
}

/* Reasons whose counters grew since the last look, by more than touching the limits does. */
static unsigned grown(struct gpu_watch *watch, uint64_t now_ns)
{
    double span_ns = fmax((double)(now_ns - watch->last_ns), GPU_WATCH_EVERY_NS);
    unsigned held = 0;

    for (size_t i = 0; i < watch->n; i++)
        for (size_t k = 0; k < COUNTERS; k++) {
            double ns = held_ns(watch->nvml, watch->devices[i], k);
            if (ns - watch->last[i].held_ns[k] > HELD_SHARE * span_ns)
                held |= counters[k].reason;
            watch->last[i].held_ns[k] = ns;
        }
    return held;
}

static void look(struct gpu_watch *watch)
{
    struct gpu_ledger *l = &watch->ledger;
    uint64_t begin_ns = clock_now_ns();
    bool any_known = false, known;
    unsigned bits = 0;

    for (size_t i = 0; i < watch->n; i++) {
        bits |= look_at(watch, watch->devices[i], &known);
        any_known = any_known || known;
    }
    unsigned more = grown(watch, begin_ns);
    gpu_held_add(&watch->held, watch->last_ns, clock_now_ns(),
                 watch->last_held | (bits & GPU_HELD_BACK) | more);
    watch->last_held = bits & GPU_HELD_BACK;
    watch->last_ns = begin_ns;
    watch->seen |= bits | more;
    l->looks++;
    if (any_known)
        l->throttled_looks = fmax(l->throttled_looks, 0) + (bits & GPU_HELD_BACK ? 1 : 0);
}

bool gpu_watch_look(struct gpu_watch *watch)
{
    if (!watch->n || clock_now_ns() < watch->next_ns)
        return false;
    look(watch);
    watch->next_ns = clock_now_ns() + GPU_WATCH_EVERY_NS;
    return true;
}

/* Adds what a counter grew by; one that went back was reset meanwhile, and says nothing. */
static void add_growth(double *sum, double before, double after)
{
    if (after >= before)
        *sum = (isnan(*sum) ? 0 : *sum) + after - before;
}

/* Reasons overlap in time: the longest is the least that is sure. */
static void add_held(struct gpu_watch *watch, const struct marks *before, const struct marks *after,
                     double elapsed_ns)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        double ns = after->held_ns[i] - before->held_ns[i];
        if (!(ns >= 0))
            continue;
        watch->ledger.throttled_ms = fmax(watch->ledger.throttled_ms, ns / 1e6);
        if (ns <= HELD_SHARE * elapsed_ns)
            continue;
        watch->seen |= counters[i].reason;
        if (!(gpu_held_between(&watch->held, 0, UINT64_MAX) & counters[i].reason))
            watch->held.always |= counters[i].reason; /* little at a time: who knows when */
    }
}

static void add_marks(struct gpu_watch *watch, size_t device, double elapsed_ns)
{
    const struct marks *before = &watch->begin[device];
    struct marks after;

    read_marks(watch->nvml, watch->devices[device], &after);
    add_held(watch, before, &after, elapsed_ns);
    add_growth(&watch->ledger.ecc_errors, before->ecc_errors, after.ecc_errors);
    add_growth(&watch->ledger.pcie_replays, before->pcie_replays, after.pcie_replays);
    double millijoules = NAN;
    add_growth(&millijoules, before->millijoules, after.millijoules);
    double energy_s = (double)(after.energy_ns - before->energy_ns) * 1e-9;
    if (!(millijoules > 0)) /* it was not updated meanwhile, or is not known */
        return;
    if (energy_s >= GPU_POWER_LEAST_S)
        take_power(&watch->ledger, millijoules * 1e-3 / energy_s, energy_s);
}

void gpu_watch_end(struct gpu_watch *watch, struct gpu_ledger *out)
{
    double elapsed_ns = (double)(clock_now_ns() - watch->begin_ns);

    if (watch->n && watch->ledger.looks < 1)
        look(watch); /* a short case: its heat, at least */
    uint64_t end_ns = clock_now_ns();
    unsigned more = grown(watch, end_ns);
    watch->seen |= more;
    gpu_held_add(&watch->held, watch->last_ns, end_ns, watch->last_held | more);
    for (size_t i = 0; i < watch->n; i++)
        add_marks(watch, i, elapsed_ns);
    watch->ledger.seen = watch->seen;
    gpu_ledger_name(&watch->ledger);
    *out = watch->ledger;
}

unsigned gpu_watch_held(const struct gpu_watch *watch, uint64_t from_ns, uint64_t to_ns)
{
    return gpu_held_between(&watch->held, from_ns, to_ns);
}
