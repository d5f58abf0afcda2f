/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-tests: text, and JSON (-J FILE). Read in its sources, versions 2.0 to 2.19; of 2.20 are its
 * options and formats, as far as 2.19 has them.
 *
 * `time` is the mean of the timed operations of a launch; over ranks that are threads or processes
 * it is their mean, too, unless -a says otherwise. algbw is size / time, in 1e9 bytes a second, and
 * busbw a factor of it. Size is the larger one of what a rank sends and gets. Out of place is the
 * first group of columns.
 *
 * -n times -m operations are enqueued one behind another, -m of them in one group call, and waited
 * for at the end. With -G they are kept as a graph, which is launched so often before the wait. -z
 * waits for each operation, and 1 times a barrier behind each, too; with -m above 1 the operations
 * begin at the end of their group, so that 1 and 2 wait for nothing, and 3 waits for each group.
 * Ranks in a process are its threads times GPUs of each (-t, -g). Of several threads each calls the
 * library by itself, as processes do; with one thread a process calls for all of its GPUs.
 * -I adds columns of single operations, by events, and leaves `time` what it is.
 *
 * Before 2.16.7 the text does not name the collective. Before 2.13 its last column is an error, of
 * the largest element, and no count: that data was wrong is said at the end alone.
 *
 * rccl-tests are AMD's copy, of the same formats.
 *
 * The header has -n, and since 2.13 -m and -G; -R (registered buffers) is in the command alone. So
 * is -D: since 2.17, kernels of nccl-tests itself may move the data in place of NCCL's.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/foreign/foreign.h"

/* Of these, algbw is the size over the time. */
static const char *const plain[] = {"all_reduce", "all_gather", "alltoall",       "broadcast",
                                    "gather",     "reduce",     "reduce_scatter", "scatter",
                                    "sendrecv",   NULL};

/* What a whole output says. */
struct nccl {
    const char *collective; /* "all_reduce"; "" is not told */
    size_t ranks, groups;   /* 0: not told */
    size_t nodes;           /* 0: not told */
    const char *library;
    /* "" is not told. queued: operations, or groups of them, before a wait; barrier: "1" or "?" */
    const char *queued, *aggregate, *graph, *registered, *barrier;
    const char *each;    /* ranks in a process of one thread; "": not told, or of several threads */
    const char *kernels; /* "own": not those of NCCL; "": those, or not told */
    const char *unaligned; /* "1": the buffers are, as was asked for */
    const char *named_by;  /* who names the collective; "" is the output */
    const char *maker;     /* of the GPUs: "AMD"; "" is NVIDIA, or not told */
};

enum blocking { BLOCK_NONE, BLOCK_BARRIER, BLOCK_EACH, BLOCK_GROUP, BLOCK_UNKNOWN }; /* -z */

/* One line of results. */
struct result {
    const char *size, *type, *redop, *root;
};

/* Builds have suffixes: "all_reduce_perf_mpi", "all_reduce_perf.exe". */
static const char *collective_of(struct foreign_reading *r, const char *program)
{
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    const char *end = strstr(name, "_perf");

    return pool_text(&r->out->pool, "%.*s", (int)(end ? (size_t)(end - name) : strlen(name)), name);
}

/* The one collective in the name of a file, "all_reduce-8gpus.txt"; "": none, or several. */
static const char *collective_in_name(struct foreign_reading *r)
{
    static const char *const names[][2] = {{"reduce_scatter", "reduce[-_]?scatter"},
                                           {"all_reduce", "all[-_]?reduce"},
                                           {"all_gather", "all[-_]?gather"},
                                           {"alltoallv", "all[-_]?to[-_]?allv"},
                                           {"alltoall", "all[-_]?to[-_]?all"},
                                           {"sendrecv", "send[-_]?recv"},
                                           {"broadcast", "broadcast"},
                                           {"hypercube", "hypercube"},
                                           {"gather", "gather"},
                                           {"scatter", "scatter"},
                                           {"reduce", "reduce"}};
    const char *slash = strrchr(r->name, '/'), *found = "";
    char *name = (char *)pool_text(&r->out->pool, "%s", slash ? slash + 1 : r->name);
    size_t n = 0;

    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *pattern = pool_text(&r->out->pool, "(^|[^a-z])(%s)([^a-z]|$)", names[i][1]);
        size_t at, len = reading_find(name, pattern, 2, &at);

        if (!len)
            continue;
        memset(name + at, '-', len); /* "reduce" is no further one in "all_reduce" */
        found = names[i][0];
        n++;
    }
    return n == 1 ? found : "";
}

