/* SPDX-License-Identifier: Apache-2.0 */
/* Models as data: see model.h. */
#include "core/model.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/units.h"

#define LINE_MAX_BYTES 512
#define POWER_MAX      2            /* tokens by tokens: attention */
#define NUMBER_MAX     (1ull << 48) /* of one cell, so that no sum of them overflows */

enum column {
    COLUMN_BLOCK,
    COLUMN_LAYER,
    COLUMN_PARAMETERS,
    COLUMN_M,
    COLUMN_N,
    COLUMN_K,
    COLUMN_COUNT,
    COLUMN_BACKWARD,
    COLUMN_OUTPUT,
    COLUMN_KIND,
    COLUMN_SPLIT,
    COLUMN_SUM,
    COLUMNS
};

static const char *const column_names[COLUMNS + 1] = {
    "block",    "layer",  "parameters", "m",     "n",   "k", "count",
    "backward", "output", "kind",       "split", "sum", NULL};
static const char *const kind_names[] = {"dense", "expert", "table", NULL};
static const char *const split_names[] = {"whole", "column", "row", NULL};
static const char *const unit_names[] = {"image", "sequence", "sample", NULL};

/* What is read, and where reading is. */
struct reading {
    struct model *m;
    const char *path;
    size_t line;
    enum column columns[COLUMNS]; /* in the order of the file */
    size_t n_columns;             /* 0: their names have not come */
    /* Lines of a range of blocks, which are repeated when the range has ended. */
    size_t group;         /* the first of them */
    unsigned first, last; /* of the range; of one block both are the same */
    char *error;
    size_t len;
};

static int damaged(const struct reading *r, const char *what)
{
    snprintf(r->error, r->len, "'%s' is no model at line %zu: %s", r->path, r->line, what);
    return -EBADMSG;
}

static int find(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text))
            return i;
    return -1;
}

/* Cuts the line at its commas. Returns how many cells there are, SIZE_MAX: more than `most`. */
static size_t cut(char *line, char **cells, size_t most)
{
    size_t n = 0;

    for (char *at = line; at; n++) {
        if (n == most)
            return SIZE_MAX;
        cells[n] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = 0;
    }
    return n;
}

static bool parse_number(const char *text, uint64_t *value)
{
    return !units_parse_u64(text, value) && *value <= NUMBER_MAX;
}

/* "2*S*4096"; of an empty cell 0. False: it is none. */
static bool parse_size(char *text, struct model_size *size)
{
    char *rest = NULL;

    *size = (struct model_size){.factor = *text ? 1 : 0};
    for (char *term = strtok_r(text, "*", &rest); term; term = strtok_r(NULL, "*", &rest)) {
        uint64_t value = 1;
        if (!strcmp(term, "S"))
            size->power++;
        else if (!parse_number(term, &value) || !value || size->factor > NUMBER_MAX / value)
            return false;
        size->factor *= value;
    }
    return size->power <= POWER_MAX;
}

/* ---- Blocks ---- */

/* The lines of the last range were read once: they are repeated for its other blocks. */
static int repeat_group(struct reading *r)
{
    struct model *m = r->m;
    size_t n = m->n_layers - r->group;
    char pattern[MODEL_NAME_MAX];

    if (n * (r->last - r->first + 1) > MODEL_LAYERS_MAX - r->group) {
        snprintf(r->error, r->len, "'%s' has over %d layers", r->path, MODEL_LAYERS_MAX);
        return -E2BIG;
    }
    for (unsigned copy = r->last - r->first + 1; n && copy-- > 0;) {
        for (size_t i = 0; i < n; i++) {
            struct model_layer *from = &m->layers[r->group + i], *to = from + copy * n;
            memcpy(pattern, from->name, sizeof(pattern));
            if (copy)
                *to = *from;
            to->block = r->first + copy;
            /* {} in the name is the number of the copy. */
            const char *at = strstr(pattern, "{}");
            if (at)
                snprintf(to->name, MODEL_NAME_MAX, "%.*s%u%s", (int)(at - pattern), pattern, copy,
                         at + 2);
            else
                snprintf(to->name, MODEL_NAME_MAX, "%s", pattern);
        }
    }
    m->n_layers = r->group + n * (r->last - r->first + 1);
    r->group = m->n_layers;
    return 0;
}

