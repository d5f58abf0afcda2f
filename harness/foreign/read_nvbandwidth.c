/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvbandwidth: JSON (-j) and text. Read in its sources, versions 0.4 to 0.8. Of 0.10 a
 * text and its list of tests were seen: what has an old name is taken to be what it was.
 *
 * A cell is the median of --testSamples samples (the mean with --useMean, which the output does not
 * tell), each of --loopCount copies behind a kernel that holds the stream. GB/s are 1e9 bytes, and
 * the bytes of a copy count once. The size of a copy is not told.
 *
 * The arrows of the text are not the way of the data: in "read" tests the row's GPU reads from the
 * column's, and in "write" tests it writes to it. Tests of both directions with the host give the
 * rate of the first copy alone, while a copy of twice the size goes the other way; those between
 * GPUs give both rates and their sum since 0.6, and one matrix before: of the first copy, or with
 * kernels in 0.5 all bytes over the time of both. Since 0.6 the first copy of the "write" test goes
 * from the column's GPU to the row's.
 *
 * "all" are all other GPUs at once: with GPUs all bytes over the time of all, with the host the rate
 * of the column's GPU, while the others copy twice as much. In "read" tests of one and all the
 * destination's GPU copies, but for kernels since 0.5: there it is the source's, so that they are
 * the "write" tests once more.
 *
 * A latency is the mean time of one load of the row's processor from the column's memory, or of the
 * column's GPU from the host's, in 2 MiB. Before 0.8 the chain of two GPUs was a copy of one in the
 * host's memory, with its addresses: all loads but the first are from there.
 *
 * Where the data of a copy is wrong, or a call fails, the program ends at once: its test has no
 * matrix.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

#define ALL     "cuda:all"
#define ANY_GPU SIZE_MAX

/* What a test's name says of its cells. */
struct test {
    const char *name;                 /* without its engine */
    const char *source, *destination; /* "row", "column", or a place */
    const char *op, *direction;
    unsigned parts;     /* matrices of one test: 3 of both directions, the first two one each */
    const char *beside; /* "all": other GPUs copy meanwhile, and do not count */
    const char *engine; /* of a name without one; NULL: it has one */
};

static const struct test tests[] = {
    {"host_to_device_memcpy", "host", "column", "", "one-way", 1, "none", NULL},
    {"device_to_host_memcpy", "column", "host", "", "one-way", 1, "none", NULL},
    {"host_to_device_bidirectional_memcpy", "host", "column", "", "forward", 1, "none", NULL},
    {"device_to_host_bidirectional_memcpy", "host", "column", "", "reverse", 1, "none", NULL},
    {"host_to_all_memcpy", "host", "column", "", "one-way", 1, "all", NULL},
    {"all_to_host_memcpy", "column", "host", "", "one-way", 1, "all", NULL},
    {"host_to_all_bidirectional_memcpy", "host", "column", "", "forward", 1, "all", NULL},
    {"all_to_host_bidirectional_memcpy", "host", "column", "", "reverse", 1, "all", NULL},
    {"device_to_device_memcpy_read", "column", "row", "read", "one-way", 1, "none", NULL},
    {"device_to_device_memcpy_write", "row", "column", "write", "one-way", 1, "none", NULL},
    {"device_to_device_bidirectional_memcpy_read", "column", "row", "read", "both", 3, "none",
     NULL},
    {"device_to_device_bidirectional_memcpy_write", "column", "row", "write", "both", 3, "none",
     NULL},
    {"one_to_all_write", "column", ALL, "write", "one-way", 1, "none", NULL},
    {"one_to_all_read", ALL, "column", "read", "one-way", 1, "none", NULL},
    {"all_to_one_write", ALL, "column", "write", "one-way", 1, "none", NULL},
    {"all_to_one_read", "column", ALL, "read", "one-way", 1, "none", NULL},
    {"device_local_copy", "column", "column", "", "one-way", 1, "none", "ce"},
    {"host_device_latency", "host", "column", "", "one-way", 1, "none", NULL},
    {"device_to_device_latency", "column", "row", "read", "one-way", 1, "none", NULL},
    {NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL},
};

