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

#include "core/alloc.h"
#include "core/condition.h"
#include "core/units.h"

#define NCCL_HEADER     "^# *nThread [0-9]+ nGpus [0-9]+"
#define PERFTEST_HEADER "^ *#bytes +#iterations +"

const struct foreign_format foreign_formats[] = {
    {"nvbandwidth", "JSON", "nvbandwidth", 4, 10, read_nvbandwidth_json, .of = "test"},
    {"nvbandwidth", "text", "^nvbandwidth Version:", 4, 10, read_nvbandwidth_text, .of = "test",
     .once = "^nvbandwidth Version:"},
    {"nccl-tests", "JSON", "nccl_version", 0, 0, read_nccl_json, .of = "collective"},
    {"nccl-tests", "JSON", "rccl_version", 0, 0, read_nccl_json, .of = "collective"},
    {"nccl-tests", "text", NCCL_HEADER, 2000, 2020, read_nccl_text, .of = "collective",
     .once = NCCL_HEADER, .first = "^# ([nr]ccl-tests version|Collective test starting:)",
     .last = "^# Avg bus bandwidth"},
    {"perftest", "JSON", "test_info.test", 0, 0, read_perftest_json,
     .of = "verb test direction connection"},
    {"perftest", "text", PERFTEST_HEADER, 0, 0, read_perftest_text,
     .of = "verb test direction connection", .once = PERFTEST_HEADER,
     .first = PERFTEST_TITLE "|^(initializing|Listing all) CUDA|^Picking GPU"},
    {"iperf3", "JSON", "end.sum_received", 3000, 3020, read_iperf3, .of = "protocol"},
    {"iperf3", "JSON", "start.version", 3000, 3020, read_iperf3, .of = "protocol"}, /* it failed */
    {"osu-micro-benchmarks", "text", "^# (OSU [A-Z]|Size +.*(Latency|Bandwidth))", 3000, 7005,
     read_osu, .of = "test", .once = "^# OSU "},
    {"iperf3", "JSON", "event", .refused = "it is JSON of iperf3 with --json-stream: use -J alone"},
    {"iperf3", "text", "^\\[ *ID\\] +Interval ",
     .refused = "it is text of iperf, whose figures are rounded: run iperf3 with -J"},
    {.program = NULL},
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
    size_t at;

    return reading_find(text, pattern, 0, &at) > 0;
}

static bool is_text(const struct foreign_format *f)
{
    return strcmp(f->kind, "JSON") != 0;
}

