/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: the table of columns and the CSV of rows; the table for people is in row_table.c. */
#include "core/row.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"

/* ---- Evidence ---- */

const char *const carriers[] = {"rdma", "sockets", "loopback", "shm", "peer", NULL};

const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES])
{
    size_t at = 0;

    text[0] = 0;
    for (size_t i = 0; carriers[i]; i++)
        if (kinds & 1u << i)
            at += (size_t)snprintf(text + at, CARRIERS_BYTES - at, "%s%s", at ? "+" : "",
                                   carriers[i]);
    return text;
}

unsigned carriers_read(const char *text)
{
    unsigned kinds = 0;

    for (; *text; text += *text == '+') {
        size_t n = strcspn(text, "+");
        size_t i = 0;
        while (carriers[i] && (strlen(carriers[i]) != n || memcmp(carriers[i], text, n) != 0))
            i++;
        if (!carriers[i])
            return 0;
        kinds |= 1u << i;
        text += n;
    }
    return kinds;
}

void evidence_add(char *text, size_t len, const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;

    if (at && at + 3 < len) {
        memcpy(text + at, ", ", 3);
        at += 2;
    }
    va_start(args, format);
    vsnprintf(text + at, len - at, format, args);
    va_end(args);
}

const char *const limit_kinds[] = {[LIMIT_TOLD] = "told",
                                   [LIMIT_SYSFS] = "sysfs",
                                   [LIMIT_NVML] = "nvml",
                                   [LIMIT_DATASHEET] = "datasheet",
                                   [LIMIT_MEASURED] = "measured",
                                   [LIMIT_REFERENCE] = "reference",
                                   NULL};
const char *const limit_links[] = {LIMIT_LINK_NVLINK, LIMIT_LINK_PCIE, LIMIT_LINK_INFINIBAND,
                                   LIMIT_LINK_ROCE, NULL};

enum limit_kind limit_kind_of(const char *word)
{
    for (int kind = 0; word && limit_kinds[kind]; kind++)
        if (!strcmp(word, limit_kinds[kind]))
            return (enum limit_kind)kind;
    return LIMIT_TOLD;
}

const char *limit_remark(double percent, char *text, size_t len)
{
    text[0] = 0;
    if (percent > LIMIT_EXCEEDED_PERCENT)
        snprintf(text, len,
                 "%.0f %% of the limit: the limit is too low, or the data did not take that path",
                 percent);
    return text;
}

bool limit_is_ours(enum limit_kind kind)
{
    return kind == LIMIT_MEASURED || kind == LIMIT_REFERENCE;
}

double limit_of_parts(const struct limit_parts *parts)
{
    double rest = 1 - parts->share, first = 0, second = rest > 0 ? rest / parts->rate[1] : 0;

    if (parts->share > 0)
        first = parts->share / parts->rate[0] + fmin(parts->fill / parts->rate[0], second);
    return 1 / (first > second || isnan(first) ? first : second); /* of what is unknown: NaN */
}

double ceiling_change(double before, double after)
{
    return fabs(after - before) / fmax(before, after);
}

#define AT(member) offsetof(struct row, member)