/* "0", "1..24": another one than before ends the range before. */
static int take_block(struct reading *r, const char *text)
{
    uint64_t first = r->first, last;
    char number[24];
    const char *dots = strstr(text, "..");

    if (*text) {
        snprintf(number, sizeof(number), "%.*s", dots ? (int)(dots - text) : 20, text);
        if (!parse_number(number, &first) || first >= MODEL_BLOCKS_MAX)
            return damaged(r, "its block is no number below 1024 and no range as 1..24");
    }
    last = first;
    if (dots && (!parse_number(dots + 2, &last) || last >= MODEL_BLOCKS_MAX || last < first))
        return damaged(r, "its block is no number below 1024 and no range as 1..24");
    if (first == r->first && last == r->last)
        return 0;
    if (r->m->n_layers && first <= r->last)
        return damaged(r, "its block comes before the one of the line before");
    int err = repeat_group(r);
    r->first = (unsigned)first;
    r->last = (unsigned)last;
    return err;
}

/* ---- Lines ---- */

static const char *take_product(struct model_layer *l, char *const *cells)
{
    uint64_t backward = 2;
    bool m = *cells[COLUMN_M], n = *cells[COLUMN_N], k = *cells[COLUMN_K];

    l->count = 1;
    if (m != n || n != k)
        return "m, n and k are of one product: give all or none";
    if (!parse_size(cells[COLUMN_M], &l->m) || !parse_size(cells[COLUMN_N], &l->n) ||
        !parse_size(cells[COLUMN_K], &l->k))
        return "m, n and k are numbers above 0, S, or products of these as 2*S";
    if (*cells[COLUMN_COUNT] && (!parse_number(cells[COLUMN_COUNT], &l->count) || !l->count))
        return "count is no number above 0";
    if (*cells[COLUMN_BACKWARD] &&
        (!parse_number(cells[COLUMN_BACKWARD], &backward) || backward > 2))
        return "backward is 0, 1 or 2";
    l->backward = (unsigned)backward;
    return NULL;
}

static const char *take_cells(struct model_layer *l, char *const *cells)
{
    int kind = *cells[COLUMN_KIND] ? find(kind_names, cells[COLUMN_KIND]) : MODEL_DENSE;
    int split = *cells[COLUMN_SPLIT] ? find(split_names, cells[COLUMN_SPLIT]) : MODEL_WHOLE;
    const char *wrong = take_product(l, cells);

    if (!*cells[COLUMN_LAYER] || strlen(cells[COLUMN_LAYER]) >= sizeof(l->name))
        return "a layer has a name of at most 63 bytes";
    memcpy(l->name, cells[COLUMN_LAYER], strlen(cells[COLUMN_LAYER]) + 1);
    if (!parse_number(cells[COLUMN_PARAMETERS], &l->parameters))
        return "its parameters are no number";
    if (wrong)
        return wrong;
    if (!parse_size(cells[COLUMN_OUTPUT], &l->output) || !parse_size(cells[COLUMN_SUM], &l->sum))
        return "output and sum are numbers above 0, S, or products of these as 2*S";
    if (!l->parameters && !l->m.factor && !l->output.factor)
        return "it has neither parameters nor a product nor an output";
    if (kind < 0 || split < 0)
        return kind < 0 ? "its kind is not dense, expert or table"
                        : "its split is not column or row";
    l->kind = (enum model_kind)kind;
    l->split = (enum model_split)split;
    return l->sum.factor && !l->split ? "a sum is of a layer that is split" : NULL;
}

static int take_layer(struct reading *r, char *line)
{
    static char none[1];
    char *given[COLUMNS], *cells[COLUMNS];
    size_t n = cut(line, given, r->n_columns);

    if (n == SIZE_MAX)
        return damaged(r, "it has more cells than columns have names");
    for (size_t i = 0; i < COLUMNS; i++)
        cells[i] = none;
    for (size_t i = 0; i < n; i++)
        cells[r->columns[i]] = given[i];
    int err = take_block(r, cells[COLUMN_BLOCK]);
    if (err)
        return err;
    if (r->m->n_layers == MODEL_LAYERS_MAX) {
        snprintf(r->error, r->len, "'%s' has over %d layers", r->path, MODEL_LAYERS_MAX);
        return -E2BIG;
    }
    const char *wrong = take_cells(&r->m->layers[r->m->n_layers], cells);
    r->m->n_layers += !wrong;
    return wrong ? damaged(r, wrong) : 0;
}