static const char *maker_of(struct foreign_reading *r, const char *devices)
{
    return *reading_match(r, devices, "(AMD |Radeon|Instinct|gfx[0-9]|MI[23][0-9][0-9])") ? "AMD"
                                                                                          : "";
}

/* How many operations are queued before a wait. */
static void set_queue(struct nccl *n, const char *iterations, enum blocking how)
{
    bool one_by_one = !strcmp(n->aggregate, "1");

    n->queued = how == BLOCK_NONE                        ? iterations
                : one_by_one || how == BLOCK_GROUP       ? "1"
                : !*n->aggregate || how == BLOCK_UNKNOWN ? ""
                                                         : iterations;
    n->barrier = how == BLOCK_BARRIER ? "1" : how == BLOCK_UNKNOWN ? "?" : "";
}

/* Names of the hosts of ranks, each with its GPU. */
struct hosts {
    char **all;
    size_t n;
    bool lost; /* one of them is not known */
};

/* A whole address is of one GPU. Without its domain the number of the device stands beside it. */
static void hosts_add(struct hosts *h, const char *host, const char *device, const char *address)
{
    if (!*host)
        h->lost = true;
    else
        *ARRAY_ADD(h->all, h->n) =
            xasprintf("%s\t%s %s", host, strchr(address, ':') ? "" : device, address);
}

