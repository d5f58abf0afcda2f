/* SPDX-License-Identifier: Apache-2.0 */
/* Which program a text is of, and what its readers are made of: see foreign.h. */
#include "harness/foreign/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/units.h"

const struct foreign_format foreign_formats[] = {
    {"nvbandwidth", "JSON", "nvbandwidth", 4, 8, read_nvbandwidth_json},
    {"nvbandwidth", "text", "^nvbandwidth Version:", 4, 8, read_nvbandwidth_text},
    {"nccl-tests", "JSON", "nccl_version", 0, 0, read_nccl_json},
    {"nccl-tests", "text", "# nThread [0-9]+ nGpus [0-9]+", 2000, 2019, read_nccl_text},
    {"perftest", "JSON", "test_info.test", 0, 0, read_perftest_json},
    {"perftest", "text", " #bytes +#iterations +", 0, 0, read_perftest_text},
    {"iperf3", "JSON", "end.sum_received", 3000, 3020, read_iperf3},
    {"iperf3", "JSON", "start.version", 3000, 3020, read_iperf3}, /* it failed */
    {"sockperf", "text", "sockperf: ", 3000, 3010, read_sockperf},
    {"qperf", "text", "^(tcp|udp)_(lat|bw):", 0, 0, read_qperf},
    {"ucx_perftest", "CSV", "^iterations,.*overall_", 0, 0, read_ucx},
    {"osu-micro-benchmarks", "text", "^# (OSU [A-Z]|Size +.*(Latency|Bandwidth))", 3000, 7005,
     read_osu},
    {"imb", "text", "Intel\\(R\\) MPI Benchmarks|#bytes #repetitions", 2017000, 2021999, read_imb},
    {NULL, NULL, NULL, 0, 0, NULL},
};

/* ---- Reading ---- */

int reading_bad(struct foreign_reading *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->error, r->len, format, args);
    va_end(args);
    return -EBADMSG;
}

static bool fits(const char *text, const char *pattern)
{
    regex_t compiled;

    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB))
        return false;
    bool found = !regexec(&compiled, text, 0, NULL, 0);
    regfree(&compiled);
    return found;
}

static bool is_json(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '{';
}

static const struct foreign_format *format_of(const char *program, const char *text,
                                              const json_t *json)
{
    const struct foreign_format *f = foreign_formats;

    for (; f->program; f++)
        if ((!program || !strcmp(program, f->program)) && !strcmp(f->kind, "JSON") == !!json &&
            (json ? reading_at(json, f->mark) != NULL : fits(text, f->mark)))
            return f;
    return NULL;
}

static const char *programs(struct pool *pool)
{
    const char *list = "", *last = "";

    for (const struct foreign_format *f = foreign_formats; f->program; f++) {
        if (strcmp(f->program, last) != 0)
            list = pool_text(pool, "%s%s%s", list, *list ? ", " : "", f->program);
        last = f->program;
    }
    return list;
}

/* A version that the output does not tell is taken. */
static int check_version(struct foreign_reading *r)
{
    const struct foreign_format *f = r->out->format;
    char text[32];
    unsigned version = foreign_version(r->out->version, text, sizeof(text));

    if (!version || !f->to || (version >= f->from && version <= f->to))
        return 0;
    snprintf(r->error, r->len, "it is of %s %s, and its format is known of versions %u.%u to %u.%u",
             f->program, text, f->from / 1000, f->from % 1000, f->to / 1000, f->to % 1000);
    return -EPROTO;
}

static int read_as(const char *program, struct foreign_reading *r)
{
    struct foreign_output *out = r->out;

    out->format = format_of(program, r->text, r->json);
    out->version = out->command = out->host = out->started = "";
    if (!out->format) {
        if (program)
            snprintf(r->error, r->len, "its output is none of %s", program);
        else
            snprintf(r->error, r->len, "it is no output of a program that is known here: %s",
                     programs(&out->pool));
        return -ENOENT;
    }
    int err = out->format->read(r);
    if (!err && !r->any_version)
        err = check_version(r);
    if (!err && !out->n)
        err = reading_bad(r, "it has no results of %s", out->format->program);
    for (size_t i = 0; !err && i < out->n; i++)
        if (!out->lines[i].n_figures && !strcmp(out->lines[i].status, "ok"))
            err = reading_bad(r, "a result of it has no figure above 0");
    return out->pool.failed ? -ENOMEM : err;
}

static int read_text(const char *program, const char *text, size_t size, bool any_version,
                     struct foreign_output *out, char *error, size_t len)
{
    struct foreign_reading r = {
        .out = out, .text = text, .any_version = any_version, .error = error, .len = len};
    json_error_t why;

