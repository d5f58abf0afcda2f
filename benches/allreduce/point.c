/* SPDX-License-Identifier: Apache-2.0 */
/* The point that parameters mean: see work.h. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches/allreduce/work.h"
#include "core/hw/machine.h"
#include "core/units.h"
#include "core/wire/wire.h"

enum collective_scaling {
    COLLECTIVE_WEAK,   /* the vector's size is that of every communicator */
    COLLECTIVE_STRONG, /* it is divided by the members: their number times it stays the same */
};

/* ---- Models' gradients ---- */

#define LINE_MAX_BYTES 512
#define HEADER         "layer,parameters"

/* The folder of the program, "" where it cannot be told. */
static void own_folder(char *path, size_t len)
{
    ssize_t n = readlink("/proc/self/exe", path, len - 1);
    char *slash;

    path[n > 0 ? n : 0] = 0;
    slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
}

static FILE *open_in(const char *folder, const char *rest, const char *name, char *path, size_t len)
{
    if (snprintf(path, len, "%s%s/models/%s.csv", folder, rest, name) >= (int)len)
        return NULL;
    return fopen(path, "re");
}

/* In path: the file that was opened, or the last one that was tried. */
static FILE *open_model(const char *name, char *path, size_t len)
{
    static const char *const beside[] = {"/../../configs", "/../share/plumbline/configs",
                                         "/../configs"};
    const char *env = getenv("PLUMB_CONFIGS"), *end = strrchr(name, '.');
    char own[PATH_MAX];
    FILE *in;

    if (strchr(name, '/') || (end && !strcmp(end, ".csv"))) {
        snprintf(path, len, "%s", name);
        return fopen(path, "re");
    }
    if (env && *env)
        return open_in(env, "", name, path, len);
    in = open_in("", "configs", name, path, len);
    own_folder(own, sizeof(own));
    for (size_t i = 0; !in && *own && i < sizeof(beside) / sizeof(*beside); i++)
        in = open_in(own, beside[i], name, path, len);
    return in;
}

static int damaged(const char *path, size_t line, const char *what, char *error, size_t len)
{
    snprintf(error, len, "'%s' is no model at line %zu: %s", path, line, what);
    return -EBADMSG;
}

/* Without the line's end. */
static void chop(char *line)
{
    line[strcspn(line, "\r\n")] = 0;
}

/* "conv1.weight,9408" */
static const char *add_layer(struct model *m, char *line)
{
    char *comma = strrchr(line, ',');
    uint64_t parameters;

    if (!comma || comma == line || units_parse_u64(comma + 1, &parameters) || !parameters)
        return "not 'layer,parameters' with a number above 0";
    if (parameters > COLLECTIVE_BYTES_MAX - m->parameters)
        return "more parameters than are ever summed here";
    m->layers[m->n_layers++] = parameters;
    m->parameters += parameters;
    return NULL;
}

static int read_layers(FILE *in, const char *path, struct model *m, char *error, size_t len)
{
    char line[LINE_MAX_BYTES];
    bool header = false;
    size_t number = 0;

    while (fgets(line, sizeof(line), in)) {
        const char *wrong = NULL;

        number++;
        if (!strchr(line, '\n') && !feof(in))
            return damaged(path, number, "the line is too long", error, len);
        chop(line);
        if (!*line || *line == '#')
            continue;
        if (m->n_layers == MODEL_LAYERS_MAX) {
            snprintf(error, len, "'%s' has over %d layers", path, MODEL_LAYERS_MAX);
            return -E2BIG;
        }
        if (header)
            wrong = add_layer(m, line);
        else if (strcmp(line, HEADER) != 0)
            wrong = "its first line is not '" HEADER "'";
        if (wrong)
            return damaged(path, number, wrong, error, len);
        header = true;
    }
    if (ferror(in))
        return damaged(path, number, "it cannot be read", error, len);
    return m->n_layers ? 0 : damaged(path, number, "it has no layer", error, len);
}

/* "resnet50" of "configs/models/resnet50.csv" */
static void take_name(struct model *m, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot ? (size_t)(dot - base) : strlen(base);

    snprintf(m->name, sizeof(m->name), "%.*s", (int)n, base);
}

int buckets_load(const char *name, struct model *m, char *error, size_t len)
{
    char path[PATH_MAX + 64] = "";
    FILE *in;
    int err;

    *m = (struct model){.layers = calloc(MODEL_LAYERS_MAX, sizeof(*m->layers))};
    if (!m->layers) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    in = open_model(name, path, sizeof(path));
    if (!in) {
        snprintf(error, len,
                 "no model '%s': '%s' is not there: give one of configs/models, or the path of "
                 "such a file",
                 name, path);
        return -ENOENT;
    }
    take_name(m, path);
    err = read_layers(in, path, m, error, len);
    fclose(in);
    return err;
}