static int compare_texts(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Distinct hosts; 0: not known. A GPU has one rank: where one is named twice, two hosts have the
 * same name. */
static size_t hosts_count(struct hosts *h)
{
    size_t n = 0;

    if (h->n)
        qsort(h->all, h->n, sizeof(*h->all), compare_texts);
    for (size_t i = 0; i < h->n; i++) {
        const char *before = i ? h->all[i - 1] : "\t";
        size_t name = strcspn(h->all[i], "\t");

        if (name != strcspn(before, "\t") || strncmp(h->all[i], before, name) != 0)
            n++;
        else if (!strcmp(h->all[i], before))
            h->lost = true;
    }
    for (size_t i = 0; i < h->n; i++)
        free(h->all[i]);
    free(h->all);
    return h->lost ? 0 : n;
}

/* Both say the same time, in 1e9 bytes a second. `ulps`: what they are rounded to. */
static int check_rate(struct foreign_reading *r, const struct nccl *n, double bytes, double us,
                      double algbw, const double ulps[2])
{
    double rate = bytes / us / 1e3, slack = rate * ulps[0] / us;
    size_t i = 0;

    while (plain[i] && strcmp(plain[i], n->collective) != 0)
        i++;
    if (!plain[i] || reading_agrees(algbw, ulps[1], rate, slack))
        return 0;
    return reading_bad(r, "%.0f bytes in %g us are %.4g GB/s, and it says %g", bytes, us, rate,
                       algbw);
}

static void add_result(struct foreign_reading *r, const struct nccl *n, const struct result *res,
                       const char *in_place, const char *wrong, double us, double algbw,
                       double busbw, const char *quantity)
{
    struct foreign_line *line = reading_add(r);
    double number = strtod(wrong, NULL);

    reading_fact(r, line, "collective", "%s", n->collective);
    reading_fact(r, line, "size", "%s", res->size);
    reading_fact(r, line, "type", "%s", res->type);
    reading_fact(r, line, "dtype", "%s", reading_dtype(res->type));
    reading_fact(r, line, "redop", "%s", strcmp(res->redop, "none") ? res->redop : "");
    reading_fact(r, line, "root", "%s", strcmp(res->root, "-1") ? res->root : "");
    reading_fact(r, line, "in_place", "%s", in_place);
    if (n->ranks)
        reading_fact(r, line, "ranks", "%zu", n->ranks);
    reading_fact(r, line, "groups", "%zu", n->groups);
    if (n->nodes)
        reading_fact(r, line, "nodes", "%zu", n->nodes);
    reading_fact(r, line, "each", "%s", n->each);
    reading_fact(r, line, "queued", "%s", n->queued);
    reading_fact(r, line, "agg", "%s", n->aggregate);
    reading_fact(r, line, "graph", "%s", n->graph);
    reading_fact(r, line, "registered", "%s", n->registered);
    reading_fact(r, line, "barrier", "%s", n->barrier);
    reading_fact(r, line, "library", "%s", n->library);
    reading_fact(r, line, "kernels", "%s", n->kernels);
    reading_fact(r, line, "unaligned", "%s", n->unaligned);
    reading_fact(r, line, "maker", "%s", n->maker);
    reading_fact(r, line, "named_by", "%s", n->named_by);
    reading_figure(line, quantity, "mean", us, PRINTED_US);
    if (algbw > 0)
        reading_figure(line, "algbw", "", algbw, PRINTED_GB_S);
    if (busbw > 0)
        reading_figure(line, "busbw", "", busbw, PRINTED_GB_S);
    if (number > 0 || !strcmp(wrong, "nan")) {
        line->status = "wrong";
        line->reason = pool_text(&r->out->pool, "nccl-tests found %s wrong elements", wrong);
    }
}

/* Data was wrong somewhere, and no line says where. */
static void find_wrong(struct foreign_reading *r, size_t before, const char *count)
{
    struct foreign_output *out = r->out;

    for (size_t i = before; i < out->n; i++)
        if (strcmp(out->lines[i].status, "ok") != 0)
            return;
    for (size_t i = before; i < out->n; i++) {
        out->lines[i].status = "wrong";
        out->lines[i].reason = pool_text(
            &out->pool,
            "nccl-tests found %s values out of bounds, in which results it does not say", count);
    }
}

/* 22703 is 2.27.3; of NCCL before 2.9, 2804 is 2.8.4. */
static const char *library_text(struct foreign_reading *r, unsigned long code)
{
    unsigned long major = code >= 10000 ? code / 10000 : code / 1000;
    unsigned long minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;

    return code ? pool_text(&r->out->pool, "NCCL %lu.%lu.%lu", major, minor, code % 100) : "";
}

/* ---- JSON ---- */

static int read_place_json(struct foreign_reading *r, const struct nccl *n,
                           const struct result *res, const json_t *body, const char *in_place)
{
    bool cpu = json_object_get(body, "cpu_time") != NULL;
    const json_t *wrong = json_object_get(body, "nwrong");
    double us, algbw, busbw, ulps[2] = {5e-7, 5e-7};

    if (!json_is_object(body))
        return 0;
    int err = reading_json_number(r, body, cpu ? "cpu_time" : "time", &us);
    algbw = json_number_value(json_object_get(body, "alg_bw")); /* of small sizes it is 0 */
    if (!err && !cpu)
        err = check_rate(r, n, strtod(res->size, NULL), us, algbw, ulps);
    busbw = json_number_value(json_object_get(body, "bus_bw"));
    const char *count = json_is_number(wrong)
                            ? pool_text(&r->out->pool, "%g", json_number_value(wrong))
                            : reading_json_text(r, body, "nwrong");
    if (!err)
        add_result(r, n, res, in_place, count, us, algbw, busbw, cpu ? "cpu_time" : "time");
    return err;
}

static int read_result_json(struct foreign_reading *r, const struct nccl *n, const json_t *one)
{
    struct result res = {.type = reading_json_text(r, one, "type"),
                         .redop = reading_json_text(r, one, "redop"),
                         .root = reading_json_text(r, one, "root")};
    const json_t *size = json_object_get(one, "size");

    if (!json_is_integer(size) || !*res.type)
        return reading_bad(r, "a result of it has no size or type");
    if (!json_integer_value(size)) /* too small for all ranks: nothing was moved */
        return 0;
    res.root += strspn(res.root, " ");
    res.size = pool_text(&r->out->pool, "%lld", (long long)json_integer_value(size));
    int err = read_place_json(r, n, &res, json_object_get(one, "out_of_place"), "");
    return err ? err : read_place_json(r, n, &res, json_object_get(one, "in_place"), "1");
}

/* Of several GPUs a process, its list of devices has the first one of each process alone. */
static size_t ranks_of(const json_t *config)
{
    const json_t *devices = json_object_get(config, "devices");
    size_t each = (size_t)json_integer_value(json_object_get(config, "nthreads")) *
                  (size_t)json_integer_value(json_object_get(config, "ngpus"));
    size_t n = json_array_size(devices), last = 0;

    for (size_t i = 0; i < n; i++) {
        size_t rank =
            (size_t)json_integer_value(json_object_get(json_array_get(devices, i), "rank"));
        last = rank > last ? rank : last;
    }
    bool whole = each && n % each == 0 && last + 1 == n;
    return whole ? n : n * each;
}

static size_t nodes_of(const json_t *devices)
{
    struct hosts hosts = {0};

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *host = json_string_value(json_object_get(device, "hostname"));
        const char *address = json_string_value(json_object_get(device, "device_hex"));
        json_int_t number = json_integer_value(json_object_get(device, "device"));
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)number);
        hosts_add(&hosts, host ? host : "", text, address ? address : "");
    }
    return hosts_count(&hosts);
}