    *out = (struct foreign_output){0};
    snprintf(error, len, "%s", "");
    if (!size || size > FOREIGN_BYTES_MAX)
        return reading_bad(&r, size ? "it is too large" : "it is empty");
    if (memchr(text, 0, size))
        return reading_bad(&r, "it has bytes that are no text");
    json_t *json = is_json(text) ? json_loadb(text, size, JSON_DISABLE_EOF_CHECK, &why) : NULL;
    if (is_json(text) && !json)
        return reading_bad(&r, "its JSON is damaged or cut off: line %d: %s", why.line, why.text);
    r.json = json;
    int err = read_as(program, &r);
    json_decref(json);
    return err;
}

int foreign_read(const char *name, const char *text, size_t size, bool any_version,
                 struct foreign_output *out, char *error, size_t len)
{
    char why[512];
    int err = read_text(NULL, text, size, any_version, out, why, sizeof(why));

    if (err)
        snprintf(error, len, "'%.200s': %s", name, err == -ENOMEM ? "out of memory" : why);
    return err;
}

int foreign_read_as(const char *program, const char *text, size_t size, struct foreign_output *out,
                    char *error, size_t len)
{
    return read_text(program, text, size, true, out, error, len);
}

void foreign_release(struct foreign_output *out)
{
    free(out->lines);
    pool_release(&out->pool);
    *out = (struct foreign_output){0};
}

/* ---- What was read ---- */

const char *foreign_value(const struct foreign_line *line, const char *name)
{
    for (size_t i = 0; i < line->n_facts; i++)
        if (!strcmp(line->facts[i].name, name))
            return line->facts[i].value;
    return "";
}

const struct foreign_figure *foreign_find(const struct foreign_line *line, const char *quantity,
                                          const char *statistic)
{
    for (size_t i = 0; i < line->n_figures; i++)
        if (!strcmp(line->figures[i].quantity, quantity) &&
            !strcmp(line->figures[i].statistic, statistic))
            return &line->figures[i];
    return NULL;
}

static const char *value_named(const void *arg, const char *name, size_t len)
{
    const struct foreign_line *line = arg;

    for (size_t i = 0; i < line->n_facts; i++)
        if (strlen(line->facts[i].name) == len && !strncmp(line->facts[i].name, name, len))
            return line->facts[i].value;
    return "";
}

bool foreign_holds(const struct foreign_line *line, const char *where)
{
    return !where || condition_holds(where, value_named, line);
}

unsigned foreign_version(const char *output, char *text, size_t len)
{
    regmatch_t found[4];
    regex_t pattern;
    unsigned version = 0;

    snprintf(text, len, "%s", "");
    if (regcomp(&pattern, "([0-9]+)\\.([0-9]+)((\\.[0-9]+)*)", REG_EXTENDED))
        return 0;
    if (!regexec(&pattern, output, 4, found, 0)) {
        unsigned major = (unsigned)strtoul(output + found[1].rm_so, NULL, 10);
        unsigned minor = (unsigned)strtoul(output + found[2].rm_so, NULL, 10);
        version = major < 4000000 && minor < 1000 ? major * 1000 + minor : 0;
        snprintf(text, len, "%.*s", (int)(found[0].rm_eo - found[0].rm_so),
                 output + found[0].rm_so);
    }
    regfree(&pattern);
    return version;
}

/* ---- What readers are made of ---- */

struct foreign_line *reading_add(struct foreign_reading *r)
{
    struct foreign_output *out = r->out;

    if (out->n == out->room) {
        size_t room = out->room ? 2 * out->room : 16;
        struct foreign_line *grown = realloc(out->lines, room * sizeof(*grown));

        if (!grown) {
            out->pool.failed = true;
            return NULL;
        }
        out->lines = grown;
        out->room = room;
    }
    out->lines[out->n] = (struct foreign_line){.status = "ok", .reason = ""};
    return &out->lines[out->n++];
}

void reading_fact(struct foreign_reading *r, struct foreign_line *line, const char *name,
                  const char *format, ...)
{
    char value[256];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    if (*value && line->n_facts < FOREIGN_FACTS_MAX)
        line->facts[line->n_facts++] =
            (struct foreign_fact){name, pool_text(&r->out->pool, "%s", value)};
}

#define MIB_IN_GB 1.048576e-3 /* 2^20 bytes in 1e9 */

static const struct {
    const char *printed, *unit;
    double factor, believed;
} printed_units[] = {
    [PRINTED_GB_S] = {"GB/s", "GB/s", 1, 1},
    [PRINTED_MB_S] = {"MB/s", "GB/s", 1e-3, 1e-3},
    [PRINTED_MIB_S] = {"MB/s", "GB/s", MIB_IN_GB, 1e-3},
    [PRINTED_GBIT_S] = {"Gb/s", "GB/s", 0.125, 0.125},
    [PRINTED_BIT_S] = {"bit/s", "GB/s", 1.25e-10, 1.25e-10},
    [PRINTED_BYTE_S] = {"byte/s", "GB/s", 1e-9, 1e-9},
    [PRINTED_US] = {"us", "us", 1, 1},
    [PRINTED_USEC] = {"usec", "us", 1, 1},
    [PRINTED_NS] = {"ns", "ns", 1, 1},
    [PRINTED_NS_US] = {"ns", "us", 1e-3, 1e-3},
    [PRINTED_S_GB] = {"s/GB", "s/GB", 1, 1},
    [PRINTED_MOP_S] = {"Mpps", "Mop/s", 1, 1},
    [PRINTED_OP_S] = {"Messages/s", "Mop/s", 1e-6, 1e-6},
};