static const struct foreign_format *format_of(const char *text, const json_t *json)
{
    const struct foreign_format *f = foreign_formats;

    for (; f->program; f++)
        if (is_text(f) == !json && (json ? reading_at(json, f->mark) != NULL : fits(text, f->mark)))
            return f;
    return NULL;
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

/* One output of the file's: what it tells of itself is that of the first. */
static int read_one(struct foreign_reading *r, const char *text, const json_t *json)
{
    struct foreign_output *out = r->out;
    struct foreign_output first = *out;

    r->text = text;
    r->json = json;
    out->version = out->command = out->host = out->started = "";
    int err = out->format->read(r);
    if (!err && !r->any_version)
        err = check_version(r);
    if (!err && out->n == first.n)
        err = reading_bad(r, "it has no results of %s", out->format->program);
    if (!err && first.n && strcmp(first.version, out->version) != 0)
        err =
            reading_bad(r, "it holds outputs of %s %s and of %s: a file takes those of one version",
                        out->format->program, first.version, out->version);
    if (!err && first.n && *first.host && *out->host && strcmp(first.host, out->host) != 0)
        err = reading_bad(r, "it holds outputs of the hosts %s and %s: give each a file of its own",
                          first.host, out->host);
    if (first.n) {
        out->command = first.command;
        out->host = first.host;
        out->started = first.started;
    }
    return err;
}

/* Where the next output begins in a text of several, by the lines that each has at its head. */
static const char *next_output(const struct foreign_format *f, const char *text)
{
    regex_t once, first;
    regmatch_t at;
    bool held = false;
    const char *next = NULL;

    if (regcomp(&once, f->once, REG_EXTENDED | REG_NEWLINE | REG_NOSUB))
        return NULL;
    if (regcomp(&first, f->first ? f->first : f->once, REG_EXTENDED | REG_NEWLINE)) {
        regfree(&once);
        return NULL;
    }
    while (!next && *text) {
        size_t n = strcspn(text, "\n");
        at = (regmatch_t){.rm_so = 0, .rm_eo = (regoff_t)n};
        bool head = !regexec(&once, text, 1, &at, REG_STARTEND);
        at = (regmatch_t){.rm_so = 0, .rm_eo = (regoff_t)n};
        if (held && (head || !regexec(&first, text, 1, &at, REG_STARTEND)))
            next = text;
        held = held || head;
        text += n + (text[n] == '\n');
    }
    regfree(&once);
    regfree(&first);
    return next;
}

/* All outputs in a text, one after another; those that were printed at once, line by line, are one
 * for the reader to refuse. */
static int read_texts(struct foreign_reading *r, const char *text)
{
    const struct foreign_format *f = r->out->format;
    bool parted = true;
    int err = 0;

    for (const char *at = text, *next; f->last && at; at = next) {
        next = next_output(f, at);
        parted = parted &&
                 fits(next ? pool_text(&r->out->pool, "%.*s", (int)(next - at), at) : at, f->last);
    }
    while (!err && text) {
        const char *next = parted ? next_output(f, text) : NULL;

        err = read_one(r, next ? pool_text(&r->out->pool, "%.*s", (int)(next - text), text) : text,
                       NULL);
        text = next;
    }
    return err;
}

/* ---- JSON: one document or several, with text before and between ---- */

struct json_text {
    json_t *json;
    const char *twice; /* a member of it that is there twice; "" */
};

struct json_texts {
    struct json_text *all;
    size_t n;
    json_error_t why;
    bool damaged;
};

/* The first line from here on that begins a document. */
static const char *json_start(const char *text)
{
    while (*text) {
        text += strspn(text, " \t\r\n");
        if (*text == '{')
            return text;
        text += strcspn(text, "\n");
    }
    return NULL;
}

static struct json_text load(struct pool *pool, const char *text, json_error_t *why)
{
    size_t n = strlen(text), flags = JSON_DISABLE_EOF_CHECK;
    struct json_text d = {json_loadb(text, n, flags | JSON_REJECT_DUPLICATES, why), ""};

    if (!d.json) {
        d.twice = pool_text(pool, "%s", why->text);
        d.json = json_loadb(text, n, flags, why);
    }
    return d;
}

static void load_documents(struct foreign_reading *r, const char *text, struct json_texts *d)
{
    for (const char *at = text; (at = json_start(at)) != NULL; at += d->why.position) {
        struct json_text one = load(&r->out->pool, at, &d->why);

        if (!one.json) {
            d->damaged = true;
            for (const char *line = text; line < at; line++)
                d->why.line += *line == '\n';
            return;
        }
        *ARRAY_ADD(d->all, d->n) = one;
    }
}

static int read_documents(struct foreign_reading *r, const struct json_texts *d)
{
    struct foreign_output *out = r->out;
    int err = 0;

    for (size_t i = 0; !err && i < d->n; i++) {
        const struct foreign_format *f = format_of(NULL, d->all[i].json);

        if (!f) /* a line of a log */
            continue;
        if (out->format && strcmp(out->format->program, f->program) != 0)
            return reading_bad(r, "it holds outputs of %s and of %s: a file takes those of one",
                               out->format->program, f->program);
        out->format = f;
        r->twice = d->all[i].twice;
        if (*r->twice && strcmp(f->program, "iperf3") != 0)
            return reading_bad(r, "its JSON contradicts itself: %s", r->twice);
        err = f->refused ? reading_bad(r, "%s", f->refused) : read_one(r, NULL, d->all[i].json);
    }
    return err;
}

/* ---- A file ---- */

/* A second program in the file, whose results would be lost. */
static int check_alone(struct foreign_reading *r, const char *text)
{
    const struct foreign_format *own = r->out->format;

    for (const struct foreign_format *f = foreign_formats; f->program; f++)
        if (is_text(f) && f != own && fits(text, f->mark))
            return reading_bad(r,
                               "it holds outputs of %s (%s) and of %s (%s): a file takes those "
                               "of one",
                               own->program, own->kind, f->program, f->kind);
    return 0;
}

static int read_any(const char *text, struct foreign_reading *r)
{
    struct foreign_output *out = r->out;
    struct json_texts d = {0};
    int err = 0;

    out->version = out->command = out->host = out->started = "";
    load_documents(r, text, &d);
    err = read_documents(r, &d);
    if (!err && out->format) {
        err = check_alone(r, text);
        if (!err && d.damaged)
            err = reading_bad(r, "its JSON is damaged or cut off: line %d: %s", d.why.line,
                              d.why.text);
    } else if (!err && (out->format = format_of(text, NULL)) != NULL) {
        err = check_alone(r, text);
        if (!err)
            err = out->format->refused ? reading_bad(r, "%s", out->format->refused)
                                       : read_texts(r, text);
    } else if (!err && d.damaged) {
        err = reading_bad(r, "its JSON is damaged or cut off: line %d: %s", d.why.line, d.why.text);
    } else if (!err) {
        const char *list = "", *last = "";

        for (const struct foreign_format *f = foreign_formats; f->read; f++) {
            if (strcmp(f->program, last) != 0)
                list = pool_join(&out->pool, list, ", ", f->program);
            last = f->program;
        }
        snprintf(r->error, r->len, "it is no output of a program that is known here: %s%s%s", list,
                 *r->prefixed ? "; most of its lines, but not all, begin like " : "", r->prefixed);
        err = -ENOENT;
    }
    for (size_t i = 0; i < d.n; i++)
        json_decref(d.all[i].json);
    free(d.all);
    for (size_t i = 0; !err && i < out->n; i++)
        if (!out->lines[i].n_figures && !strcmp(out->lines[i].status, "ok"))
            err = reading_bad(r, "a result of it has no figure above 0");
    return err;
}

bool foreign_is_known(const char *text)
{
    return json_start(text) || format_of(text, NULL) != NULL;
}

int foreign_read(const char *name, const char *text, size_t size, bool any_version,
                 struct foreign_output *out, char *error, size_t len)
{
    char why[512] = "";
    struct foreign_reading r = {.out = out,
                                .name = name,
                                .twice = "",
                                .prefixed = "",
                                .any_version = any_version,
                                .error = why,
                                .len = sizeof(why)};
    const char *plain = NULL;

    *out = (struct foreign_output){0};
    if (!size || size > FOREIGN_BYTES_MAX)
        reading_bad(&r, size ? "it is too large" : "it is empty");
    else
        plain = plain_text(&r, text, size);
    int err = plain ? read_any(plain, &r) : -EBADMSG;
    if (err)
        snprintf(error, len, "'%.200s': %s", name, why);
    return err;
}

void foreign_release(struct foreign_output *out)
{
    free(out->lines);
    pool_release(&out->pool);
    *out = (struct foreign_output){0};
}

/* ---- What was read ---- */

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
    size_t i = 0;

    while (i < line->n_facts &&
           (strncmp(line->facts[i].name, name, len) != 0 || line->facts[i].name[len]))
        i++;
    return i < line->n_facts ? line->facts[i].value : "";
}