/* Is a word "-R1", "-R", "--local_register=1" or the begin of the long name? Its value, which may be
 * the next word; NULL: it is not. */
static const char *option_value(const char *word, const char *next, char letter, const char *name)
{
    size_t n = strcspn(word, "=");

    if (word[0] == '-' && word[1] == letter)
        return word[2] ? word + 2 : next;
    if (strncmp(word, "--", 2) != 0 || n < 3 || strncmp(word + 2, name, n - 2) != 0)
        return NULL;
    return word[n] ? word + n + 1 : next;
}

/* The number of an option in the command; `none` where it was not given, -1 where the file has no
 * command. */
static long option_of(const json_t *args, char letter, const char *name, long none)
{
    long value = json_array_size(args) ? none : -1;

    for (size_t i = 1; i < json_array_size(args); i++) {
        const char *word = json_string_value(json_array_get(args, i));
        const char *next = json_string_value(json_array_get(args, i + 1));
        const char *text = word ? option_value(word, next ? next : "", letter, name) : NULL;

        value = text ? strtol(text, NULL, 0) : value;
    }
    return value;
}

static const char *json_count(struct foreign_reading *r, const json_t *config, const char *name)
{
    const json_t *value = json_object_get(config, name);

    return json_is_integer(value)
               ? pool_text(&r->out->pool, "%lld", (long long)json_integer_value(value))
               : "";
}

#define NCCL_JSON_VERSION 3 /* of its JSON; the file does not tell the version of nccl-tests */