static const char *const part_names[] = {"forward", "reverse", "total"};

static const struct test *test_of(const char *name, const char **engine)
{
    const struct test *t = tests;
    size_t n = strlen(name);

    for (const struct test *whole = tests; whole->name; whole++)
        if (whole->engine && !strcmp(whole->name, name)) {
            *engine = whole->engine;
            return whole;
        }
    *engine = n > 3 && !strcmp(name + n - 3, "_ce")   ? "ce"
              : n > 3 && !strcmp(name + n - 3, "_sm") ? "sm"
                                                      : "";
    while (t->name && (t->engine || strncmp(t->name, name, strlen(t->name)) != 0 ||
                       strlen(t->name) + 3 != n || !**engine))
        t++;
    return t;
}

static void place(struct foreign_reading *r, struct foreign_line *line, const char *name,
                  const char *what, size_t row, size_t column)
{
    if (!strcmp(what, "host") || !strcmp(what, ALL))
        reading_fact(r, line, name, "%s", what);
    else if (row == ANY_GPU)
        reading_fact(r, line, name, "cuda:*");
    else
        reading_fact(r, line, name, "cuda:%zu", !strcmp(what, "row") ? row : column);
}

static bool is_latency(const char *name)
{
    return strstr(name, "latency") != NULL;
}

#define PER_DIRECTION 6 /* 0.6: a matrix for each direction */
#define OWN_CHAIN     8 /* 0.8: between GPUs, the chain is in the memory of one */

/* By the version, as the comment above has it. */
static void add_case(struct foreign_reading *r, struct foreign_line *line, const struct test *t,
                     const char *engine, size_t part, size_t row, size_t column)
{
    unsigned version = foreign_version(r->out->version, NULL, 0);
    bool old = version && version < PER_DIRECTION, kernel = !strcmp(engine, "sm");
    bool turned = old && t->parts > 1 && !strcmp(t->op, "write");
    bool all = !strcmp(t->source, ALL) || !strcmp(t->destination, ALL);
    bool twice = kernel && all && !strcmp(t->op, "read") && version != 4;
    const char *direction = t->parts > 1 ? part_names[part] : t->direction;

    if (old && t->parts > 1 && kernel && version == 5)
        direction = "sum";
    place(r, line, "source", turned ? t->destination : t->source, row, column);
    place(r, line, "destination", turned ? t->source : t->destination, row, column);
    reading_fact(r, line, "op", "%s", twice ? "" : t->op);
    reading_fact(r, line, "direction", "%s", direction);
    reading_fact(r, line, "beside", "%s", t->beside);
    if (version && version < OWN_CHAIN && !strcmp(t->name, "device_to_device_latency"))
        reading_fact(r, line, "chain", "host");
}

static void add_cell(struct foreign_reading *r, const char *name, size_t part, size_t row,
                     size_t column, double value)
{
    const char *engine;
    const struct test *t = test_of(name, &engine);
    struct foreign_line *line = reading_add(r);

    reading_fact(r, line, "test", "%s", name);
    reading_fact(r, line, "engine", "%s", engine);
    reading_fact(r, line, "row", "%zu", row);
    reading_fact(r, line, "column", "%zu", column);
    if (t->name)
        add_case(r, line, t, engine, part, row, column);
    if (is_latency(name))
        reading_figure(line, "latency", "mean", value, PRINTED_NS);
    else
        reading_figure(line, "bandwidth", "p50", value, PRINTED_GB_S);
}

/* A matrix ends with the sum of its cells, which are rounded. */
static int check_sum(struct foreign_reading *r, const char *name, double sum, double told,
                     double ulp)
{
    if (fabs(sum - told) > ulp + 1e-5 * fabs(told))
        return reading_bad(r, "the cells of %s add up to %.6g, and it says %.6g", name, sum, told);
    return 0;
}

