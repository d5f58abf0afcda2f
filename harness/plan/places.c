/* SPDX-License-Identifier: Apache-2.0 */
/* The words that stand for what a machine has: see places.h. */
#include "harness/plan/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/topo.h"
#include "core/rng.h"

#define PLACES_GPUS_MAX 1024

/* Is backend i a GPU (rather than a library or an engine)? Its name is KIND:NUMBER then. */
static bool places_is_gpu(const struct bench_info *b, size_t backend)
{
    const char *colon = strchr(b->backends[backend].name, ':');

    return colon && colon != b->backends[backend].name && colon[1] &&
           !colon[1 + strspn(colon + 1, "0123456789")];
}

size_t places_gpu_count(const struct bench_info *b)
{
    size_t n = 0;
    bool works = false;

    for (size_t i = 0; i < b->n_backends && n < PLACES_GPUS_MAX; i++) {
        if (!places_is_gpu(b, i))
            continue;
        works |= b->backends[i].state == BACKEND_PRESENT;
        n++;
    }
    return works ? n : 0;
}

static const struct bench_backend *gpu_at(const struct bench_info *b, size_t number)
{
    for (size_t i = 0, n = 0; i < b->n_backends; i++)
        if (places_is_gpu(b, i) && n++ == number)
            return &b->backends[i];
    return NULL;
}

size_t places_gpu_number(const struct bench_info *b, const char *name)
{
    size_t n = places_gpu_count(b);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(gpu_at(b, i)->name, name))
            return i;
    return SIZE_MAX;
}

bool places_gpu_is_simulated(const struct bench_info *b, const char *name)
{
    size_t number = places_gpu_number(b, name);

    return number != SIZE_MAX && gpu_at(b, number)->simulated;
}

size_t places_gpu_rank(const struct bench_info *b, size_t number)
{
    const char *own = gpu_at(b, number)->address;
    size_t n = places_gpu_count(b), rank = 0;

    for (size_t i = 0; i < n; i++) {
        int d = strcmp(gpu_at(b, i)->address, own);
        rank += d < 0 || (d == 0 && i < number);
    }
    return rank;
}

bool places_taken_by(const struct opt *opt)
{
    return opt->type == OPT_CUSTOM || opt->type == OPT_STRING;
}

struct words {
    struct buffer *out;
    size_t n;
};

static int add_word(struct words *w, const char *word, size_t len)
{
    int err = w->n++ ? buffer_add(w->out, ",", 1) : 0;

    return err ? err : buffer_add(w->out, word, len);
}

static int add_gpus(const struct bench_info *b, struct words *w, bool every,
                    struct places_read *read)
{
    size_t n = places_gpu_count(b);
    int err = 0;

    read->word = true;
    read->every_gpu |= every;
    read->no_gpu |= !n;
    if (!n)
        return add_word(w, PLACES_NO_GPU, strlen(PLACES_NO_GPU));
    for (size_t i = 0; !err && i < (every ? n : 1); i++)
        err = add_word(w, gpu_at(b, i)->name, strlen(gpu_at(b, i)->name));
    return err;
}

static int add_nodes(struct words *w, struct places_read *read)
{
    struct topo *topo = NULL;
    int err = topo_open(&topo);

    read->word = true;
    if (err) /* a machine that cannot be read has one node, as far as anybody knows */
        return err == -ENOMEM ? err : add_word(w, "node0", strlen("node0"));
    for (unsigned i = 0; !err && i < topo_nodes(topo); i++) {
        char name[24];
        int n = snprintf(name, sizeof(name), "node%u", topo_node_id(topo, i));
        err = add_word(w, name, (size_t)n);
    }
    topo_close(topo);
    return err;
}

/* The kind alone, "cuda", is the first of its kind. */
static bool is_first_gpu(const char *text, size_t len)
{
    return len == strcspn(PLACES_NO_GPU, ":") && !memcmp(text, PLACES_NO_GPU, len);
}

int places_expand(const struct bench_info *b, const char *text, struct buffer *out,
                  struct places_read *read)
{
    struct words words = {.out = out};
    int err = buffer_add(out, "", 0);

    *read = (struct places_read){0};
    while (!err) {
        size_t n = strcspn(text, ",");
        if (n == 3 && !memcmp(text, "gpu", n))
            err = add_gpus(b, &words, false, read);
        else if (n == 4 && !memcmp(text, "gpus", n))
            err = add_gpus(b, &words, true, read);
        else if (n == 5 && !memcmp(text, "nodes", n))
            err = add_nodes(&words, read);
        else if (is_first_gpu(text, n))
            err = add_word(&words, PLACES_NO_GPU, strlen(PLACES_NO_GPU));
        else
            err = add_word(&words, text, n);
        if (!text[n])
            break;
        text += n + 1;
    }
    return err;
}

/* ---- Choosing pairs of GPUs ---- */

static void take(bool *taken, unsigned n, unsigned from, unsigned to, unsigned *count)
{
    if (from == to || taken[from * n + to])
        return;
    taken[from * n + to] = true;
    ++*count;
}

static void take_fixed(bool *taken, unsigned n, unsigned *count)
{
    for (unsigned i = 0; i < n; i++) {
        take(taken, n, i, (i + 1) % n, count);
        take(taken, n, i, (i + n / 2) % n, count);
    }
}

bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count)
{
    bool *taken = calloc((size_t)n * n + 1, sizeof(*taken));
    unsigned wanted = n * (n - 1);
    struct rng rng;

    *count = 0;
    if (!taken)
        return NULL;
    if (n > PAIRS_ALL) {
        take_fixed(taken, n, count);
        wanted = *count + 8 > PAIRS_SAMPLED ? *count + 8 : PAIRS_SAMPLED;
    } else {
        for (unsigned i = 0; i < n * n; i++)
            take(taken, n, i / n, i % n, count);
    }
    rng_seed(&rng, seed);
    while (*count < wanted)
        take(taken, n, (unsigned)rng_below(&rng, n), (unsigned)rng_below(&rng, n), count);
    return taken;
}