double reading_scale(enum foreign_unit unit)
{
    return printed_units[unit].factor;
}

void reading_figure(struct foreign_line *line, const char *quantity, const char *statistic,
                    double printed, enum foreign_unit unit)
{
    double value = printed * printed_units[unit].factor;

    if (line->n_figures < FOREIGN_FIGURES_MAX && isfinite(value) && value > 0)
        line->figures[line->n_figures++] =
            (struct foreign_figure){.quantity = quantity,
                                    .statistic = statistic,
                                    .value = value,
                                    .unit = printed_units[unit].unit,
                                    .printed = printed,
                                    .printed_unit = printed_units[unit].printed,
                                    .believed = printed * printed_units[unit].believed};
}

/* A rate or a time of 0 means that nothing was measured. */
int reading_number(struct foreign_reading *r, const char *word, double *value)
{
    char *end;

    *value = strtod(word, &end);
    if (end == word || *end)
        return reading_bad(r, "'%.24s' is no number", word);
    if (!isfinite(*value) || *value <= 0)
        return reading_bad(r, "a figure of it is %g", *value);
    return 0;
}

const json_t *reading_at(const json_t *root, const char *path)
{
    while (root && *path) {
        char name[64];
        size_t n = strcspn(path, ".");

        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        root = json_object_get(root, name);
        path += n + (path[n] == '.');
    }
    return root;
}

int reading_json_number(struct foreign_reading *r, const json_t *root, const char *path,
                        double *value)
{
    const json_t *at = reading_at(root, path);

    if (!json_is_number(at))
        return reading_bad(r, "no number '%s' in its JSON", path);
    *value = json_number_value(at);
    if (!isfinite(*value) || *value <= 0)
        return reading_bad(r, "'%s' is %g", path, *value);
    return 0;
}

const char *reading_json_text(struct foreign_reading *r, const json_t *root, const char *path)
{
    const char *text = json_string_value(reading_at(root, path));

    return text ? pool_text(&r->out->pool, "%s", text) : "";
}

const char *reading_match(struct foreign_reading *r, const char *text, const char *pattern)
{
    regmatch_t found[2];
    regex_t compiled;

    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE))
        return "";
    bool fit = !regexec(&compiled, text, 2, found, 0) && found[1].rm_so >= 0;
    regfree(&compiled);
    return fit ? pool_text(&r->out->pool, "%.*s", (int)(found[1].rm_eo - found[1].rm_so),
                           text + found[1].rm_so)
               : "";
}

bool reading_line(struct foreign_reading *r, const char **at, const char **line)
{
    size_t n = strcspn(*at, "\n");

    if (!**at)
        return false;
    *line = pool_text(&r->out->pool, "%.*s", (int)n, *at);
    *at += n + ((*at)[n] == '\n');
    return true;
}

void reading_words(struct foreign_reading *r, const char *line, struct words *words)
{
    char *copy = (char *)pool_text(&r->out->pool, "%s", line), *save = NULL;

    words->n = 0;
    for (char *word = strtok_r(copy, " \t\r", &save); word && words->n < READING_WORDS;
         word = strtok_r(NULL, " \t\r", &save))
        words->all[words->n++] = word;
}

size_t words_find(const struct words *words, const char *word, size_t from)
{
    while (from < words->n && strcmp(words->all[from], word) != 0)
        from++;
    return from;
}

const char *reading_dtype(const char *name)
{
    static const char *const names[][2] = {
        {"float", "f32"},      {"half", "f16"},    {"bfloat16", "bf16"}, {"double", "f64"},
        {"int32", "i32"},      {"int8", "i8"},     {"int64", "i64"},     {"uint8", "u8"},
        {"uint32", "u32"},     {"uint64", "u64"},  {"fp8_e4m3", "e4m3"}, {"f8e4m3", "e4m3"},
        {"fp8_e5m2", "e5m2"},  {"f8e5m2", "e5m2"}, {"MPI_CHAR", "i8"},   {"MPI_FLOAT", "f32"},
        {"MPI_DOUBLE", "f64"}, {"MPI_INT", "i32"}, {"MPI_BYTE", "u8"},   {"MPI_INT32_T", "i32"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(names[i][0], name))
            return names[i][1];
    return "";
}

bool reading_agrees(double a, double ulp_a, double b, double ulp_b)
{
    return a + ulp_a >= (b - ulp_b) * 0.99 && a - ulp_a <= (b + ulp_b) * 1.01;
}