const struct row_column row_columns[] = {
    {"metric", ROW_TEXT, AT(metric), "what was measured: bandwidth, latency, rate ..."},
    {"unit", ROW_TEXT, AT(unit),
     "unit of value, of the interval and of every quantile; GB/s is 1e9 bytes, Gb/s 1e9 bits"},
    {"value", ROW_NUMBER, AT(value), "the median of the samples"},
    {"sustained", ROW_NUMBER, AT(sustained),
     "all of the work over all of the time of the samples, with pauses that a CPU quota or other "
     "guests made between or in them; of samples that were measured here"},
    {"value_is", ROW_TEXT, AT(value_is),
     "what value is where it is not the median: the column, mean, that others have it in; "
     "of imported rows alone"},
    {"differs", ROW_TEXT, AT(differs),
     "how the definition of value differs from ours, for people; of imported rows alone"},
    {"ci_low", ROW_NUMBER, AT(summary.ci_low),
     "lower end of the interval of the median, distribution-free, allowing for autocorrelation; "
     "empty: too few samples to tell it"},
    {"ci_high", ROW_NUMBER, AT(summary.ci_high), "upper end of the same interval"},
    {"confidence", ROW_SHARE, AT(summary.confidence),
     "confidence of the interval, 0.95 by default"},
    {"samples", ROW_COUNT, AT(samples), "samples kept: all that were taken after the warm-up"},
    {"discarded", ROW_COUNT, AT(discarded),
     "samples of the warm-up, which are in no statistic; nothing else is ever dropped"},
    {"inner_repeat", ROW_COUNT, AT(inner_repeat), "operations in one sample"},
    {"effective_samples", ROW_NUMBER, AT(summary.effective_n),
     "independent samples that these are worth, given the autocorrelation of signs and ranks"},
    {"min", ROW_NUMBER, AT(summary.min), "smallest sample"},
    {"p05", ROW_NUMBER, AT(summary.p05), "5 % quantile of the samples (type 7)"},
    {"p25", ROW_NUMBER, AT(summary.p25), "25 % quantile"},
    {"p50", ROW_NUMBER, AT(summary.p50), "50 % quantile: the same as value"},
    {"p75", ROW_NUMBER, AT(summary.p75), "75 % quantile"},
    {"p95", ROW_NUMBER, AT(summary.p95), "95 % quantile"},
    {"p99", ROW_NUMBER, AT(summary.p99), "99 % quantile"},
    {"p999", ROW_NUMBER, AT(summary.p999),
     "99.9 % quantile; interpolated between the largest when there are under 1000 samples"},
    {"max", ROW_NUMBER, AT(summary.max), "largest sample"},
    {"mean", ROW_NUMBER, AT(summary.mean), "arithmetic mean of the samples"},
    {"stddev", ROW_NUMBER, AT(summary.stddev), "standard deviation of the samples (n - 1)"},
    {"stop", ROW_TEXT, AT(stop),
     "why sampling ended: converged (the interval is as narrow as asked, of at least 20 "
     "independent "
     "samples), time (the budget), "
     "samples (the most "
     "allowed), interrupted"},
    {"width_wanted", ROW_SHARE, AT(width_wanted),
     "the interval was to be +/- this share of the value, or narrower"},
    {"noise_kind", ROW_TEXT, AT(noise),
     "what is wrong with the interval: wide (wider than asked), dependent (too few independent "
     "samples), changes (too few changes between two levels), few (too few samples for one), alike "
     "(too few: each is like the one before); empty: nothing"},
    {"level_low", ROW_NUMBER, AT(levels.low),
     "where the samples fall on two levels: the median of the lower one; else empty"},
    {"level_low_share", ROW_SHARE, AT(levels.share_low),
     "share of the samples on the lower level, 0 to 1"},
    {"level_high", ROW_NUMBER, AT(levels.high), "the median of the higher level"},
    {"level_high_share", ROW_SHARE, AT(levels.share_high),
     "share of the samples on the higher level, 0 to 1"},
    {"level_changes", ROW_NUMBER, AT(level_changes),
     "where noise_kind is changes: how often the samples changed between the levels"},
    {"limit", ROW_NUMBER, AT(limit),
     "the most that is physically possible here, in the row's unit"},
    {"limit_kind", ROW_TEXT, AT(limit_kind),
     "how the limit is known (docs/limits.md): datasheet, sysfs, nvml, told (otherwise), measured, "
     "reference (no limit: the same work on the same machine); empty: there is none"},
    {"limit_link", ROW_TEXT, AT(limit_link),
     "the link that the limit is of: nvlink, pcie, infiniband, roce; empty: another, or none"},
    {"limit_scope", ROW_TEXT, AT(limit_scope),
     "node: the most that any algorithm gets through each node's links; empty: what the link "
     "itself carries"},
    {"limit_raised_from", ROW_NUMBER, AT(limit_raised_from),
     "the limit that the value exceeded, before it was raised; empty: it did not"},
    {"limit_source", ROW_TEXT, AT(limit_source),
     "for people: where the limit comes from, or why there is none"},
    {"percent_of_limit", ROW_NUMBER, AT(percent_of_limit), "100 * value / limit"},
    {"ceiling_place", ROW_TEXT, AT(ceiling_place),
     "of a limit that was measured: the path and place of its first ceiling; rows of a run with "
     "the "
     "same text share the best one"},
    {"ceiling", ROW_NUMBER, AT(ceiling), "that ceiling, in the row's unit"},
    {"ceiling_share", ROW_SHARE, AT(ceiling_share),
     "share of the value that goes by the first path, 0 to 1; the rest goes by the second"},
    {"ceiling_fill", ROW_NUMBER, AT(ceiling_fill),
     "what the first path carries besides, as a multiple of the value: lines that stores fill"},
    {"ceiling2_place", ROW_TEXT, AT(ceiling2_place), "the path and place of the second ceiling"},
    {"ceiling2", ROW_NUMBER, AT(ceiling2), "the second ceiling, in the row's unit"},
    {"limit_before", ROW_NUMBER, AT(limit_before),
     "of a limit that was measured twice: what it was before the samples"},
    {"limit_after", ROW_NUMBER, AT(limit_after), "and after them; limit is made of the best"},
    {"carrier", ROW_TEXT, AT(carrier),
     "kinds of path that carried the bytes, with + between them: rdma, sockets, loopback, shm, "
     "peer; empty: not proved"},
    {"carrier_device", ROW_TEXT, AT(carrier_device),
     "the first device that this end opened for them: eth0, mlx5_0:1; empty: none, or not told"},
    {"carrier_gid", ROW_NUMBER, AT(carrier_gid),
     "of RoCE, the index of its address in the port's table of GIDs"},
    {"evidence", ROW_TEXT, AT(evidence),
     "for people: which device or memory carried the bytes, by its own counters"},
    {"origin", ROW_TEXT, AT(origin),
     "measured, modelled, simulated, or imported (another program printed it)"},
    {"status", ROW_TEXT, AT(status),
     "ok, noisy (the interval is wider than asked, or of too few independent samples), wrong (data "
     "or path), skipped (cannot run "
     "here) or failed"},
    {"code", ROW_TEXT, AT(code),
     "why status is wrong, skipped or failed, in one word that stays the same; else empty"},
    {"reason", ROW_TEXT, AT(reason),
     "for people: why it is not ok, and remarks that no other column makes"},
    {"elapsed_s", ROW_NUMBER, AT(ledger.elapsed_s),
     "wall time of the case: warm-up and samples, s"},
    {"steal_percent", ROW_NUMBER, AT(ledger.steal_percent),
     "time that the hypervisor gave to others, % of the time in which CPUs had work"},
    {"ctx_involuntary", ROW_NUMBER, AT(ledger.ctx_involuntary),
     "times the benchmark was pushed off a CPU"},
    {"ctx_voluntary", ROW_NUMBER, AT(ledger.ctx_voluntary), "times the benchmark gave up a CPU"},
    {"faults_major", ROW_NUMBER, AT(ledger.faults_major), "page faults that went to a disk"},
    {"faults_minor", ROW_NUMBER, AT(ledger.faults_minor), "page faults that did not"},
    {"cpu_mhz_low", ROW_NUMBER, AT(ledger.cpu_mhz_low),
     "CPU clock, measured, the lower of before and after, MHz"},
    {"cpu_mhz_high", ROW_NUMBER, AT(ledger.cpu_mhz_high), "the higher of the two, MHz"},
    {"throttle_events", ROW_NUMBER, AT(ledger.throttle_events),
     "thermal throttling events of cores and packages, as each CPU counts them"},
    {"quota_throttled_ms", ROW_NUMBER, AT(ledger.quota_throttled_ms),
     "time that the cgroup's CPU quota held the benchmark, over its CPUs, ms"},
    {"quota_percent", ROW_NUMBER, AT(ledger.quota_percent),
     "the same, % of the CPU time that the cgroup wanted: used, or was held"},
    {"cpu_watts", ROW_NUMBER, AT(ledger.cpu_watts),
     "mean power draw of all processor packages and their memory over elapsed_s, by their energy "
     "counters, W"},
    {"gpu_clock_mhz_low", ROW_NUMBER, AT(gpu.clock_mhz_low),
     "lowest clock of the case's GPUs at work, MHz; this and the gpu_* that follow: by the GPU's "
     "management library"},
    {"gpu_clock_mhz_high", ROW_NUMBER, AT(gpu.clock_mhz_high), "the highest, MHz"},
    {"gpu_memory_clock_mhz", ROW_NUMBER, AT(gpu.memory_clock_mhz),
     "lowest clock of their memory, MHz"},
    {"gpu_temperature_c", ROW_NUMBER, AT(gpu.temperature_c), "highest temperature, degrees C"},
    {"gpu_power_watts", ROW_NUMBER, AT(gpu.power_watts), "highest power draw, W"},
    {"gpu_mean_watts", ROW_NUMBER, AT(gpu.mean_watts),
     "mean power draw while sampling, by energy counters, the highest of any GPU, W"},
    {"gpu_energy_s", ROW_NUMBER, AT(gpu.energy_s), "the time of that mean, s"},
    {"gpu_looks", ROW_NUMBER, AT(gpu.looks), "how often the GPUs were looked at"},
    {"gpu_throttled_looks", ROW_NUMBER, AT(gpu.throttled_looks),
     "how often one of them was found held back"},
    {"gpu_throttled_ms", ROW_NUMBER, AT(gpu.throttled_ms),
     "time that a GPU was held back, by its own counters, ms"},
    {"gpu_throttle", ROW_TEXT, AT(gpu_throttle), "by what: power cap, thermal slowdown ..."},
    {"gpu_clocks_set", ROW_TEXT, AT(gpu_clocks_set),
     "settings that bound its clocks, which is no throttling: application clocks, sync boost ..."},
    {"gpu_ecc_errors", ROW_NUMBER, AT(gpu.ecc_errors), "new memory errors, corrected or not"},
    {"gpu_pcie_replays", ROW_NUMBER, AT(gpu.pcie_replays), "packets sent again over PCIe"},
    {"disturbed", ROW_TEXT, AT(disturbed),
     "for people: what disturbed the row, by the thresholds of docs/measuring.md; empty: nothing "
     "seen"},
    {"bench", ROW_TEXT, AT(bench), "the benchmark"},
    {"label", ROW_TEXT, AT(label),
     "the case in words, for people: what was requested and what the launch sweeps over"},
    {"run", ROW_TEXT, AT(run), "name of the run"},
    {"case", ROW_TEXT, AT(case_id), "number of the case in plan.csv"},
    {"repeat", ROW_COUNT, AT(repeat), "which launch of the case, from 1"},
    {"launch_s", ROW_NUMBER, AT(launch_s),
     "wall time of the whole launch, with its start, set-up and checks, s: the same in all its "
     "rows"},
    {"process_cases", ROW_NUMBER, AT(process_cases),
     "cases that the launch's process had measured before; empty: it shared no process"},
    {"host", ROW_TEXT, AT(host), "where it was measured"},
    {"machine", ROW_TEXT, AT(machine), "processor of the run's machine"},
    {"time_utc", ROW_TEXT, AT(time_utc), "when the case ended"},
    {NULL, ROW_TEXT, 0, NULL},
};