int read_nccl_json(struct foreign_reading *r)
{
    const json_t *config = json_object_get(r->json, "config");
    const json_t *args = json_object_get(r->json, "args");
    const json_t *list = json_object_get(r->json, "results");
    json_int_t version = json_integer_value(json_object_get(r->json, "version"));
    const char *program = json_string_value(json_array_get(args, 0));
    const json_t *devices = json_object_get(config, "devices");
    size_t most = 0;

    for (size_t i = 0; i < json_array_size(devices); i++) {
        size_t group =
            (size_t)json_integer_value(json_object_get(json_array_get(devices, i), "group"));
        most = group > most ? group : most;
    }
    struct nccl n = {.groups = most + 1};
    int err = 0;

    if (version > NCCL_JSON_VERSION && !r->any_version) {
        snprintf(r->error, r->len, "its JSON is of version %lld, and known is up to %d",
                 (long long)version, NCCL_JSON_VERSION);
        return -EPROTO;
    }
    if (!json_object_get(r->json, "end_time") || !json_object_get(r->json, "out_of_bounds"))
        return reading_bad(r, "it is cut off: it does not say when it ended");
    n.ranks = n.groups > 1 ? 0 : ranks_of(config);
    n.collective = collective_of(r, program ? program : "");
    n.named_by = "";
    n.maker = json_object_get(r->json, "rccl_version") ? "AMD" : "";
    for (size_t i = 0; !*n.maker && i < json_array_size(devices); i++)
        n.maker = maker_of(r, reading_json_text(r, json_array_get(devices, i), "device_info"));
    n.library = library_text(
        r, (unsigned long)json_integer_value(json_object_get(r->json, "nccl_version")));
    n.nodes = nodes_of(devices);
    n.kernels = option_of(args, 'D', "device_implementation", 0) > 0 ? "own" : "";
    n.unaligned = option_of(args, 'u', "unalign", 0) > 0 ? "1" : "";
    n.aggregate = json_count(r, config, "aggregated_iterations");
    n.graph = json_count(r, config, "graph");
    n.each = strcmp(json_count(r, config, "nthreads"), "1") ? "" : json_count(r, config, "ngpus");
    /* NCCL before 2.27 knows no symmetric memory: there -R 2 is -R 1. */
    long value = option_of(args, 'R', "local_register", 0);
    n.registered =
        value < 0 ? ""
        : !value  ? "none"
        : value == 2 && json_integer_value(json_object_get(r->json, "nccl_version")) >= 22700
            ? "symmetric"
            : "local";
    long blocks = option_of(args, 'z', "blocking", 0);
    bool blocking = !strcmp(reading_json_text(r, config, "blocking_collectives"), "true");
    set_queue(&n, json_count(r, config, "iterations"),
              !blocking                              ? BLOCK_NONE
              : blocks > 0 && blocks < BLOCK_UNKNOWN ? (enum blocking)blocks
                                                     : BLOCK_UNKNOWN);
    for (size_t i = 0; i < json_array_size(args); i++) {
        const char *word = json_string_value(json_array_get(args, i));

        r->out->command = pool_join(&r->out->pool, r->out->command, " ", word ? word : "?");
    }
    size_t before = r->out->n;
    for (size_t i = 0; !err && i < json_array_size(list); i++)
        err = read_result_json(r, &n, json_array_get(list, i));
    const json_t *wrong = reading_at(r->json, "out_of_bounds.count");
    if (!err && json_integer_value(wrong) > 0)
        find_wrong(r, before,
                   pool_text(&r->out->pool, "%lld", (long long)json_integer_value(wrong)));
    return err;
}

/* ---- Text ---- */

#define PLACES 2

/* Where the columns of results stand, by the header. */
struct columns {
    size_t size, type, redop, root; /* SIZE_MAX: there is none */
    size_t n;
    struct {
        size_t time, algbw, busbw, wrong;
    } place[PLACES];
    bool cpu;
    bool counts; /* wrong elements; before 2.13 it is an error, which is of good data, too */
};

static size_t column_named(const struct words *w, const char *name, size_t from)
{
    size_t i = words_find(w, name, from);

    return i < w->n ? i - 1 : SIZE_MAX; /* the header begins with a '#' */
}

