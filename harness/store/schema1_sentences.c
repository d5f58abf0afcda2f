/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of today, read out of the sentences of schema 1: see run_folder.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/row.h"
#include "core/text.h"
#include "harness/store/run_folder.h"

#define BETWEEN "; " /* remarks of a reason */

/* What one row says; numbers as texts, as they stand in the sentence. */
struct said {
    char width_wanted[32], raised_from[40], carrier[CARRIERS_BYTES], device[64];
    const char *noise, *kind, *link, *scope, *atomics;
    char *reason;               /* what is left of it */
    const char *clocks_set;     /* in the row's own cell */
    int throttle_len, path_len; /* of the cells, what is left of them */
};

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* ---- remarks in `reason` */

/* "103 % of the limit: the limit is too low, or ...": percent_of_limit says it. */
static bool is_above(const char *remark)
{
    size_t digits = strspn(remark, "0123456789");

    return digits && begins(remark + digits, " % of the limit: the limit is too low");
}

/* "interval is +/- 4 %, wanted 1 %, when sampling stopped (time)". */
static bool take_width(const char *remark, struct said *s)
{
    const char *wanted = begins(remark, "interval is ") ? strstr(remark, "wanted ") : NULL;

    if (!begins(remark, "interval is "))
        return false;
    s->noise = ROW_NOISE_WIDE;
    if (wanted)
        snprintf(s->width_wanted, sizeof(s->width_wanted), "%.9g",
                 strtod(wanted + strlen("wanted "), NULL) / 100);
    return true;
}

static bool take_raised(const char *remark, struct said *s)
{
    static const char words[] = "the measured ceiling, ";
    size_t n = strlen(words);

    if (!begins(remark, words) || !strstr(remark, ", was exceeded and is raised"))
        return false;
    snprintf(s->raised_from, sizeof(s->raised_from), "%.*s", (int)strcspn(remark + n, " "),
             remark + n);
    return true;
}

static bool take_few(const char *remark, struct said *s)
{
    if (!strcmp(remark, "too few samples for an interval"))
        s->noise = ROW_NOISE_FEW;
    else if (!strcmp(remark, "too few samples for an interval: each is like the one before"))
        s->noise = ROW_NOISE_ALIKE;
    else
        return false;
    return true;
}

static int take_reason(const char *reason, struct said *s)
{
    size_t left = 0;

    s->reason = malloc(strlen(reason) + 1);
    if (!s->reason)
        return -ENOMEM;
    s->reason[0] = 0;
    while (*reason) {
        const char *end = strstr(reason, BETWEEN);
        size_t n = end ? (size_t)(end - reason) : strlen(reason);
        char *remark = strndup(reason, n);

        if (!remark)
            return -ENOMEM;
        if (!is_above(remark) && !take_width(remark, s) && !take_raised(remark, s) &&
            !take_few(remark, s))
            left += (size_t)sprintf(s->reason + left, "%s%s", left ? BETWEEN : "", remark);
        free(remark);
        reason += n + (end ? strlen(BETWEEN) : 0);
    }
    return 0;
}

/* ---- `limit_source` */

/* What schema 1 measured as a limit is no limit: stores left their fill read out, loops raced
 * themselves, and the first loop that ran stood for the fastest. Its rows do not tell which of
 * these hold. So no verdict depends on it. */
static const char *kind_today(enum limit_kind kind)
{
    return limit_kinds[kind == LIMIT_MEASURED ? LIMIT_OUTDATED : kind];
}

static void take_limit(const char *limit, const char *source, struct said *s)
{
    size_t n = strcspn(source, ":");

    for (int kind = LIMIT_TOLD + 1; *limit && limit_kinds[kind]; kind++)
        if (strlen(limit_kinds[kind]) == n && begins(source, limit_kinds[kind]))
            s->kind = kind_today((enum limit_kind)kind);
    if (*limit && !*s->kind)
        s->kind = limit_kinds[LIMIT_TOLD];
    if (strstr(source, "NVLink"))
        s->link = LIMIT_LINK_NVLINK;
    else if (strstr(source, "InfiniBand"))
        s->link = LIMIT_LINK_INFINIBAND;
    else if (strstr(source, "RoCE"))
        s->link = LIMIT_LINK_ROCE;
    else if (strstr(source, "narrower than the line"))
        s->link = LIMIT_LINK_PCIE;
    if (strstr(source, "any algorithm"))
        s->scope = LIMIT_SCOPE_NODE;
}