const char *const row_statuses[] = {"ok", "noisy", "wrong", "skipped", "failed", NULL};
const char *const row_codes[] = {
    "no-device",      "no-library",       "needs-root",    "no-memory",
    "no-space",       "unsupported",      "wrong-usage",   "wrong-data",
    ROW_CODE_TIMEOUT, ROW_CODE_PEER_LOST, "not-timed",     "interrupted",
    ROW_CODE_CRASHED, ROW_CODE_NO_ROWS,   ROW_CODE_FAILED, NULL};

const char *row_code(int err)
{
    switch (-err) {
    case 0:
        return "";
    case ENODEV:
    case ENXIO:
        return "no-device";
    case ELIBACC:
        return "no-library";
    case EPERM:
    case EACCES:
        return "needs-root";
    case ENOMEM:
        return "no-memory";
    case ENOSPC:
        return "no-space";
    case EOPNOTSUPP:
    case ENOSYS:
        return "unsupported";
    case EINVAL:
        return "wrong-usage";
    case EBADMSG:
        return "wrong-data";
    case ETIMEDOUT:
        return ROW_CODE_TIMEOUT;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
        return ROW_CODE_PEER_LOST;
    case ENOTRECOVERABLE:
        return "not-timed";
    case EINTR:
    case ECANCELED:
        return "interrupted";
    default:
        return ROW_CODE_FAILED;
    }
}