void buckets_release(struct model *m)
{
    free(m->layers);
    *m = (struct model){.layers = NULL};
}

int buckets_fuse(const struct model *m, size_t element_bytes, uint64_t bucket_bytes,
                 struct collective_call *calls, size_t most, size_t *n)
{
    uint64_t first = 0, count = 0;

    *n = 0;
    if (!element_bytes)
        return -EINVAL;
    for (size_t i = m->n_layers; i-- > 0;) {
        count += m->layers[i];
        if (count * element_bytes < bucket_bytes && i > 0)
            continue;
        if (*n == most)
            return -E2BIG;
        calls[(*n)++] = (struct collective_call){first, count};
        first += count;
        count = 0;
    }
    return 0;
}

/* Elements that each of n members has a block of, where the operation has blocks. */
static uint64_t whole_blocks(enum collective_op op, uint64_t count, unsigned n)
{
    bool blocks = op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_GATHER ||
                  op == COLLECTIVE_ALL_TO_ALL;

    return blocks ? count - count % n : count;
}

static void fill_transport(const struct collective_params *p, struct collective_point *c)
{
    snprintf(c->transport, sizeof(c->transport), "%s", wire_names[p->transport]);
    c->tcp = (struct net_tcp){.busy_poll_us = (uint32_t)p->busy_poll_us,
                              .buffer_bytes = p->buffer_bytes,
                              .data_port = (uint32_t)p->data_port};
    snprintf(c->tcp.congestion, sizeof(c->tcp.congestion), "%s",
             p->congestion ? p->congestion : "");
    c->rdma = (struct net_rdma){.events = p->completion == 1,
                                .mtu = (uint32_t)p->mtu,
                                .gid_index = p->gid_index,
                                .inline_bytes = -1};
}

static void fill(struct point *pt, const struct collective_params *p, struct collective_point *c)
{
    const struct collective_ops *ops = collective_find(collective_names[p->backend]);

    *c = (struct collective_point){.op = (uint32_t)p->op,
                                   .type = (uint32_t)p->dtype,
                                   .sum = (uint32_t)p->redop,
                                   .inject = (uint32_t)p->inject,
                                   .in_place = p->in_place,
                                   .segment_bytes = p->segment,
                                   .seed = pt->common->seed};
    snprintf(c->backend, sizeof(c->backend), "%s", ops->name);
    snprintf(c->device, sizeof(c->device), "%s", p->device ? p->device : "");
    snprintf(c->algorithm, sizeof(c->algorithm), "%s", p->algorithm ? p->algorithm : "");
    if (ops->own)
        fill_transport(p, c);
}

static int fuse(struct point *pt, const struct collective_params *p, struct collective_call *calls,
                unsigned *n_calls)
{
    struct model model = {0};
    char error[512] = "";
    size_t n = 0;
    int err = buckets_load(p->model, &model, error, sizeof(error));

    if (!err)
        err = buckets_fuse(&model, collective_type_bytes(p->dtype), p->bucket, calls,
                           COLLECTIVE_CALLS_MAX, &n);
    if (err && !error[0])
        snprintf(error, sizeof(error),
                 "'%s' makes more than %d buckets of %llu bytes: give a larger --bucket", p->model,
                 COLLECTIVE_CALLS_MAX, (unsigned long long)p->bucket);
    buckets_release(&model);
    *n_calls = (unsigned)n;
    return err ? point_reason(pt, err == -E2BIG ? -EOPNOTSUPP : err, "%s", error) : 0;
}

int collective_point_of(struct point *pt, unsigned n, struct collective_point *c,
                        struct collective_call *calls, unsigned *n_calls)
{
    const struct collective_params *p = pt->params;
    uint64_t bytes = p->scaling == COLLECTIVE_STRONG ? p->size / n : p->size;
    uint64_t elements = bytes / collective_type_bytes(p->dtype);

    fill(pt, p, c);
    if (p->device && strlen(p->device) >= sizeof(c->device))
        return point_reason(pt, -EOPNOTSUPP, "'%.60s...' names more devices than can be recorded",
                            p->device);
    if (p->model && p->model[0]) {
        int err = fuse(pt, p, calls, n_calls);
        for (unsigned i = 0; !err && i < *n_calls; i++) {
            uint64_t end = calls[i].first + calls[i].count;
            c->count = end > c->count ? end : c->count;
        }
        return err;
    }
    c->count = whole_blocks(p->op, elements, n);
    calls[0] = (struct collective_call){.first = 0, .count = c->count};
    *n_calls = 1;
    if (!c->count)
        return point_reason(pt, -EOPNOTSUPP,
                            "%llu bytes are less than one element (%zu bytes) for each of %u ranks",
                            (unsigned long long)bytes, collective_type_bytes(p->dtype), n);
    if (p->in_place && (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE))
        return point_reason(pt, -EOPNOTSUPP, "%s is not done in place: leave --in-place out",
                            collective_ops_names[p->op]);
    return 0;
}