/* ---- `detail` and `evidence`: what carried the bytes */

/* What a library says that it connected. */
static const struct {
    const char *word;
    unsigned kind;
} wires[] = {
    {"NET/IB", CARRIER_RDMA}, {"NET/Socket", CARRIER_SOCKETS}, {"P2P/", CARRIER_PEER},
    {"P2P ", CARRIER_PEER},   {"SHM", CARRIER_SHARED_MEMORY},
};

static bool is_word_end(char c)
{
    return !c || c == ' ' || c == ',' || c == ';' || c == '/';
}

static unsigned carriers_of_detail(const char *detail)
{
    const char *via = strstr(detail, "via ");
    unsigned found = 0;

    for (size_t i = 0; via && i < sizeof(wires) / sizeof(*wires); i++) {
        const char *at = strstr(via, wires[i].word);

        if (at && (strchr("/ ", wires[i].word[strlen(wires[i].word) - 1]) ||
                   is_word_end(at[strlen(wires[i].word)])))
            found |= wires[i].kind;
    }
    return found;
}

/* mlx5_0:1 is a port of an RDMA device. */
static unsigned kind_of_device(const char *name, size_t len)
{
    const char *colon = memchr(name, ':', len);

    if (colon)
        return colon + 1 < name + len && isdigit((unsigned char)colon[1]) ? CARRIER_RDMA : 0;
    return len == 2 && !memcmp(name, "lo", 2) ? CARRIER_LOOPBACK : CARRIER_SOCKETS;
}

static bool is_verb(const char *word, size_t len)
{
    static const char *const verbs[] = {"sent", "received", "moved", "over"};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (strlen(verbs[i]) == len && !memcmp(word, verbs[i], len))
            return true;
    return false;
}

/* The first device of a node's words that moved something: "eth0 sent 12.4 GB, ...". Amounts end in
 * a comma, and "together" names no device. */
static unsigned kind_of_node(const char *text, size_t len)
{
    const char *end = text + len, *last = NULL;
    size_t last_len = 0;

    while (text < end) {
        size_t n = 0;

        while (text + n < end && text[n] != ' ')
            n++;
        if (last && is_verb(text, n))
            return kind_of_device(last, last_len);
        last = n && !strchr(",;)", text[n - 1]) && isalpha((unsigned char)*text) &&
                       !(n == 8 && !memcmp(text, "together", 8))
                   ? text
                   : NULL;
        last_len = n;
        text += n + (text + n < end);
    }
    return 0;
}

/* The words of each node stand behind its name and a colon. */
static unsigned carriers_of_evidence(const char *evidence)
{
    unsigned found = 0;

    while (*evidence) {
        const char *next = strstr(evidence, ": ");
        size_t len = next ? (size_t)(next - evidence) : strlen(evidence);

        found |=
            begins(evidence, "shared memory") ? CARRIER_SHARED_MEMORY : kind_of_node(evidence, len);
        evidence += len + (next ? 2 : 0);
    }
    return found;
}

/* Of point-to-point rows, `detail` begins with the device. */
static void take_carrier(const struct table *t, size_t row, struct said *s)
{
    const char *detail = table_text(t, row, "detail");
    unsigned told = carriers_of_detail(detail);

    carriers_print(told ? told : carriers_of_evidence(table_text(t, row, "evidence")), s->carrier);
    if (table_column(t, "peer_detail") != TABLE_NO_COLUMN)
        snprintf(s->device, sizeof(s->device), "%.*s", (int)strcspn(detail, " "), detail);
}

/* ---- cells that held two things */

/* "power cap; set: application clocks": settings hold nothing back. */
static void take_throttle(const char *throttle, struct said *s)
{
    static const char mark[] = "set: ";
    const char *set = begins(throttle, mark) ? throttle : strstr(throttle, "; set: ");

    s->throttle_len = (int)(set ? (size_t)(set - throttle) : strlen(throttle));
    s->clocks_set = set ? strstr(set, mark) + strlen(mark) : "";
}

/* "peer access, rank 0, atomics". */
static void take_path(const char *path, struct said *s)
{
    const char *atomics = strstr(path, ", atomics");

    s->path_len = (int)(atomics ? (size_t)(atomics - path) : strlen(path));
    s->atomics = atomics ? "native" : "";
}