/* A test that has no matrix: of whatever GPUs. */
static void add_outcome(struct foreign_reading *r, const char *name, const char *status,
                        const char *reason)
{
    struct foreign_line *line = reading_add(r);
    const char *engine;
    const struct test *t = test_of(name, &engine);

    reading_fact(r, line, "test", "%s", name);
    reading_fact(r, line, "engine", "%s", engine);
    if (t->name)
        add_case(r, line, t, engine, 0, ANY_GPU, ANY_GPU);
    reading_fact(r, line, "quantity", "%s", is_latency(name) ? "latency" : "bandwidth");
    line->status = status;
    line->reason = reason;
}

/* A line by which it ended before its time, and what that says of the test; NULL: another line. */
static const char *status_of(const char *line)
{
    return strstr(line, "checking the pattern") || strstr(line, "h_errorFlag") ? "wrong"
           : !strncmp(line, "Waived", 6)                                       ? "skipped"
           : !strncmp(line, "Error", 5) || !strncmp(line, "ERROR", 5) ||
                   !strncmp(line, "NVML_ERROR", 10) || strstr(line, " in expression ")
               ? "failed"
               : NULL;
}

/* ---- JSON ---- */

static int read_matrix_json(struct foreign_reading *r, const char *name, const json_t *matrix,
                            const json_t *told)
{
    const char *engine;
    size_t rows = json_array_size(matrix), parts = test_of(name, &engine)->parts;
    double sum = 0;
    int err = 0;

    if (!rows || (parts > 1 && rows % parts && rows != json_array_size(json_array_get(matrix, 0))))
        return reading_bad(r, "the matrix of %s has %zu rows", name, rows);
    parts = rows % parts ? 1 : parts;
    for (size_t i = 0; !err && i < rows; i++) {
        const json_t *cells = json_array_get(matrix, i);

        sum = i % (rows / parts) ? sum : 0;
        for (size_t k = 0; !err && k < json_array_size(cells); k++) {
            const char *text = json_string_value(json_array_get(cells, k));
            double value = NAN;

            if (text && !strcmp(text, "N/A"))
                continue;
            err = reading_number(r, text ? text : "", &value);
            if (!err)
                add_cell(r, name, i / (rows / parts), i % (rows / parts), k, value);
            sum += value;
        }
    }
    return err ? err
               : check_sum(r, name, sum, json_is_number(told) ? json_number_value(told) : NAN, 0);
}

static int read_test_json(struct foreign_reading *r, const json_t *test)
{
    const char *name = reading_json_text(r, test, "name");
    const char *status = reading_json_text(r, test, "status");

    if (!*name)
        return reading_bad(r, "a test of it has no name");
    if (!strcmp(status, "Passed"))
        return read_matrix_json(r, name, json_object_get(test, "bandwidth_matrix"),
                                json_object_get(test, "sum"));
    if (!strcmp(status, "Waived")) {
        add_outcome(r, name, "skipped", "nvbandwidth waived it");
        return 0;
    }
    const char *error = reading_json_text(r, test, "error"), *how;
    error = *error ? error : reading_json_text(r, r->json, "nvbandwidth.error");
    how = status_of(error);
    add_outcome(r, name, how && *how == 'w' ? how : "failed",
                pool_text(&r->out->pool, "nvbandwidth says %s: %.*s", status,
                          (int)strcspn(error, "\n"), error));
    return 0;
}

int read_nvbandwidth_json(struct foreign_reading *r)
{
    const json_t *all = json_object_get(r->json, "nvbandwidth");
    const json_t *list = json_object_get(all, "testcases");
    const char *error = reading_json_text(r, all, "error");
    int err = 0;

    r->out->version = reading_match(r, reading_json_text(r, all, "version"), "([0-9][0-9.]*)");
    r->out->host = reading_json_text(r, all, "Hostname");
    if (*error && !json_array_size(list)) {
        snprintf(r->error, r->len, "nvbandwidth failed: %s", error);
        return -EIO;
    }
    for (size_t i = 0; !err && i < json_array_size(list); i++)
        err = read_test_json(r, json_array_get(list, i));
    return err;
}