const char *const row_origins[] = {"measured", "modelled", "simulated", "imported", NULL};
const char *const row_stops[] = {"converged", "time", "samples", "interrupted", NULL};
const char *const row_noises[] = {ROW_NOISE_WIDE, ROW_NOISE_DEPENDENT, ROW_NOISE_FEW_CHANGES,
                                  ROW_NOISE_FEW,  ROW_NOISE_ALIKE,     NULL};

void row_init(struct row *row)
{
    memset(row, 0, sizeof(*row));
    for (const struct row_column *c = row_columns; c->name; c++)
        if (c->kind == ROW_NUMBER || c->kind == ROW_SHARE)
            *(double *)((char *)row + c->offset) = NAN;
}

/* Counts are not measured either where there is no sample; `repeat` always is. */
static int is_unmeasured_count(const struct row *row, const struct row_column *c)
{
    return row->samples == 0 && c->offset != AT(repeat);
}

static void print_cell(FILE *out, const struct row *row, const struct row_column *c)
{
    const char *at = (const char *)row + c->offset;

    if (c->kind == ROW_TEXT)
        csv_print(out, *(const char *const *)at);
    else if (c->kind != ROW_COUNT)
        csv_print_number(out, *(const double *)at);
    else if (!is_unmeasured_count(row, c))
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
}