/* The line of the columns' names. */
static int take_header(struct reading *r, char **cells, size_t n)
{
    bool seen[COLUMNS] = {false};

    for (size_t i = 0; i < n; i++) {
        int column = find(column_names, cells[i]);
        if (column < 0 || seen[column])
            return damaged(r, column < 0 ? "it names a column that no model has"
                                         : "it names a column twice");
        seen[column] = true;
        r->columns[r->n_columns++] = (enum column)column;
    }
    if (!seen[COLUMN_LAYER] || !seen[COLUMN_PARAMETERS])
        return damaged(r, "the columns layer and parameters must be there");
    return 0;
}

/* `unit,image`, or the columns' names. */
static int take_head(struct reading *r, char *line)
{
    char *cells[COLUMNS];
    size_t n = cut(line, cells, COLUMNS);
    uint64_t *number = NULL;

    if (n == 2 && !strcmp(cells[0], "sequence"))
        number = &r->m->sequence;
    else if (n == 2 && !strcmp(cells[0], "experts"))
        number = &r->m->experts;
    if (number)
        return parse_number(cells[1], number) && *number && *number < 1u << 30
                   ? 0
                   : damaged(r, "it is no number from 1 to 2^30");
    if (n == 2 && !strcmp(cells[0], "unit")) {
        if (find(unit_names, cells[1]) < 0)
            return damaged(r, "its unit is not image, sequence or sample");
        snprintf(r->m->unit, sizeof(r->m->unit), "%s", cells[1]);
        return 0;
    }
    return n == SIZE_MAX ? damaged(r, "it has more cells than columns have names")
                         : take_header(r, cells, n);
}

/* What only the whole file can tell. */
static int finish(struct reading *r)
{
    struct model *m = r->m;
    int err = m->n_layers ? repeat_group(r) : damaged(r, "it has no layer");

    for (size_t i = 0; i < m->n_layers && !err; i++) {
        const struct model_layer *l = &m->layers[i];
        m->parameters += l->parameters;
        bool uses = l->m.power || l->n.power || l->k.power || l->output.power || l->sum.power;
        if (uses && !m->sequence)
            err = damaged(r, "S is used, but no line 'sequence,TOKENS' is there");
        else if (l->kind == MODEL_EXPERT && !m->experts)
            err = damaged(r, "experts are used, but no line 'experts,NUMBER' is there");
    }
    return err;
}

static int read_lines(FILE *in, struct reading *r)
{
    char line[LINE_MAX_BYTES];
    int err = 0;

    while (!err && fgets(line, sizeof(line), in)) {
        r->line++;
        if (!strchr(line, '\n') && !feof(in))
            return damaged(r, "the line is too long");
        line[strcspn(line, "\r\n")] = 0;
        if (!*line || *line == '#')
            continue;
        err = r->n_columns ? take_layer(r, line) : take_head(r, line);
    }
    if (!err && ferror(in))
        return damaged(r, "it cannot be read");
    return err ? err : finish(r);
}

/* ---- Files ---- */

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

/* Folders of models, the first first. False: there are no more. */
static bool folder_at(size_t at, char *path, size_t len)
{
    static const char *const beside[] = {"/../../configs", "/../share/plumbline/configs",
                                         "/../configs"};
    const char *env = getenv("PLUMB_CONFIGS");
    char own[PATH_MAX];

    if (env && *env)
        return !at && snprintf(path, len, "%s/models", env) < (int)len;
    if (!at)
        return snprintf(path, len, "configs/models") < (int)len;
    own_folder(own, sizeof(own));
    return *own && at <= sizeof(beside) / sizeof(*beside) &&
           snprintf(path, len, "%s%s/models", own, beside[at - 1]) < (int)len;
}

/* In path: the file that was opened. */
static FILE *open_model(const char *name, char *path, size_t len)
{
    char folder[PATH_MAX];
    FILE *in = NULL;

    const char *end = strrchr(name, '.');

    if (strchr(name, '/') || (end && !strcmp(end, ".csv"))) {
        snprintf(path, len, "%s", name);
        return fopen(path, "re");
    }
    for (size_t i = 0; !in && folder_at(i, folder, sizeof(folder)); i++)
        if (snprintf(path, len, "%s/%s.csv", folder, name) < (int)len)
            in = fopen(path, "re");
    return in;
}

/* "resnet50" of "configs/models/resnet50.csv" */
static void take_name(struct model *m, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot ? (size_t)(dot - base) : strlen(base);

    snprintf(m->name, sizeof(m->name), "%.*s", (int)n, base);
}

/* ---- Which models there are ---- */

static int is_model_file(const struct dirent *file)
{
    const char *end = strrchr(file->d_name, '.');

    return end && end > file->d_name && !strcmp(end, ".csv");
}