/* ---- Text ---- */

struct text_state {
    const char *at;
    const char *test; /* that runs; NULL: none */
    size_t found;     /* matrices of it */
};

static int read_row(struct foreign_reading *r, const struct words *words, size_t columns,
                    const char *test, size_t part, double *sum)
{
    char *end;
    unsigned long row = strtoul(words->all[0], &end, 10);
    int err = 0;

    if (*end || words->n != columns + 1)
        return reading_bad(r, "a row of the matrix of %s has %zu cells, not %zu", test,
                           words->n - 1, columns);
    for (size_t k = 0; !err && k < columns; k++) {
        double value;

        if (!strcmp(words->all[k + 1], "N/A"))
            continue;
        err = reading_number(r, words->all[k + 1], &value);
        if (!err)
            add_cell(r, test, part, row, k, value);
        *sum += err ? 0 : value;
    }
    return err;
}

/* Behind a description: the numbers of the columns, the rows, an empty line, the sum. */
static int read_matrix_text(struct foreign_reading *r, struct text_state *s, const char *line)
{
    size_t part = strstr(line, "Total ")        ? 2
                  : strstr(line, "2 bandwidth") ? 1
                                                : 0,
           columns, cells = 0;
    struct words words;
    double sum = 0, told;
    int err = 0;

    if (!reading_line(r, &s->at, &line))
        return reading_bad(r, "it is cut off in the matrix of %s", s->test);
    reading_words(r, line, &words);
    columns = words.n;
    bool ended = false;
    while (!err && !ended && reading_line(r, &s->at, &line)) {
        reading_words(r, line, &words);
        ended = words.n && (!strcmp(words.all[0], "SUM") || !strcmp(words.all[0], "&&&&"));
        if (!words.n || ended) /* logs lose empty lines */
            continue;
        err = read_row(r, &words, columns, s->test, part, &sum);
        cells += columns;
    }
    if (err)
        return err;
    if (!ended)
        return reading_bad(r, "it is cut off: the matrix of %s has no sum", s->test);
    size_t number = strcmp(words.all[0], "SUM") ? 3 : 2;
    if (words.n <= number || reading_number(r, words.all[number], &told))
        return reading_bad(r, "the matrix of %s has no sum", s->test);
    s->found++;
    return check_sum(r, s->test, sum, told, 0.0051 * (double)(cells + 1));
}

static int end_test(struct foreign_reading *r, const struct text_state *s)
{
    return s->test && !s->found ? reading_bad(r, "it is cut off: %s has no result", s->test) : 0;
}

static int read_line_text(struct foreign_reading *r, struct text_state *s, const char *line)
{
    if (!strncmp(line, "Running ", 8)) {
        int err = end_test(r, s);
        size_t n = strlen(line + 8);

        s->test =
            pool_text(&r->out->pool, "%.*s", (int)(n && line[7 + n] == '.' ? n - 1 : n), line + 8);
        s->found = 0;
        return err;
    }
    if (!s->test)
        return 0;
    const char *status = status_of(line);
    if (s->found && status && *status == 's') /* another test, whose name is not told */
        return 0;
    if (status) {
        add_outcome(r, s->test, status,
                    pool_text(&r->out->pool, "nvbandwidth says: %s", line + strspn(line, " ")));
        s->test = NULL;
        return 0;
    }
    if (strstr(line, "(GB/s)") || strstr(line, "(ns)"))
        return read_matrix_text(r, s, line);
    return 0;
}

int read_nvbandwidth_text(struct foreign_reading *r)
{
    struct text_state s = {.at = r->text};
    const char *line;
    int err = 0;

    r->out->version = reading_match(r, r->text, "^nvbandwidth Version: *v?([0-9.]+)");
    while (!err && reading_line(r, &s.at, &line))
        err = read_line_text(r, &s, line);
    return err ? err : end_test(r, &s);
}