void row_print_csv_header(FILE *out, const char *const *param_names, size_t n_params)
{
    for (size_t i = 0; i < n_params; i++) {
        csv_print(out, param_names[i]);
        fputc(',', out);
    }
    for (const struct row_column *c = row_columns; c->name; c++)
        fprintf(out, "%s%s", c == row_columns ? "" : ",", c->name);
    fputc('\n', out);
}

void row_print_csv(FILE *out, const struct row *row)
{
    for (size_t i = 0; i < row->n_params; i++) {
        csv_print(out, row->params[i]);
        fputc(',', out);
    }
    for (const struct row_column *c = row_columns; c->name; c++) {
        if (c != row_columns)
            fputc(',', out);
        print_cell(out, row, c);
    }
    fputc('\n', out);
}

/* A name of ours: it needs no escapes. */
static void print_key(FILE *out, const char *name)
{
    fprintf(out, ", \"%s\": ", name);
}

/* Digits alone, as JSON has them. */
static bool is_count(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n && !text[n] && (*text != '0' || n == 1);
}

static void print_member(FILE *out, const struct row *row, const struct row_column *c)
{
    const char *at = (const char *)row + c->offset;
    const char *text = c->kind == ROW_TEXT ? *(const char *const *)at : NULL;
    double value = c->kind == ROW_NUMBER || c->kind == ROW_SHARE ? *(const double *)at : NAN;

    if (text && *text) {
        print_key(out, c->name);
        json_print(out, text);
    } else if (c->kind == ROW_COUNT ? !is_unmeasured_count(row, c) : isfinite(value)) {
        print_key(out, c->name);
        print_cell(out, row, c);
    }
}

