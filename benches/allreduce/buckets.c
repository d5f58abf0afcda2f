/* SPDX-License-Identifier: Apache-2.0 */
/* Models' gradients: see buckets.h. */
#include "benches/allreduce/buckets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/units.h"

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
