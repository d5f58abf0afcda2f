/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a point, where they are those of a model, and its members: see work.h. */
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