/* ---- Communicators over nodes ---- */

static unsigned node_of(const struct world *w, unsigned rank)
{
    return world_member(w, rank)->node;
}

/* Ranks in order of (node, local) or of (local, node). Nodes are numbered by first appearance, so
 * rank 0 is first in both. */
void place_members(const struct world *w, enum place_fill fill, unsigned n, unsigned *members)
{
    unsigned nodes = world_nodes(w), size = world_size(w), found = 0;
    unsigned outer = fill == PLACE_FILL_NODE ? nodes : size;

    for (unsigned i = 0; i < outer && found < n; i++)
        for (unsigned rank = 0; fill == PLACE_FILL_NODE && rank < size && found < n; rank++)
            if (node_of(w, rank) == i)
                members[found++] = rank;
    for (unsigned local = 0; fill == PLACE_FILL_RANK && local < size && found < n; local++)
        for (unsigned node = 0; node < nodes && found < n; node++)
            for (unsigned rank = 0; rank < size && found < n; rank++)
                if (node_of(w, rank) == node && world_member(w, rank)->local == local)
                    members[found++] = rank;
}

static unsigned on_node(const struct world *w, const unsigned *members, unsigned n, unsigned node)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += node_of(w, members[i]) == node;
    return count;
}

unsigned place_nodes(const struct world *w, const unsigned *members, unsigned n, unsigned *most,
                     unsigned *fewest)
{
    unsigned nodes = 0;

    *most = *fewest = 0;
    for (unsigned node = 0; node < world_nodes(w); node++) {
        unsigned count = on_node(w, members, n, node);
        if (!count)
            continue;
        *most = count > *most ? count : *most;
        *fewest = !nodes || count < *fewest ? count : *fewest;
        nodes++;
    }
    return nodes;
}

static bool on_one_machine(const struct world_member *a, const struct world_member *b)
{
    return a->node == b->node || machine_same(a->machine, b->machine);
}

unsigned place_machines(const struct world *w, const unsigned *members, unsigned n,
                        unsigned *machine)
{
    unsigned machines = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = 0;
        while (k < i && !on_one_machine(world_member(w, members[k]), world_member(w, members[i])))
            k++;
        machine[i] = k < i ? machine[k] : machines++;
    }
    return machines;
}

/* Vectors that a ring's neighbours send out of the node, or into it: whichever are more. */
static unsigned crossing(const struct world *w, const unsigned *members, unsigned n, unsigned node)
{
    unsigned out = 0, in = 0;

    for (unsigned i = 0; i < n; i++) {
        bool here = node_of(w, members[i]) == node;
        bool next = node_of(w, members[(i + 1) % n]) == node;
        out += here && !next;
        in += !here && next;
    }
    return out > in ? out : in;
}

/* Of the vector, what must go through this node's link one way, the fuller one. */
static double load(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, unsigned node)
{
    double all = n, here = on_node(w, members, n, node), there = all - here;

    switch (op) {
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER:
        return fmax(here, there) / all;
    case COLLECTIVE_ALL_TO_ALL:
        return here * there / all;
    case COLLECTIVE_SEND_RECEIVE:
        return crossing(w, members, n, node);
    default:
        return 1;
    }
}

double place_bound(const struct world *w, enum collective_op op, const unsigned *members,
                   unsigned n, const double *rates, bool on_the_way, unsigned *slowest)
{
    double least = INFINITY, sum = 0;
    unsigned nodes = 0, unknown = 0;

    for (unsigned node = 0; node < world_nodes(w); node++) {
        double rate = rates ? rates[node] : 1;
        if (!on_node(w, members, n, node))
            continue;
        nodes++;
        unknown += isnan(rate);
        if (isnan(rate))
            continue;
        double full = rate / load(w, op, members, n, node);
        if (slowest && full < least)
            *slowest = node;
        least = fmin(least, full);
        sum += rate;
    }
    if (nodes < 2 || unknown == nodes)
        return NAN;
    if (op == COLLECTIVE_ALLREDUCE && !unknown && !on_the_way)
        least = fmin(least, sum / (2 * (nodes - 1.0)));
    return least * collective_bus_factor(op, n);
}