static int read_row(const struct table *t, size_t row, struct said *s)
{
    *s = (struct said){.noise = "", .kind = "", .link = "", .scope = ""};
    take_limit(table_text(t, row, "limit"), table_text(t, row, "limit_source"), s);
    take_carrier(t, row, s);
    take_throttle(table_text(t, row, "gpu_throttle"), s);
    take_path(table_text(t, row, "path"), s);
    return take_reason(table_text(t, row, "reason"), s);
}

/* ---- the table anew */

static const char *const added[] = {"width_wanted", "noise_kind",     "limit_kind",
                                    "limit_link",   "limit_scope",    "limit_raised_from",
                                    "carrier",      "carrier_device", "gpu_clocks_set"};
#define ADDED (sizeof(added) / sizeof(*added))

/* A parameter stands before the metric: what a copy's path also has, beside its way. */
static bool adds_atomics(const struct table *t)
{
    return table_column(t, "path") < table_column(t, "metric") &&
           table_column(t, "atomics") == TABLE_NO_COLUMN;
}

static void print_header(const struct table *t, FILE *out)
{
    if (adds_atomics(t))
        fputs("atomics,", out);
    for (size_t i = 0; i < t->n_columns; i++) {
        if (i)
            fputc(',', out);
        csv_print(out, t->columns[i]);
    }
    for (size_t i = 0; i < ADDED; i++)
        if (table_column(t, added[i]) == TABLE_NO_COLUMN)
            fprintf(out, ",%s", added[i]);
    fputc('\n', out);
}

static void print_cut(FILE *out, const char *cell, int len)
{
    char *cut = strndup(cell, (size_t)len);

    csv_print(out, cut ? cut : "");
    free(cut);
}

/* By the order of `added`. */
static const char *added_cell(const struct said *s, size_t i)
{
    const char *const cells[ADDED] = {s->width_wanted, s->noise,  s->kind,
                                      s->link,         s->scope,  s->raised_from,
                                      s->carrier,      s->device, s->clocks_set};

    return cells[i];
}

/* A column that is there, and says nothing, says what the sentence does. */
static const char *filled_cell(const char *name, const char *cell, const struct said *s)
{
    for (size_t i = 0; !*cell && i < ADDED; i++)
        if (!strcmp(name, added[i]))
            return added_cell(s, i);
    return cell;
}

static void print_old(const struct table *t, size_t row, size_t column, const struct said *s,
                      FILE *out)
{
    const char *name = t->columns[column], *cell = table_cell(t, row, column);

    if (!strcmp(name, "reason"))
        csv_print(out, s->reason);
    else if (!strcmp(name, "gpu_throttle"))
        print_cut(out, cell, s->throttle_len);
    else if (!strcmp(name, "path"))
        print_cut(out, cell, s->path_len);
    else
        csv_print(out, filled_cell(name, cell, s));
}

static void print_row(const struct table *t, size_t row, const struct said *s, FILE *out)
{
    if (adds_atomics(t))
        fprintf(out, "%s,", s->atomics);
    for (size_t i = 0; i < t->n_columns; i++) {
        if (i)
            fputc(',', out);
        print_old(t, row, i, s, out);
    }
    for (size_t i = 0; i < ADDED; i++)
        if (table_column(t, added[i]) == TABLE_NO_COLUMN) {
            fputc(',', out);
            csv_print(out, added_cell(s, i));
        }
    fputc('\n', out);
}

static int print_table(const struct table *t, FILE *out)
{
    int err = 0;

    print_header(t, out);
    for (size_t row = 0; !err && row < t->n_rows; row++) {
        struct said s;

        err = read_row(t, row, &s);
        if (!err)
            print_row(t, row, &s, out);
        free(s.reason);
    }
    return err;
}

int schema1_derive(struct table *rows)
{
    struct table whole = {0};
    char *text = NULL, error[128];
    size_t size = 0;
    FILE *out = rows->n_columns ? open_memstream(&text, &size) : NULL;
    int err = 0;

    if (!rows->n_columns)
        return 0;
    if (!out)
        return -ENOMEM;
    err = print_table(rows, out);
    if (fclose(out) && !err)
        err = -ENOMEM;
    if (!err)
        err = table_parse("rows", text, size, &whole, error, sizeof(error));
    free(text);
    if (err)
        return err;
    table_release(rows);
    *rows = whole;
    return 0;
}