/* The names of the first folder that has models, and the one that is nearest to this name, if one
 * is near. */
static void find_names(const char *name, char *all, size_t all_len, char *near, size_t near_len)
{
    char folder[PATH_MAX];
    struct dirent **files = NULL;
    int n = 0;

    *all = *near = 0;
    for (size_t i = 0; n <= 0 && folder_at(i, folder, sizeof(folder)); i++)
        n = scandir(folder, &files, is_model_file, alphasort);
    const char **names = xcalloc((size_t)(n > 0 ? n : 0) + 1, sizeof(*names));
    for (int i = 0; i < n; i++) {
        *strrchr(files[i]->d_name, '.') = 0;
        names[i] = files[i]->d_name;
    }
    const char *nearest = opts_nearest(name, names);
    /* "bert-large, dlrm, vgg16": as many as have room. */
    size_t at = 0;
    *all = 0;
    for (const char *const *one = names; *one && at + strlen(*one) + 2 < all_len; one++)
        at += (size_t)snprintf(all + at, all_len - at, "%s%s", at ? ", " : "", *one);
    snprintf(near, near_len, "%s", nearest ? nearest : "");
    free(names);
    for (int i = 0; i < n; i++)
        free(files[i]);
    if (n >= 0)
        free(files);
}

int model_load(const char *name, struct model *m, char *error, size_t len)
{
    char path[PATH_MAX + 64] = "";
    struct reading r = {.m = m, .path = path, .error = error, .len = len};
    FILE *in;

    *m = (struct model){.unit = "sample", .layers = xcalloc(MODEL_LAYERS_MAX, sizeof(*m->layers))};
    in = open_model(name, path, sizeof(path));
    if (!in) {
        char all[300], near[NAME_MAX + 1];
        struct model wanted;
        take_name(&wanted, name);
        find_names(wanted.name, all, sizeof(all), near, sizeof(near));
        snprintf(error, len, "no model '%.128s': %s%s%s%s%s%sgive the path of a model's file", name,
                 *near ? "did you mean '" : "", near, *near ? "'? " : "",
                 *all ? "the models are " : "", all, *all ? "; or " : "");
        return -ENOENT;
    }
    take_name(m, path);
    int err = read_lines(in, &r);
    fclose(in);
    return err;
}

void model_release(struct model *m)
{
    free(m->layers);
    *m = (struct model){.layers = NULL};
}

/* ---- What a step takes ---- */

double model_size_value(struct model_size size, uint64_t sequence)
{
    double value = (double)size.factor;

    for (unsigned i = 0; i < size.power; i++)
        value *= (double)sequence;
    return value;
}

double model_forward_flop(const struct model_layer *l, uint64_t sequence)
{
    return 2 * (double)l->count * model_size_value(l->m, sequence) *
           model_size_value(l->n, sequence) * model_size_value(l->k, sequence);
}

double model_backward_flop(const struct model_layer *l, uint64_t sequence)
{
    return l->backward * model_forward_flop(l, sequence);
}

const char *const model_update_names[UPDATE_KINDS + 1] = {"none", "sgd", "adam", NULL};

enum model_update model_update_find(const char *name)
{
    int i = UPDATE_KINDS;

    while (--i > UPDATE_NONE && strcmp(model_update_names[i], name) != 0)
        ;
    return (enum model_update)i;
}

double model_update_bytes(enum model_update update, double element_bytes)
{
    double kept = fmax(element_bytes, 4);
    double sgd = element_bytes + 2 * kept + (element_bytes < kept ? element_bytes : 0);

    return update == UPDATE_NONE ? 0 : update == UPDATE_SGD ? sgd : sgd + 4 * kept;
}

double model_state_bytes(enum model_update update, double element_bytes)
{
    return (update == UPDATE_ADAM ? 2 * fmax(element_bytes, 4) : 0) +
           (update != UPDATE_NONE && element_bytes < 4 ? 4 : 0);
}

struct model_memory model_memory(const struct model_kept *k)
{
    double e = k->element_bytes;

    return (struct model_memory){
        .parameters = e * ((k->zero > 2 ? k->shared : k->parameters) + k->tables),
        .gradients = e * ((k->zero > 1 ? k->shared : k->parameters) + k->rows),
        .update = k->state_bytes * (k->zero ? k->shared : k->parameters),
        .activations = e * k->outputs};
}

double model_memory_all(const struct model_memory *m)
{
    return m->parameters + m->gradients + m->update + m->activations;
}