const char *foreign_value(const struct foreign_line *line, const char *name)
{
    return value_named(line, name, strlen(name));
}

bool foreign_holds(const struct foreign_line *line, const char *where)
{
    return !where || condition_holds(where, value_named, line);
}

unsigned foreign_version(const char *output, char *text, size_t len)
{
    static const char pattern[] = "([0-9]+)\\.([0-9]+)((\\.[0-9]+)*)";
    size_t major_at, minor_at, at, n = reading_find(output, pattern, 0, &at);

    reading_find(output, pattern, 1, &major_at);
    reading_find(output, pattern, 2, &minor_at);
    snprintf(text, len, "%.*s", (int)n, output + at);
    unsigned long major = strtoul(output + major_at, NULL, 10),
                  minor = strtoul(output + minor_at, NULL, 10);
    return n && major < 4000000 && minor < 1000 ? (unsigned)(major * 1000 + minor) : 0;
}

/* ---- What readers are made of ---- */

struct foreign_line *reading_add(struct foreign_reading *r)
{
    struct foreign_line *line = ARRAY_ADD(r->out->lines, r->out->n);

    *line = (struct foreign_line){.status = "ok", .reason = ""};
    return line;
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

#define MIB_GBIT 8.388608e-3 /* 2^20 bytes in 1e9 bits */

static const struct {
    const char *unit;
    double factor;
} printed_units[] = {
    [PRINTED_GB_S] = {"GB/s", 1},
    [PRINTED_MB_S] = {"Gb/s", 8e-3},
    [PRINTED_MIB_S] = {"Gb/s", MIB_GBIT},
    [PRINTED_GBIT_S] = {"Gb/s", 1},
    [PRINTED_BIT_S] = {"Gb/s", 1e-9},
    [PRINTED_US] = {"us", 1},
    [PRINTED_NS] = {"ns", 1},
    [PRINTED_MOP_S] = {"Mop/s", 1},
    [PRINTED_OP_S] = {"Mop/s", 1e-6},
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
                                    .unit = printed_units[unit].unit};
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

size_t reading_find(const char *text, const char *pattern, size_t group, size_t *at)
{
    regmatch_t found[4];
    regex_t compiled;

    *at = 0;
    if (group > 3 || regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE))
        return 0;
    bool fit = !regexec(&compiled, text, 4, found, 0) && found[group].rm_so >= 0;
    regfree(&compiled);
    *at = fit ? (size_t)found[group].rm_so : 0;
    return fit ? (size_t)(found[group].rm_eo - found[group].rm_so) : 0;
}

const char *reading_match(struct foreign_reading *r, const char *text, const char *pattern)
{
    size_t at, n = reading_find(text, pattern, 1, &at);

    return pool_text(&r->out->pool, "%.*s", (int)n, text + at);
}

size_t reading_count(const char *text, const char *pattern)
{
    size_t n = 0, at, len;

    for (; (len = reading_find(text, pattern, 0, &at)) > 0; text += at + len)
        n++;
    return n;
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

bool words_number(const struct words *words)
{
    return words->n && strspn(words->all[0], "0123456789") == strlen(words->all[0]);
}

int words_columns(struct foreign_reading *r, const struct words *words, size_t n)
{
    return words->n >= n
               ? 0
               : reading_bad(r, "a line of its results has %zu columns, not %zu", words->n, n);
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