void row_print_json(FILE *out, const struct row *row)
{
    fprintf(out, "{\"bench\": \"%s\"", row->bench);
    for (size_t i = 0; i < row->n_params; i++) {
        const char *text = row->params[i];
        if (!text || !*text)
            continue;
        print_key(out, row->param_names[i]);
        if (row->param_counts[i] && is_count(text))
            fputs(text, out);
        else
            json_print(out, text);
    }
    for (const struct row_column *c = row_columns; c->name; c++)
        if (c->offset != AT(bench))
            print_member(out, row, c);
    fputs("}\n", out);
}

/* ---- Sentences on a row, made of its columns: see row_says() in row.h ---- */

__attribute__((format(printf, 2, 3))) static void add(char text[ROW_SAYS_BYTES], const char *format,
                                                      ...)
{
    size_t at = strlen(text);
    va_list args;

    at += (size_t)snprintf(text + at, ROW_SAYS_BYTES - at, "%s", at ? "; " : "");
    va_start(args, format);
    if (at < ROW_SAYS_BYTES)
        vsnprintf(text + at, ROW_SAYS_BYTES - at, format, args);
    va_end(args);
}

static bool is_noise(const struct row *row, const char *noise)
{
    return row->noise && !strcmp(row->noise, noise);
}

/* Narrow, and yet no proof: what the samples lack. */
static void say_doubt(const struct row *row, char text[ROW_SAYS_BYTES])
{
    bool dependent = is_noise(row, ROW_NOISE_DEPENDENT);
    char sides[48];

    if (!dependent && !is_noise(row, ROW_NOISE_FEW_CHANGES))
        return;
    units_format_interval(row->summary.ci_low, row->summary.ci_high, row->value, sides,
                          sizeof(sides));
    if (dependent)
        add(text,
            "interval is %s, but of %.2g independent samples, wanted %d, when sampling stopped "
            "(%s)",
            sides, row->summary.effective_n, STATS_INDEPENDENT_MIN, row->stop ? row->stop : "");
    else
        add(text,
            "interval is %s, but the level changed %.0f times, wanted %d, when sampling stopped "
            "(%s)",
            sides, row->level_changes, STATS_INDEPENDENT_MIN, row->stop ? row->stop : "");
}

double row_sustained_share(double sustained, double value, const char *unit)
{
    const struct unit *of = unit ? units_find(unit) : NULL;

    return !of ? NAN : of->higher_is_better ? sustained / value : value / sustained;
}

const char *row_says(const struct row *row, unsigned which, char text[ROW_SAYS_BYTES])
{
    double share = row_sustained_share(row->sustained, row->value, row->unit);
    char above[128];

    text[0] = 0;
    if (which & ROW_SAYS_RAISED && !isnan(row->limit_raised_from))
        add(text, "the limit, %.4g %s, was exceeded and is raised", row->limit_raised_from,
            row->unit ? row->unit : "");
    /* A latency below its reference is no remark. */
    const struct unit *unit = row->unit ? units_find(row->unit) : NULL;
    if (which & ROW_SAYS_ABOVE && unit && unit->higher_is_better &&
        *limit_remark(row->percent_of_limit, above, sizeof(above)))
        add(text, "%s", above);
    if (which & ROW_SAYS_WIDE) {
        char sides[48];
        if (is_noise(row, ROW_NOISE_WIDE) &&
            *units_format_interval(row->summary.ci_low, row->summary.ci_high, row->value, sides,
                                   sizeof(sides)))
            add(text, "interval is %s, wanted %.2g %%, when sampling stopped (%s)", sides,
                100 * row->width_wanted, row->stop ? row->stop : "");
        say_doubt(row, text);
    }
    if (which & ROW_SAYS_NONE && is_noise(row, ROW_NOISE_FEW))
        add(text, "too few samples for an interval");
    if (which & ROW_SAYS_NONE && is_noise(row, ROW_NOISE_ALIKE))
        add(text, "too few samples for an interval: each is like the one before");
    if (which & ROW_SAYS_SUSTAINED && share < 1 - ROW_SUSTAINED_WORSE)
        add(text, "sustained over all of the time: %.4g %s, %.0f %% of the median", row->sustained,
            row->unit, 100 * share);
    return text;
}