static bool read_header(struct words *w, struct columns *c)
{
    const char *time = words_find(w, "cputime", 0) < w->n ? "cputime" : "time";
    size_t at = 0;

    *c = (struct columns){.cpu = *time == 'c'};
    c->size = column_named(w, "size", 0);
    c->type = column_named(w, "type", 0);
    c->redop = column_named(w, "redop", 0);
    c->root = column_named(w, "root", 0);
    for (size_t i = 0; i < PLACES; i++) {
        size_t wrong, from = words_find(w, time, at);

        wrong = words_find(w, "#wrong", from);
        c->counts = wrong < w->n;
        wrong = wrong < w->n ? wrong : words_find(w, "error", from);
        c->place[i].time = column_named(w, time, at);
        c->place[i].algbw = column_named(w, "algbw", from);
        c->place[i].busbw = column_named(w, "busbw", from);
        c->place[i].wrong = wrong - 1;
        if (from == w->n || wrong >= w->n || c->place[i].algbw == SIZE_MAX ||
            c->place[i].busbw == SIZE_MAX)
            return false;
        at = from + 1;
        c->n = wrong; /* columns up to this one */
    }
    return c->size != SIZE_MAX && c->type != SIZE_MAX;
}

/* "94.11" is rounded to 0.01, "5e+05" to 1e+05. */
static double ulp_of(const char *word)
{
    const char *dot = strchr(word, '.'), *e = strchr(word, 'e');
    size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;

    return 0.51 * pow(10, (e ? strtod(e + 1, NULL) : 0) - (double)digits);
}

static int read_place_text(struct foreign_reading *r, const struct nccl *n, const struct columns *c,
                           const struct words *w, size_t place)
{
    struct result res = {w->all[c->size], w->all[c->type],
                         c->redop == SIZE_MAX ? "none" : w->all[c->redop],
                         c->root == SIZE_MAX ? "-1" : w->all[c->root]};
    const char *time = w->all[c->place[place].time], *algbw = w->all[c->place[place].algbw];
    double us, rate, ulps[2] = {ulp_of(time), ulp_of(algbw)};
    double bus = strtod(w->all[c->place[place].busbw], NULL);
    int err = reading_number(r, time, &us);

    rate = strtod(algbw, NULL); /* of small sizes it is rounded to 0 */
    if (!err && !c->cpu)
        err = check_rate(r, n, strtod(res.size, NULL), us, rate, ulps);
    if (!err)
        add_result(r, n, &res, place ? "1" : "", c->counts ? w->all[c->place[place].wrong] : "", us,
                   rate, bus, c->cpu ? "cpu_time" : "time");
    return err;
}

static int read_results(struct foreign_reading *r, const struct nccl *n)
{
    struct columns c = {0};
    struct words w;
    const char *at = r->text, *line;
    bool known = false;
    int err = 0;

    while (!err && reading_line(r, &at, &line)) {
        reading_words(r, line, &w);
        if (w.n && *w.all[0] == '#') {
            if (w.n > 5 && !strcmp(w.all[1], "size"))
                known = read_header(&w, &c);
            continue;
        }
        if (!words_number(&w))
            continue;
        if (!known)
            return reading_bad(r, "its columns are not those of a known version");
        /* hypercube_perf leaves the column of the reduction blank: the word there is that of the
         * root. */
        static char none[] = "none";

        if (c.redop != SIZE_MAX && c.redop < w.n && w.n != READING_WORDS &&
            strchr("-0123456789", *w.all[c.redop])) {
            memmove(&w.all[c.redop + 1], &w.all[c.redop], (w.n - c.redop) * sizeof(*w.all));
            w.all[c.redop] = none;
            w.n++;
        }
        err = words_columns(r, &w, c.n);
        /* too small for all ranks: it has a time and no rate, and nothing was moved */
        if (err || !strcmp(w.all[c.size], "0"))
            continue;
        for (size_t i = 0; !err && i < PLACES; i++)
            err = read_place_text(r, n, &c, &w, i);
    }
    return err;
}

/* The lines of ranks: a rank that is missing was cut off by a limit of its own. */
static int read_ranks(struct foreign_reading *r, struct nccl *n)
{
    size_t found = 0, last = 0, groups = 0, firsts = 0;
    struct hosts hosts = {0};
    const char *at = r->text, *line;
    struct words w;

    while (reading_line(r, &at, &line)) {
        reading_words(r, line, &w);
        if (w.n < 6 || strcmp(w.all[0], "#") != 0 || strcmp(w.all[1], "Rank") != 0)
            continue;
        size_t rank = strtoul(w.all[2], NULL, 10);
        size_t group = strcmp(w.all[3], "Group") ? 0 : strtoul(w.all[4], NULL, 10);
        last = rank > last ? rank : last;
        groups = group > groups ? group : groups;
        firsts += !rank;
        found++;
        n->maker = *n->maker ? n->maker : maker_of(r, line);
        size_t on = words_find(&w, "on", 5);
        hosts_add(&hosts, on + 1 < w.n ? w.all[on + 1] : "", on + 3 < w.n ? w.all[on + 3] : "",
                  on + 4 < w.n ? w.all[on + 4] : "");
    }
    n->groups = found ? groups + 1 : 0;
    n->ranks = found && found == last + 1 && !groups ? found : 0;
    n->nodes = hosts_count(&hosts);
    n->nodes = n->ranks ? n->nodes : 0;
    if (firsts < 2 && found <= last + 1)
        return 0;
    return reading_bad(r,
                       "rank 0 stands there %zu times: its processes did not see each other, as "
                       "those of nccl-tests built without MPI=1 do not",
                       firsts);
}

int read_nccl_text(struct foreign_reading *r)
{
    struct nccl n = {.maker = *reading_match(r, r->text, "(rccl-(tests|library))") ? "AMD" : "",
                     .named_by = ""};
    size_t before = r->out->n, outputs = reading_count(r->text, "^# *nThread "),
           starts = reading_count(r->text, "^# Collective test starting:");

    r->out->version = reading_match(r, r->text, "^# nccl-tests version ([0-9.]+)");
    n.collective =
        collective_of(r, reading_match(r, r->text, "^# Collective test starting: *([^ ]+)"));
    if (!*n.collective && *(n.collective = collective_in_name(r)))
        n.named_by = "collective by the file's name";
    n.library =
        library_text(r, strtoul(reading_match(r, r->text, "nccl-library=([0-9]+)"), NULL, 10));
    n.registered = n.kernels = "";
    n.unaligned = *reading_match(r, r->text, "^# nThread .* unalign: ([1-9])") ? "1" : "";
    n.aggregate = reading_match(r, r->text, "^# nThread .* agg iters: ([0-9]+)");
    n.graph = reading_match(r, r->text, "^# nThread .* graph: ([0-9]+)");
    n.each = reading_match(r, r->text, "^# nThread 1 nGpus ([0-9]+) ");
    /* Up to 2.18 the line of -z 2 is that of 1 in some versions: what names a barrier has one. */
    const char *how = reading_match(r, r->text, "^# Blocking Enabled: (.*)$");

    set_queue(&n, reading_match(r, r->text, "^# nThread .*warmup iters: [0-9]+ iters: ([0-9]+)"),
              !*how                            ? BLOCK_NONE
              : strstr(how, "outer iteration") ? BLOCK_GROUP
              : strstr(how, "no barrier")      ? BLOCK_EACH
                                               : BLOCK_BARRIER);
    size_t ends = reading_count(r->text, "^# Avg bus bandwidth");
    if (!ends)
        return reading_bad(r, "it is cut off: it has no line 'Avg bus bandwidth'");
    outputs = starts > outputs ? starts : outputs;
    if (ends < outputs)
        return reading_bad(r, "it holds %zu outputs, of which %zu are cut off", outputs,
                           outputs - ends);
    int err = read_ranks(r, &n);
    if (!err && outputs > 1)
        err = reading_bad(r, "it holds %zu outputs line by line: each takes a file of its own",
                          outputs);
    if (!err)
        err = read_results(r, &n);
    const char *wrong = reading_match(r, r->text, "^# Out of bounds values : ([0-9]+) FAILED");
    if (!err && *wrong)
        find_wrong(r, before, wrong);
    return err;
}
